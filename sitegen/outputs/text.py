# For people: every finding in three lines, then the levels, then one line that sums up.
"""Reports as text."""

from __future__ import annotations

from collections.abc import Sequence

from sitegen.diagnostics import ordered, printable
from sitegen.report import LEVELS, Report


def text(reports: Sequence[Report]) -> str:
    """Findings, levels and totals of every model."""
    return "\n".join(one(report) for report in reports)


def one(report: Report) -> str:
    lines = [finding.text() for finding in ordered(report.findings)]
    for level in LEVELS:
        run = report.runs.get(level)
        counts = report.counts([o for o in report.outcomes if o.level == level])
        if run is None and not any(counts.values()):
            continue
        numbers = ", ".join(f"{k.replace('_', ' ')} {v:,}" for k, v in counts.items() if v) or "nothing to check"
        if run is not None and not run.ran:
            lines.append(f"{level:7} not run: {run.reason}" + (f" ({numbers})" if counts["not_run"] else ""))
        else:
            where = ", ".join(p for p in ((run.device, run.versions, run.date) if run else ()) if p and p != level)
            if level == "checkpoint" and not any(counts.values()):
                numbers = "read"  # its rows are counted at the level that executed them
            lines.append(f"{level:7} {numbers}" + (f"  [{where}]" if where else ""))
    idle = [o for o in report.outcomes if o.state == "not_run"]
    for outcome in idle[:20]:
        lines.append(f"not run {outcome.component} {outcome.statement}: {printable(outcome.detail)}")
    if len(idle) > 20:
        lines.append(f"not run … and {len(idle) - 20:,} more")
    if report.cached:
        lines.append("(nothing changed since the last run here; --force runs again)")
    lines.append(report.summary())
    return "\n".join(printable(line, keep="\n") for line in lines) + "\n"
