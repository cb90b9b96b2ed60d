# Tensors whose last dimensions carry index names.  Two arrays are combined by aligning the names and
# broadcasting the leading dimensions (batch, position), so no token is ever visited in Python.
"""Arrays with named index dimensions: alignment, products summed without large intermediates, gathers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


class ArrayFault(Exception):
    """Arrays do not fit; carries the parts of a finding, the caller adds the place."""

    def __init__(self, code: str, message: str, **values: str) -> None:
        super().__init__(message)
        self.code, self.message, self.values = code, message, values


class TooLarge(Exception):
    """An intermediate result would have more elements than allowed; reductions then work in parts."""

    def __init__(self, elements: int) -> None:
        super().__init__(elements)
        self.elements = elements


@dataclass(frozen=True)
class Array:
    """`data` [leading…, one dimension per name]; the leading dimensions broadcast from the right."""

    data: Tensor
    names: tuple[str, ...] = ()

    @property
    def lead(self) -> tuple[int, ...]:
        return tuple(self.data.shape[: self.data.dim() - len(self.names)])

    def spread(self, names: Sequence[str]) -> Tensor:
        """[leading…, one dimension per name of `names`], of size 1 for names that this array lacks."""
        if tuple(names) == self.names:
            return self.data
        lead = len(self.lead)
        order = [lead + self.names.index(name) for name in names if name in self.names]
        data = self.data.permute([*range(lead), *order])
        return data[(..., *(slice(None) if name in self.names else None for name in names))]


def union(arrays: Sequence[Array]) -> tuple[str, ...]:
    """All names of the arrays, in order of appearance."""
    return tuple(dict.fromkeys(name for array in arrays for name in array.names))


def common_lead(leads: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The leading shape to which all broadcast; ArrayFault with both shapes where they do not."""
    result: tuple[int, ...] = ()
    for lead in leads:
        pairs = list(itertools.zip_longest(reversed(result), reversed(lead), fillvalue=1))
        if any(a != b and 1 not in (a, b) for a, b in pairs):
            raise ArrayFault(
                "shape-mismatch",
                "leading axes do not agree",
                expected=str(list(result)),
                actual=str(list(lead)),
                hint="all axes but batch and position must be written as indices",
            )
        result = tuple(b if a == 1 else a for a, b in reversed(pairs))
    return result


def _extents(tensors: Sequence[Tensor], count: int) -> list[int]:
    """Sizes of the last `count` dimensions when the tensors are broadcast."""
    return [max(tensor.shape[tensor.dim() - count + axis] for tensor in tensors) for axis in range(count)]


def elementwise(function: Callable[..., Tensor], arrays: Sequence[Array], limit: int) -> Array:
    """A function of aligned arrays; TooLarge if the result has more than `limit` elements."""
    names = union(arrays)
    tensors = [array.spread(names) for array in arrays]
    if len(arrays) > 1:
        lead = common_lead([array.lead for array in arrays])
        elements = math.prod(lead) * math.prod(_extents(tensors, len(names)))
        if elements > limit:
            raise TooLarge(elements)
    return Array(function(*tensors), names)


def reduce(kind: str, array: Array, sizes: dict[str, int]) -> Array:
    """`sum`, `prod`, `max` or `min` over the names of `sizes`; a name that the array lacks counts as often."""
    lead = len(array.lead)
    dims = [lead + place for place, name in enumerate(array.names) if name in sizes]
    missing = math.prod(size for name, size in sizes.items() if name not in array.names)
    data = array.data
    if kind == "sum":
        data = (data.sum(dim=dims) if dims else data) * missing
    elif kind == "prod":
        for dim in reversed(dims):
            data = data.prod(dim=dim)
        data = data**missing
    elif dims:
        data = data.amax(dim=dims) if kind == "max" else data.amin(dim=dims)
    return Array(data, tuple(name for name in array.names if name not in sizes))


