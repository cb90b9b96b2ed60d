# Sources: repository, path, pinned revision and lines of everything that is cited, and where it can be read.
"""Views of evidence entries and upstream lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sitegen import schema
from sitegen.render.excerpts import lines_text
from sitegen.render.page import slug
from sitegen.render.view import CodePlace, EvidenceView, Mark
from sitegen.resolver import Model


def address(source: schema.Source, lines: Sequence[int] | None = None) -> str:
    """Where a source can be read: its own address, with the lines where it is a file at a revision."""
    if not source.url:
        return ""
    if lines and source.revision and source.path and len(lines) == 2:
        first, last = lines
        return f"{source.url}#L{first}" + (f"-L{last}" if last != first else "")
    return source.url


@dataclass(frozen=True)
class Sources:
    """The cited sources of a model."""

    model: Model

    def code_place(self, id: str, lines: Sequence[int], mark: Mark, text: str = "", anchor: str = "") -> CodePlace:
        """Upstream lines, as a link where the source has an address."""
        source = self.model.sources.sources.sources[id]
        shown = f"{source.path or source.title} {lines_text(lines[0], lines[1])}"
        revision = f" at {source.revision}" if source.revision else ""
        title = f"{source.repository or source.title}{revision}"
        title = f"{text.strip()} ({title})" if text else title
        return CodePlace(shown, address(source, lines), mark, title, anchor)

    def evidence_views(self, ids: Sequence[str]) -> tuple[EvidenceView, ...]:
        """The numbered sources of a page."""
        views = []
        for id in ids:
            entry = self.model.sources.evidence[id]
            source = self.model.sources.sources.sources[entry.source]
            place = ""
            if entry.lines:
                first, last = entry.lines[0], entry.lines[-1]
                place = f"line {first}" if first == last else f"lines {lines_text(first, last)}"
            if entry.section:
                place = f"{place}, section {entry.section}" if place else f"section {entry.section}"
            views.append(
                EvidenceView(
                    f"ev-{slug(id)}",
                    id,
                    entry.kind,
                    entry.claim.strip(),
                    source.title.strip(),
                    place,
                    source.repository or "",
                    source.revision or "",
                    source.path or "",
                    address(source, entry.lines),
                )
            )
        return tuple(views)
