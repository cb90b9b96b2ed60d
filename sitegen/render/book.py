# What the render stage is told: a resolved model, and for each of its statements how it stands.
#
# The stages before speak of rows, runs, pins and findings in their own nouns; the book holds just what
# pages show of them, so that rendering needs neither a run nor the disk.
"""The input of the render stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sitegen.derived import Claims
from sitegen.probe.result import FieldReads
from sitegen.render.view import Run, State
from sitegen.resolver import Model
from sitegen.selftest.record import SelftestRecord
from sitegen.tensorindex import TensorPattern


@dataclass(frozen=True)
class Verdict:
    """How one statement stands.

    `id` is unique within its component (`row:offsets`, `step:logits`, `property:column-sums`); `level` names
    the level that decided; `detail` says what a reader should know (tolerance, regime, or why it was not run).
    """

    id: str
    state: State
    level: str = ""
    expected: str = ""
    actual: str = ""
    detail: str = ""

    @property
    def kind(self) -> str:
        return self.id.partition(":")[0]

    @property
    def name(self) -> str:
        return self.id.partition(":")[2]


@dataclass(frozen=True)
class RowCount:
    """One accounting row: its count, how it is calculated, and what the two other sides gave."""

    row: str
    calculation: str
    count: int
    module: int | None = None
    table: int | None = None


@dataclass(frozen=True)
class PartCount:
    """A part of a component: what one instance of it and of its parts owns, from three sides."""

    component: str
    calculation: str
    count: int
    module: int | None = None
    table: int | None = None


@dataclass(frozen=True)
class Account:
    """What a component owns in a place, or in the whole model: one instance in full, and the totals.

    `own` counts the component's rows over all instances; `per_instance` and `total` count its parts too.
    `note` says so where instances differ.
    """

    rows: tuple[RowCount, ...]
    own: int
    per_instance: int
    instances: int
    total: int
    parts: tuple[PartCount, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class CodeState:
    """A pinned piece of code as it stands today: where, the text of the whole file, and what happened to it."""

    path: str
    text: str
    lines: tuple[int, int] | None
    kind: str  # unchanged, moved, changed, … as the pins name it
    symbol: str = ""
    message: str = ""
    acknowledged: str = ""


@dataclass(frozen=True)
class Book:
    """A model with everything that its pages show."""

    model: Model
    verdicts: Mapping[str, tuple[Verdict, ...]]
    accounts: Mapping[tuple[str, str], Account]  # (component, place); the place "" is the whole model
    codes: Mapping[tuple[str, str], CodeState]
    runs: tuple[Run, ...]
    policies: Mapping[str, int]
    quote: Callable[[str, str], tuple[str, str]]  # component, expression -> value as shown, its calculation
    place_verdicts: Mapping[tuple[str, str], tuple[Verdict, ...]] = field(default_factory=dict)
    policies_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # component -> policies that count it
    fields: Mapping[str, FieldReads] = field(default_factory=dict)  # of the configuration, where a run traced them
    tensors: tuple[TensorPattern, ...] = ()
    claims: Claims = field(default_factory=Claims)
    date: str = ""
    revision: str = ""  # of this repository, where known
    selftest: SelftestRecord | None = None  # the last full one, where it is recorded

    def account(self, component: str, place: str | None = None) -> Account | None:
        """What a component owns in a place, or in the whole model."""
        return self.accounts.get((component, place or ""))

    def of(self, component: str, place: str | None = None) -> tuple[Verdict, ...]:
        """The verdicts of a component: everywhere, or with those that differ in a place put in."""
        general = self.verdicts.get(component, ())
        if place is None:
            return general
        local = {verdict.id: verdict for verdict in self.place_verdicts.get((component, place), ())}
        return tuple(local.pop(v.id, v) for v in general) + tuple(local.values())
