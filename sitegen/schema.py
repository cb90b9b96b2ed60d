# The nouns of a spec, as authors write them: typed, frozen, nothing resolved yet.
#
# Pydantic validates them and exports the JSON Schema that editors use (`sitegen schema`).  Positions
# are not kept here: a value's place is looked up by its path in the `Document` it came from.
"""What authors write: model, symbols, sources, evidence, policies and components."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

_ID = r"^[a-z0-9][a-z0-9_.-]*(/[a-z0-9][a-z0-9_.-]*)*$"
Id = Annotated[str, StringConstraints(pattern=_ID, max_length=120)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*'*$", max_length=40)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=20_000)]
Line = Annotated[str, StringConstraints(min_length=1, max_length=400, pattern=r"^[^\n]*\n?$")]
Count = Annotated[int | str, Field(description="an exact integer expression over symbols")]
Mark = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]{1,2}$")]
AxisText = Annotated[str, BeforeValidator(lambda v: str(v) if type(v) is int else v)]
Lines = Annotated[list[int], Field(description="first and last line, from 1, both cited")]


def _revision(value: str) -> str:
    if len(value) != 40 or any(c not in "0123456789abcdef" for c in value):
        raise ValueError(f"a revision is a full commit id of 40 hex digits, not {value!r}")
    return value


Revision = Annotated[str, AfterValidator(_revision)]

MAX_LAYERS = 10_000


def _layers(value: str) -> str:
    first, last = (int(number) for number in value.split("-"))
    if not first <= last < MAX_LAYERS:
        raise ValueError(f"layers are first-last, from 0, below {MAX_LAYERS:,}, not {value!r}")
    return value


LayerRange = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,9}-[0-9]{1,9}$"), AfterValidator(_layers)]
LayerList = Annotated[list[Annotated[int, Field(ge=0, lt=MAX_LAYERS)]], Field(max_length=MAX_LAYERS)]


class Strict(BaseModel):
    """Base of all spec nouns: unknown fields are refused, values are frozen, types are not coerced."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=False)


# --- model.yml -------------------------------------------------------------------------------------


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


Dotted = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


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


_Size = Annotated[int, Field(ge=0, lt=2**53)]


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


# --- symbols, sources, evidence, policies ----------------------------------------------------------


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


# --- components ------------------------------------------------------------------------------------


class Claim(Strict):
    """A sentence, and what carries it: ids of statements (`by`) or of evidence entries (`cites`)."""

    text: Text
    by: list[str] = []
    cites: list[Id] = []

    @model_validator(mode="after")
    def _carried(self) -> Claim:
        if not self.by and not self.cites:
            raise ValueError("a sentence names the checks that carry it (by) or its sources (cites)")
        return self


class Reason(Strict):
    """Why the component is as it is; `given: false` says that the report gives no reason."""

    given: bool
    text: Text
    section: str | None = None
    by: list[str] = []
    cites: list[Id] = []


class Port(Strict):
    """An input or output: named axes (`letter` or `letter: size`), and the number type at run time."""

    name: Name
    axes: list[AxisText]
    dtype: str
    text: Line
    component: Id | None = Field(default=None, description="where it comes from or goes to")


class Row(Strict):
    """An accounting row: the tensor elements that the component owns, and their count."""

    id: Id
    tensor: str
    slice: Annotated[str, StringConstraints(pattern=r"^\[[^\]]*\]$")] | None = None
    axes: list[AxisText]
    count: Count
    dtype: str
    text: Line
    each: dict[Name, Count] = {}
    role: Literal["parameter", "buffer"] = Field(default="parameter", description="a buffer is stated, not counted")
    stored: list[str] = Field(
        default=[], description="names in a saved checkpoint, where they differ; several for a tensor that is split"
    )


class Module(Strict):
    """The module of the implementation that the component is: its path within the place, and its class."""

    path: str
    kind: Annotated[Name, Field(alias="class")]


class View(Strict):
    """A tensor that the page shows although its elements belong to other components."""

    tensor: str
    axes: list[AxisText]
    text: Line


