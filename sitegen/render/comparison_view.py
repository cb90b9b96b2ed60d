# What changed from one model to another, on one page: what is new, gone and other, side by side.
"""Views of the comparison page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from markupsafe import Markup

from sitegen import formula
from sitegen.accounting import Accounts
from sitegen.comparison import Comparison, Pair, Value, aspects
from sitegen.formula.symboltex import SymbolTex
from sitegen.render import math, paths
from sitegen.render.page import Addresses, slug
from sitegen.render.prose import PageProse
from sitegen.render.view import Link
from sitegen.resolver import Model


@dataclass(frozen=True)
class Alone:
    """A component that one model has."""

    link: Link
    id: str
    total: int
    kind: str
    formulas: tuple[Markup, ...]
    shapes: tuple[str, ...]


@dataclass(frozen=True)
class Side:
    """One aspect of one model: formulas, or lines of text."""

    formulas: tuple[Markup, ...] = ()
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChangeRow:
    aspect: str
    before: Side
    after: Side


@dataclass(frozen=True)
class ChangeView:
    """A component of both models with its changes; `was` where its id is another one."""

    title: str
    anchor: str
    before: Link
    after: Link
    was: str
    rows: tuple[ChangeRow, ...]


@dataclass(frozen=True)
class ValueRow:
    title: str
    name: str
    before: str
    after: str
    differs: bool


@dataclass(frozen=True)
class ComparisonView:
    """Everything on a comparison page."""

    title: str
    text: str
    before: Link
    after: Link
    new: tuple[Alone, ...]
    gone: tuple[Alone, ...]
    changed: tuple[ChangeView, ...]
    same: tuple[Link, ...]
    values: tuple[ValueRow, ...]


Quotes = Mapping[str, Callable[[str, str], tuple[str, str]]]


def comparison_view(found: Comparison, addresses: Addresses, quotes: Quotes) -> ComparisonView:
    """The view of a comparison; links are those of its page, `quotes` say what prose of a model quotes."""
    before, after = found.before.model, found.after.model
    path = paths.comparison_page(before.name, after.name)

    def link(model: Model, id: str) -> Link:
        return Link(model.component(id).title.strip(), addresses.href(path, paths.component_page(model.name, id)))

    def whole(model: Model) -> Link:
        return Link(model.sources.model.title.strip(), addresses.href(path, paths.model_page(model.name)))

    title = found.mapping.title or f"From {whole(before).text} to {whole(after).text}"
    values = [value_row(v, v.name, v.title) for v in found.figures]
    values += [value_row(v, v.title, v.name) for v in (*found.symbols, *found.policies)]
    return ComparisonView(
        title.strip(),
        (found.mapping.text or "").strip(),
        whole(before),
        whole(after),
        tuple(alone(found.after, id, link(after, id)) for id in found.new),
        tuple(alone(found.before, id, link(before, id)) for id in found.gone),
        tuple(change_view(found, p, link(before, p.before), link(after, p.after), quotes) for p in found.changed),
        tuple(link(after, pair.after) for pair in found.same),
        tuple(values),
    )


def alone(accounts: Accounts, id: str, link: Link) -> Alone:
    said = aspects(accounts, id)
    shapes = [line for name in ("inputs", "outputs", "parameters") for line in said[name].splitlines()]
    kind = accounts.model.component(id).kind
    return Alone(link, id, accounts.total(id), kind, formulas(accounts.model, id), tuple(shapes))


def purpose(model: Model, id: str, quotes: Quotes) -> Side:
    """What a component is for, in the words of its page."""
    quote = quotes[model.name]
    prose = PageProse(lambda expr: quote(id, expr), {})
    return Side(lines=(prose.plain(model.component(id).purpose.text),))


def change_view(found: Comparison, pair: Pair, before: Link, after: Link, quotes: Quotes) -> ChangeView:
    said = purpose(found.before.model, pair.before, quotes), purpose(found.after.model, pair.after, quotes)
    rows = [ChangeRow("purpose", *said)] if said[0] != said[1] else []
    for change in pair.changes:
        if change.aspect == "formula":
            left, right = formulas(found.before.model, pair.before), formulas(found.after.model, pair.after)
            rows.append(ChangeRow(change.aspect, Side(left), Side(right)))
        else:
            left, right = tuple(change.before.splitlines()), tuple(change.after.splitlines())
            rows.append(ChangeRow(change.aspect, Side(lines=left), Side(lines=right)))
    was = pair.before if pair.before != pair.after else ""
    return ChangeView(pair.title, slug(pair.after), before, after, was, tuple(rows))


def formulas(model: Model, id: str) -> tuple[Markup, ...]:
    """A component's formulas as they are typeset on its page."""
    letters = {name: SymbolTex.of(symbol.tex) for name, symbol in model.sources.symbols.items()}
    marks = math.SymbolMarks()
    shown = []
    for number, (step, parsed) in enumerate(zip(model.component(id).steps, model.steps[id], strict=True)):
        plain = step.tex.strip() if step.tex else formula.to_tex(parsed, letters)
        where = model.components[id].at("steps", number, "expr")
        shown.append(Markup(math.block_formula(plain, plain, marks, where=where)))
    return tuple(shown)


def value_row(value: Value, title: str, note: str) -> ValueRow:
    def text(number: int | float | None) -> str:
        return "–" if number is None else f"{number:,}" if isinstance(number, int) else f"{number:g}"

    return ValueRow(title, note, text(value.before), text(value.after), value.differs)
