# What a component page shows, in the order in which it shows it: plain values, no engine behind them.
#
# Templates see only these.  Fields typed `Markup` hold HTML that the render stage made from escaped
# parts; every other text is escaped by the template.
"""Frozen views of a component page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from sitegen.render.pictures.bars import FigureView
from sitegen.render.pictures.dataflow import FlowView

State = Literal["executed", "verified", "cited", "stale", "not-run", "failed"]

#: The word shown for each state; shape and colour come from the style sheet.
WORDS: dict[str, str] = {
    "executed": "executed",
    "verified": "verified",
    "cited": "cited",
    "stale": "stale",
    "not-run": "not run",
    "failed": "failed",
}


@dataclass(frozen=True)
class Mark:
    """The state of one statement, with what a reader should know about it (level, error, reason)."""

    state: State
    note: str = ""
    short: bool = False  # the word is kept for screen readers and copying, only the shape is shown

    @property
    def word(self) -> str:
        return WORDS[self.state]


@dataclass(frozen=True)
class Link:
    text: str
    href: str
    title: str = ""


@dataclass(frozen=True)
class Crumb:
    """One step of the breadcrumb; `times` is its multiplicity within the step before."""

    text: str
    href: str = ""
    times: int = 1


@dataclass(frozen=True)
class CodePlace:
    """Lines of code: ours (with the state of its pin) or upstream's (cited)."""

    text: str  # `reference_impl/ops/streams.py:41-66`
    href: str
    mark: Mark
    title: str = ""
    anchor: str = ""


@dataclass(frozen=True)
class Run:
    """What a state rests on: one level's run."""

    level: str
    summary: str  # "24 passed"
    device: str
    versions: str
    date: str
    state: State
    reason: str = ""


@dataclass(frozen=True)
class Status:
    """The page's state in one line, and the runs behind it."""

    state: State
    headline: str  # "Verified on static, meta and cpu"
    executed: int
    total: int
    counts: tuple[tuple[State, int], ...]
    runs: tuple[Run, ...] = ()
    problems: tuple[Markup, ...] = ()

    @property
    def headmark(self) -> Mark:
        return Mark(self.state)


@dataclass(frozen=True)
class Sentence:
    """A sentence of purpose, why or explanation, with what carries it."""

    html: Markup
    mark: Mark
    carriers: tuple[Link, ...] = ()
    anchor: str = ""


@dataclass(frozen=True)
class FormulaView:
    id: str
    html: Markup
    text: Markup
    mark: Mark
    main: bool = False


@dataclass(frozen=True)
class SymbolView:
    """A row of the symbol table; `name` ties formula, axes and code together."""

    name: str
    html: Markup
    meaning: Markup
    value: str = ""
    code: str = ""
    source: str = ""


@dataclass(frozen=True)
class AxisView:
    """One axis: its size as a number where the configuration fixes it, else its letter; and its name."""

    size: str
    name: str
    symbol: str = ""


@dataclass(frozen=True)
class PortView:
    name: str
    html: Markup
    axes: tuple[AxisView, ...]
    dtype: str
    text: Markup
    mark: Mark
    dtype_mark: Mark
    other: Link | None = None
    anchor: str = ""
    dtype_anchor: str = ""


@dataclass(frozen=True)
class RowView:
    """An accounting row: whose parameters, how they are calculated, how many."""

    id: str
    component: Link | None
    text: Markup
    tensors: tuple[str, ...]
    calculation: str
    expression: str
    count: int
    dtype: str = ""


@dataclass(frozen=True)
class Side:
    """One side of a count: what it gives (None where it was not run) and its state."""

    value: int | None
    mark: Mark


@dataclass(frozen=True)
class CountView:
    """A count from three sides: expression, module, published table."""

    text: str
    href: str
    sides: tuple[Side, Side, Side]
    anchor: str = ""


@dataclass(frozen=True)
class PlaceRow:
    """A place in the totals: how many instances it has, and what they add up to."""

    place: Link
    instances: int
    total: int
    here: bool = False
    mark: Mark | None = None
    anchor: str = ""
    group: str = ""  # the outermost place, for subtotals


@dataclass(frozen=True)
class Factor:
    """One multiplication on the way to the total: `× 5 reusing layers` gives 85."""

    label: str
    times: int
    total: int


@dataclass(frozen=True)
class AccountView:
    rows: tuple[RowView, ...]
    per_instance: int
    addends: tuple[int, ...]
    factors: tuple[Factor, ...]
    instances: int
    total: int
    across: str  # "Across 5 independent layers"
    scope: Markup
    note: str = ""


@dataclass(frozen=True)
class ViewRow:
    """A tensor that the page shows although other components own its elements."""

    tensor: str
    axes: tuple[AxisView, ...]
    text: Markup
    owners: tuple[tuple[str, Link], ...]


