"""Reading formulas: cases/formula/source.yml (text and tree) and findings.yml (what is refused, and how)."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from sitegen.diagnostics import Location, SpecInvalid
from sitegen.formula import FUNCTIONS, MAX_DEPTH, MAX_LENGTH, REDUCTIONS, check, names, parse, terms, to_source

CASES = Path(__file__).parent / "cases/formula"
SOURCES = yaml.safe_load((CASES / "source.yml").read_text(encoding="utf-8"))
FINDINGS = yaml.safe_load((CASES / "findings.yml").read_text(encoding="utf-8"))


HERE = Location("f.yml", 3, 9)


def refused(text: str, where: Location = HERE):
    """The one finding with which a text is refused."""
    with pytest.raises(SpecInvalid) as caught:
        parse(text, where=where)
    (finding,) = caught.value.findings
    return finding


@pytest.mark.parametrize("case", SOURCES, ids=lambda case: case["from"][:40])
def test_source(case):
    step = parse(case["from"])
    assert to_source(step) == case["to"]
    assert parse(to_source(step)) == step


@pytest.mark.parametrize("case", FINDINGS, ids=lambda case: repr(case["text"]))
def test_findings(case):
    finding = refused(case["text"])
    assert finding.code == case["code"]
    assert case["message"] in finding.message
    assert case["hint"] in finding.hint
    assert finding.where == Location("f.yml", 3, case["column"])


def test_a_finding_reads_in_three_lines():
    assert refused("a = 2m").text().splitlines() == [
        "f.yml:3:14: error[expression-invalid] a statement goes on where it should end",
        "  expected -; actual 'm' at character 6 of `a = 2m`",
        "  hint: an operator is missing between '2' and 'm': write * for a product",
    ]


def test_a_finding_in_a_later_line_names_that_line():
    assert refused("a = 1\nb = 2 ^ 2").where == Location("f.yml", 4, 15)
    assert refused("a = 1\nb = 2 ^ 2", Location("f.yml")).where == Location("f.yml")


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "(" * 2000 + "1" + ")" * 2000,
        "a = " + "-" * 2000 + "1",
        "a = " + "x[" * 2000,
        "a = " + "sum(j: " * 500 + "1" + ")" * 500,
        "a = " + "where(not " * 300,
        "repeat(2): " * 300 + "a = 1",
        "a = " + "+".join("1" * 1500),
        "a = " + "**".join("9" * 1300),
        "x = x[" + "1," * 2010 + "1]",
    ],
    ids=lambda text: text[:16],
)
def test_large_texts_are_refused_and_not_followed(text):
    assert len(text) <= MAX_LENGTH
    finding = refused(text)
    assert "nested too deeply" in finding.message or "too many parts" in finding.message


def test_a_text_that_is_too_long_is_refused_unread():
    finding = refused("a = " + "(" * 100_000)
    assert (finding.expected, finding.actual) == ("at most 4,096 characters", "100,004 characters")


def test_the_deepest_allowed_formula_is_read():
    text = "a = " + "(" * (MAX_DEPTH - 2) + "1" + ")" * (MAX_DEPTH - 2)
    assert to_source(parse(text)) == "a = 1"


def test_no_function_is_named_after_a_part_of_a_model():
    parts = {"sinkhorn", "softmax", "rmsnorm", "layernorm", "attention", "rope", "topk", "einsum", "matmul", "linear"}
    assert not parts & {name.lower() for name in [*FUNCTIONS, *REDUCTIONS]}


def test_names_of_a_step():
    step = parse("r = sqrt(mean(c: x[c]**2) + eps); m[i] = sum(c: W[i, c]*x[c])/r; repeat(iters - 1): m[i] = m[i]/2")
    found = names(step)
    assert found.inputs == {"x": 1, "W": 2}
    assert found.outputs == {"r": 0, "m": 1}
    assert found.scalars == {"eps", "iters"}
    assert found.indices == {"c", "i"}
    assert found.functions == {"sqrt", "mean", "sum"}


def test_terms_keep_constants_in_indices_apart():
    found = terms(parse("u[k] = 2*sigmoid(s[3]*m[4 + k]) + 1e-6"))
    assert found.symbols == {"u", "k", "s", "m"}
    assert found.constants == {2, 1e-6}
    assert found.index_constants == {3, 4}


CHECKS = [
    ("y[d] = x[d]*esp", {"x": 1}, {"eps"}, "unknown-symbol", "esp is no symbol", "did you mean 'eps'?"),
    ("y[d] = xx[d]", {"x": 1}, set(), "unknown-symbol", "there is no tensor xx", "x"),
    ("y[d] = n[d]", {"x": 1}, {"n"}, "unknown-symbol", "there is no tensor n", "n is a number and has no axes"),
    ("y[d] = x[j]", {"x": 1}, set(), "unknown-symbol", "j is no symbol", "on the left side or be reduced"),
    ("y[d] = x[d] + sum(j: x[j]) + j", {"x": 1}, set(), "unknown-symbol", "j is no symbol", "reduced"),
    ("y[d] = x[1, d]", {"x": 1}, set(), "shape-mismatch", "x has fewer axes than indices", ""),
    ("y[d] = x[d] + x[1, d]", {"x": 2}, set(), "expression-invalid", "with 1 and with 2 indices", "leading axes"),
    ("y[d] = y[d] + 1", {}, set(), "unknown-symbol", "there is no tensor y", ""),
    ("a = b; b = 1", {}, set(), "unknown-symbol", "b is no symbol", ""),
    (
        "y[d] = x[d] + sum(i = 1..d: x[i])",
        {"x": 1},
        set(),
        "expression-invalid",
        "the bound of an index uses d",
        "where",
    ),
    ("repeat(x[1]): y = 1", {"x": 1}, set(), "expression-invalid", "the number of rounds uses x", ""),
]


@pytest.mark.parametrize(("text", "tensors", "symbols", "code", "message", "hint"), CHECKS, ids=[c[0] for c in CHECKS])
def test_check_without_running(text, tensors, symbols, code, message, hint):
    finding = check(parse(text, where=Location("f.yml", 3, 9)), tensors=tensors, symbols=symbols)[0]
    assert finding.code == code
    assert message in finding.message
    assert hint in finding.hint
    assert finding.where.line == 3


def test_check_accepts_what_it_knows():
    step = parse("x[(s - 1)*D + d] = X[s, d]; m[i] = sum(c: W[i, c]*x[c]); repeat(iters): m[i] = m[i]*n")
    assert check(step, tensors={"X": None, "W": 2}, symbols={"D", "n", "iters"}) == []
