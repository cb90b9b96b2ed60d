# Single small changes of an expression, each a mistake that people make when they copy a formula or
# its code.  What a change is called (`kind`) is part of the public vocabulary of mutation.py.
"""Rewrites of expressions: one change at a time, with a sentence on what changed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from sitegen.formula.names import depends_on
from sitegen.formula.source import to_source
from sitegen.formula.syntax import (
    BinOp,
    Call,
    Compare,
    Expr,
    Item,
    Logic,
    Name,
    Neg,
    Node,
    Not,
    Num,
    Range,
    Reduce,
    children,
    with_children,
)

Scope = Mapping[str, bool]

#: A number or symbol below this size in a sum is an epsilon.
SMALL = 1e-3

#: Stands in a description for the source of the changed part.
NEW = "\N{WHITE SQUARE}"

_OTHER_REDUCTION = {"mean": "sum", "max": "min", "min": "max"}
_OTHER_COMPARISON = {"<=": "<", "<": "<=", ">=": ">", ">": ">=", "==": "!=", "!=": "=="}


@dataclass(frozen=True)
class Rewrite:
    """A changed node, what kind of change it is, and what was done."""

    kind: str
    what: str
    node: Expr


@dataclass(frozen=True)
class Rewriter:
    """Makes rewrites; `constants` are symbols that count as numbers, to be changed by one per cent."""

    constants: frozenset[str] = frozenset()

    def rewrites(self, node: Expr, scope: Scope, chain: str = "") -> Iterator[Rewrite]:
        """Every single change of an expression.

        Args:
            scope: the indices that exist where the expression stands, and whether each has bounds of its own;
                one that has none covers the whole of the axes that it addresses.
            chain: `+` or `*` if the expression is the left part of a sum or product that was already looked at.
        """
        for change in self.changes(node, scope, chain):
            yield replace(change, what=change.what.replace(NEW, to_source(change.node)))
        parts = list(children(node))
        for place, part in enumerate(parts):
            for inner in self.below(node, part, scope):
                changed = [*parts[:place], inner.node, *parts[place + 1 :]]
                yield Rewrite(inner.kind, inner.what, with_children(node, changed))

    def below(self, node: Expr, part: Node, scope: Scope) -> Iterator[Rewrite]:
        """Changes inside a part; indices and bounds are changed as a whole, by `changes`."""
        if isinstance(node, Item) or isinstance(part, Range) or (isinstance(node, Call) and node.function == "delta"):
            return
        if isinstance(node, BinOp) and node.op == "**" and part is node.right and _is_whole(part):
            return
        chain = ""
        if isinstance(node, BinOp) and isinstance(part, BinOp) and part is node.left:
            chain = _chain(node.op) if _chain(node.op) == _chain(part.op) else ""
        if isinstance(node, Reduce):
            scope = {**scope, **{entry.name: entry.low is not None for entry in node.ranges}}
        yield from self.rewrites(part, scope, chain)

    def changes(self, node: Expr, scope: Scope, chain: str) -> Iterator[Rewrite]:
        """Changes of this node itself."""
        shown = to_source(node)
        if isinstance(node, Num):
            yield Rewrite("constant", f"{shown} becomes {NEW}", Num(_one_per_cent_more(node.value), at=node.at))
        elif isinstance(node, Name):
            if node.name in self.constants:
                yield Rewrite("constant", f"{shown} becomes {NEW}", BinOp("*", Num(1.01), node, at=node.at))
        elif isinstance(node, Neg):
            yield Rewrite("sign", f"the minus before {to_source(node.operand)} is dropped", node.operand)
        elif isinstance(node, Item):
            yield from _item_changes(node, scope)
        elif isinstance(node, BinOp):
            yield from _chain_changes(node, chain)
        elif isinstance(node, Call):
            yield from _call_changes(node, scope)
        elif isinstance(node, Reduce):
            yield from _reduction_changes(node, scope)
        elif isinstance(node, Compare):
            other = _OTHER_COMPARISON[node.op]
            yield Rewrite("condition", f"{shown} becomes {NEW}", replace(node, op=other))
        elif isinstance(node, Logic):
            yield Rewrite("condition", f"{shown} becomes {NEW}", replace(node, op="or" if node.op == "and" else "and"))
        elif isinstance(node, Not):
            yield Rewrite("condition", f"{shown} becomes {NEW}", node.operand)


def _chain(operator: str) -> str:
    return {"+": "+", "-": "+", "*": "*", "/": "*"}.get(operator, "")


def _is_whole(node: Node) -> bool:
    return isinstance(node, Num) and isinstance(node.value, int)


def _one_per_cent_more(value: int | float) -> float:
    """1.01 times the number as written, so that 1e-6 becomes 1.01e-6 exactly; 0.01 for zero."""
    return float(Decimal(repr(value)) * Decimal("1.01")) if value else 0.01


def _chain_changes(node: BinOp, chain: str) -> Iterator[Rewrite]:
    if node.op == "**":
        yield Rewrite("power", f"the power of {to_source(node)} is dropped", node.left)
        if _is_whole(node.right):
            higher = Num(node.right.value + 1, at=node.right.at)
            yield Rewrite("power", f"{to_source(node)} becomes {NEW}", replace(node, right=higher))
        return
    kind = _chain(node.op)
    if not kind or kind == chain:
        return
    links: list[tuple[str, Expr]] = []
    rest: Expr = node
    while isinstance(rest, BinOp) and _chain(rest.op) == kind:
        links.insert(0, (rest.op, rest.right))
        rest = rest.left
    links.insert(0, (kind, rest))
    for place, (operator, part) in enumerate(links):
        left = [*links[:place], *links[place + 1 :]]
        if kind == "+":
            name = "epsilon" if is_epsilon(part) else "term"
            what = f"the {name} {to_source(part)} is dropped"
        else:
            name = "factor"
            what = f"the {'divisor' if operator == '/' else 'factor'} {to_source(part)} is dropped"
        yield Rewrite(name, what, _joined(left))


def _joined(links: list[tuple[str, Expr]]) -> Expr:
    operator, first = links[0]
    if operator == "-":
        first = Neg(first, at=first.at)
    elif operator == "/":
        first = BinOp("/", Num(1), first, at=first.at)
    for operator, part in links[1:]:
        first = BinOp(operator, first, part, at=part.at)
    return first


def is_epsilon(node: Expr) -> bool:
    """Whether a term only keeps a sum away from zero: a tiny number, or a symbol called eps."""
    if isinstance(node, Num):
        return 0 < node.value < SMALL
    return isinstance(node, Name) and "eps" in node.name.lower()


def _item_changes(node: Item, scope: Scope) -> Iterator[Rewrite]:
    for first, second in itertools.combinations(range(len(node.indices)), 2):
        indices = list(node.indices)
        indices[first], indices[second] = indices[second], indices[first]
        changed = replace(node, indices=tuple(indices))
        yield Rewrite("index-order", f"{to_source(node)} becomes {to_source(changed)}", changed)
    for place, index in enumerate(node.indices):
        for moved in moved_by_one(index, scope):
            changed = replace(node, indices=(*node.indices[:place], moved, *node.indices[place + 1 :]))
            yield Rewrite("slice", f"{to_source(node)} becomes {to_source(changed)}", changed)


def moved_by_one(index: Expr, scope: Scope, least: int = 1) -> Iterator[Expr]:
    """An index one element further and one back, not below `least`.

    An index that covers its axis cannot move, and one with bounds of its own only moves forward: it usually
    begins with the first element.
    """
    if isinstance(index, Name) and index.name in scope:
        if scope[index.name]:
            yield _with_offset(index, 1)
        return
    if isinstance(index, Num) and isinstance(index.value, int):
        yield Num(index.value + 1, at=index.at)
        if index.value > least:
            yield Num(index.value - 1, at=index.at)
        return
    yield _with_offset(index, 1)
    yield _with_offset(index, -1)


def _with_offset(index: Expr, offset: int) -> Expr:
    """The index plus an offset, joined to a number of the sum where there is one: 4 + k becomes 5 + k."""
    if _is_whole(index) and index.value + offset >= 0:
        return Num(index.value + offset, at=index.at)
    if isinstance(index, BinOp) and index.op in "+-":
        if _is_whole(index.left) and index.left.value + offset >= 0:
            return replace(index, left=Num(index.left.value + offset, at=index.left.at))
        if isinstance(index.left, BinOp) and index.left.op in "+-" and _has_number(index.left):
            return replace(index, left=_with_offset(index.left, offset))
        sign = 1 if index.op == "+" else -1
        if _is_whole(index.right) and index.right.value + sign * offset >= 0:
            value = index.right.value + sign * offset
            return replace(index, right=Num(value, at=index.right.at)) if value else index.left
    return BinOp("+" if offset > 0 else "-", index, Num(abs(offset), at=index.at), at=index.at)


def _has_number(index: Expr) -> bool:
    return (
        isinstance(index, BinOp)
        and index.op in "+-"
        and (_is_whole(index.left) or _is_whole(index.right) or _has_number(index.left))
    )


def _call_changes(node: Call, scope: Scope) -> Iterator[Rewrite]:
    shown = to_source(node)
    if node.function == "where":
        for branch in node.args[1:]:
            yield Rewrite("branch", f"{shown} becomes {NEW}", branch)
    elif node.function == "delta":
        scope = dict.fromkeys(scope, False)
        for place, argument in enumerate(node.args):
            for moved in moved_by_one(argument, scope, least=0):
                changed = replace(node, args=(*node.args[:place], moved, *node.args[place + 1 :]))
                yield Rewrite("slice", f"{shown} becomes {NEW}", changed)
    elif node.function in ("max", "min"):
        for place in range(len(node.args)):
            rest = (*node.args[:place], *node.args[place + 1 :])
            changed = replace(node, args=rest) if len(rest) > 1 else rest[0]
            yield Rewrite("term", f"{to_source(node.args[place])} is dropped from {shown}", changed)
    else:
        yield Rewrite("function", f"the function {node.function} is dropped from {shown}", node.args[0])


def _reduction_changes(node: Reduce, scope: Scope) -> Iterator[Rewrite]:
    shown = to_source(node)
    other = _OTHER_REDUCTION.get(node.kind)
    if other:
        yield Rewrite("reduction", f"{node.kind} becomes {other} in {shown}", replace(node, kind=other))
    own = {entry.name for entry in node.ranges}
    for place, entry in enumerate(node.ranges):
        for name in sorted(scope.keys() - own):
            if not depends_on(node.body, {name}):
                continue
            if entry.name in scope:
                # the reduced index also exists outside, so the body may simply reduce over the other one
                ranges = (*node.ranges[:place], Range(name, at=entry.at), *node.ranges[place + 1 :])
                changed = replace(node, ranges=ranges)
            else:
                changed = replace(node, body=_exchanged(node.body, entry.name, name))
            yield Rewrite("axis", f"{shown} becomes {to_source(changed)}", changed)
        if entry.low is not None and entry.high is not None:
            later, earlier = _with_offset(entry.low, 1), _with_offset(entry.high, -1)
            for other_entry in (replace(entry, low=later), replace(entry, high=earlier)):
                ranges = (*node.ranges[:place], other_entry, *node.ranges[place + 1 :])
                what = f"{to_source(entry)} becomes {to_source(other_entry)}"
                yield Rewrite("slice", what, replace(node, ranges=ranges))


def _exchanged(node: Node, first: str, second: str) -> Node:
    """Two index names exchanged wherever they are free."""
    if isinstance(node, Name):
        return replace(node, name={first: second, second: first}.get(node.name, node.name))
    if isinstance(node, Reduce) and {entry.name for entry in node.ranges} & {first, second}:
        return node
    return with_children(node, [_exchanged(child, first, second) for child in children(node)])
