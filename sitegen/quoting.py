# What prose may quote by name, and what a quote comes to: `{d}`, `{row:gain}`, `{total:head}`.
"""The numbers of a component's prose."""

from __future__ import annotations

import re
from typing import Any

from sitegen import expr
from sitegen.accounting import Accounts
from sitegen.diagnostics import NOWHERE, Finding, Location, SpecInvalid, nearest
from sitegen.resolver import integer_fields

#: What can be quoted of any component, as `{total:COMPONENT}`.
FIGURES = ("own", "per_instance", "instances", "total")

_ENTRY = re.compile(r"(\w+)\[(\d+)\]$")


def figures_of(accounts: Accounts, id: str) -> dict[str, int]:
    """Own parameters of an instance, those of an instance with its parts, instances, and parameters in the model."""
    first = accounts.instances[id][0]
    return {
        "own": first.own,
        "per_instance": accounts.with_parts(id, first.occurrence.place.id, first.layer),
        "instances": accounts.num_instances(id),
        "total": accounts.total(id),
    }


def quotable(accounts: Accounts, id: str) -> dict[str, int]:
    """Integers that a component's prose can quote by name, alone or in an expression."""
    if id not in accounts.figures:
        accounts.figures[id] = _quotable(accounts, id)
    return accounts.figures[id]


def _quotable(accounts: Accounts, id: str) -> dict[str, int]:
    model = accounts.model
    first = accounts.instances[id][0]
    place = first.occurrence.place
    names = {n: v for n, v in model.symbols(place=place, layer=first.layer).items() if isinstance(v, int)}
    names |= {n: v for n, v in integer_fields(model.config).items() if n not in names}
    names |= figures_of(accounts, id)
    for occurrence in model.occurrences[id]:
        for place in occurrence.place.chain:
            key = "in_" + re.sub(r"[^A-Za-z0-9]", "_", place.id)
            names[key] = names.get(key, 0) + occurrence.instances
    return names


def quote(accounts: Accounts, id: str, text: str, where: Location = NOWHERE) -> tuple[str, str]:
    """A quoted expression's value as shown, and the calculation behind it; raises `SpecInvalid`.

    `row:ID` is the count of a row, `row:COMPONENT:ID` of another component's; `own:`, `per_instance:`,
    `instances:` and `total:COMPONENT` are figures of another component, `policy:NAME` what a policy counts,
    `size:ID` the parameters of a property of kind size,
    `FIELD[0]` an entry of a list of the configuration.  A symbol or field that is a float is quoted alone.
    Everything else is a count expression over symbols, integer config fields, own, per_instance, instances,
    total, and `in_PLACE`, the instances in a place (its id with `_` for other characters).
    """
    kind, colon, name = text.partition(":")
    if colon:
        return _figure(accounts, id, kind, name, where)
    config = accounts.model.config
    if entry := _ENTRY.match(text):
        return _shown(_entry(config, entry.group(1), int(entry.group(2)), where)), text
    first = accounts.instances[id][0]
    floats = {**config, **accounts.model.symbols(place=first.occurrence.place, layer=first.layer)}
    if isinstance(floats.get(text), float):
        return _shown(floats[text]), text
    names = quotable(accounts, id)
    value = expr.evaluate(text, names, where)
    return _shown(value), f"{text} = {expr.parse(text).shown(names)}"


def _shown(value: int | float) -> str:
    return f"{value:g}" if isinstance(value, float) else f"{value:,}"


def _entry(config: dict[str, Any], name: str, number: int, where: Location) -> int | float:
    entries = config.get(name)
    if not isinstance(entries, list):
        lists = [key for key, value in config.items() if isinstance(value, list)]
        raise _unknown(f"no list {name!r} in the configuration", where, name, lists)
    if number >= len(entries) or isinstance(entries[number], bool) or not isinstance(entries[number], int | float):
        message = f"{name} has no number at {number}: it has {len(entries)} entries, counted from 0"
        raise SpecInvalid([Finding("unknown-reference", message, where)])
    return entries[number]


def _figure(accounts: Accounts, id: str, kind: str, name: str, where: Location) -> tuple[str, str]:
    model = accounts.model
    if kind == "row":
        other, colon, row_id = name.rpartition(":")
        owner = _component(accounts, other, where) if colon else id
        rows = {row.row.id: row for row in accounts.instances[owner][0].rows}
        if row_id not in rows:
            raise _unknown(f"no row {row_id!r}" + (f" of {owner}" if colon else ""), where, row_id, rows)
        row = rows[row_id]
        return f"{row.count:,}", f"{row.row.count} = {row.shown}"
    if kind == "size":
        sizes = {p.id: p.parameters for p in model.component(id).properties if p.parameters is not None}
        if name not in sizes:
            raise _unknown(f"no size {name!r}", where, name, sizes)
        return f"{sizes[name]:,}", f"parameters of {name}"
    if kind == "policy":
        policy = model.sources.policies.get(name)
        if policy is None:
            raise _unknown(f"no policy {name!r}", where, name, model.sources.policies)
        return f"{accounts.policy(policy):,}", f"the policy {name}: {policy.title.strip()}"
    if kind in FIGURES:
        value = figures_of(accounts, _component(accounts, name, where))[kind]
        return f"{value:,}", f"{kind} of {model.component(name).title.strip()}"
    raise _unknown(f"nothing is quoted as {kind}:", where, kind, ("row", "size", "policy", *FIGURES))


def _component(accounts: Accounts, name: str, where: Location) -> str:
    if name not in accounts.model.components:
        raise _unknown(f"no component {name!r}", where, name, accounts.model.components)
    return name


def _unknown(message: str, where: Location, name: str, known: Any) -> SpecInvalid:
    return SpecInvalid([Finding("unknown-reference", message, where, hint=nearest(name, known))])
