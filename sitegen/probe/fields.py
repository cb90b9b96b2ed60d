# Which components a field of the configuration reaches: recorded reads of a run, brought from modules,
# tensors and operations to the innermost component.
"""Trace the fields of the configuration to components."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from sitegen import accounting, schema
from sitegen.diagnostics import Finding, SpecInvalid
from sitegen.probe.result import FieldReads, LevelResult
from sitegen.probe.values import module_of
from sitegen.resolver import Model, Occurrence


@dataclass
class Owners:
    """Who stands behind a tensor, an operation or a module of the small configuration; ids in browsing order."""

    tensors: dict[str, list[str]] = field(default_factory=dict)
    operations: dict[tuple[str, str], list[str]] = field(default_factory=dict)  # (module, operation)
    functions: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # name -> (place's module, component)
    modules: dict[str, list[str]] = field(default_factory=dict)
    places: set[str] = field(default_factory=set)  # modules that stand for places
    repeated: list[re.Pattern[str]] = field(default_factory=list)  # paths of places that repeat

    def seen(self, module: str) -> bool:
        """Whether a module is outside of repeated places, or inside one that stands for a place."""
        if module in self.modules:
            return True  # a component names it
        found = [match.group(1) for pattern in self.repeated if (match := pattern.match(module))]
        return not found or any(path in self.places for path in found)

    def moved(self, read: Any) -> Iterator[Any]:
        """A read in another layer as the layers that stand for places would have made it."""
        for pattern in self.repeated:
            match = pattern.match(read.module)
            if match is None:
                continue
            for path in sorted(self.places):
                if (stands := pattern.match(path)) is not None and stands.group(1) == path:
                    end = match.end(1)
                    tensor = path + read.tensor[end:] if read.tensor else ""
                    yield read._replace(module=path + read.module[end:], tensor=tensor)


def owners(model: Model, configuration: schema.Configuration) -> Owners:
    """Index the components' bindings, rows and pins by what they name in the small configuration."""
    found = Owners()
    config = {**model.config, **configuration.set}
    paths = dict.fromkeys(place.row.path for place in model.places.values() if "{i}" in place.row.path)
    found.repeated = [re.compile("(" + re.escape(path).replace(r"\{i\}", r"\d+") + r")(?:\.|$)") for path in paths]
    for id in model.order():
        component = model.component(id)
        for place_module, layer, occurrence in stand_ins(model, id, configuration):
            found.places.add(place_module)
            rows = rows_of(model, component, occurrence, layer, config)
            for name in rows:
                _add(found.tensors, name, id)
                _add(found.modules, name.rpartition(".")[0], id)
            if component.values is not None:
                module = module_of(place_module, component.values.module)
                _add(found.operations, (module, component.values.operation.partition("@")[0]), id)
                _add(found.modules, module, id)
            for name in function_names(component):
                _add(found.functions, name, (place_module, id))
    return found


def stand_ins(
    model: Model, id: str, configuration: schema.Configuration
) -> Iterator[tuple[str, int | None, Occurrence]]:
    """Module path and layer of each place of a component that the small configuration has."""
    for occurrence in model.occurrences[id]:
        row = occurrence.place.row
        if "{i}" not in row.path:
            yield row.path, None, occurrence
        elif (layer := configuration.layers.get(occurrence.place.id)) is not None:
            yield row.path.replace("{i}", str(layer)), layer, occurrence


def rows_of(
    model: Model, component: schema.Component, occurrence: Occurrence, layer: int | None, config: dict[str, Any]
) -> list[str]:
    """Names of the tensors that a component owns in one instance of the small configuration."""
    names: list[str] = []
    where = model.components[component.id].at("parameters")
    prefix = occurrence.place.row.path.replace("{i}", str(layer))
    for row in component.parameters:
        try:
            symbols = {n: v for n, v in model.symbols(config, occurrence.place, layer).items() if type(v) is int}
            names += accounting.row_tensors(row, prefix, symbols, where)
        except SpecInvalid:
            continue  # the counts of the released configuration are what is checked
    return names


def function_names(component: schema.Component) -> Iterator[str]:
    """Functions that a component is about: its operation, those of its cases, and what it pins as its main code."""
    for case in component.cases:
        yield case.call
    for code in component.code:
        if code.symbol and "." not in code.symbol:
            yield code.symbol


