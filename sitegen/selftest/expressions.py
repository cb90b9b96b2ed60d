# Wrong forms of the small integer expressions of specs: counts, sizes and slice bounds.
"""Mutants of count expressions and tensor slices, as texts."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator

from sitegen import expr
from sitegen.diagnostics import SpecInvalid

_OTHER: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
}


def count_forms(text: str) -> Iterator[tuple[str, str]]:
    """(wrong expression, what was changed) for an expression that parses; one more, and each of its parts.

    A form that has the same value whatever its symbols are is none.
    """
    try:
        expr.parse(text)
        tree = ast.parse(text.strip(), mode="eval")
    except (SpecInvalid, SyntaxError, ValueError):
        return
    for form, what in _count_forms(text, tree):
        if not _same(text, form):
            yield form, what


def _same(first: str, second: str) -> bool:
    """Whether two expressions agree on a few sets of sizes that have nothing in common."""
    names = sorted(expr.parse(first).names | expr.parse(second).names)
    for sizes in ((101, 37, 211, 53), (1009, 463, 89, 307), (7919, 31, 5003, 617)):
        symbols = {name: sizes[place % 4] + 2 * place for place, name in enumerate(names)}
        try:
            if expr.evaluate(first, symbols) != expr.evaluate(second, symbols):
                return False
        except SpecInvalid:
            return False
    return True


def _count_forms(text: str, tree: ast.Expression) -> Iterator[tuple[str, str]]:
    yield f"{text.strip()} + 1", "one more"
    nodes = list(ast.walk(tree))
    for place, node in enumerate(nodes):
        if isinstance(node, ast.Constant) and type(node.value) is int and len(nodes) > 2:
            yield _with(tree, place, ast.Constant(node.value + 1)), f"{node.value} becomes {node.value + 1}"
        if isinstance(node, ast.BinOp):
            for side, dropped in ((node.left, node.right), (node.right, node.left)):
                yield _with(tree, place, side), f"{ast.unparse(dropped)} is dropped"
            other = ast.BinOp(node.left, _OTHER.get(type(node.op), ast.Add)(), node.right)
            yield _with(tree, place, other), f"another operator in {ast.unparse(node)}"


def _with(tree: ast.Expression, place: int, new: ast.AST) -> str:
    """The expression with its node number `place` (in walking order) replaced."""
    changed = copy.deepcopy(tree)
    target = list(ast.walk(changed))[place]

    class Swap(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return copy.deepcopy(new) if node is target else self.generic_visit(node)

    return ast.unparse(ast.fix_missing_locations(Swap().visit(changed)))


def slice_forms(text: str) -> Iterator[tuple[str, str]]:
    """(wrong slice, what was changed): each written bound one further, and one less where that is a number."""
    parts = text[1:-1].split(",")
    for place, part in enumerate(parts):
        bounds = part.split(":")
        for end, bound in enumerate(bounds):
            if not bound.strip():
                continue
            others = [f"{bound.strip()} + 1"]
            if bound.strip().isdigit():
                others = [str(int(bound) + 1)] + ([str(int(bound) - 1)] if int(bound) else [])
            for other in others:
                changed = [*bounds[:end], other, *bounds[end + 1 :]]
                joined = ", ".join([*parts[:place], ":".join(changed), *parts[place + 1 :]])
                yield f"[{joined}]", f"the bound {bound.strip()} becomes {other}"


_NUMBER = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?![\w.])")


def relation_forms(text: str, kind: str) -> Iterator[tuple[str, str]]:
    """(wrong relation, what was changed) for the right side of an identity or bound; a bound gets tighter."""
    match = re.search(r"<=|>=|=", text)
    if match is None or kind not in ("identity", "bound"):
        return
    head, right = text[: match.end()], text[match.end() :]
    for number in _NUMBER.finditer(right):
        before = right[: number.start()]
        if before.count("[") > before.count("]"):
            continue  # an index
        value = float(number[1])
        step = -0.01 if match[0] == "<=" else 0.01
        other = value + step * (abs(value) or 1.0)
        shown = f"{other:.10g}" if other >= 0 else f"(0 - {-other:.10g})"
        yield head + before + shown + right[number.end() :], f"{number[1]} becomes {shown}"
