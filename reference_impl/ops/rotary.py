"""Rotary embedding: tables with and without YaRN, rotation of adjacent pairs, and its inverse (report 4.2.2).

Axes: T positions, P = rotated features / 2 pairs.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .precision import widen


def rotary_frequencies(
    *, rotated: int, base: float, original_length: int, factor: float, beta_fast: float, beta_slow: float,
    dtype: torch.dtype, device: torch.device,
) -> Tensor:  # fmt: skip
    """-> [P]: angle per position of each pair, base^(-2i/rotated); original_length 0 means without YaRN.

    YaRN divides the slow pairs by `factor`, keeps the fast ones and ramps between the two bounds. The ramp is on
    whatever the length, and there is no magnitude factor.
    """
    exponents = torch.arange(0, rotated, 2, dtype=dtype, device=device) / rotated
    theta = 1.0 / (base**exponents)
    if original_length > 0:
        low, high = yarn_bounds(
            rotated=rotated, base=base, original_length=original_length, beta_fast=beta_fast, beta_slow=beta_slow
        )
        ramp = (torch.arange(rotated // 2, dtype=dtype, device=device) - low) / (high - low)
        slow = ramp.clamp(0, 1)
        theta = theta / factor * slow + theta * (1 - slow)
    return theta


def yarn_bounds(
    *, rotated: int, base: float, original_length: int, beta_fast: float, beta_slow: float
) -> tuple[float, float]:
    """-> pair indices between which YaRN ramps: where a pair turns beta_fast and beta_slow times in original_length."""

    def pair_of(turns: float) -> float:
        return rotated * math.log(original_length / (turns * 2 * math.pi)) / (2 * math.log(base))

    low, high = max(math.floor(pair_of(beta_fast)), 0), min(math.ceil(pair_of(beta_slow)), rotated - 1)
    return low, (high + 0.001 if low == high else high)  # a ramp of zero width would divide by zero


def rotary_table(theta: Tensor, positions: Tensor) -> Tensor:
    """[P] x [T] -> [T, P] complex: e^(i t theta), the phases multiplied in theta's type (float32 in the model)."""
    phases = torch.outer(positions.to(theta.dtype), theta)
    return torch.polar(torch.ones_like(phases), phases)


def rotate(x: Tensor, freqs_cis: Tensor) -> Tensor:
    """[B, T, (H,) D] x [T, P] complex -> same: the LAST 2P features turn, as adjacent pairs, in at least float32."""
    kept, turned = x[..., : -2 * freqs_cis.shape[-1]], x[..., -2 * freqs_cis.shape[-1] :]
    pairs = torch.view_as_complex(widen(turned).unflatten(-1, (-1, 2)).contiguous())  # [B, T, (H,) P]
    table = freqs_cis if x.ndim == 3 else freqs_cis.unsqueeze(-2)  # one angle for all heads
    turned = torch.view_as_real(pairs * table).flatten(-2).to(x.dtype)
    return torch.cat((kept, turned), dim=-1)


def rotate_back(x: Tensor, freqs_cis: Tensor) -> Tensor:
    """[B, T, H, D] x [T, P] complex -> same: the inverse rotation, by the negative angle."""
    return rotate(x, freqs_cis.conj())
