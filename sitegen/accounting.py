# How many parameters each component owns: per row, per instance, per place, in the whole model.
#
# A number has up to three sides.  Here is the first (the expression on the configuration) and the
# second from disk (the published tensor table); the third (the implementation on the meta device) is
# a fact, compared in `verifier.py`.
"""Exact parameter counts by row, instance, place, component and policy."""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from sitegen import expr, schema
from sitegen.diagnostics import Finding, Location, SpecInvalid
from sitegen.resolver import Axis, Model, Occurrence, Place

Box = tuple[tuple[int, int], ...]

#: Tensors that one row may name in one instance, through `each`.
MAX_NAMES = 100_000


@dataclass(frozen=True)
class RowCount:
    """One accounting row in one instance.

    Attributes:
        count: elements owned, from the expression.
        shown: the calculation with values, `20,480 × 24`.
        tensors: full tensor names of the instance (several where a row has `each`).
        shape: the logical shape of each tensor as the row states it (of its slice, if it has one).
        box: the owned slice as half-open ranges per axis, or None for the whole tensor.
    """

    row: schema.Row
    count: int
    shown: str
    tensors: tuple[str, ...]
    shape: tuple[int, ...]
    box: Box | None

    @property
    def elements(self) -> int:
        """Elements by the stated shape: must equal `count`."""
        return math.prod(self.shape) * len(self.tensors)


@dataclass(frozen=True)
class Instance:
    """A component in one layer of one place, with its own rows."""

    occurrence: Occurrence
    layer: int | None
    rows: tuple[RowCount, ...]

    @property
    def counted(self) -> tuple[RowCount, ...]:
        """Rows of learned parameters; buffers are stated and not counted."""
        return tuple(row for row in self.rows if row.row.role == "parameter")

    @property
    def own(self) -> int:
        return sum(row.count for row in self.counted)


