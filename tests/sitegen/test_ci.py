"""What machines read: annotations within the platform's caps, SARIF, JUnit, and the files that run the gate."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import click
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from project_copy import ROOT
from toy_project import toy_component, write_toy

from sitegen.cli import main
from sitegen.diagnostics import CODES, SEVERITIES, Finding, Location, printable
from sitegen.outputs import WRITERS, write_reports
from sitegen.outputs.ci import ANNOTATION_CAP, SUMMARY_CAP, summary
from sitegen.report import Outcome, Report

SITEGEN = [sys.executable, "-c", "from sitegen.cli import main; main()"]
SCHEMA = Path(__file__).parent / "cases/ci/sarif-2.1.0-rtm.5.json"
HOSTILE = "::error::x\n::add-mask::y\r##[group]z\x1b[2J\u202e<b>%0A</b>```\x00\ud800"


def finding(number: int = 0, severity: str = "error", **values: str) -> Finding:
    where = Location(values.pop("file", "spec/x.yml"), number + 1, 3)
    return Finding(values.pop("code", "count-mismatch"), values.pop("message", f"wrong {number}"), where,
                   severity=severity, **values)  # fmt: skip


# --- annotations -------------------------------------------------------------------------------------


def test_the_most_severe_come_first_and_the_rest_go_to_the_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    listed = [finding(i, severity) for severity in ("notice", "warning", "error") for i in range(ANNOTATION_CAP + 2)]
    lines = write_reports([Report("toy", [], listed)], "github").splitlines()
    kinds = [line.split(" ")[0] for line in lines if line.startswith("::")]
    assert kinds == ["::error"] * 10 + ["::warning"] * 10 + ["::notice"] * 10
    text = path.read_text("utf-8")
    assert text.count("<pre>") == 6 and text.index("error[") < text.index("warning[") < text.index("notice[")
    assert "toy: 0 statements" in text and "toy: 0 statements" in lines[-1]


@pytest.mark.parametrize("before", [0, SUMMARY_CAP - 5_000, SUMMARY_CAP, SUMMARY_CAP + 10])
def test_a_summary_never_exceeds_its_cap(before: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The platform refuses a longer one whole, so what does not fit is counted."""
    path = tmp_path / "summary.md"
    path.write_bytes(b"x" * before)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    listed = [finding(i, message=f"wrong {i} " + "é" * 3_000) for i in range(400)]
    write_reports([Report("toy", [], listed)], "github")
    size = path.stat().st_size
    assert size <= max(SUMMARY_CAP, before)
    text = path.read_bytes()[before:].decode("utf-8")
    shown = text.count("<pre>")
    if before <= SUMMARY_CAP - 5_000:
        assert f"{400 - ANNOTATION_CAP - shown:,} more" in text
    else:
        assert not text


def test_without_a_summary_the_rest_stays_in_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = [finding(i) for i in range(ANNOTATION_CAP + 1)]
    for value in ("", str(tmp_path / "none" / "summary.md")):
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", value)
        assert "spec/x.yml:11:3: error[count-mismatch] wrong 10" in write_reports([Report("toy", [], listed)], "github")


def commands(log: str) -> list[str]:
    """Lines that the platform's runner would take as commands, by its two syntaxes."""
    return [line for line in re.split(r"[\r\n]", log) if line.strip().startswith("::") or "##[" in line]


