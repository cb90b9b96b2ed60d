# How close is equal, and why.
"""Tolerance classes as numbers, and the comparison of two tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sitegen import schema

if TYPE_CHECKING:
    from torch import Tensor

#: Relative to the largest magnitude of the reference; a few roundings of the type, many for sums.
RELATIVE = {"float64": 1e-11, "float32": 2e-5, "bfloat16": 2.0**-7}
UNIT = {"float64": 2.0**-52, "float32": 2.0**-23, "bfloat16": 2.0**-7}


@dataclass(frozen=True)
class Difference:
    """The largest difference of two tensors, and what was allowed."""

    error: float
    allowed: float
    at: tuple[int, ...] = ()
    expected: float = 0.0
    actual: float = 0.0

    @property
    def within(self) -> bool:
        return self.error <= self.allowed

    def shown(self) -> str:
        place = f" at {list(self.at)}" if self.at else ""
        return f"largest difference {self.error:.3g}{place}, allowed {self.allowed:.3g}"


def dtype_name(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def magnitude(reference: Tensor) -> float:
    """The largest finite magnitude: a masked entry of -inf must not allow every other entry anything."""
    size = reference.abs()
    size = size[size.isfinite()]
    return float(size.max()) if size.numel() else 0.0


def by_type(dtype: str, reference: Tensor) -> float:
    """The allowance for values that the implementation computed in `dtype`."""
    scale = magnitude(reference)
    return RELATIVE.get(dtype, 0.0) * scale + (1e-300 if dtype == "float64" else 1e-37)


def allowance(tolerance: schema.Tolerance, reference: Tensor, dtype: str) -> float:
    """A property's tolerance as an absolute number for these values."""
    scale = magnitude(reference)
    match tolerance.kind:
        case "exact":
            return 0.0
        case "ulp":
            return tolerance.value * UNIT.get(dtype, 0.0) * scale
        case "measured":
            return tolerance.value
        case "fp64" | "fp32" | "bf16":
            name = {"fp64": "float64", "fp32": "float32", "bf16": "bfloat16"}[tolerance.kind]
            return max(RELATIVE[name], RELATIVE.get(dtype, 0.0)) * max(scale, 1e-300)


def difference(actual: Tensor, expected: Tensor, allowed: float) -> Difference:
    """Largest absolute difference; values that are not finite on one side only differ without bound."""
    import torch

    actual, expected = actual.double(), expected.double()
    if actual.shape != expected.shape:
        try:
            actual, expected = torch.broadcast_tensors(actual, expected)
        except RuntimeError:
            return Difference(float("inf"), allowed)
    if not actual.numel():
        return Difference(0.0, allowed)
    gap = torch.where(actual == expected, 0.0, (actual - expected).abs())
    gap = torch.where(gap.isnan(), torch.inf, gap)
    flat = int(gap.argmax())
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), gap.shape))
    return Difference(
        float(gap.flatten()[flat]), allowed, index, float(expected.flatten()[flat]), float(actual.flatten()[flat])
    )
