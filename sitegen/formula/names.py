# Which names a formula uses, and as what.  An index exists where it is bound: on the left side of its
# statement, or inside a reduction; there it hides any symbol of the same name.  Everything else is a
# tensor or a symbol and must be known.  Used by the static level, so no torch here.
"""Names of a formula: its inputs, outputs, symbols and indices, and findings about unknown ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from sitegen.diagnostics import Finding, nearest
from sitegen.formula.syntax import (
    Assign,
    Call,
    Expr,
    Item,
    Name,
    Node,
    Num,
    Range,
    Reduce,
    Repeat,
    Statement,
    Step,
    assignments,
    children,
    walk,
)


@dataclass(frozen=True)
class Names:
    """What a step reads and writes.

    Attributes:
        inputs: tensors that are read with brackets before the step assigns them, with the number of indices.
        outputs: tensors that the step assigns, with the number of indices.
        scalars: names without brackets that are neither indices nor assigned before: symbols, or tensors
            of which no axis is written.
        indices: names that are indices somewhere.
        functions: functions and reductions that are used.
    """

    inputs: dict[str, int]
    outputs: dict[str, int]
    scalars: frozenset[str]
    indices: frozenset[str]
    functions: frozenset[str]


@dataclass(frozen=True)
class Terms:
    """The symbols (tensors, scalars and indices) and the constants that a formula shows.

    Constants inside indices are kept apart, so that the 2 of `s[2]` does not stand in for that of `2*x`.
    """

    symbols: frozenset[str]
    constants: frozenset[int | float]
    index_constants: frozenset[int | float] = frozenset()


def terms(node: Node) -> Terms:
    """The symbols and the numbers of a step or a part of one, for comparison with hand-written TeX."""
    symbols: set[str] = set()
    constants: dict[bool, set[int | float]] = {True: set(), False: set()}

    def visit(node: Node, index: bool) -> None:
        if isinstance(node, Num):
            constants[index].add(node.value)
        elif isinstance(node, (Name, Item, Range, Assign)):
            symbols.add(node.name)
        inner = index or isinstance(node, Item) or (isinstance(node, Call) and node.function == "delta")
        axes = node.axes if isinstance(node, Assign) else ()
        for child in children(node):
            visit(child, inner or any(child is axis for axis in axes))

    visit(node, False)
    return Terms(frozenset(symbols), frozenset(constants[False]), frozenset(constants[True]))


def target_ranges(statement: Assign) -> tuple[Range, ...]:
    """The indices that a statement binds, in the order in which its left side names them.

    A name that is an axis of its own is an index, and so is one that `for` bounds.  In an axis such as
    `(s-1)*D + d` those names are indices that the right side writes as an axis of their own (`X[s, d]`).
    """
    bounded = {entry.name: entry for entry in statement.ranges}
    plain = {axis.name for axis in statement.axes if isinstance(axis, Name)} | set(bounded)
    found: dict[str, Range] = {}
    for axis in statement.axes:
        for node in walk(axis):
            if isinstance(node, Name) and (node.name in plain or _is_axis(statement.value, node.name)):
                found.setdefault(node.name, bounded.get(node.name, Range(node.name, at=node.at)))
    return tuple(found.values())


def _is_axis(value: Expr, name: str) -> bool:
    return next(plain_axes(value, name), None) is not None


def plain_axes(node: Node, name: str) -> Iterator[tuple[Item, int]]:
    """Every place where the index `name` is alone an axis of an item, with the number of the axis from 0."""
    if isinstance(node, Reduce) and name in {entry.name for entry in node.ranges}:
        return
    if isinstance(node, Item):
        for axis, index in enumerate(node.indices):
            if isinstance(index, Name) and index.name == name:
                yield node, axis
    for child in children(node):
        yield from plain_axes(child, name)


def free_names(node: Node, bound: frozenset[str] = frozenset()) -> Iterator[tuple[Name | Item, frozenset[str]]]:
    """Every name and item of an expression with the indices that are bound where it stands."""
    if isinstance(node, (Name, Item)):
        yield node, bound
    if isinstance(node, Reduce):
        for entry in node.ranges:
            for part in children(entry):
                yield from free_names(part, bound)
        yield from free_names(node.body, bound | {entry.name for entry in node.ranges})
        return
    for child in children(node):
        yield from free_names(child, bound)


def depends_on(node: Node, indices: Collection[str]) -> bool:
    """Whether an expression uses one of the indices from outside itself."""
    return any(
        isinstance(part, Name) and part.name in indices and part.name not in bound for part, bound in free_names(node)
    )


def names(step: Step) -> Names:
    """The inputs, outputs, symbols, indices and functions of a step."""
    inputs: dict[str, int] = {}
    outputs: dict[str, int] = {}
    scalars: set[str] = set()
    indices: set[str] = set()
    functions: set[str] = set()
    for kind, node, bound in _uses(step.statements):
        if kind == "write":
            outputs[node.name] = len(node.axes)
            indices |= bound
        elif isinstance(node, Item):
            if node.name not in outputs:
                inputs.setdefault(node.name, len(node.indices))
        elif node.name not in bound and node.name not in outputs:
            scalars.add(node.name)
    for node in walk(step):
        if isinstance(node, Reduce):
            functions.add(node.kind)
            indices |= {entry.name for entry in node.ranges}
        elif isinstance(node, Call):
            functions.add(node.function)
    return Names(inputs, outputs, frozenset(scalars), frozenset(indices), frozenset(functions))


def _uses(statements: Iterable[Statement]) -> Iterator[tuple[str, Name | Item | Assign, frozenset[str]]]:
    """Reads and writes in the order in which they happen."""
    for statement in statements:
        if isinstance(statement, Repeat):
            for node, bound in free_names(statement.count):
                yield "read", node, bound
            yield from _uses(statement.body)
            continue
        bound = frozenset(entry.name for entry in target_ranges(statement))
        for entry in statement.ranges:
            for node, inner in free_names(entry):
                yield "read", node, inner
        for axis in statement.axes:
            for node, _ in free_names(axis):
                if node.name not in bound:
                    yield "read", node, bound
        for node, inner in free_names(statement.value, bound):
            yield "read", node, inner
        yield "write", statement, bound


def check(step: Step, *, tensors: Mapping[str, int | None], symbols: Collection[str]) -> list[Finding]:
    """What can be said about the names of a step without running it.

    Args:
        tensors: the tensors that the step may read, with their number of axes (None: not known).
        symbols: names of numbers.

    Returns:
        Findings: unknown names with the nearest known one, more indices than axes, a tensor that is written
        with two different numbers of indices, a bound or a number of rounds that is not made of symbols.
    """
    found: list[Finding] = []
    known: dict[str, int | None] = dict(tensors)
    written: dict[str, int] = {}

    def add(code: str, message: str, at: int, **values: str) -> None:
        found.append(Finding(code, message, step.locate(at), **values))

    for kind, node, bound in _uses(step.statements):
        if kind == "read" and isinstance(node, Name):
            if node.name in bound:
                continue
            if node.name not in known and node.name not in symbols:
                hint = nearest(node.name, [*known, *symbols, *bound])
                if bound:
                    hint += "; an index must stand on the left side or be reduced over"
                add("unknown-symbol", f"{node.name} is no symbol, no tensor and no index here", node.at, hint=hint)
                continue
            if node.name in symbols and node.name not in known:
                continue
        count = len(node.axes) if isinstance(node, Assign) else len(getattr(node, "indices", ()))
        if kind == "read" and node.name not in known:
            hint = f"{node.name} is a number and has no axes" if node.name in symbols else nearest(node.name, known)
            add("unknown-symbol", f"there is no tensor {node.name}", node.at, hint=hint)
            continue
        if written.setdefault(node.name, count) != count:
            add(
                "expression-invalid",
                f"{node.name} is written with {written[node.name]} and with {count} indices",
                node.at,
                expected=f"{written[node.name]} indices, as before",
                actual=f"{count} indices",
                hint="leading axes such as batch and position are left out everywhere, all others are written",
            )
        rank = known.get(node.name)
        if kind == "read" and rank is not None and count > rank:
            add(
                "shape-mismatch",
                f"{node.name} has fewer axes than indices",
                node.at,
                expected=f"at most {rank} indices",
                actual=f"{count} indices",
            )
        if kind == "write":
            known.setdefault(node.name, None)
    found.extend(_bound_findings(step))
    return found


def _bound_findings(step: Step) -> Iterator[Finding]:
    """Bounds and numbers of rounds must have one value for the whole step: no tensors, no indices."""
    for statement in assignments(step.statements):
        indices = {entry.name for entry in target_ranges(statement)}
        for node in walk(statement):
            if isinstance(node, Reduce):
                indices |= {entry.name for entry in node.ranges}
        for node in walk(statement):
            if isinstance(node, Range) and node.low is not None:
                yield from _one_value(step, children(node), "the bound of an index", indices)
    for node in walk(step):
        if isinstance(node, Repeat):
            yield from _one_value(step, [node.count], "the number of rounds", set())


def _one_value(step: Step, nodes: Iterable[Node], role: str, indices: set[str]) -> Iterator[Finding]:
    for root in nodes:
        for node in walk(root):
            if isinstance(node, (Item, Reduce, Call)) or (isinstance(node, Name) and node.name in indices):
                what = getattr(node, "name", "") or getattr(node, "kind", "") or getattr(node, "function", "")
                yield Finding(
                    "expression-invalid",
                    f"{role} uses {what}, which has no single value",
                    step.locate(node.at),
                    hint="use symbols and whole numbers, and a condition for the rest: sum(i: where(i <= t, x[i], 0))",
                )
                break
