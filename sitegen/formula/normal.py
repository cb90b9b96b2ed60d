# A normal form in which formulas that mean the same by construction are equal: sums and products are
# sorted and collected as polynomials over opaque parts, numbers are exact, and bound indices lose their
# names.  It decides which mutated formulas are worth running, so it may miss an equality but must never
# claim one that does not hold.
"""Normal form of formulas, for telling apart mutants that differ from those that cannot."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

from sitegen.formula.names import target_ranges
from sitegen.formula.syntax import (
    Assign,
    BinOp,
    Call,
    Compare,
    Expr,
    Item,
    Logic,
    Name,
    Neg,
    Not,
    Num,
    Range,
    Reduce,
    Repeat,
    Statement,
    Step,
)

#: A polynomial: products of parts with whole powers, each with its coefficient.
Product = tuple[tuple[str, int], ...]
Polynomial = dict[Product, Fraction]

#: Products of sums are multiplied out up to so many terms.
MAX_TERMS = 48

_SYMMETRIC = ("max", "min", "delta")


def normal_form(step: Step) -> str:
    """A text that is equal for two steps only if they are the same formula up to naming and order."""
    return _block(step.statements)


def _block(statements: tuple[Statement, ...]) -> str:
    return "; ".join(filter(None, map(_statement, statements)))


def _statement(statement: Statement) -> str:
    """The normal form of a statement; empty if it does nothing."""
    if isinstance(statement, Repeat):
        count, body = key(statement.count), _block(statement.body)
        if not body or count == key(Num(0)):
            return ""
        return body if count == key(Num(1)) else f"repeat({count}){{{body}}}"
    return _assignment(statement)


def _assignment(statement: Assign) -> str:
    if not statement.ranges and statement.value == (
        Item(statement.name, statement.axes) if statement.axes else Name(statement.name)
    ):
        return ""
    ranges = target_ranges(statement)
    renamed = {entry.name: f"@{place}" for place, entry in enumerate(ranges)}
    axes = ",".join(key(axis, renamed) for axis in statement.axes)
    bounds = ",".join(_bounds(entry, {}) for entry in ranges)
    return f"{statement.name}[{axes}]={key(statement.value, renamed)} for {bounds}"


def key(node: Expr, renamed: Mapping[str, str] | None = None) -> str:
    """The normal form of an expression in which indices are renamed."""
    return _text(_polynomial(node, renamed or {}))


def _text(terms: Polynomial) -> str:
    def product(parts: Product) -> str:
        return "*".join(f"{part}^{power}" for part, power in parts)

    return "+".join(sorted(f"{factor}*{product(parts)}" for parts, factor in terms.items() if factor)) or "0"


def _one(part: str) -> Polynomial:
    return {((part, 1),): Fraction(1)}


def _polynomial(node: Expr, renamed: Mapping[str, str]) -> Polynomial:
    if isinstance(node, Num):
        return {(): Fraction(Decimal(repr(node.value)))} if node.value else {}
    if isinstance(node, Name):
        return _one(renamed.get(node.name, node.name))
    if isinstance(node, Neg):
        return {parts: -factor for parts, factor in _polynomial(node.operand, renamed).items()}
    if isinstance(node, BinOp):
        return _operation(node, renamed)
    return _one(_opaque(node, renamed))


def _opaque(node: Expr, renamed: Mapping[str, str]) -> str:
    if isinstance(node, Item):
        return f"{node.name}[{','.join(key(index, renamed) for index in node.indices)}]"
    if isinstance(node, Call):
        arguments = [key(argument, renamed) for argument in node.args]
        if node.function in _SYMMETRIC:
            arguments.sort()
        return f"{node.function}({','.join(arguments)})"
    if isinstance(node, Reduce):
        return min(_reduction(node, order, renamed) for order in _orders(node.ranges))
    if isinstance(node, Compare):
        left, right, op = key(node.left, renamed), key(node.right, renamed), node.op
        if op in (">", ">="):
            left, right, op = right, left, op.replace(">", "<")
        if op in ("==", "!="):
            left, right = sorted((left, right))
        return f"({left}{op}{right})"
    if isinstance(node, Logic):
        return f"({f' {node.op} '.join(sorted((key(node.left, renamed), key(node.right, renamed))))})"
    if isinstance(node, Not):
        return f"(not {key(node.operand, renamed)})"
    raise TypeError(f"no normal form for {type(node).__name__}")


def _orders(ranges: tuple[Range, ...]) -> list[tuple[Range, ...]]:
    """The order of reduced indices does not matter; beyond four it is left as written."""
    return list(itertools.permutations(ranges)) if len(ranges) <= 4 else [ranges]


def _reduction(node: Reduce, order: tuple[Range, ...], renamed: Mapping[str, str]) -> str:
    level = sum(name.startswith("#") for name in renamed.values())
    inner = {**renamed, **{entry.name: f"#{level + place}" for place, entry in enumerate(order)}}
    bounds = ",".join(_bounds(entry, renamed) for entry in order)
    return f"{node.kind}({bounds}:{key(node.body, inner)})"


def _bounds(entry: Range, renamed: Mapping[str, str]) -> str:
    if entry.low is None or entry.high is None:
        return "axis"
    return f"{key(entry.low, renamed)}..{key(entry.high, renamed)}"


def _operation(node: BinOp, renamed: Mapping[str, str]) -> Polynomial:
    left, right = _polynomial(node.left, renamed), _polynomial(node.right, renamed)
    if node.op in "+-":
        sign = 1 if node.op == "+" else -1
        total = dict(left)
        for parts, factor in right.items():
            total[parts] = total.get(parts, Fraction(0)) + sign * factor
        return {parts: factor for parts, factor in total.items() if factor}
    if node.op == "*":
        return _times(left, right)
    if node.op == "/" and right:
        return _times(left, _raised(right, -1))
    if node.op == "**" and isinstance(node.right, (Num, Neg)):
        exponent = right.get((), Fraction(0)) if set(right) <= {()} else None
        whole = exponent is not None and exponent.denominator == 1 and 0 < abs(exponent) <= 8
        if exponent is not None and whole and (left or exponent > 0):
            return _raised(left, int(exponent))
    return _one(f"({_text(left)}{node.op}{_text(right)})")


def _times(left: Polynomial, right: Polynomial) -> Polynomial:
    if len(left) * len(right) > MAX_TERMS:
        return {_merged((_grouped(left), 1), (_grouped(right), 1)): Fraction(1)}
    total: Polynomial = {}
    for (first, a), (second, b) in itertools.product(left.items(), right.items()):
        parts = _merged(*first, *second)
        total[parts] = total.get(parts, Fraction(0)) + a * b
    return {parts: factor for parts, factor in total.items() if factor}


def _raised(base: Polynomial, exponent: int) -> Polynomial:
    """A whole power: of each part for a single product, of the sum as one part otherwise; of zero if positive."""
    if not base:
        return {}
    if len(base) == 1:
        ((parts, factor),) = base.items()
        return {tuple((part, power * exponent) for part, power in parts): factor**exponent}
    return {((_grouped(base), exponent),): Fraction(1)}


def _grouped(terms: Polynomial) -> str:
    return f"({_text(terms)})"


def _merged(*parts: tuple[str, int]) -> Product:
    powers: dict[str, int] = {}
    for part, power in parts:
        powers[part] = powers.get(part, 0) + power
    return tuple(sorted((part, power) for part, power in powers.items() if power))
