# Names become things: symbols get their values from the configuration, references their targets,
# places their instances.  The result is the `Model` on which everything later stands.
"""Resolve a loaded spec: bind symbols, link references, multiply repeats."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sitegen import expr, formula, schema
from sitegen.diagnostics import Collector, Finding, Location, SpecInvalid, nearest
from sitegen.loader import Located, Sources

#: Axes whose size a run chooses.
FREE_AXES = ("B", "T")


@dataclass(frozen=True)
class Place:
    """A row of the schedule with its parents and instances."""

    id: str
    title: str
    row: schema.Place
    parents: tuple[Place, ...]
    layers: tuple[int, ...]

    @property
    def chain(self) -> tuple[Place, ...]:
        """From the outermost place to this one."""
        return (*self.parents, self)

    @property
    def multiplicity(self) -> int:
        """How often the place occurs in the model."""
        result = 1
        for place in self.chain:
            result *= place.row.repeat
        return result

    def module(self, layer: int | None) -> str:
        """Module path of one instance, such as `layers.7` or `mtp.0`."""
        return self.row.path if layer is None else self.row.path.replace("{i}", str(layer - self.row.first))


@dataclass(frozen=True)
class Occurrence:
    """A component in a place: `parents` are the components around it, `layers` where it is present."""

    component: str
    place: Place
    parents: tuple[str, ...]
    layers: tuple[int | None, ...]

    @property
    def instances(self) -> int:
        return len(self.layers)

    @property
    def modules(self) -> tuple[str, ...]:
        """Module paths of the instances."""
        return tuple(self.place.module(layer) for layer in self.layers)


@dataclass(frozen=True)
class Axis:
    """One named axis of a port or row: its letter, the expression of its size."""

    letter: str
    size: str

    @classmethod
    def parse(cls, text: str) -> Axis:
        """`n`, `j: n`, `n*d` or `c: n*d`."""
        head, colon, tail = text.partition(":")
        return cls(head.strip(), tail.strip()) if colon else cls(text.strip(), text.strip())


@dataclass(frozen=True)
class Model:
    """A model whose names all have targets."""

    sources: Sources
    places: dict[str, Place]
    occurrences: dict[str, tuple[Occurrence, ...]]
    steps: dict[str, tuple[formula.Step, ...]] = field(repr=False)

    @property
    def name(self) -> str:
        return self.sources.name

    @property
    def config(self) -> dict[str, Any]:
        return self.sources.config

    @property
    def components(self) -> dict[str, Located]:
        return self.sources.components

    def component(self, id: str) -> schema.Component:
        return self.sources.components[id].component

    def symbols(
        self,
        config: Mapping[str, Any] | None = None,
        place: Place | None = None,
        layer: int | None = None,
    ) -> dict[str, int | float]:
        """Values of all symbols under a configuration (the released one), as they hold in a place."""
        if config is not None and config is not self.config:
            return symbol_values(self.sources, config, place, layer)
        key = (place.id if place else "", layer)
        if key not in self._released:
            self._released[key] = symbol_values(self.sources, self.config, place, layer)
        return dict(self._released[key])

    @cached_property
    def _released(self) -> dict[tuple[str, int | None], dict[str, int | float]]:
        """Values of symbols under the released configuration, worked out once for each place and layer."""
        return {}

    @cached_property
    def children(self) -> dict[str, tuple[str, ...]]:
        """Component id -> ids of its parts, in order."""
        return {id: tuple(part_id(p) for p in located.component.parts) for id, located in self.components.items()}

    @cached_property
    def parents(self) -> dict[str, tuple[str, ...]]:
        """Component id -> ids of the components that it is a part of."""
        result: dict[str, list[str]] = {id: [] for id in self.components}
        for id, parts in self.children.items():
            for part in parts:
                result[part].append(id)
        return {id: tuple(p) for id, p in result.items()}

    def order(self) -> list[str]:
        """Component ids in browsing order: as places list them, parts after their whole."""
        seen: dict[str, None] = {}

        def visit(id: str) -> None:
            if id not in seen:
                seen[id] = None
                for part in self.children[id]:
                    visit(part)

        for place in self.places.values():
            for part in place.row.parts:
                visit(part_id(part))
        return list(seen)


def part_id(part: str | schema.Part) -> str:
    return part if isinstance(part, str) else part.id


def layer_list(value: list[int] | str | None) -> tuple[int, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        first, last = value.split("-")
        return tuple(range(int(first), int(last) + 1))
    return tuple(value)


def integer_fields(config: Mapping[str, Any], prefix: str = "", *, lists: bool = False) -> dict[str, int]:
    """Integer fields of a configuration; those of a mapping inside are named `field_key`, of a list `field_0`."""
    found: dict[str, int] = {}
    for name, value in config.items():
        if type(value) is int:
            found[prefix + name] = value
        elif isinstance(value, Mapping):
            found |= integer_fields(value, f"{prefix}{name}_", lists=lists)
        elif lists and isinstance(value, list):
            found |= {f"{prefix}{name}_{i}": entry for i, entry in enumerate(value) if type(entry) is int}
    return found


def symbol_values(
    sources: Sources, config: Mapping[str, Any], place: Place | None = None, layer: int | None = None
) -> dict[str, int | float]:
    """Symbol -> value; symbols without value (batch, positions) and those of other layers are left out."""
    integers = integer_fields(config)
    overrides: dict[str, int | str] = {}
    for part in place.chain if place else ():
        overrides.update(part.row.symbols)
    values: dict[str, int | float] = {}
    for name, symbol in sources.symbols.items():
        where = sources.symbols_document.locate(("symbols", name))
        if name in overrides:
            values[name] = expr.evaluate(overrides[name], integers, where)
        elif symbol.value is not None:
            values[name] = expr.evaluate(symbol.value, integers, where)
        elif symbol.field is not None:
            value = config.get(symbol.field)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise SpecInvalid(
                    [
                        Finding(
                            "unknown-symbol",
                            f"the symbol {name!r} has the value of config field {symbol.field!r}, which is no number",
                            where,
                            actual=repr(value),
                            hint=nearest(symbol.field, config),
                        )
                    ]
                )
            values[name] = value
        elif symbol.infinite:
            values[name] = math.inf
        elif symbol.by_layer is not None and layer is not None:
            value = by_layer(symbol.by_layer, config, layer, where)
            if value is not None:
                values[name] = value
    return values


def by_layer(rule: schema.ByLayer, config: Mapping[str, Any], layer: int, where: Location) -> int | float | None:
    """The entry of a layer; None where the rule has none. Raises `SpecInvalid` for a field that is no list."""
    for named in (rule.values, rule.layers):
        if named is not None and not isinstance(config.get(named), list):
            message = f"the config field {named!r} is no list, so it has no values by layer"
            raise SpecInvalid(
                [Finding("unknown-symbol", message, where, actual=repr(config.get(named)), hint=nearest(named, config))]
            )
    entries = config[rule.values]
    if rule.layers is None:
        return entries[layer] if layer < len(entries) else None
    layers = config[rule.layers]
    return entries[layers.index(layer)] if layer in layers and layers.index(layer) < len(entries) else None


def resolve(sources: Sources) -> Model:
    """Bind and link; raises `SpecInvalid` with everything that does not resolve."""
    return _Resolver(sources).resolve()


class _Resolver:
    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.out = Collector()
        self.components = sources.components

    def resolve(self) -> Model:
        self.symbols()
        places = self.places()
        self.parts()
        self.out.raise_if_any()
        occurrences = self.occurrences(places)
        steps = {id: self.steps(located) for id, located in self.components.items()}
        for id, located in self.components.items():
            self.references(id, located)
        self.out.raise_if_any()
        return Model(self.sources, places, occurrences, steps)

    def add(self, code: str, message: str, where: Location, **values: str) -> None:
        self.out.add(Finding(code, message, where, **values))

    def symbols(self) -> None:
        self.layer_lists()
        if self.out.findings:
            return
        try:
            values = symbol_values(self.sources, self.sources.config)
        except SpecInvalid as error:
            self.out.findings.extend(error.findings)
            return
        for name, value in values.items():
            if isinstance(value, int) and value <= 0:
                where = self.sources.symbols_document.locate(("symbols", name))
                self.add("config-invalid", f"the symbol {name!r} is not positive", where, actual=str(value))

    def layer_lists(self) -> None:
        """Lists of the configuration that give values by layer hold numbers, and their layers are whole ones."""
        for name, symbol in self.sources.symbols.items():
            if symbol.by_layer is None:
                continue
            where = self.sources.symbols_document.locate(("symbols", name, "by_layer"))
            for named, kinds in ((symbol.by_layer.values, (int, float)), (symbol.by_layer.layers, (int,))):
                entries = self.sources.config.get(named) if named is not None else []
                if not isinstance(entries, list) or any(type(entry) not in kinds for entry in entries):
                    message = f"the config field {named!r} is no list of numbers, so it has no values by layer"
                    hint = nearest(named or "", self.sources.config)
                    self.add("unknown-symbol", message, where, actual=repr(entries)[:80], hint=hint)

    def places(self) -> dict[str, Place]:
        document, rows = self.sources.model_document, self.sources.model.places
        places: dict[str, Place] = {}
        for number, row in enumerate(rows):
            where = document.locate(("places", number, "id"))
            if row.id in places:
                self.add("schema-invalid", f"the place {row.id!r} is listed twice", where)
                continue
            parents: tuple[Place, ...] = ()
            if row.parent is not None:
                if row.parent not in places:
                    hint = nearest(row.parent, places)
                    self.add("unknown-reference", f"no place {row.parent!r} above this one", where, hint=hint)
                    continue
                parents = places[row.parent].chain
            place = Place(row.id, row.title.strip(), row, parents, layer_list(row.layers))
            places[row.id] = place
            at = document.locate(("places", number, "layers"))
            own = len(place.layers)
            inner = parents[-1].layers if parents else ()
            if row.path and "{i}" in row.path and own != place.multiplicity:
                self.add(
                    "count-mismatch",
                    f"the place {row.id!r} does not occur as often as it has layers",
                    at,
                    expected=f"{own} layers listed",
                    actual=f"{place.multiplicity} by the repeats",
                )
            if inner and set(place.layers) - set(inner):
                self.add("schema-invalid", f"the place {row.id!r} has layers outside its parent", at)
            for i, part in enumerate(row.parts):
                if part_id(part) not in self.components:
                    self.add(
                        "unknown-reference",
                        f"no component {part_id(part)!r}",
                        document.locate(("places", number, "parts", i)),
                        hint=nearest(part_id(part), self.components),
                    )
        return places

    def parts(self) -> None:
        for located in self.components.values():
            for number, part in enumerate(located.component.parts):
                if part_id(part) not in self.components:
                    self.add(
                        "unknown-reference",
                        f"no component {part_id(part)!r}",
                        located.at("parts", number),
                        hint=nearest(part_id(part), self.components),
                    )
        state: dict[str, int] = {}

        def visit(id: str, trail: tuple[str, ...]) -> None:
            if state.get(id) == 2 or id not in self.components:
                return
            if state.get(id) == 1:
                self.add(
                    "schema-invalid", f"a part contains itself: {' > '.join((*trail, id))}", self.components[id].at()
                )
                return
            state[id] = 1
            for part in self.components[id].component.parts:
                visit(part_id(part), (*trail, id))
            state[id] = 2

        for id in self.components:
            visit(id, ())

    def occurrences(self, places: dict[str, Place]) -> dict[str, tuple[Occurrence, ...]]:
        found: dict[str, list[Occurrence]] = {id: [] for id in self.components}

        def visit(
            part: str | schema.Part, place: Place, parents: tuple[str, ...], layers: tuple[int | None, ...]
        ) -> None:
            id = part_id(part)
            if isinstance(part, schema.Part):
                if part.places is not None and not {p.id for p in place.chain} & set(part.places):
                    return
                if part.layers is not None:
                    layers = tuple(x for x in layers if x in part.layers)
            if not layers:
                return
            if any(o.place is place for o in found[id]):
                where = self.components[id].at("id")
                self.add("schema-invalid", f"the component {id!r} occurs twice in the place {place.id!r}", where)
                return
            found[id].append(Occurrence(id, place, parents, layers))
            for child in self.components[id].component.parts:
                visit(child, place, (*parents, id), layers)

        for place in places.values():
            layers: tuple[int | None, ...] = place.layers if "{i}" in place.row.path else (None,)
            for part in place.row.parts:
                visit(part, place, (), layers)
        for id, list_ in found.items():
            if not list_:
                self.add(
                    "component-unreachable",
                    f"the component {id!r} occurs in no place",
                    self.components[id].at("id"),
                    hint="list it under the parts of a place in model.yml, or of another component",
                )
        return {id: tuple(list_) for id, list_ in found.items()}

    # --- within one component ---------------------------------------------------------------------

    def steps(self, located: Located) -> tuple[formula.Step, ...]:
        result = []
        for number, step in enumerate(located.component.steps):
            try:
                result.append(formula.parse(step.expr, where=located.at("steps", number, "expr")))
            except SpecInvalid as error:
                self.out.findings.extend(f.within(located.component.id, f"step:{step.id}") for f in error.findings)
        return tuple(result)

    def references(self, id: str, located: Located) -> None:
        component = located.component
        for finding in _reference_findings(self.sources, located):
            self.out.add(finding.within(id))
        known = set(self.sources.symbols)
        for kind, ports in (("inputs", component.inputs), ("outputs", component.outputs)):
            for number, port in enumerate(ports):
                self.axes(located, port.axes, (kind, number, "axes"), known)
        for number, row in enumerate(component.parameters):
            self.axes(located, row.axes, ("parameters", number, "axes"), known)
            self.expression(located, row.count, ("parameters", number, "count"), known)
            for name, size in row.each.items():
                self.expression(located, size, ("parameters", number, "each", name), known)

    def axes(self, located: Located, axes: list[str], path: tuple[str | int, ...], known: set[str]) -> None:
        for number, text in enumerate(axes):
            self.expression(located, Axis.parse(text).size, (*path, number), known)

    def expression(self, located: Located, text: int | str, path: tuple[str | int, ...], known: set[str]) -> None:
        where = located.at(*path)
        try:
            parsed = expr.parse(text, where)
        except SpecInvalid as error:
            self.out.findings.extend(f.within(located.component.id) for f in error.findings)
            return
        for name in sorted(parsed.names - known):
            self.out.add(
                Finding(
                    "unknown-symbol",
                    f"unknown symbol {name!r} in {text!r}",
                    where,
                    component=located.component.id,
                    hint=nearest(name, known),
                )
            )


def _reference_findings(sources: Sources, located: Located) -> Iterator[Finding]:
    """Ids that a component names and that do not exist."""
    component = located.component

    def unknown(kind: str, name: str, known: Any, *path: str | int) -> Iterator[Finding]:
        if name not in known:
            yield Finding("unknown-reference", f"no {kind} {name!r}", located.at(*path), hint=nearest(name, known))

    for number, name in enumerate(component.evidence):
        yield from unknown("evidence entry", name, sources.evidence, "evidence", number)
    for number, citation in enumerate(component.upstream):
        yield from unknown("source", citation.source, sources.sources.sources, "upstream", number, "source")
        yield from _range_findings(sources, citation.source, citation.lines, located.at("upstream", number, "lines"))
    for number, name in enumerate(component.uses):
        yield from unknown("component", name, sources.components, "uses", number)
    for kind, ports in (("inputs", component.inputs), ("outputs", component.outputs)):
        for number, port in enumerate(ports):
            if port.component is not None:
                yield from unknown("component", port.component, sources.components, kind, number, "component")
    pins = {code.id for code in component.code}
    if component.expression is not None:
        if component.expression.pin is not None:
            yield from unknown("code pin", component.expression.pin, pins, "expression", "pin")
        if component.expression.source is not None:
            yield from unknown("source", component.expression.source, sources.sources.sources, "expression", "source")
            if component.expression.lines:
                where = located.at("expression", "lines")
                yield from _range_findings(sources, component.expression.source, component.expression.lines, where)
    for path, ids in _unique_ids(component):
        seen: set[str] = set()
        for number, name in enumerate(ids):
            if name in seen:
                yield Finding(
                    "schema-invalid", f"the id {name!r} is used twice in {path}", located.at(path, number, "id")
                )
            seen.add(name)


def _unique_ids(component: schema.Component) -> Iterator[tuple[str, list[str]]]:
    yield "steps", [s.id for s in component.steps]
    yield "properties", [p.id for p in component.properties]
    yield "parameters", [r.id for r in component.parameters]
    yield "numerics", [n.id for n in component.numerics]
    yield "code", [c.id for c in component.code]


def _range_findings(sources: Sources, source: str, lines: list[int], where: Location) -> Iterator[Finding]:
    """What is wrong with a line range: two numbers, from 1, in order, within the file where its length is known."""
    problem = ""
    if len(lines) != 2:
        problem = "a range needs a first and a last line"
    elif lines[0] < 1:
        problem = "lines count from 1"
    elif lines[1] < lines[0]:
        problem = "the range is reversed"
    else:
        length = sources.sources.sources[source].lines if source in sources.sources.sources else None
        if length is not None and lines[1] > length:
            problem = f"line {lines[1]} is past the end (the file has {length} lines)"
    if problem:
        yield Finding("schema-invalid", problem, where, actual=str(lines), hint="write [first, last], both cited")
