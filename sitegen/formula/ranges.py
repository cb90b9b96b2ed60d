# Where an index runs.  An explicit `j = 1..n` decides; otherwise every axis that the index addresses
# alone must have the same size, and that is its range.  An index that occurs only in `m[4 + k]` has
# no range of its own: guessing one would let a wrong slice pass.
"""Ranges of the indices of a formula, from the axes that they address."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from sitegen.diagnostics import nearest
from sitegen.formula.names import plain_axes
from sitegen.formula.source import to_source
from sitegen.formula.syntax import MAX_REPEAT, Assign, BinOp, Expr, Name, Neg, Node, Num, Range, Step

Numbers = Mapping[str, int | float]
#: The size of axis `axis` of a tensor of which `count` axes are written; None where it has no such axis.
AxisSize = Callable[[str, int, int], int | None]


def constant(step: Step, node: Expr, symbols: Numbers) -> int | float:
    """The value of an expression made of numbers and symbols with + - * // % / and bounded powers."""
    if isinstance(node, Num):
        return node.value
    if isinstance(node, Name):
        if node.name not in symbols:
            raise step.fault(
                "unknown-symbol", f"{node.name} has no value here", node.at, hint=nearest(node.name, symbols)
            )
        return symbols[node.name]
    if isinstance(node, Neg):
        return -constant(step, node.operand, symbols)
    if isinstance(node, BinOp):
        left, right = constant(step, node.left, symbols), constant(step, node.right, symbols)
        try:
            return _operate(node.op, left, right)
        except (ArithmeticError, ValueError) as fault:
            raise step.fault("expression-invalid", f"{to_source(node)} has no value: {fault}", node.at) from None
    raise step.fault("expression-invalid", f"{to_source(node)} is not made of numbers and symbols", node.at)


def _operate(operator: str, left: int | float, right: int | float) -> int | float:
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        return left * right
    if operator == "/":
        return left / right
    if operator == "//":
        return left // right
    if operator == "%":
        return left % right
    if abs(right) > 64 or abs(left) > 2**53:
        raise ValueError("the power is too large")
    result = left**right
    if isinstance(result, complex):
        raise ValueError("the root of a negative number")
    return result


def whole(step: Step, node: Expr, symbols: Numbers, role: str) -> int:
    """The value of an expression that must be a whole number."""
    value = constant(step, node, symbols)
    if value != value or abs(value) > 2**53 or value != int(value):
        raise step.fault(
            "expression-invalid",
            f"{role} is not a whole number",
            node.at,
            expected="a whole number below 2**53",
            actual=f"{to_source(node)} = {value}",
        )
    return int(value)


def rounds(step: Step, node: Expr, symbols: Numbers) -> int:
    """How often a repeat runs."""
    count = whole(step, node, symbols, "the number of rounds")
    if not 0 <= count <= MAX_REPEAT:
        raise step.fault(
            "expression-invalid",
            "the number of rounds is out of bounds",
            node.at,
            expected=f"0 to {MAX_REPEAT:,}",
            actual=f"{to_source(node)} = {count:,}",
        )
    return count


def index_ranges(
    step: Step,
    ranges: Iterable[Range],
    region: Node,
    symbols: Numbers,
    size: AxisSize,
    target: Assign | None = None,
    target_size: AxisSize | None = None,
) -> dict[str, tuple[int, int]]:
    """First and last value of each index of `ranges`, which `region` (and the left side `target`) uses.

    `size` tells the axes of tensors that are read, `target_size` those of the tensor on the left side.

    Raises:
        SpecInvalid: `shape-mismatch` if two axes disagree, naming both with their sizes;
            `expression-invalid` if nothing says where an index runs.
    """
    found: dict[str, tuple[int, int]] = {}
    for entry in ranges:
        if entry.low is not None and entry.high is not None:
            low = whole(step, entry.low, symbols, f"the first value of {entry.name}")
            high = whole(step, entry.high, symbols, f"the last value of {entry.name}")
            if low > high:
                raise step.fault(
                    "expression-invalid",
                    f"the range of {entry.name} is empty",
                    entry.at,
                    actual=f"{to_source(entry)}, that is {low}..{high}",
                )
            found[entry.name] = (low, high)
        else:
            found[entry.name] = (1, _size_of_axes(step, entry, region, size, target, target_size))
    return found


def _size_of_axes(
    step: Step, entry: Range, region: Node, size: AxisSize, target: Assign | None, target_size: AxisSize | None
) -> int:
    found = [
        (size(item.name, axis, len(item.indices)), item.name, axis, len(item.indices), item.at)
        for item, axis in plain_axes(region, entry.name)
    ]
    if target is not None and target_size is not None:
        found += [
            (target_size(target.name, axis, len(target.axes)), target.name, axis, len(target.axes), target.at)
            for axis, index in enumerate(target.axes)
            if isinstance(index, Name) and index.name == entry.name
        ]
    seen: list[tuple[int, str]] = []
    for extent, name, axis, count, at in found:
        if extent is None:
            continue
        place = f"axis {axis + 1} of {name}" if count > 1 else name
        if seen and seen[0][0] != extent:
            raise step.fault(
                "shape-mismatch",
                f"the index {entry.name} runs over two axes of different size",
                at,
                expected=f"{seen[0][0]:,} ({seen[0][1]})",
                actual=f"{extent:,} ({place})",
                hint=f"use two indices, or bound it: {_bounded(entry, target)}",
            )
        seen.append((extent, place))
    if not seen:
        raise step.fault(
            "expression-invalid",
            f"nothing says where the index {entry.name} runs",
            entry.at,
            hint=f"state the shape of the output, or bound it: {_bounded(entry, target)}",
        )
    return seen[0][0]


def _bounded(entry: Range, target: Assign | None) -> str:
    """How an author bounds this index."""
    if target is None:
        return f"{entry.name} = 1..n before the colon"
    return f"for {entry.name} = 1..n after the statement"
