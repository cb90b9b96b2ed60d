"""FP8 rounding there and back, with power-of-two scales: the window KV."""

from __future__ import annotations

from torch import Tensor

from .rounding import round_in_groups
from .targets import Target, target_key


def fp8_round(x: Tensor, *, group: int, target: Target) -> Tensor:
    """[..., k] -> [..., k] in x's type. Twin of `ops.fp8_round` (report 2.4.4), equal bit for bit.

    For finite x in bfloat16 or float32. ValueError for another type, or if `group` does not divide k.
    """
    return round_in_groups("fp8_round", "fp8", x, group, target_key(target))
