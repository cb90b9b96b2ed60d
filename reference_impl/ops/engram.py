"""Engram: looked-up n-gram memory, gated by its match with each stream (report 2.4.2).

Axes: n streams, d width, C table columns per token (n-gram orders x heads), W column width.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .precision import widen
from .rounding import FP8_GROUP

MATCH_FLOOR = 1e-6  # smallest magnitude under the signed square root, so an unmatched memory is half on


def engram_lookup(table: Tensor, rows: Tensor) -> Tensor:
    """[R, W] x [..., C] int64 -> [..., C, W]: rows of a float table (without quantisation)."""
    return table[rows]


def engram_lookup_fp8(table: Tensor, scale: Tensor, rows: Tensor, *, out_dtype: torch.dtype) -> Tensor:
    """[R, W] E4M3, [R, W/32] E8M0 x [..., C] int64 -> [..., C, W]: values times scales in float32, then cast."""
    values = table.view(torch.uint8)[rows].view(table.dtype).float()  # indexing goes by bytes, the values are the same
    scales = scale.view(torch.uint8)[rows].view(scale.dtype).float()
    return (values * scales.repeat_interleave(FP8_GROUP, dim=-1)).to(out_dtype)


def engram_gate(streams: Tensor, keys: Tensor, query_weight: Tensor, key_weight: Tensor, *, eps: float) -> Tensor:
    """[..., n, d] x [..., n, d] x [n, d] x [n, d] -> [..., n], at least float32.

    delta_s = sum_i X_si q_si k_si K_si / (rms(X_s) rms(K_s) sqrt(d)) with eps under both means, per stream;
    gate = sigmoid(sign(delta) sqrt(max(|delta|, 1e-6))), the sign of a zero taken from its sign bit.
    """
    x, k = widen(streams), widen(keys)
    gain = widen(query_weight) * widen(key_weight)
    norms = torch.rsqrt(x.square().mean(-1) + eps) * torch.rsqrt(k.square().mean(-1) + eps)
    match = (x * gain * k).sum(-1) * norms / math.sqrt(x.shape[-1])
    return torch.sigmoid(torch.copysign(match.abs().clamp(min=MATCH_FLOOR).sqrt(), match))


def mask_gate(gate: Tensor, image_mask: Tensor | None) -> Tensor:
    """[B, T, n] x [B, T] bool or none -> [B, T, n]: the gate forced to 0 inside an image span."""
    return gate if image_mask is None else gate.masked_fill(image_mask.unsqueeze(-1), 0.0)


def engram_write(streams: Tensor, gate: Tensor, value: Tensor) -> Tensor:
    """[..., n, d] x [..., n] x [..., d] -> [..., n, d]: X[s] + g_s v, in at least float32, cast once."""
    return (widen(streams) + gate.unsqueeze(-1) * widen(value).unsqueeze(-2)).to(streams.dtype)
