# The nouns of the files beside the components: letters, configuration, sources, evidence, policies, gotchas.
"""symbols.yml, config.yml, sources.yml, evidence.yml, policies.yml and gotchas-*.yml."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from sitegen.schema.base import Count, Id, LayerRange, Line, Lines, Name, Revision, Strict, Text


class ByLayer(Strict):
    """A value that differs by layer: `values` is a config list by layer, or by the layers that `layers` lists."""

    values: str
    layers: str | None = None


class Symbol(Strict):
    """One letter of the formulas: its TeX, meaning, and value (a count expression over config fields)."""

    tex: Line
    meaning: Line
    value: Count | None = None
    field: str | None = Field(default=None, description="a config field whose value it is, also a float")
    by_layer: ByLayer | None = None
    infinite: bool = Field(default=False, description="it stands for infinity, as in a mask")
    upstream: str | None = None
    report: str | None = None

    @model_validator(mode="after")
    def _one_value(self) -> Symbol:
        if sum(v is not None for v in (self.value, self.field, self.by_layer, self.infinite or None)) > 1:
            raise ValueError("give at most one of value, field, by_layer, infinite")
        return self


class SymbolsFile(Strict):
    symbols: dict[Name, Symbol]


class ConfigField(Strict):
    """A field of the configuration in words; `unread` says why no module reads it, `by` whom it concerns then."""

    meaning: Line
    unread: Line | None = None
    by: list[Id] = []

    @model_validator(mode="after")
    def _by_only_unread(self) -> ConfigField:
        if self.by and self.unread is None:
            raise ValueError("`by` stands with `unread` alone: a field that modules read is traced to its components")
        return self


class ConfigFile(Strict):
    """config.yml: what each field of the released configuration means."""

    fields: dict[Name, ConfigField]


class Source(Strict):
    """A cited place of publication: a file of a repository at a revision, or a document."""

    title: Line
    repository: str | None = None
    revision: Revision | None = None
    path: str | None = None
    url: Annotated[str, StringConstraints(pattern=r"^https://[^\s<>\"']+$")] | None = None
    lines: int | None = Field(default=None, description="how many lines the file has, where known")
    sha256: str | None = None


class SourcesFile(Strict):
    sources: dict[Id, Source]
    checkouts: dict[str, str] = Field(default={}, description="repository -> local folder to check citations against")


class Evidence(Strict):
    """One sentence that a source carries, and where in it."""

    kind: Literal["direct", "derived", "external"]
    claim: Line
    source: Id
    lines: Lines | None = None
    section: str | None = None


class EvidenceFile(Strict):
    evidence: dict[Id, Evidence]


class Term(Strict):
    """One addend of a policy: components in places (with their parts), all of it or a share of the tensors."""

    places: list[Id] | None = None
    components: list[Id] | None = None
    layers: LayerRange | None = None
    share: list[Count] | None = Field(default=None, description="[numerator, denominator] applied to each row")
    sign: Literal[1, -1] = 1
    text: Line | None = None


class Policy(Strict):
    """What is counted together, in words and as terms."""

    title: Line
    scope: Text
    terms: list[Term]
    published: int | None = None
    evidence: list[Id] = []


class PoliciesFile(Strict):
    policies: dict[Id, Policy]


class Gotcha(Strict):
    """A mistake that ports make: what the wrong version does, the checks that run it, or why none can.

    `by` names controls, causal edits and worked cases with a wrong version, as `component#statement`; prose quotes
    the figures of the first component.
    """

    point: Annotated[int, Field(ge=1, le=9999)]
    title: Line
    text: Text
    components: Annotated[list[Id], Field(min_length=1)]
    by: list[str] = []
    unexecuted: Line | None = None

    @model_validator(mode="after")
    def _shown_or_said(self) -> Gotcha:
        if bool(self.by) == (self.unexecuted is not None):
            raise ValueError("give either the checks that run the wrong version (by) or why none can (unexecuted)")
        return self


class GotchasFile(Strict):
    """gotchas-*.yml: mistakes of ports in one chapter of the model."""

    title: Line
    gotchas: list[Gotcha]
