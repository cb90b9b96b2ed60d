# Writes a tree back as text.  Brackets are written only where the parser needs them, so that the
# text of a mutated formula reads like one that an author wrote.
"""Source text of a parsed formula."""

from __future__ import annotations

from sitegen.formula.precedence import ADD, AND, BINDING, COMPARE, NEGATE, NOT, OR, POWER
from sitegen.formula.syntax import (
    Assign,
    BinOp,
    Call,
    Compare,
    Item,
    Logic,
    Name,
    Neg,
    Node,
    Not,
    Num,
    Range,
    Reduce,
    Repeat,
    Statement,
    Step,
)

ATOM = 100


def to_source(node: Node) -> str:
    """The text of a step, statement or expression; `parse` reads a step's text back to an equal tree."""
    if isinstance(node, Step):
        return "\n".join(_statement(statement) for statement in node.statements)
    if isinstance(node, (Assign, Repeat)):
        return _statement(node)
    if isinstance(node, Range):
        return _range(node)
    return _write(node)[0]


def _statement(statement: Statement) -> str:
    if isinstance(statement, Assign):
        axes = f"[{', '.join(to_source(axis) for axis in statement.axes)}]" if statement.axes else ""
        bounds = f" for {', '.join(map(_range, statement.ranges))}" if statement.ranges else ""
        return f"{statement.name}{axes} = {to_source(statement.value)}{bounds}"
    parts = [_statement(part) for part in statement.body]
    # an unbraced repeat takes everything to the end of the line, so only the last one may go without
    for place, part in enumerate(statement.body[:-1]):
        if isinstance(part, Repeat):
            head = f"repeat({to_source(part.count)}): "
            parts[place] = head + "{ " + parts[place][len(head) :] + " }"
    return f"repeat({to_source(statement.count)}): {'; '.join(parts)}"


def _range(entry: Range) -> str:
    if entry.low is None or entry.high is None:
        return entry.name
    return f"{entry.name} = {to_source(entry.low)}..{to_source(entry.high)}"


def number(value: int | float) -> str:
    """A number as formulas write it: 1e-6, not 1e-06; 20480.0 keeps its point."""
    text = repr(value)
    if "e" not in text:
        return text
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}"


def _write(node: Node) -> tuple[str, int]:
    """The text and how strongly its outermost operator binds."""
    if isinstance(node, Num):
        return number(node.value), ATOM
    if isinstance(node, Name):
        return node.name, ATOM
    if isinstance(node, Item):
        return f"{node.name}[{', '.join(map(to_source, node.indices))}]", ATOM
    if isinstance(node, Call):
        return f"{node.function}({', '.join(map(to_source, node.args))})", ATOM
    if isinstance(node, Reduce):
        return f"{node.kind}({', '.join(map(_range, node.ranges))}: {to_source(node.body)})", ATOM
    if isinstance(node, Neg):
        return "-" + _inside(node.operand, NEGATE), NEGATE
    if isinstance(node, Not):
        return "not " + _inside(node.operand, NOT), NOT
    if isinstance(node, BinOp):
        binding = BINDING[node.op]
        if binding == POWER:
            # the exponent may be signed or another power; the base may be neither
            return f"{_inside(node.left, POWER + 1)}**{_inside(node.right, NEGATE)}", POWER
        space = " " if binding == ADD else ""
        left, right = _inside(node.left, binding), _inside(node.right, binding + 1)
        return f"{left}{space}{node.op}{space}{right}", binding
    if isinstance(node, Compare):
        return f"{_inside(node.left, COMPARE + 1)} {node.op} {_inside(node.right, COMPARE + 1)}", COMPARE
    if isinstance(node, Logic):
        binding = OR if node.op == "or" else AND
        return f"{_inside(node.left, binding)} {node.op} {_inside(node.right, binding + 1)}", binding
    raise TypeError(f"no source for {type(node).__name__}")


def _inside(node: Node, least: int) -> str:
    text, binding = _write(node)
    return text if binding >= least else f"({text})"