@pytest.mark.parametrize("form", ["text", "github"])
def test_no_text_of_a_spec_becomes_a_command_of_the_platform(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    hostile = [finding(i, message=f"{HOSTILE} {i}", expected=HOSTILE, actual=HOSTILE, hint=HOSTILE) for i in range(12)]
    report = Report("toy", [Outcome("c", "s", "not_run", "cpu", detail=HOSTILE)], hostile)
    log = write_reports([report], form)
    found = commands(log)
    assert len(found) == (ANNOTATION_CAP if form == "github" else 0), found[:3]
    assert all(line.startswith("::error file=spec/x.yml,line=") for line in found)
    assert not set("\x1b\u202e\x00\ud800\r") & set(log)
    assert "<b>" not in summary([report], hostile, SUMMARY_CAP)


def test_printable_text_is_one_line() -> None:
    assert printable("a\nb\tc\u00a0d") == "a ⏎ b c d"
    assert printable("\x1b[0m\u202e\ud800") == "\\x1b[0m\\u202e\\ud800"
    assert printable("Größe 流 × 2") == "Größe 流 × 2"


# --- SARIF -------------------------------------------------------------------------------------------

TEXTS = st.text(max_size=30) | st.sampled_from([HOSTILE, "", "a b/ü.yml", "line 7", "x.py:3-9"])
FINDINGS = st.builds(
    Finding,
    st.sampled_from(sorted(CODES)),
    TEXTS,
    st.builds(Location, TEXTS, st.integers(0, 10**6), st.integers(0, 10**4)),
    *[TEXTS] * 5,
    st.sampled_from(SEVERITIES),
)
OUTCOMES = st.builds(
    Outcome, TEXTS, TEXTS, st.sampled_from(["passed", "failed", "not_run", "stale", "cited"]),
    st.sampled_from(["static", "meta", "cpu", "gpu", "checkpoint"]), TEXTS, TEXTS, TEXTS,
)  # fmt: skip
REPORTS = st.builds(Report, st.just("toy"), st.lists(OUTCOMES, max_size=3), st.lists(FINDINGS, max_size=3))


@pytest.fixture(scope="module")
def validator() -> object:
    """The standard's own schema, as its maintainers publish it for editors."""
    jsonschema = pytest.importorskip("jsonschema", reason="comes with the extra `test`")
    schema = json.loads(SCHEMA.read_text("utf-8"))
    return jsonschema.validators.validator_for(schema)(schema, format_checker=jsonschema.FormatChecker())


@given(report=REPORTS)
def test_sarif_is_valid_by_its_schema(report: Report, validator: object) -> None:
    body = json.loads(write_reports([report], "sarif"))
    assert not [e.message for e in validator.iter_errors(body)]  # type: ignore[attr-defined]


def test_the_schema_can_refuse(validator: object) -> None:
    body = json.loads(write_reports([Report("toy", [], [finding()])], "sarif"))
    for breaks in (
        lambda b: b["runs"][0]["results"][0].update(level="fatal"),
        lambda b: b["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"].update(startLine=0),
        lambda b: b["runs"][0]["tool"].pop("driver"),
        lambda b: b.update(version="2.0.0"),
    ):
        broken = json.loads(json.dumps(body))
        breaks(broken)
        assert list(validator.iter_errors(broken))  # type: ignore[attr-defined]


def prints(*listed: Finding) -> list[str]:
    run = json.loads(write_reports([Report("toy", [], list(listed))], "sarif"))["runs"][0]
    return [r["partialFingerprints"]["primaryLocationLineHash"] for r in run["results"]]


@pytest.mark.parametrize(
    "message",
    ["the count is wrong", "code/ref.py:{0}-{1} was {0}", "moved from line {0} to line {1}", "lines {0}, {1} and {1}"],
)
def test_a_finding_that_moves_keeps_its_fingerprint(message: str) -> None:
    """Ten lines further down it is the same result, also where its words name lines."""
    here, there = message.format(7, 9), message.format(17, 19)
    if message.endswith("was {0}"):
        here, there = here.rpartition(" was")[0], there.rpartition(" was")[0]
    assert prints(finding(6, message=here)) == prints(finding(16, message=there))


def test_other_findings_have_other_fingerprints() -> None:
    base = finding(component="c", statement="row:a")
    others = [
        finding(component="c", statement="row:b"),
        finding(component="d", statement="row:a"),
        finding(component="c", statement="row:a", code="shape-mismatch"),
        finding(component="c", statement="row:a", file="spec/y.yml"),
        finding(component="c", statement="row:a", message="wrong by 2"),
        finding(3, component="c", statement="row:a", message="wrong 0"),  # the same words twice in one file
    ]
    assert len({*prints(base, *others)}) == 1 + len(others)


def test_an_address_is_one() -> None:
    run = json.loads(write_reports([Report("toy", [], [finding(file="spec/a b/größe.yml")])], "sarif"))["runs"][0]
    place = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "spec/a%20b/gr%C3%B6%C3%9Fe.yml", "uriBaseId": "%SRCROOT%"}


# --- JUnit and all forms -----------------------------------------------------------------------------


@given(report=REPORTS)
def test_junit_has_a_case_per_statement_whatever_its_words(report: Report) -> None:
    root = ElementTree.fromstring(write_reports([report], "junit").encode("utf-8"))
    (suite,) = root.findall("testsuite")
    cases = suite.findall("testcase")
    assert len(cases) == int(suite.get("tests", "")) >= len(report.outcomes)
    assert len(suite.findall("testcase/failure")) == int(suite.get("failures", ""))
    skipped = [o for o in report.outcomes if o.state in ("not_run", "stale")]
    assert len(suite.findall("testcase/skipped")) == int(suite.get("skipped", "")) == len(skipped)
    if report.errors:
        assert suite.findall("testcase/failure"), "a report with errors is red"


