# One page seen from inside: its component, its place, how each statement stands, and what its prose
# and tables refer to.
"""The context in which a component's page is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from sitegen import schema
from sitegen.render import excerpts, paths, places, status
from sitegen.render.book import Account, Book, CodeState, Verdict
from sitegen.render.code import Highlighter
from sitegen.render.math import SymbolMarks
from sitegen.render.page import slug
from sitegen.render.prose import PageProse
from sitegen.render.settings import Settings
from sitegen.render.sources import Sources
from sitegen.render.symbols import Symbols, symbols_of
from sitegen.render.text import Anchor
from sitegen.render.view import Link, Mark
from sitegen.resolver import Model, Occurrence


@dataclass(frozen=True)
class Workshop:
    """What all pages of a model share while they are made."""

    book: Book
    settings: Settings
    highlighter: Highlighter

    @property
    def model(self) -> Model:
        return self.book.model

    @cached_property
    def order(self) -> list[str]:
        return self.model.order()

    @cached_property
    def gotchas(self) -> dict[str, list[schema.Gotcha]]:
        """Component -> what ports get wrong in it, in order."""
        found: dict[str, list[schema.Gotcha]] = {}
        for chapter in self.model.sources.gotchas:
            for gotcha in chapter.file.gotchas:
                for id in dict.fromkeys(gotcha.components):
                    found.setdefault(id, []).append(gotcha)
        return {id: sorted(gotchas, key=lambda gotcha: gotcha.point) for id, gotchas in found.items()}

    @cached_property
    def users(self) -> dict[str, tuple[str, ...]]:
        """Component -> components that take what it gives, or name it as used."""
        found: dict[str, dict[str, None]] = {id: {} for id in self.model.components}
        for id, located in self.model.components.items():
            for other in used(located.component):
                if other in found and other != id:
                    found[other][id] = None
            for port in located.component.outputs:
                if port.component and port.component != id:
                    found[id][port.component] = None
        return {id: tuple(names) for id, names in found.items()}


def used(component: schema.Component) -> tuple[str, ...]:
    """Components whose output this one takes, and those that it names."""
    names = [*component.uses, *(port.component for port in component.inputs if port.component)]
    return tuple(dict.fromkeys(names))


class PageContext:
    """A component's page; `occurrence` is None on the canonical one."""

    def __init__(self, workshop: Workshop, component: str, occurrence: Occurrence | None = None) -> None:
        self.shop, self.id, self.occurrence = workshop, component, occurrence
        self.book, self.model = workshop.book, workshop.model
        self.component = self.model.component(component)
        self.place = occurrence.place if occurrence else None
        self.path = (
            paths.place_page(self.model.name, occurrence.place.id, component)
            if occurrence
            else paths.component_page(self.model.name, component)
        )
        self.addresses = workshop.settings.addresses
        self.verdicts = self.book.of(component, self.place.id if self.place else None)
        self.by_id: Mapping[str, Verdict] = {verdict.id: verdict for verdict in self.verdicts}
        self.marks = SymbolMarks()
        self.sources = Sources(self.model)
        first = occurrence or self.model.occurrences[component][0]
        layer = first.layers[0] if first.layers else None
        self.values = self.model.symbols(place=first.place, layer=layer)

    @cached_property
    def symbols(self) -> Symbols:
        return symbols_of(self.model, self.component, self.values)

    @cached_property
    def codes(self) -> dict[str, CodeState]:
        return {
            code.id: self.book.codes[self.id, code.id]
            for code in self.component.code
            if (self.id, code.id) in self.book.codes
        }

    @cached_property
    def groups(self) -> list[excerpts.Group]:
        return excerpts.groups(self.component.code, self.codes)

    @cached_property
    def pins(self) -> dict[str, str]:
        return excerpts.pin_anchors(self.groups, self.codes)

    @cached_property
    def prose(self) -> PageProse:
        return PageProse(
            lambda expr: self.book.quote(self.id, expr),
            {"component": self._component_anchor, "code": self._code_anchor, "source": self._source_anchor},
            self.symbols.letters,
            self.marks,
            self.model.components[self.id].at(),
        )

    def _component_anchor(self, target: str) -> Anchor | None:
        id, _, anchor = target.partition("#")
        if id not in self.model.components:
            return None
        link = self.link(id, anchor)
        return Anchor(link.href, link.title)

    def _code_anchor(self, target: str) -> Anchor | None:
        state = self.codes.get(target)
        if state is None or target not in self.pins:
            return None
        mark = self.mark(f"pin:{target}")
        lines = excerpts.lines_text(*state.lines) if state.lines else "?"
        return Anchor(f"#{self.pins[target]}", f"{state.path}:{lines}, {mark.word}", f"ms-ref--{mark.state}")

    def _source_anchor(self, target: str) -> Anchor | None:
        if target not in self.evidence:
            return None
        return Anchor(f"#ev-{slug(target)}", self.model.sources.evidence[target].claim.strip())

    def link(self, component: str, anchor: str = "") -> Link:
        return places.component_link(self.model, self.path, self.addresses, component, self.place, anchor)

    def statement_link(self, name: str) -> Link:
        """A link to what shows a statement: `step:x` on this page, `other/component#step:x` on another."""
        component, hash_, statement = name.rpartition("#")
        if hash_ and component != self.id and component in self.model.components:
            other = self.link(component, status.anchor(statement))
            return Link(f"{other.text}: {statement_label(statement)}", other.href, name)
        kind, _, own = statement.partition(":")
        if kind == "place" and own in self.model.places:
            return Link(places.chain_title(self.model.places[own]), f"#{status.anchor(statement)}", statement)
        anchor = self.pins.get(own, status.anchor(statement)) if kind == "pin" else status.anchor(statement)
        return Link(statement_label(statement), f"#{anchor}", statement)

    def mark(self, statement: str) -> Mark:
        return status.mark(self.by_id.get(statement))

    @cached_property
    def evidence(self) -> tuple[str, ...]:
        """Evidence entries of the page: those listed, then those that sentences cite."""
        component = self.component
        claims = (component.purpose, *component.explanation, *component.numerics)
        cited = [id for claim in claims for id in claim.cites] + list(component.reason.cites)
        known = self.model.sources.evidence
        return tuple(id for id in dict.fromkeys([*component.evidence, *cited]) if id in known)

    @cached_property
    def account(self) -> Account | None:
        return self.book.account(self.id, self.place.id if self.place else None)


def statement_label(statement: str) -> str:
    """A statement's id in words."""
    # `property:column-sums` is shown as "column sums", `out:C` as "out C": what is looked at stays clear.
    kind, _, name = statement.partition(":")
    if kind in ("in", "out", "dtype", "pin", "citation", "explanation"):
        return f"{kind} {name}"
    return (name or kind).replace("-", " ").replace("_", " ")
