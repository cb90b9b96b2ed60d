"""The self-test of a small project, as its author runs it: what is caught, what is not, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from selftest_project import MODEL, Project

SPEC = f"spec/{MODEL}/components/both.yml"
STEP = '  steps: [{id: cap, expr: "z[f] = min(y[f + d - D], 2.5) for f = 1..D", text: at most the limit, main: true}]\n'
CASE = (
    "  cases:\n"
    "  - {id: cut, text: The first value is left out and a large one is cut., call: capped, "
    "with: {x: [1.0, 2.0, 9.0], start: {symbol: d - D}}, gives: {result: [2.0, 2.5]}}\n"
)
#: The one mutant of the small project that is the same model.
AT_LEAST = "scaled_model/ops.py:capped:code-comparison:4650902d"
CAUGHT = "scaled_model/ops.py:capped:code-bound:"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project.make(tmp_path_factory.mktemp("full"))


@pytest.fixture(scope="module")
def full(project: Project) -> tuple[int, dict[str, Any]]:
    """A full run without equivalents."""
    return project.run("selftest", "--format", "json", "--seed", "3", "--write")


def outcomes(score: dict[str, Any], outcome: str) -> list[str]:
    return [m["id"] for m in score["mutants"] if m["outcome"] == outcome]


def unseen(kind: str, score: dict[str, Any]) -> list[str]:
    """Mutants of a kind that nothing that runs noticed."""
    silent = ("", "pin-changed")
    return [
        m["id"] for m in score["mutants"] if m["kind"] == kind and m["outcome"] != "equivalent" and m["by"] in silent
    ]


def test_everything_is_caught_but_a_figure_in_words_and_a_change_that_only_its_pin_notices(full: Any) -> None:
    code, score = full
    assert code == 1
    assert score["schema"] == 1 and score["model"] == MODEL and score["seed"] == 3
    survivors = [m for m in score["mutants"] if m["outcome"] == "survived"]
    assert [(m["kind"], m["file"]) for m in survivors] == [("policy", f"spec/{MODEL}/policies.yml")]
    assert "+    scope: 'Counts both tensors, 25 values" in survivors[0]["diff"]
    by_pin = [m for m in score["mutants"] if m["by"].startswith("pin-") and m["file"].endswith(".py")]
    assert [m["id"] for m in by_pin] == [AT_LEAST]
    assert score["caught_only_by_pin"] == 1
    assert score["caught"] + score["survived"] + score["equivalent"] == len(score["mutants"]) == score["made"]


@pytest.mark.parametrize(
    "kind, codes",
    [
        ("axis-order", {"shape-mismatch"}),
        ("config", {"config-invalid", "property-mismatch", "shape-mismatch"}),
        ("count", {"count-mismatch", "config-invalid", "property-mismatch"}),  # symbols have count expressions too
        ("number", {"config-invalid", "control-holds", "property-mismatch"}),
        ("number-type", {"dtype-mismatch"}),
        ("pin", {"pin-changed", "pin-gone"}),
        ("policy", {"count-mismatch", "unknown-reference", ""}),
        ("reference", {"unknown-reference", "unknown-symbol"}),
        ("relation", {"property-mismatch"}),
        ("shape", {"count-mismatch", "shape-mismatch"}),
        ("slice", {"shape-mismatch", "tensor-assigned-twice", "tensor-unassigned"}),
        ("step-constant", {"formula-mismatch"}),
        ("step-term", {"formula-mismatch"}),
        ("code-axis", {"formula-mismatch"}),
        ("code-bound", {"property-mismatch"}),
        ("code-constant", {"config-invalid", "property-mismatch"}),
        ("code-epsilon", {"formula-mismatch"}),
        ("code-order", {"config-invalid", "formula-mismatch", "property-mismatch"}),
        ("code-term", {"config-invalid", "formula-mismatch", "shape-mismatch"}),
    ],
)
def test_which_check_catches_a_kind(full: Any, kind: str, codes: set[str]) -> None:
    found = {m["by"] for m in full[1]["mutants"] if m["kind"] == kind}
    assert found == codes


#: What is taken away -> the edits, the components that are mutated then, and the kinds that nothing notices any more.
REMOVED: dict[str, tuple[list[tuple[str, str, str]], tuple[str, ...], set[str]]] = {
    "the formula and the worked case": (
        [(SPEC, STEP, ""), (SPEC, CASE, ""), (SPEC, '"case:cut"', '"out:z"')],
        ("--component", "cap"),
        {"code-constant"},
    ),
    "the binding of a port": (
        [
            (SPEC, "min(y[f + d - D], 2.5)", "min(w[f + d - D], 2.5)"),
            (SPEC, "{y: x, z: result}, vary: [y]", "{w: x, z: result}, vary: [w]"),
            (f"spec/{MODEL}/symbols.yml", "  z: {", "  w: {tex: w, meaning: input}\n  z: {"),
        ],
        ("--component", "cap"),
        {"axis-order", "shape", "number-type"},
    ),
    "the stated value and the published figure": (
        [(SPEC, ', constant: {eps: "1e-3"}', ""), (f"spec/{MODEL}/policies.yml", "    published: 36\n", "")],
        (),
        {"config", "policy"},
    ),
}


@pytest.mark.parametrize("removed", REMOVED)
def test_mutants_survive_when_their_check_is_taken_away(tmp_path: Path, full: Any, removed: str) -> None:
    edits, chosen, kinds = REMOVED[removed]
    _, score = Project.make(tmp_path, *edits).run("selftest", "--format", "json", *chosen)
    assert not score["findings"], score["findings"]
    for kind in kinds:
        assert len(unseen(kind, score)) > len(unseen(kind, full[1])), f"without {removed} some {kind} mutant survives"


def test_equivalents_are_explained_and_stale_entries_are_findings(tmp_path: Path, full: Any) -> None:
    caught = next(id for id in outcomes(full[1], "caught") if id.startswith(CAUGHT))
    project = Project.make(tmp_path)
    reason = "Equal values are not moved by the cap."
    entries = {
        AT_LEAST: reason,
        "no/such:mutant": "Gone.",
        caught: "Wrongly excused.",
    }
    lines = "".join(f"- mutant: '{id}'\n  reason: {why}\n" for id, why in entries.items())
    (tmp_path / f"spec/{MODEL}/equivalent.yml").write_text(f"equivalent:\n{lines}", "utf-8")
    code, score = project.run("selftest", "--format", "json", "--component", "cap")
    assert code == 1
    assert outcomes(score, "equivalent") == [AT_LEAST]
    assert {m["note"] for m in score["mutants"] if m["id"] == AT_LEAST} == {reason}
    assert [(f["code"], f["line"]) for f in score["findings"]] == [("equivalent-stale", 4), ("equivalent-stale", 6)]
    assert {m["component"] for m in score["mutants"]} <= {"cap", "scale"}
    assert all("cap" in m["id"] or "both.yml" in m["id"] or "LIMIT" in m["id"] for m in score["mutants"])


def test_a_project_that_fails_its_own_checks_is_not_mutated(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    project.edit(SPEC, "count: 2*d - d", "count: 2*d")
    code, score = project.run("selftest", "--format", "json")
    assert code == 1
    assert score["mutants"] == [] and {f["code"] for f in score["findings"]} >= {"count-mismatch"}
    code, text = project.run("selftest", "--budget", "5")
    assert code == 1
    assert "no mutant was tried" in text


def test_a_full_run_is_recorded(project: Project, full: Any) -> None:
    record = json.loads((project.root / f"spec/{MODEL}/selftest.json").read_text("utf-8"))
    assert record["seed"] == 3
    assert all(
        record[name] == full[1][name] for name in ("caught", "caught_only_by_pin", "survived", "equivalent", "kinds")
    )


def test_several_processes_find_the_same(project: Project, full: Any) -> None:
    _, score = project.run("selftest", "--format", "json", "--jobs", "2", "--component", "cap")
    one = {m["id"]: m for m in full[1]["mutants"]}
    assert score["mutants"] and score["mutants"] == [one[m["id"]] for m in score["mutants"]]


def test_a_budget_ends_early_says_so_and_leaves_the_project_alone(project: Project, full: Any) -> None:
    kept = [p for p in project.root.rglob("*") if p.is_file() and not {"__pycache__", ".sitegen"} & set(p.parts)]
    before = {p: p.read_bytes() for p in kept}
    code, score = project.run("selftest", "--format", "json", "--budget", "0.5", "--seed", "7")
    assert 0 < len(score["mutants"]) < score["made"]
    assert len({m["component"] for m in score["mutants"][:3]}) == len(score["mutants"][:3])
    for path, content in before.items():
        assert path.read_bytes() == content, f"{path} was changed"
    _, text = project.run("selftest", "--budget", "0.5")
    assert "mutants tried, seed 0" in text and "survived" in text
    code, text = project.run("selftest", "--budget", "0.5", "--write")
    assert code == 2 and "--write records a full run" in text
    code, text = project.run("selftest", "--component", "scales")
    assert code == 2 and "did you mean 'scale'?" in text
