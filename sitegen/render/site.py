# All pages of all models, the files beside them, and the order in which a reader walks through them.
"""The render stage: books in, a site out; a pure function but for its caches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sitegen.comparison import Comparison
from sitegen.diagnostics import SitegenError, SpecInvalid, nearest
from sitegen.figures import measure
from sitegen.render import comparison_view, family_view, llms, model_view, page_schema, paths, places
from sitegen.render.accounting_csv import accounting_csv
from sitegen.render.assets import SCRIPT, STYLE, site_assets
from sitegen.render.book import Book
from sitegen.render.claims_page import CLAIMS, NUMBERS, claims_pages, has_numbers
from sitegen.render.code import Highlighter
from sitegen.render.component_page import component_blocks, figure_html, flow_block
from sitegen.render.component_view import ComponentViews
from sitegen.render.configuration_page import configuration_page
from sitegen.render.context import Workshop
from sitegen.render.gotchas_page import gotchas_page
from sitegen.render.overview_json import components_json, model_json, place_json, places_json
from sitegen.render.page import Block, Page, block_markdown
from sitegen.render.pictures.bars import figure_view
from sitegen.render.pictures.connections import place_flow
from sitegen.render.pictures.layer_map import layer_map, swatch
from sitegen.render.pictures.schedule import map_view
from sitegen.render.pictures.shares import share_tree
from sitegen.render.prose import PageProse
from sitegen.render.settings import Settings
from sitegen.render.source_page import source_files, source_pages
from sitegen.render.symbols_page import symbols_page
from sitegen.render.templates import fill
from sitegen.render.tensors_page import tensors_csv, tensors_page
from sitegen.render.twin import component_json
from sitegen.render.view import Link
from sitegen.resolver import Occurrence

_INSERTION = re.compile(r"^<!-- sitegen:([a-z-]+)(?: (\S+))? -->[ \t]*$", re.M)


@dataclass(frozen=True)
class NavItem:
    """An entry of the navigation: a page, or a group of entries."""

    title: str
    path: str = ""
    items: tuple[NavItem, ...] = ()


@dataclass(frozen=True)
class Site:
    """Everything that a site builder needs besides the hand-written pages.

    `files` are written as they are; `insertions` replace the lines `<!-- sitegen:NAME -->` of hand-written
    pages (see `insert`); `nav` goes below the hand-written entries.  `missing` names models of the project that
    are not on the site, because they cannot be read or were not asked for.
    """

    pages: tuple[Page, ...]
    files: Mapping[str, bytes]
    nav: tuple[NavItem, ...]
    proofs: tuple[Book, ...]
    settings: Settings
    styles: tuple[str, ...] = (STYLE,)
    scripts: tuple[str, ...] = (SCRIPT,)
    missing: tuple[str, ...] = ()

    def insert(self, path: str, markdown: str) -> str:
        """A hand-written page (at `path`) with its insertion lines replaced.

        Raises `SitegenError` for a name that does not exist.
        """

        def replace(match: re.Match[str]) -> str:
            return self._insertion(path, match.group(1), match.group(2) or "")

        return _INSERTION.sub(replace, markdown)

    def _insertion(self, path: str, name: str, target: str) -> str:
        if name == "figure":
            return block_markdown(self._figure(path, target))
        templates = {"proof": "proof", "runs": "runs", "legend": "legend", "selftest": "selftest"}
        if name not in templates:
            raise SitegenError(f"{path}: no insertion {name!r}", hint=f"known ones: {', '.join(templates)}, figure")
        proofs = [model_view.proof(book, path, self.settings.addresses) for book in self.proofs]
        selftests = [(proof.model, book.selftest) for proof, book in zip(proofs, self.proofs, strict=True)]
        html = fill(f"{templates[name]}.html.j2", proofs=proofs, selftests=selftests)
        return block_markdown(html)

    def _figure(self, path: str, target: str) -> str:
        """A figure of a component, named as `component#figure`."""
        known: dict[str, tuple[Book, str, int]] = {}
        for book in self.proofs:
            for id, located in book.model.components.items():
                known |= {f"{id}#{f.id}": (book, id, k) for k, f in enumerate(located.component.figures)}
        if target not in known and self.missing:
            return fill("picture/missing.html.j2", models=self.missing)
        if target not in known:
            raise SitegenError(f"{path}: no figure {target!r}", hint=nearest(target, known))
        book, id, number = known[target]
        prose = PageProse(lambda expr: book.quote(id, expr), {})
        try:
            return figure_html(figure_view(measure(book.model, id, number), prose))
        except SpecInvalid:  # a finding of the static level
            return "<p>The record of this figure is incomplete.</p>"


def render(
    books: Sequence[Book],
    specs: Mapping[str, bytes] = {},  # noqa: B006
    settings: Settings | None = None,
    compared: Sequence[Comparison] = (),
) -> Site:
    """Render every page of the models, and of the comparisons among them.

    `specs` are the spec files by their path in the repository; they are served beside the pages.
    Raises `SpecInvalid` when a formula cannot be rendered and `SitegenError` when two pages would share a path.
    """
    settings = settings or Settings()
    pages: list[Page] = []
    nav: list[NavItem] = []
    files: dict[str, bytes] = {}
    highlighter = Highlighter(settings.cache / "code" if settings.cache else None)
    for book in books:
        workshop = Workshop(book, settings, highlighter)
        pages += model_pages(workshop)
        beside = [found for found in compared if found.after.model.name == book.model.name]
        quotes = {other.model.name: other.quote for other in books}
        pages += [comparison_page(found, settings, quotes) for found in beside]
        nav.append(model_nav(workshop, beside))
        prefix = f"spec/{book.model.name}/"
        files[paths.accounting_file(book.model.name)] = accounting_csv(book)
        if book.tensors:
            files[paths.tensors_file(book.model.name)] = tensors_csv(book.tensors)
        files |= {
            paths.spec_file(book.model.name, name): data for name, data in specs.items() if name.startswith(prefix)
        }
    _refuse_twins(pages)
    for page in pages:
        if page.twin is not None:
            files[paths.twin(page.path)] = page.json().encode()
    files[page_schema.FILE] = page_schema.schema_file()
    files[llms.FILE] = llms.llms_txt(books, pages, settings)
    proofs = "".join(
        fill("proof.html.j2", proofs=[model_view.proof(book, "index.md", settings.addresses)]) for book in books
    )
    html = (*(page.html() for page in pages), proofs)
    files |= site_assets(html, settings.cache / "font" if settings.cache else None)
    return Site(tuple(pages), files, tuple(nav), tuple(books), settings)


def model_pages(workshop: Workshop) -> Iterator[Page]:
    """The model's entry, its components, and every component in every place."""
    model = workshop.model
    yield model_page(workshop)
    yield from index_pages(workshop)
    yield from claims_pages(workshop)
    yield configuration_page(workshop)
    yield symbols_page(workshop)
    if workshop.book.tensors:
        yield tensors_page(workshop)
    if model.sources.gotchas:
        yield gotchas_page(workshop)
    yield from source_pages(workshop, source_files(workshop))
    if model.sources.family is not None:
        yield family_page(workshop)
    for id in workshop.order:
        yield component_page(workshop, id, None)
    for place, occurrences in places.occurrences_by_place(model).items():
        yield place_page(workshop, place, occurrences)
        for occurrence in occurrences:
            yield component_page(workshop, occurrence.component, occurrence)


