"""Count expressions: exact integers, bounded work, and a clear word on everything else."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitegen import expr
from sitegen.diagnostics import SpecInvalid

SYMBOLS = {"n": 4, "d": 5120, "M": 24}

ACCEPTED = {
    "n*d*M": (491_520, "4 × 5,120 × 24"),
    "(2 + n)*n": (24, "(2 + 4) × 4"),
    "2**10": (1024, "2¹⁰"),
    "ceil_div(576, 128)*ceil_div(5120, 128)": (200, "ceil_div(576, 128) × ceil_div(5,120, 128)"),
    "n - 5": (-1, "4 − 5"),
    "-n": (-4, "−4"),
    "d // 3 % 7": (1706 % 7, "5,120 // 3 % 7"),
    "7": (7, "7"),
}


@pytest.mark.parametrize("text", ACCEPTED)
def test_an_expression_has_an_exact_value_and_a_calculation(text: str) -> None:
    value, shown = ACCEPTED[text]
    assert expr.evaluate(text, SYMBOLS) == value
    assert expr.parse(text).shown(SYMBOLS) == shown


REFUSED = {
    "9**9**9": "bits",
    "1 << 10000000": "not allowed",
    "(2**4000)*(2**4000)": "bits",
    "__import__('os').system('true')": "not allowed",
    "().__class__": "not allowed",
    "'a'*100": "text is not a number",
    "True*5": "True and False",
    "5//0": "division by zero",
    "5 % 0": "division by zero",
    "2**-1": "negative power",
    "n^2": "write '**'",
    "n/2": "ceil_div",
    "1.5*n": "exact integers",
    "1e3": "exact integers",
    "0x10": "exact integers",
    "n # comment": "comment",
    "": "not an expression",
    "n d": "not an expression",
    "lambda: 1": "not allowed",
    "ceil_div(1)": "2 arguments",
    "min(1, 2, 3)": "2 arguments",
    "N*d": "did you mean 'n'",
}


@pytest.mark.parametrize("text", REFUSED)
def test_everything_else_is_refused_with_its_reason(text: str) -> None:
    """P16: nothing is executed, nothing hangs."""
    start = time.perf_counter()
    with pytest.raises(SpecInvalid) as caught:
        expr.evaluate(text, SYMBOLS)
    assert time.perf_counter() - start < 0.5
    finding = caught.value.findings[0]
    assert finding.code in ("expression-invalid", "unknown-symbol")
    assert REFUSED[text] in finding.message + finding.hint


def test_deep_nesting_is_a_finding_and_no_recursion_error() -> None:
    for text in ("(" * 100_000 + "1" + ")" * 100_000, "(" * 60 + "1" + ")" * 60, "-" * 300 + "1"):
        with pytest.raises(SpecInvalid):
            expr.evaluate(text, {})


@given(st.text(alphabet="nd0123456789+-*/%() .^<>[]'\"eL_#\n", max_size=40))
def test_no_text_gives_a_traceback(text: str) -> None:
    try:
        assert type(expr.evaluate(text, SYMBOLS)) is int
    except SpecInvalid as error:
        assert error.findings


@given(st.recursive(st.integers(0, 50).map(str) | st.sampled_from(["n", "d"]),
                    lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]}{t[1]}{t[2]})"),
                    max_leaves=12))  # fmt: skip
def test_values_are_python_s(text: str) -> None:
    if text.count("*") < 12:
        assert expr.evaluate(text, SYMBOLS) == eval(text, {"__builtins__": {}}, dict(SYMBOLS))  # noqa: S307
