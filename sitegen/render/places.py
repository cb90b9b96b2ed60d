# Where a component stands: the breadcrumb over the layer tree, and the titles of places.
"""Breadcrumbs and places of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sitegen.render import paths
from sitegen.render.page import Addresses
from sitegen.render.view import Crumb, Link
from sitegen.resolver import Model, Occurrence, Place


def layers_text(layers: Sequence[int]) -> str:
    """Layer numbers as ranges: `layers 0, 1`, `layers 3–7, 9–13`."""
    if not layers:
        return ""
    spans: list[list[int]] = []
    for layer in sorted(layers):
        if spans and layer == spans[-1][1] + 1:
            spans[-1][1] = layer
        else:
            spans.append([layer, layer])
    shown = ", ".join(f"{a}" if a == b else f"{a}–{b}" for a, b in spans)
    return f"layer{'s' if len(layers) > 1 else ''} {shown}"


def times_title(place: Place) -> str:
    """A place's title with how often it is repeated, as in `5 reusing layers` and `3 groups of 6 layers`."""
    repeat = place.row.repeat
    if repeat == 1 or place.title.startswith(f"{repeat:,} "):
        return place.title
    return f"{repeat:,} groups of {place.title}" if place.title[:1].isdigit() else f"{repeat:,} {place.title}"


def in_all(place: Place) -> int:
    """How often a place occurs, where its title alone does not say so; else 0."""
    return place.multiplicity if place.multiplicity != place.row.repeat else 0


def chain_title(place: Place) -> str:
    """A place named in full, outermost first."""
    return " › ".join(times_title(part) for part in place.chain)


def crumbs(model: Model, start: str, addresses: Addresses, occurrence: Occurrence) -> tuple[Crumb, ...]:
    """Breadcrumb of a component in a place: model, places, the components around it, itself."""
    path = [Crumb(model.sources.model.title.strip(), addresses.href(start, paths.model_page(model.name)))]
    for place in occurrence.place.chain:
        goal = paths.place_page(model.name, place.id)
        path.append(Crumb(times_title(place), addresses.href(start, goal), place.row.repeat))
    for parent in occurrence.parents:
        goal = paths.place_page(model.name, occurrence.place.id, parent)
        path.append(Crumb(model.component(parent).title.strip(), addresses.href(start, goal)))
    path.append(Crumb(model.component(occurrence.component).title.strip()))
    return tuple(path)


def canonical_crumbs(model: Model, start: str, addresses: Addresses, component: str) -> tuple[Crumb, ...]:
    """Breadcrumb of a canonical page: model, the components around it, itself."""
    path = [Crumb(model.sources.model.title.strip(), addresses.href(start, paths.model_page(model.name)))]
    for parent in ancestors(model, component):
        goal = paths.component_page(model.name, parent)
        path.append(Crumb(model.component(parent).title.strip(), addresses.href(start, goal)))
    path.append(Crumb(model.component(component).title.strip()))
    return tuple(path)


def ancestors(model: Model, component: str) -> tuple[str, ...]:
    """The components around a component, outermost first (those of its first place)."""
    occurrences = model.occurrences[component]
    return occurrences[0].parents if occurrences else ()


def neighbours(order: list[str], component: str) -> tuple[str | None, str | None]:
    """The components before and after in browsing order."""
    at = order.index(component)
    return (order[at - 1] if at else None), (order[at + 1] if at + 1 < len(order) else None)


def occurs(model: Model, component: str, place: Place) -> bool:
    """Whether a component occurs in a place; the parts of several places may be listed together."""
    return any(o.place.id == place.id for o in model.occurrences[component])


def component_link(
    model: Model, start: str, addresses: Addresses, component: str, place: Place | None = None, anchor: str = ""
) -> Link:
    """A link to a component: in the same place where it occurs there, else to its canonical page."""
    here = place is not None and occurs(model, component, place)
    goal = (
        paths.place_page(model.name, place.id, component)
        if here and place is not None
        else paths.component_page(model.name, component)
    )
    shared = model.component(component)
    return Link(shared.title.strip(), addresses.href(start, goal, anchor), shared.kind)


def occurrences_by_place(model: Model) -> Mapping[str, list[Occurrence]]:
    """Place id -> the components that occur there, in browsing order."""
    order = {id: number for number, id in enumerate(model.order())}
    found: dict[str, list[Occurrence]] = {id: [] for id in model.places}
    for occurrences in model.occurrences.values():
        for occurrence in occurrences:
            found[occurrence.place.id].append(occurrence)
    for list_ in found.values():
        list_.sort(key=lambda o: order.get(o.component, len(order)))
    return found
