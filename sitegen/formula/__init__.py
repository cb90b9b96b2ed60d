# The formula language: a formula is written once, in index notation, and everything else comes from
# its syntax tree: the values (evaluator.py), the TeX (tex.py) and the forms that must fail (mutation.py).
"""Formulas in index notation: parse, check, evaluate, typeset and mutate them.

    step = parse("u[k] = 2*sigmoid(s[2]*m[4 + k] + b[4 + k])")
    evaluate(step, {"m": m, "s": s, "b": b}, {}, shapes={"u": (4,)})["u"]
"""

from __future__ import annotations

from sitegen.formula.evaluator import MAX_ELEMENTS, evaluate
from sitegen.formula.functions import FUNCTIONS, REDUCTIONS
from sitegen.formula.names import Names, Terms, check, names, terms
from sitegen.formula.parser import parse
from sitegen.formula.source import to_source
from sitegen.formula.syntax import Step

__all__ = [
    "FUNCTIONS",
    "MAX_ELEMENTS",
    "REDUCTIONS",
    "Names",
    "Step",
    "Terms",
    "check",
    "evaluate",
    "names",
    "parse",
    "terms",
    "to_source",
]
