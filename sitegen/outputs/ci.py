# For machines: annotations on a pull request, test cases, and code-scanning results.
"""Reports as GitHub workflow commands, JUnit XML and SARIF 2.1.0."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from xml.etree import ElementTree

from sitegen import __version__
from sitegen.diagnostics import CODES, Finding, ordered
from sitegen.report import Report

#: The platform shows at most ten annotations of each kind per step.
ANNOTATION_CAP = 10


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
    lines += [report.summary() for report in reports]
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        with open(summary, "a", encoding="utf-8") as file:
            file.write("\n".join(f"- {report.summary()}" for report in reports) + "\n")
            file.writelines(f"\n```\n{finding.text()}\n```\n" for finding in rest)
    elif rest:
        lines += [finding.text() for finding in rest]
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
    return f"::{finding.severity} {','.join(properties)}::{_data(body)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def junit(reports: Sequence[Report]) -> str:
    """A suite per model, a case per statement; statements that were not run are skipped with their reason."""
    root = ElementTree.Element("testsuites")
    for report in reports:
        loose = [f for f in report.errors if not f.component]
        counts = report.counts()
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=report.model,
            tests=str(len(report.outcomes) + len(loose)),
            failures=str(counts["failed"] + len(loose)),
            skipped=str(counts["not_run"] + counts["stale"]),
        )
        for outcome in report.outcomes:
            case = ElementTree.SubElement(suite, "testcase", classname=outcome.component, name=outcome.statement)
            if outcome.state == "failed":
                failure = ElementTree.SubElement(case, "failure", message=_xml(outcome.detail))
                failure.text = _xml(f"expected {outcome.expected}\nactual {outcome.actual}")
            elif outcome.state in ("not_run", "stale"):
                ElementTree.SubElement(case, "skipped", message=_xml(f"{outcome.state}: {outcome.detail}"))
        for finding in loose:
            case = ElementTree.SubElement(suite, "testcase", classname=finding.code, name=str(finding.where) or "-")
            ElementTree.SubElement(case, "failure", message=_xml(finding.message)).text = _xml(finding.text())
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _xml(text: str) -> str:
    """Characters that XML 1.0 cannot hold are shown by number."""
    return "".join(c if c in "\t\n" or ord(c) >= 32 else f"\\x{ord(c):02x}" for c in text)


def sarif(reports: Sequence[Report]) -> str:
    """SARIF 2.1.0; fingerprints do not depend on line numbers, so that a moved finding stays the same one."""
    findings = ordered(f for report in reports for f in report.findings)
    codes = sorted({finding.code for finding in findings})
    level = {"error": "error", "warning": "warning", "notice": "note"}
    results = []
    for finding in findings:
        print_of = "\0".join((finding.code, finding.component, finding.statement, finding.where.file, finding.message))
        result = {
            "ruleId": finding.code,
            "ruleIndex": codes.index(finding.code),
            "level": level[finding.severity],
            "message": {"text": finding.text().partition(": ")[2] or finding.message},
            "partialFingerprints": {"sitegen/v1": hashlib.sha256(print_of.encode()).hexdigest()},
        }
        if finding.where.file:
            region = {"startLine": max(1, finding.where.line), "startColumn": max(1, finding.where.column)}
            result["locations"] = [
                {"physicalLocation": {"artifactLocation": {"uri": finding.where.file}, "region": region}}
            ]
        results.append(result)
    rules = [{"id": code, "shortDescription": {"text": CODES[code]}} for code in codes]
    driver = {
        "name": "sitegen",
        "version": __version__,
        "informationUri": "https://pypi.org/project/modelspec-sitegen/",
        "rules": rules,
    }
    body = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    }
    return json.dumps(body, indent=2) + "\n"
