"""The parts of the self-test: which mutants are made, how they keep their ids, how forks end, how records are read."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selftest_project import MODEL, Project

from sitegen import loader, resolver
from sitegen.diagnostics import SpecInvalid
from sitegen.render.templates import fill
from sitegen.render.view import Link
from sitegen.selftest.code import code_mutants
from sitegen.selftest.equivalents import FILE_NAME, read_equivalents
from sitegen.selftest.expressions import count_forms, relation_forms, slice_forms
from sitegen.selftest.forks import Broken, Failed, in_fork
from sitegen.selftest.mutant import CODE_KINDS, CONFIG_KINDS, SPEC_KINDS, Draft, Edit, Mutant, named
from sitegen.selftest.record import project_digest, read_record, write_record
from sitegen.selftest.rewrites import rewrites
from sitegen.selftest.sample import sampled
from sitegen.selftest.score import Counts, Score, Trial, percent
from sitegen.selftest.specs import spec_mutants
from sitegen.selftest.workers import WorkerDied, in_workers
from sitegen.selftest.yamltext import quoted, spans


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project.make(tmp_path_factory.mktemp("scaled"))


def mutants_of(project: Project) -> list[Mutant]:
    model = resolver.resolve(loader.load(project.root, MODEL))
    return [*spec_mutants(model), *code_mutants(model)]


# --- which mutants there are ---------------------------------------------------------------------------


def test_every_kind_is_made_and_every_mutant_has_its_own_id_and_diff(project: Project) -> None:
    made = mutants_of(project)
    kinds = {m.kind for m in made}
    assert SPEC_KINDS.keys() | CONFIG_KINDS.keys() | CODE_KINDS.keys() <= kinds
    assert {"step-term", "step-constant", "step-epsilon", "step-reduction", "step-slice"} <= kinds
    assert len({m.id for m in made}) == len(made)
    for mutant in made:
        text = (project.root / mutant.file).read_text("utf-8")
        diff = mutant.diff(text)
        assert f"+++ b/{mutant.file}" in diff
        assert mutant.applied(text) != text


def test_a_constant_that_a_pinned_function_reads_is_changed_where_it_is_defined(project: Project) -> None:
    found = [m for m in mutants_of(project) if m.symbol == "LIMIT"]
    assert [(m.what, m.components) for m in found] == [("2.5 becomes 2.525", ("cap",))]


def test_functions_that_no_component_pins_are_left_alone(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    text = (tmp_path / "scaled_model/ops.py").read_text("utf-8")
    (tmp_path / "scaled_model/ops.py").write_text(text + "\n\ndef spare(x):\n    return x + 1\n", "utf-8")
    assert "spare" not in {m.symbol for m in mutants_of(project)}


def test_ids_outlive_edits_elsewhere_and_end_with_the_line_that_they_speak_of(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    before = {m.id: m for m in mutants_of(project)}
    path = tmp_path / "scaled_model/ops.py"
    path.write_text(path.read_text("utf-8").replace("import torch\n", "import math\nimport torch\n"), "utf-8")
    moved = {m.id: m for m in mutants_of(project)}
    assert moved.keys() == before.keys()
    id = next(id for id, m in before.items() if m.kind == "code-epsilon")
    assert moved[id].line == before[id].line + 1
    project.edit("scaled_model/ops.py", "keepdim=True) + eps)", "keepdim=True) + 2*eps)")
    assert id not in {m.id for m in mutants_of(project)}


@pytest.mark.parametrize(
    "text, forms",
    [
        ("n", {"n + 1"}),
        ("(2 + n)*n", {"(2 + n)*n + 1", "(3 + n) * n", "2 + n", "n", "2 + n + n", "2 * n", "n * n", "(2 - n) * n"}),
        ("2*n - n", {"2*n - n + 1", "3 * n - n", "2 - n", "n - n", "2 * n", "2 * n + n", "2 + n - n"}),  # n is the same
        ("n +", set()),
    ],
)
def test_count_forms(text: str, forms: set[str]) -> None:
    assert {form for form, _ in count_forms(text)} == forms


@pytest.mark.parametrize(
    "text, forms",
    [
        ("[0:4]", ["[1:4]", "[0:5]", "[0:3]"]),
        ("[2]", ["[3]", "[1]"]),
        ("[n:2*n]", ["[n + 1:2*n]", "[n:2*n + 1]"]),
        ("[:, 1:]", ["[:, 2:]", "[:, 0:]"]),
    ],
)
def test_slice_forms(text: str, forms: list[str]) -> None:
    assert [form.replace(" ", "") for form, _ in slice_forms(text)] == [form.replace(" ", "") for form in forms]


@pytest.mark.parametrize(
    "text, kind, forms",
    [
        ("sum(j: C[j,k]) = 1", "identity", ["sum(j: C[j,k]) = 1.01"]),
        ("p[j] <= 1 + eps", "bound", ["p[j] <= 0.99 + eps"]),
        ("C[j] >= 0", "bound", ["C[j] >= 0.01"]),
        ("y[f] = 2*x[1]", "identity", ["y[f] = 2.02*x[1]"]),  # an index is no constant
        ("y[f] = 2*x[f]", "control", []),  # a control that fails either way says nothing
    ],
)
def test_relation_forms_are_false_where_the_original_is_sharp(text: str, kind: str, forms: list[str]) -> None:
    assert [form.replace(" ", "") for form, _ in relation_forms(text, kind)] == [f.replace(" ", "") for f in forms]


@pytest.mark.parametrize(
    "line, expected",
    [
        ("y = x.sum(-1)", {"x.sum(-2)", "x"}),
        ("y = x.sum(dim=0)", {"x.sum(dim=1)", "x"}),
        ("y = x + eps", {"x", "eps"}),
        ("y = a - b", {"a", "-b", "b - a"}),
        ("y = a * b + c", {"a * b", "c", "a + c", "b + c", "a * (b + c)"}),
        ("y = x[1:n]", {"x[2:n]", "x[0:n]", "x[1:n + 1]"}),
        ("y = f(a, b)", {"f(b, a)"}),
        ("y = widen(x)", {"x"}),
        ("y = x.square().mean(-1)", {"x.mean(-1).square()", "x.square().mean(-2)", "x.square()", "x.mean(-1)"}),
        ("y = a < b", {"a <= b"}),
        ("y = a if b else c", {"c if b else a"}),
        ("y = not a", {"a"}),
        ("y = range(n - 1)", {"range(n - 1 + 1)", "range(n - 1 - 1)", "range(n)", "range(-1)", "range(1 - n)",
                              "range(n - 2)"}),
        ("y = g(x, eps=eps)", {"g(x, eps=0.0)"}),
        ("y = einsum('ij,jk->ik', a)", {"einsum('ji,jk->ik', a)", "einsum('ij,kj->ik', a)", "einsum('ij,jk->ki', a)"}),
        ("y: int = 1", {"2"}),
        ("'a docstring 1'", set()),
        ("raise ValueError(f'{1}')", set()),
    ],
)  # fmt: skip
def test_rewrites_of_a_line(line: str, expected: set[str]) -> None:
    import ast

    text = f"def f(a):\n    {line}\n"
    tree = ast.parse(text)
    found = set()
    for rewrite in rewrites(tree.body[0]):  # type: ignore[arg-type]
        (node,), (new,) = rewrite.nodes, rewrite.texts
        changed = text.splitlines()[1][: node.col_offset] + new + text.splitlines()[1][node.end_col_offset :]
        found.add(ast.unparse(ast.parse(changed.strip()).body[0].value))  # type: ignore[attr-defined]
    assert found == {ast.unparse(ast.parse(e)) for e in expected}


def test_statements_that_overwrite_a_name_are_dropped_and_exchanged() -> None:
    import ast

    text = "def f(x):\n    x = x / x.sum(-1)\n    x = x / x.sum(-2)\n    return x\n"
    whole = [r for r in rewrites(ast.parse(text).body[0]) if isinstance(r.nodes[0], ast.stmt)]  # type: ignore[arg-type]
    assert [(r.kind, r.texts) for r in whole] == [
        ("code-term", ("pass",)),
        ("code-order", ("x = x / x.sum(-2)", "x = x / x.sum(-1)")),
        ("code-term", ("pass",)),
    ]


def test_mutants_that_change_nothing_or_the_same_are_made_once() -> None:
    drafts = [Draft("number", "a", "", (Edit(3, 4, new),)) for new in ("1", "2", "2", "3")]
    assert [m.applied("a: 1") for m in named(drafts, {"f": "a: 1"}, "f", "spec")] == ["a: 2", "a: 3"]


# --- positions in YAML -----------------------------------------------------------------------------------


def test_spans_find_values_keys_and_items_and_leave_aliases_out() -> None:
    text = "a: &n {b: 'x y', c: [1, two]}\nd: *n\ne: >-\n  folded\n  text\n"
    found = spans(text)
    assert {p: text[s.start : s.end] for p, s in found.items() if s.kind == "scalar"} == {
        ("a", "b"): "'x y'",
        ("a", "c", 0): "1",
        ("a", "c", 1): "two",
        ("e",): ">-\n  folded\n  text\n",
    }
    assert text[found["d", "<key>"].start : found["d", "<key>"].end] == "d"
    assert ("d",) not in found


@pytest.mark.parametrize("value", ["it's", "a: b # c", "two\nlines", "", "{x}", 'a "quote" \\ and more\nlines'])
def test_quoted_text_is_read_back(value: str) -> None:
    assert spans(f"[{quoted(value)}]")[(0,)].value == value


# --- order, forks, score -----------------------------------------------------------------------------------


def _mutant(component: str, kind: str, number: int) -> Mutant:
    return Mutant(f"{component}:{kind}:{number}", kind, "spec", (component,), "f", 1, "", ())


def test_every_beginning_of_a_sample_is_even_and_a_seed_repeats_it() -> None:
    many = [_mutant("large", kind, n) for kind in ("count", "shape", "pin") for n in range(30)]
    many += [_mutant("small", "count", n) for n in range(4)]
    order = sampled(many, 5)
    assert sorted(m.id for m in order) == sorted(m.id for m in many)
    assert [m.component for m in order[:8]].count("small") == 4
    assert {m.kind for m in order[:8] if m.component == "large"} == {"count", "shape", "pin"}
    assert order == sampled(many, 5)
    assert order != sampled(many, 6)


@pytest.mark.parametrize(
    "work, error",
    [
        (lambda: time.sleep(60), Broken),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), Broken),
        (lambda: os._exit(3), Broken),
        (lambda: [][1], Failed),
    ],
)
def test_a_fork_that_hangs_dies_or_raises_is_told_apart(work, error: type[Exception]) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error):
        in_fork(work, 0.5 if error is Broken else 30)


def test_a_fork_gives_its_value_and_changes_nothing_here() -> None:
    here = [1]
    assert in_fork(lambda: (here.append(2), here)[1], 30) == [1, 2]
    assert here == [1]


@contextlib.contextmanager
def _answers(fault: str = "") -> Iterator[Callable[[Mutant], dict[str, Any] | None]]:
    def work(mutant: Mutant) -> dict[str, Any] | None:
        if mutant.id.endswith(":5"):
            if fault == "raises":
                raise LookupError("no such thing")
            if fault == "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            if fault == "ends":
                return None
        return {"id": mutant.id, "pid": os.getpid()}

    yield work


def test_workers_share_the_mutants() -> None:
    many = [_mutant("a", "count", n) for n in range(11)]
    answers = dict(in_workers(many, 3, _answers))
    assert {n: a["id"] for n, a in answers.items()} == {n: m.id for n, m in enumerate(many)}
    assert len({a["pid"] for a in answers.values()}) == 3
    assert os.getpid() not in {a["pid"] for a in answers.values()}


def test_a_worker_whose_time_is_over_stops_and_the_others_go_on() -> None:
    many = [_mutant("a", "count", n) for n in range(12)]
    assert sorted(n for n, _ in in_workers(many, 3, lambda: _answers("ends"))) == [0, 1, 2, 3, 4, 6, 7, 9, 10]


@pytest.mark.parametrize("fault, words", [("raises", "LookupError: no such thing"), ("dies", "wait status")])
def test_a_worker_that_fails_is_no_outcome(fault: str, words: str) -> None:
    with pytest.raises(WorkerDied, match=words):
        list(in_workers([_mutant("a", "count", n) for n in range(8)], 2, lambda: _answers(fault)))


def test_the_share_counts_no_pin_and_is_never_rounded_up() -> None:
    counts = Counts(caught=9_999, only_by_pin=1, survived=1, equivalent=7)
    assert counts.executed == 9_998
    assert percent(counts.share) == "99.98 %"
    assert percent(0.99999) == "99.99 %"


@pytest.mark.parametrize("outcome, code", [("caught", 0), ("equivalent", 0), ("survived", 1)])
def test_exit_codes(outcome: str, code: int) -> None:
    score = Score("m", 0, trials=[Trial(_mutant("a", "count", 1), outcome)])  # type: ignore[arg-type]
    assert score.exit_code == code
    assert Score("m", 0).exit_code == 3  # nothing was tried


# --- files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, line",
    [
        ("equivalent:\n- {mutant: a, because: b}\n", 2),
        ("equivalent: 3\n", 1),
        ("equivalent:\n- {mutant: a}\n", 2),
    ],
)
def test_a_malformed_list_of_equivalents_is_a_finding(tmp_path: Path, text: str, line: int) -> None:
    project = Project.make(tmp_path)
    (tmp_path / f"spec/{MODEL}/{FILE_NAME}").write_text(text, "utf-8")
    with pytest.raises(SpecInvalid) as error:
        read_equivalents(loader.load(project.root, MODEL))
    finding = error.value.findings[0]
    assert (finding.code, finding.where.line) == ("schema-invalid", line)


def _score(project: Project) -> Score:
    score = Score(MODEL, 3, trials=[Trial(_mutant("scale", "count", 1), "caught", "count-mismatch")])
    score.digest = project_digest(loader.load(project.root, MODEL))
    return score


def test_a_record_says_when_it_is_old_and_a_forged_one_is_none(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    sources = loader.load(project.root, MODEL)
    assert read_record(sources) is None
    path = write_record(sources, _score(project).to_json(), "2026-12-01")
    record = read_record(sources)
    assert record is not None
    assert (record.date, record.seed, record.total.executed, record.stale) == ("2026-12-01", 3, 1, False)
    assert [kind.name for kind in record.kinds] == ["count"]
    project.edit("scaled_model/ops.py", "2.5", "2.6")
    old = read_record(sources)
    assert old is not None and old.stale
    data = json.loads(path.read_text("utf-8"))
    for broken in ({**data, "caught": 5}, {**data, "seal": None}, {"schema": 1}, []):
        path.write_text(json.dumps(broken), "utf-8")
        assert read_record(sources) is None
    path.write_text("{", "utf-8")
    assert read_record(sources) is None


@pytest.mark.parametrize(
    "state, words",
    [("none", "No full self-test is recorded"), ("fresh", "of 1 mutants 1 were caught"), ("stale", "older than")],
)
def test_the_page_shows_the_record_and_says_when_it_is_old(tmp_path: Path, state: str, words: str) -> None:
    project = Project.make(tmp_path)
    sources = loader.load(project.root, MODEL)
    if state != "none":
        write_record(sources, _score(project).to_json(), "2026-12-01")
    if state == "stale":
        project.edit("scaled_model/ops.py", "2.5", "2.6")
    html = fill("selftest.html.j2", selftests=[(Link("A model", "model/"), read_record(sources))], proofs=[])
    assert words in " ".join(html.split())
    assert ("older than" in html) == (state == "stale")
