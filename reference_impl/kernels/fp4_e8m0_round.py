"""FP4 rounding there and back, with power-of-two scales: index queries and keys."""

from __future__ import annotations

from torch import Tensor

from .rounding import round_in_groups
from .targets import Target, target_key


def fp4_e8m0_round(x: Tensor, *, group: int, target: Target) -> Tensor:
    """[..., k] -> [..., k] in x's type. Twin of `ops.fp4_e8m0_round` (report 2.4.4), equal bit for bit.

    For finite x in bfloat16 or float32. ValueError for another type, or if `group` does not divide k.
    """
    return round_in_groups("fp4_e8m0_round", "fp4_e8m0", x, group, target_key(target))
