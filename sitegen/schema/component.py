# The nouns of a component: all the statements that its page makes.
"""components/*.yml."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from sitegen.schema.base import AxisText, Count, Id, Line, Lines, Name, Strict, Text
from sitegen.schema.figures import Figure
from sitegen.schema.model import Fill, Part


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