def test_a_statement_that_was_not_run_is_skipped_with_its_reason() -> None:
    report = Report("toy", [Outcome("c", "kernel", "not_run", "cpu", detail="TileLang is not installed")])
    root = ElementTree.fromstring(write_reports([report], "junit"))
    (skipped,) = root.findall("testsuite/testcase[@name='kernel']/skipped")
    assert skipped.get("message") == "not run: TileLang is not installed"


@given(report=REPORTS, form=st.sampled_from(sorted(WRITERS)))
def test_every_form_can_be_written_as_utf_8(report: Report, form: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GITHUB_STEP_SUMMARY", raising=False)
        text = write_reports([report], form)
    assert text.endswith("\n") and text.encode("utf-8")


# --- the files that run the gate -----------------------------------------------------------------------

WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/sitegen.yml").read_text("utf-8"))
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
CONFIG = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))


def workflow_lines() -> list[str]:
    return [
        line.partition(">")[0].partition("||")[0].strip()
        for job in WORKFLOW["jobs"].values()
        for step in job["steps"]
        for line in step.get("run", "").splitlines()
    ]


LINES = [*workflow_lines(), *(h["entry"] for h in HOOKS), *(h["entry"] for r in CONFIG["repos"] for h in r["hooks"])]


@pytest.mark.parametrize("line", [line for line in dict.fromkeys(LINES) if line.startswith("sitegen ")])
def test_the_command_line_accepts_what_the_files_say(line: str) -> None:
    _, *arguments = shlex.split(line)
    group = main.make_context("sitegen", list(arguments))
    name, command, rest = main.resolve_command(group, [*group._protected_args, *group.args])
    assert command is not None and command.make_context(name, list(rest), parent=group).params is not None


def test_a_wrong_line_would_be_refused() -> None:
    group = main.make_context("sitegen", ["check"])
    with pytest.raises(click.UsageError):
        main.commands["check"].make_context("check", ["--formats", "sarif"], parent=group)


def test_the_workflow_checks_on_every_push_and_runs_the_long_suites_weekly() -> None:
    triggers = WORKFLOW[True]  # YAML 1.1 reads `on` as a truth value
    assert {"push", "pull_request", "schedule", "workflow_dispatch"} <= triggers.keys()
    assert re.fullmatch(r"\d+ \d+ \* \* [0-6]", triggers["schedule"][0]["cron"])
    assert set(workflow_lines()) >= {
        "sitegen check --format github",
        "mkdocs build --strict --quiet",
        "pytest -n 2 --dist loadfile -m slow",
    }
    assert WORKFLOW["permissions"] == {"contents": "read"}
    uploads = [s for s in WORKFLOW["jobs"]["check"]["steps"] if "upload-sarif" in s.get("uses", "")]
    assert uploads[0]["with"]["sarif_file"] == "sitegen.sarif"
    assert WORKFLOW["jobs"]["check"]["permissions"]["security-events"] == "write"
    thorough = [
        s for s in WORKFLOW["jobs"]["weekly"]["steps"] if s.get("env", {}).get("HYPOTHESIS_PROFILE") == "thorough"
    ]
    assert thorough and "-m properties" in thorough[0]["run"]


def test_the_hook_passes_here_and_stops_a_commit_that_breaks_a_count(tmp_path: Path) -> None:
    """Its entry, run as pre-commit runs it: in a clone, without file names."""
    pin = "\ncode:\n- {id: p, path: code/model.py, symbol: call}\n"
    (hook,) = [h for h in HOOKS if h["id"] == "sitegen-check"]
    assert hook["pass_filenames"] is False and hook["language"] == "python"
    _, *arguments = shlex.split(hook["entry"])
    for name, count, code in (("right", "2*4", 0), ("wrong", "2*4 + 1", 1)):
        folder = tmp_path / name
        row = f'{{id: w, tensor: w, axes: ["2", "4"], count: "{count}", dtype: F32, text: w}}'
        write_toy(folder, [toy_component("c", [row], more=pin)], config={})
        CliRunner().invoke(main, ["--root", str(folder), "repin", "--write"])
        for command in (["init", "-q", "."], ["add", "-A"]):
            subprocess.run(["git", *command], cwd=folder, check=True)
        clone = tmp_path / f"{name}-clone"
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, "commit", "-q", "-m", "x"], cwd=folder, check=True)
        subprocess.run(["git", "clone", "-q", str(folder), str(clone)], check=True)
        done = subprocess.run([*SITEGEN, *arguments], cwd=clone, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
