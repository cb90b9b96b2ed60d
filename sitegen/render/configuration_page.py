# The configuration in words: what each field means, what it is worth, which symbols carry it, and whom it reaches.
"""The page of the configuration."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sitegen.configuration import symbols_of_field
from sitegen.render import math, paths, places
from sitegen.render.context import Workshop
from sitegen.render.page import Block, Page, slug
from sitegen.render.symbols import number_text
from sitegen.render.templates import fill
from sitegen.render.view import Link


@dataclass(frozen=True)
class SymbolLink:
    html: Markup
    href: str
    name: str


@dataclass(frozen=True)
class FieldRow:
    """One field; `unread` says why nothing reads it, `refused` what the implementation's check adds."""

    name: str
    value: str
    meaning: str
    symbols: tuple[SymbolLink, ...]
    components: tuple[Link, ...]
    modules: tuple[str, ...]
    operations: tuple[str, ...]
    unread: str
    refused: str


def field_anchor(name: str) -> str:
    return f"field-{slug(name)}"


def value_text(value: Any) -> str:
    """A value of the configuration as a reader sees it; runs of equal entries as `2 × 18`."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int | float):
        return number_text(value)
    if isinstance(value, list):
        runs = [(item, len(list(group))) for item, group in itertools.groupby(value)]
        return ", ".join(value_text(item) + (f" × {times:,}" if times > 1 else "") for item, times in runs)
    return str(value)


def field_rows(workshop: Workshop) -> tuple[FieldRow, ...]:
    """All fields, in the order of the file."""
    model, book, addresses = workshop.model, workshop.book, workshop.settings.addresses
    start = paths.configuration_page(model.name)
    rows = []
    for name, value in model.config.items():
        entry, reads = model.sources.fields.get(name), book.fields.get(name)
        ids = [*(reads.components if reads else ()), *(entry.by if entry else ())]
        symbols = (
            SymbolLink(
                Markup(math.inline_formula(model.sources.symbols[symbol].tex.strip())),
                addresses.href(start, paths.symbols_page(model.name), f"symbol-{slug(symbol)}"),
                symbol,
            )
            for symbol in symbols_of_field(model, name)
        )
        rows.append(
            FieldRow(
                name,
                value_text(value),
                entry.meaning.strip() if entry else "",
                tuple(symbols),
                tuple(
                    places.component_link(model, start, addresses, id)
                    for id in dict.fromkeys(ids)
                    if id in model.components
                ),
                reads.modules if reads else (),
                reads.operations if reads else (),
                (entry.unread or "").strip() if entry else "",
                reads.refused if reads else "",
            )
        )
    return tuple(rows)


def configuration_page(workshop: Workshop) -> Page:
    """All fields of the released configuration."""
    model = workshop.model
    title = model.sources.model.title.strip()
    rows = field_rows(workshop)
    traced = bool(workshop.book.fields)
    head = fill(
        "index.html.j2",
        title="Configuration",
        text=f"The {len(rows):,} fields of {model.sources.model.config}, and the components that each reaches.",
    )
    body = fill("configuration.html.j2", rows=rows, traced=traced, date=workshop.book.date)
    document = model.sources.fields_document
    return Page(
        paths.configuration_page(model.name),
        "Configuration",
        (Block(head), Block(body, "Fields", "fields")),
        f"Every field of the configuration of {title}: value, meaning, symbols and readers.",
        document.file if document else model.sources.model_document.file,
        twin=configuration_json(workshop, rows),
    )


def configuration_json(workshop: Workshop, rows: tuple[FieldRow, ...]) -> dict[str, Any]:
    model, fields = workshop.model, workshop.book.fields
    return {
        "schema": 1,
        "page": "configuration",
        "model": model.name,
        "title": "Configuration",
        "traced": bool(fields),
        "fields": [
            {
                "name": row.name,
                "value": model.config[row.name],
                "meaning": row.meaning,
                "symbols": [symbol.name for symbol in row.symbols],
                "components": list(fields[row.name].components) if row.name in fields else [],
                "modules": list(row.modules),
                "operations": list(row.operations),
                "unread": row.unread or None,
            }
            for row in rows
        ],
    }
