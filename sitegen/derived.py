# What came of claims.yml: every step and line with its value, what it stands on, and what is wrong with it.
"""Derived claims, ledgers and figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sitegen.claimspec import Derivation, Entry, Headline, Ledger, PublishedFigure
from sitegen.diagnostics import Finding
from sitegen.quantities import Carrier, Quantity
from sitegen.rounding import Comparison


@dataclass(frozen=True)
class Step:
    """A derivation's step with its value; `carriers` are all statements that it stands on."""

    spec: Derivation
    quantity: Quantity
    carriers: tuple[Carrier, ...]

    @property
    def plain(self) -> bool:
        """Whether it only calculates with the steps before it."""
        return self.quantity.plain and not self.carriers and not self.spec.cites


@dataclass(frozen=True)
class DerivedClaim:
    """A headline claim: its steps, the comparison with what was published, and what is wrong with it."""

    spec: Headline
    steps: tuple[Step, ...] = ()
    comparison: Comparison | None = None
    formula: tuple[str, int] | None = None  # the published formula with its values, and what it gives
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class LedgerLine:
    """A line of a ledger: what it adds or states, and the sum so far."""

    spec: Entry
    quantity: Quantity
    carriers: tuple[Carrier, ...]
    sum: int

    @property
    def is_total(self) -> bool:
        return self.spec.total is not None


@dataclass(frozen=True)
class DerivedLedger:
    spec: Ledger
    lines: tuple[LedgerLine, ...] = ()
    findings: tuple[Finding, ...] = ()

    def line(self, id: str) -> LedgerLine | None:
        """The total of that name."""
        return next((line for line in self.lines if line.spec.id == id and line.is_total), None)


@dataclass(frozen=True)
class DerivedFigure:
    """A published figure with what it comes to: a total of a ledger, or a value of its own."""

    spec: PublishedFigure
    comparison: Comparison | None = None
    quantity: Quantity | None = None
    carriers: tuple[Carrier, ...] = ()
    ledger: DerivedLedger | None = None
    line: LedgerLine | None = None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Claims:
    """Everything that claims.yml says, derived; `quote` gives what its prose quotes by name."""

    claims: tuple[DerivedClaim, ...] = ()
    ledgers: tuple[DerivedLedger, ...] = ()
    figures: tuple[DerivedFigure, ...] = ()
    findings: tuple[Finding, ...] = field(default=(), repr=False)
    quote: Callable[[str, Mapping[str, int]], tuple[str, str]] = lambda text, steps: ("{" + text + "}", "")

    def __bool__(self) -> bool:
        return bool(self.claims or self.ledgers or self.figures)
