# From text to tokens: one lexer for Python and a plainer one for every other text.
#
# The standard `tokenize` is not used for digests, because its tokens differ between Python versions
# (f-strings are one token in 3.11 and many in 3.12), and digests are committed.  This lexer never
# fails, so that it also takes a quoted piece of a file.  A test compares it with `tokenize`.
"""Tokens of source text, each with its lines, and what a lexed file consists of."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from sitegen.pins.normal import normal_form
from sitegen.pins.strings import string_end

Lines = tuple[int, int]


class Token(NamedTuple):
    """One token on lines `line`..`end`.

    Kinds: name, number, string, op, comment, newline.  The text of a newline is the change of
    indentation to the next logical line (`+1`, `+0`, `-2`).
    """

    kind: str
    text: str
    line: int
    end: int


@dataclass(frozen=True)
class Syntax:
    """How to lex one family of languages: what is a comment, a string, and whether lines matter."""

    comment: str
    string: str
    lines_matter: bool
    brackets_join: bool = False
    python: bool = False


_C_STRING = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
_PYTHON_STRING = r"[rRbBuUfFtT]{0,2}(?:'''|\"\"\"|'|\")"
PYTHON = Syntax(r"\#[^\n]*", _PYTHON_STRING, lines_matter=True, brackets_join=True, python=True)
BRACES = Syntax(r"//[^\n]*|/\*.*?(?:\*/|\Z)", _C_STRING, lines_matter=False)
BRACES_AND_LINES = Syntax(r"//[^\n]*|/\*.*?(?:\*/|\Z)", _C_STRING + r"|`(?:\\.|[^`\\])*`", lines_matter=True)
JSON = Syntax(r"(?!)", r'"(?:\\.|[^"\\\n])*"', lines_matter=False)
HASH = Syntax(r"(?<![^\s])\#[^\n]*", _C_STRING, lines_matter=True)
PLAIN = Syntax(r"(?!)", r"(?!)", lines_matter=True)

_SUFFIXES: dict[str, Syntax] = {
    **dict.fromkeys((".py", ".pyi"), PYTHON),
    **dict.fromkeys((".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hpp", ".java", ".rs"), BRACES),
    **dict.fromkeys((".js", ".ts", ".go", ".swift", ".kt"), BRACES_AND_LINES),
    ".json": JSON,
    **dict.fromkeys((".yml", ".yaml", ".toml", ".sh", ".cfg", ".ini", ".mk", ".cmake"), HASH),
}

_NUMBER = (
    r"0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+"
    r"|(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9][0-9_]*)?[jJ]?"
)
_OPERATOR = r"\*\*=?|//=?|>>=?|<<=?|!=|->|:=|\.\.\.|==|[+\-*/%&|^@<>]=|[^\w\s]"


class _Pattern:
    """The compiled scanner of a syntax."""

    def __init__(self, syntax: Syntax) -> None:
        self.syntax = syntax
        self.regex = re.compile(
            rf"(?P<space>[ \t\f]+)|(?P<join>\\\r?\n)|(?P<newline>\r?\n)|(?P<comment>{syntax.comment})"
            rf"|(?P<string>{syntax.string})|(?P<number>{_NUMBER})|(?P<name>[^\W\d]\w*|\w+)"
            rf"|(?P<op>{_OPERATOR})|(?P<other>.)",
            re.DOTALL,
        )


_PATTERNS: dict[Syntax, _Pattern] = {}


def syntax_of(suffix: str) -> Syntax:
    """The syntax for a file name's suffix; plain text when it is unknown."""
    return _SUFFIXES.get(suffix.lower(), PLAIN)


@dataclass(frozen=True)
class Lexed:
    """A lexed text: `tokens` as written, `code` in normal form, `comments` apart."""

    tokens: tuple[Token, ...]
    syntax: Syntax

    @cached_property
    def _parts(self) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
        return _without_comments(self.tokens, self.syntax)

    @property
    def plain(self) -> tuple[Token, ...]:
        """The tokens without comments and bare strings, otherwise as written."""
        return self._parts[0]

    @property
    def comments(self) -> tuple[Token, ...]:
        """Comments, docstrings and other strings that stand alone as a statement."""
        return self._parts[1]

    @cached_property
    def code(self) -> tuple[Token, ...]:
        """The tokens that decide what the code does, in normal form."""
        return normal_form(self.plain, _normal_field) if self.syntax.python else self.plain

    @cached_property
    def _starts(self) -> list[int]:
        return [token.line for token in self.code]

    def code_span(self, lines: Lines) -> tuple[int, int]:
        """Positions [start, stop) in `code` of the tokens that touch these lines, bare newlines trimmed."""
        code = self.code
        start, stop = bisect_left(self._starts, lines[0]), bisect_right(self._starts, lines[1])
        while start > 0 and code[start - 1].end >= lines[0] and code[start - 1].kind != "newline":
            start -= 1
        while start < stop and code[start].kind == "newline":
            start += 1
        while stop > start and code[stop - 1].kind == "newline":
            stop -= 1
        return start, stop

    def code_in(self, lines: Lines) -> tuple[Token, ...]:
        start, stop = self.code_span(lines)
        return self.code[start:stop]

    def code_lines(self, lines: Lines) -> Lines:
        """The lines from the first to the last code token on these lines; unchanged if there is none."""
        tokens = self.code_in(lines)
        return (tokens[0].line, max(t.end for t in tokens)) if tokens else lines

    def comments_in(self, lines: Lines) -> tuple[Token, ...]:
        return tuple(c for c in self.comments if c.end >= lines[0] and c.line <= lines[1])


