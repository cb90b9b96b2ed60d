# What could be wrong in a function: small changes of its syntax tree, each a kind of mistake that
# people make when they port a model.
"""Wrong forms of Python code, as replaced pieces of its text."""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_BRACKETED = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp)


@dataclass(frozen=True)
class Rewrite:
    """A node of the function gives way to `text` (or to nothing, for a statement)."""

    kind: str
    what: str
    nodes: tuple[ast.AST, ...]
    texts: tuple[str, ...]


def rewrites(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Rewrite]:
    """All wrong forms of one function, its inner functions included; docstrings and annotations are left alone."""
    skipped = {id(n) for part in _unread(function) for n in ast.walk(part)}
    for node, parents in _walk(function, ()):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.expr):
            for kind, what, new in _expressions(node, parents, function):
                text = ast.unparse(new)
                if isinstance(new, _BRACKETED) and parents and _binds_tighter(parents[-1], node):
                    text = f"({text})"
                if text != ast.unparse(node):
                    yield Rewrite(kind, what, (node,), (text,))
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                yield from _statements(block, function)


def _binds_tighter(outer: ast.AST, node: ast.expr) -> bool:
    """Whether an operation in the place of `node` needs brackets."""
    if isinstance(outer, ast.Attribute | ast.Subscript):
        return outer.value is node
    return isinstance(outer, _BRACKETED) or (isinstance(outer, ast.Call) and outer.func is node)


def _unread(function: ast.AST) -> Iterator[ast.AST]:
    """Annotations, docstrings and decorators: they compute nothing of the model."""
    for node in ast.walk(function):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from node.decorator_list
            if node.returns is not None:
                yield node.returns
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield node.annotation
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node
        if isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert):
            yield node


def _walk(node: ast.AST, parents: tuple[ast.AST, ...]) -> Iterator[tuple[ast.AST, tuple[ast.AST, ...]]]:
    yield node, parents
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, (*parents, node))


_Change = tuple[str, str, ast.expr]


def _expressions(node: ast.expr, parents: tuple[ast.AST, ...], function: ast.AST) -> Iterator[_Change]:
    inner = parents[-1] if parents else None
    if isinstance(node, ast.Constant):
        yield from _constants(node, parents)
    elif isinstance(node, ast.UnaryOp):
        yield from _unary(node, inner)
    elif isinstance(node, ast.BinOp):
        yield from _binary(node)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        other = _COMPARE.get(type(node.ops[0]))
        if other is not None:
            yield "code-comparison", "another comparison", _changed(node, ops=[other()])
    elif isinstance(node, ast.BoolOp):
        op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "code-comparison", "and and or are exchanged", _changed(node, op=op)
    elif isinstance(node, ast.IfExp):
        yield "code-comparison", "the other branch", _changed(node, body=node.orelse, orelse=node.body)
    elif isinstance(node, ast.Call):
        yield from _calls(node, parents)
    elif isinstance(node, ast.Slice):
        for side in ("lower", "upper"):
            bound = getattr(node, side)
            if bound is not None and not isinstance(bound, ast.Constant | ast.UnaryOp):
                more = ast.BinOp(bound, ast.Add(), ast.Constant(1))
                yield "code-bound", f"the {side} bound is one further", _changed(node, **{side: more})
    if _is_epsilon(node) and isinstance(inner, ast.keyword):
        yield "code-epsilon", "the epsilon is nothing", ast.Constant(0.0)
        for name in _epsilons(function):
            if name != ast.unparse(node):
                yield "code-epsilon", f"{name} for {ast.unparse(node)}", ast.parse(name, mode="eval").body


