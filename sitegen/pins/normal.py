# The normal form of Python tokens: what a formatter may change is removed, what the code does stays.
#
# Formatters add and remove trailing commas, brackets around a wrapped expression, quote styles,
# capital letters in numbers and semicolons.  Each rule here keeps the syntax tree; a test checks
# that on real sources, by comparing `ast` dumps of texts with equal normal forms.
"""Normal form of Python code: equal for texts that differ in layout alone."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sitegen.pins.tokens import Token

_OPENERS = {"(": ")", "[": "]", "{": "}"}
_ASSIGNMENTS = frozenset("= += -= *= /= //= %= @= &= |= ^= >>= <<= **=".split())
#: After these at statement level, brackets around all that follows (to the line's end) change nothing.
_OPEN_TO_NEWLINE = frozenset({"return", "import"})
#: After these, brackets around all that follows (to the block's colon) change nothing.
_OPEN_TO_COLON = frozenset({"if", "elif", "while"})


def normal_form(tokens: Sequence[Token]) -> tuple[Token, ...]:
    """Tokens in normal form; each keeps the lines it stands on."""
    result = _joined_strings([_normal_token(token) for token in tokens])
    while True:  # removing one pair may bare another
        smaller = _without_brackets(_without_trailing_commas(result))
        if len(smaller) == len(result):
            return tuple(smaller)
        result = smaller


def _normal_token(token: Token) -> Token:
    if token.kind == "number":
        return token._replace(text=token.text.replace("_", "").lower())
    if token.kind == "string":
        return token._replace(text=_normal_string(token.text))
    return token


@lru_cache(maxsize=4096)
def _normal_string(text: str) -> str:
    """A plain string by its value; a formatted one as written."""
    prefix = text[: len(text) - len(text.lstrip("rRbBuUfFtT"))].lower()
    if "f" in prefix or "t" in prefix:
        return text
    try:
        return ascii(ast.literal_eval(text))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return text


def _joined_strings(tokens: list[Token]) -> list[Token]:
    """Adjacent plain strings are one string; a semicolon ends a statement as a newline does."""
    result: list[Token] = []
    depth = 0
    for token in tokens:
        if token.kind == "op":
            depth += (token.text in _OPENERS) - (token.text in _OPENERS.values())
            if token.text == ";" and depth <= 0:
                result.append(token._replace(kind="newline", text="+0"))
                continue
        last = result[-1] if result else None
        if token.kind == "newline" and last is not None and last.kind == "newline":
            result[-1] = last._replace(text=token.text)  # a semicolon in front of the line's end
            continue
        if token.kind == "string" and last is not None and last.kind == "string":
            if _is_plain(token.text) and _is_plain(last.text) and _is_bytes(token.text) == _is_bytes(last.text):
                value = ast.literal_eval(last.text) + ast.literal_eval(token.text)
                result[-1] = last._replace(text=ascii(value), end=token.end)
                continue
        result.append(token)
    return result


def _is_plain(text: str) -> bool:
    """Whether a token's text is what `ascii` gives for a str or bytes value."""
    return text[:1] in "'\"" or (text[:2] in ("b'", 'b"'))


def _is_bytes(text: str) -> bool:
    return text.startswith("b")


def _pairs(tokens: Sequence[Token]) -> dict[int, int]:
    """Index of each opening bracket -> index of its closing one; unmatched ones are left out."""
    stack: list[int] = []
    pairs: dict[int, int] = {}
    for index, token in enumerate(tokens):
        if token.kind != "op":
            continue
        if token.text in _OPENERS:
            stack.append(index)
        elif token.text in (")", "]", "}"):
            if stack and _OPENERS[tokens[stack[-1]].text] == token.text:
                pairs[stack.pop()] = index
            else:
                stack.clear()
    return pairs


def _follows_value(tokens: Sequence[Token], index: int) -> bool:
    """Whether the bracket at `index` calls or subscripts what stands before it."""
    if index == 0:
        return False
    before = tokens[index - 1]
    if before.kind == "name":
        return not keyword.iskeyword(before.text)
    return before.kind == "string" or (before.kind == "op" and before.text in (")", "]", "}"))


