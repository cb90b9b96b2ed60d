"""The command line: exit codes, forms of output, and what it does not import."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from project_copy import MODEL, ROOT, SPEC, Copy
from toy_project import toy_component, write_toy

from sitegen.cli import main
from sitegen.diagnostics import CODES, Finding, Location
from sitegen.explain import ADVICE
from sitegen.outputs import WRITERS, write_reports
from sitegen.outputs.ci import ANNOTATION_CAP
from sitegen.report import LevelRun, Outcome, Report


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["--root", str(ROOT), *arguments])
    return result.exit_code, result.output


def test_count_prints_policies_and_components_as_json() -> None:
    code, output = run("count", "--model", MODEL, "--format", "json")
    body = json.loads(output)
    assert code == 0 and body["schema"] == 1 and body["model"] == MODEL
    assert body["components"]["stream_weights_for_feed_forward"] == {
        "per_instance": 491_547,
        "instances": 43,
        "total": 491_547 * 43,
    }
    assert body["policies"]["stream_weights"] == {
        "parameters": 39_323_760,
        "scales": 0,
        "stored_elements": 39_323_760,
    }


def test_check_json_has_the_form_of_the_contract() -> None:
    code, output = run("check", "--model", MODEL, "--format", "json")
    body = json.loads(output)
    assert code == 0
    assert {"schema", "model", "statements", "checked", "passed", "failed", "not_run", "stale", "cited"} <= body.keys()
    assert body["checked"] == body["passed"] + body["failed"]
    assert body["statements"] == body["checked"] + body["stale"] + body["not_run"] + body["cited"]
    for name in ("checked", "passed", "failed", "not_run", "stale", "cited"):
        assert sum(level[name] for level in body["levels"].values()) == body[name]


@pytest.mark.parametrize(
    "arguments",
    [("check", "--model", "no-such"), ("verify", "--level", "moon"), ("count", "--policy", "none"), ("explain", "no-code")],
)
def test_usage_faults_exit_2_and_name_the_nearest(arguments: tuple[str, ...]) -> None:
    code, output = run(*arguments)
    assert code == 2
    assert "Traceback" not in output


def test_a_folder_without_a_project_exits_2(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["--root", str(tmp_path), "check"])
    assert result.exit_code == 2
    assert "mkdocs.yml" in result.output


def test_a_bug_exits_70_with_a_short_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("sitegen.verifier.check", broken)
    code, output = run("check")
    assert code == 70
    assert "internal error" in output and "Traceback" not in output


def test_every_code_is_explained() -> None:
    assert set(ADVICE) == set(CODES)
    for code in CODES:
        exit_code, output = run("explain", code)
        assert exit_code == 0 and ADVICE[code] in output


def test_doctor_and_schema_answer() -> None:
    assert run("doctor")[0] == 0
    code, output = run("schema", "component")
    assert code == 0 and "properties" in json.loads(output)


PROBE = "import sys; sys.argv = ['sitegen', '--root', {root!r}, 'check']\nfrom sitegen.cli import main\ntry: main()\nexcept SystemExit: pass\nprint('LOADED', *[m for m in ('torch', 'tilelang', 'mkdocs') if m in sys.modules])"  # noqa: E501


def loaded(script: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    return done.stdout.splitlines()[-1].split()[1:]


def test_check_imports_no_torch_and_the_package_nothing_heavy() -> None:
    assert loaded(PROBE.format(root=str(ROOT))) == []
    heavy = "print('LOADED', *[m for m in ('torch', 'tilelang', 'mkdocs', 'pydantic') if m in sys.modules])"
    assert loaded(f"import sys, sitegen\n{heavy}") == []


def test_the_import_probe_can_fail() -> None:
    """If something did import a heavy package, the probe would say so."""
    assert loaded("import sys, mkdocs\n" + "print('LOADED', *[m for m in ('mkdocs',) if m in sys.modules])") == ["mkdocs"]


def report(findings: int = 1) -> Report:
    listed = [
        Finding("count-mismatch", f"50% off: a,b\nline {i}", Location("spec/x.yml", i + 1, 3), "1", "2", "mend it", "c", "row:r")
        for i in range(findings)
    ]
    outcomes = [
        Outcome("c", "row:r", "failed", "meta", "1", "2", "no"),
        Outcome("c", "step:s", "passed", "cpu"),
        Outcome("c", "kernel", "not_run", "cpu", detail="TileLang is not installed"),
        Outcome("c", "citation:0", "cited", "static"),
    ]
    return Report("toy", outcomes, listed, {"meta": LevelRun("meta", True), "gpu": LevelRun("gpu", False, reason="none")})


def test_github_annotations_are_escaped_and_capped() -> None:
    text = write_reports([report(ANNOTATION_CAP + 3)], "github")
    lines = [line for line in text.splitlines() if line.startswith("::error")]
    assert len(lines) == ANNOTATION_CAP
    assert lines[0].startswith("::error file=spec/x.yml,line=1,col=3,title=count-mismatch::50%25 off: a,b%0Aline 0")
    assert f"spec/x.yml:{ANNOTATION_CAP + 3}:3" in text  # the rest is not lost


def test_junit_has_a_case_per_statement_and_says_why_one_was_skipped() -> None:
    root = ElementTree.fromstring(write_reports([report()], "junit").encode())
    suite = root.find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "1", "1")
    skipped = suite.find("testcase[@name='kernel']/skipped")
    assert skipped is not None and "TileLang" in str(skipped.get("message"))


def test_sarif_results_keep_their_fingerprint_when_lines_move() -> None:
    body = json.loads(write_reports([report()], "sarif"))
    assert body["version"] == "2.1.0"
    (run_,) = body["runs"]
    (result,) = run_["results"]
    assert run_["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "count-mismatch"
    moved = report()
    moved.findings = [Finding(**{**moved.findings[0].__dict__, "where": Location("spec/x.yml", 99, 1)})]
    other = json.loads(write_reports([moved], "sarif"))["runs"][0]["results"][0]
    assert other["partialFingerprints"] == result["partialFingerprints"]


@pytest.mark.parametrize("form", WRITERS)
def test_every_form_writes_any_report(form: str) -> None:
    assert write_reports([Report("empty"), report()], form).endswith("\n")


EXITS = {
    "nothing checked": (Report("m"), 3),
    "all hold": (Report("m", [Outcome("c", "s", "passed", "static")]), 0),
    "a warning is no fault": (
        Report("m", [Outcome("c", "s", "passed", "static")], [Finding("facts-stale", "old", severity="warning")]),
        0,
    ),
    "a finding": (Report("m", [Outcome("c", "s", "passed", "static")], [Finding("pin-gone", "gone")]), 1),
    "required, not run": (Report("m", [Outcome("c", "s", "passed", "static")], required=("gpu",)), 3),
    "a finding beats a missing level": (Report("m", [], [Finding("pin-gone", "gone")], required=("gpu",)), 1),
}


@pytest.mark.parametrize("name", EXITS)
def test_exit_codes(name: str) -> None:
    found, code = EXITS[name]
    assert found.exit_code == code


def test_render_writes_a_tree_and_never_into_a_strangers_folder(tmp_path: Path) -> None:
    row = '{id: w, tensor: w, axes: ["12", "300"], count: "12*300", dtype: F32, text: w}'
    toy = write_toy(tmp_path / "toy", [toy_component("c", [row])], config={}, files={"docs/index.md": "# Home\n"})

    def run(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(main, ["--root", str(toy.root), *arguments])
        return result.exit_code, result.output

    out = tmp_path / "tree"
    assert run("render", "--out", str(out))[0] == 0
    assert "3,600" in (out / "docs/toy/components/c/index.md").read_text("utf-8")
    assert run("render", "--out", str(out))[0] == 0, "a tree of ours may be written again"
    strange = tmp_path / "strange"
    strange.mkdir()
    (strange / "thesis.tex").write_text("mine", "utf-8")
    assert run("render", "--out", str(strange))[0] == 2
    assert [p.name for p in strange.iterdir()] == ["thesis.tex"]


def test_repin_repairs_what_moved_and_asks_about_what_changed(tmp_path: Path) -> None:
    copy = Copy.make(tmp_path / "project")
    streams = copy.root / "reference_impl/ops/streams.py"
    text = streams.read_text("utf-8")
    streams.write_text("# one line more\n" + text, "utf-8")
    root = ["--root", str(copy.root)]
    assert CliRunner().invoke(main, [*root, "check", "--model", MODEL]).exit_code == 1
    assert CliRunner().invoke(main, [*root, "repin", "--write"]).exit_code == 0
    assert CliRunner().invoke(main, [*root, "check", "--model", MODEL]).exit_code == 0
    streams.write_text(text.replace("range(iters - 1)", "range(iters)"), "utf-8")
    assert CliRunner().invoke(main, [*root, "repin", "--write"]).exit_code == 1
    component = "stream_weights_for_attention/stream_combination"
    done = CliRunner().invoke(main, [*root, "repin", "--write", "--ack", component, "--reason", "one more round is meant"])
    assert "one more round is meant" in (copy.root / SPEC / "pins.json").read_text("utf-8"), done.output
