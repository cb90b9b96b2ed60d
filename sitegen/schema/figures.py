# The nouns of a figure: bars whose lengths come from symbols or from a committed record.
"""Figures of a component."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from sitegen.schema.base import Count, Id, Line, Name, Strict, Text


class Bar(Strict):
    """One bar of a figure; its length is never typed.

    `count` is an exact expression over symbols and the figure's `each`; `row` picks the one entry of the record's
    `rows` with these values, on top of the panel's; `at` adds up values of the record by their path (`a/{T}/b`).
    """

    title: Line
    role: Literal["bound", "subject"] | None = None
    count: Count | None = None
    row: dict[str, str | int | bool] | None = None
    at: list[Line] = []

    @model_validator(mode="after")
    def _one_length(self) -> Bar:
        if sum((self.count is not None, self.row is not None, bool(self.at))) != 1:
            raise ValueError("give one of count, row, at")
        return self


class Panel(Strict):
    """Bars of one unit; lengths are multiplied by `scale`, rows are those with the values in `rows`."""

    title: Line
    unit: Line
    scale: Annotated[float, Field(gt=0)] = 1.0
    rows: dict[str, str | int | bool] = {}
    value: Line | None = Field(default=None, description="the field of a row that gives the length")
    bars: list[Bar]


class Figure(Strict):
    """Bars made of a committed record, once for each value in `each`: {T: [1, 2]}."""

    id: Id
    title: Line
    text: Text
    record: str | None = None
    each: dict[Name, list[int]] = Field(default={}, max_length=1)
    panels: list[Panel]
