# Figures from committed records: each bar's length comes from an expression or from a record by name, so a
# figure can neither drift nor hide that something was not measured.
"""Read the lengths of a figure's bars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sitegen import expr, schema
from sitegen.diagnostics import Finding, Location, SpecInvalid, nearest
from sitegen.resolver import Model


@dataclass(frozen=True)
class Measured:
    """A bar with its length in the panel's unit, or why it has none."""

    title: str
    role: str
    value: float | None
    missing: str = ""


@dataclass(frozen=True)
class MeasuredPanel:
    """A panel at one value of the figure's `each`; `where` names it, such as `T = 4,096`."""

    title: str
    unit: str
    where: str
    bars: tuple[Measured, ...]


@dataclass(frozen=True)
class MeasuredFigure:
    """A figure with all its lengths, and where they were recorded."""

    figure: schema.Figure
    panels: tuple[MeasuredPanel, ...]
    record: str
    device: str
    date: str


def measure(model: Model, component: str, number: int) -> MeasuredFigure:
    """The lengths of a component's figure; raises `SpecInvalid` with every bar that has none and no reason."""
    return _Measurer(model, component, number).measure()


def figure_findings(model: Model, component: str, number: int) -> Iterator[Finding]:
    """What a figure's record lacks."""
    try:
        measure(model, component, number)
    except SpecInvalid as error:
        statement = f"figure:{model.component(component).figures[number].id}"
        yield from (finding.within(component, statement) for finding in error.findings)


class _Measurer:
    def __init__(self, model: Model, component: str, number: int) -> None:
        self.located, self.number = model.components[component], number
        self.figure = self.located.component.figures[number]
        first = model.occurrences[component][0]
        values = model.symbols(place=first.place, layer=first.layers[0])
        self.symbols = {name: value for name, value in values.items() if isinstance(value, int)}
        self.record: Mapping[str, Any] = model.sources.records.get(self.figure.record or "", {})
        self.findings: list[Finding] = []

    def measure(self) -> MeasuredFigure:
        name, values = next(iter(self.figure.each.items()), ("", [0]))
        panels = []
        for value in values:
            each = {name: value} if name else {}
            for k, panel in enumerate(self.figure.panels):
                bars = tuple(self.bar(panel, bar, each, (k, n)) for n, bar in enumerate(panel.bars))
                where = f"{name} = {value:,}" if name else ""
                panels.append(MeasuredPanel(panel.title.strip(), panel.unit.strip(), where, bars))
        if self.findings:
            raise SpecInvalid(list(dict.fromkeys(self.findings)))
        told = [self.record.get(key) for key in ("device", "date")]
        device, date = (value if isinstance(value, str) else "" for value in told)
        return MeasuredFigure(self.figure, tuple(panels), self.figure.record or "", device, date)

    def at(self, where: tuple[int, int], *path: str | int) -> Location:
        return self.located.at("figures", self.number, "panels", where[0], "bars", where[1], *path)

    def fail(self, code: str, message: str, where: Location, **values: str) -> None:
        self.findings.append(Finding(code, message, where, **values))

    def bar(self, panel: schema.Panel, bar: schema.Bar, each: Mapping[str, int], where: tuple[int, int]) -> Measured:
        title, role = bar.title.strip(), bar.role or ""
        value: float | None = None
        missing = ""
        if bar.count is not None:
            try:
                value = expr.evaluate(bar.count, {**self.symbols, **each}, self.at(where, "count"))
            except SpecInvalid as error:
                self.findings += error.findings
        elif bar.row is not None:
            value, missing = self.row(panel, {**each, **panel.rows, **bar.row}, self.at(where, "row"))
        else:
            found = [self.path(path, each, self.at(where, "at", k)) for k, path in enumerate(bar.at)]
            value = sum(v for v in found if v is not None)
        return Measured(title, role, None if value is None else value * panel.scale, missing)

    def row(
        self, panel: schema.Panel, wanted: Mapping[str, str | int | bool], where: Location
    ) -> tuple[float | None, str]:
        """The value of the one row with the wanted fields, or why it was not measured.

        A row that was skipped says so, and need not have the fields that only a measurement has.
        """
        rows = [row for row in self.record.get("rows", ()) if isinstance(row, dict)]
        shown = ", ".join(f"{k}={v}" for k, v in wanted.items())
        same = [
            row
            for row in rows
            if all(
                type(row[k]) is type(v) and row[k] == v if k in row else isinstance(row.get("skipped"), str)
                for k, v in wanted.items()
            )
        ]
        if len(same) != 1:
            known = {str(row.get("name")) for row in rows}
            hint = nearest(str(wanted["name"]), known) if "name" in wanted else ""
            message = f"{len(same) or 'no'} rows of {self.figure.record} have {shown}"
            self.fail("unknown-reference", message, where, expected="one row", actual=str(len(same)), hint=hint)
            return None, ""
        if isinstance(skipped := same[0].get("skipped"), str):
            return None, skipped
        value = same[0].get(panel.value or "")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            message = f"the row {shown} of {self.figure.record} has no length {panel.value!r}"
            self.fail("unknown-reference", message, where, actual=repr(value), hint=nearest(panel.value or "", same[0]))
            return None, ""
        return float(value), ""

    def path(self, path: str, each: Mapping[str, int], where: Location) -> float | None:
        found: Any = self.record
        for name, value in each.items():
            path = path.replace(f"{{{name}}}", str(value))
        for key in path.split("/"):
            known = found if isinstance(found, dict) else {}
            if key not in known:
                message = f"{self.figure.record} holds no {path!r}"
                self.fail("unknown-reference", message, where, hint=nearest(key, known))
                return None
            found = known[key]
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < float("inf"):
            message = f"{path!r} in {self.figure.record} is no length"
            self.fail("unknown-reference", message, where, actual=repr(found))
            return None
        return float(found)
