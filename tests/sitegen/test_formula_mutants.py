"""Mutated forms of formulas: cases/formula/mutants.yml, and that inputs which are sharp enough tell them apart."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from sitegen.diagnostics import SpecInvalid
from sitegen.formula import KINDS, evaluate, mutants, normal_form, parse, to_source

CASES = yaml.safe_load((Path(__file__).parent / "cases/formula/mutants.yml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["expr"][:40])
def test_mutants(case):
    step = parse(case["expr"])
    made = mutants(step)
    assert [f"{mutant.kind}: {to_source(mutant.step)}" for mutant in made] == case["mutants"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["expr"][:40])
def test_mutants_are_named_and_described(case):
    step = parse(case["expr"])
    made = mutants(step)
    assert len({mutant.id for mutant in made}) == len(made)
    for mutant in made:
        assert mutant.kind in KINDS and mutant.id.startswith(f"{mutant.kind}@")
        assert mutant.description and "\n" not in mutant.description
        assert "\N{WHITE SQUARE}" not in mutant.description
        assert parse(to_source(mutant.step)) == mutant.step


def test_an_id_names_the_statement_as_written():
    made = mutants(parse("a = 2; repeat(3): a = a*3; a = a + 4"))
    assert [m.id for m in made if m.kind == "constant"] == ["constant@1.1", "constant@2.1", "constant@3.1"]
    assert [m.id for m in made if m.kind == "repeat"] == ["repeat@2.1", "repeat@2.2"]
    assert next(m for m in made if m.id == "constant@2.1").description == "3 becomes 3.03 in `a = a*3.03`"


def test_symbols_may_count_as_constants():
    step = parse("y = x + eps")
    assert "constant" not in {mutant.kind for mutant in mutants(step)}
    (mutant,) = [mutant for mutant in mutants(step, constants={"eps"}) if mutant.kind == "constant"]
    assert to_source(mutant.step) == "y = x + 1.01*eps"


SAME = [
    ("y = a + b*c", "y = c*b + a"),
    ("y = a - b", "y = -b + a"),
    ("y = 2*(a + b)", "y = 2*a + b*2"),
    ("y = a/b/c", "y = a/(c*b)"),
    ("y = 1e-6*x", "y = 0.000001*x"),
    ("y = x*x", "y = x**2"),
    ("y = 0*x + 0**2", "y = 0"),
    ("y = max(a, b)", "y = max(b, a)"),
    ("y[k] = m[4 + k]", "y[j] = m[j + 5 - 1]"),
    ("y[k] = m[8 + n*(j - 1)] + x[k]", "y[k] = m[n*j + 8 - n] + x[k]"),
    ("y = sum(i, j: C[i, j]*x[i])", "y = sum(b, a: x[a]*C[a, b])"),
    ("y[k] = x[k]/sum(k: x[k])", "y[k] = x[k]/sum(j: x[j])"),
    ("y = where(a < b, 1, 0)", "y = where(b > a, 1, 0)"),
    ("repeat(1): a = a + b", "a = a + b"),
    ("a = 1; a = a", "a = 1"),
]
DIFFERENT = [
    ("y = a - b", "y = b - a"),
    ("y = 0/0", "y = 0"),
    ("y = a/0", "y = b/0"),
    ("y = 0**-1", "y = 0**1"),
    ("y = a/b", "y = b/a"),
    ("y = a**b", "y = b**a"),
    ("y = a*b + c", "y = a*(b + c)"),
    ("y[j, k] = C[j, k]", "y[j, k] = C[k, j]"),
    ("y[k] = x[k]/sum(k: x[k])", "y[k] = x[k]/sum(j: x[k])"),
    ("y = sum(j: x[j])", "y = mean(j: x[j])"),
    ("y = sum(j = 1..n: x[j])", "y = sum(j: x[j])"),
    ("y = sum(j: sum(k: C[j, k])*x[j])", "y = sum(j: sum(k: C[k, j])*x[j])"),
    ("y = where(a < b, 1, 0)", "y = where(a <= b, 1, 0)"),
    ("a = 1; b = 2", "b = 2; a = 1"),
    ("repeat(2): a = a + b", "repeat(3): a = a + b"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_normal_form_is_equal_for_the_same_formula(one, other):
    assert normal_form(parse(one)) == normal_form(parse(other))


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_normal_form_differs_for_another_formula(one, other):
    assert normal_form(parse(one)) != normal_form(parse(other))


# -- inputs that tell mutants apart -------------------------------------------------------------------------

torch = pytest.importorskip("torch", reason="formulas are evaluated with torch")
torch.set_num_threads(1)

N, D, TOKENS = 4, 11, 64
SYMBOLS = {"n": N, "D": D, "eps": 1e-6, "eps_norm": 1e-20, "iters": 20}
MILD, SHARP, TINY, SATURATED = 1.0, 8.0, 1e-11, 2000.0

COMBINATION = """
Z[j, k] = s[3]*m[2*n + n*(j - 1) + k] + b[2*n + n*(j - 1) + k] for j = 1..n, k = 1..n
E[j, k] = exp(Z[j, k] - max(k: Z[j, k]))
M[j, k] = E[j, k]/sum(k: E[j, k]) + eps
M[j, k] = M[j, k]/(sum(j: M[j, k]) + eps)
repeat(iters - 1): M[j, k] = M[j, k]/(sum(k: M[j, k]) + eps); M[j, k] = M[j, k]/(sum(j: M[j, k]) + eps)
"""
FORMULAS = [
    ("p[j] = sigmoid(s[1]*m[j] + b[j]) + 1e-6 for j = 1..n", "p", (N,)),
    ("u[k] = 2*sigmoid(s[2]*m[4 + k] + b[4 + k])", "u", (N,)),
    (COMBINATION, "M", (N, N)),
    ("h[d] = sum(t: p[t]*X[t, d])", "h", (D,)),
    ("X'[k, d] = u[k]*y[d] + sum(j: C[j, k]*X[j, d])", "X'", (N, D)),
    ("r[i] = sum(d: W[i, d]*y[d])/sqrt(mean(d: y[d]**2) + eps_norm)", "r", (7,)),
    ("p[j] = delta(j, 1) for j = 1..n", "p", (N,)),
]


def inputs(scale: float) -> dict:
    generator = torch.Generator().manual_seed(1)

    def normal(*shape: int):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    m = normal(TOKENS, 24) * scale
    return {
        "m": m, "s": normal(3), "b": normal(24), "p": normal(TOKENS, N), "u": normal(TOKENS, N), "W": normal(7, D),
        "C": normal(TOKENS, N, N), "X": normal(TOKENS, N, D) * scale, "y": normal(TOKENS, D) * scale,
    }  # fmt: skip


def agrees(step, reference: dict, env: dict, name: str, shape: tuple[int, ...]) -> bool:
    """Whether a formula gives the reference to a relative 1e-9: far coarser than float64, finer than any mutant."""
    try:
        value = evaluate(
            step, {k: v for k, v in env.items() if k != name or name == "M"}, SYMBOLS, shapes={name: shape}
        )
    except SpecInvalid:
        return False
    expected = reference[name]
    if value[name].shape[value[name].dim() - len(shape) :] != expected.shape[expected.dim() - len(shape) :]:
        return False
    return torch.allclose(value[name].expand_as(expected), expected, rtol=1e-9, atol=0.0)


@pytest.mark.parametrize(("text", "name", "shape"), FORMULAS, ids=[text[:24].strip() for text, _, _ in FORMULAS])
def test_every_mutant_of_the_stream_formulas_is_told_apart(text, name, shape):
    step = parse(text)
    undistinguished = {mutant.id: mutant for mutant in mutants(step)}
    assert undistinguished
    for scale in (MILD, SHARP, SATURATED, TINY):
        env = inputs(scale)
        env = {key: value for key, value in env.items() if key != name}
        reference = evaluate(step, env, SYMBOLS, shapes={name: shape})
        assert agrees(step, reference, env, name, shape), "the formula disagrees with itself"
        undistinguished = {
            key: mutant for key, mutant in undistinguished.items() if agrees(mutant.step, reference, env, name, shape)
        }
    assert [mutant.description for mutant in undistinguished.values()] == []


def test_mild_inputs_do_not_tell_a_dropped_epsilon_apart():
    """What the regimes are for: at ordinary scale the norm's epsilon is invisible, at tiny scale it is not."""
    step = parse("r[i] = sum(d: W[i, d]*y[d])/sqrt(mean(d: y[d]**2) + eps_norm)")
    (mutant,) = [mutant for mutant in mutants(step) if mutant.kind == "epsilon"]
    for scale, blind in ((MILD, True), (TINY, False)):
        env = inputs(scale)
        reference = evaluate(step, env, SYMBOLS)
        assert agrees(mutant.step, reference, env, "r", (7,)) is blind
