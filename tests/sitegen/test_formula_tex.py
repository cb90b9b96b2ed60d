"""TeX of formulas: cases/formula/tex.yml, its rendering, and hand-written TeX (tex_differs.yml)."""

from __future__ import annotations

import re
from pathlib import Path

import math_core
import pytest
import yaml

from sitegen.diagnostics import Location
from sitegen.formula import SymbolTex, number_tex, parse, tex_findings, tex_terms, to_tex

CASES = Path(__file__).parent / "cases/formula"
TEX = yaml.safe_load((CASES / "tex.yml").read_text(encoding="utf-8"))
DIFFERS = yaml.safe_load((CASES / "tex_differs.yml").read_text(encoding="utf-8"))
SYMBOLS = {
    "eps": r"\epsilon",
    "eps_norm": r"\varepsilon",
    "iters": r"n_{\mathrm{it}}",
    "W_kv": r"W_{\mathrm{kv}}",
    "H": SymbolTex("H", brackets=True),
    "xhat": r"\hat{x}",
}


def mathml(tex: str) -> str:
    """The MathML of a TeX; raises on any command that is not known."""
    return math_core.LatexToMathML().convert_with_local_state(tex, displaystyle=True)


@pytest.mark.parametrize("case", TEX, ids=lambda case: case["expr"][:40])
def test_tex(case):
    tex = to_tex(parse(case["expr"]), SYMBOLS)
    assert tex == case["tex"]
    assert "<math" in mathml(tex)


@pytest.mark.parametrize("case", TEX, ids=lambda case: case["expr"][:40])
def test_made_tex_shows_the_symbols_and_constants_of_its_step(case):
    assert tex_findings(parse(case["expr"]), case["tex"], SYMBOLS) == []


@pytest.mark.parametrize("case", TEX, ids=lambda case: case["expr"][:40])
def test_marked_letters_render_and_leave_the_rest_alone(case):
    step = parse(case["expr"])
    marked = to_tex(step, SYMBOLS, wrap=lambda name, tex: rf"{{\color[HTML]{{000001}}{tex}}}")
    assert re.sub(r"\{\\color\[HTML\]\{000001\}(\\hat\{x\}|.|\\[a-z]+)\}", r"\1", marked) == to_tex(step, SYMBOLS)
    assert 'style="color:#000001;"' in mathml(marked)


def test_wrap_sees_every_symbol_by_name():
    seen: list[tuple[str, str]] = []

    def wrap(name: str, tex: str) -> str:
        seen.append((name, tex))
        return tex

    to_tex(parse("X'[k, d] = u[k]*sum(c: W_kv[k, c]*x[c])**2 + eps_norm"), SYMBOLS, wrap=wrap)
    assert set(seen) == {
        ("X'", "X"), ("k", "k"), ("d", "d"), ("u", "u"), ("c", "c"), ("W_kv", "W"), ("x", "x"),
        ("eps_norm", r"\varepsilon"),
    }  # fmt: skip


def test_functions_can_be_renamed():
    tex = to_tex(parse("y = sigmoid(x)"), {}, functions={"sigmoid": r"\operatorname{sig}"})
    assert tex == r"y = \operatorname{sig}(x)"


@pytest.mark.parametrize(
    ("tex", "symbol"),
    [
        ("u", SymbolTex("u")),
        (r"\epsilon", SymbolTex(r"\epsilon")),
        (r"W_{\mathrm{kv}}", SymbolTex("W", r"\mathrm{kv}")),
        ("X'", SymbolTex("X", "", "'")),
        (r"X^{\prime}", SymbolTex("X", "", "'")),
        ("p_0''", SymbolTex("p", "0", "''")),
        (r"a^{\mathrm{p}}_k", SymbolTex("a", "k", r"\mathrm{p}")),
        (r"\hat{x}_d", SymbolTex(r"\hat{x}", "d")),
        ("{x_1}", SymbolTex("{x_1}")),
    ],
)
def test_symbols_split_into_letter_and_scripts(tex, symbol):
    assert SymbolTex.of(tex) == symbol


@pytest.mark.parametrize(
    ("name", "symbol"),
    [
        ("u", SymbolTex("u")),
        ("X''", SymbolTex("X", "", "''")),
        ("eps", SymbolTex(r"\epsilon")),
        ("eps_norm", SymbolTex(r"\epsilon", r"\mathrm{norm}")),
        ("alpha_1", SymbolTex(r"\alpha", "1")),
        ("x1", SymbolTex("x", "1")),
        ("iters", SymbolTex(r"\mathrm{iters}")),
        ("a_p_up", SymbolTex("a", r"p,\mathrm{up}")),
    ],
)
def test_symbols_without_tex(name, symbol):
    assert SymbolTex.default(name) == symbol


@pytest.mark.parametrize(
    ("value", "tex"),
    [(0, "0"), (9999, "9999"), (20480, "20{,}480"), (1e-6, "10^{-6}"), (2.5e-7, r"2.5\cdot 10^{-7}"), (0.5, "0.5"),
     (0.02, "0.02"), (1e16, "10^{16}"), (20480.0, "20480.0"), (123456789.5, r"1.234567895\cdot 10^{8}")],
)  # fmt: skip
def test_numbers(value, tex):
    assert number_tex(value) == tex


@pytest.mark.parametrize("case", DIFFERS, ids=lambda case: f"{case['expr']} as {case['tex']}"[:90])
def test_hand_written_tex(case):
    step = parse(case["expr"], where=Location("f.yml", 3, 9))
    found = tex_findings(step, case["tex"], {**SYMBOLS, "n": "n"}, where=Location("f.yml", 4, 9))
    if not case["message"]:
        assert found == []
        return
    (finding,) = found
    assert (finding.code, finding.where) == ("tex-differs", Location("f.yml", 4, 9))
    assert finding.message == f"the hand-written TeX {case['message']}"
    assert finding.expected and finding.actual != finding.expected


def test_tex_terms_of_hand_written_tex():
    found = tex_terms(r"\frac{1}{2}\sum_{s=1}^{n} p_s X'_{s+3} + 10^{-20}", {"p": "p", "X'": "X'", "s": "s", "n": "n"})
    assert found.symbols == {"p", "X'", "s"}
    assert found.bound_symbols == {"n"}
    assert {float(value) for value in found.constants} == {2.0, 1e-20}
    assert found.index_constants == {3}
    assert found.bound_constants == {1}
    assert found.unknown == frozenset()


@pytest.mark.parametrize(
    "tex", ["{" * 5000, "x_" * 3000, "\\frac" * 3000, "^_{}'\\", r"\color[HTML", r"\begin{array}", "{}}}{", "1" * 4000]
)
def test_broken_tex_is_read_without_harm(tex):
    tex_terms(tex, {"x": "x"})
