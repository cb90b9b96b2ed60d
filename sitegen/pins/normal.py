# The normal form of Python tokens: what a formatter may change is removed, what the code does stays.
#
# Formatters add and remove trailing commas, brackets around a wrapped expression, quote styles,
# capital letters in numbers and semicolons.  Each rule here keeps the syntax tree; a test checks
# that on real sources, by comparing `ast` dumps of texts with equal normal forms.
"""Normal form of Python code: equal for texts that differ in layout alone."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sitegen.pins.strings import normal_strings

if TYPE_CHECKING:
    from sitegen.pins.tokens import Token

_OPENERS = {"(": ")", "[": "]", "{": "}"}
_CLOSERS = frozenset(")]}")
_ASSIGNMENTS = frozenset("= += -= *= /= //= %= @= &= |= ^= >>= <<= **=".split())
#: After these, brackets around all that follows (to the line's end) change nothing.
_OPEN_TO_NEWLINE = frozenset({"return", "import", "yield"})
#: After these, brackets around all that follows (to the block's colon) change nothing.
_OPEN_TO_COLON = frozenset({"if", "elif", "while"})
_COMPOUND = frozenset("if elif else for while try except finally with def class async".split())


def normal_form(tokens: Sequence[Token], normal_field: Callable[[str], str]) -> tuple[Token, ...]:
    """Tokens in normal form; each keeps the lines it stands on.

    Args:
        tokens: without comments.
        normal_field: the normal form of an expression inside a formatted string.
    """
    result = _with_plain_literals(tokens, normal_field)
    result = _with_own_lines(result)
    while True:  # removing one pair may bare another
        smaller = _without_brackets(_without_trailing_commas(result))
        if len(smaller) == len(result):
            return tuple(smaller)
        result = smaller


def _with_plain_literals(tokens: Sequence[Token], normal_field: Callable[[str], str]) -> list[Token]:
    """Numbers in one spelling; adjacent strings as one, by value."""
    result: list[Token] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        stop = index + 1
        if token.kind == "number":
            result.append(token._replace(text=_normal_number(token.text)))
        elif token.kind == "string":
            while stop < len(tokens) and tokens[stop].kind == "string":
                stop += 1
            run = tokens[index:stop]
            texts = normal_strings([t.text for t in run], normal_field)
            if len(texts) == len(run):
                result += [t._replace(text=text) for t, text in zip(run, texts, strict=True)]
            else:
                result += [token._replace(text=text, end=run[-1].end) for text in texts]
        else:
            result.append(token)
        index = stop
    return result


def _normal_number(text: str) -> str:
    text = text.replace("_", "").lower()
    if text[:2] in ("0x", "0b", "0o"):
        return text
    return re.sub(r"(?<=[0-9])\.(?![0-9])", ".0", ("0" if text.startswith(".") else "") + text.replace("e+", "e"))


def _with_own_lines(tokens: Sequence[Token]) -> list[Token]:
    """Each statement on a line of its own: after a semicolon, and after a block's colon."""
    result: list[Token] = []
    line: list[Token] = []
    for token in tokens:
        line.append(token)
        if token.kind == "newline":
            result += _split_line(line)
            line = []
    return result + _split_line(line)


def _split_line(line: list[Token]) -> list[Token]:
    if not line or line[0].text in ("match", "case"):
        return line  # words that are keywords only sometimes: such a line is left as it is
    depth = lambdas = 0
    in_header = line[0].kind == "name" and line[0].text in _COMPOUND
    result: list[Token] = []
    inner = 0
    last = len(line) - 1
    for index, token in enumerate(line):
        if token.kind == "op":
            depth += (token.text in _OPENERS) - (token.text in _CLOSERS)
        if depth <= 0 and token.kind == "op" and token.text == ";":
            if index < last and line[index + 1].kind != "newline":
                result.append(token._replace(kind="newline", text="+0"))
            continue
        if token.kind == "newline" and inner:
            token = token._replace(text=f"{int(token.text) - inner:+d}")
        result.append(token)
        if not in_header or depth > 0:
            continue
        if token.kind == "name" and token.text == "lambda":
            lambdas += 1
        elif token.kind == "op" and token.text == ":":
            if lambdas:
                lambdas -= 1
                continue
            in_header = False
            if index < last and line[index + 1].kind != "newline":
                result.append(token._replace(kind="newline", text="+1"))
                inner = 1
    return result


def _pairs(tokens: Sequence[Token]) -> dict[int, int]:
    """Index of each opening bracket -> index of its closing one; unmatched ones are left out."""
    stack: list[int] = []
    pairs: dict[int, int] = {}
    for index, token in enumerate(tokens):
        if token.kind != "op":
            continue
        if token.text in _OPENERS:
            stack.append(index)
        elif token.text in _CLOSERS:
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
        return not keyword.iskeyword(before.text) or before.text in ("None", "True", "False")
    return before.kind in ("string", "number") or (before.kind == "op" and before.text in _CLOSERS)


def _starts_line(tokens: Sequence[Token], index: int) -> bool:
    return index == 0 or tokens[index - 1].kind == "newline"