def component_page(workshop: Workshop, id: str, occurrence: Occurrence | None) -> Page:
    """A component's page; those of places are left out of the search index."""
    views = ComponentViews(workshop, id, occurrence)
    view = views.view()
    title = view.title if occurrence is None else f"{view.title}, {view.place_title}"
    return Page(
        views.path,
        title,
        component_blocks(view),
        description=views.prose.plain(views.component.purpose.text),
        source=workshop.model.components[id].document.file,
        searchable=occurrence is None,
        twin=component_json(views),
    )


def model_page(workshop: Workshop) -> Page:
    """The entry page of a model: what is proved, the outermost components and places, what is counted."""
    model = workshop.model
    path = paths.model_page(model.name)
    view = model_view.model_view(workshop)
    outer = [row for row in model_view.component_tree(workshop, path) if not row.depth]
    blocks = [
        Block(fill("model.html.j2", v=view)),
        Block(fill("lookup.html.j2", links=lookup_links(workshop, path))),
    ]
    layers = map_view(model, path, workshop.settings.addresses)
    if layers is not None:
        html = fill("picture/layer_map.html.j2", v=layers, picture=layer_map(layers), swatch=swatch)
        blocks.append(Block(html, "Layer map", "layer-map"))
    blocks += [
        Block(fill("tree.html.j2", rows=outer, more=view.all_components), "Components", "components"),
        Block(fill("branches.html.j2", branches=view.places, more=view.all_places), "Places", "places"),
    ]
    if view.policies:
        blocks.append(Block(fill("policies.html.j2", v=view), "What is counted", "policies"))
    description = f"{view.title}: its components, where they occur, and what is counted."
    file, twin = model.sources.model_document.file, model_json(workshop)
    return Page(path, view.title, tuple(blocks), description, file, twin=twin)