def _constants(node: ast.Constant, parents: tuple[ast.AST, ...]) -> Iterator[_Change]:
    value, inner = node.value, parents[-1] if parents else None
    if isinstance(inner, ast.UnaryOp) and isinstance(inner.op, ast.USub) and _in_call(parents[:-1]):
        return  # an axis: see _unary
    if isinstance(value, bool):
        yield "code-constant", f"{value} becomes {not value}", ast.Constant(not value)
    elif isinstance(value, int):
        if isinstance(inner, ast.keyword) and inner.arg in ("dim", "axis"):
            yield "code-axis", f"axis {value} becomes {value + 1}", ast.Constant(value + 1)
            return
        bound = isinstance(inner, ast.Slice | ast.Subscript) or (
            isinstance(inner, ast.Tuple) and len(parents) > 1 and isinstance(parents[-2], ast.Subscript)
        )
        kind = "code-bound" if bound else "code-constant"
        yield kind, f"{value} becomes {value + 1}", ast.Constant(value + 1)
        if bound and value > 0:
            yield kind, f"{value} becomes {value - 1}", ast.Constant(value - 1)
    elif isinstance(value, float):
        other = value * 1.01 if value else 0.01
        yield "code-constant", f"{value!r} becomes {other!r}", ast.Constant(other)
    elif isinstance(value, str) and "->" in value:
        yield from _einsum(value)


def _einsum(text: str) -> Iterator[_Change]:
    """The last two indices of an operand, or of the result, change places."""
    left, _, right = text.partition("->")
    operands = left.split(",")
    for place, operand in enumerate([*operands, right]):
        letters = operand.replace(".", "").strip()
        if len(letters) < 2:
            continue
        swapped = operand[:-2] + operand[-1] + operand[-2]
        parts = [*operands, right]
        parts[place] = swapped
        new = ",".join(parts[:-1]) + "->" + parts[-1]
        yield "code-axis", f"{operand} becomes {swapped}", ast.Constant(new)


def _unary(node: ast.UnaryOp, inner: ast.AST | None) -> Iterator[_Change]:
    if isinstance(node.op, ast.USub):
        value = node.operand.value if isinstance(node.operand, ast.Constant) else None
        if type(value) is int and isinstance(inner, ast.Call | ast.keyword | ast.Tuple | ast.List):
            other = -2 if value == 1 else -(value - 1)
            yield "code-axis", f"axis {-value} becomes {other}", ast.parse(str(other), mode="eval").body
        elif value is None:
            yield "code-term", "a minus sign is dropped", node.operand
    elif isinstance(node.op, ast.Not):
        yield "code-comparison", "not is dropped", node.operand


def _binary(node: ast.BinOp) -> Iterator[_Change]:
    left, right, op = node.left, node.right, node.op
    for kept, gone in ((left, right), (right, left)):
        if isinstance(op, ast.Sub) and kept is right:
            kept = ast.UnaryOp(ast.USub(), right)
        if isinstance(op, ast.Div | ast.FloorDiv) and kept is right:
            continue
        kind = "code-epsilon" if _is_epsilon(gone) else "code-term"
        yield kind, f"{_short(gone)} is dropped", kept
    if isinstance(op, ast.Sub | ast.Div | ast.FloorDiv | ast.Mod | ast.MatMult | ast.Pow | ast.LShift | ast.RShift):
        yield "code-order", "the operands change places", _changed(node, left=right, right=left)
    for side, other in (("left", right), ("right", left)):
        part = getattr(node, side)
        if isinstance(part, ast.BinOp) and type(part.op) is not type(op) and _binds(part.op) != _binds(op):
            # a*b + c as a*(b + c); (a + b)*c as a + b*c
            near, far = (part.right, part.left) if side == "left" else (part.left, part.right)
            grouped = ast.BinOp(near, op, other) if side == "left" else ast.BinOp(other, op, near)
            new = ast.BinOp(far, part.op, grouped) if side == "left" else ast.BinOp(grouped, part.op, far)
            yield "code-order", "the brackets stand elsewhere", new


def _binds(op: ast.operator) -> int:
    return 1 if isinstance(op, ast.Add | ast.Sub) else 2