class TableTensor(NamedTuple):
    """One tensor of the published table; there are about 100,000 of them, so they are made fast."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    is_scale: bool
    stored: tuple[int, ...]


@dataclass(frozen=True)
class Accounts:
    """All counts of a model."""

    model: Model
    instances: dict[str, tuple[Instance, ...]] = field(repr=False)

    def own(self, id: str) -> int:
        """Parameters that the component itself owns, over all instances."""
        return sum(instance.own for instance in self.instances[id])

    @cached_property
    def table(self) -> dict[str, TableTensor]:
        """The published table; empty for a model without one."""
        return table_tensors(self.model)

    @cached_property
    def _by_key(self) -> dict[tuple[str, str, int | None], Instance]:
        return {(id, i.occurrence.place.id, i.layer): i for id, list_ in self.instances.items() for i in list_}

    @cached_property
    def figures(self) -> dict[str, dict[str, int]]:
        """Component -> the numbers that its prose can quote, as far as they were asked for."""
        return {}

    def instance(self, id: str, place: str, layer: int | None) -> Instance | None:
        return self._by_key.get((id, place, layer))

    @cached_property
    def _whole(self) -> dict[tuple[str, str, int | None], int]:
        return {}

    def with_parts(self, id: str, place: str, layer: int | None) -> int:
        """Parameters of one instance and its parts."""
        instance = self.instance(id, place, layer)
        if instance is None:
            return 0
        key = (id, place, layer)
        if key not in self._whole:
            parts = (self.with_parts(part, place, layer) for part in self.model.children[id])
            self._whole[key] = instance.own + sum(parts)
        return self._whole[key]

    def per_instance(self, id: str, place: str | None = None) -> list[int]:
        """The distinct counts with parts that instances have (one, unless tables differ by layer)."""
        found: dict[int, None] = {}
        for instance in self.instances[id]:
            if within(instance, place):
                found[self.with_parts(id, instance.occurrence.place.id, instance.layer)] = None
        return list(found)

    def total(self, id: str, place: str | None = None) -> int:
        """Parameters with parts over all instances, in one place or in the model."""
        return sum(
            self.with_parts(id, i.occurrence.place.id, i.layer)
            for i in self.instances[id]
            if within(i, place)
        )

    def num_instances(self, id: str, place: str | None = None) -> int:
        return sum(1 for i in self.instances[id] if within(i, place))

    def policy(self, policy: schema.Policy) -> int:
        """The value of a policy: its terms over the rows of the instances that they name."""
        return sum(value for _, value in self.policy_terms(policy))

    def policy_terms(self, policy: schema.Policy) -> Iterator[tuple[schema.Term, int]]:
        for term in policy.terms:
            total = 0
            for instance in self.term_instances(term):
                symbols = self.model.symbols(place=instance.occurrence.place, layer=instance.layer)
                for row in instance.counted:
                    count = row.count
                    if term.share is not None:
                        top, bottom = (expr.evaluate(x, _integers(symbols)) for x in term.share)
                        if count * top % bottom:
                            raise SpecInvalid(
                                [
                                    Finding(
                                        "count-mismatch", f"{count} x {top} is no multiple of {bottom} (policy share)"
                                    )
                                ]
                            )
                        count = count * top // bottom
                    total += count
            yield term, term.sign * total

    def term_instances(self, term: schema.Term) -> list[Instance]:
        wanted = set(term.components) if term.components is not None else None
        low, high = (int(x) for x in term.layers.split("-")) if term.layers else (0, 0)
        chosen = []
        for id, instances in self.instances.items():
            for instance in instances:
                occurrence = instance.occurrence
                if term.places is not None and not {p.id for p in occurrence.place.chain} & set(term.places):
                    continue
                if wanted is not None and not wanted & {id, *occurrence.parents}:
                    continue
                if term.layers and (instance.layer is None or not low <= instance.layer <= high):
                    continue
                chosen.append(instance)
        return chosen


def within(instance: Instance, place: str | None) -> bool:
    """Whether an instance stands in a place or in one inside it; in any, without a place."""
    return place is None or place in {p.id for p in instance.occurrence.place.chain}


def _integers(symbols: dict[str, int | float]) -> dict[str, int]:
    return {name: value for name, value in symbols.items() if type(value) is int}


def count(model: Model) -> Accounts:
    """Count every row of every instance; raises `SpecInvalid` when an expression cannot be evaluated."""
    findings: list[Finding] = []
    instances: dict[str, tuple[Instance, ...]] = {}
    for id, occurrences in model.occurrences.items():
        located, own = model.components[id], []
        for occurrence in occurrences:
            for layer in occurrence.layers:
                rows = []
                for number, row in enumerate(located.component.parameters):
                    try:
                        where = located.at("parameters", number, "count")
                        rows.append(count_row(model, row, occurrence.place, layer, model.config, where))
                    except SpecInvalid as error:
                        findings.extend(f.within(id, f"count:{row.id}") for f in error.findings)
                own.append(Instance(occurrence, layer, tuple(rows)))
        instances[id] = tuple(own)
    if findings:
        raise SpecInvalid(dict.fromkeys(findings))
    return Accounts(model, instances)


def count_row(
    model: Model,
    row: schema.Row,
    place: Place,
    layer: int | None,
    config: dict[str, Any],
    where: Location,
    module: str | None = None,
) -> RowCount:
    """One row of one instance under a configuration; `module` where it is not the place's own path."""
    symbols = _integers(model.symbols(config, place, layer))
    names = row_tensors(row, place.module(layer) if module is None else module, symbols, where)
    shape = tuple(expr.evaluate(Axis.parse(axis).size, symbols, where) for axis in row.axes)
    return RowCount(
        row=row,
        count=expr.evaluate(row.count, symbols, where),
        shown=expr.parse(row.count).shown(symbols),
        tensors=tuple(names),
        shape=shape,
        box=parse_slice(row.slice, symbols, where) if row.slice else None,
    )


def row_tensors(row: schema.Row, module: str, symbols: dict[str, int], where: Location) -> list[str]:
    """Full names of the tensors of a row in one instance; several where the row has `each`."""
    names = [f"{module}.{row.tensor}" if module else row.tensor]
    for letter, size in row.each.items():
        times = expr.evaluate(size, symbols, where)
        if times * len(names) > MAX_NAMES:
            message = f"the row names more than {MAX_NAMES:,} tensors"
            raise SpecInvalid([Finding("expression-invalid", message, where, actual=f"{letter}: {size} = {times:,}")])
        values = range(times)
        names = [name.replace("{" + letter + "}", str(value)) for name in names for value in values]
    return names


