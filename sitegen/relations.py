# Who owns what, and whose the other layers use: the relations that model.yml declares, derived layer by
# layer from lists of the configuration, so that no picture and no table repeats them by hand.
"""Derive the relations between layers, and find what contradicts the schedule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sitegen import schema
from sitegen.diagnostics import Finding, Location, SpecInvalid, nearest
from sitegen.resolver import Model, Place


@dataclass(frozen=True)
class Related:
    """A relation as it holds: its owners, and for each layer that uses one, the owner whose it uses."""

    relation: schema.Relation
    owners: tuple[int, ...]
    source: Mapping[int, int]

    def says(self, layer: int) -> str:
        """What the relation says of a layer; empty where it says nothing."""
        if layer in self.owners:
            return self.relation.owns.strip()
        return f"{(self.relation.uses or '').strip()} layer {self.source[layer]}" if layer in self.source else ""


def related(model: Model) -> tuple[Related, ...]:
    """The model's relations, in their order; raises `SpecInvalid` with everything that contradicts the schedule."""
    found: list[Related] = []
    findings: list[Finding] = []
    for number, relation in enumerate(model.sources.model.relations):
        result = _Deriver(model, number, relation).derive(findings)
        if result is not None:
            found.append(result)
    findings += _repeated(model)
    if findings:
        raise SpecInvalid(findings)
    return tuple(found)


def relation_findings(model: Model) -> Iterator[Finding]:
    """What is wrong with the relations and kinds of a model."""
    try:
        related(model)
    except SpecInvalid as error:
        yield from error.findings
    yield from _kind_findings(model)


def place_of_layer(model: Model) -> dict[int, Place]:
    """Layer -> the innermost place that it belongs to, in the order of the layers; of the kinds that are mapped."""
    kinds = model.sources.model.kinds
    left_out = {name for name, kind in kinds.items() if not kind.mapped}
    found: dict[int, Place] = {}
    for place in model.places.values():
        if place.row.kind in left_out:
            continue
        for layer in place.layers:
            if layer not in found or len(place.chain) > len(found[layer].chain):
                found[layer] = place
    return dict(sorted(found.items()))


@dataclass(frozen=True)
class _Deriver:
    model: Model
    number: int
    relation: schema.Relation

    def derive(self, findings: list[Finding]) -> Related | None:
        relation, model = self.relation, self.model
        if relation.within is not None and relation.within not in model.places:
            hint = nearest(relation.within, model.places)
            findings.append(Finding("unknown-reference", f"no place {relation.within!r}", self.at("within"), hint=hint))
            return None
        layers = place_of_layer(model) if relation.within is None else model.places[relation.within].layers
        before = len(findings)
        name = "owners" if relation.owners is not None else "source_of"
        owners = self.listed(name, layers, findings)
        users = self.listed("users", layers, findings) if relation.users is not None else tuple(sorted(layers))
        if len(findings) > before:
            return None
        source: dict[int, int] = {}
        if relation.source_of is not None:
            for layer in users:
                earlier = [owner for owner in owners if owner < layer]
                if layer not in owners and earlier:
                    source[layer] = earlier[-1]
        found = Related(relation, owners, source)
        findings += self.component_findings(found, frozenset(layers))
        return found

    def at(self, *path: str | int) -> Location:
        return self.model.sources.model_document.locate(("relations", self.number, *path))

    def listed(self, name: str, layers: object, findings: list[Finding]) -> tuple[int, ...]:
        """The layers that the configuration lists under the field that `name` names."""
        field = getattr(self.relation, name)
        where, config, file = self.at(name), self.model.config, self.model.sources.model.config
        if field not in config:
            hint = nearest(field, config)
            findings.append(Finding("unknown-reference", f"no field {field!r} in {file}", where, hint=hint))
            return ()
        value = config[field]
        listed = [value] if type(value) is int else value
        if not isinstance(listed, list) or any(type(x) is not int for x in listed):
            message = f"the field {field!r} lists no layers"
            findings.append(
                Finding("config-invalid", message, where, expected="layer numbers", actual=f"{value!r} in {file}")
            )
            return ()
        if listed != sorted(set(listed)):
            message = f"the layers of {field!r} are not in order, each once"
            expected = str(sorted(set(listed)))
            findings.append(Finding("config-invalid", message, where, expected=expected, actual=f"{listed} in {file}"))
        outside = [x for x in listed if x not in layers]  # type: ignore[operator]
        if outside:
            place = self.relation.within or "any place"
            message = f"{field!r} lists layers outside {place}"
            findings.append(Finding("config-invalid", message, where, actual=f"{outside} in {file}"))
        return tuple(listed)

    def component_findings(self, found: Related, layers: frozenset[int]) -> Iterator[Finding]:
        """The components that stand for the relation, where their occurrences are not its owners."""
        names = self.relation.components
        for number, name in enumerate(names):
            if name not in self.model.components:
                hint = nearest(name, self.model.components)
                yield Finding("unknown-reference", f"no component {name!r}", self.at("components", number), hint=hint)
                return
        present = {
            layer
            for name in names
            for occurrence in self.model.occurrences[name]
            for layer in occurrence.layers
            if layer in layers
        }
        if names and present != set(found.owners):
            field = self.relation.owners or self.relation.source_of
            yield Finding(
                "config-invalid",
                f"{' and '.join(names)} do not occur in the layers that own {self.relation.title.strip()}",
                self.at("components"),
                expected=f"layers {list(found.owners)} from {field!r}",
                actual=f"layers {sorted(x for x in present if x is not None)} in the schedule",
                hint="correct the layers or places of the part, or the relation",
            )


