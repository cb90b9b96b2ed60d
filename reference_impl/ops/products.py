"""Matrix products by storage type: plain, float32, FP8 x FP8 and FP8 x FP4 (report 2.4.4).

Axes: K inputs, N outputs. An FP8 weight has one E8M0 scale a block of 32 x 32 (the last row block may be partial), an
FP4 weight one a row and 32 inputs.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .precision import widen
from .rounding import FP4_GROUP, FP8_GROUP, e2m1_unpack


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """[..., K] x [N, K] (+ [N]) -> [..., N], in x's type."""
    return F.linear(x, weight.to(x.dtype), None if bias is None else bias.to(x.dtype))


def add(x: Tensor, update: Tensor) -> Tensor:
    """[...] + [...] -> [...]: a residual sum, or a bias on logits."""
    return x + update


def linear_fp32(x: Tensor, weight: Tensor) -> Tensor:
    """[..., K] x [N, K] -> [..., N] in at least float32: router, head, ratio-2 compressor, draft heads."""
    return F.linear(widen(x), widen(weight))


def fp8_gemm(x: Tensor, x_scale: Tensor, weight: Tensor, weight_scale: Tensor, *, out_dtype: torch.dtype) -> Tensor:
    """[..., K] E4M3, [..., K/32] E8M0 x [N, K] E4M3, [ceil(N/32), K/32] E8M0 -> [..., N] in out_dtype.

    y_mn = sum_b a_mb w_(n/32)b sum_(k in b) x_mk w_nk: each block of 32 inputs is summed, scaled, added in float32.
    """
    row_scale = weight_scale.float().repeat_interleave(FP8_GROUP, dim=0)[: weight.shape[0]]  # [N, K/32]
    return scaled_block_product(x, x_scale, weight.float(), row_scale, FP8_GROUP, out_dtype)


def fp4_gemm(x: Tensor, x_scale: Tensor, weight: Tensor, weight_scale: Tensor, *, out_dtype: torch.dtype) -> Tensor:
    """[..., K] E4M3, [..., K/32] E8M0 x [N, K/2] packed E2M1, [N, K/32] E8M0 -> [..., N] in out_dtype."""
    return scaled_block_product(x, x_scale, e2m1_unpack(weight), weight_scale, FP4_GROUP, out_dtype)


def scaled_block_product(
    x: Tensor, x_scale: Tensor, weight: Tensor, row_scale: Tensor, group: int, out_dtype: torch.dtype
) -> Tensor:
    """[..., K], [..., K/group] x [N, K], [N, K/group] -> [..., N]: block after block, so that memory stays small."""
    working = torch.promote_types(out_dtype, torch.float32)
    x, x_scale, weight, row_scale = (t.float().to(working) for t in (x, x_scale, weight, row_scale))
    y = x.new_zeros(*x.shape[:-1], weight.shape[0])
    for b in range(x.shape[-1] // group):
        inputs = slice(b * group, (b + 1) * group)
        y += F.linear(x[..., inputs], weight[:, inputs]) * (x_scale[..., b, None] * row_scale[:, b])
    return y.to(out_dtype)


def fp8_dequantise(weight: Tensor, scale: Tensor, *, out_dtype: torch.dtype) -> Tensor:
    """[N, K] E4M3, [ceil(N/32), K/32] E8M0 -> [N, K]: the exact values, for a weight used outside an FP8 product."""
    rows = scale.float().repeat_interleave(FP8_GROUP, dim=0)[: weight.shape[0]]
    return (weight.float() * rows.repeat_interleave(FP8_GROUP, dim=1)).to(out_dtype)
