# One report, five renderings: findings are values until here.
"""Write reports as text, JSON, GitHub annotations, JUnit or SARIF."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from sitegen.outputs.ci import github, junit
from sitegen.outputs.sarif import sarif
from sitegen.outputs.text import text
from sitegen.report import Report


def as_json(reports: Sequence[Report]) -> str:
    """One object for one model, a list for several."""
    bodies = [report.to_json() for report in reports]
    return json.dumps(bodies[0] if len(bodies) == 1 else bodies, indent=2) + "\n"


WRITERS: dict[str, Callable[[Sequence[Report]], str]] = {
    "text": text,
    "json": as_json,
    "github": github,
    "junit": junit,
    "sarif": sarif,
}


def write_reports(reports: Sequence[Report], form: str) -> str:
    """The reports in one of the forms of `WRITERS`, ended by a newline."""
    return WRITERS[form](reports)
