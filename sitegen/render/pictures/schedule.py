# From a model's schedule and relations to its layer map; nothing here knows what any layer is called.
"""Build the view of a model's layer map."""

from __future__ import annotations

from collections.abc import Sequence

from sitegen.diagnostics import SpecInvalid
from sitegen.relations import Related, place_of_layer, related
from sitegen.render import paths
from sitegen.render.page import Addresses
from sitegen.render.pictures.layer_map import CellView, KindView, MapRow, MapView, TrackView
from sitegen.render.places import layers_text
from sitegen.resolver import Model, Place


def map_view(model: Model, start: str, addresses: Addresses) -> MapView | None:
    """The layer map as seen from the page `start`; None for a model without layers.

    None as well where a relation contradicts the schedule: that is a finding of the static level, and no picture.
    """
    places = place_of_layer(model)
    try:
        relations = related(model)
    except SpecInvalid:
        return None
    if not places:
        return None
    kinds = _kinds(model, places)
    titles = {kind.name: kind.title for kind in kinds}
    cells = []
    for layer, place in places.items():
        says = [text for relation in relations if (text := relation.says(layer))]
        cells.append(
            CellView(
                layer,
                kind_of(place),
                addresses.href(start, paths.place_page(model.name, place.id)),
                "; ".join([f"layer {layer}: {titles[kind_of(place)]}", *says]),
                place.chain[0].id,
                _group(place, layer),
            )
        )
    tracks = tuple(
        TrackView(
            r.relation.title.strip(),
            r.relation.mark,
            r.owners,
            r.source,
            r.relation.owns.strip(),
            (r.relation.uses or "").strip(),
        )
        for r in relations
    )
    return MapView(kinds, tuple(cells), tracks, _rows(cells, titles, relations))


def kind_of(place: Place) -> str:
    """The kind of a place's layers: as declared, else the place itself."""
    return place.row.kind or place.id


def _kinds(model: Model, places: dict[int, Place]) -> tuple[KindView, ...]:
    declared, marks = model.sources.model.kinds, set[str]()
    layers: dict[str, list[int]] = {}
    for layer, place in places.items():
        layers.setdefault(kind_of(place), []).append(layer)
    found = []
    for name, here in layers.items():
        title = declared[name].title.strip() if name in declared else places[here[0]].title
        mark = declared[name].mark if name in declared else _mark(title, marks)
        marks.add(mark)
        found.append(KindView(name, title, mark, layers_text(here), len(here)))
    return tuple(found)


def _mark(title: str, taken: set[str]) -> str:
    """One or two letters or digits for a kind that declares none."""
    letters = [word[0].upper() for word in title.split() if word[0].isascii() and word[0].isalpha()] or ["K"]
    candidates = [*letters, *(letters[0] + str(digit) for digit in range(2, 10))]
    free = (mark for mark in candidates if mark not in taken)
    return next(free, "") or next(str(n) for n in range(100) if str(n) not in taken)


def _group(place: Place, layer: int) -> str:
    """What a layer is drawn together with: one instance of the place around its own."""
    outer = place.parents[-1] if place.parents else place
    size = max(1, len(outer.layers) // outer.multiplicity)
    return f"{outer.id}#{outer.layers.index(layer) // size}"


def _rows(cells: Sequence[CellView], titles: dict[str, str], relations: Sequence[Related]) -> tuple[MapRow, ...]:
    """Neighbouring layers of one kind and one page of which the relations say the same, in one row."""
    runs: list[tuple[list[int], CellView, tuple[str, ...]]] = []
    for cell in cells:
        says = tuple(relation.says(cell.layer) for relation in relations)
        if runs:
            layers, first, said = runs[-1]
            if (first.href, first.group, said, layers[-1] + 1) == (cell.href, cell.group, says, cell.layer):
                layers.append(cell.layer)
                continue
        runs.append(([cell.layer], cell, says))
    return tuple(MapRow(layers_text(layers), cell.href, titles[cell.kind], says) for layers, cell, says in runs)
