# Specs, facts and hand-written pages in, a site out: what the command line and the plugin share.
"""Build the pages of a project's models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sitegen import bookmaker, loader
from sitegen.diagnostics import Finding, SpecInvalid, ordered
from sitegen.render.page import Page
from sitegen.render.settings import Settings
from sitegen.render.site import Site, render


@dataclass(frozen=True)
class Built:
    """A rendered site with what was found on the way."""

    site: Site
    findings: tuple[Finding, ...]
    broken: tuple[str, ...]  # models whose spec cannot be resolved

    @property
    def pages(self) -> tuple[Page, ...]:
        return self.site.pages


def build(root: Path, settings: Settings, models: Sequence[str] = ()) -> Built:
    """Render every model; one that cannot be resolved is left out and named in `broken`."""
    books, findings, broken, specs = [], [], [], {}
    for name in loader.choose(root, tuple(models)):
        try:
            book, found = bookmaker.make_book(root, name)
        except SpecInvalid as error:
            findings += error.findings
            broken.append(name)
            continue
        books.append(book)
        findings += found
        for path in sorted((root / "spec" / name).rglob("*.yml")):
            relative = path.relative_to(root).as_posix()
            if path.is_file() and loader.inside(root, relative) is not None:  # what a link leads to stays unpublished
                specs[relative] = path.read_bytes()
    missing = sorted(set(loader.model_names(root)) - {book.model.name for book in books})
    site = replace(render(books, specs, settings), missing=tuple(missing))
    return Built(site, tuple(ordered(findings)), tuple(broken))
