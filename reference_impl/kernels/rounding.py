"""FP8 and FP4 rounding kernels: a thread per group of features that share a scale, its features in registers.

Axes: G groups, `size` features a group. Grouping runs along the last axis, so that a contiguous tensor is G rows.
"""

# Annotations stay evaluated: TileLang reads the buffers of a kernel from them, sizes included.

import functools
from typing import Any

import tilelang.language as T
import torch
from torch import Tensor

from .arguments import check_divides, check_tensor
from .number_formats import (
    E2M1,
    E4M3,
    constant,
    e4m3_byte,
    inverse_power_of_two,
    magnitude,
    power_of_two,
    power_of_two_byte_above,
    with_sign,
)
from .targets import compile_program, result_like, storage_type, to_storage

BLOCK = 128  # groups a block, one per thread
E4M3_MAX = 448.0
E2M1_MAX = 6.0
FLOATS = (torch.bfloat16, torch.float32)


def fp8_exponent(amax):
    """float32 -> E8M0 byte of the power of two >= max(amax, 1e-4) / 448."""
    return power_of_two_byte_above(T.max(amax, constant(1e-4)) * constant(1.0 / E4M3_MAX))


def fp4_exponent(amax):
    """float32 -> E8M0 byte of the power of two >= max(amax, 6 * 2^-126) / 6."""
    return power_of_two_byte_above(T.max(amax, constant(6.0 * 2.0**-126)) * constant(1.0 / E2M1_MAX))


def e4m3_scale(amax):
    """float32 -> E4M3 value of max(amax, 6 * 2^-9) / 6, at most 448."""
    return E4M3.value(T.min(T.max(amax, constant(6.0 * 2.0**-9)) / constant(E2M1_MAX), constant(E4M3_MAX)))


def scaled_size(x, exponent):
    """float32 and the scale's E8M0 byte -> |x| / scale, clipped to 448."""
    return T.min(magnitude(x) * inverse_power_of_two(exponent), constant(E4M3_MAX))


def quantise_program(size: int, dtype: str) -> Any:
    """FP8 codes and E8M0 scales."""
    groups = T.dynamic("groups")

    @T.prim_func
    def fp8_quantise(
        x: T.Tensor((groups, size), dtype),
        codes: T.Tensor((groups, size), "uint8"),
        scale: T.Tensor((groups,), "uint8"),
    ):
        with T.Kernel(T.ceildiv(groups, BLOCK), threads=BLOCK) as block:
            value = T.alloc_local((size,), "float32")
            code = T.alloc_local((size,), "uint8")
            amax = T.alloc_local((1,), "float32")
            exponent = T.alloc_local((1,), "int32")
            for lane in T.Parallel(BLOCK):
                g = block * BLOCK + lane
                if g < groups:
                    for i in T.vectorized(size):
                        value[i] = T.cast(x[g, i], "float32")
                    amax[0] = 0.0
                    for i in T.unroll(size):
                        amax[0] = T.max(amax[0], magnitude(value[i]))
                    exponent[0] = fp8_exponent(amax[0])
                    for i in T.unroll(size):
                        code[i] = e4m3_byte(scaled_size(value[i], exponent[0]), value[i])
                    for i in T.vectorized(size):
                        codes[g, i] = code[i]
                    scale[g] = T.cast(exponent[0], "uint8")

    return fp8_quantise


def round_program(form: str, size: int, dtype: str) -> Any:
    """There and back: x on the grid of its group, in x's type. `form` is one of FORMS."""
    groups = T.dynamic("groups")
    group_scale, on_grid = FORMS[form]

    @T.prim_func
    def round_groups(x: T.Tensor((groups, size), dtype), rounded: T.Tensor((groups, size), dtype)):
        with T.Kernel(T.ceildiv(groups, BLOCK), threads=BLOCK) as block:
            value = T.alloc_local((size,), "float32")
            amax = T.alloc_local((1,), "float32")
            scale = T.alloc_local((1,), "float32")
            for lane in T.Parallel(BLOCK):
                g = block * BLOCK + lane
                if g < groups:
                    for i in T.vectorized(size):
                        value[i] = T.cast(x[g, i], "float32")
                    amax[0] = 0.0
                    for i in T.unroll(size):
                        amax[0] = T.max(amax[0], magnitude(value[i]))
                    scale[0] = group_scale(amax[0])
                    for i in T.unroll(size):
                        value[i] = with_sign(on_grid(magnitude(value[i]) / scale[0]) * scale[0], value[i])
                    for i in T.vectorized(size):
                        rounded[g, i] = T.cast(value[i], dtype)

    return round_groups


# form: scale of a group from its amax; size >= 0 in units of the scale -> size on the grid
FORMS = {
    "fp8": (lambda amax: power_of_two(fp8_exponent(amax)), lambda s: E4M3.value(T.min(s, constant(E4M3_MAX)))),
    "fp4_e8m0": (lambda amax: power_of_two(fp4_exponent(amax)), lambda s: E2M1.value(T.min(s, constant(E2M1_MAX)))),
    "fp4_e4m3": (e4m3_scale, lambda s: E2M1.value(T.min(s, constant(E2M1_MAX)))),
}


@functools.cache
def compiled_quantise(*, size: int, dtype: str, key: str) -> Any:
    return compile_program(quantise_program(size, dtype), key)


@functools.cache
def compiled_round(*, form: str, size: int, dtype: str, key: str) -> Any:
    return compile_program(round_program(form, size, dtype), key)


def round_in_groups(op: str, form: str, x: Tensor, group: int, key: str) -> Tensor:
    """[..., k] -> [..., k] in x's type: the wrapper that the three roundings share."""
    check_tensor(op, "x", x, x.shape, FLOATS, key)
    check_divides(op, "the number of features", x.shape[-1], group)
    rounded = result_like(x.shape, x.dtype, x, key)
    if x.numel():
        kernel = compiled_round(form=form, size=group, dtype=storage_type(x.dtype, key), key=key)
        kernel(to_storage(x, key).view(-1, group), rounded.view(-1, group))
    return rounded.to(x.dtype)
