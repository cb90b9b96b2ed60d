# The released configuration in words: every field has a meaning, and symbols that carry its value.
"""Fields of the configuration, their meanings and their symbols."""

from __future__ import annotations

from collections.abc import Iterator

from sitegen import expr
from sitegen.diagnostics import Finding, SpecInvalid, nearest
from sitegen.resolver import Model


def fields_of_symbol(model: Model, name: str) -> tuple[str, ...]:
    """The config fields that a symbol's value comes from, also where a place gives it another value."""
    symbol = model.sources.symbols[name]
    if symbol.field is not None:
        return (symbol.field,)
    found: dict[str, None] = {}
    if symbol.by_layer is not None:
        found |= dict.fromkeys(n for n in (symbol.by_layer.values, symbol.by_layer.layers) if n is not None)
    values = [symbol.value, *(place.row.symbols.get(name) for place in model.places.values())]
    for value in values:
        if value is not None:
            try:
                found |= dict.fromkeys(sorted(expr.parse(value).names))
            except SpecInvalid:
                continue  # a finding of its own
    return tuple(field for field in found if field in model.config)


def symbols_of_field(model: Model, field: str) -> tuple[str, ...]:
    """The symbols that carry a config field, alone or in an expression."""
    return tuple(name for name in model.sources.symbols if field in fields_of_symbol(model, name))


def field_findings(model: Model) -> Iterator[Finding]:
    """Fields without a meaning, meanings without a field, and components that do not exist."""
    document, entries = model.sources.fields_document, model.sources.fields
    if document is None:
        return
    for name in model.config:
        if name not in entries:
            yield Finding(
                "unknown-reference",
                f"the config field {name!r} has no meaning",
                document.locate(("fields",)),
                expected=f"an entry for each of the {len(model.config)} fields of {model.sources.model.config}",
                actual=f"{len(entries)} entries, none for {name}",
                hint=f"add `{name}: {{meaning: …}}` to {document.file}",
            )
    for name, entry in entries.items():
        if name not in model.config:
            where = document.locate(("fields", name))
            yield Finding("unknown-reference", f"no config field {name!r}", where, hint=nearest(name, model.config))
        for number, id in enumerate(entry.by):
            if id not in model.components:
                where = document.locate(("fields", name, "by", number))
                yield Finding("unknown-reference", f"no component {id!r}", where, hint=nearest(id, model.components))
