# What the pages of a model and of its places say, as data.
"""JSON of the pages that are not about one component."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sitegen.render import status
from sitegen.render.context import Workshop
from sitegen.render.prose import PageProse
from sitegen.render.twin import SCHEMA
from sitegen.resolver import Occurrence, Place


def _head(workshop: Workshop, page: str, title: str) -> dict[str, Any]:
    return {"schema": SCHEMA, "page": page, "model": workshop.model.name, "title": title}


def _plain(text: str) -> str:
    return PageProse(lambda expr: ("{" + expr + "}", ""), {}).plain(text)


def model_json(workshop: Workshop) -> dict[str, Any]:
    """The model's entry: what is proved and what is counted."""
    model, book = workshop.model, workshop.book
    verdicts = [verdict for id in model.components for verdict in book.of(id)]
    summary = status.status(verdicts, ())
    return {
        **_head(workshop, "model", model.sources.model.title.strip()),
        "purpose": _plain(model.sources.model.purpose),
        "components": len(model.components),
        "statements": len(verdicts),
        "executed": summary.executed,
        "states": {state: count for state, count in summary.counts if count},
        "policies": [
            {"name": name, "title": policy.title.strip(), "scope": _plain(policy.scope), "count": book.policies[name]}
            for name, policy in model.sources.policies.items()
            if name in book.policies
        ],
    }


def components_json(workshop: Workshop) -> dict[str, Any]:
    """All components with their totals."""
    return {
        **_head(workshop, "components", "Components"),
        "components": [
            _component(workshop, id, sum(o.instances for o in workshop.model.occurrences[id]), None)
            for id in workshop.order
        ],
    }


def _component(workshop: Workshop, id: str, instances: int, place: str | None) -> dict[str, Any]:
    model, book = workshop.model, workshop.book
    component, account = model.component(id), book.account(id, place)
    verdicts = book.of(id, place)
    return {
        "component": id,
        "title": component.title.strip(),
        "kind": component.kind,
        "parts": list(model.children[id]),
        "instances": instances,
        "parameters": account.total if account else 0,
        "statements": len(verdicts),
        "executed": sum(verdict.state == "executed" for verdict in verdicts),
    }


def places_json(workshop: Workshop) -> dict[str, Any]:
    """All places."""
    return {
        **_head(workshop, "places", "Places"),
        "places": [_place(place) for place in workshop.model.places.values()],
    }


def _place(place: Place) -> dict[str, Any]:
    return {
        "place": place.id,
        "title": place.title,
        "parent": place.parents[-1].id if place.parents else None,
        "repeat": place.row.repeat,
        "instances": place.multiplicity,
        "layers": list(place.layers),
        "module": place.row.path,
    }


def place_json(workshop: Workshop, place: Place, occurrences: Sequence[Occurrence]) -> dict[str, Any]:
    """A place with what stands in it."""
    return {
        **_head(workshop, "place", place.title),
        **_place(place),
        "components": [_component(workshop, o.component, o.instances, place.id) for o in occurrences],
    }