def contract(factors: Sequence[Array], sizes: dict[str, int], limit: int) -> Array:
    """Sum over the names of `sizes` of the product of all factors, two factors at a time.

    The pair with the smallest result goes first and a name is summed as soon as nothing else needs it, so
    that `sum(c: W[i, c]*x[c])` is a matrix product and never exists as [tokens, i, c].
    """
    import torch

    lead = common_lead([factor.lead for factor in factors])
    operands = [_labelled(factor) for factor in factors]
    extent: dict[object, int] = {}
    for data, labels in operands:
        extent.update(zip(labels, data.shape, strict=True))
    missing = math.prod(size for name, size in sizes.items() if name not in extent)
    while len(operands) > 1:
        best: tuple[int, int, int, list] | None = None
        for first, second in itertools.combinations(range(len(operands)), 2):
            rest = (labels for place, (_, labels) in enumerate(operands) if place not in (first, second))
            others = set(itertools.chain.from_iterable(rest))
            merged = dict.fromkeys([*operands[first][1], *operands[second][1]])
            kept = [label for label in merged if label not in sizes or label in others]
            elements = math.prod(extent[label] for label in kept)
            if best is None or elements < best[0]:
                best = (elements, first, second, kept)
        assert best is not None
        elements, first, second, kept = best
        if elements > limit:
            raise TooLarge(elements)
        (left, left_labels), (right, right_labels) = operands[first], operands[second]
        number = {label: place for place, label in enumerate(dict.fromkeys([*left_labels, *right_labels]))}
        product = torch.einsum(
            left,
            [number[label] for label in left_labels],
            right,
            [number[label] for label in right_labels],
            [number[label] for label in kept],
        )
        operands = [operand for place, operand in enumerate(operands) if place not in (first, second)]
        operands.append((product, kept))
    data, labels = operands[0]
    summed = [place for place, label in enumerate(labels) if label in sizes]
    if summed:
        data = data.sum(dim=summed)
        labels = [label for label in labels if label not in sizes]
    if missing != 1:
        data = data * missing
    return _unlabelled(data, labels, lead)


def _labelled(array: Array) -> tuple[Tensor, list]:
    """The data without leading dimensions of size 1, and a label for each: a name, or a place from the end."""
    count = len(array.lead)
    labels: list = [count - place for place in range(count)] + list(array.names)
    keep = [place for place, label in enumerate(labels) if not isinstance(label, int) or array.data.shape[place] != 1]
    data = array.data.reshape([array.data.shape[place] for place in keep])
    return data, [labels[place] for place in keep]


def _unlabelled(data: Tensor, labels: list, lead: tuple[int, ...]) -> Array:
    names = [label for label in labels if isinstance(label, str)]
    leading = sorted((label for label in labels if isinstance(label, int)), reverse=True)
    data = data.permute([labels.index(label) for label in [*leading, *names]])
    present = set(leading)
    shape = [size if len(lead) - place in present else 1 for place, size in enumerate(lead)]
    return Array(data.reshape([*shape, *data.shape[len(leading) :]]), tuple(names))


def gather(tensor: Tensor, indices: Sequence[Array], limit: int) -> Array:
    """Elements of the last axes of `tensor` at whole numbers counted from 0, one array for each axis."""
    import torch

    names = union(indices)
    own = tuple(tensor.shape[: tensor.dim() - len(indices)])
    tensors = [index.spread(names) for index in indices]
    extents = _extents(tensors, len(names))
    lead = common_lead([own, *(index.lead for index in indices)])
    elements = math.prod(lead) * math.prod(extents)
    if elements > limit:
        raise TooLarge(elements)
    if all(not index.lead for index in indices):
        return Array(tensor[(..., *tensors)], names)
    # indices that differ from token to token: address the leading axes as well
    total = len(lead) + len(names)
    leading = []
    for place, size in enumerate(own):
        shape = [1] * total
        shape[len(lead) - len(own) + place] = size
        leading.append(torch.arange(size, device=tensor.device).reshape(shape))
    return Array(tensor[(*leading, *tensors)].expand([*lead, *extents]), names)
