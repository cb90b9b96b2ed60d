"""Block-scaled matrix products: FP8 activations times FP8 or FP4 weights, one tiled kernel for both.

Axes: K inputs, N outputs, R rows of x. Both operands are dequantised into the tile that the matrix unit reads. That is
exact: a code has at most 4 significant bits and a scale is a power of two, so value times scale is a bfloat16 number
(scales within 2^-117 .. 2^119), and scaling before the sum equals scaling after it. The sum is float32 throughout.
Differs: the released kernel multiplies FP8 codes and scales each block's sum; Hopper's FP8 matrix unit keeps about 14
bits of a sum (DeepSeek-V3 report, 3.3.2), so it would not agree with the definition to float32 accuracy.
"""

# Annotations stay evaluated: TileLang reads the buffers of a kernel from them, sizes included.

import dataclasses
import functools
import math
from typing import Any

import tilelang.language as T
import torch
from torch import Tensor

from .arguments import check_divides, check_tensor
from .number_formats import e2m1_value, e4m3_value, power_of_two
from .targets import Target, compile_program, is_host, placement, result_like, storage_type, target_key, to_storage

GROUP = 32  # inputs that share a scale, in x and in both kinds of weight


@dataclasses.dataclass(frozen=True)
class WeightFormat:
    """How a weight is stored."""

    per_byte: int  # inputs in a byte, the lower-numbered one in the low bits
    scale_rows: int  # weight rows that share a scale

    def value(self, byte: Any, i: Any) -> Any:
        """The byte that holds input i -> the code's float32 value, unscaled."""
        if self.per_byte == 1:
            return e4m3_value(byte)
        return e2m1_value((T.cast(byte, "int32") >> ((i % 2) * 4)) & 15)


FP8_WEIGHT = WeightFormat(per_byte=1, scale_rows=GROUP)
FP4_WEIGHT = WeightFormat(per_byte=2, scale_rows=1)


@dataclasses.dataclass(frozen=True)
class Tile:
    """Sizes of a block's work: rows of x, outputs, inputs a step, threads, steps in flight (0: one after another)."""

    rows: int
    outputs: int
    inputs: int
    threads: int
    stages: int


HOST_TILE = Tile(rows=16, outputs=32, inputs=GROUP, threads=1, stages=0)
FEW_ROWS = Tile(rows=16, outputs=32, inputs=128, threads=128, stages=4)  # decode: the weights' bytes decide
SOME_ROWS = Tile(rows=64, outputs=64, inputs=128, threads=128, stages=3)
MANY_ROWS = Tile(rows=128, outputs=128, inputs=64, threads=256, stages=3)
SHARED_LIMIT = 224 * 1024  # of the 227 KiB that a block may use on Hopper; barriers take the rest
CHUNK = 16  # neighbouring inputs that a thread dequantises at a time, all under one scale