def _top_level(tokens: Sequence[Token], start: int, stop: int) -> list[Token]:
    """The tokens between two brackets that are in no inner bracket."""
    depth, found = 0, []
    for token in tokens[start + 1 : stop]:
        if token.kind == "op" and token.text in _CLOSERS:
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
        before = tokens[start - 1].text if start else ""
        after = tokens[stop + 1].text if stop + 1 < len(tokens) else ""
        inside = _top_level(tokens, start, stop)
        names = {token.text for token in inside if token.kind == "name"}
        is_list = before == "import" or (before == "with" and after == ":" and "as" in names)
        may_match = before in ("match", "case") and _starts_line(tokens, start - 1)
        is_call = bracket == "(" and (value_before or is_list) and not may_match
        keeps_meaning = bracket == "{" or (bracket == "[" and not value_before) or is_call
        commas = sum(token.kind == "op" and token.text == "," for token in inside)
        if "lambda" in names:
            commas = 1  # a lambda's own commas do not make a tuple
        if keeps_meaning or commas > 1:
            dropped.add(stop - 1)
    return _without(tokens, dropped)


def _without(tokens: Sequence[Token], dropped: set[int]) -> list[Token]:
    """The other tokens; a dropped opening bracket leaves its line to the next one, anything else to the last one."""
    result: list[Token] = []
    line = 0
    for index, token in enumerate(tokens):
        if index not in dropped:
            result.append(token._replace(line=line) if line else token)
            line = 0
        elif token.text in _OPENERS:
            line = line or token.line
        elif result:
            result[-1] = result[-1]._replace(end=max(result[-1].end, token.end))
    return result


def _without_brackets(tokens: list[Token]) -> list[Token]:
    pairs = _pairs(tokens)
    dropped: set[int] = set()
    depth = statement = 0
    for index, token in enumerate(tokens):
        if token.kind == "newline":
            statement = index + 1
        if token.kind != "op":
            continue
        if token.text == "(" and index in pairs:
            stop = pairs[index]
            if stop == index + 1:
                if index == statement + 2 and tokens[statement].text == "class":
                    dropped |= {index, stop}  # `class A():` is `class A:`
            elif not _follows_value(tokens, index) and _is_redundant(tokens, pairs, statement, index, depth):
                dropped |= {index, stop}
        depth += (token.text in _OPENERS) - (token.text in _CLOSERS)
    return _without(tokens, dropped)


def _is_redundant(tokens: list[Token], pairs: dict[int, int], statement: int, start: int, depth: int) -> bool:
    """Whether the round brackets from `start` (not empty, not a call) only group what is grouped anyway."""
    stop = pairs[start]
    after = tokens[stop + 1] if stop + 1 < len(tokens) else None
    if stop == start + 2 and tokens[start + 1].kind in ("name", "number", "string"):
        return (
            start != statement  # `(x): int = 1` declares nothing, `x: int = 1` does
            and tokens[start + 1].text != "yield"
            and not (tokens[start + 1].kind == "number" and after is not None and after.text == ".")
        )
    inside = _top_level(tokens, start, stop)
    words = {token.text for token in inside if token.kind != "string"}
    starred = inside[0].text in ("*", "**")
    if tokens[start + 1].text == "(" and pairs.get(start + 1) == stop - 1:
        return False  # of two pairs the inner one is looked at; the outer one when that is gone
    before = tokens[start - 1] if start else None
    if before is not None and before.text == "(" and pairs.get(start - 1) == stop + 1:
        is_argument = _follows_value(tokens, start - 1) or (
            start > 1 and tokens[start - 2].text == "with"
        )  # of two plain pairs one is enough, whatever is inside
        return not is_argument or not (words & {",", ":=", "yield", "for"} or starred)
    if words & {"for", "yield"}:
        return False
    if depth != 0:
        return False
    is_name = before is not None and before.kind == "name"
    at_line_end = after is None or after.kind == "newline"
    at_colon = after is not None and after.text == ":"
    first = tokens[statement].text
    if start == statement:
        ends = at_line_end or after is None or after.text == "="  # targets: `(a, b) = x`
        return ends and ":=" not in words
    assert before is not None
    if is_name and before.text in _OPEN_TO_COLON and start - 1 == statement:
        return at_colon and "," not in words
    if ":=" in words:
        return False
    if before.kind == "op" and before.text in _ASSIGNMENTS:
        ends = at_line_end or (before.text == "=" and after is not None and after.text == "=")
        return ends and not (starred and before.text != "=")
    if is_name and before.text in _OPEN_TO_NEWLINE:
        return at_line_end
    if is_name and before.text == "from":
        return at_line_end and "," not in words
    if is_name and first in ("for", "async") and before.text == "for":
        return after is not None and after.text == "in" and not starred
    if is_name and first in ("for", "async") and before.text == "in":
        only = sum(token.text == "in" for token in tokens[statement:start]) == 1  # else it compares
        return at_colon and only and not starred
    if is_name and first in ("with", "async") and before.text == "with":
        return at_colon and not starred and ("as" in words or "," not in words)
    if first in ("assert", "del") and start - 1 == statement:
        return (at_line_end or (first == "assert" and after is not None and after.text == ",")) and "," not in words
    return first == "assert" and before.text == "," and at_line_end and "," not in words
