# Claims on a page: each number with what it stands on, how that stands, and how it was rounded.
"""Views of headline claims, ledgers and published figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from sitegen.derived import Claims, DerivedClaim, DerivedFigure, DerivedLedger, LedgerLine, Step
from sitegen.diagnostics import Finding
from sitegen.quantities import Carrier, Quantity
from sitegen.render import places, status
from sitegen.render.context import Workshop
from sitegen.render.page import slug
from sitegen.render.prose import PageProse
from sitegen.render.sources import Sources
from sitegen.render.text import Anchor
from sitegen.render.view import EvidenceView, Link, Mark, State
from sitegen.rounding import WORDS, Comparison

#: Statements that are linked one by one; more are grouped by component.
FEW = 4


@dataclass(frozen=True)
class CarriedBy:
    """What a number stands on: statements, or where they are many their components and how many there are."""

    links: tuple[Link, ...] = ()
    summary: str = ""
    cites: tuple[Link, ...] = ()


@dataclass(frozen=True)
class StepView:
    """A step of a derivation or a line of a ledger; `mark` is absent where it only calculates with others."""

    anchor: str
    id: str
    text: Markup
    expression: str
    calculation: str
    value: int
    unit: str
    mark: Mark | None
    carried: CarriedBy
    is_total: bool = False


@dataclass(frozen=True)
class Outcome:
    """A derived value beside the published one, in its unit."""

    exact: str
    rule: str
    result: str
    agrees: bool
    otherwise: str = ""


@dataclass(frozen=True)
class ClaimView:
    anchor: str
    id: str
    title: str
    text: Markup
    published: str
    unit: str
    cites: tuple[Link, ...]
    mark: Mark
    steps: tuple[StepView, ...]
    outcome: Outcome | None
    underived: Markup
    equals: str = ""
    divided: str = ""  # the last step over another one, where the claim is a ratio
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class LedgerView:
    anchor: str
    id: str
    title: str
    text: Markup
    lines: tuple[StepView, ...]
    mark: Mark
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class FigureView:
    anchor: str
    id: str
    published: str
    unit: str
    text: Markup
    cites: tuple[Link, ...]
    mark: Mark
    value: int | None
    outcome: Outcome | None
    total: Link | None
    calculation: str
    unexplained: Markup


class ClaimViews:
    """Makes the views of one page; `path` is the page that they stand on."""

    def __init__(self, workshop: Workshop, path: str) -> None:
        self.shop, self.path, self.model = workshop, path, workshop.model
        self.derived: Claims = workshop.book.claims
        self.verdicts = {id: {v.id: v for v in workshop.book.of(id)} for id in self.model.components}
        self.cited: dict[str, None] = {}

    # --- the three nouns ---------------------------------------------------------------------------

    def claim(self, derived: DerivedClaim) -> ClaimView:
        spec, values = derived.spec, {s.spec.id: s.quantity.value for s in derived.steps}
        prose = self.prose(values)
        cites = self.cites(spec.published.cites)
        steps = tuple(self.step(spec.id, step, values) for step in derived.steps)
        divided = ""
        if spec.over is not None and derived.comparison is not None:
            divided = f"{derived.steps[-1].quantity.value:,} / {values[spec.over]:,}"
        return ClaimView(
            f"claim-{slug(spec.id)}",
            spec.id,
            spec.title.strip(),
            prose.html(spec.text),
            spec.published.text.strip(),
            spec.published.unit.strip(),
            cites,
            self.claim_mark(derived),
            steps,
            _outcome(derived),
            prose.html(spec.underived) if spec.underived else Markup(""),
            str(spec.equals or ""),
            divided,
            tuple(_problem(derived.findings)),
        )

    def step(self, claim: str, step: Step, values: Mapping[str, int]) -> StepView:
        spec = step.spec
        return StepView(
            f"step-{slug(claim)}-{slug(spec.id)}",
            spec.id,
            self.prose(values).html(spec.text),
            str(spec.value),
            _calculation(step.quantity.shown, step.quantity.value),
            step.quantity.value,
            spec.unit.strip(),
            None if step.plain else self.mark(step.quantity, step.carriers, spec.cites),
            CarriedBy(*self.statements(step.carriers), self.cites(spec.cites)),
        )

    def ledger(self, derived: DerivedLedger) -> LedgerView:
        spec = derived.spec
        values = {line.spec.id: line.quantity.value for line in derived.lines}
        lines = tuple(self.line(spec.id, line, values) for line in derived.lines)
        marks = [line.mark for line in lines if line.mark is not None]
        state: State = "failed" if derived.findings or len(lines) < len(spec.lines) else _weakest(marks)
        totals = sum(line.is_total for line in lines)
        note = f"{totals} totals equal the sums above them" if totals > 1 else "the total equals the sum above it"
        return LedgerView(
            ledger_anchor(spec.id),
            spec.id,
            spec.title.strip(),
            self.prose(values).html(spec.text),
            lines,
            Mark(state, "the lines do not come out" if state == "failed" else note),
            tuple(_problem(derived.findings)),
        )

    def line(self, ledger: str, line: LedgerLine, values: Mapping[str, int]) -> StepView:
        spec, quantity = line.spec, line.quantity
        plain = quantity.plain and not line.carriers
        text = spec.add if spec.add is not None else spec.total
        mark = None if plain else self.mark(quantity, line.carriers, ())
        if line.is_total and quantity.value != line.sum:
            mark = Mark("failed", f"the lines above add up to {line.sum:,}")
        return StepView(
            line_anchor(ledger, spec.id),
            spec.id,
            self.prose(values).html(spec.text),
            str(text),
            _calculation(quantity.shown, quantity.value),
            quantity.value,
            "",
            mark,
            CarriedBy(*self.statements(line.carriers)),
            line.is_total,
        )

    def figure(self, derived: DerivedFigure) -> FigureView:
        spec, prose = derived.spec, self.prose({})
        own = derived.quantity
        total = None
        if derived.ledger is not None and derived.line is not None:
            shown = prose.plain(derived.line.spec.text)
            total = Link(shown, f"#{line_anchor(derived.ledger.spec.id, derived.line.spec.id)}")
        if derived.findings:
            mark = Mark("failed", "; ".join(_problem(derived.findings)))
        elif own is None:
            mark = Mark("cited", "nothing here comes to it")
        else:
            mark = self.mark(own, derived.carriers, ())
        return FigureView(
            f"figure-{slug(spec.id)}",
            spec.id,
            spec.published.text.strip(),
            spec.published.unit.strip(),
            prose.html(spec.text),
            self.cites(spec.published.cites),
            mark,
            own.value if own else None,
            _compared(derived.comparison) if derived.comparison else None,
            total,
            own.shown if own and total is None else "",
            prose.html(spec.unexplained) if spec.unexplained else Markup(""),
        )

    # --- what they stand on ------------------------------------------------------------------------

    def claim_mark(self, derived: DerivedClaim) -> Mark:
        if derived.findings:
            return Mark("failed", "the derivation does not come out")
        if not derived.steps:
            return Mark("cited", "not derived")
        marks = [
            m
            for step in derived.steps
            if not step.plain and (m := self.mark(step.quantity, step.carriers, step.spec.cites))
        ]
        return Mark(_weakest(marks), "the weakest of its steps")

    def mark(self, quantity: Quantity, carriers: Sequence[Carrier], cites: Sequence[str]) -> Mark:
        """How a number stands: as the statements that it stands on; by itself it is a calculation, or cited."""
        if not carriers:
            if cites:
                return Mark("cited", "a source says so")
            return Mark("verified", "static, calculated from the configuration or the published table")
        states = [status.mark(self.verdicts.get(c, {}).get(s)).state for c, s in carriers]
        order: tuple[State, ...] = ("failed", "stale", "not-run", "executed", "verified", "cited")
        state = next(state for state in order if state in states)
        if quantity.table and state == "executed":
            return Mark("verified", "static, the published table gives some of it")
        many = f"{len(carriers):,} statements" if len(carriers) > 1 else "1 statement"
        return Mark(state, f"carried by {many}, {states.count(state):,} {state.replace('-', ' ')}")

    def statements(self, carriers: Sequence[Carrier]) -> tuple[tuple[Link, ...], str]:
        """Links to a few statements, or to the components of many."""
        if len(carriers) <= FEW:
            links = []
            for component, statement in carriers:
                to = places.component_link(
                    self.model, self.path, self.shop.settings.addresses, component, None, status.anchor(statement)
                )
                kind, _, name = statement.partition(":")
                words = name.replace("-", " ").replace("_", " ")
                if kind == "place" and name in self.model.places:
                    words = places.chain_title(self.model.places[name])
                links.append(Link(f"{to.text}: {words or kind}", to.href, f"{component}#{statement}"))
            return tuple(links), ""
        owners = dict.fromkeys(component for component, _ in carriers)
        shown = [places.component_link(self.model, self.path, self.shop.settings.addresses, id) for id in owners]
        return tuple(shown), f"{len(carriers):,} statements of {len(owners):,} components"

    def cites(self, ids: Sequence[str]) -> tuple[Link, ...]:
        found = []
        for id in ids:
            entry = self.model.sources.evidence.get(id)
            if entry is None:
                continue  # a finding of the static level
            self.cited[id] = None
            source = self.model.sources.sources.sources[entry.source]
            section = f", section {entry.section}" if entry.section else ""
            found.append(Link(source.title.strip() + section, f"#ev-{slug(id)}", entry.claim.strip()))
        return tuple(found)

    def evidence(self) -> tuple[EvidenceView, ...]:
        """The sources that the views made so far cite."""
        return Sources(self.model).evidence_views(tuple(self.cited))

    def prose(self, values: Mapping[str, int]) -> PageProse:
        return PageProse(
            lambda expr: self.derived.quote(expr, values),
            {"component": self._component, "source": lambda target: Anchor(f"#ev-{slug(target)}")},
        )

    def _component(self, target: str) -> Anchor | None:
        id, _, anchor = target.partition("#")
        if id not in self.model.components:
            return None
        to = places.component_link(self.model, self.path, self.shop.settings.addresses, id, None, anchor)
        return Anchor(to.href, to.title)


def ledger_anchor(id: str) -> str:
    return f"ledger-{slug(id)}"


def line_anchor(ledger: str, line: str) -> str:
    return f"line-{slug(ledger)}-{slug(line)}"


def _weakest(marks: Sequence[Mark]) -> State:
    order: tuple[State, ...] = ("failed", "stale", "not-run", "cited", "verified", "executed")
    found = {mark.state for mark in marks}
    return next((state for state in order if state in found), "verified")


def _calculation(shown: str, value: int) -> str:
    # A calculation that is just its own result says nothing beside it.
    return "" if shown.replace("−", "-") == f"{value:,}" else shown.replace("+ −", "− ")


def _outcome(derived: DerivedClaim) -> Outcome | None:
    if derived.formula is not None:
        shown, value = derived.formula
        agrees = not derived.findings
        return Outcome(f"{value:,}", f"{derived.spec.published.formula} = {shown}", f"{value:,}", agrees)
    return _compared(derived.comparison) if derived.comparison is not None else None


def _compared(comparison: Comparison) -> Outcome:
    return Outcome(
        comparison.shown,
        WORDS[comparison.rule],
        comparison.result,
        comparison.agrees,
        comparison.otherwise,
    )


def _problem(findings: Sequence[Finding]) -> list[str]:
    return [
        finding.message + (f": expected {finding.expected}; actual {finding.actual}" if finding.expected else "")
        for finding in findings
    ]
