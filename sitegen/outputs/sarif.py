# For code scanning: results in the standard's form, each with a fingerprint that outlives an edit elsewhere.
"""Reports as SARIF 2.1.0."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from sitegen import __version__
from sitegen.diagnostics import CODES, Finding, ordered, printable
from sitegen.explain import ADVICE
from sitegen.report import Report

#: Platforms show no more than this many results of a run.
RESULT_CAP = 5_000
_LEVELS = {"error": "error", "warning": "warning", "notice": "note"}
# Line numbers in a message: `line 7`, `lines 3-9`, `path.py:12-14`.
_LINES = re.compile(r"\b(lines?) \d+(?:(?:-|, | and | to )\d+)*|(?<=[\w/]):\d+(?:[-:]\d+)*")


def sarif(reports: Sequence[Report]) -> str:
    """One run with a rule per code; the most severe results first."""
    findings = ordered(f for report in reports for f in report.findings)[:RESULT_CAP]
    codes = sorted({finding.code for finding in findings})
    times: Counter[str] = Counter()
    results = []
    for finding in findings:
        print_of = fingerprint(finding)
        times[print_of] += 1
        results.append(result(finding, codes.index(finding.code), f"{print_of}:{times[print_of]}"))
    rules = [
        {
            "id": code,
            "shortDescription": {"text": CODES[code]},
            "help": {"text": ADVICE[code]},
            "defaultConfiguration": {"level": "error"},
        }
        for code in codes
    ]
    run = {
        "tool": {"driver": {"name": "sitegen", "version": __version__, "rules": rules}},
        "automationDetails": {"id": "sitegen/"},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    body = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return json.dumps(body, indent=2) + "\n"


def fingerprint(finding: Finding) -> str:
    """What stays the same when the finding moves: code, statement, file and words, without line numbers."""
    words = _LINES.sub(r"\1 #", finding.message)
    parts = (finding.code, finding.component, finding.statement, finding.where.file, words)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:32]


def result(finding: Finding, rule: int, print_of: str) -> dict[str, Any]:
    """One result; `print_of` stands under the one name that code scanning reads, and under our own."""
    words = [printable(finding.message)]
    if finding.expected or finding.actual:
        words.append(f"Expected {printable(finding.expected) or '-'}; actual {printable(finding.actual) or '-'}.")
    if finding.hint:
        words.append(f"Hint: {printable(finding.hint)}")
    body: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": "\n".join(words)},
        "partialFingerprints": {"primaryLocationLineHash": print_of, "sitegen/v1": print_of},
    }
    if finding.where.file:
        region = {"startLine": max(1, finding.where.line), "startColumn": max(1, finding.where.column)}
        place = {"uri": quote(finding.where.file, errors="backslashreplace")}
        if not finding.where.file.startswith("/"):
            place["uriBaseId"] = "%SRCROOT%"
        body["locations"] = [{"physicalLocation": {"artifactLocation": place, "region": region}}]
    if finding.component:
        name = f"{finding.component} {finding.statement}".strip()
        body.setdefault("locations", [{}])[0]["logicalLocations"] = [{"fullyQualifiedName": printable(name)}]
    return body
