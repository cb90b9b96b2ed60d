# Prose on a page: what its quotes, formulas and references stand for, seen from that page.
"""The bridge between a component's sentences and what they refer to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from markupsafe import Markup

from sitegen.diagnostics import NOWHERE, Location, SpecInvalid
from sitegen.render import math, text
from sitegen.render.math import Letter, SymbolMarks
from sitegen.render.text import Anchor


@dataclass
class PageProse:
    """Resolves what prose refers to; an unknown reference shows its text and is a finding elsewhere."""

    quoted: Callable[[str], tuple[str, str]]
    linked: Mapping[str, Callable[[str], Anchor | None]]
    letters: list[Letter] = field(default_factory=list)
    marks: SymbolMarks = field(default_factory=SymbolMarks)
    where: Location = NOWHERE

    def quote(self, expr: str) -> tuple[str, str]:
        try:
            return self.quoted(expr)
        except SpecInvalid:
            return "{" + expr + "}", "this does not resolve; `sitegen check` reports it with its place"

    def formula(self, tex: str) -> str:
        marked = math.mark_letters(tex, self.letters, self.marks)
        return math.inline_formula(marked, self.marks, where=self.where)

    def link(self, kind: str, target: str) -> Anchor | None:
        resolve = self.linked.get(kind)
        return resolve(target) if resolve else None

    def html(self, words: str) -> Markup:
        """A sentence as inline HTML."""
        return Markup(text.prose_html(words.strip(), self))

    def blocks(self, words: str) -> Markup:
        """A longer text as paragraphs and lists."""
        return Markup(text.blocks_html(words, self))

    def plain(self, words: str) -> str:
        """A sentence as plain words, for JSON and descriptions."""
        return text.prose_text(words, self)
