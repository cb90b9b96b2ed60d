# The formula language: a formula is written once, in index notation, and everything else comes from
# its syntax tree: the values (evaluator.py), the TeX (tex.py) and the forms that must fail (mutation.py).
# Nothing here imports torch before a formula is evaluated.
"""Formulas in index notation: parse, check, evaluate, typeset and mutate them.

The language, by example (indices count from 1):

    u[k] = 2*sigmoid(s[2]*m[4 + k] + b[4 + k])
    X'[k, d] = u[k]*y[d] + sum(j: C[j, k]*X[j, d])
    m[i] = sum(c: W[i, c]*x[c])/sqrt(mean(c: x[c]**2) + eps_norm)
    p[j] = delta(j, 1) for j = 1..n
    x[(s - 1)*D + d] = X[s, d]
    repeat(iters - 1): M[j, k] = M[j, k]/(sum(k: M[j, k]) + eps); M[j, k] = M[j, k]/(sum(j: M[j, k]) + eps)

Statements are separated by `;` or newlines and see what the ones before them assigned; the body of a `repeat`
reaches to the end of its line or stands in braces.  A tensor's last axes are written as indices, the leading
ones (batch, position) are implicit.  An index runs over the axis that it addresses alone, or where `j = 1..n`
says; inside its statement or reduction it hides a symbol of the same name.

    step = parse("u[k] = 2*sigmoid(s[2]*m[4 + k] + b[4 + k])")
    evaluate(step, {"m": m, "s": s, "b": b}, {}, shapes={"u": (4,)})["u"]
"""

from __future__ import annotations

from sitegen.formula.evaluator import MAX_ELEMENTS, evaluate
from sitegen.formula.functions import FUNCTIONS, KEYWORDS, REDUCTIONS, Function
from sitegen.formula.mutation import KINDS, Mutant, mutants
from sitegen.formula.names import Names, Terms, check, names, terms
from sitegen.formula.normal import normal_form
from sitegen.formula.parser import parse
from sitegen.formula.source import to_source
from sitegen.formula.symboltex import SymbolTex, number_tex
from sitegen.formula.syntax import MAX_DEPTH, MAX_LENGTH, MAX_NODES, MAX_REPEAT, Step
from sitegen.formula.tex import FUNCTION_TEX, to_tex
from sitegen.formula.texterms import TexTerms, tex_findings, tex_terms

__all__ = [
    "FUNCTIONS",
    "FUNCTION_TEX",
    "KEYWORDS",
    "KINDS",
    "MAX_DEPTH",
    "MAX_ELEMENTS",
    "MAX_LENGTH",
    "MAX_NODES",
    "MAX_REPEAT",
    "REDUCTIONS",
    "Function",
    "Mutant",
    "Names",
    "Step",
    "SymbolTex",
    "Terms",
    "TexTerms",
    "check",
    "evaluate",
    "mutants",
    "names",
    "normal_form",
    "number_tex",
    "parse",
    "terms",
    "tex_findings",
    "tex_terms",
    "to_source",
    "to_tex",
]