def comparison_page(found: Comparison, settings: Settings, quotes: comparison_view.Quotes) -> Page:
    """What changed from one model to another."""
    before, after = found.before.model, found.after.model
    view = comparison_view.comparison_view(found, settings.addresses, quotes)
    parts = (("Sizes", "sizes"), ("New", "new"), ("Gone", "gone"), ("Changed", "changed"), ("The same", "same"))
    blocks = [Block(fill("comparison.html.j2", v=view))]
    for title, part in parts:
        blocks.append(Block(fill("comparison_section.html.j2", v=view, part=part), title, part))
    document = before.sources.maps_document or after.sources.maps_document
    path = paths.comparison_page(before.name, after.name)
    description = f"{view.before.text} and {view.after.text} component by component: new, gone, changed."
    return Page(path, view.title, tuple(blocks), description, document.file if document else "")


def family_page(workshop: Workshop) -> Page:
    """The model as a module of a library."""
    model = workshop.model
    view = family_view.family_view(workshop)
    blocks = [Block(fill("family.html.j2", v=view))]
    for section in view.sections:
        blocks.append(Block(fill("family_section.html.j2", v=view, s=section), section.title, section.anchor))
    title = model.sources.model.title.strip()
    description = f"{title} on one page: modules, names, formulas and checks, made from its components."
    document = model.sources.family_document
    file = document.file if document else ""
    return Page(paths.family_page(model.name), view.title, tuple(blocks), description, file)


def index_pages(workshop: Workshop) -> Iterator[Page]:
    """All components with their totals, and all places with what stands in them."""
    model = workshop.model
    title = model.sources.model.title.strip()
    file = model.sources.model_document.file
    path = paths.components_page(model.name)
    rows = model_view.component_tree(workshop, path)
    head = fill(
        "index.html.j2", title="Components", text=f"{len(rows):,} components of {title}, parts below their whole."
    )
    whole = sum(account.own for id in model.components if (account := workshop.book.account(id)))
    around = {id: parents[-1] for id in workshop.order if (parents := places.ancestors(model, id))}
    nodes = share_tree(list(zip(workshop.order, rows, strict=True)), around, whole)
    blocks = (Block(head), Block(fill("picture/shares.html.j2", nodes=nodes, whole=whole)))
    text = f"All components of {title} with their totals."
    yield Page(path, "Components", blocks, text, file, twin=components_json(workshop))
    path = paths.places_page(model.name)
    branches = model_view.place_branches(workshop, path)
    head = fill("index.html.j2", title="Places", text=f"Where components occur in {title}: its layers by kind.")
    blocks = (Block(head), Block(fill("branches.html.j2", branches=branches, more=None)))
    yield Page(path, "Places", blocks, f"The places of {title}.", file, twin=places_json(workshop))


