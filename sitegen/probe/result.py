# What one level says of the statements that it can decide.
"""The outcome of running a level."""

from __future__ import annotations

from dataclasses import dataclass, field

from sitegen.diagnostics import Finding


@dataclass
class LevelResult:
    """Decided statements of one level.

    Attributes:
        passed: (component, statement) -> detail shown on the page.
        skipped: (component, statement) -> why it could not be run.
        findings: what failed; each names its component and statement.
        device, versions: on what it ran.
        counts: (component, row) -> elements seen in the module, for the pages' third column.
    """

    level: str
    passed: dict[tuple[str, str], str] = field(default_factory=dict)
    skipped: dict[tuple[str, str], str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    device: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    counts: dict[tuple[str, str], int] = field(default_factory=dict)

    def fail(self, finding: Finding) -> None:
        self.findings.append(finding)
        self.passed.pop((finding.component, finding.statement), None)

    def hold(self, component: str, statement: str, detail: str = "") -> None:
        """Record that a statement holds, unless a finding already speaks against it."""
        if not any(f.component == component and f.statement == statement for f in self.findings):
            self.passed[component, statement] = detail
