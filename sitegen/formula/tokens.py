# Splits the text of a formula into tokens.  Newlines separate statements only where a statement can
# end and another one begin, so that long formulas may be broken after or before an operator.
"""Tokens of the formula language, each with the offset at which it stands."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from sitegen.formula.functions import COMPARISONS
from sitegen.formula.syntax import MAX_LENGTH, Step

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r]+)
      | (?P<newline>\n)
      | (?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
      | (?P<name>[A-Za-z][A-Za-z0-9_]*'*)
      | (?P<op>\*\*|//|<=|>=|==|!=|\.\.|[-+*/%<>=:;,()\[\]{}])""",
    re.VERBOSE,
)

#: What people write instead, and what to write here.
_INSTEAD = {
    "^": "write ** for a power",
    "×": "write * for a product",
    "·": "write * for a product",
    "÷": "write / for a quotient",
    "−": "write an ordinary hyphen - for minus",
    "–": "write an ordinary hyphen - for minus",
    "≤": "write <=",
    "≥": "write >=",
    "≠": "write !=",
    "∑": "write sum(j: …)",
    "√": "write sqrt(…)",
    "←": "write =",
    "&": "write and",
    "|": "write or, or abs(…)",
    "!": "write not",
    "\\": "formulas are not TeX: write names and operators, such as sqrt(x) and 2*x",
    "_": "names begin with a letter; an index is written in brackets: x[k]",
    "'": "a prime belongs directly after a name: X'",
    "’": "write an ordinary apostrophe for a prime: X'",
    "′": "write an ordinary apostrophe for a prime: X'",
    "#": "formulas have no comments",
    ".": "numbers begin with a digit (0.5), a range is written 1..n; there is no attribute access",
}

_ENDS_A_STATEMENT = {"number", "name", ")", "]", "}"}


@dataclass(frozen=True)
class Token:
    """One token: `kind` is number, name, end, newline, or the operator itself."""

    kind: str
    text: str
    at: int


def tokenize(step: Step) -> list[Token]:
    """The tokens of `step.text`, the last one of kind `end`; raises SpecInvalid at the first bad character."""
    text = step.text
    if len(text) > MAX_LENGTH:
        raise step.fault(
            "expression-invalid",
            "the formula is too long",
            expected=f"at most {MAX_LENGTH:,} characters",
            actual=f"{len(text):,} characters",
            hint="split it into several steps",
        )
    tokens: list[Token] = []
    nesting = 0
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _unknown_character(step, at)
        kind, word = str(match.lastgroup), match.group()
        at = match.end()
        if kind == "space" or (kind == "newline" and (nesting or not _ends_statement(tokens))):
            continue
        if kind == "op":
            kind = word
            # braces hold statements, so newlines count inside them
            nesting = max(0, nesting + (word in ("(", "[")) - (word in (")", "]")))
        if kind == "number" and text[at : at + 1] == "." and text[at : at + 2] != "..":
            raise step.fault(
                "expression-invalid", f"{word}. is not a number", match.start(), hint=f"write {word} or {word}.0"
            )
        if tokens and tokens[-1].kind == "newline" and _continues(kind):
            tokens.pop()
        tokens.append(Token(kind, word, match.start()))
    if tokens and tokens[-1].kind == "newline":
        tokens.pop()
    tokens.append(Token("end", "the end", len(text)))
    return tokens


def _ends_statement(tokens: list[Token]) -> bool:
    return bool(tokens) and tokens[-1].kind in _ENDS_A_STATEMENT


def _continues(kind: str) -> bool:
    """Whether a line that begins with this token goes on with the statement of the line before."""
    return kind in COMPARISONS or kind in ("+", "-", "*", "/", "//", "%", "**", "=", ":", ";", ",", ")", "]", "..")


def _unknown_character(step: Step, at: int) -> Exception:
    character = step.text[at]
    shown = character if character.isprintable() else f"U+{ord(character):04X}"
    hint = _INSTEAD.get(character, "")
    if not hint and character.isalpha():
        name = unicodedata.name(character, "").lower().split()
        spelled = name[-1] if name[:1] == ["greek"] else "alpha"
        hint = f"names use the letters a-z, A-Z, digits and _: write {spelled!r} and give it its TeX"
    if not hint and not character.isprintable():
        hint = "remove the control character; in YAML, quote formulas with single quotes"
    return step.fault("expression-invalid", f"a formula cannot contain {shown!r}", at, hint=hint)
