# A map of the site for language models, in the form of llmstxt.org: one title, one summary, lists of links.
"""The file `llms.txt`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sitegen.render import page_schema, paths
from sitegen.render.book import Book
from sitegen.render.page import Page
from sitegen.render.settings import Settings

FILE = "llms.txt"


def llms_txt(books: Sequence[Book], pages: Sequence[Page], settings: Settings) -> bytes:
    """Links to the Markdown twins where they are published, else to the pages' JSON."""
    by_path = {page.path: page for page in pages}
    names = ", ".join(book.model.sources.model.title.strip() for book in books) or "no model"
    lines = [
        f"# {' '.join(settings.site_name.split())}",
        "",
        f"> Documentation of {names}, component by component. Every statement says how it was verified: executed "
        "against an implementation, checked statically, cited, stale, or not run.",
        "",
        "Each page has the same content as data in `page.json` beside it; its form is described by "
        f"[a JSON Schema]({_address(settings, page_schema.FILE)}).",
        "",
    ]
    for book in books:
        lines += [f"## {book.model.sources.model.title.strip()}", "", *_links(_entries(book), by_path, settings), ""]
        components = [paths.component_page(book.model.name, id) for id in book.model.order()]
        title = f"Components of {book.model.sources.model.title.strip()}"
        lines += [f"## {title}", "", *_links(components, by_path, settings), ""]
    optional = []
    for book in books:
        name, title = book.model.name, book.model.sources.model.title.strip()
        accounting, tensors = paths.accounting_file(name), paths.tensors_file(name)
        optional.append(f"- [Accounting of {title}]({_address(settings, accounting)}): every row as CSV")
        if book.tensors:
            optional.append(f"- [Tensors of {title}]({_address(settings, tensors)}): every name pattern as CSV")
        optional += _links([paths.places_page(name), paths.sources_page(name)], by_path, settings)
    if optional:
        lines += ["## Optional", "", *optional]
    return ("\n".join(lines).rstrip() + "\n").encode()


def _entries(book: Book) -> Iterator[str]:
    name = book.model.name
    yield paths.model_page(name)
    yield paths.components_page(name)
    yield paths.claims_page(name)
    yield paths.numbers_page(name)
    yield paths.configuration_page(name)
    yield paths.symbols_page(name)
    yield paths.tensors_page(name)
    yield paths.gotchas_page(name)


def _links(wanted: Iterator[str] | Sequence[str], by_path: dict[str, Page], settings: Settings) -> list[str]:
    found = [by_path[path] for path in wanted if path in by_path]
    return [
        f"- [{page.title.replace('[', '(').replace(']', ')')}]({_page_address(page, settings)})"
        + (f": {' '.join(page.description.split())}" if page.description else "")
        for page in found
    ]


def _page_address(page: Page, settings: Settings) -> str:
    if page.twin is None:
        return _address(settings, page.path.removesuffix("index.md"))
    return _address(settings, page.path if settings.markdown_twins else paths.twin(page.path))


def _address(settings: Settings, path: str) -> str:
    return f"{settings.site_url.rstrip('/')}/{path}" if settings.site_url else path
