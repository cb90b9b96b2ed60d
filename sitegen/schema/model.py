# The nouns of model.yml: what the model is, what implements it, how small runs of it are made.
"""model.yml."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from sitegen.schema.base import (
    MAX_LAYERS,
    Count,
    Digest,
    Dotted,
    Id,
    LayerList,
    LayerRange,
    Line,
    Mark,
    Name,
    Strict,
    Text,
    _Size,
)


class Part(Strict):
    """A component that stands in a place or in another component, perhaps only in some layers or places."""

    id: Id
    layers: list[int] | None = None
    places: list[Id] | None = None


class Place(Strict):
    """A row of the schedule: where components occur.

    `repeat` multiplies along the parents; `layers` lists all its layers over all repeats; `path` is
    the module path of one instance, `{i}` standing for the layer number (minus `first`).
    """

    id: Id
    title: Line
    parent: Id | None = None
    kind: str | None = None
    layers: LayerList | LayerRange | None = None
    repeat: Annotated[int, Field(ge=1, le=MAX_LAYERS)] = 1
    path: str = ""
    first: int = 0
    parts: list[Id | Part] = []
    symbols: dict[Name, Count] = {}
    text: Text | None = None


class Kind(Strict):
    """What a kind of layer is called, and the one or two letters that stand for it in the layer map."""

    title: Line
    mark: Mark
    mapped: bool = Field(default=True, description="whether the layer map draws it; not, where it counts anew")


class Relation(Strict):
    """What some layers own and others use, derived from a list of layers in the configuration.

    `owners` names a field whose layers own it; `source_of` one whose layers own it and lend it: a layer uses that
    of the last owner before it, from the first on, or only the layers of the field `users` do.  It speaks of the
    layers of the place `within`; where `components` are named, they occur in the owners and nowhere else in it.
    """

    id: Id
    title: Line
    mark: Mark
    owns: Line = Field(description="what an owner does, such as: compresses keys of its own")
    uses: Line | None = Field(default=None, description="what another does, before its source: reads the keys of")
    owners: str | None = None
    source_of: str | None = None
    users: str | None = None
    within: Id | None = None
    components: list[Id] = []

    @model_validator(mode="after")
    def _one_rule(self) -> Relation:
        if (self.owners is None) == (self.source_of is None):
            raise ValueError("give either owners or source_of")
        if (self.source_of is None) != (self.uses is None):
            raise ValueError("source_of and uses belong together")
        if self.users is not None and self.source_of is None:
            raise ValueError("users needs source_of")
        return self


class Configuration(Strict):
    """A small configuration for runs: fields that differ from the released one, and how to build it."""

    id: Id
    set: dict[str, Any]
    dtype: Literal["model", "float32", "float64"] = "model"
    batch: Annotated[int, Field(ge=1, le=64)] = 2
    positions: Annotated[int, Field(ge=1, le=4096)] = 7
    seed: int = 1
    layers: dict[Id, int] = Field(default={}, description="which layer stands for a place in this configuration")


class Fill(Strict):
    """How the parameters and persistent buffers of these names are drawn; the first matching rule counts.

    A normal distribution (`mean`, `deviation`; with `fan_in` the deviation is divided by the root of the last
    axis), or with `below` whole numbers under a config field, pairwise different along the last axis.
    """

    names: list[str]
    mean: float = 0.0
    deviation: float = 1.0
    fan_in: bool = False
    below: str | None = None


class Function(Strict):
    """A function of the package's module whose calls are seen: its path from the module, its argument names."""

    path: Dotted
    arguments: list[Name] | None = Field(default=None, description="for functions that do not tell them themselves")


class Decoding(Strict):
    """How a decoding step is asked for: the argument that takes the cache, and the output field that holds it."""

    argument: Name
    field: Name


class Package(Strict):
    """A class of an installed package: which version of it, by which digests, and how it is built and watched."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    version: str
    module: Dotted
    model: Name = Field(description="the class, in `module`")
    config: Name = Field(description="the class of its configuration, in `module`")
    digests: dict[str, Digest] = Field(description="file of the package -> SHA-256 of its bytes")
    dtype: Literal["float32", "bfloat16"] = "float32"
    options: dict[Name, str] = Field(default={}, description="further arguments when the class is built")
    arguments: dict[Name, Name] = Field(default={}, description="`ids`: the argument that takes token ids")
    decoding: Decoding | None = None
    results: dict[Name, list[Name]] = Field(default={}, description="class -> names of the items of its result")
    functions: dict[str, Function] = {}
    initialise: list[Fill]


class Implementation(Strict):
    """The code under documentation: a harness module with the folders whose text the facts depend on, or a package."""

    harness: Dotted | None = None
    sources: list[str] = []
    package: Package | None = None

    @model_validator(mode="after")
    def _one(self) -> Implementation:
        if (self.harness is None) == (self.package is None):
            raise ValueError("give a harness module with its sources, or a package")
        return self


class Table(Strict):
    """The published tensor table: the third side of every count."""

    path: str
    origin: Text


class TableEntry(BaseModel):
    """An entry of the table's file: one tensor pattern with its layers; other fields are its maker's."""

    model_config = ConfigDict(extra="ignore", strict=True)

    name_pattern: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    shape: Annotated[list[_Size], Field(max_length=8)]
    stored_shape: Annotated[list[_Size], Field(max_length=8)]
    dtype: Annotated[str, StringConstraints(max_length=40)]
    is_scale: bool
    instances: Annotated[int, Field(ge=1, le=1_000_000)]
    layers: Annotated[list[Annotated[int, Field(ge=0, lt=100_000)]], Field(max_length=10_000)]


class ModelFile(Strict):
    """model.yml: what the model is, what implements it, and where components occur."""

    schema_: Literal[1] = Field(alias="schema")
    name: Id
    title: Line
    purpose: Text
    config: str
    implementation: Implementation
    table: Table | None = None
    documented: list[str] = Field(default=["*"], description="tensor-name patterns that components own completely")
    configurations: list[Configuration]
    places: list[Place]
    kinds: dict[str, Kind] = Field(default={}, description="the kinds of layer that places name")
    relations: list[Relation] = []
