# The nouns of claims.yml, as authors write them: what others published about a model, and how it is derived here.
"""Headline claims, ledgers that add up, and published figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from sitegen.schema import Count, Id, Line, Name, Strict, Text

Number = Annotated[str, StringConstraints(pattern=r"^(0|[1-9][0-9]{0,29})(\.[0-9]{1,12})?$")]
#: An expression with references in braces, `{policy:all} - {row:head:matrix}`; the form is checked where it is read.
Quoted = Annotated[Count, Field(description="an exact integer expression over symbols, steps and {references}")]


class Published(Strict):
    """What others published: the words, and the number or formula in them with its unit and rounding.

    `number` is the number as it is written (`552`, `15.5`): its last digit says how far it was rounded.  `unit` is
    worth `size` of what the derivation counts.  A `formula` stands for a published formula: the derivation must give
    the same value under other values of the symbols too.
    """

    text: Line
    number: Number | None = None
    formula: Count | None = None
    unit: Line = ""
    size: Count = 1
    rounding: Literal["exact", "nearest", "truncated"] = "nearest"
    cites: Annotated[list[Id], Field(min_length=1)]

    @model_validator(mode="after")
    def _one_value(self) -> Published:
        if self.number is not None and self.formula is not None:
            raise ValueError("give at most one of number and formula")
        return self


class Derivation(Strict):
    """One step of a derivation; later steps use its value by its name.

    `value` is read as the prose of the component `of` would read it, where one is named.  What a number stands on is
    found from its references; `by` names further statements (`component#statement`), `cites` evidence entries.
    """

    id: Name
    text: Text
    value: Quoted
    unit: Line = ""
    of: Id | None = None
    by: list[str] = []
    cites: list[Id] = []


class Headline(Strict):
    """A claim that others make about the model: what was published, and the steps that come to it.

    The last step is what is claimed; `over` names a step that it is divided by.  A rounded figure leaves much room:
    `equals` states the last step's value once more, such as by a policy, and must agree exactly.  Without steps the
    claim stays cited, and `underived` says why.
    """

    id: Id
    title: Line
    text: Text
    published: Published
    steps: list[Derivation] = []
    over: Name | None = None
    equals: Quoted | None = None
    underived: Line | None = None

    @model_validator(mode="after")
    def _derived_or_not(self) -> Headline:
        if bool(self.steps) == bool(self.underived):
            raise ValueError("give steps, or say under `underived` why there are none")
        if self.steps and self.published.number is None and self.published.formula is None:
            raise ValueError("a derived claim needs the published number or formula that it is compared with")
        if self.equals is not None and not self.steps:
            raise ValueError("equals belongs to a claim with steps")
        if self.over is not None and self.over not in {step.id for step in self.steps[:-1]}:
            raise ValueError("over names a step before the last one")
        return self


class Entry(Strict):
    """A line of a ledger: what is added (less than nothing to take off), or a total that the sum so far must equal."""

    id: Name
    text: Text
    add: Quoted | None = None
    total: Quoted | None = None
    of: Id | None = None
    by: list[str] = []

    @model_validator(mode="after")
    def _one_value(self) -> Entry:
        if (self.add is None) == (self.total is None):
            raise ValueError("give either add or total")
        return self


class Ledger(Strict):
    """Lines that add up, from a part to a whole; every total is stated by itself and compared with the sum."""

    id: Id
    title: Line
    text: Text
    lines: Annotated[list[Entry], Field(min_length=2)]

    @model_validator(mode="after")
    def _begins_and_ends(self) -> Ledger:
        if self.lines[0].add is None or self.lines[-1].total is None:
            raise ValueError("the first line adds, the last one is a total")
        return self


class PublishedFigure(Strict):
    """A figure that someone published, and what it comes to: a total of a ledger (`ledger#line`) or a value of its own.

    `unexplained` says so where nothing here comes to it.
    """

    id: Id
    published: Published
    text: Text
    explained: Annotated[str, StringConstraints(pattern=r"^[^#\s]+#[^#\s]+$")] | None = None
    value: Quoted | None = None
    unexplained: Line | None = None

    @model_validator(mode="after")
    def _explained_or_not(self) -> PublishedFigure:
        if sum(x is not None for x in (self.explained, self.value, self.unexplained)) != 1:
            raise ValueError("give one of explained (ledger#line), value and unexplained (why)")
        if self.published.number is None:
            raise ValueError("a published figure needs its number")
        return self


class ClaimsFile(Strict):
    """claims.yml: headline claims, ledgers, published figures."""

    claims: list[Headline] = []
    ledgers: list[Ledger] = []
    figures: list[PublishedFigure] = []

    def cited(self) -> Iterator[str]:
        """The evidence entries that claims, steps and figures cite."""
        for claim in self.claims:
            yield from claim.published.cites
            for step in claim.steps:
                yield from step.cites
        for figure in self.figures:
            yield from figure.published.cites

    def texts(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Every prose text with its path; what was published is written as it was published, and is none."""
        for number, claim in enumerate(self.claims):
            yield ("claims", number, "text"), claim.text
            if claim.underived:
                yield ("claims", number, "underived"), claim.underived
            for k, step in enumerate(claim.steps):
                yield ("claims", number, "steps", k, "text"), step.text
        for number, ledger in enumerate(self.ledgers):
            yield ("ledgers", number, "text"), ledger.text
            for k, line in enumerate(ledger.lines):
                yield ("ledgers", number, "lines", k, "text"), line.text
        for number, figure in enumerate(self.figures):
            yield ("figures", number, "text"), figure.text
            if figure.unexplained:
                yield ("figures", number, "unexplained"), figure.unexplained
