"""Formulas: TeX to MathML with marked letters, and what a formula that cannot be rendered reports."""

from __future__ import annotations

import html
import re

import pytest

from sitegen.diagnostics import Location, SpecInvalid
from sitegen.render import math
from sitegen.render.math import Letter, SymbolMarks

LETTERS = [
    Letter("u", "u"),
    Letter("k", "k"),
    Letter("eps", r"\varepsilon_{\text{norm}}"),
    Letter("Xn", "X'"),
    Letter("X", "X"),
]


def block(tex: str) -> str:
    marks = SymbolMarks()
    return math.block_formula(math.mark_letters(tex, LETTERS, marks), tex, marks)


def annotation(markup: str) -> str:
    found = re.search(r"<annotation[^>]*>(.*?)</annotation>", markup, re.S)
    assert found
    return html.unescape(found.group(1))


def marked(markup: str) -> list[tuple[str, str]]:
    """(symbol, letters shown) of every marked element, in order."""
    return [
        (html.unescape(name), html.unescape(re.sub("<[^>]+>", "", body)))
        for name, body in re.findall(r'<mrow class="ms-sym" data-sym="([^"]*)">(.*?)</mrow>', markup, re.S)
    ]


@pytest.mark.parametrize(
    "tex",
    [
        r"a<b \quad a_*b_* \quad x \& y",
        r"u_k = 2\,\sigma(s_2 m_{4+k} + b_{4+k})",
        r"\hat{x} = \sum_{k} u_k X_{k}",
        r"\frac{u}{\sqrt{u^2 + \varepsilon_{\text{norm}}}}",
    ],
)
def test_the_formula_can_be_copied_byte_for_byte(tex: str) -> None:
    markup = block(tex)
    assert annotation(markup) == tex
    assert "&amp;lt;" not in markup and "&amp;amp;" not in markup
    assert "style=" not in markup and "color" not in re.sub(r"<(annotation|code)>?.*?</\1>", "", markup)


@pytest.mark.parametrize(
    ("tex", "symbols"),
    [
        (r"u_k = 2 u", [("u", "u"), ("k", "k"), ("u", "u")]),
        (r"X'_{kd} + X_k", [("Xn", "X"), ("k", "k"), ("X", "X"), ("k", "k")]),
        (r"\varepsilon_{\text{norm}} + \varepsilon", [("eps", "εnorm")]),
        (r"\text{u k} + \mathbb{k} + \operatorname{uk}(u)", [("u", "u")]),
        (r"\hat u + \sqrt k", [("u", "u"), ("k", "k")]),
    ],
)
def test_letters_of_symbols_are_marked_and_words_are_not(tex: str, symbols: list[tuple[str, str]]) -> None:
    assert marked(block(tex)) == symbols


def test_sub_and_superscripts_stay_stacked_on_a_marked_letter() -> None:
    markup = block(r"X'_{k}")
    assert "<msubsup><mrow" in markup


@pytest.mark.parametrize(
    ("tex", "column", "says"),
    [
        (r"u + \foo", 11, r"\\foo"),
        (r"αβ + \foo", 12, r"\\foo"),
        (r"\text{kv_source}", 15, "text mode"),
        (r"u_{", 10, "closing"),
        (r"a % b", 9, "hides the rest"),
        (r"\color{red}u", 7, "reserved"),
        (r"\newcommand{\a}{b}\a", 7, "reserved"),
        (r"\href{javascript:alert(1)}{x}", 7, r"\\href"),
        (r"\htmlClass{a}{k}", 7, r"\\htmlClass"),
        (r"\Sinkhorn(x)", 7, r"\\Sinkhorn"),
        ("  ", 7, "empty"),
        ("u" * 9000, 7, "at most"),
    ],
)
def test_a_formula_that_cannot_be_rendered_is_a_finding_with_its_place(tex: str, column: int, says: str) -> None:
    (finding,) = math.tex_findings(tex, Location("spec/m/components/x.yml", 12, 7))
    assert finding.code == "tex-invalid"
    assert (finding.where.line, finding.where.column) == (12, column)
    assert re.search(says, finding.message)


def test_in_a_block_scalar_the_line_of_the_fault_is_named() -> None:
    (finding,) = math.tex_findings("u\n+ \\foo", Location("x.yml", 12, 7))
    assert (finding.where.line, finding.where.column) == (13, 3)


def test_a_good_formula_has_no_findings_and_a_bad_one_stops_rendering() -> None:
    assert math.tex_findings(r"a \% b", Location("x.yml", 1, 1)) == []
    with pytest.raises(SpecInvalid, match="tex-invalid"):
        math.inline_formula(r"\foo", where=Location("x.yml", 1, 1))


def test_inline_formulas_carry_no_annotation() -> None:
    assert "annotation" not in math.inline_formula("u_k")


def test_words_in_a_formula_are_escaped() -> None:
    assert "<script" not in block(r"\text{<script>alert(1)</script>}")


def test_characters_for_the_font_are_those_shown() -> None:
    assert math.characters(block(r"\alpha < \mathbb{R}")) == set("α<ℝ")
