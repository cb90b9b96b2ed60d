# The fixed list of functions.  A function belongs here only if it is general mathematics: none is
# named after a part of a model, so that a formula always shows what happens instead of naming it.
"""The functions and reductions that formulas may use, with what each computes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Function:
    """A function of the list: how many arguments it takes (least, most) and what it is."""

    least: int
    most: int
    meaning: str


#: Elementwise functions.  `max` and `min` with a colon (`max(k: x)`) are reductions instead.
FUNCTIONS: dict[str, Function] = {
    "exp": Function(1, 1, "e to the x"),
    "log": Function(1, 1, "natural logarithm"),
    "log2": Function(1, 1, "logarithm to base 2"),
    "sqrt": Function(1, 1, "square root"),
    "sigmoid": Function(1, 1, "1 / (1 + exp(-x))"),
    "softplus": Function(1, 1, "log(1 + exp(x)), without a linear shortcut"),
    "silu": Function(1, 1, "x * sigmoid(x)"),
    "relu": Function(1, 1, "x where positive, else 0"),
    "gelu": Function(1, 1, "x times the normal distribution function (the exact form)"),
    "tanh": Function(1, 1, "hyperbolic tangent"),
    "sin": Function(1, 1, "sine"),
    "cos": Function(1, 1, "cosine"),
    "abs": Function(1, 1, "absolute value"),
    "sign": Function(1, 1, "-1, 0 or 1"),
    "floor": Function(1, 1, "largest integer not above x"),
    "ceil": Function(1, 1, "smallest integer not below x"),
    "round": Function(1, 1, "nearest integer, halves to even"),
    "max": Function(2, 8, "larger of the arguments, element by element"),
    "min": Function(2, 8, "smaller of the arguments, element by element"),
    "clamp": Function(3, 3, "clamp(x, low, high): x, but not below low nor above high"),
    "where": Function(3, 3, "where(condition, a, b): a where the condition holds, else b"),
    "delta": Function(2, 2, "1 where both arguments are equal, else 0"),
}

#: Reductions over one or more indices: `sum(j: …)`, `max(j, k: …)`, `mean(c = 1..n: …)`.
REDUCTIONS: dict[str, str] = {
    "sum": "sum of all",
    "mean": "sum of all divided by how many there are",
    "max": "largest",
    "min": "smallest",
    "prod": "product of all",
}

#: Words that are no names.
KEYWORDS = ("and", "or", "not", "repeat", "for")

COMPARISONS = ("<=", ">=", "==", "!=", "<", ">")
