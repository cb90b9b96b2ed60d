"""The FP8 and FP4 roundings that are part of the model, because it was trained with them (report 2.4.4).

Number formats: E4M3 (FP8, largest 448), E2M1 (FP4: 0, .5, 1, 1.5, 2, 3, 4, 6 and a sign bit), E8M0 (a power of two).
Axes: k features along the last axis, in groups of `group` that share one scale. `quantise` gives codes and scales,
`round` gives the value after the trip there and back, in the type it came in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from .precision import widen

FP8_GROUP = 32  # features per scale of an FP8 activation, and side of a weight's scale block
FP4_GROUP = 32  # features per scale of an FP4 weight, an index query or an index key
KV_FP4_GROUP = 16  # features per scale of a compressed KV row

E4M3_MAX = 448.0
E2M1_MAX = 6.0
E2M1_VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


class Quantised(NamedTuple):
    """Codes and the scale of each group; the value is code * scale."""

    codes: Tensor  # FP8: [..., k] float8_e4m3fn. FP4: [..., k/2] uint8, low nibble = even feature
    scale: Tensor  # [..., k/group] float8_e8m0fnu or float8_e4m3fn


def power_of_two_above(x: Tensor) -> Tensor:
    """[...] -> [...]: the smallest power of two that is not below x > 0, float32 or float64; exact on every device.

    The result is built from its exponent bits, since exp2 and pow may be off by a last bit.
    """
    mantissa, exponent = torch.frexp(x)  # x = mantissa * 2^exponent with mantissa in [0.5, 1)
    exponent = exponent - (mantissa == 0.5).to(exponent.dtype)
    if x.dtype == torch.float64:
        return ((exponent.long() + 1023) << 52).view(torch.float64)
    return ((exponent.int() + 127) << 23).view(torch.float32)


def grouped(x: Tensor, group: int) -> Tensor:
    """[..., k] -> [..., k/group, group] in at least float32; ValueError if `group` does not divide k."""
    if x.shape[-1] % group:
        raise ValueError(f"rounding: {x.shape[-1]} features do not divide into groups of {group}")
    return widen(x).unflatten(-1, (-1, group))


def fp8_scale(x: Tensor) -> Tensor:
    """[..., g, group] -> [..., g, 1]: power of two >= max(amax, 1e-4) / 448."""
    return power_of_two_above(x.abs().amax(-1, keepdim=True).clamp(min=1e-4) * (1.0 / E4M3_MAX))


def fp4_e8m0_scale(x: Tensor) -> Tensor:
    """[..., g, group] -> [..., g, 1]: power of two >= max(amax, 6 * 2^-126) / 6."""
    return power_of_two_above(x.abs().amax(-1, keepdim=True).clamp(min=6.0 * 2.0**-126) * (1.0 / E2M1_MAX))


def fp4_e4m3_scale(x: Tensor) -> Tensor:
    """[..., g, group] -> [..., g, 1]: E4M3(max(amax, 6 * 2^-9) / 6), nearest, at most 448; not a power of two."""
    exact = x.abs().amax(-1, keepdim=True).clamp(min=6.0 * 2.0**-9) / E2M1_MAX
    return exact.clamp(max=E4M3_MAX).to(torch.float8_e4m3fn).to(x.dtype)


def e2m1_encode(x: Tensor) -> Tensor:
    """[...] -> [...] uint8 in 0..15: nearest E2M1 code, ties to the even code, sign (of zero too) in bit 3."""
    size = x.abs().unsqueeze(-1)
    ties_down = torch.tensor([0.25, 1.25, 2.5, 5.0], device=x.device, dtype=x.dtype)
    ties_up = torch.tensor([0.75, 1.75, 3.5], device=x.device, dtype=x.dtype)
    code = (size > ties_down).sum(-1) + (size >= ties_up).sum(-1)
    return (code + 8 * torch.signbit(x)).to(torch.uint8)


def e2m1_decode(code: Tensor) -> Tensor:
    """[...] integers 0..15 -> [...] float32."""
    values = torch.tensor([*E2M1_VALUES, *(-v for v in E2M1_VALUES)], device=code.device)
    return values[code.long()]


def e2m1_pack(code: Tensor) -> Tensor:
    """[..., k] uint8 -> [..., k/2] uint8: the even feature in the low nibble."""
    return code[..., 0::2] | (code[..., 1::2] << 4)


def e2m1_unpack(packed: Tensor) -> Tensor:
    """[..., k/2] uint8 or int8 -> [..., k] float32."""
    byte = packed.view(torch.uint8)
    return e2m1_decode(torch.stack((byte & 15, byte >> 4), dim=-1).flatten(-2))


def fp8_codes(x: Tensor, group: int) -> tuple[Tensor, Tensor]:
    """[..., k] -> E4M3 codes [..., g, group] and their scales [..., g, 1]."""
    groups = grouped(x, group)
    scale = fp8_scale(groups)
    return (groups / scale).clamp(-E4M3_MAX, E4M3_MAX).to(torch.float8_e4m3fn), scale


def fp4_codes(x: Tensor, group: int, scale_of: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """[..., k] -> E2M1 codes [..., g, group], one to a byte, and their scales [..., g, 1]."""
    groups = grouped(x, group)
    scale = scale_of(groups)
    return e2m1_encode((groups / scale).clamp(-E2M1_MAX, E2M1_MAX)), scale


def fp8_quantise(x: Tensor, *, group: int) -> Quantised:
    """[..., k] -> E4M3 [..., k], E8M0 [..., k/group]: the input of every FP8 and FP4 product."""
    codes, scale = fp8_codes(x, group)
    return Quantised(codes.flatten(-2), scale.squeeze(-1).to(torch.float8_e8m0fnu))


def fp8_round(x: Tensor, *, group: int) -> Tensor:
    """[..., k] -> [..., k] in x's type: FP8 and back, as for the window KV."""
    codes, scale = fp8_codes(x, group)
    return (codes.to(scale.dtype) * scale).flatten(-2).to(x.dtype)


def fp4_e8m0_quantise(x: Tensor, *, group: int) -> Quantised:
    """[..., k] -> packed E2M1 [..., k/2], E8M0 [..., k/group] (the OCP MXFP4 form when group is 32)."""
    codes, scale = fp4_codes(x, group, fp4_e8m0_scale)
    return Quantised(e2m1_pack(codes.flatten(-2)), scale.squeeze(-1).to(torch.float8_e8m0fnu))


def fp4_e8m0_round(x: Tensor, *, group: int) -> Tensor:
    """[..., k] -> [..., k] in x's type: FP4 with power-of-two scales and back, as for index queries and keys."""
    codes, scale = fp4_codes(x, group, fp4_e8m0_scale)
    return (e2m1_decode(codes).to(scale.dtype) * scale).flatten(-2).to(x.dtype)


def fp4_e4m3_quantise(x: Tensor, *, group: int) -> Quantised:
    """[..., k] -> packed E2M1 [..., k/2], E4M3 [..., k/group]."""
    codes, scale = fp4_codes(x, group, fp4_e4m3_scale)
    return Quantised(e2m1_pack(codes.flatten(-2)), scale.squeeze(-1).to(torch.float8_e4m3fn))


def fp4_e4m3_round(x: Tensor, *, group: int) -> Tensor:
    """[..., k] -> [..., k] in x's type: FP4 with E4M3 scales and back, as for the compressed KV."""
    codes, scale = fp4_codes(x, group, fp4_e4m3_scale)
    return (e2m1_decode(codes).to(scale.dtype) * scale).flatten(-2).to(x.dtype)
