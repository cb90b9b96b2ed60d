# What a verification found: the state of every statement, findings, and the numbers of the report.
"""Report: statements with their states, by level, with findings and an exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from sitegen.diagnostics import Finding, ordered

State = Literal["passed", "failed", "not_run", "stale", "cited"]
LEVELS = ("static", "meta", "cpu", "gpu", "checkpoint")
EXECUTED = ("meta", "cpu", "gpu")


@dataclass(frozen=True)
class Outcome:
    """How one statement stands: the level that decided, both values where it failed, a detail worth reading."""

    component: str
    statement: str
    state: State
    level: str
    expected: str = ""
    actual: str = ""
    detail: str = ""

    @property
    def executed(self) -> bool:
        return self.state == "passed" and self.level in EXECUTED


@dataclass(frozen=True)
class LevelRun:
    """One level's run: on what, when, or why not."""

    level: str
    ran: bool
    device: str = ""
    versions: str = ""
    date: str = ""
    reason: str = ""


@dataclass
class Report:
    """Everything that a verification of one model says."""

    model: str
    outcomes: list[Outcome] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    runs: dict[str, LevelRun] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    cached: bool = False

    def of(self, component: str) -> dict[str, Outcome]:
        return {o.statement: o for o in self.outcomes if o.component == component}

    def counts(self, outcomes: Iterable[Outcome] | None = None) -> dict[str, int]:
        """statements, checked, passed, failed, not_run, stale, cited."""
        found = Counter(o.state for o in (self.outcomes if outcomes is None else outcomes))
        result = {state: found[state] for state in ("passed", "failed", "not_run", "stale", "cited")}
        checked = result["passed"] + result["failed"]
        return {"checked": checked, **result}

    @property
    def errors(self) -> list[Finding]:
        return [f for f in self.findings if f.severity == "error"]

    @property
    def executed(self) -> int:
        return sum(o.executed for o in self.outcomes)

    @property
    def exit_code(self) -> int:
        """0 all checked statements hold, 1 findings, 3 what was required (or anything at all) could not be run."""
        if self.errors or any(o.state == "failed" for o in self.outcomes):
            return 1
        if any(not (level in self.runs and self.runs[level].ran) for level in self.required):
            return 3
        return 0 if self.counts()["checked"] else 3

    def to_json(self) -> dict[str, Any]:
        """The JSON report of the command line."""
        levels = {}
        for level in LEVELS:
            own = [o for o in self.outcomes if o.level == level]
            if own or level in self.runs:
                levels[level] = self.counts(own)
        return {
            "schema": 1,
            "model": self.model,
            "statements": len(self.outcomes),
            **self.counts(),
            "executed": self.executed,
            "levels": levels,
            "findings": [f.to_json() for f in ordered(self.findings)],
        }

    def summary(self) -> str:
        """One line, as in `checked 412, failed 2, not run 1`."""
        c = self.counts()
        text = (
            f"{self.model}: {len(self.outcomes):,} statements; checked {c['checked']:,}, passed {c['passed']:,}, "
            f"failed {c['failed']:,}, not run {c['not_run']:,}, stale {c['stale']:,}, cited {c['cited']:,}; "
            f"executed {self.executed:,}"
        )
        return text
