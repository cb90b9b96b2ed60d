# What others publish about a model, derived here: every step evaluated, every sum added up, every rounding tried.
"""Derive headline claims, ledgers and published figures, and find what does not come out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from sitegen import expr
from sitegen.accounting import Accounts
from sitegen.claimspec import Headline, Ledger, Published, PublishedFigure
from sitegen.derived import Claims, DerivedClaim, DerivedFigure, DerivedLedger, LedgerLine, Step
from sitegen.diagnostics import Finding, Location, SpecInvalid, nearest
from sitegen.quantities import Carrier, Quantities, Quantity
from sitegen.render.text import Link, Quote, parse_prose, walk
from sitegen.rounding import WORDS, Comparison
from sitegen.statements import component_statements

#: How often a published formula is tried under other values of the symbols.
TRIALS = 4


def derive(accounts: Accounts) -> Claims:
    """Evaluate claims.yml; faults are findings, and what cannot be evaluated is left out of the steps."""
    spec = accounts.model.sources.claims
    found: list[Finding] = []
    deriver = _Deriver(accounts)
    claims = tuple(deriver.claim(number, claim) for number, claim in enumerate(spec.claims))
    ledgers = tuple(deriver.ledger(number, ledger) for number, ledger in enumerate(spec.ledgers))
    figures = tuple(deriver.figure(number, figure, ledgers) for number, figure in enumerate(spec.figures))
    for name, items in (("claims", spec.claims), ("ledgers", spec.ledgers), ("figures", spec.figures)):
        found += deriver.twins(name, [item.id for item in items])
    for item in (*claims, *ledgers, *figures):
        found += item.findings
    return Claims(claims, ledgers, figures, tuple(dict.fromkeys(found)), deriver.quote)


class _Deriver:
    def __init__(self, accounts: Accounts) -> None:
        self.model, self.numbers = accounts.model, Quantities(accounts)
        self.statements: dict[str, list[str]] = {}

    def at(self, *path: str | int) -> Location:
        document = self.model.sources.claims_document
        return document.locate(path) if document else Location(f"spec/{self.model.name}/claims.yml")

    def quote(self, text: str, steps: Mapping[str, int]) -> tuple[str, str]:
        """What prose quotes: a step, a symbol, a reference, or an expression over them; raises `SpecInvalid`."""
        where = self.at()
        if ":" in text or "[" in text:
            return f"{self.numbers.reference(text, where)[0]:,}", text
        found = self.numbers.quantity(text, steps, self.numbers.symbols(None, where), where)
        return f"{found.value:,}", f"{text} = {found.shown}"

    def twins(self, name: str, ids: list[str]) -> Iterator[Finding]:
        for number, id in enumerate(ids):
            if id in ids[:number]:
                yield Finding("schema-invalid", f"the id {id!r} is used twice", self.at(name, number, "id"))

    # --- claims ----------------------------------------------------------------------------------

    def claim(self, number: int, claim: Headline) -> DerivedClaim:
        at = ("claims", number)
        findings = [*self.cites(claim.published.cites, *at, "published", "cites")]
        steps: list[Step] = []
        values: dict[str, int] = {}
        for k, step in enumerate(claim.steps):
            where = (*at, "steps", k)
            findings += self.cites(step.cites, *where, "cites")
            try:
                known = self.symbols(step.id, step.of, values, *where)
                own = self.numbers.quantity(step.value, values, known, self.at(*where, "value"))
            except SpecInvalid as error:
                findings += error.findings
                continue
            carriers, wrong = self.carriers(own, step.by, *where, "by")
            findings += wrong
            values[step.id] = own.value
            steps.append(Step(step, own, carriers))
            findings += self.prose(step.text, values, *where, "text")
        findings += self.prose(claim.text, values, *at, "text")
        if claim.underived is not None:
            findings += self.prose(claim.underived, {}, *at, "underived")
        if not claim.steps or len(steps) < len(claim.steps):
            return DerivedClaim(claim, tuple(steps), findings=self.named(findings, claim.id))
        findings += self.equal(claim, steps[-1].quantity.value, *at, "equals")
        value = Fraction(steps[-1].quantity.value)
        if claim.over is not None:
            if values[claim.over] == 0:
                findings.append(Finding("expression-invalid", f"the step {claim.over!r} is zero", self.at(*at, "over")))
                return DerivedClaim(claim, tuple(steps), findings=self.named(findings, claim.id))
            value /= values[claim.over]
        formula = None
        comparison = None
        try:
            if claim.published.formula is not None:
                formula = self.formula(claim, value, *at, "published", "formula")
                findings += self.trials(claim, *at)
            else:
                comparison = self.compare(claim.published, value, *at, "published")
        except SpecInvalid as error:
            findings += error.findings
        if comparison is not None:
            findings += self.disagreement(claim.published, comparison, claim.title.strip(), *at, "published", "number")
        return DerivedClaim(claim, tuple(steps), comparison, formula, self.named(findings, claim.id))

    def equal(self, claim: Headline, value: int, *at: str | int) -> list[Finding]:
        """What is wrong when the last step is not what the claim says once more."""
        if claim.equals is None:
            return []
        where = self.at(*at)
        try:
            stated = self.numbers.quantity(claim.equals, {}, self.numbers.symbols(None, where), where).value
        except SpecInvalid as error:
            return error.findings
        if stated == value:
            return []
        message = f"the last step is not what the claim says it equals: {claim.title.strip()}"
        expected, actual = f"{claim.equals} = {stated:,}", f"{claim.steps[-1].id} = {value:,}"
        return [Finding("count-mismatch", message, where, expected, actual, "a step is missing or counted twice")]

    def symbols(self, id: str, of: str | None, values: Mapping[str, int], *at: str | int) -> dict[str, int]:
        known = self.numbers.symbols(of, self.at(*at, "of"))
        plain = known if of is None else self.numbers.symbols(None, self.at(*at))
        if id in plain or id in values:
            kind = "a step before it" if id in values else "a symbol or a config field"
            message = f"the step {id!r} has the name of {kind}"
            raise SpecInvalid([Finding("schema-invalid", message, self.at(*at, "id"))])
        return known

    def compare(self, published: Published, value: Fraction, *at: str | int) -> Comparison:
        known = self.numbers.symbols(None, self.at(*at))
        size = expr.evaluate(published.size, known, self.at(*at, "size"))
        if size <= 0:
            message = f"the unit is worth {size:,}; it must be positive"
            raise SpecInvalid([Finding("expression-invalid", message, self.at(*at, "size"))])
        assert published.number is not None
        return Comparison(value / size, published.number, published.rounding)

    def disagreement(
        self, published: Published, comparison: Comparison, what: str, *at: str | int
    ) -> Iterator[Finding]:
        if not comparison.agrees:
            unit = f" {published.unit}" if published.unit else ""
            yield Finding(
                "count-mismatch",
                f"the derivation does not come to what was published: {what}",
                self.at(*at),
                expected=f"{comparison.number}{unit} published ({WORDS[comparison.rule]})",
                actual=f"{comparison.shown}{unit}, which gives {comparison.result}",
                hint="correct the derivation or how the published figure was rounded, or say that it is unexplained",
            )

    def formula(self, claim: Headline, value: Fraction, *at: str | int) -> tuple[str, int]:
        """The published formula under the released symbols; raises `SpecInvalid` where it gives another value."""
        known = self.numbers.symbols(None, self.at(*at))
        assert claim.published.formula is not None
        stated = expr.evaluate(claim.published.formula, known, self.at(*at))
        if value != stated:
            shown = expr.parse(claim.published.formula).shown(known)
            raise SpecInvalid(
                [
                    Finding(
                        "count-mismatch",
                        f"the derivation does not come to the published formula: {claim.title.strip()}",
                        self.at(*at),
                        expected=f"{claim.published.formula} = {shown} = {stated:,} published",
                        actual=f"{claim.steps[-1].value} = {value.numerator:,}",
                    )
                ]
            )
        return expr.parse(claim.published.formula).shown(known), stated

    def trials(self, claim: Headline, *at: str | int) -> Iterator[Finding]:
        """The formula and the derivation under other values of the symbols: equal once may be chance."""
        where = self.at(*at, "published", "formula")
        known = self.numbers.symbols(None, where)
        assert claim.published.formula is not None
        read = expr.parse(claim.published.formula).names.union(*(self.numbers.names(x.value) for x in claim.steps))
        letters = sorted(read & known.keys())
        for trial in range(1, TRIALS + 1):
            changed = dict(known)
            for k, letter in enumerate(letters):
                changed[letter] = known[letter] + trial * (2 * k + 1)
            values: dict[str, int] = {}
            for number, step in enumerate(claim.steps):
                inside = self.at(*at, "steps", number, "value")
                values[step.id] = self.numbers.quantity(step.value, values, changed, inside).value
            stated = expr.evaluate(claim.published.formula, changed, where)
            if values[claim.steps[-1].id] != stated:
                yield Finding(
                    "count-mismatch",
                    f"the published formula is another one: {claim.title.strip()}",
                    where,
                    expected=f"{claim.published.formula} = {stated:,} under other values of the symbols",
                    actual=f"{values[claim.steps[-1].id]:,} from the derivation, at "
                    + ", ".join(f"{letter} = {changed[letter]:,}" for letter in letters),
                )
                return

    # --- ledgers and figures ---------------------------------------------------------------------

    def ledger(self, number: int, ledger: Ledger) -> DerivedLedger:
        at = ("ledgers", number)
        findings: list[Finding] = []
        lines: list[LedgerLine] = []
        values: dict[str, int] = {}
        total = 0
        for k, entry in enumerate(ledger.lines):
            where = (*at, "lines", k)
            key, text = ("add", entry.add) if entry.add is not None else ("total", entry.total)
            assert text is not None
            try:
                known = self.symbols(entry.id, entry.of, values, *where)
                own = self.numbers.quantity(text, values, known, self.at(*where, key))
            except SpecInvalid as error:
                findings += error.findings
                continue
            carriers, wrong = self.carriers(own, entry.by, *where, "by")
            findings += wrong
            if entry.total is not None and own.value != total and len(lines) == k:
                findings.append(
                    Finding(
                        "count-mismatch",
                        f"the lines above do not add up to {entry.id!r}",
                        self.at(*where, "total"),
                        expected=f"{text} = {own.value:,}",
                        actual=f"{total:,} from the lines, {abs(own.value - total):,} "
                        + ("too few" if own.value > total else "too many"),
                        hint="a part is missing, counted twice, or outside the policy of the total",
                    )
                )
            if entry.add is not None:
                total += own.value
            values[entry.id] = own.value
            lines.append(LedgerLine(entry, own, carriers, total))
            findings += self.prose(entry.text, values, *where, "text")
        findings += self.prose(ledger.text, values, *at, "text")
        return DerivedLedger(ledger, tuple(lines), self.named(findings, ledger.id))

    def figure(self, number: int, figure: PublishedFigure, ledgers: tuple[DerivedLedger, ...]) -> DerivedFigure:
        at = ("figures", number)
        findings = [*self.cites(figure.published.cites, *at, "published", "cites")]
        findings += self.prose(figure.text, {}, *at, "text")
        if figure.unexplained is not None:
            findings += self.prose(figure.unexplained, {}, *at, "unexplained")
            try:
                findings += self.explained(figure, ledgers, *at)
            except SpecInvalid as error:
                findings += error.findings
            return DerivedFigure(figure, findings=self.named(findings, figure.id))
        ledger, line, own, carriers = None, None, None, ()
        try:
            if figure.explained is not None:
                ledger, line = self.total(figure.explained, ledgers, *at, "explained")
                if line is not None:
                    own, carriers = line.quantity, line.carriers
            elif figure.value is not None:
                where = self.at(*at, "value")
                own = self.numbers.quantity(figure.value, {}, self.numbers.symbols(None, where), where)
                carriers = own.carriers
            comparison = self.compare(figure.published, Fraction(own.value), *at, "published") if own else None
        except SpecInvalid as error:
            return DerivedFigure(figure, findings=self.named([*findings, *error.findings], figure.id))
        if comparison is not None:
            what = figure.published.text.strip()
            findings += self.disagreement(figure.published, comparison, what, *at, "published", "number")
        return DerivedFigure(figure, comparison, own, carriers, ledger, line, self.named(findings, figure.id))

    def explained(
        self, figure: PublishedFigure, ledgers: tuple[DerivedLedger, ...], *at: str | int
    ) -> Iterator[Finding]:
        """A figure that is called unexplained although a total comes to it."""
        for ledger in ledgers:
            for line in ledger.lines:
                value = Fraction(line.quantity.value)
                if line.is_total and self.compare(figure.published, value, *at, "published").agrees:
                    yield Finding(
                        "count-mismatch",
                        f"a total comes to a figure that is called unexplained: {figure.published.text.strip()}",
                        self.at(*at, "unexplained"),
                        expected="no total that rounds to it",
                        actual=f"{ledger.spec.id}#{line.spec.id} = {line.quantity.value:,}",
                        hint=f"write explained: {ledger.spec.id}#{line.spec.id}, or why it is another figure",
                    )
                    return

    def total(
        self, name: str, ledgers: tuple[DerivedLedger, ...], *at: str | int
    ) -> tuple[DerivedLedger | None, LedgerLine | None]:
        """The total `ledger#line`; none where it could not be evaluated, `SpecInvalid` where there is no such total."""
        known = {f"{x.spec.id}#{e.id}": x for x in ledgers for e in x.spec.lines if e.total is not None}
        if name not in known:
            message = f"no total {name!r} in a ledger"
            raise SpecInvalid([Finding("unknown-reference", message, self.at(*at), hint=nearest(name, known))])
        return known[name], known[name].line(name.partition("#")[2])

    # --- what everything has ---------------------------------------------------------------------

    def carriers(self, own: Quantity, by: list[str], *at: str | int) -> tuple[tuple[Carrier, ...], list[Finding]]:
        found: dict[Carrier, None] = dict.fromkeys(own.carriers)
        findings = []
        for number, name in enumerate(by):
            component, _, statement = name.partition("#")
            known = self.known(component)
            if statement not in known:
                where = self.at(*at, number)
                if component not in self.model.components:
                    hint = nearest(component, self.model.components)
                    message = f"no component {component!r} carries this (write component#statement)"
                else:
                    hint, message = nearest(statement, known), f"no statement {statement!r} of {component} carries this"
                findings.append(Finding("unknown-reference", message, where, hint=hint))
            else:
                found[component, statement] = None
        return tuple(found), findings

    def known(self, component: str) -> list[str]:
        if component not in self.model.components:
            return []
        if component not in self.statements:
            self.statements[component] = [s.id for s in component_statements(self.model, component)]
        return self.statements[component]

    def cites(self, ids: list[str], *at: str | int) -> Iterator[Finding]:
        for number, id in enumerate(ids):
            if id not in self.model.sources.evidence:
                hint = nearest(id, self.model.sources.evidence)
                yield Finding("unknown-reference", f"no evidence entry {id!r}", self.at(*at, number), hint=hint)

    def prose(self, text: str, steps: Mapping[str, int], *at: str | int) -> Iterator[Finding]:
        for span in walk(parse_prose(text)):
            if isinstance(span, Quote):
                try:
                    self.quote(span.expr, steps)
                except SpecInvalid as error:
                    for finding in error.findings:
                        yield Finding(finding.code, finding.message, self.at(*at), hint=finding.hint)
            elif isinstance(span, Link) and span.kind != "https":
                known = {"component": self.model.components, "source": self.model.sources.evidence}.get(span.kind, {})
                target = span.target.partition("#")[0]
                if target not in known:
                    message = f"no {span.kind} {target!r} to link to"
                    yield Finding("unknown-reference", message, self.at(*at), hint=nearest(target, known))

    @staticmethod
    def named(findings: list[Finding], id: str) -> tuple[Finding, ...]:
        return tuple(finding.within("", f"claim:{id}") for finding in findings)
