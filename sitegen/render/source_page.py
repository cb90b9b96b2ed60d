# Files of the implementation as pages: every line has an anchor, and cited lines lead back to who cites them.
"""Self-hosted source pages."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

from markupsafe import Markup

from sitegen.render import excerpts, paths
from sitegen.render.context import Workshop
from sitegen.render.page import Block, Page
from sitegen.render.templates import fill
from sitegen.render.view import Link


@dataclass(frozen=True)
class CitedRange:
    """Lines of a file that pages cite, with the places on those pages where they stand."""

    first: int
    last: int
    links: tuple[Link, ...]

    @property
    def lines(self) -> str:
        return excerpts.lines_text(self.first, self.last)

    @property
    def anchor(self) -> str:
        return f"cited-{self.first}-{self.last}"


@dataclass(frozen=True)
class SourceFile:
    """A file that some component pins."""

    path: str
    text: str
    ranges: tuple[CitedRange, ...]

    @property
    def num_lines(self) -> int:
        return self.text.count("\n") + (not self.text.endswith("\n") and bool(self.text))


def source_files(workshop: Workshop) -> tuple[SourceFile, ...]:
    """The pinned files in order of their paths; a file that cannot be read is none."""
    book, model, addresses = workshop.book, workshop.model, workshop.settings.addresses
    texts: dict[str, str] = {}
    cited: dict[str, dict[tuple[int, int], dict[Link, None]]] = {}
    for id in workshop.order:
        component = model.component(id)
        states = {c.id: book.codes[id, c.id] for c in component.code if (id, c.id) in book.codes}
        anchors = excerpts.pin_anchors(excerpts.groups(component.code, states), states)
        for name, state in states.items():
            if not state.text:
                continue
            texts[state.path] = state.text
            ranges = cited.setdefault(state.path, {})
            if state.lines is not None and name in anchors:
                start = paths.source_page(model.name, state.path)
                href = addresses.href(start, paths.component_page(model.name, id), anchors[name])
                link = Link(component.title.strip(), href, f"{id}, {name}")
                ranges.setdefault(state.lines, {})[link] = None
    return tuple(
        SourceFile(
            path,
            texts[path],
            tuple(CitedRange(first, last, tuple(links)) for (first, last), links in sorted(cited[path].items())),
        )
        for path in sorted(texts)
    )


def source_pages(workshop: Workshop, files: tuple[SourceFile, ...]) -> Iterator[Page]:
    """The list of files, then each of them."""
    model, addresses = workshop.model, workshop.settings.addresses
    title = model.sources.model.title.strip()
    start = paths.sources_page(model.name)
    rows = [(Link(f.path, addresses.href(start, paths.source_page(model.name, f.path))), f) for f in files]
    head = fill("index.html.j2", title="Source", text=f"{len(files):,} files of the implementation that pages cite.")
    blocks = (Block(head), Block(fill("sources.html.j2", rows=rows)))
    yield Page(start, "Source", blocks, f"The implementation of {title} as its pages cite it.", searchable=False)
    for file in files:
        head = fill("index.html.j2", title=file.path, text=f"{file.num_lines:,} lines, cited by {_pages(file)} pages.")
        body = fill("source.html.j2", file=file, code=code_html(workshop, file))
        yield Page(
            paths.source_page(model.name, file.path),
            posixpath.basename(file.path),
            (Block(head), Block(body)),
            f"{file.path}: highlighted, with the pages that cite its lines.",
            file.path,
            searchable=False,
            twin=source_json(model.name, file),
        )


def source_json(model: str, file: SourceFile) -> dict[str, Any]:
    """A file with the ranges of lines that pages cite."""
    return {
        "schema": 1,
        "page": "source",
        "model": model,
        "title": file.path,
        "path": file.path,
        "lines": file.num_lines,
        "cited": [
            {"lines": [cited.first, cited.last], "by": [link.title for link in cited.links]} for cited in file.ranges
        ],
    }


def _pages(file: SourceFile) -> str:
    return f"{len({link.href.partition('#')[0] for cited in file.ranges for link in cited.links}):,}"


def code_html(workshop: Workshop, file: SourceFile) -> Markup:
    """The lines of a file; the number of a cited line leads to the page that cites it, or to the list of several."""
    lines = workshop.highlighter.file_lines(file.path, file.text)
    gutter, body = [], []
    for number, html in enumerate(lines, 1):
        ranges = [cited for cited in file.ranges if cited.first <= number <= cited.last]
        links = [link for cited in ranges for link in cited.links]
        if links:
            narrow = min(ranges, key=lambda cited: cited.last - cited.first)
            href = links[0].href if len(links) == 1 else f"#{narrow.anchor}"
            told = links[0].text if len(links) == 1 else f"{len(links):,} places"
            gutter.append(f'<a class="ms-cited" href="{escape(href)}" title="cited by {escape(told)}">{number}</a>')
        else:
            gutter.append(f'<a href="#L{number}" tabindex="-1">{number}</a>')
        mark = " ms-line--cited" if links else ""
        body.append(f'<span class="ms-line{mark}" id="L{number}">{html}\n</span>')
    return Markup(
        '<div class="highlight ms-code__body ms-source" data-search-exclude>'
        f'<pre class="ms-code__gutter">{chr(10).join(gutter)}</pre>'
        f'<pre class="ms-code__lines"><code>{"".join(body)}</code></pre></div>'
    )
