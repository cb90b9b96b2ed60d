# The nodes of a parsed formula and how to walk them.
#
# Nodes are frozen and compare by what they mean: the offset `at` (where the node stands in the text)
# is left out of equality, so that `parse(to_source(step)) == step` can hold.  Walking goes through
# `children` and `with_children`, which look at the fields of a node, so that a new node type needs no
# change in the modules that rewrite trees.
"""Syntax tree of a formula: frozen nodes, and one way to walk and rebuild them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import TypeVar

from sitegen.diagnostics import NOWHERE, Finding, Location, SpecInvalid

#: The largest formula that is read: characters, nesting of brackets and operators, nodes of the tree.
MAX_LENGTH, MAX_DEPTH, MAX_NODES = 4096, 64, 2000

#: The largest number of rounds that a `repeat` may have.
MAX_REPEAT = 10_000


def _offset() -> int:
    return field(default=0, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Num:
    """A number as written: an int without a point or exponent, otherwise a float; never negative."""

    value: int | float
    at: int = _offset()


@dataclass(frozen=True)
class Name:
    """A name without brackets: an index, a symbol, or a tensor of which no axis is written."""

    name: str
    at: int = _offset()


@dataclass(frozen=True)
class Item:
    """`m[4 + k]`: elements of a tensor; the indices count from 1 and address its last axes."""

    name: str
    indices: tuple[Expr, ...]
    at: int = _offset()


@dataclass(frozen=True)
class Neg:
    """`-x`."""

    operand: Expr
    at: int = _offset()


@dataclass(frozen=True)
class BinOp:
    """`a op b` with op one of + - * / // % **."""

    op: str
    left: Expr
    right: Expr
    at: int = _offset()


@dataclass(frozen=True)
class Call:
    """`sigmoid(x)`: one of the functions of the fixed list."""

    function: str
    args: tuple[Expr, ...]
    at: int = _offset()


@dataclass(frozen=True)
class Range:
    """An index and where it runs: `j` (as the axes that it indexes say) or `j = low..high`, both included."""

    name: str
    low: Expr | None = None
    high: Expr | None = None
    at: int = _offset()


@dataclass(frozen=True)
class Reduce:
    """`sum(j, d = 1..n: x)`: the body reduced over indices that exist only inside it."""

    kind: str
    ranges: tuple[Range, ...]
    body: Expr
    at: int = _offset()


@dataclass(frozen=True)
class Compare:
    """`a <= b`: a condition."""

    op: str
    left: Expr
    right: Expr
    at: int = _offset()


@dataclass(frozen=True)
class Logic:
    """`p and q`, `p or q`: a condition made of two."""

    op: str
    left: Expr
    right: Expr
    at: int = _offset()


@dataclass(frozen=True)
class Not:
    """`not p`."""

    operand: Expr
    at: int = _offset()


Expr = Num | Name | Item | Neg | BinOp | Call | Reduce | Compare | Logic | Not

#: Nodes that are true or false; all others are numbers.
CONDITIONS = (Compare, Logic, Not)


@dataclass(frozen=True)
class Assign:
    """`u[k] = … for k = 1..n`: elements of a tensor; what `for` does not bound runs as the axes say."""

    name: str
    axes: tuple[Expr, ...]
    value: Expr
    ranges: tuple[Range, ...] = ()
    at: int = _offset()


@dataclass(frozen=True)
class Repeat:
    """`repeat(19): a; b`: the statements in order, that many times."""

    count: Expr
    body: tuple[Statement, ...]
    at: int = _offset()


Statement = Assign | Repeat


@dataclass(frozen=True)
class Step:
    """A parsed formula: its statements in order, the text that they were read from and its place."""

    statements: tuple[Statement, ...]
    text: str = field(default="", compare=False)
    where: Location = field(default=NOWHERE, compare=False)

    def locate(self, at: int) -> Location:
        """The place of character `at`; `where` is the place of the first one and later lines are indented alike."""
        if not self.where.line:
            return self.where
        before = self.text[:at]
        column = at - (before.rfind("\n") + 1)
        return Location(self.where.file, self.where.line + before.count("\n"), self.where.column + column)

    def fault(self, code: str, message: str, at: int = 0, **values: str) -> SpecInvalid:
        """An exception with one finding about the text at character `at`."""
        return SpecInvalid([Finding(code, message, self.locate(at), **values)])


Node = Expr | Range | Assign | Repeat | Step
N = TypeVar("N", bound=Node)

_NODE_TYPES = (Num, Name, Item, Neg, BinOp, Call, Range, Reduce, Compare, Logic, Not, Assign, Repeat, Step)


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below, in the order in which they are written."""
    for entry in fields(node):
        value = getattr(node, entry.name)
        if isinstance(value, _NODE_TYPES):
            yield value
        elif isinstance(value, tuple):
            yield from (part for part in value if isinstance(part, _NODE_TYPES))


def with_children(node: N, new: list[Node]) -> N:
    """The same node with other nodes below it, given in the order of `children`."""
    rest = iter(new)
    changed: dict[str, object] = {}
    for entry in fields(node):
        value = getattr(node, entry.name)
        if isinstance(value, _NODE_TYPES):
            changed[entry.name] = next(rest)
        elif isinstance(value, tuple) and any(isinstance(part, _NODE_TYPES) for part in value):
            changed[entry.name] = tuple(next(rest) if isinstance(part, _NODE_TYPES) else part for part in value)
    return replace(node, **changed)


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, in writing order."""
    yield node
    for child in children(node):
        yield from walk(child)


def assignments(statements: tuple[Statement, ...]) -> Iterator[Assign]:
    """Every assignment once, in writing order, the bodies of repeats included."""
    for statement in statements:
        if isinstance(statement, Assign):
            yield statement
        else:
            yield from assignments(statement.body)
