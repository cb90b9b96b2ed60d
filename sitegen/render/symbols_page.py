# The glossary: every letter once, with its name, value, origin and all components that use it.
"""The page of symbols."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sitegen import expr
from sitegen.configuration import fields_of_symbol
from sitegen.diagnostics import SpecInvalid
from sitegen.render import math, paths, places
from sitegen.render.configuration_page import field_anchor
from sitegen.render.context import Workshop
from sitegen.render.page import Block, Page
from sitegen.render.symbols import number_text, used_names
from sitegen.render.templates import fill
from sitegen.render.view import Link
from sitegen.resolver import Axis, Model


@dataclass(frozen=True)
class SymbolRow:
    """One symbol; `value` is the released one, or those that it takes by place or layer."""

    name: str
    html: Markup
    meaning: str
    value: str
    fields: tuple[Link, ...]
    upstream: str
    report: str
    components: tuple[Link, ...]


def values_of(model: Model, name: str) -> tuple[int | float, ...]:
    """The distinct values of a symbol: in the model, then by place and layer."""
    found: dict[int | float, None] = {}
    general = model.symbols().get(name)
    if general is not None:
        found[general] = None
    if any(name in place.row.symbols for place in model.places.values()) or model.sources.symbols[name].by_layer:
        for place in model.places.values():
            for layer in place.layers or (None,):
                value = model.symbols(place=place, layer=layer).get(name)
                if value is not None:
                    found[value] = None
    return tuple(found)


def users(model: Model) -> dict[str, tuple[str, ...]]:
    """Symbol -> components whose formulas, axes, counts or constants use it, in browsing order."""
    found: dict[str, dict[str, None]] = {name: {} for name in model.sources.symbols}
    for id in model.order():
        component = model.component(id)
        names = set(used_names(component, model.steps[id]))
        texts: list[int | str] = [row.count for row in component.parameters]
        texts += [size for row in component.parameters for size in row.each.values()]
        shaped = (*component.inputs, *component.outputs, *component.parameters, *component.views)
        texts += [Axis.parse(axis).size for item in shaped for axis in item.axes]
        names |= {name for numeric in component.numerics for name in numeric.constant}
        for text in texts:
            try:
                names |= expr.parse(text).names
            except SpecInvalid:
                continue  # a finding of its own
        for name in names & found.keys():
            found[name][id] = None
    return {name: tuple(ids) for name, ids in found.items()}


def symbol_rows(workshop: Workshop) -> tuple[SymbolRow, ...]:
    """All symbols, in the order of the file."""
    model, addresses = workshop.model, workshop.settings.addresses
    start = paths.symbols_page(model.name)
    by_symbol = users(model)
    rows = []
    for name, symbol in model.sources.symbols.items():
        fields = (
            Link(field, addresses.href(start, paths.configuration_page(model.name), field_anchor(field)))
            for field in fields_of_symbol(model, name)
        )
        rows.append(
            SymbolRow(
                name,
                Markup(math.inline_formula(symbol.tex.strip())),
                symbol.meaning.strip(),
                ", ".join(number_text(value) for value in values_of(model, name)),
                tuple(fields),
                symbol.upstream or "",
                symbol.report or "",
                tuple(places.component_link(model, start, addresses, id) for id in by_symbol[name]),
            )
        )
    return tuple(rows)


def symbols_page(workshop: Workshop) -> Page:
    """The glossary of a model's symbols."""
    model = workshop.model
    title = model.sources.model.title.strip()
    rows = symbol_rows(workshop)
    head = fill("index.html.j2", title="Symbols", text=f"The {len(rows):,} symbols of the formulas of {title}.")
    body = fill("symbols.html.j2", rows=rows)
    return Page(
        paths.symbols_page(model.name),
        "Symbols",
        (Block(head), Block(body, "Glossary", "glossary")),
        f"Every symbol of {title}: meaning, value, configuration field, and the components that use it.",
        model.sources.symbols_document.file,
        twin=symbols_json(model, rows),
    )


def symbols_json(model: Model, rows: tuple[SymbolRow, ...]) -> dict[str, Any]:
    by_symbol = users(model)
    return {
        "schema": 1,
        "page": "symbols",
        "model": model.name,
        "title": "Symbols",
        "symbols": [
            {
                "name": row.name,
                "tex": model.sources.symbols[row.name].tex.strip(),
                "meaning": row.meaning,
                "values": list(values_of(model, row.name)),
                "fields": list(fields_of_symbol(model, row.name)),
                "upstream": row.upstream or None,
                "report": row.report or None,
                "components": list(by_symbol[row.name]),
            }
            for row in rows
        ],
    }
