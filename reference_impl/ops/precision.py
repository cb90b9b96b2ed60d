"""The one rule on working precision: at least float32, and float64 stays float64."""

from __future__ import annotations

from torch import Tensor, float64


def widen(x: Tensor) -> Tensor:
    """[...] -> [...] in float32, or unchanged when `x` is float64."""
    return x if x.dtype == float64 else x.float()
