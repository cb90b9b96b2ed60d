# Every statement that a component makes, with its id and its place in the spec.  A page, a report and
# the facts all speak of the same ids.
"""Enumerate the statements of a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sitegen import schema
from sitegen.diagnostics import Location
from sitegen.resolver import Model


@dataclass(frozen=True)
class Statement:
    """One thing that a component's page states.

    `carriers` are the statements (component, id) whose checks carry a sentence; `cites` evidence ids.
    """

    component: str
    id: str
    where: Location
    carriers: tuple[tuple[str, str], ...] = ()
    cites: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        return self.id.partition(":")[0]

    @property
    def name(self) -> str:
        return self.id.partition(":")[2]


#: Kinds that are sentences: carried by other statements, or cited.
SENTENCES = ("purpose", "why", "explanation", "numeric")
#: Kinds that only an external source carries.
CITATIONS = ("citation", "evidence")
#: Kinds of properties in which something other than the code is tried.
TRYING = ("control", "causal", "error")


def statements(model: Model) -> Iterator[Statement]:
    """All statements, component by component in browsing order."""
    for id in model.order():
        yield from component_statements(model, id)


def component_statements(model: Model, id: str) -> Iterator[Statement]:
    """The statements of one component."""
    located = model.components[id]
    c = located.component

    def carriers(by: list[str]) -> tuple[tuple[str, str], ...]:
        return tuple((name.partition("#")[0], name.partition("#")[2]) if "#" in name else (id, name) for name in by)

    yield Statement(id, "purpose", located.at("purpose", "text"), carriers(c.purpose.by), tuple(c.purpose.cites))
    yield Statement(id, "why", located.at("reason", "text"), carriers(c.reason.by), tuple(c.reason.cites))
    for number, port in enumerate(c.inputs):
        yield Statement(id, f"in:{port.name}", located.at("inputs", number, "axes"))
        yield Statement(id, f"dtype:{port.name}", located.at("inputs", number, "dtype"))
    for number, port in enumerate(c.outputs):
        yield Statement(id, f"out:{port.name}", located.at("outputs", number, "axes"))
        yield Statement(id, f"dtype:{port.name}", located.at("outputs", number, "dtype"))
    for number, row in enumerate(c.parameters):
        yield Statement(id, f"row:{row.id}", located.at("parameters", number, "count"))
        if row.stored:
            yield Statement(id, f"stored:{row.id}", located.at("parameters", number, "stored"))
    if c.module is not None:
        yield Statement(id, "module", located.at("module"))
    if c.parameters or c.parts:
        yield Statement(id, "account", located.at("parameters"))
    for number, step in enumerate(c.steps):
        yield Statement(id, f"step:{step.id}", located.at("steps", number, "expr"))
    if c.values is not None and c.values.kernel:
        yield Statement(id, "kernel", located.at("values", "operation"))
        yield Statement(id, "kernel-gpu", located.at("values", "operation"))
    for number, numeric in enumerate(c.numerics):
        where = located.at("numerics", number, "text")
        yield Statement(id, f"numeric:{numeric.id}", where, carriers(numeric.by), tuple(numeric.cites))
    for number, prop in enumerate(c.properties):
        yield Statement(id, f"property:{prop.id}", located.at("properties", number, "holds"))
    for number, case in enumerate(c.cases):
        yield Statement(id, f"case:{case.id}", located.at("cases", number, "gives"))
    for number, measurement in enumerate(c.measurements):
        yield Statement(id, f"measurement:{measurement.id}", located.at("measurements", number, "run"))
    for number, figure in enumerate(c.figures):
        yield Statement(id, f"figure:{figure.id}", located.at("figures", number, "panels"))
    for number, claim in enumerate(c.explanation):
        where = located.at("explanation", number, "text")
        yield Statement(id, f"explanation:{number + 1}", where, carriers(claim.by), tuple(claim.cites))
    for number, code in enumerate(c.code):
        yield Statement(id, f"pin:{code.id}", located.at("code", number, "path"))
    if c.expression is not None and c.expression.source is not None:
        yield Statement(id, "citation:expression", located.at("expression", "source"))
    for number, _ in enumerate(c.upstream):
        yield Statement(id, f"citation:{number}", located.at("upstream", number, "source"))
    for number, name in enumerate(c.evidence):
        yield Statement(id, f"evidence:{name}", located.at("evidence", number))
    for occurrence in model.occurrences[id]:
        where = model.sources.model_document.locate(("places",))
        yield Statement(id, f"place:{occurrence.place.id}", where)


def wrong_version(component: schema.Component, statement: str) -> schema.Property | schema.WorkedCase | None:
    """The check of that id if a wrong version runs in it, else None."""
    kind, _, name = statement.partition(":")
    if kind == "property":
        return next((p for p in component.properties if p.id == name and p.kind in TRYING), None)
    if kind == "case":
        return next((c for c in component.cases if c.id == name and c.instead is not None), None)
    return None
