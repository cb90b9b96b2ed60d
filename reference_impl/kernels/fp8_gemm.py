"""FP8 matrix product: FP8 activations and weights, a scale per 32 activations and per 32 x 32 weight block."""

from __future__ import annotations

import torch
from torch import Tensor

from .scaled_product import FP8_WEIGHT, scaled_product
from .targets import Target


def fp8_gemm(
    x: Tensor, x_scale: Tensor, weight: Tensor, weight_scale: Tensor, *, out_dtype: torch.dtype, target: Target
) -> Tensor:
    """[..., K] E4M3, [..., K/32] E8M0 x [N, K] E4M3, [ceil(N/32), K/32] E8M0 -> [..., N] in out_dtype.

    Twin of `ops.fp8_gemm` (report 2.4.4), up to the order of float32 sums. ValueError for another shape or type.
    """
    return scaled_product(
        "fp8_gemm", x, x_scale, weight, weight_scale, weight_format=FP8_WEIGHT, out_dtype=out_dtype, target=target
    )
