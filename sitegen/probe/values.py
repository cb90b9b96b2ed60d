# Captured values under the names that formulas use.
"""The environment of a component's formulas, taken from the calls of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sitegen import schema
from sitegen.diagnostics import Finding, Location
from sitegen.resolver import Axis, Occurrence

_PATH = re.compile(
    r"(?:(?P<operation>[a-z_][a-z0-9_]*(?:@[a-z]+)?)(?:#(?P<occurrence>\d+))?\.)?(?P<field>[A-Za-z_]\w*)\Z"
)
_PARTS = (".real", ".imag")

Key = tuple[str, str, int]


@dataclass(frozen=True)
class ValuePath:
    """`field`, `operation.field` or `operation#2.field`; `.real` or `.imag` behind it is a part of a complex value."""

    operation: str
    occurrence: int
    field: str
    part: str = ""

    @classmethod
    def parse(cls, text: str, default: schema.Binding | None = None) -> ValuePath:
        """Raises `ValueError` when the text is no value path."""
        whole = text.strip()
        part = whole[-4:] if whole.endswith(_PARTS) else ""
        match = _PATH.match(whole[: -len(part) - 1] if part else whole)
        if match is None or (match["operation"] is None and default is None):
            raise ValueError(f"{text!r} is no value path: write field, operation.field or operation#1.field")
        if match["operation"] is None:
            assert default is not None
            return cls(default.operation, default.occurrence, match["field"], part)
        return cls(match["operation"], int(match["occurrence"] or 0), match["field"], part)


@dataclass(frozen=True)
class Records:
    """The calls of one run, by module, operation and occurrence."""

    calls: Mapping[Key, Mapping[str, Any]]

    @classmethod
    def of(cls, seen: Sequence[Any]) -> Records:
        return cls({(s.module, s.operation, s.occurrence): s.values for s in seen})

    def get(self, module: str, path: ValuePath) -> Any:
        """The value; raises `LookupError` that says what the module does call."""
        key = (module, path.operation, path.occurrence)
        if key not in self.calls:
            there = sorted({f"{op}#{n}" for m, op, n in self.calls if m == module})
            shown = ", ".join(there[:8]) or "no recorded calls at all"
            raise LookupError(
                f"module {module or '(root)'} makes no call {path.operation}#{path.occurrence}; it has {shown}"
            )
        values = self.calls[key]
        if path.field not in values:
            raise LookupError(f"{path.operation} has no value {path.field!r}; it has {', '.join(values)}")
        value = values[path.field]
        return getattr(value, path.part) if path.part else value


def module_of(place_module: str, relative: str) -> str:
    """The module `relative` inside a place's module, or the absolute `/module`."""
    if relative.startswith("/"):
        return relative[1:]
    return ".".join(part for part in (place_module, relative) if part)


def split_path(text: str, module: str) -> tuple[str, str]:
    """Module and value path of `path`, `relative.module:path` or `/module:path`, seen from `module`."""
    relative, _, value = text.rpartition(":")
    return module_of(module, relative), value


def environment(binding: schema.Binding, records: Records, place_module: str) -> dict[str, Any]:
    """Formula name -> captured value; raises `LookupError`.

    A module in front of a path is looked for in the binding's module, then beside it, in the place's.
    """
    found = {}
    for name, text in binding.bind.items():
        module, value = split_path(text, module_of(place_module, binding.module))
        path = ValuePath.parse(value, binding)
        beside, _ = split_path(text, place_module)
        if ":" in text and (module, path.operation, path.occurrence) not in records.calls:
            module = beside
        value = records.get(module, path)
        found[name] = value.flatten(0, 1) if name in binding.flat else value
    return found


def unify(
    axes: Sequence[str],
    shape: Sequence[int],
    symbols: Mapping[str, int],
    free: dict[str, int],
    where: Location,
    run: Mapping[str, int] | None = None,
) -> Finding | None:
    """Compare a captured shape with symbolic axes; free axes (batch, positions) are bound on first sight.

    `run` gives the values of free axes that only stand within an expression (`B*T`).
    """
    from sitegen import expr

    expected = []
    wrong = len(axes) != len(shape)
    for number, text in enumerate(axes):
        size = Axis.parse(text).size
        known = {**symbols, **free}
        names = expr.parse(size, where).names
        if size not in names:
            known = {**(run or {}), **known}
        if names <= known.keys():
            value = expr.evaluate(size, known, where)
        elif size in names and len(names) == 1 and number < len(shape):
            value = free[size] = shape[number]
        else:
            value = -1
        expected.append(f"{size} = {value:,}" if str(value) != size else size)
        wrong = wrong or number >= len(shape) or value != shape[number]
    if not wrong:
        return None
    return Finding(
        "shape-mismatch",
        "the stated shape is not the one seen in the run",
        where,
        expected="[" + ", ".join(expected) + "]",
        actual=str(list(shape)),
        hint="axes stand in the order in which the code holds them",
    )


def small_module(occurrence: Occurrence, configuration: schema.Configuration) -> tuple[str, int | None] | None:
    """Module path and index of the instance that stands for a place; None where the configuration has none."""
    place = occurrence.place
    if "{i}" not in place.row.path:
        return place.row.path, None
    index = configuration.layers.get(place.id)
    return None if index is None else (place.row.path.replace("{i}", str(index)), index)