@dataclass(frozen=True)
class CheckView:
    id: str
    kind: str
    html: Markup
    mark: Mark
    level: str = ""
    expected: str = ""
    actual: str = ""
    detail: str = ""
    anchor: str = ""
    points: tuple[tuple[str, str, str], ...] = ()  # of a sweep: where, what is stated, what was seen


@dataclass(frozen=True)
class CaseView:
    """A worked case: a call, what it gives, and what a wrong version would do."""

    anchor: str
    text: Markup
    call: str
    results: tuple[tuple[str, str], ...]
    mark: Mark
    wrong: Markup | None = None
    detail: str = ""


@dataclass(frozen=True)
class GotchaNote:
    """What a port gets wrong, on the page of a component concerned."""

    title: Link
    sentence: Sentence


@dataclass(frozen=True)
class ExcerptView:
    anchor: str
    path: str
    lines: str
    symbol: str
    html: Markup
    mark: Mark
    folded: bool
    num_lines: int
    href: str = ""
    text: str = ""
    acknowledged: str = ""
    problem: str = ""


@dataclass(frozen=True)
class EvidenceView:
    anchor: str
    id: str
    kind: str
    claim: str
    title: str
    place: str
    repository: str = ""
    revision: str = ""
    path: str = ""
    href: str = ""


@dataclass(frozen=True)
class ComponentView:
    """Everything on a component's page."""

    id: str
    model: str
    title: str
    kind: str
    times: int
    crumbs: tuple[Crumb, ...]
    expression: str
    ours: CodePlace | None
    upstream: tuple[CodePlace, ...]
    status: Status
    purpose: Sentence
    why: tuple[Sentence, ...]
    why_section: str
    why_given: bool
    formulas: tuple[FormulaView, ...]  # every step, in order; those with `main` are shown first
    symbols: tuple[SymbolView, ...]
    inputs: tuple[PortView, ...]
    outputs: tuple[PortView, ...]
    account: AccountView | None
    views: tuple[ViewRow, ...]
    numerics: tuple[Sentence, ...]
    counts: tuple[CountView, ...]
    checks: tuple[CheckView, ...]
    cases: tuple[CaseView, ...]
    explanation: tuple[Sentence, ...]
    gotchas: tuple[GotchaNote, ...]
    excerpts: tuple[ExcerptView, ...]
    evidence: tuple[EvidenceView, ...]
    parts: tuple[Link, ...]
    used_by: tuple[Link, ...]
    uses: tuple[Link, ...]
    places: tuple[PlaceRow, ...]
    previous: Link | None
    next: Link | None
    parent: Link | None
    canonical: Link | None  # set on a place page
    links: tuple[Link, ...] = ()
    cite: str = ""
    place_title: str = ""
    tensors: tuple[str, ...] = ()
    flow: FlowView | None = None
    figures: tuple[tuple[FigureView, Mark], ...] = ()

    @property
    def leaf(self) -> bool:
        """Whether the component has no parts."""
        return not self.parts


@dataclass(frozen=True)
class TreeRow:
    """A component in a tree: how deep it stands, how often it occurs, what it owns, how it stands."""

    depth: int
    link: Link
    kind: str
    instances: int
    total: int
    mark: Mark
    executed: int
    statements: int


@dataclass(frozen=True)
class PolicyRow:
    """What is counted together, and how many that makes."""

    title: str
    name: str
    count: int
    scope: Markup


@dataclass(frozen=True)
class PlaceBranch:
    """A place of the schedule with the components that stand in it directly."""

    depth: int
    link: Link
    in_all: int  # how often it occurs, where its title does not say so
    layers: str
    components: tuple[Link, ...]


@dataclass(frozen=True)
class Proof:
    """What one model's pages prove, in figures from the report."""

    model: Link
    purpose: Markup
    components: int
    statements: int
    executed: int
    counts: tuple[tuple[State, int], ...]
    parameters: int
    runs: tuple[Run, ...]
    status: Status


@dataclass(frozen=True)
class ModelView:
    """A model's entry page."""

    title: str
    purpose: Markup
    proof: Proof
    places: tuple[PlaceBranch, ...]
    policies: tuple[PolicyRow, ...]
    all_components: Link
    all_places: Link


@dataclass(frozen=True)
class PlaceView:
    """The page of a place: what stands in it."""

    title: str
    crumbs: tuple[Crumb, ...]
    in_all: int
    layers: str
    text: Markup
    module: str
    tree: tuple[TreeRow, ...]
    inner: tuple[PlaceBranch, ...]
    previous: Link | None
    next: Link | None
    parent: Link | None
