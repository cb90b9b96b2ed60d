# Formulas: TeX becomes MathML while the site is built, with each symbol's letter as an element that
# can be highlighted; a formula that cannot be rendered is a finding with its place in the spec.
#
# math-core has no command for classes.  Each letter is wrapped as `{\color[HTML]{A00001}u}` (sub- and
# superscripts outside the group stay stacked on the letter), and the resulting style attribute is
# replaced by a class and the symbol's name.  Colours are therefore reserved and refused in specs.
"""TeX to MathML with marked symbols."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from html import escape, unescape

from math_core import LatexError, LatexToMathML

from sitegen.diagnostics import NOWHERE, Finding, Location, SpecInvalid

MAX_TEX = 8_000

_RESERVED = re.compile(
    r"\\(color|textcolor|definecolor|colorbox|fcolorbox|newcommand|renewcommand|providecommand|def|gdef|edef|xdef|let)"
    r"(?![A-Za-z])"
)
_COMMENT = re.compile(r"(?<!\\)(?:\\\\)*%")
_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[^\\\s]|\s+", re.S)
# Commands whose argument is words or a letter in another alphabet, not a symbol of the formula.
_OPAQUE = {
    "\\text", "\\textrm", "\\textbf", "\\textit", "\\texttt", "\\mbox", "\\operatorname", "\\mathrm", "\\mathbb",
    "\\mathcal", "\\mathfrak", "\\mathscr", "\\mathsf", "\\mathtt", "\\mathbf", "\\boldsymbol", "\\begin", "\\end",
    "\\hspace", "\\mathop", "\\tag", "\\label",
}  # fmt: skip
_STYLE = re.compile(r' style="color:#([0-9A-Fa-f]{6});?"')


@dataclass(frozen=True)
class Letter:
    """How one symbol is written in formulas: its name in the spec and its TeX."""

    symbol: str
    tex: str


@dataclass
class SymbolMarks:
    """Wraps symbols' letters before a formula is rendered and finds them again afterwards."""

    numbers: dict[str, int] = field(default_factory=dict)

    def wrap(self, symbol: str, tex: str) -> str:
        """`tex` as a group that becomes an element of class `ms-sym`; trailing primes stay outside."""
        letter = tex.rstrip("'")
        number = self.numbers.setdefault(symbol, 0xA00000 + len(self.numbers))
        return f"{{\\color[HTML]{{{number:06X}}}{letter}}}" + tex[len(letter) :]

    def restore(self, mathml: str) -> str:
        """Replaces the colours of wrapped letters by class and `data-sym`."""
        names = {number: symbol for symbol, number in self.numbers.items()}

        def element(match: re.Match[str]) -> str:
            symbol = names.get(int(match.group(1), 16))
            return f' class="ms-sym" data-sym="{escape(symbol)}"' if symbol is not None else ""

        return _STYLE.sub(element, mathml)


@cache
def _converter() -> LatexToMathML:
    return LatexToMathML(fancy_error=False, max_expansions=200)


def tex_findings(tex: str, where: Location) -> list[Finding]:
    """What keeps an author's TeX from being rendered: at most one `tex-invalid` finding."""
    if len(tex) > MAX_TEX:
        return [_invalid(f"the formula has {len(tex):,} characters; at most {MAX_TEX:,} are rendered", tex, 0, where)]
    if not tex.strip():
        return [_invalid("the formula is empty", tex, 0, where, "write the TeX, or leave the field out")]
    if found := _RESERVED.search(tex):
        return [
            _invalid(
                f"{found.group()} is reserved: colours mark symbols, and formulas define no commands",
                tex,
                found.start(),
                where,
                f"remove {found.group()}",
            )
        ]
    if found := _COMMENT.search(tex):
        return [_invalid("% starts a comment and hides the rest of the line", tex, found.end() - 1, where, r"write \%")]
    try:
        _converter().convert_with_local_state(tex, displaystyle=True)
    except LatexError as error:
        at, problem = _position(str(error), tex)
        return [_invalid(problem, tex, at, where)]
    return []


def _position(message: str, tex: str) -> tuple[int, str]:
    # The compact form of math-core's message is "OFFSET: text", the offset in characters.
    head, _, rest = message.partition(": ")
    return (min(int(head), len(tex)), rest.strip()) if head.isdigit() else (0, message.strip())


