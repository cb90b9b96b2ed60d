# The nouns of pages that are arranged from components: a comparison with another model, a family page.
"""map.yml and family.yml."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sitegen.schema.base import Count, Id, Line, Name, Strict, Text


class Compared(Strict):
    """A figure of two models side by side, each counted from its own symbols."""

    title: Line
    before: Count
    after: Count
    text: Line | None = None


class ModelMap(Strict):
    """How a model's names correspond to another one's; what is not named here corresponds by an equal id."""

    title: Line | None = None
    text: Text | None = None
    components: dict[Id, Id] = {}
    apart: list[Id] = Field(default=[], description="ids that both models have for different things")
    symbols: dict[Name, Name] = Field(default={}, description="letters with another name in the other model")
    policies: dict[Id, Id] = {}
    figures: list[Compared] = []


class MapFile(Strict):
    """map.yml: the models that this one is compared with."""

    maps: dict[Id, ModelMap]


class Section(Strict):
    """A section of a family page: a table made from all components, and statements of theirs in order.

    `show` names a component (its purpose and main formulas), `component#statement`, or `evidence:ID`.
    """

    id: Id
    title: Line
    table: Literal["modules", "names", "buffers", "counts"] | None = None
    show: list[str] = []


class FamilyFile(Strict):
    """family.yml: the page of a model as a module of a library, arranged from its components' statements."""

    title: Line
    sections: list[Section]
