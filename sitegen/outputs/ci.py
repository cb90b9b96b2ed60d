# For machines: annotations on a pull request, and test cases.
#
# A log is read by the platform line by line, and a line may be a command to it.  Texts of a spec are quoted
# so that none of them begins one.
"""Reports as GitHub workflow commands and JUnit XML."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from xml.etree import ElementTree

from sitegen.diagnostics import Finding, ordered, printable
from sitegen.report import Report

#: The platform shows at most ten annotations of each kind per step.
ANNOTATION_CAP = 10
#: It refuses a step's summary of more than 1 MiB, whole.
SUMMARY_CAP = 1024 * 1024
#: Longer texts of one annotation are cut, so that the log stays readable.
DATA_CAP = 4_000


def github(reports: Sequence[Report]) -> str:
    """Workflow commands, most severe first; what exceeds the caps goes to the job summary."""
    lines: list[str] = []
    rest: list[Finding] = []
    used = {"error": 0, "warning": 0, "notice": 0}
    for finding in ordered(f for report in reports for f in report.findings):
        if used[finding.severity] < ANNOTATION_CAP:
            used[finding.severity] += 1
            lines.append(annotation(finding))
        else:
            rest.append(finding)
    lines += [log_line(report.summary()) for report in reports]
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not (path and write_summary(Path(path), reports, rest)):
        lines += [log_line(line) for finding in rest for line in finding.text().splitlines()]
    return "\n".join(lines) + "\n"


def annotation(finding: Finding) -> str:
    """One workflow command; properties and data are escaped as the platform asks."""
    body = finding.message
    if finding.expected or finding.actual:
        body += f"\nexpected {finding.expected or '-'}\nactual {finding.actual or '-'}"
    if finding.hint:
        body += f"\nhint: {finding.hint}"
    properties = [f"title={_property(finding.code)}"]
    if finding.where.file:
        properties.insert(0, f"file={_property(finding.where.file)}")
        if finding.where.line:
            properties.insert(1, f"line={finding.where.line},col={max(1, finding.where.column)}")
    return f"::{finding.severity} {','.join(properties)}::{_data(body[:DATA_CAP])}"


def _data(text: str) -> str:
    return printable(text, keep="\n").replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def log_line(text: str) -> str:
    """A line that the platform reads as text: no `::command` at its start."""
    return re.sub(r"^(\s*)::", r"\1: :", printable(text))


def write_summary(path: Path, reports: Sequence[Report], rest: Sequence[Finding]) -> bool:
    """Append to the step's summary within its cap; False when it cannot be written."""
    try:
        room = SUMMARY_CAP - (path.stat().st_size if path.exists() else 0)
        text = summary(reports, rest, room)
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError:
        return False
    return True


def summary(reports: Sequence[Report], rest: Sequence[Finding], room: int) -> str:
    """A line per model, then as many findings as `room` bytes hold, then how many are left out."""
    parts = [f"- {escape(report.summary())}\n" for report in reports]
    used = sum(len(part.encode()) for part in parts)
    reserve = 200
    for number, finding in enumerate(rest):
        part = f"\n<pre>{escape(finding.text())}</pre>\n"
        size = len(part.encode())
        if used + size > room - reserve:
            parts.append(f"\n{len(rest) - number:,} more: run `sitegen check` or `sitegen verify` to read them.\n")
            break
        used += size
        parts.append(part)
    text = "".join(parts)
    return text if len(text.encode()) <= room else ""


# --- JUnit -------------------------------------------------------------------------------------------


def junit(reports: Sequence[Report]) -> str:
    """A suite per model, a case per statement; statements that were not run are skipped with their reason."""
    root = ElementTree.Element("testsuites")
    for report in reports:
        loose = list(loose_findings(report))
        counts = report.counts()
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=report.model,
            tests=str(len(report.outcomes) + len(loose)),
            failures=str(counts["failed"] + len(loose)),
            errors="0",
            skipped=str(counts["not_run"] + counts["stale"]),
        )
        for outcome in report.outcomes:
            case = ElementTree.SubElement(
                suite, "testcase", classname=_xml(outcome.component), name=_xml(outcome.statement), time="0"
            )
            if outcome.state == "failed":
                failure = ElementTree.SubElement(case, "failure", message=_xml(outcome.detail))
                failure.text = _xml(f"expected {outcome.expected}\nactual {outcome.actual}")
            elif outcome.state in ("not_run", "stale"):
                reason = f"{outcome.state.replace('_', ' ')}: {outcome.detail}"
                ElementTree.SubElement(case, "skipped", message=_xml(reason))
        for finding in loose:
            name = _xml(str(finding.where) or "-")
            case = ElementTree.SubElement(suite, "testcase", classname=finding.code, name=name, time="0")
            ElementTree.SubElement(case, "failure", message=_xml(finding.message)).text = _xml(finding.text())
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def loose_findings(report: Report) -> Iterator[Finding]:
    """Errors that no failed statement shows: each is a case of its own, so that a red report is red here too."""
    failed = {(o.component, o.statement) for o in report.outcomes if o.state == "failed"}
    return (f for f in ordered(report.errors) if (f.component, f.statement) not in failed)


def _xml(text: str) -> str:
    """Characters that XML 1.0 cannot hold, and those that no reader sees, are shown by number."""
    return printable(text, keep="\t\n")