def _invalid(problem: str, tex: str, at: int, where: Location, hint: str = "") -> Finding:
    before = tex[:at]
    lines = before.count("\n")
    column = len(before) - (before.rfind("\n") + 1)
    # The column is exact where the formula stands on one line; in a block scalar the line is.
    place = replace(where, line=where.line + lines, column=where.column + column if not lines else column + 1)
    shown = tex[max(0, at - 20) : at + 30].replace("\n", " ")
    return Finding(
        "tex-invalid",
        f"the formula cannot be rendered: {problem.rstrip('.')}",
        place if where.line else where,
        expected="TeX that math-core renders to MathML",
        actual=f"…{shown}…" if at > 20 or len(tex) > at + 30 else shown,
        hint=hint or "correct the TeX; `sitegen explain tex-invalid` says which commands are known",
    )


def mark_letters(tex: str, letters: list[Letter], marks: SymbolMarks) -> str:
    """A hand-written formula with every occurrence of a symbol's TeX wrapped, longest match first."""
    patterns = sorted(
        ((tuple(_tokens(letter.tex)), letter) for letter in letters if letter.tex.strip()),
        key=lambda pair: -len(pair[0]),
    )
    tokens = list(_tokens(tex))
    out: list[str] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        for pattern, letter in patterns:
            if tuple(tokens[at : at + len(pattern)]) == pattern:
                out.append(marks.wrap(letter.symbol, letter.tex))
                at += len(pattern)
                break
        else:
            at += 1
            out.append(token)
            if token in _OPAQUE:
                end = _argument_end(tokens, at)
                out.extend(tokens[at:end])
                at = end
    return "".join(out)


def _tokens(tex: str) -> Iterator[str]:
    for match in _TOKEN.finditer(tex):
        yield match.group()


def _argument_end(tokens: list[str], at: int) -> int:
    """The index after the argument that starts at `at` (a group, or one token)."""
    while at < len(tokens) and tokens[at].isspace():
        at += 1
    if at >= len(tokens) or tokens[at] != "{":
        return min(at + 1, len(tokens))
    depth = 0
    for index in range(at, len(tokens)):
        depth += {"{": 1, "}": -1}.get(tokens[index], 0)
        if depth == 0:
            return index + 1
    return len(tokens)


def inline_formula(tex: str, marks: SymbolMarks | None = None, *, where: Location = NOWHERE) -> str:
    """Inline MathML, without an annotation.  Raises `SpecInvalid` when the TeX cannot be rendered."""
    return _mathml(tex, marks, where, display=False)


def _mathml(tex: str, marks: SymbolMarks | None, where: Location, *, display: bool) -> str:
    try:
        html = _converter().convert_with_local_state(tex, displaystyle=display)
    except LatexError as error:
        at, problem = _position(str(error), tex)
        raise SpecInvalid([_invalid(problem, tex, at, where)]) from None
    return (marks or SymbolMarks()).restore(html)


def block_formula(marked: str, plain: str, marks: SymbolMarks, *, where: Location = NOWHERE) -> str:
    """One displayed formula as block HTML, with its TeX for copying beside it.

    `marked` is the TeX with wrapped letters, `plain` the same formula as an author would write it; the
    annotation's text is exactly `plain`.
    """
    mathml = _mathml(marked, marks, where, display=True)
    opening, body = re.match(r"(<math[^>]*)>(.*)</math>\Z", mathml, re.S).groups()  # type: ignore[union-attr]
    # Neither the letters run together nor the TeX are words to search for.
    opening += " data-search-exclude>"
    tex = escape(plain, quote=False)
    return (
        f'<div class="ms-formula"><div class="ms-formula__math">{opening}<semantics><mrow>{body}</mrow>'
        f'<annotation encoding="application/x-tex">{tex}</annotation></semantics></math></div>'
        f'<details class="ms-tex" data-search-exclude><summary>TeX</summary><pre><code>{tex}</code></pre></details>'
        "</div>"
    )


def characters(html: str) -> set[str]:
    """Every character that the math font must show for the formulas in `html`."""
    used: set[str] = set()
    for formula in re.findall(r"<math.*?</math>", html, re.S):
        formula = re.sub(r"<annotation.*?</annotation>", "", formula, flags=re.S)
        for text in re.findall(r">([^<]+)<", formula):
            used.update(unescape(text))
    return used


def letters_of(symbols: Mapping[str, str]) -> list[Letter]:
    """Letters from a mapping of symbol names to their TeX."""
    return [Letter(name, tex) for name, tex in symbols.items()]
