# A page: what one address of the site holds, before any site builder has seen it.
#
# The body is a sequence of blocks: a heading that the builder must see (for the table of contents) and
# block HTML that it passes through.  A builder's adapter may hold heavy blocks back and put them in
# place after Markdown and search are done with the page; the plain tree has them inline.
"""Pages, blocks, and the addresses that link them."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from typing import Any

_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")
_SLUG = re.compile(r"[^A-Za-z0-9]+")


@dataclass(frozen=True)
class Block:
    """A heading (may be empty) followed by block HTML (may be empty)."""

    html: str = ""
    heading: str = ""
    anchor: str = ""
    level: int = 2
    searchable: bool = True


@dataclass(frozen=True)
class Page:
    """One page; `path` is its Markdown file below the site's root and always ends in `index.md`."""

    path: str
    title: str
    blocks: tuple[Block, ...]
    description: str = ""
    source: str = ""  # the file that an "edit" link leads to, relative to the repository
    searchable: bool = True
    twin: dict[str, Any] | None = field(default=None, compare=False)  # the page as data, for its JSON

    def __post_init__(self) -> None:
        check_path(self.path)

    @property
    def directory(self) -> str:
        return posixpath.dirname(self.path)

    def markdown(self, hold: Callable[[str, bool], str] | None = None) -> str:
        """The page for a site builder.

        `hold(html, searchable)` may return a place-holder for a block, which Markdown has no need to see; whoever
        passes it puts the HTML back, before search reads the page or after it.
        """
        # Themes put both into HTML without escaping, so they arrive escaped.
        head = {"title": escape(self.title)}
        if self.description:
            head["description"] = escape(self.description)
        lines = ["---", *(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in head.items())]
        if not self.searchable:
            lines.append("search: {exclude: true}")
        parts = ["\n".join([*lines, "---"])]
        for block in self.blocks:
            if block.heading:
                parts.append(f"{'#' * block.level} {escape_markdown(block.heading)} {{#{block.anchor}}}")
            if block.html:
                parts.append(hold(block.html, block.searchable) if hold is not None else block_markdown(block.html))
        return "\n\n".join(parts) + "\n"

    def html(self) -> str:
        """All block HTML of the page, joined; for collecting glyphs and for tests."""
        return "\n".join(block.html for block in self.blocks)

    def plain(self) -> str:
        """The page as plain Markdown, from its data; empty for a page without."""
        from sitegen.render.markdown_twin import page_markdown

        return page_markdown(self.twin) if self.twin is not None else ""

    def json(self) -> str:
        """The machine-readable twin, stable in order and form."""
        return json.dumps(self.twin, ensure_ascii=False, separators=(",", ":"), sort_keys=False) + "\n"


def block_markdown(html: str) -> str:
    """Block HTML as a part of a Markdown file."""
    # Python-Markdown keeps a block verbatim from its opening to its closing tag; a wrapper makes
    # several siblings one block, so that nothing between them is read as Markdown.  Fences are looked
    # for before blocks are, and tabs are widened, so those characters travel as references.
    return f'<div class="ms-block">\n{html.strip().translate(_FENCES)}\n</div>'


_FENCES = {ord(character): f"&#{ord(character)};" for character in "`~\t"}


def escape_markdown(text: str) -> str:
    """Text that Markdown shows unchanged: punctuation as character references."""
    return re.sub(r"[!-/:-@\[-`{-~]", lambda match: f"&#{ord(match.group())};", text)


def check_path(path: str) -> None:
    """Refuses a path that leaves the site or holds a segment that a file system may not tell apart.

    Raises `ValueError` naming the path.
    """
    segments = path.split("/")
    if not path or any(not _SEGMENT.match(segment) for segment in segments):
        raise ValueError(f"{path!r} is no page path: each part begins with a letter or digit, then letters . _ -")
    if segments[-1] != "index.md":
        raise ValueError(f"{path!r} is no page path: it must end in index.md")


def slug(name: str) -> str:
    """An HTML id made from an id of the spec; `B` and `b` stay apart."""
    return _SLUG.sub("-", name.replace("'", "-prime")).strip("-") or "x"


@dataclass(frozen=True)
class Addresses:
    """Relative addresses between pages, with or without directory URLs."""

    directory_urls: bool = True

    def href(self, start: str, goal: str, anchor: str = "") -> str:
        """The address of `goal` as seen from the page `start`.

        Pages are Markdown files below the site's root (`a/index.md`, `b.md`); any other file is itself.
        """
        if goal == start and anchor:
            return f"#{anchor}"
        here = self._folder(start)
        if goal.endswith(".md"):
            name = "" if self.directory_urls or goal.endswith("index.md") else posixpath.basename(goal)[:-3] + ".html"
            address = posixpath.relpath(self._folder(goal), here) + "/" + name
            if not self.directory_urls and not name:
                address += "index.html"
        else:
            address = posixpath.relpath(goal, here)
        return address + (f"#{anchor}" if anchor else "")

    def _folder(self, page: str) -> str:
        folder, name = posixpath.split(page)
        if self.directory_urls and name != "index.md":
            folder = posixpath.join(folder, name[:-3])
        return folder or "."
