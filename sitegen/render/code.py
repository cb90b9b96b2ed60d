# Code excerpts: the pinned lines of a file, highlighted, numbered as in the file, with symbols marked.
#
# An excerpt never passes through Markdown: its text on the page equals the pinned lines, whatever
# backticks or tags stand in them.  A file is highlighted as a whole (an excerpt may begin inside a
# docstring) and the tokens are kept in a cache on disk under the digest of the text.
"""Highlighted excerpts with real line numbers and anchors."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape
from pathlib import Path

from sitegen.diagnostics import SitegenError

#: Excerpts longer than this are folded.
LONG = 44

# Classes for the tokens that carry meaning; names, operators, punctuation and space stay bare text.
_CLASSES = (
    ("Comment", "c1"), ("Literal.String.Doc", "sd"), ("Literal.String", "s1"), ("Literal.Number", "mi"),
    ("Keyword.Constant", "kc"), ("Keyword", "k"), ("Operator.Word", "ow"), ("Name.Decorator", "nd"),
    ("Name.Function", "nf"), ("Name.Class", "nc"), ("Name.Builtin.Pseudo", "bp"),
)  # fmt: skip
_FORMAT = 2  # part of the cache key: raise it when tokens are kept differently

#: A line as (class, text) pairs; the class is "" for bare text and "n" for a name.
Line = list[tuple[str, str]]


@dataclass(frozen=True)
class Excerpt:
    """Lines `first` to `last` (from 1, both included) of a file as it stands at the pinned revision."""

    path: str
    text: str  # the whole file
    first: int
    last: int
    anchor: str  # the page-wide unique id of the excerpt
    symbols: Mapping[str, str] = field(default_factory=dict)  # identifier -> symbol of the spec
    cited: tuple[int, ...] = ()  # lines that a reader is sent to, shown with a mark in the margin

    def lines(self) -> list[str]:
        """The pinned lines, without their ends.  Raises `SitegenError` when the range is not in the file."""
        every = _split(self.text)
        if not 1 <= self.first <= self.last <= len(every):
            raise SitegenError(
                f"lines {self.first}-{self.last} are not in {self.path}, which has {len(every)} lines",
                hint="run `sitegen check`: the pin is reported there with its candidates",
            )
        return every[self.first - 1 : self.last]


def _split(text: str) -> list[str]:
    # Lines end with "\n" alone, as in git; a carriage return before it is not shown.
    lines = text.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


class Highlighter:
    """Highlights files, keeping the tokens of each under the digest of its text."""

    def __init__(self, cache: Path | None) -> None:
        self.cache = cache
        self._memory: dict[str, list[Line]] = {}

    def tokens(self, path: str, text: str) -> list[Line]:
        """The file's lines as classed pieces; each line's pieces joined are its text."""
        name = f"{_FORMAT}\0{Path(path).suffix}\0{_pygments_version()}\0"
        digest = hashlib.sha256(name.encode() + text.encode("utf-8", "surrogatepass")).hexdigest()
        if digest not in self._memory:
            lines = self._stored(digest, text)
            if lines is None:
                lines = _lex(path, text)
                self._store(digest, lines)
            self._memory[digest] = lines
        return self._memory[digest]

    def _stored(self, digest: str, text: str) -> list[Line] | None:
        if self.cache is None:
            return None
        with contextlib.suppress(OSError, ValueError):
            data = json.loads((self.cache / f"{digest}.json").read_text("utf-8"))
            lines = [[(str(kind), str(piece)) for kind, piece in line] for line in data]
            # The cache is only a speed-up: content that is not this text is lexed again.
            if ["".join(piece for _, piece in line) for line in lines] == _split(text):
                return lines
        return None

    def _store(self, digest: str, lines: list[Line]) -> None:
        if self.cache is None:
            return
        with contextlib.suppress(OSError):
            self.cache.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.cache, suffix=".part")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(lines, file, separators=(",", ":"), ensure_ascii=False)
            os.replace(name, self.cache / f"{digest}.json")

    def lines_html(self, excerpt: Excerpt, on_line: Callable[[int], str] | None = None) -> str:
        """The excerpt's lines as HTML, each an element with an anchor; the text equals the file's."""
        excerpt.lines()
        tokens = self.tokens(excerpt.path, excerpt.text)
        rows = []
        for number in range(excerpt.first, excerpt.last + 1):
            mark = " ms-line--cited" if number in excerpt.cited else ""
            body = "".join(_piece(kind, text, excerpt.symbols) for kind, text in tokens[number - 1])
            extra = on_line(number) if on_line else ""
            rows.append(f'<span class="ms-line{mark}" id="{excerpt.anchor}-L{number}"{extra}>{body}\n</span>')
        return "".join(rows)

    def file_lines(self, path: str, text: str) -> list[str]:
        """Every line of a file as HTML without anchors."""
        return ["".join(_piece(kind, piece, {}) for kind, piece in line) for line in self.tokens(path, text)]

    def excerpt_html(self, excerpt: Excerpt) -> str:
        """The gutter of line numbers beside the code; both are text, only the code is in `code`."""
        lines = excerpt.lines()
        filled = [len(line) - len(line.lstrip(" ")) for line in lines if line.strip()]
        dedent = min(filled, default=0)
        gutter = "\n".join(
            f'<a href="#{excerpt.anchor}-L{number}" tabindex="-1">{number}</a>'
            for number in range(excerpt.first, excerpt.last + 1)
        )
        shift = f' style="margin-left:-{dedent}ch"' if dedent else ""
        return (
            f'<div class="highlight ms-code__body" data-search-exclude>'
            f'<pre class="ms-code__gutter" aria-hidden="true">{gutter}</pre>'
            f'<pre class="ms-code__lines"><code{shift}>{self.lines_html(excerpt)}</code></pre></div>'
        )


def _piece(kind: str, text: str, symbols: Mapping[str, str]) -> str:
    shown = escape(text, quote=False)
    if kind in ("n", "nf") and text in symbols:
        return f'<span class="ms-sym" data-sym="{escape(symbols[text])}">{shown}</span>'
    return shown if kind in ("", "n") else f'<span class="{kind}">{shown}</span>'


@lru_cache(maxsize=1)
def _pygments_version() -> str:
    import pygments

    return pygments.__version__


def _lex(path: str, text: str) -> list[Line]:
    from pygments.lexers import get_lexer_for_filename
    from pygments.lexers.special import TextLexer
    from pygments.util import ClassNotFound

    lines = _split(text)
    try:
        lexer = get_lexer_for_filename(path)
    except ClassNotFound:
        lexer = TextLexer()
    # `get_tokens_unprocessed` neither strips nor adds lines, so that numbers stay the file's own.
    pieces: list[Line] = [[] for _ in lines]
    row = 0
    for _, token, value in lexer.get_tokens_unprocessed("\n".join(lines)):
        kind = _class(str(token))
        for index, part in enumerate(value.split("\n")):
            row += index > 0
            if part and row < len(pieces):
                line = pieces[row]
                if line and line[-1][0] == kind != "n":
                    line[-1] = (kind, line[-1][1] + part)
                else:
                    line.append((kind, part))
    if ["".join(text for _, text in line) for line in pieces] != lines:
        return [[("", line)] if line else [] for line in lines]
    return pieces


def _class(token: str) -> str:
    name = token.removeprefix("Token.")
    for prefix, css in _CLASSES:
        if name == prefix or name.startswith(prefix + "."):
            return css
    return "n" if name == "Name" or name.startswith("Name.") else ""