@lru_cache(maxsize=8192)
def _normal_field(expression: str) -> str:
    """The normal form of an expression inside a formatted string, as text."""
    return " ".join(token.text for token in lex(f"({expression})", ".py").code[:-1])


def digest(tokens: Iterable[Token]) -> str:
    """SHA-256 (hex) over kinds and texts; lines and layout do not enter."""
    total = hashlib.sha256()
    for token in tokens:
        total.update(f"{token.kind}\0{token.text}\0".encode("utf-8", "surrogatepass"))
    return total.hexdigest()


def lex(text: str, suffix: str, line_of: Sequence[int] = ()) -> Lexed:
    """Lexes a whole text or a quoted piece of one; never fails.

    Args:
        text: the text; lines end at "\\n".
        suffix: of the file name (`.py`), which decides the syntax.
        line_of: line by "\\n" of each line of `text`, where they differ.
    """
    syntax = syntax_of(suffix)
    if syntax not in _PATTERNS:
        _PATTERNS[syntax] = _Pattern(syntax)
    tokens = _scan(text, _PATTERNS[syntax])
    if line_of:
        top = len(line_of)
        tokens = [t._replace(line=line_of[min(t.line, top) - 1], end=line_of[min(t.end, top) - 1]) for t in tokens]
    return Lexed(tuple(tokens), syntax)


def _scan(text: str, pattern: _Pattern) -> list[Token]:
    syntax, match = pattern.syntax, pattern.regex.match
    tokens: list[Token] = []
    position, line, depth = 0, 1, 0
    columns: list[int] = []  # the indentation stack; empty until the first logical line
    line_start = 0
    fresh = True  # no token of the current logical line was seen yet
    while position < len(text):
        found = match(text, position)
        assert found is not None  # the last alternative takes any character
        kind, piece, position = found.lastgroup, found.group(), found.end()
        if kind == "space" or kind == "join":
            if kind == "join":
                line, line_start = line + 1, position
            continue
        if kind == "newline":
            if syntax.lines_matter and not fresh and not (syntax.brackets_join and depth):
                tokens.append(Token("newline", "+0", line, line))
                fresh = True
            line, line_start = line + 1, position
            continue
        if kind == "comment":
            end = line + piece.count("\n")
            tokens.append(Token("comment", piece.rstrip(), line, end))
            if end != line:
                line, line_start = end, position - len(piece.rpartition("\n")[2])
            continue
        if kind == "other":
            if piece.isspace():
                continue
            kind = "op"
        if fresh:
            _indent(tokens, columns, _column(text, line_start, found.start()))
            fresh = False
        if kind == "string":
            if syntax.python:
                position = string_end(text, found.start(), piece)
                piece = text[found.start() : position]
            end = line + piece.count("\n")
            tokens.append(Token("string", piece, line, end))
            if end != line:
                line, line_start = end, position - len(piece.rpartition("\n")[2])
            continue
        if piece in _OPENERS:
            depth += 1
        elif piece in _CLOSERS:
            depth = max(0, depth - 1)
        tokens.append(Token(kind or "op", piece, line, line))
    if tokens and syntax.lines_matter and not fresh:
        tokens.append(Token("newline", "+0", line, line))
    return tokens


_OPENERS, _CLOSERS = frozenset("([{"), frozenset(")]}")


def _column(text: str, start: int, stop: int) -> int:
    """Indentation as the compiler counts it: tabs to multiples of 8, a form feed starts again."""
    column = 0
    for character in text[start:stop]:
        if character == "\t":
            column = (column // 8 + 1) * 8
        elif character == "\f":
            column = 0
        elif character == " ":
            column += 1
        else:
            break  # a comment in front of the first token, as in `/* x */ y`
    return column


def _indent(tokens: list[Token], columns: list[int], column: int) -> None:
    """Writes the change of indentation into the newline before the logical line that starts now."""
    if not columns:
        columns.append(column)
        return
    change = 0
    while len(columns) > 1 and columns[-1] > column:
        columns.pop()
        change -= 1
    if columns[-1] > column:  # a piece that starts deeper than it ends
        columns[-1] = column
        change -= 1
    elif columns[-1] < column:
        columns.append(column)
        change += 1
    for index in range(len(tokens) - 1, -1, -1):
        if tokens[index].kind == "newline":
            tokens[index] = tokens[index]._replace(text=f"{change:+d}")
            return
        if tokens[index].kind != "comment":
            return


def _without_comments(tokens: Sequence[Token], syntax: Syntax) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
    """Splits off comments and, in Python, statements that are nothing but a string."""
    kept: list[Token] = []
    comments: list[Token] = []
    solid = [token for token in tokens if token.kind != "comment"]
    comments.extend(token for token in tokens if token.kind == "comment")
    index = 0
    while index < len(solid):
        token = solid[index]
        at_start = not kept or kept[-1].kind == "newline"
        if syntax.python and token.kind == "string" and at_start:
            stop = index
            while stop < len(solid) and solid[stop].kind == "string":
                stop += 1
            if stop < len(solid) and solid[stop].kind == "newline":
                comments.extend(solid[index:stop])
                if kept:  # its newline merges with the one before: indentation changes add up
                    total = int(kept[-1].text) + int(solid[stop].text)
                    kept[-1] = kept[-1]._replace(text=f"{total:+d}")
                index = stop + 1
                continue
        kept.append(token)
        index += 1
    return tuple(kept), tuple(sorted(comments, key=lambda token: token.line))
