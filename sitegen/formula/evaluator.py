# Runs a formula.  Values are float64 arrays with index names (arrays.py); the only Python loop is the
# one over the rounds of a `repeat`.  A reduction whose body would be too large is split in halves
# along its longest index until each part fits.
"""Evaluation of a parsed formula in float64, vectorised over the leading axes of its tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sitegen.diagnostics import SpecInvalid, ordered
from sitegen.formula import arrays
from sitegen.formula.arrays import Array, ArrayFault, TooLarge
from sitegen.formula.names import check, depends_on, target_ranges
from sitegen.formula.operations import MERGE, OPERATORS, elementwise_function
from sitegen.formula.ranges import index_ranges, rounds
from sitegen.formula.source import to_source
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
    Reduce,
    Repeat,
    Statement,
    Step,
)

if TYPE_CHECKING:
    from torch import Tensor

#: The largest intermediate result, in elements (8 bytes each).
MAX_ELEMENTS = 2**24

Scope = dict[str, tuple[int, int]]


def evaluate(
    step: Step,
    env: Mapping[str, Any],
    symbols: Mapping[str, int | float],
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    max_elements: int = MAX_ELEMENTS,
) -> dict[str, Tensor]:
    """The tensors that a step assigns, computed in float64.

    A tensor of rank r that the formula writes with k indices has its last k axes indexed from 1; its
    leading axes (batch, position) are implicit and broadcast.

    Args:
        step: a parsed formula.
        env: the inputs, tensors or numbers of any type; outputs do not belong here.
        symbols: numbers by name, such as sizes and epsilons.
        shapes: shapes of outputs as captured; only the last axes, those that the formula writes, are used,
            and only to know where an index runs (`u[k] = m[4 + k]`) or that an output has another size.
        max_elements: bound on the elements of an intermediate result.

    Returns:
        Every assigned name with its tensor [leading…, written axes].

    Raises:
        SpecInvalid: unknown names, axes of different size under one index, an element that does not exist,
            an output that is only partly assigned, or a result that is too large.
    """
    import torch

    device = next((value.device for value in env.values() if isinstance(value, torch.Tensor)), "cpu")
    tensors = {name: torch.as_tensor(value, device=device).to(torch.float64) for name, value in env.items()}
    findings = check(step, tensors={name: value.dim() for name, value in tensors.items()}, symbols=symbols)
    if findings:
        raise SpecInvalid(ordered(findings))
    declared = {name: tuple(shape) for name, shape in (shapes or {}).items()}
    run = _Evaluation(step, tensors, dict(symbols), declared, max_elements, device)
    with torch.no_grad():
        run.statements(step.statements)
    for name, covered in run.coverage.items():
        run.refuse_partial(name, covered, 0)
    return {name: run.tensors[name] for name in run.assigned}


@dataclass
class _Evaluation:
    step: Step
    tensors: dict[str, Tensor]
    symbols: dict[str, int | float]
    shapes: dict[str, tuple[int, ...]]
    limit: int
    device: Any
    assigned: dict[str, None] = field(default_factory=dict)
    #: for tensors that are assigned piece by piece: which elements have a value
    coverage: dict[str, Tensor] = field(default_factory=dict)

    # -- statements --------------------------------------------------------------------------------

    def statements(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            if isinstance(statement, Repeat):
                for _ in range(rounds(self.step, statement.count, self.symbols)):
                    self.statements(statement.body)
            else:
                self.assign(statement)

    def assign(self, statement: Assign) -> None:
        bound = target_ranges(statement)
        ranges = index_ranges(
            self.step, bound, statement.value, self.symbols, self.axis_size, statement, self.target_size
        )
        value = self.guarded(statement, lambda: self.value(statement.value, ranges))
        names = [axis.name if isinstance(axis, Name) else "" for axis in statement.axes]
        whole = self.target_shape(statement.name, len(names))
        if all(name in ranges for name in names):
            extents = tuple(ranges[name][1] for name in names)
            if all(ranges[name][0] == 1 for name in names) and whole in (None, extents):
                lead = value.lead
                self.tensors[statement.name] = value.spread(names).expand([*lead, *extents])
                self.coverage.pop(statement.name, None)
                self.assigned[statement.name] = None
                return
        self.guarded(statement, lambda: self.update(statement, value, ranges, whole))
        self.assigned[statement.name] = None

    def update(self, statement: Assign, value: Array, ranges: Scope, whole: tuple[int, ...] | None) -> Array:
        """Assigns some elements of a tensor; the others keep their value or must be assigned later."""
        import torch

        name = statement.name
        if whole is None:
            raise ArrayFault(
                "expression-invalid",
                f"the size of {name} is not known, so a part of it cannot be assigned",
                hint=f"state the shape of {name}, or assign all of it first",
            )
        indices = [
            self.positions(self.value(axis, ranges), name, place, whole[place])
            for place, axis in enumerate(statement.axes)
        ]
        order = tuple(ranges)
        places = [index.spread(order) for index in indices]
        extents = [high - low + 1 for low, high in ranges.values()]
        places = [place.expand(extents) for place in places]
        flat = torch.zeros(extents, dtype=torch.long, device=self.device)
        for place, size in zip(places, whole, strict=True):
            flat = flat * size + place
        if flat.unique().numel() != flat.numel():
            raise ArrayFault("expression-invalid", f"an element of {name} is assigned twice by one statement")
        covered = self.coverage.get(name)
        base = self.tensors.get(name)
        if base is None or (name not in self.assigned and base.shape[base.dim() - len(whole) :] != whole):
            base = torch.full(whole, math.nan, dtype=torch.float64, device=self.device)
            covered = torch.zeros(whole, dtype=torch.bool, device=self.device)
        lead = arrays.common_lead([tuple(base.shape[: base.dim() - len(whole)]), value.lead])
        result = base.expand([*lead, *whole]).clone()
        result[(..., *places)] = value.spread(order).expand([*lead, *extents])
        if covered is not None:
            covered = covered.clone()
            covered[tuple(places)] = True
            self.coverage[name] = covered
            if bool(covered.all()):
                del self.coverage[name]
        self.tensors[name] = result
        return Array(result)

    def refuse_partial(self, name: str, covered: Tensor, at: int) -> None:
        first = (~covered).nonzero()[0] + 1
        raise self.step.fault(
            "expression-invalid",
            f"{name} is only partly assigned",
            at,
            expected=f"{covered.numel():,} elements",
            actual=f"{int(covered.sum()):,} elements; the first one missing is {name}{first.tolist()}",
        )

    def target_shape(self, name: str, count: int) -> tuple[int, ...] | None:
        """The written axes of an output: as stated, or as they were before."""
        shape = self.shapes.get(name)
        if shape is None:
            tensor = self.tensors.get(name)
            shape = None if tensor is None else tuple(tensor.shape)
        if shape is None or len(shape) < count:
            return None
        return tuple(shape[len(shape) - count :])

    def target_size(self, name: str, axis: int, count: int) -> int | None:
        shape = self.target_shape(name, count)
        return None if shape is None else shape[axis]

    def axis_size(self, name: str, axis: int, count: int) -> int | None:
        """The size of an axis that is read; None before the tensor has a value."""
        tensor = self.tensors.get(name)
        return None if tensor is None else tensor.shape[tensor.dim() - count + axis]

    # -- expressions -------------------------------------------------------------------------------

    def guarded(self, node: Any, action: Callable[[], Array]) -> Array:
        """Runs an action; what does not fit becomes a finding at this node."""
        try:
            return action()
        except ArrayFault as fault:
            shown = node.name if isinstance(node, Assign) else to_source(node)
            raise self.step.fault(fault.code, f"{fault.message} (in {shown})", node.at, **fault.values) from None
        except TooLarge as fault:
            raise self.step.fault(
                "expression-invalid",
                f"the result for {getattr(node, 'name', 'this part')} is too large to compute",
                node.at,
                expected=f"at most {self.limit:,} elements",
                actual=f"{fault.elements:,} elements",
                hint="use a smaller configuration, or reduce earlier",
            ) from None

    def number(self, value: float) -> Array:
        import torch

        return Array(torch.tensor(value, dtype=torch.float64, device=self.device))

    def value(self, node: Expr, scope: Scope) -> Array:
        if isinstance(node, Num):
            return self.number(node.value)
        if isinstance(node, Name):
            return self.named(node, scope)
        if isinstance(node, Item):
            return self.item(node, scope)
        if isinstance(node, Reduce):
            return self.reduce(node, scope)
        if isinstance(node, Neg):
            return self.combine(lambda x: -x, (node.operand,), scope)
        if isinstance(node, Not):
            return self.combine(lambda x: ~x, (node.operand,), scope)
        if isinstance(node, (BinOp, Compare, Logic)):
            return self.combine(OPERATORS[node.op], (node.left, node.right), scope)
        if isinstance(node, Call):
            return self.combine(elementwise_function(node.function), node.args, scope)
        raise TypeError(f"no value for {type(node).__name__}")

    def combine(self, function: Callable[..., Tensor], nodes: Sequence[Expr], scope: Scope) -> Array:
        parts = [self.value(node, scope) for node in nodes]
        try:
            return arrays.elementwise(function, parts, self.limit)
        except ArrayFault as fault:
            shown = " and ".join(to_source(node) for node in nodes)
            raise self.step.fault(fault.code, f"{fault.message}: {shown}", nodes[0].at, **fault.values) from None

    def named(self, node: Name, scope: Scope) -> Array:
        import torch

        if node.name in scope:
            low, high = scope[node.name]
            return Array(torch.arange(low, high + 1, dtype=torch.float64, device=self.device), (node.name,))
        if node.name in self.tensors:
            return Array(self.tensors[node.name])
        if node.name in self.symbols:
            return self.number(self.symbols[node.name])
        raise self.step.fault("unknown-symbol", f"{node.name} has no value yet", node.at)

    def item(self, node: Item, scope: Scope) -> Array:
        tensor = self.tensors.get(node.name)
        if tensor is None:
            raise self.step.fault("unknown-symbol", f"{node.name} has no value yet", node.at)
        if node.name in self.coverage:
            self.refuse_partial(node.name, self.coverage[node.name], node.at)
        first = tensor.dim() - len(node.indices)
        names = [index.name for index in node.indices if isinstance(index, Name) and index.name in scope]
        if len(set(names)) == len(node.indices):
            for place, name in enumerate(names):
                low, high = scope[name]
                self.inside(node, place, low, high, tensor.shape[first + place])
                tensor = tensor.narrow(first + place, low - 1, high - low + 1)
            return Array(tensor, tuple(names))
        return self.guarded_item(node, tensor, first, scope)

    def guarded_item(self, node: Item, tensor: Tensor, first: int, scope: Scope) -> Array:
        try:
            indices = [
                self.positions(self.value(index, scope), node.name, place, tensor.shape[first + place])
                for place, index in enumerate(node.indices)
            ]
            return arrays.gather(tensor, indices, self.limit)
        except ArrayFault as fault:
            raise self.step.fault(
                fault.code, f"{fault.message} (in {to_source(node)})", node.at, **fault.values
            ) from None

    def inside(self, node: Item, place: int, low: int, high: int, size: int) -> None:
        if low < 1 or high > size:
            raise self.step.fault(
                "shape-mismatch",
                f"{to_source(node)} reads elements that do not exist",
                node.at,
                expected=f"1..{size:,} on axis {place + 1} of {node.name}",
                actual=f"{low:,}..{high:,}",
            )

    def positions(self, index: Array, name: str, place: int, size: int) -> Array:
        """Positions from 0 on one axis, from index values that count from 1."""
        data = index.data
        if data.numel():
            low, high = float(data.min()), float(data.max())
            if low != low or bool((data != data.floor()).any()):
                raise ArrayFault("expression-invalid", f"an index of {name} is not a whole number")
            if low < 1 or high > size:
                raise ArrayFault(
                    "shape-mismatch",
                    f"elements of {name} that do not exist are addressed",
                    expected=f"1..{size:,} on axis {place + 1} of {name}",
                    actual=f"{int(low):,}..{int(high):,}" if math.isfinite(low + high) else f"{low}..{high}",
                )
        return Array(data.long() - 1, index.names)

    # -- reductions --------------------------------------------------------------------------------

    def reduce(self, node: Reduce, scope: Scope) -> Array:
        ranges = index_ranges(self.step, node.ranges, node.body, self.symbols, self.axis_size)
        count = math.prod(high - low + 1 for low, high in ranges.values())
        if count == 0 and node.kind not in ("sum", "prod"):
            raise self.step.fault("expression-invalid", f"{to_source(node)} reduces over no element", node.at)
        kind = "sum" if node.kind == "mean" else node.kind
        result = self.partwise(kind, node.body, scope, ranges)
        return Array(result.data / count, result.names) if node.kind == "mean" else result

    def partwise(self, kind: str, body: Expr, scope: Scope, ranges: Scope) -> Array:
        """The reduction at once, or of two halves along the longest index where that is too large."""
        try:
            return self.at_once(kind, body, {**scope, **ranges}, ranges)
        except TooLarge:
            name, (low, high) = max(ranges.items(), key=lambda entry: entry[1][1] - entry[1][0])
            if low >= high:
                raise
        middle = (low + high) // 2
        halves = ((low, middle), (middle + 1, high))
        parts = [self.partwise(kind, body, scope, {**ranges, name: half}) for half in halves]
        return arrays.elementwise(MERGE[kind](), parts, self.limit)

    def at_once(self, kind: str, body: Expr, scope: Scope, ranges: Scope) -> Array:
        sizes = {name: high - low + 1 for name, (low, high) in ranges.items()}
        if kind != "sum":
            return arrays.reduce(kind, self.value(body, scope), sizes)
        if isinstance(body, BinOp) and body.op == "/" and not depends_on(body.right, sizes):
            parts = [self.at_once(kind, body.left, scope, ranges), self.value(body.right, scope)]
            return arrays.elementwise(OPERATORS["/"], parts, self.limit)
        factors = [self.value(factor, scope) for factor in _factors(body)]
        return arrays.contract(factors, sizes, self.limit)


def _factors(node: Expr) -> list[Expr]:
    if isinstance(node, BinOp) and node.op == "*":
        return [*_factors(node.left), *_factors(node.right)]
    return [node]