def _add(index: dict[Any, list[Any]], key: Any, value: Any) -> None:
    known = index.setdefault(key, [])
    if value not in known:
        known.append(value)


def components_of(model: Model, reads: Iterable[Any], owned: Owners) -> tuple[str, ...]:
    """The components that one field's reads belong to, in browsing order.

    A tensor belongs to whose row it is, an operation to who is bound to it; a read of a module alone counts for the
    component of that module, or of the nearest around it, unless tensors or operations inside already say more.
    """
    found: set[str] = set()
    settled: list[str] = []
    every = list(reads)
    # What only the last of several blocks has is seen in none of those that stand for places.
    reads = [r for r in every if owned.seen(r.module)] or [moved for r in every for moved in owned.moved(r)]
    bound = {operation for _, operation in owned.operations}
    for read in reads:
        if read.tensor:
            ids = owned.tensors.get(read.tensor) or owned.modules.get(read.module, [])
        elif read.operation:
            ids = owned.operations.get((read.module, read.operation), [])
            if read.operation not in bound:  # a plain function, known by who pins it
                ids = [id for place, id in owned.functions.get(read.operation, []) if inside(read.module, place)]
        else:
            continue
        if ids:
            settled.append(read.module)
        found.update(ids)
    for read in reads:
        if read.tensor or read.operation or any(inside(module, read.module) for module in settled):
            continue
        found.update(nearest_owner(model, read.module, owned))
    return tuple(id for id in model.order() if id in found)


def inside(module: str, outer: str) -> bool:
    return not outer or module == outer or module.startswith(outer + ".")


def nearest_owner(model: Model, module: str, owned: Owners) -> list[str]:
    """Who is bound to a module, or to the nearest around it; of a component and its parts, the component."""
    while module and module not in owned.modules:
        module = module.rpartition(".")[0]
    ids = owned.modules.get(module, [])
    whole = owned.operations.get((module, "forward"))
    return whole or [id for id in ids if not any(id in descendants(model, other) for other in ids)]


def descendants(model: Model, id: str) -> set[str]:
    found: set[str] = set()
    todo = list(model.children[id])
    while todo:
        part = todo.pop()
        if part not in found:
            found.add(part)
            todo += model.children[part]
    return found


def run(model: Model, harness: ModuleType, result: LevelResult) -> None:
    """Trace every field in the first small configuration; a field that reaches nothing and says no reason fails."""
    if not hasattr(harness, "config_reads") or not model.sources.model.configurations:
        return
    configuration = model.sources.model.configurations[0]
    config = {**model.config, **configuration.set}
    reads, refused = harness.config_reads(
        config,
        dtype=configuration.dtype,
        batch=configuration.batch,
        positions=configuration.positions,
        seed=configuration.seed,
    )
    owned = owners(model, configuration)
    by_field: dict[str, list[Any]] = {name: [] for name in model.config}
    for read in reads:
        if read.field in by_field:
            by_field[read.field].append(read)
    for name, found in by_field.items():
        result.fields[name] = FieldReads(
            components_of(model, found, owned),
            tuple(sorted({re.sub(r"(?<=\.)\d+(?=\.|$)", "*", read.module) for read in found})),
            tuple(sorted({read.operation for read in found if read.operation})),
            refused.get(name, ""),
        )
    for finding in findings(model, result.fields):
        result.fail(finding)


def findings(model: Model, fields: dict[str, FieldReads]) -> Iterator[Finding]:
    """Fields that nothing reads without a reason, and reasons of fields that are read."""
    document = model.sources.fields_document
    if document is None:
        return
    for name, reads in fields.items():
        entry = model.sources.fields.get(name)
        if entry is None:
            continue  # a finding of the static level
        where = document.locate(("fields", name))
        if entry.unread is None and not reads.modules:
            yield Finding(
                "config-invalid",
                f"no module reads the config field {name!r}",
                where,
                expected="a module that reads it, or the reason why none does",
                actual=reads.refused or "the run took no notice of the field",
                hint="say why under `unread`, and whom it concerns under `by`",
            )
        elif entry.unread is not None and reads.modules:
            yield Finding(
                "config-invalid",
                f"the config field {name!r} is said to be unread, but modules read it",
                where,
                expected="no reader",
                actual=", ".join(reads.modules[:4]),
                hint="remove `unread` and `by`",
            )