def _top_level(tokens: Sequence[Token], start: int, stop: int) -> list[Token]:
    """The tokens between two brackets that are in no inner bracket."""
    depth, found = 0, []
    for token in tokens[start + 1 : stop]:
        if token.kind == "op" and token.text in (")", "]", "}"):
            depth -= 1
        if depth == 0:
            found.append(token)
        if token.kind == "op" and token.text in _OPENERS:
            depth += 1
    return found


def _without_trailing_commas(tokens: list[Token]) -> list[Token]:
    dropped = set()
    for start, stop in _pairs(tokens).items():
        if not (stop - start > 2 and tokens[stop - 1].kind == "op" and tokens[stop - 1].text == ","):
            continue
        bracket, value_before = tokens[start].text, _follows_value(tokens, start)
        after_import = start > 0 and tokens[start - 1].text == "import"
        before = tokens[start - 1].text if start else ""
        is_call = bracket == "(" and (value_before or after_import) and before not in ("match", "case")
        keeps_meaning = bracket == "{" or (bracket == "[" and not value_before) or is_call
        inside = _top_level(tokens, start, stop)
        commas = sum(token.kind == "op" and token.text == "," for token in inside)
        if any(token.kind == "name" and token.text == "lambda" for token in inside):
            commas = 1  # a lambda's own commas do not make a tuple
        if keeps_meaning or commas > 1:
            dropped.add(stop - 1)
    return [token for index, token in enumerate(tokens) if index not in dropped]


def _without_brackets(tokens: list[Token]) -> list[Token]:
    pairs = _pairs(tokens)
    dropped: set[int] = set()
    depth = 0
    statement = 0
    for index, token in enumerate(tokens):
        if token.kind == "newline":
            statement = index + 1
        if token.kind != "op":
            continue
        if token.text == "(" and index in pairs and not _follows_value(tokens, index):
            stop = pairs[index]
            if stop > index + 1 and _is_redundant(tokens, pairs, statement, index, stop, depth):
                dropped |= {index, stop}
        depth += (token.text in _OPENERS) - (token.text in (")", "]", "}"))
    return [token for index, token in enumerate(tokens) if index not in dropped]


def _is_redundant(
    tokens: list[Token], pairs: dict[int, int], statement: int, start: int, stop: int, depth: int
) -> bool:
    inside = _top_level(tokens, start, stop)
    if stop == start + 2 and tokens[start + 1].kind in ("name", "number", "string"):
        return (
            start != statement  # `(x): int = 1` declares nothing, `x: int = 1` does
            and tokens[start + 1].text != "yield"
            and not _is_attribute_of_number(tokens, start, stop)
        )
    if any(token.text in ("for", "yield", ":=") and token.kind != "string" for token in inside):
        return False
    has_comma = any(token.kind == "op" and token.text == "," for token in inside)
    starred = bool(inside) and inside[0].text in ("*", "**")
    if tokens[start + 1].text == "(" and pairs.get(start + 1) == stop - 1:
        return False  # the inner pair is looked at by itself; the outer one after it is gone
    if start > 0 and start + 1 < stop and tokens[start - 1].text == "(" and pairs.get(start - 1) == stop + 1:
        return not has_comma and not starred
    if depth != 0 or start == 0:
        return False
    before = tokens[start - 1]
    at_line_end = stop + 1 == len(tokens) or tokens[stop + 1].kind == "newline"
    at_colon = stop + 1 < len(tokens) and tokens[stop + 1].text == ":"
    if before.kind == "op" and before.text in _ASSIGNMENTS:
        return at_line_end and not (starred and before.text != "=")
    if before.kind == "name" and before.text in _OPEN_TO_NEWLINE:
        return at_line_end
    if before.kind == "name" and before.text in _OPEN_TO_COLON and start - 1 == statement:
        return at_colon and not has_comma
    return False


def _is_attribute_of_number(tokens: list[Token], start: int, stop: int) -> bool:
    return tokens[start + 1].kind == "number" and stop + 1 < len(tokens) and tokens[stop + 1].text == "."