_RANGE = re.compile(r"\s*([^:,]*?)\s*(?::\s*([^:,]*?)\s*)?$")


def parse_slice(text: str, symbols: dict[str, int], where: Location) -> Box:
    """`[0:4]`, `[2]`, `[2*n:]`-like Python slices, one per axis, as half-open ranges; an open end is -1."""
    box = []
    for part in text[1:-1].split(","):
        match = _RANGE.match(part)
        if match is None or (":" not in part and not match.group(1)):
            raise SpecInvalid(
                [
                    Finding(
                        "expression-invalid",
                        f"{text!r} is no tensor slice",
                        where,
                        hint="write [0:4], [2] or [a:b, c:d]",
                    )
                ]
            )
        start = expr.evaluate(match.group(1), symbols, where) if match.group(1) else 0
        if ":" not in part:
            box.append((start, start + 1))
        else:
            box.append((start, expr.evaluate(match.group(2), symbols, where) if match.group(2) else -1))
    return tuple(box)


def scale_words(extra: int, tensors: Sequence[str], scales: Mapping[str, int]) -> str:
    """Says so when a count is too large by exactly the scales (name -> elements) beside its tensors, else nothing."""
    modules = {name.rpartition(".")[0] for name in tensors}
    beside = sum(elements for name, elements in scales.items() if name.rpartition(".")[0] in modules)
    if not extra or beside != extra:
        return ""
    return f"{extra:,} of them are quantisation scales: scales are not parameters"


# --- the published table ---------------------------------------------------------------------------


def table_tensors(model: Model) -> dict[str, TableTensor]:
    """The published table, one entry per tensor (patterns expanded over layers and experts)."""
    found: dict[str, TableTensor] = {}
    for entry in model.sources.table:
        shape, stored = tuple(entry["shape"]), tuple(entry["stored_shape"])
        dtype, is_scale = entry["dtype"], entry["is_scale"]
        for name in names_of(entry):
            found[name] = TableTensor(name, shape, dtype, is_scale, stored)
    return found


def documented(model: Model, name: str) -> bool:
    """Whether components claim to own all tensors of this name."""
    return _any_of(tuple(model.sources.model.documented)).match(name) is not None


@lru_cache(maxsize=16)
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns) or r"(?!)")


