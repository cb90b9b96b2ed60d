"""Sparse attention with a sink: a block of heads of one query walks its listed slots, 64 at a time.

Axes: B batch, T queries, H heads, D head width, K listed slots, N key/value rows. Keys and values are one tensor.
Differs from the definition as the released kernel does: the maximum runs along with the blocks, so that probabilities
are rounded relative to the maximum so far and rescaled afterwards.
"""

# Annotations stay evaluated: TileLang reads the buffers of a kernel from them, sizes included.

import functools
from typing import Any

import tilelang.language as T
import torch
from torch import Tensor

from .arguments import check_divides, check_tensor
from .number_formats import bfloat16_value, constant
from .targets import Target, compile_program, is_host, placement, result_like, target_key, to_storage

SLOTS = 64  # slots a step
LOWEST = -1e30  # the maximum of no slot at all: finite, so that such a query divides 0 by infinity


def program(heads: int, d: int, scale: float, bfloat16: bool, head_block: int, threads: int, key: str) -> Any:
    on = placement(key)
    dtype = on.bfloat16 if bfloat16 else "float32"
    batch, queries, rows, listed = T.dynamic("batch"), T.dynamic("queries"), T.dynamic("rows"), T.dynamic("listed")

    def probability(x):
        """float32 -> the rows' type, in which the value product takes it."""
        return bfloat16_value(x) if bfloat16 and is_host(key) else T.cast(x, dtype)

    @T.prim_func
    def attend(
        q: T.Tensor((batch, queries, heads, d), dtype),
        kv: T.Tensor((batch, rows, d), dtype),
        slots: T.Tensor((batch, queries, listed), "int32"),
        sink: T.Tensor((heads,), "float32"),
        out: T.Tensor((batch, queries, heads, d), dtype),
    ):
        with T.Kernel(queries, batch, T.ceildiv(heads, head_block), threads=threads) as (t, b, hb):
            q_tile = on.shared((head_block, d), dtype)
            kv_tile = on.shared((SLOTS, d), dtype)
            p_tile = on.shared((head_block, SLOTS), dtype)
            slot = on.shared((SLOTS,), "int32")
            z = on.fragment((head_block, SLOTS), "float32")
            total = on.fragment((head_block, d), "float32")
            highest = on.fragment((head_block,), "float32")
            before = on.fragment((head_block,), "float32")
            rescale = on.fragment((head_block,), "float32")
            step_sum = on.fragment((head_block,), "float32")
            denominator = on.fragment((head_block,), "float32")
            for h, i in on.tile_loop(head_block, d):
                q_tile[h, i] = T.if_then_else(
                    hb * head_block + h < heads, q[b, t, hb * head_block + h, i], T.cast(0, dtype)
                )
            T.clear(total)
            T.clear(denominator)
            T.fill(highest, LOWEST)
            for step in T.serial(T.ceildiv(listed, SLOTS)):
                for k in on.tile_loop(SLOTS):
                    slot[k] = T.if_then_else(step * SLOTS + k < listed, slots[b, t, step * SLOTS + k], -1)
                # rows c_i of the slots; a missing one is a zero row that scores -inf
                for k, i in on.tile_loop(SLOTS, d):
                    kv_tile[k, i] = T.if_then_else(slot[k] >= 0, kv[b, T.max(slot[k], 0), i], T.cast(0, dtype))
                # z = <q, c_i>, scaled only once the maximum is taken off: the large scores then lose no digits
                T.clear(z)
                T.gemm(q_tile, kv_tile, z, transpose_B=True)
                for h, k in on.tile_loop(head_block, SLOTS):
                    z[h, k] = T.if_then_else(slot[k] >= 0, z[h, k], -T.infinity("float32"))
                # p = e^(scale (z - m)) with m the maximum so far; what was summed under the former one is rescaled
                T.copy(highest, before)
                T.reduce_max(z, highest, dim=1, clear=False)
                for h in on.tile_loop(head_block):
                    rescale[h] = T.exp((before[h] - highest[h]) * constant(scale))
                for h, k in on.tile_loop(head_block, SLOTS):
                    z[h, k] = T.exp((z[h, k] - highest[h]) * constant(scale))
                T.reduce_sum(z, step_sum, dim=1)
                for h in on.tile_loop(head_block):
                    denominator[h] = denominator[h] * rescale[h] + step_sum[h]
                for h, k in on.tile_loop(head_block, SLOTS):
                    p_tile[h, k] = probability(z[h, k])
                for h, i in on.tile_loop(head_block, d):
                    total[h, i] = total[h, i] * rescale[h]
                T.gemm(p_tile, kv_tile, total)
            # o = total / (sum p + e^(a - scale m)): the sink a is neither scaled nor part of the maximum
            for h in on.tile_loop(head_block):
                denominator[h] = denominator[h] + T.exp(
                    T.if_then_else(hb * head_block + h < heads, sink[hb * head_block + h], 0.0)
                    - highest[h] * constant(scale)
                )
            for h, i in on.tile_loop(head_block, d):
                if hb * head_block + h < heads:
                    out[b, t, hb * head_block + h, i] = T.cast(total[h, i] / denominator[h], dtype)

    return attend


@functools.cache
def compiled(*, heads: int, d: int, scale: float, bfloat16: bool, key: str) -> Any:
    if is_host(key):
        head_block, threads = min(heads, 16), 1
    else:
        head_block, threads = min(64, -(-heads // 16) * 16), 256 if d >= 256 else 128
    return compile_program(program(heads, d, scale, bfloat16, head_block, threads, key), key)


def sparse_attention(
    q: Tensor, kv: Tensor, slots: Tensor, sink: Tensor, *, scale: float, target: Target
) -> Tensor:
    """[B, T, H, D] x [B, N, D] x [B, T, K] int32 x [H] -> [B, T, H, D] in q's type. Twin of `ops.sparse_attention`.

    Report 2.3. Slots are -1 or below N (not checked: that would wait for the device). bfloat16, on the host float32
    too; on CUDA the matrix unit would round float32 to 10 bits. ValueError for another shape or type.
    """
    op, key, (b, t, h, d) = "sparse_attention", target_key(target), q.shape
    types = (torch.bfloat16, torch.float32) if is_host(key) else (torch.bfloat16,)
    check_tensor(op, "q", q, (b, t, h, d), types, key)
    check_tensor(op, "kv", kv, (b, kv.shape[1], d), (q.dtype,), key)
    check_tensor(op, "slots", slots, (b, t, slots.shape[-1]), (torch.int32,), key)
    check_tensor(op, "sink", sink, (h,), (torch.float32,), key)
    if not is_host(key):
        check_divides(op, "the head width", d, 16)
    if not scale > 0:
        raise ValueError(f"{op}: scale is {scale}, expected a positive number: the maximum is taken before scaling")
    out = result_like((b, t, h, d), q.dtype, q, key)
    if out.numel() and not slots.shape[-1] * kv.shape[1]:
        return torch.zeros_like(q)  # nothing to attend to
    if out.numel():
        kernel = compiled(heads=h, d=d, scale=scale, bfloat16=q.dtype == torch.bfloat16, key=key)
        kernel(to_storage(q, key), to_storage(kv, key), to_storage(slots, key), to_storage(sink, key), out)
    return out.to(q.dtype)
