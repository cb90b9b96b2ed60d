# Python strings by what they mean, so that quotes, prefixes' case and joints between pieces do not matter.
#
# Formatted strings are taken apart here, not by `ast`, whose dumps differ between Python versions.
"""Scanning Python string literals, and their normal form."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

PREFIXES = "rRbBuUfFtT"


class Part(NamedTuple):
    """A piece of a formatted string: literal `text` (with `{{` as written), or a field's expression and tail.

    The tail is conversion and format (`!r:>10`) as written.
    """

    is_field: bool
    text: str
    tail: str = ""


def string_end(text: str, start: int, opening: str) -> int:
    """Where the string that opens at `start` with `opening` (prefix and quotes) ends.

    An unfinished one ends with its line, or with the text if it is triple-quoted.
    """
    prefix = opening.rstrip("'\"")
    quote = opening[len(prefix) :]
    position = start + len(opening)
    if _is_formatted(prefix):
        end = _formatted_end(text, position, quote, None)
        if end is not None:
            return end
    while position < len(text):
        if text[position] == "\\":
            position += 2
        elif text.startswith(quote, position):
            return position + len(quote)
        elif text[position] == "\n" and len(quote) == 1:
            return position
        else:
            position += 1
    return len(text)


def _is_formatted(prefix: str) -> bool:
    return "f" in prefix.lower() or "t" in prefix.lower()


def _formatted_end(text: str, position: int, quote: str, parts: list[Part] | None) -> int | None:
    """The end of a formatted string's text from `position`; fills `parts`. None when it is not well formed."""
    begin = position

    def literal(end: int) -> None:
        if parts is not None and end > begin:
            parts.append(Part(False, text[begin:end]))

    while position < len(text):
        if text.startswith("\\N{", position):
            position = text.find("}", position) + 1 or len(text)
        elif text[position] == "\\":
            position += 2
        elif text.startswith(quote, position):
            literal(position)
            return position + len(quote)
        elif text[position] == "\n" and len(quote) == 1:
            return None
        elif text.startswith(("{{", "}}"), position):
            position += 2
        elif text[position] == "{":
            literal(position)
            found = _field(text, position + 1, quote)
            if found is None:
                return None
            tail_start, end = found
            if parts is not None:
                parts.append(Part(True, text[position + 1 : tail_start], text[tail_start : end - 1]))
            begin = position = end
        else:
            position += 1
    return None


def _field(text: str, position: int, quote: str) -> tuple[int, int] | None:
    """Of a replacement field: where its tail (`!r:>10`) starts, and the position behind its `}`."""
    depth, tail = 0, -1
    while position < len(text):
        character = text[position]
        if character in "([{":
            depth += 1
        elif character == "}" and depth == 0:
            return (position if tail < 0 else tail), position + 1
        elif character in ")]}":
            depth -= 1
        elif character in "'\"":
            triple = text[position : position + 3]
            position = string_end(text, position, triple if triple in ("'''", '"""') else character)
            continue
        elif character == "!" and depth == 0 and text[position + 1 : position + 2] != "=" and tail < 0:
            tail = position
        elif character == ":" and depth == 0:
            end = _format_end(text, position + 1, quote)
            return None if end is None else ((position if tail < 0 else tail), end)
        position += 1
    return None


def _format_end(text: str, position: int, quote: str) -> int | None:
    while position < len(text):
        if text[position] == "{":
            found = _field(text, position + 1, quote)
            if found is None:
                return None
            position = found[1]
        elif text[position] == "}":
            return position + 1
        elif text.startswith(quote, position):
            return None
        else:
            position += 1
    return None


def normal_strings(pieces: Sequence[str], normal_code: Callable[[str], str]) -> list[str]:
    """Adjacent literals in normal form: one text where they can be joined, else one for each.

    Args:
        pieces: the literals as written.
        normal_code: normal form of the expression in a formatted string's field.
    """
    result: list[str] = []
    joined: list[Part] = []
    kind = ""
    for piece in pieces:
        family, parts = _parsed(piece)
        if not family:
            _flush(result, kind, joined, normal_code)
            result.append(piece)
            kind, joined = "", []
        elif kind == family or kind in ("", "f", "s") and family in ("f", "s") and (kind or not joined):
            joined += parts
            kind = "f" if "f" in (kind, family) else family
        else:
            _flush(result, kind, joined, normal_code)
            kind, joined = family, list(parts)
    _flush(result, kind, joined, normal_code)
    return result


def _flush(result: list[str], kind: str, parts: Sequence[Part], normal_code: Callable[[str], str]) -> None:
    if not kind:
        return
    if not any(part.is_field for part in parts):
        value = "".join(part.text for part in parts)
        result.append(kind.replace("s", "") + ascii(value))
        return
    shown: list[str] = []
    text = ""
    for part in parts:
        if not part.is_field:
            text += part.text
            continue
        shown.append(ascii(text))
        text = ""
        exact = part.text.rstrip().endswith("=") and not part.text.rstrip().endswith(("==", "!=", "<=", ">="))
        shown.append("{" + (part.text if exact else normal_code(part.text)) + part.tail + "}")
    result.append("f" + "".join([*shown, ascii(text)]))


def _value(literal: str) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an invalid escape in someone's string is not ours to report
        return ast.literal_eval(literal)


@lru_cache(maxsize=8192)
def _parsed(piece: str) -> tuple[str, tuple[Part, ...]]:
    """Family (s text, b bytes, f formatted; empty when not understood) and parts with evaluated text."""
    prefix = piece[: len(piece) - len(piece.lstrip(PREFIXES))].lower()
    if not _is_formatted(prefix):
        try:
            value = _value(piece)
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            return "", ()
        if isinstance(value, bytes):
            return "b", (Part(False, value.decode("latin-1")),)
        return ("s", (Part(False, value),)) if isinstance(value, str) else ("", ())
    if "t" in prefix:
        return "", ()
    body = piece[len(prefix) :]
    quote = body[:3] if body[:3] in ("'''", '"""') else body[:1]
    parts: list[Part] = []
    if _formatted_end(body, len(quote), quote, parts) != len(body):
        return "", ()
    evaluated = []
    for part in parts:
        if not part.is_field:
            try:
                value = _value(prefix.replace("f", "") + quote + part.text + quote)
            except (SyntaxError, ValueError, MemoryError, RecursionError):
                return "", ()
            part = Part(False, str(value).replace("{{", "{").replace("}}", "}"))
        evaluated.append(part)
    return "f", tuple(evaluated)