def place_page(workshop: Workshop, place_id: str, occurrences: Sequence[Occurrence]) -> Page:
    """The page of a place."""
    model = workshop.model
    place = model.places[place_id]
    view_path = paths.place_page(model.name, place_id)
    view = model_view.place_view(workshop, place, occurrences)
    blocks = [Block(fill("place.html.j2", v=view))]
    sizes = model.symbols(place=place, layer=place.layers[0] if place.layers else None)
    flow = place_flow(
        model,
        place,
        sizes,
        lambda id: places.component_link(model, view_path, workshop.settings.addresses, id, place).href,
    )
    if flow is not None:
        blocks.append(flow_block(flow, "How they connect"))
    if view.tree:
        blocks.append(Block(fill("tree.html.j2", rows=view.tree, more=None), "Components here", "components"))
    if view.inner:
        blocks.append(Block(fill("branches.html.j2", branches=view.inner, more=None), "Places inside", "places"))
    blocks.append(Block(fill("walk.html.j2", v=view)))
    return Page(
        paths.place_page(model.name, place_id),
        places.chain_title(place),
        tuple(blocks),
        source=model.sources.model_document.file,
        searchable=False,
        twin=place_json(workshop, place, occurrences),
    )


def model_nav(workshop: Workshop, compared: Sequence[Comparison] = ()) -> NavItem:
    """Navigation of a model: components as the parts of one another, then the places."""
    model = workshop.model

    def component(id: str) -> NavItem:
        title, path = model.component(id).title.strip(), paths.component_page(model.name, id)
        parts = [part for part in model.children[id] if places.ancestors(model, part)[-1:] == (id,)]
        if not parts:
            return NavItem(title, path)
        return NavItem(title, items=(NavItem(title, path), *(component(part) for part in parts)))

    roots = [id for id in workshop.order if not places.ancestors(model, id)]
    here = places.occurrences_by_place(model)

    def place(id: str) -> NavItem:
        inner = [p.id for p in model.places.values() if p.parents and p.parents[-1].id == id]
        title, path = places.times_title(model.places[id]), paths.place_page(model.name, id)
        pages = tuple(
            NavItem(model.component(o.component).title.strip(), paths.place_page(model.name, id, o.component))
            for o in here[id]
        )
        return NavItem(title, items=(NavItem(title, path), *(place(p) for p in inner), *pages))

    outer = [p.id for p in model.places.values() if not p.parents]
    return NavItem(
        model.sources.model.title.strip(),
        items=(
            NavItem("Overview", paths.model_page(model.name)),
            *([NavItem("Family", paths.family_page(model.name))] if model.sources.family is not None else []),
            *(
                NavItem(
                    f"Changes from {found.before.model.sources.model.title.strip()}",
                    paths.comparison_page(found.before.model.name, model.name),
                )
                for found in compared
            ),
            NavItem(
                "Components",
                items=(NavItem("All components", paths.components_page(model.name)), *(component(id) for id in roots)),
            ),
            *reference_nav(workshop),
            NavItem(
                "Places", items=(NavItem("All places", paths.places_page(model.name)), *(place(id) for id in outer))
            ),
        ),
    )


def lookup_links(workshop: Workshop, start: str) -> list[Link]:
    """Links from the model's entry to the pages on which things are looked up."""
    href = workshop.settings.addresses.href
    items = [item.items[0] if item.items else item for item in reference_nav(workshop)]
    return [Link(item.title, href(start, item.path)) for item in items]


def reference_nav(workshop: Workshop) -> Iterator[NavItem]:
    """What is looked up rather than read: claims, numbers, configuration, symbols, tensors, source."""
    name = workshop.model.name
    if workshop.book.claims.claims:
        yield NavItem(CLAIMS, paths.claims_page(name))
    if has_numbers(workshop):
        yield NavItem(NUMBERS, paths.numbers_page(name))
    yield NavItem("Configuration", paths.configuration_page(name))
    yield NavItem("Symbols", paths.symbols_page(name))
    if workshop.book.tensors:
        yield NavItem("Tensors", paths.tensors_page(name))
    if workshop.model.sources.gotchas:
        yield NavItem("Gotchas", paths.gotchas_page(name))
    files = [NavItem(file.path, paths.source_page(name, file.path)) for file in source_files(workshop)]
    yield NavItem("Source", items=(NavItem("Source", paths.sources_page(name)), *files))


def _refuse_twins(pages: Sequence[Page]) -> None:
    seen: dict[str, Page] = {}
    for page in pages:
        other = seen.setdefault(page.path.lower(), page)
        if other is not page:
            raise SitegenError(
                f"two pages would have the address {page.path}: {other.title!r} and {page.title!r}",
                hint="rename the place or the component, so that place and component ids joined are unique",
            )