class Step(Strict):
    """One formula in index notation; `main` ones are shown first, the rest folded."""

    id: Id
    expr: Text
    text: Line
    tex: str | None = None
    main: bool = False
    indistinct: dict[str, Line] = Field(default={}, description="mutant -> why no regime can tell it apart")


class Binding(Strict):
    """Where the values of the formulas are seen in a run: an operation's arguments and results.

    `occurrence` is the number of the call within the module in one phase of a run; `bind` maps formula
    names to argument or result fields: `field`, `operation#occurrence.field`, with `module:` in front for a
    module inside this one, or `/module:` for another one.
    """

    operation: str
    occurrence: int = 0
    module: str = ""
    bind: dict[Name, str]
    vary: list[Name] = Field(default=[], description="inputs that the regimes drive")
    parameters: list[Name] = Field(default=[], description="inputs that are parameters, without batch axes")
    flat: list[Name] = Field(default=[], description="values whose batch and position axes are laid end to end")
    kernel: bool = Field(default=False, description="the operation has a TileLang twin to compare with")
    places: list[Id] | None = None
    configurations: list[Id] | None = Field(default=None, description="the only configurations that make the call")


class Numeric(Strict):
    """A statement on number types, epsilons or order of operations."""

    id: Id
    text: Line
    by: list[str] = []
    cites: list[Id] = []
    dtype: dict[Name, str] = {}
    constant: dict[Name, str] = Field(default={}, description="symbol -> value as the config file writes it")


class Tolerance(Strict):
    """How close is equal, and why: absolute plus relative."""

    kind: Literal["exact", "ulp", "fp64", "fp32", "bf16", "measured"]
    value: float = 0.0
    reason: Line | None = None


class Edit(Strict):
    """A change to one value of a run: `value` is `operation#n.field` in `module`."""

    value: str
    module: str = ""
    add: float = 0.0
    scale: float = 1.0
    positions: list[int] | None = None


class Trial(Strict):
    """A run of its own: fields that differ from the first small configuration (`default: true`: from the package's
    own defaults), further rules of the recipe, options of the class, and what the model is given."""

    config: dict[str, Any] = {}
    default: bool = False
    initialise: list[Fill] = []
    options: dict[Name, str] = {}
    given: Literal["ids", "embeddings"] = "ids"


class Point(Strict):
    """A point of a sweep: what is set there, and the error that is expected, within a factor."""

    label: Line
    trial: Trial
    error: Annotated[float, Field(gt=0)]


class Property(Strict):
    """A statement that runs must bear out.

    identity  `left = right` holds elementwise within the tolerance, in the named regimes
    bound     `left <= right` holds elementwise
    control   `left = right` must fail, by at least `margin`
    error     `trial` is refused: with an exception of the class `raises` whose text holds `says`
    size      the model of `trial` (from the released configuration) has as many `parameters`
    sweep     the error of `left = right`, relative to the largest value, is as stated at each of `points`, within a
              `factor`
    causal    after `edit`, the values in `moves` change and those in `still` do not; a value is
              `operation#n.field`, with `module:` in front for a module inside, or `/module:` for another one
    """

    id: Id
    text: Line
    kind: Literal["identity", "bound", "control", "causal", "error", "size", "sweep"] = "identity"
    holds: str | None = None
    regimes: list[str] | None = None
    configurations: list[Id] | None = Field(default=None, description="the only configurations in which it is stated")
    tolerance: Tolerance | None = None
    margin: float | None = None
    edit: Edit | None = None
    moves: list[str] = []
    still: list[str] = []
    module: str = ""
    trial: Trial | None = None
    raises: Name | None = None
    says: Line | None = None
    parameters: int | None = None
    points: list[Point] = []
    factor: Annotated[float, Field(gt=1, le=10)] = 3.0

    @model_validator(mode="after")
    def _complete(self) -> Property:
        if self.kind == "causal":
            if self.edit is None or not self.moves or self.holds:
                raise ValueError("a causal property needs edit and moves (and still), and no holds")
            edited = f"{self.edit.module}:{self.edit.value}" if self.edit.module else self.edit.value
            if edited in self.moves:
                raise ValueError(f"moves names the edited value {edited}: it changes whatever the code does")
        elif self.kind in ("error", "size"):
            wanted = self.raises if self.kind == "error" else self.parameters
            if self.trial is None or wanted is None or self.holds:
                needs = "raises" if self.kind == "error" else "parameters"
                raise ValueError(f"a property of kind {self.kind} needs trial and {needs}, and no holds")
        elif not self.holds:
            raise ValueError(f"a property of kind {self.kind} needs holds")
        if self.kind == "identity" and self.tolerance is None:
            raise ValueError("an identity needs a tolerance")
        if self.kind == "sweep" and len(self.points) < 2:
            raise ValueError("a sweep needs points")
        if self.kind == "control" and not self.margin:
            raise ValueError("a control needs a margin by which it must fail")
        return self


