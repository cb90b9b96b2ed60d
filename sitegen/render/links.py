# Links of the built site: every address and anchor in the HTML must lead somewhere.
#
# Site builders look at Markdown links only; links in block HTML, to folders and to anchors pass them
# unseen.  This looks at what was built, so it holds with and without directory URLs.
"""Find dead links and anchors in built HTML."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

_TAG = re.compile(r"<[a-zA-Z][^\s/>]*((?:\s+[^\s=>/]+(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s>\"']+))?|\s*/)*)\s*>")
_ATTRIBUTE = re.compile(r"([^\s=/]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>\"']+))")
_RAW = re.compile(r"<(script|style)\b.*?</\1\s*>|<!--.*?-->", re.S | re.I)


@dataclass(frozen=True, order=True)
class DeadLink:
    """A link of a built page that leads nowhere."""

    page: str
    href: str
    problem: str

    def __str__(self) -> str:
        return f"{self.page}: {self.href}: {self.problem}"


@dataclass(frozen=True)
class _Found:
    hrefs: tuple[str, ...]
    anchors: frozenset[str]


def _scan(html: str) -> _Found:
    hrefs: dict[str, None] = {}
    anchors: set[str] = set()
    for tag in _TAG.finditer(_RAW.sub("", html)):
        name = tag.group()[1:].split(None, 1)[0].rstrip("/>").lower()
        for key, *values in _ATTRIBUTE.findall(tag.group(1)):
            value = unescape(next((v for v in values if v), ""))
            if key in ("href", "src") and name not in ("base", "link"):
                hrefs[value] = None
            elif key == "id" or (key == "name" and name == "a"):
                anchors.add(value)
    return _Found(tuple(hrefs), frozenset(anchors))


def dead_links(pages: Mapping[str, str], files: frozenset[str] = frozenset()) -> list[DeadLink]:
    """Dead links among `pages` (path below the site's root -> HTML); `files` are the other files there.

    Addresses with a scheme or host are not followed.  An address that begins with `/` is dead, since the
    site must work below any address.
    """
    found = {path: _scan(html) for path, html in pages.items()}
    dead: list[DeadLink] = []
    for path, scanned in found.items():
        for href in scanned.hrefs:
            problem = _problem(path, href, found, files)
            if problem:
                dead.append(DeadLink(path, href, problem))
    return sorted(dead)


def _problem(page: str, href: str, found: Mapping[str, _Found], files: frozenset[str]) -> str:
    try:
        parts = urlsplit(href)
    except ValueError:
        return "not an address"
    if parts.scheme or parts.netloc:
        return ""
    path, anchor = unquote(parts.path), unquote(parts.fragment)
    if path.startswith("/"):
        return "begins at the server's root; pages link relative to themselves"
    goal = page
    if path:
        goal = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
        if goal.startswith(".."):
            return "leaves the site"
        if path.endswith(("/", "/.", "/..")) or path in (".", ".."):
            goal = posixpath.normpath(posixpath.join(goal, "index.html"))
        elif goal not in found and goal not in files:
            folder = posixpath.join(goal, "index.html")
            return "a folder needs / at its end" if folder in found else "no such file"
    if goal not in found:
        return "" if goal in files else "no such page"
    if anchor and anchor not in found[goal].anchors and not anchor.startswith("__"):
        return f"no anchor {anchor!r} in {goal}"
    return ""


def read_site(folder: Path) -> tuple[dict[str, str], frozenset[str]]:
    """A built site's pages and the names of its other files; the page for errors is left out.

    Its links are absolute because it answers for any address.
    """
    pages: dict[str, str] = {}
    files: set[str] = set()
    for path in _files(folder):
        name = path.relative_to(folder).as_posix()
        if name.endswith(".html") and name != "404.html":
            pages[name] = path.read_text("utf-8")
        else:
            files.add(name)
    return pages, frozenset(files)


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())
