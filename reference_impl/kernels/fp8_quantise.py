"""FP8 activation rounding: the input of every FP8 and FP4 product, as codes and power-of-two scales."""

from __future__ import annotations

import torch
from torch import Tensor

from ..ops import Quantised
from .arguments import check_divides, check_tensor
from .rounding import FLOATS, compiled_quantise
from .targets import Target, storage_type, target_key, to_storage


def fp8_quantise(x: Tensor, *, group: int, target: Target) -> Quantised:
    """[..., k] -> E4M3 [..., k], E8M0 [..., k/group]. Twin of `ops.fp8_quantise` (report 2.4.4), equal bit for bit.

    For finite x in bfloat16 or float32. ValueError for another type, or if `group` does not divide k.
    """
    op, key = "fp8_quantise", target_key(target)
    check_tensor(op, "x", x, x.shape, FLOATS, key)
    check_divides(op, "the number of features", x.shape[-1], group)
    codes = torch.empty(x.shape, dtype=torch.uint8, device=x.device)
    scale = torch.empty((*x.shape[:-1], x.shape[-1] // group), dtype=torch.uint8, device=x.device)
    if x.numel():
        kernel = compiled_quantise(size=group, dtype=storage_type(x.dtype, key), key=key)
        kernel(to_storage(x, key).view(-1, group), codes.view(-1, group), scale.view(-1))
    return Quantised(codes.view(torch.float8_e4m3fn), scale.view(torch.float8_e8m0fnu))