class Instead(Strict):
    """The wrong version of a worked case: another function, other arguments, or a result that must not come."""

    text: Line
    call: str | None = None
    arguments: dict[str, Any] = Field(default={}, alias="with")
    gives: dict[str, Any] = {}

    @model_validator(mode="after")
    def _something(self) -> Instead:
        if not (self.call or self.arguments or self.gives):
            raise ValueError("the wrong version needs another call, other arguments (with) or a result (gives)")
        return self


class WorkedCase(Strict):
    """A function of the implementation called with literal arguments, and what it gives.

    An argument is a plain value, a list (a tensor where the function takes one), `{values: …, dtype: …}`,
    `{zeros: shape}` or `{symbol: expression}` over the released symbols; `-inf` may stand in `values`.  A key
    of `gives` is a result with indices or an attribute behind it: `result`, `result[0][2:4]`, `codes.shape`.
    """

    id: Id
    text: Line
    call: str
    arguments: dict[str, Any] = Field(alias="with")
    gives: dict[str, Any] = Field(min_length=1)
    tolerance: Annotated[float, Field(ge=0)] = Field(default=0.0, description="largest absolute difference of floats")
    instead: Instead | None = None


class Measurement(Strict):
    """Something that only a GPU can show: `run` names what the implementation measures, `with` its arguments."""

    id: Id
    text: Line
    run: str
    arguments: dict[str, Any] = Field(default={}, alias="with")


class Code(Strict):
    """A pin into the project's own code: symbol and quoted fragment, resolved to lines."""

    id: Id
    path: str
    symbol: str = ""
    fragment: str = ""
    text: Line | None = None
    main: bool = False


class Citation(Strict):
    """Upstream lines: cited, never copied."""

    source: Id
    lines: Lines
    text: Line | None = None


class Expression(Strict):
    """How the component is called in code: our expression with its pin, and upstream's lines."""

    code: Line
    pin: Id | None = None
    source: Id | None = None
    lines: Lines | None = None


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


class Component(Strict):
    """One component: a page, and all the statements that it makes."""

    id: Id
    title: Line
    kind: Literal["learned", "computed", "cache", "fixed"]
    purpose: Claim
    expression: Expression | None = None
    parts: list[Id | Part] = []
    inputs: list[Port] = []
    outputs: list[Port] = []
    parameters: list[Row] = []
    module: Module | None = None
    views: list[View] = []
    values: Binding | None = None
    steps: list[Step] = []
    numerics: list[Numeric] = []
    properties: list[Property] = []
    cases: list[WorkedCase] = []
    measurements: list[Measurement] = []
    reason: Reason
    explanation: list[Claim] = []
    figures: list[Figure] = []
    code: list[Code] = []
    upstream: list[Citation] = []
    evidence: list[Id] = []
    uses: list[Id] = []


class Variant(Strict):
    """One of several components written from a shared text: `${name}` in any text stands for its value."""

    prefix: Id | None = None
    set: dict[str, str]


class ComponentFile(Strict):
    """A component file: one component, or a shared text with its variants and components."""

    variants: list[Variant] = []
    components: list[Component] = []


# --- map.yml ---------------------------------------------------------------------------------------


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


# --- family.yml ------------------------------------------------------------------------------------


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