def names_of(entry: dict[str, Any]) -> Iterator[str]:
    """All names of an entry of the table: the first letter runs over the layers, the second over the rest."""
    pattern: str = entry["name_pattern"]
    letters = list(dict.fromkeys(re.findall(r"\{(\w+)\}", pattern)))
    outer = letters[:1] if entry["layers"] else []
    inner = letters[len(outer) :]
    layers = entry["layers"] or [0]
    each = max(1, entry["instances"] // len(layers)) if inner else 1
    for layer in layers:
        name = pattern.replace("{" + outer[0] + "}", str(layer)) if outer else pattern
        for number in range(each):
            yield name.replace("{" + inner[0] + "}", str(number)) if inner else name


# --- every element has one owner -------------------------------------------------------------------


@dataclass(frozen=True)
class Share:
    """The part of one tensor that a row of an instance owns."""

    component: str
    row: str
    box: Box | None
    where: Location

    def __str__(self) -> str:
        shown = "" if self.box is None else "[" + ", ".join(f"{a}:{b}" for a, b in self.box) + "]"
        return f"{self.component} ({self.row}{shown})"


def shares(accounts: Accounts) -> dict[str, list[Share]]:
    """Tensor name -> who owns which part of it."""
    owners: dict[str, list[Share]] = {}
    for id, instances in accounts.instances.items():
        located = accounts.model.components[id]
        for instance in instances:
            for number, row in enumerate(instance.rows):
                share = Share(
                    id, row.row.id, row.box, located.at("parameters", number, "slice" if row.box else "tensor")
                )
                for name in row.tensors:
                    owners.setdefault(name, []).append(share)
    return owners


def ownership_findings(accounts: Accounts, shapes: dict[str, tuple[int, ...]], origin: str) -> Iterator[Finding]:
    """Gaps, overlaps and strangers between the rows and a set of tensors (`origin` says whose).

    Layers repeat: the same fault of the same row is reported once, with the number of tensors it concerns.
    """
    first: dict[tuple[str, str, str], Finding] = {}
    times: dict[tuple[str, str, str], int] = {}
    for finding in _ownership_findings(accounts, shapes, origin):
        key = (finding.component, finding.statement, re.sub(r"\d+", "#", finding.message))
        first.setdefault(key, finding)
        times[key] = times.get(key, 0) + 1
    for key, finding in first.items():
        if times[key] > 1:
            finding = replace(finding, message=f"{finding.message} (and in {times[key] - 1:,} more tensors)")
        yield finding


def _ownership_findings(accounts: Accounts, shapes: dict[str, tuple[int, ...]], origin: str) -> Iterator[Finding]:
    owners = shares(accounts)
    for name, parts in owners.items():
        if name not in shapes:
            for part in parts:
                yield Finding(
                    "tensor-unassigned",
                    f"the row owns {name}, which {origin} does not have",
                    part.where,
                    component=part.component,
                    statement=f"row:{part.row}",
                )
            continue
        yield from _tiling(name, shapes[name], parts, origin)
    unowned = [name for name in shapes if name not in owners and documented(accounts.model, name)]
    groups: dict[str, list[str]] = {}
    for name in unowned:
        groups.setdefault(re.sub(r"\d+", "#", name), []).append(name)
    where = accounts.model.sources.model_document.locate(("documented",))
    for names in groups.values():
        yield Finding(
            "tensor-unassigned",
            f"{len(names)} tensor(s) of {origin} have no owner: {names[0]}" + (" …" if len(names) > 1 else ""),
            where,
            expected="one owner per element",
            actual=f"{sum(math.prod(shapes[n]) for n in names):,} elements without owner",
            hint="give a component a row for it, or narrow `documented` in model.yml",
        )


def _tiling(name: str, shape: tuple[int, ...], parts: list[Share], origin: str) -> Iterator[Finding]:
    if len(parts) == 1 and parts[0].box is None:
        return  # one owner of the whole: nearly all of them
    size = math.prod(shape)
    boxes: list[tuple[Share, Box]] = []
    for part in parts:
        box = part.box or tuple((0, n) for n in shape)
        box = tuple((a, n if b == -1 else b) for (a, b), n in zip(box, shape, strict=False))
        box = box + tuple((0, n) for n in shape[len(box) :])
        if len(part.box or ()) > len(shape) or any(not 0 <= a < b <= n for (a, b), n in zip(box, shape, strict=True)):
            yield Finding(
                "shape-mismatch",
                f"the slice of {name} leaves the tensor",
                part.where,
                component=part.component,
                statement=f"row:{part.row}",
                expected=f"within {list(shape)} ({origin})",
                actual=str([f"{a}:{b}" for a, b in box]),
            )
            return
        boxes.append((part, box))
    for i, (first, a) in enumerate(boxes):
        for second, b in boxes[:i]:
            if all(max(x[0], y[0]) < min(x[1], y[1]) for x, y in zip(a, b, strict=True)):
                yield Finding(
                    "tensor-assigned-twice",
                    f"elements of {name} are owned twice",
                    first.where,
                    component=first.component,
                    statement=f"row:{first.row}",
                    expected="one owner per element",
                    actual=f"{second} and {first}",
                    hint="let the slices tile the tensor",
                )
                return
    covered = sum(math.prod(y - x for x, y in box) for _, box in boxes)
    if covered < size:
        part = parts[0]
        yield Finding(
            "tensor-unassigned",
            f"{size - covered:,} of {size:,} elements of {name} have no owner",
            part.where,
            component=part.component,
            statement=f"row:{part.row}",
            expected=f"slices that tile {list(shape)} ({origin})",
            actual="; ".join(str(p) for p in parts),
        )


def elements(shape: tuple[int, ...]) -> int:
    """Number of elements of a shape."""
    return math.prod(shape)