def _repeated(model: Model) -> Iterator[Finding]:
    for name in ("id", "mark"):
        seen: set[str] = set()
        for number, relation in enumerate(model.sources.model.relations):
            value = getattr(relation, name)
            if value in seen:
                where = model.sources.model_document.locate(("relations", number, name))
                yield Finding("schema-invalid", f"two relations have the {name} {value!r}", where)
            seen.add(value)


def _kind_findings(model: Model) -> Iterator[Finding]:
    """Places of a kind without an entry, entries of no place, and marks that two kinds share."""
    kinds, document = model.sources.model.kinds, model.sources.model_document
    yield from _numbered_twice(model)
    if not kinds:
        return
    used: set[str] = set()
    for number, row in enumerate(model.sources.model.places):
        if row.kind is None:
            continue
        used.add(row.kind)
        if row.kind not in kinds:
            where = document.locate(("places", number, "kind"))
            yield Finding("unknown-reference", f"no kind {row.kind!r}", where, hint=nearest(row.kind, kinds))
    marks: dict[str, str] = {}
    for name, kind in kinds.items():
        if name not in used:
            where = document.locate(("kinds", name))
            yield Finding("unknown-reference", f"no place is of the kind {name!r}", where, hint=nearest(name, used))
        other = marks.setdefault(kind.mark, name)
        if other != name:
            where = document.locate(("kinds", name, "mark"))
            yield Finding("schema-invalid", f"the kinds {other!r} and {name!r} have the same mark {kind.mark!r}", where)


def _numbered_twice(model: Model) -> Iterator[Finding]:
    """Outermost places that count their layers anew: the map could not tell them apart."""
    kinds = model.sources.model.kinds
    blocks: dict[int, Place] = {}
    for number, place in enumerate(model.places.values()):
        kind = kinds.get(place.row.kind or "")
        if kind is not None and not kind.mapped:
            continue
        twice = [layer for layer in place.layers if blocks.setdefault(layer, place).chain[0] is not place.chain[0]]
        if twice:
            other = blocks[twice[0]].chain[0]
            yield Finding(
                "schema-invalid",
                f"the places {other.id!r} and {place.id!r} both have a layer {twice[0]}",
                model.sources.model_document.locate(("places", number, "layers")),
                hint="give one of them a kind with `mapped: false`, or number its layers on",
            )
