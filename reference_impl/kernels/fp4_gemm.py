"""FP4 matrix product of the routed experts: FP8 activations, FP4 weights with a scale per row and 32 inputs."""

from __future__ import annotations

import torch
from torch import Tensor

from .scaled_product import FP4_WEIGHT, scaled_product
from .targets import Target


def fp4_gemm(
    x: Tensor, x_scale: Tensor, weight: Tensor, weight_scale: Tensor, *, out_dtype: torch.dtype, target: Target
) -> Tensor:
    """[..., K] E4M3, [..., K/32] E8M0 x [N, K/2] packed E2M1, [N, K/32] E8M0 -> [..., N] in out_dtype.

    Twin of `ops.fp4_gemm` (report 2.4.4), up to the order of float32 sums. ValueError for another shape or type.
    """
    return scaled_product(
        "fp4_gemm", x, x_scale, weight, weight_scale, weight_format=FP4_WEIGHT, out_dtype=out_dtype, target=target
    )
