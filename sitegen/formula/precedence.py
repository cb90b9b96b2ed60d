# One table for the parser, the source writer and the TeX writer: brackets are written exactly where
# they are read.
"""How strongly the operators of the formula language bind."""

from __future__ import annotations

from sitegen.formula.functions import COMPARISONS

#: How strongly each operator binds; a larger number binds more tightly.
OR, AND, NOT, COMPARE, ADD, MULTIPLY, NEGATE, POWER = 10, 20, 30, 40, 50, 60, 70, 80

BINDING: dict[str, int] = {"or": OR, "and": AND, **dict.fromkeys(COMPARISONS, COMPARE)}
BINDING |= {"+": ADD, "-": ADD, "*": MULTIPLY, "/": MULTIPLY, "//": MULTIPLY, "%": MULTIPLY, "**": POWER}