def shared_bytes(tile: Tile, inputs: int, weight_format: WeightFormat) -> int:
    """-> bytes of shared memory that a block takes on CUDA: codes and dequantised tiles a stage, and all scales."""
    stage = tile.inputs * (tile.rows * 3 + tile.outputs * 2 + tile.outputs // weight_format.per_byte)
    scale_rows = tile.rows + tile.outputs // weight_format.scale_rows
    return max(tile.stages, 1) * stage + scale_rows * (inputs // GROUP)


def tile_for(rows: int, inputs: int, weight_format: WeightFormat, key: str) -> Tile:
    """-> the tile for this many rows: its step divides the inputs, its stages fit into shared memory."""
    if is_host(key):
        return HOST_TILE
    tile = FEW_ROWS if rows <= 32 else SOME_ROWS if rows <= 256 else MANY_ROWS
    tile = dataclasses.replace(tile, inputs=math.gcd(inputs, tile.inputs))
    # A pipeline is never deeper than its steps: a single step is not pipelined, as that can deadlock on Hopper.
    steps = inputs // tile.inputs
    tile = dataclasses.replace(tile, stages=min(tile.stages, steps) if steps > 1 else 0)
    while tile.stages > 1 and shared_bytes(tile, inputs, weight_format) > SHARED_LIMIT:
        tile = dataclasses.replace(tile, stages=tile.stages - 1)
    return tile


def program(outputs: int, inputs: int, weight_format: WeightFormat, out: str, tile: Tile, key: str) -> Any:
    on = placement(key)
    per_byte, scale_rows = weight_format.per_byte, weight_format.scale_rows
    scale_tile = tile.outputs // scale_rows  # rows of the weight's scales that a block reads
    rows = T.dynamic("rows")

    @T.prim_func
    def scaled_product(
        x: T.Tensor((rows, inputs), "uint8"),
        x_scale: T.Tensor((rows, inputs // GROUP), "uint8"),
        weight: T.Tensor((outputs, inputs // per_byte), "uint8"),
        weight_scale: T.Tensor((-(-outputs // scale_rows), inputs // GROUP), "uint8"),
        y: T.Tensor((rows, outputs), out),
    ):
        with T.Kernel(T.ceildiv(outputs, tile.outputs), T.ceildiv(rows, tile.rows), threads=tile.threads) as (bn, bm):
            x_bytes = on.shared((tile.rows, tile.inputs), "uint8")
            weight_bytes = on.shared((tile.outputs, tile.inputs // per_byte), "uint8")
            x_tile = on.shared((tile.rows, tile.inputs), on.bfloat16)
            weight_tile = on.shared((tile.outputs, tile.inputs), on.bfloat16)
            total = on.fragment((tile.rows, tile.outputs), "float32")
            x_scales = on.shared((tile.rows, inputs // GROUP), "uint8")
            weight_scales = on.shared((scale_tile, inputs // GROUP), "uint8")
            T.clear(total)
            # All scales of the block's rows at once: a step would otherwise wait for its few bytes from far away.
            for r, g in on.tile_loop(tile.rows, inputs // GROUP):
                x_scales[r, g] = x_scale[bm * tile.rows + r, g]
            for o, g in on.tile_loop(scale_tile, inputs // GROUP):
                weight_scales[o, g] = weight_scale[bn * scale_tile + o, g]
            code = T.alloc_local((CHUNK,), "uint8")
            packed = T.alloc_local((CHUNK // per_byte,), "uint8")
            value = T.alloc_local((CHUNK,), on.bfloat16)
            scale = T.alloc_local((1,), "float32")
            for step in T.Pipelined(inputs // tile.inputs, num_stages=tile.stages):
                # What lies past the last row or output loads as code 0, the value 0.
                T.copy(x[bm * tile.rows, step * tile.inputs], x_bytes)
                T.copy(weight[bn * tile.outputs, step * (tile.inputs // per_byte)], weight_bytes)
                for r, c in on.tile_loop(tile.rows, tile.inputs // CHUNK):
                    scale[0] = power_of_two(
                        T.cast(x_scales[r, (step * tile.inputs + c * CHUNK) // GROUP], "int32")
                    )
                    for i in T.vectorized(CHUNK):
                        code[i] = x_bytes[r, c * CHUNK + i]
                    for i in T.unroll(CHUNK):
                        value[i] = T.cast(e4m3_value(code[i]) * scale[0], on.bfloat16)
                    for i in T.vectorized(CHUNK):
                        x_tile[r, c * CHUNK + i] = value[i]
                for o, c in on.tile_loop(tile.outputs, tile.inputs // CHUNK):
                    scale[0] = power_of_two(
                        T.cast(weight_scales[o // scale_rows, (step * tile.inputs + c * CHUNK) // GROUP], "int32")
                    )
                    for i in T.vectorized(CHUNK // per_byte):
                        packed[i] = weight_bytes[o, c * (CHUNK // per_byte) + i]
                    for i in T.unroll(CHUNK):
                        value[i] = T.cast(weight_format.value(packed[i // per_byte], i) * scale[0], on.bfloat16)
                    for i in T.vectorized(CHUNK):
                        weight_tile[o, c * CHUNK + i] = value[i]
                T.gemm(x_tile, weight_tile, total, transpose_B=True)
            for r, o in on.tile_loop(tile.rows, tile.outputs):
                if bm * tile.rows + r < rows and bn * tile.outputs + o < outputs:
                    y[bm * tile.rows + r, bn * tile.outputs + o] = T.cast(total[r, o], out)

    return scaled_product


@functools.cache
def compiled(*, outputs: int, inputs: int, weight_format: WeightFormat, out: str, tile: Tile, key: str) -> Any:
    return compile_program(program(outputs, inputs, weight_format, out, tile, key), key)


def scaled_product(
    op: str, x: Tensor, x_scale: Tensor, weight: Tensor, weight_scale: Tensor, *,
    weight_format: WeightFormat, out_dtype: torch.dtype, target: Target,
) -> Tensor:  # fmt: skip
    """The wrapper that the FP8 and the FP4 product share."""
    key, (*lead, inputs), outputs = target_key(target), x.shape, weight.shape[0]
    scale_types, per_byte = (torch.float8_e8m0fnu,), weight_format.per_byte
    check_divides(op, "the number of inputs", inputs, GROUP)
    check_tensor(op, "x", x, x.shape, (torch.float8_e4m3fn,), key)
    check_tensor(op, "x_scale", x_scale, (*lead, inputs // GROUP), scale_types, key)
    weight_types = (torch.float8_e4m3fn,) if per_byte == 1 else (torch.int8, torch.uint8)
    check_tensor(op, "weight", weight, (outputs, inputs // per_byte), weight_types, key)
    scale_shape = (-(-outputs // weight_format.scale_rows), inputs // GROUP)
    check_tensor(op, "weight_scale", weight_scale, scale_shape, scale_types, key)
    if out_dtype not in (torch.bfloat16, torch.float32):
        raise ValueError(f"{op}: out_dtype is {out_dtype}, expected torch.bfloat16 or torch.float32")
    y = result_like((*lead, outputs), out_dtype, x, key)
    if y.numel():
        rows = y.numel() // outputs
        kernel = compiled(
            outputs=outputs, inputs=inputs, weight_format=weight_format, out=storage_type(out_dtype, key),
            tile=tile_for(rows, inputs, weight_format, key), key=key,
        )  # fmt: skip
        kernel(
            to_storage(x, key).view(rows, inputs), to_storage(x_scale, key).view(rows, -1),
            to_storage(weight, key), to_storage(weight_scale, key), y.view(rows, outputs),
        )  # fmt: skip
    return y.to(out_dtype)
