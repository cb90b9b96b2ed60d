"""Properties of the formula language over random texts, random trees and random formulas."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sitegen.diagnostics import SpecInvalid
from sitegen.formula import check, evaluate, mutants, names, normal_form, parse, terms, tex_findings, to_source, to_tex
from sitegen.formula.functions import COMPARISONS, FUNCTIONS, KEYWORDS, REDUCTIONS
from sitegen.formula.syntax import (
    Assign,
    BinOp,
    Call,
    Compare,
    Item,
    Logic,
    Name,
    Neg,
    Not,
    Num,
    Range,
    Reduce,
    Repeat,
    Step,
)

torch = pytest.importorskip("torch", reason="formulas are evaluated with torch")
torch.set_num_threads(1)

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])

# -- any text ------------------------------------------------------------------------------------------------

WORDS = [*FUNCTIONS, *REDUCTIONS, *KEYWORDS, "x", "y'", "n", "j", "k", "eps", "1", "2.5", "1e-6"]
SYMBOLS = [*COMPARISONS, *"+-*/%=:;,()[]{}^.'\n\\", "**", "//", "..", " "]
token_soup = st.lists(st.sampled_from([*WORDS, *SYMBOLS]), max_size=60).map(" ".join)


def only_findings(text: str) -> Step | None:
    try:
        return parse(text)
    except SpecInvalid as refusal:
        assert all(finding.message for finding in refusal.findings)
        return None


@relaxed
@given(
    st.one_of(st.text(max_size=200), token_soup, token_soup.map("a = ".__add__), token_soup.map("y[j] = 1 ".__add__))
)
def test_any_text_is_read_or_refused_with_a_finding(text):
    step = only_findings(text)
    if step is None:
        return
    assert parse(to_source(step)) == step
    names(step), terms(step), normal_form(step), to_tex(step, {}), mutants(step)
    check(step, tensors={"x": 2, "y'": 1}, symbols={"n", "eps"})
    try:
        evaluate(step, {"x": torch.ones(2, 3), "y'": torch.ones(3)}, {"n": 3, "eps": 1e-6}, max_elements=10_000)
    except SpecInvalid as refusal:
        assert refusal.findings


@relaxed
@given(st.text(alphabet="xy_^{}'\\fracsumleft0123456789.,[]& ", max_size=120))
def test_any_tex_is_read(tex):
    tex_findings(parse("y[j] = 2*x[j]"), tex, {"x": "x", "y": r"\hat{y}_{\mathrm{a}}"})


# -- any tree ------------------------------------------------------------------------------------------------

NAMES = ["x", "y'", "C", "eps", "eps_norm", "j", "k", "d2"]
INDICES = ["i", "j", "k", "d"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**"]
PLAIN = [name for name in FUNCTIONS if name != "where"]
positive = st.floats(min_value=1e-300, max_value=1e300, allow_nan=False, allow_infinity=False)


@st.composite
def trees(draw, depth: int):
    """Any expression that the grammar has."""
    kind = draw(st.integers(0, 8)) if depth else draw(st.integers(0, 2))
    if kind == 0:
        return Num(draw(st.integers(0, 10**9)))
    if kind == 1:
        return Num(draw(positive))
    if kind == 2:
        return Name(draw(st.sampled_from(NAMES)))
    inner = trees(depth - 1)
    if kind <= 4:
        return BinOp(draw(st.sampled_from(OPERATORS)), draw(inner), draw(inner))
    if kind == 5:
        choice = Call("where", (draw(conditions(depth - 1)), draw(inner), draw(inner)))
        return draw(st.sampled_from([Neg(draw(inner)), choice]))
    if kind == 6:
        return Item(draw(st.sampled_from(NAMES)), tuple(draw(inner) for _ in range(draw(st.integers(1, 3)))))
    if kind == 7:
        name = draw(st.sampled_from(PLAIN))
        count = draw(st.integers(FUNCTIONS[name].least, min(3, FUNCTIONS[name].most)))
        return Call(name, tuple(draw(inner) for _ in range(count)))
    bound = draw(st.lists(st.sampled_from(INDICES), min_size=1, max_size=2, unique=True))
    ranges = tuple(Range(name, draw(inner), draw(inner)) if draw(st.booleans()) else Range(name) for name in bound)
    return Reduce(draw(st.sampled_from(list(REDUCTIONS))), ranges, draw(inner))


@st.composite
def conditions(draw, depth: int):
    kind = draw(st.integers(0, 3)) if depth > 0 else 0
    if kind <= 1:
        return Compare(draw(st.sampled_from(COMPARISONS)), draw(trees(max(0, depth))), draw(trees(max(0, depth))))
    if kind == 2:
        return Logic(draw(st.sampled_from(["and", "or"])), draw(conditions(depth - 1)), draw(conditions(depth - 1)))
    return Not(draw(conditions(depth - 1)))


@st.composite
def statements(draw, depth: int):
    if depth and draw(st.integers(0, 2)) == 0:
        body = tuple(draw(statements(depth - 1)) for _ in range(draw(st.integers(1, 2))))
        return Repeat(draw(trees(1)), body)
    used = draw(st.lists(st.sampled_from(INDICES), max_size=3, unique=True))
    axes = tuple(
        Name(name) if draw(st.booleans()) else BinOp("+", Num(draw(st.integers(0, 9))), Name(name)) for name in used
    )
    bounds = tuple(Range(name, Num(1), Name("n")) for name in used if draw(st.integers(0, 3)) == 0)
    return Assign(draw(st.sampled_from(NAMES)), axes, draw(trees(3)), bounds)


@st.composite
def tree_steps(draw):
    return Step(tuple(draw(statements(2)) for _ in range(draw(st.integers(1, 2)))))


steps = tree_steps()


@relaxed
@given(steps)
def test_the_source_of_a_tree_is_read_back_to_the_same_tree(step):
    source = to_source(step)
    try:
        again = parse(source)
    except SpecInvalid as refusal:
        # a tree that is larger than the language allows is the only one that has no source
        assert any(
            word in finding.message for finding in refusal.findings for word in ("deeply", "too many", "too long")
        ), source
        return
    assert again == step
    assert to_source(again) == source


GIVEN = {"x": torch.ones(2, 3), "y'": torch.arange(4), "C": torch.eye(3), "d2": torch.ones(())}
GIVEN_NUMBERS = {"eps": 1e-6, "eps_norm": 1e-20, "n": 3}


@relaxed
@given(steps)
def test_any_tree_is_evaluated_or_refused_with_a_finding(step):
    try:
        values = evaluate(step, GIVEN, GIVEN_NUMBERS, max_elements=4096)
    except SpecInvalid as refusal:
        assert all(finding.message for finding in refusal.findings)
    else:
        assert all(value.dtype == torch.float64 for value in values.values())


@relaxed
@given(steps)
def test_made_tex_never_differs_from_its_step(step):
    assert tex_findings(step, to_tex(step, {}), {}) == []


@relaxed
@given(steps)
def test_mutants_are_other_formulas_and_all_different(step):
    forms = [normal_form(mutant.step) for mutant in mutants(step, constants={"eps"})]
    assert normal_form(step) not in forms
    assert len(set(forms)) == len(forms)


# -- random formulas against an interpreter that loops over every element -------------------------------------------

SIZES = {"i": 3, "a": 3, "j": 4, "b": 4}
LEAD = 2
TENSORS: dict[str, tuple[bool, tuple[int, ...]]] = {
    # name: whether it has a leading axis, and the sizes of the written ones
    "u": (True, (3,)), "v": (False, (4,)), "W": (False, (3, 4)),
    "Q": (True, (3, 3)), "t": (True, (4, 3)), "r": (True, ()),
}  # fmt: skip
NUMBERS = {"n": 3, "eps": 1e-3}


def tensor(name: str):
    lead, shape = TENSORS[name]
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    return torch.randn((LEAD, *shape) if lead else shape, generator=generator, dtype=torch.float64)


ENV = {name: tensor(name) for name in TENSORS}
LISTS = {name: value.tolist() for name, value in ENV.items()}


@st.composite
def index(draw, size: int, scope: tuple[str, ...]):
    """An index into an axis of this size, always inside it."""
    fitting = [name for name in scope if SIZES[name] == size]
    if not fitting or draw(st.integers(0, 5)) == 0:
        return Num(draw(st.integers(1, size)))
    name = Name(draw(st.sampled_from(fitting)))
    return BinOp("-", Num(size + 1), name) if draw(st.integers(0, 3)) == 0 else name


@st.composite
def item(draw, scope: tuple[str, ...]):
    name = draw(st.sampled_from(list(TENSORS)))
    shape = TENSORS[name][1]
    return Item(name, tuple(draw(index(size, scope)) for size in shape)) if shape else Name(name)


@st.composite
def formula(draw, scope: tuple[str, ...], depth: int):
    """An expression that has a finite value, and no jump where rounding could decide."""
    kind = draw(st.integers(0, 9)) if depth else draw(st.integers(0, 2))
    if kind <= 1:
        return draw(item(scope))
    if kind == 2:
        leaves = [Num(draw(st.integers(0, 3))), Num(0.5), Name("n"), Name("eps"), *(Name(name) for name in scope)]
        return draw(st.sampled_from(leaves))
    inner = formula(scope, depth - 1)
    if kind <= 5:
        return BinOp(draw(st.sampled_from("+-*")), draw(inner), draw(inner))
    if kind == 6:
        smooth = ["sigmoid", "tanh", "sin", "cos", "abs", "relu", "softplus", "gelu", "silu"]
        return Call(draw(st.sampled_from(smooth)), (draw(inner),))
    if kind == 7:
        below = BinOp("+", Num(1), BinOp("**", draw(inner), Num(2)))
        bounded = Call("exp", (Call("tanh", (draw(inner),)),))
        return draw(st.sampled_from([Neg(draw(inner)), BinOp("/", draw(inner), below), bounded]))
    if kind == 8:
        left = [*(Name(name) for name in scope), draw(item(scope))]
        condition = Compare(
            draw(st.sampled_from(COMPARISONS)), draw(st.sampled_from(left)), Num(draw(st.integers(1, 3)))
        )
        return Call("where", (condition, draw(inner), draw(inner)))
    # a reduction; its index may hide one that exists already
    name = draw(st.sampled_from(list(SIZES)))
    size = SIZES[name]
    body = draw(formula(tuple(dict.fromkeys((*scope, name))), depth - 1))
    if draw(st.booleans()):
        low = draw(st.integers(1, size))
        entry = Range(name, Num(low), Num(draw(st.integers(low, size))))
    else:
        entry = Range(name)
        axis = Item("u", (Name(name),)) if size == 3 else Item("v", (Name(name),))
        body = BinOp(draw(st.sampled_from("*+")), axis, body)
    return Reduce(draw(st.sampled_from(list(REDUCTIONS))), (entry,), body)


def slow(node, scope: Mapping[str, int], lead: int):
    """The value of an expression at one element, by the definition of each operation."""

    def at(part):
        return slow(part, scope, lead)

    if isinstance(node, Num):
        return node.value
    if isinstance(node, (Name, Item)):
        if isinstance(node, Name) and node.name in scope:
            return scope[node.name]
        if node.name in NUMBERS:
            return NUMBERS[node.name]
        value = LISTS[node.name][lead] if TENSORS[node.name][0] else LISTS[node.name]
        for place in getattr(node, "indices", ()):
            value = value[int(at(place)) - 1]
        return value
    if isinstance(node, Neg):
        return -at(node.operand)
    if isinstance(node, BinOp):
        left, right = at(node.left), at(node.right)
        return {
            "+": lambda: left + right, "-": lambda: left - right, "*": lambda: left * right,
            "/": lambda: left / right, "**": lambda: left**right,
        }[node.op]()  # fmt: skip
    if isinstance(node, Compare):
        left, right = at(node.left), at(node.right)
        return {
            "<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right,
            "==": left == right, "!=": left != right,
        }[node.op]  # fmt: skip
    if isinstance(node, Reduce):
        (entry,) = node.ranges
        low, high = (at(entry.low), at(entry.high)) if entry.low else (1, SIZES[entry.name])
        values = [slow(node.body, {**scope, entry.name: place}, lead) for place in range(low, high + 1)]
        return {
            "sum": math.fsum, "mean": lambda v: math.fsum(v) / len(v), "max": max, "min": min, "prod": math.prod,
        }[node.kind](values)  # fmt: skip
    if isinstance(node, Call) and node.function == "where":
        return at(node.args[1]) if at(node.args[0]) else at(node.args[2])
    (x,) = map(at, node.args)
    return {
        "sigmoid": lambda: 1 / (1 + math.exp(-x)) if x > -700 else 0.0,
        "tanh": lambda: math.tanh(x), "sin": lambda: math.sin(x), "cos": lambda: math.cos(x), "abs": lambda: abs(x),
        "relu": lambda: max(x, 0), "exp": lambda: math.exp(x),
        "softplus": lambda: x + math.log1p(math.exp(-x)) if x > 0 else math.log1p(math.exp(x)),
        "gelu": lambda: x * 0.5 * (1 + math.erf(x / math.sqrt(2))),
        "silu": lambda: x / (1 + math.exp(-x)) if x > -700 else 0.0,
    }[node.function]()  # fmt: skip


@relaxed
@given(formula(("i", "b"), 3))
def test_evaluation_equals_a_slow_interpreter(expression):
    expected = [
        [[slow(expression, {"i": i, "b": b}, lead) for b in range(1, 5)] for i in range(1, 4)] for lead in range(LEAD)
    ]
    step = parse(to_source(Step((Assign("y", (Name("i"), Name("b")), expression),))))
    for limit in (2**20, 24):  # the small limit makes reductions work in parts; results have 24 elements
        actual = evaluate(step, ENV, NUMBERS, shapes={"y": (LEAD, 3, 4)}, max_elements=limit)["y"]
        wanted = torch.tensor(expected, dtype=torch.float64)
        # a sum that cancels keeps only the absolute precision of its terms
        torch.testing.assert_close(actual.expand_as(wanted), wanted, rtol=1e-7, atol=1e-7)