def _calls(node: ast.Call, parents: tuple[ast.AST, ...]) -> Iterator[_Change]:
    function, arguments = node.func, node.args
    plain = [a for a in arguments if not isinstance(a, ast.Starred)]
    if isinstance(function, ast.Name) and function.id == "range":
        if plain:
            last = min(len(plain), 2) - 1
            for op, words in ((ast.Add(), "more"), (ast.Sub(), "less")):
                moved = ast.BinOp(plain[last], op, ast.Constant(1))
                new = [*arguments[:last], moved, *arguments[last + 1 :]]
                yield "code-bound", f"one round {words}", _changed(node, args=new)
        return
    receiver = function.value if isinstance(function, ast.Attribute) else None
    chained = isinstance(receiver, ast.Call) or isinstance(receiver, ast.BinOp | ast.Subscript)
    if len(plain) == 1 and len(arguments) == 1 and not node.keywords and not chained and not _binds_axes(arguments[0]):
        if isinstance(function, ast.Name) and not function.id[:1].isupper():
            yield "code-term", f"{function.id} is dropped", arguments[0]
        elif isinstance(receiver, ast.Name) and receiver.id in ("torch", "F", "math"):
            yield "code-term", f"{ast.unparse(function)} is dropped", arguments[0]
    if receiver is not None and not (isinstance(receiver, ast.Name) and receiver.id in ("torch", "F", "math", "self")):
        if not isinstance(function.value, ast.Attribute):
            yield "code-term", f".{function.attr} is dropped", receiver
        if isinstance(receiver, ast.Call) and isinstance(receiver.func, ast.Attribute):
            before = receiver.func.value
            if not (isinstance(before, ast.Name) and before.id in ("torch", "F", "math", "self")):
                first = _changed(node, func=_changed(function, value=before))
                second = _changed(receiver, func=_changed(receiver.func, value=first))
                yield "code-order", f".{receiver.func.attr} and .{function.attr} change places", second
    movable = [n for n, a in enumerate(arguments) if isinstance(a, ast.Name | ast.Attribute | ast.Call | ast.Subscript)]
    for first, second in itertools.pairwise(movable):
        if second == first + 1 and ast.unparse(arguments[first]) != ast.unparse(arguments[second]):
            new = list(arguments)
            new[first], new[second] = new[second], new[first]
            yield "code-order", f"arguments {first + 1} and {second + 1} change places", _changed(node, args=new)


def _binds_axes(node: ast.expr) -> bool:
    return isinstance(node, ast.GeneratorExp | ast.ListComp)


def _statements(block: list[ast.stmt], function: ast.AST) -> Iterator[Rewrite]:
    """Two statements that overwrite the same name change places; one that overwrites a name is dropped."""
    given = {a.arg for a in ast.walk(function) if isinstance(a, ast.arg)}
    written: set[str] = set(given)
    for place, statement in enumerate(block):
        names = _targets(statement)
        if names and names <= written and len(block) > 1 and isinstance(statement, ast.Assign | ast.AugAssign):
            yield Rewrite("code-term", f"`{_short(statement)}` is dropped", (statement,), ("pass",))
        after = block[place + 1] if place + 1 < len(block) else None
        if after is not None and names and names == _targets(after) and names <= written:
            if ast.unparse(statement) != ast.unparse(after):
                texts = (ast.unparse(after), ast.unparse(statement))
                yield Rewrite("code-order", "two statements change places", (statement, after), texts)
        written |= names


def _targets(statement: ast.stmt) -> set[str]:
    """Names that a plain assignment writes; `x[0] = …` writes x, `self.x = …` writes `self.x`."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if isinstance(statement, ast.AugAssign):
        targets = [statement.target]
    found = set()
    for target in targets:
        for part in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
            while isinstance(part, ast.Subscript):
                part = part.value
            found.add(ast.unparse(part))
    return found


def _is_epsilon(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float) and 0 < abs(node.value) < 1e-3
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return "eps" in name.lower()


def _epsilons(function: ast.AST) -> list[str]:
    found = {
        ast.unparse(n): None for n in ast.walk(function) if isinstance(n, ast.Name | ast.Attribute) and _is_epsilon(n)
    }
    return list(found)


def _in_call(parents: tuple[ast.AST, ...]) -> bool:
    return bool(parents) and isinstance(parents[-1], ast.Call | ast.keyword | ast.Tuple | ast.List)


def _changed(node: ast.AST, **fields: object) -> ast.expr:
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new  # type: ignore[return-value]


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else text[:59] + "…"
