# Specs, facts and hand-written pages in, a site out: what the command line and the plugin share.
"""Build the pages of a project's models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sitegen import bookmaker, loader, verifier
from sitegen.accounting import Accounts
from sitegen.comparison import Comparison, compare
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
    counted: dict[str, Accounts] = {}
    for name in loader.choose(root, tuple(models)):
        checked = verifier.inspect(root, name)
        if not isinstance(checked, verifier.Checked):
            findings += checked.findings
            broken.append(name)
            continue
        books.append(bookmaker.book_of(checked))
        counted[name] = checked.accounts
        findings += checked.report.findings
        for path in sorted((root / "spec" / name).rglob("*.yml")):
            relative = path.relative_to(root).as_posix()
            if path.is_file() and loader.inside(root, relative) is not None:  # what a link leads to stays unpublished
                specs[relative] = path.read_bytes()
    missing = sorted(set(loader.model_names(root)) - {book.model.name for book in books})
    compared, found = comparisons(counted)
    site = replace(render(books, specs, settings, compared), missing=tuple(missing))
    return Built(site, tuple(ordered([*findings, *found])), tuple(broken))


def comparisons(counted: Mapping[str, Accounts]) -> tuple[list[Comparison], list[Finding]]:
    """The comparisons that the models' maps ask for, and what is wrong with those maps."""
    made: list[Comparison] = []
    found: list[Finding] = []
    for accounts in counted.values():
        for other in accounts.model.sources.maps:
            if other in counted:
                try:
                    made.append(compare(accounts, counted[other]))
                except SpecInvalid as error:
                    found += error.findings
    return made, found
