"""Engram gate: how well a token's looked-up key matches each of its streams, one block per token and stream.

Axes: n streams, d width; the leading axes of the wrapper are flattened to tokens.
"""

# Annotations stay evaluated: TileLang reads the buffers of a kernel from them, sizes included.

import functools
import math
from typing import Any

import tilelang.language as T
import torch
from torch import Tensor

from ..ops.engram import MATCH_FLOOR
from .arguments import check_tensor
from .number_formats import constant, magnitude, with_sign
from .targets import Target, compile_program, placement, storage_type, target_key, to_storage

THREADS = 128
LANES = THREADS * 8  # running sums, 8 neighbouring features a thread; added up once at the end


def program(n: int, d: int, eps: float, dtype: str, gain_dtype: str, key: str) -> Any:
    on = placement(key)
    tokens = T.dynamic("tokens")

    @T.prim_func
    def match_gate(
        streams: T.Tensor((tokens, n, d), dtype),
        keys: T.Tensor((tokens, n, d), dtype),
        query_weight: T.Tensor((n, d), gain_dtype),
        key_weight: T.Tensor((n, d), gain_dtype),
        gate: T.Tensor((tokens, n), "float32"),
    ):
        with T.Kernel(tokens, n, threads=THREADS) as (t, s):
            products = on.fragment((LANES,), "float32")
            stream_squares = on.fragment((LANES,), "float32")
            key_squares = on.fragment((LANES,), "float32")
            product = on.fragment((1,), "float32")
            stream_square = on.fragment((1,), "float32")
            key_square = on.fragment((1,), "float32")
            match = on.fragment((1,), "float32")
            T.clear(products)
            T.clear(stream_squares)
            T.clear(key_squares)
            for block in T.serial(T.ceildiv(d, LANES)):
                for i in on.tile_loop(LANES):
                    if block * LANES + i < d:
                        x = T.cast(streams[t, s, block * LANES + i], "float32")
                        k = T.cast(keys[t, s, block * LANES + i], "float32")
                        gain = T.cast(query_weight[s, block * LANES + i], "float32") * T.cast(
                            key_weight[s, block * LANES + i], "float32"
                        )
                        products[i] += x * gain * k
                        stream_squares[i] += x * x
                        key_squares[i] += k * k
            T.reduce_sum(products, product, dim=0)
            T.reduce_sum(stream_squares, stream_square, dim=0)
            T.reduce_sum(key_squares, key_square, dim=0)
            # match = product / (rms(x) rms(k) sqrt(d));  gate = sigmoid(signed sqrt(max(|match|, floor)))
            for i in on.tile_loop(1):
                match[i] = (
                    product[i]
                    / (T.sqrt(stream_square[i] / d + constant(eps)) * T.sqrt(key_square[i] / d + constant(eps)))
                    / constant(math.sqrt(d))
                )
                gate[t, s] = 1.0 / (
                    1.0 + T.exp(-with_sign(T.sqrt(T.max(magnitude(match[i]), constant(MATCH_FLOOR))), match[i]))
                )

    return match_gate


@functools.cache
def compiled(*, n: int, d: int, eps: float, dtype: str, gain_dtype: str, key: str) -> Any:
    return compile_program(program(n, d, eps, dtype, gain_dtype, key), key)


def engram_gate(
    streams: Tensor, keys: Tensor, query_weight: Tensor, key_weight: Tensor, *, eps: float, target: Target
) -> Tensor:
    """[..., n, d] x [..., n, d] x [n, d] x [n, d] -> [..., n] float32. Twin of `ops.engram_gate` (report 2.4.2).

    Streams and keys in bfloat16 or float32, the two gains in one of these too. ValueError for another shape or type.
    """
    op, key, (*lead, n, d) = "engram_gate", target_key(target), streams.shape
    floats = (torch.bfloat16, torch.float32)
    check_tensor(op, "streams", streams, (*lead, n, d), floats, key)
    check_tensor(op, "keys", keys, (*lead, n, d), (streams.dtype,), key)
    check_tensor(op, "query_weight", query_weight, (n, d), floats, key)
    check_tensor(op, "key_weight", key_weight, (n, d), (query_weight.dtype,), key)
    gate = torch.empty((*lead, n), dtype=torch.float32, device=streams.device)
    if gate.numel():
        kernel = compiled(
            n=n, d=d, eps=eps, dtype=storage_type(streams.dtype, key),
            gain_dtype=storage_type(query_weight.dtype, key), key=key,
        )  # fmt: skip
        kernel(
            to_storage(streams, key).view(-1, n, d), to_storage(keys, key).view(-1, n, d),
            to_storage(query_weight, key), to_storage(key_weight, key), gate.view(-1, n),
        )  # fmt: skip
    return gate
