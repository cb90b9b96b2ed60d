# What one level says of the statements that it can decide.
"""The outcome of running a level."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field

from sitegen.diagnostics import Finding


@dataclass(frozen=True)
class FieldReads:
    """What a field of the configuration reaches in a run.

    Attributes:
        components: who owns a tensor whose shape depends on the field, whose operation receives it, or whose module
            reads it; innermost ones, in browsing order.
        modules: paths of the modules that read it, numbers as `*`.
        operations: names of the operations that receive it.
        refused: what the configuration's check says to another value, where nothing reads the field.
    """

    components: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    refused: str = ""


@dataclass
class LevelResult:
    """Decided statements of one level.

    Attributes:
        passed: (component, statement) -> detail shown on the page.
        skipped: (component, statement) -> why it could not be run.
        findings: what failed; each names its component and statement.
        device, versions: on what it ran.
        counts: (component, row) -> elements seen in the module, for the pages' third column; (component, row@place)
            where a place differs from the first one.
        fields: field of the configuration -> what it reaches, where the level traced it.
    """

    level: str
    passed: dict[tuple[str, str], str] = field(default_factory=dict)
    skipped: dict[tuple[str, str], str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    device: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    fields: dict[str, FieldReads] = field(default_factory=dict)

    def fail(self, finding: Finding) -> None:
        self.findings.append(finding)
        self.passed.pop((finding.component, finding.statement), None)

    def hold(self, component: str, statement: str, detail: str = "") -> None:
        """Record that a statement holds, unless a finding already speaks against it."""
        if not any(f.component == component and f.statement == statement for f in self.findings):
            self.passed[component, statement] = detail


def record_count(
    counts: MutableMapping[tuple[str, str], int | None], component: str, row: str, place: str, seen: int
) -> None:
    """Keep what the first instance of a row in a place came to: under the row, or under row and place where it differs.

    Places are told in order, each once, so that the first gives the row's own entry.
    """
    if counts.setdefault((component, row), seen) != seen:
        counts[component, f"{row}@{place}"] = seen


def recorded_count(counts: Mapping[tuple[str, str], int | None], component: str, row: str, place: str) -> int | None:
    """What was kept for a row in a place; None where nothing was."""
    here = (component, f"{row}@{place}")
    return counts[here] if here in counts else counts.get((component, row))
