# A model's entry page, the pages of its places, and the figures that the home page shows.
"""Views of a model as a whole and of its places."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from sitegen.render import paths, places, status
from sitegen.render.book import Book
from sitegen.render.context import Workshop
from sitegen.render.page import Addresses
from sitegen.render.places import layers_text
from sitegen.render.prose import PageProse
from sitegen.render.view import Crumb, Link, ModelView, PlaceBranch, PlaceView, PolicyRow, Proof, TreeRow
from sitegen.resolver import Occurrence, Place, part_id


def proof(book: Book, start: str, addresses: Addresses) -> Proof:
    """What a model's pages prove."""
    model = book.model
    verdicts = [verdict for id in model.components for verdict in book.of(id)]
    owned = sum(account.own for id in model.components if (account := book.account(id)))
    summary = status.status(verdicts, book.runs)
    return Proof(
        Link(model.sources.model.title.strip(), addresses.href(start, paths.model_page(model.name))),
        _prose().html(model.sources.model.purpose),
        len(model.components),
        len(verdicts),
        summary.executed,
        summary.counts,
        owned,
        summary.runs,
        summary,
    )


def _prose() -> PageProse:
    # Texts of a model or place stand outside any component, so there is nothing that they could quote.
    return PageProse(lambda expr: ("{" + expr + "}", ""), {})


def _row(
    book: Book, link: Link, id: str, depth: int, occurrences: Sequence[Occurrence], place: Place | None
) -> TreeRow:
    verdicts = book.of(id, place.id if place else None)
    instances = sum(o.instances for o in occurrences)
    account = book.account(id, place.id if place else None)
    summary = status.status(verdicts, ())
    return TreeRow(
        depth,
        link,
        book.model.component(id).kind,
        instances,
        account.total if account else 0,
        summary.headmark,
        summary.executed,
        len(verdicts),
    )


def component_tree(workshop: Workshop, start: str) -> tuple[TreeRow, ...]:
    """All components with totals over the model, parts below their whole."""
    book, model = workshop.book, workshop.model
    rows = []
    for id in workshop.order:
        link = places.component_link(model, start, workshop.settings.addresses, id)
        depth = len(places.ancestors(model, id))
        rows.append(_row(book, link, id, depth, model.occurrences[id], None))
    return tuple(rows)


def place_branches(workshop: Workshop, start: str, within: Place | None = None) -> tuple[PlaceBranch, ...]:
    """Places as a tree, each with the components that stand in it directly."""
    model, addresses = workshop.model, workshop.settings.addresses
    base = len(within.chain) if within else 0
    branches = []
    for place in model.places.values():
        if within is not None and (place is within or within.id not in [p.id for p in place.parents]):
            continue
        here = [part_id(part) for part in place.row.parts if places.occurs(model, part_id(part), place)]
        direct = tuple(places.component_link(model, start, addresses, id, place) for id in here)
        branches.append(
            PlaceBranch(
                len(place.parents) - base,
                Link(places.times_title(place), addresses.href(start, paths.place_page(model.name, place.id))),
                places.in_all(place),
                layers_text(place.layers),
                direct,
            )
        )
    return tuple(branches)


def model_view(workshop: Workshop) -> ModelView:
    """The entry page of a model."""
    book, model = workshop.book, workshop.model
    start = paths.model_page(model.name)
    prose = _prose()
    return ModelView(
        model.sources.model.title.strip(),
        prose.html(model.sources.model.purpose),
        proof(book, start, workshop.settings.addresses),
        tuple(branch for branch in place_branches(workshop, start) if branch.depth < 2),
        tuple(
            PolicyRow(policy.title.strip(), name, book.policies[name], prose.html(policy.scope))
            for name, policy in model.sources.policies.items()
            if name in book.policies
        ),
        Link(
            f"All {len(model.components):,} components",
            workshop.settings.addresses.href(start, paths.components_page(model.name)),
        ),
        Link(
            f"All {len(model.places):,} places",
            workshop.settings.addresses.href(start, paths.places_page(model.name)),
        ),
    )


def place_view(workshop: Workshop, place: Place, occurrences: Sequence[Occurrence]) -> PlaceView:
    """The page of a place: what stands in it, and the places inside."""
    model, addresses = workshop.model, workshop.settings.addresses
    start = paths.place_page(model.name, place.id)
    crumbs = [Crumb(model.sources.model.title.strip(), addresses.href(start, paths.model_page(model.name)))]
    crumbs += [
        Crumb(places.times_title(p), addresses.href(start, paths.place_page(model.name, p.id))) for p in place.parents
    ]
    crumbs.append(Crumb(places.times_title(place)))
    rows = tuple(
        _row(
            workshop.book,
            places.component_link(model, start, addresses, o.component, place),
            o.component,
            len(o.parents),
            [o],
            place,
        )
        for o in occurrences
    )
    order = list(model.places)
    at = order.index(place.id)

    def link(id: str) -> Link:
        other = model.places[id]
        return Link(places.chain_title(other), addresses.href(start, paths.place_page(model.name, id)))

    parent = (
        link(place.parents[-1].id)
        if place.parents
        else Link(model.sources.model.title.strip(), addresses.href(start, paths.model_page(model.name)))
    )
    return PlaceView(
        places.times_title(place),
        tuple(crumbs),
        places.in_all(place),
        layers_text(place.layers),
        _prose().html(place.row.text) if place.row.text else Markup(""),
        place.row.path,
        rows,
        place_branches(workshop, start, place),
        link(order[at - 1]) if at else None,
        link(order[at + 1]) if at + 1 < len(order) else None,
        parent,
    )
