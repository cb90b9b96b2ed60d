"""Stream read: the weighted sum of a token's streams, 8 features a thread, one rounding.

Axes: n streams, d width; the leading axes of the wrapper are flattened to tokens.
"""

# Annotations stay evaluated: TileLang reads the buffers of a kernel from them, sizes included.

import functools
from typing import Any

import tilelang.language as T
import torch
from torch import Tensor

from .arguments import check_tensor
from .targets import Target, compile_program, result_like, storage_type, target_key, to_storage

THREADS = 128
PER_THREAD = 8  # neighbouring features a thread: 16 bytes of bfloat16


def program(n: int, d: int, dtype: str) -> Any:
    width = THREADS * PER_THREAD  # features a block
    tokens = T.dynamic("tokens")

    def weighted_sum(streams, reading, t, i):
        """sum over s of reading[s] * streams[s], added in the order of the streams."""
        terms = [reading[t, s] * T.cast(streams[t, s, i], "float32") for s in range(n)]
        return functools.reduce(lambda a, b: a + b, terms)

    @T.prim_func
    def stream_read(
        streams: T.Tensor((tokens, n, d), dtype),
        reading: T.Tensor((tokens, n), "float32"),
        collapsed: T.Tensor((tokens, d), dtype),
    ):
        with T.Kernel(tokens, T.ceildiv(d, width), threads=THREADS) as (t, block):
            for i in T.Parallel(width):
                if block * width + i < d:
                    collapsed[t, block * width + i] = T.cast(
                        weighted_sum(streams, reading, t, block * width + i), dtype
                    )

    return stream_read


@functools.cache
def compiled(*, n: int, d: int, dtype: str, key: str) -> Any:
    return compile_program(program(n, d, dtype), key)


def hc_read(streams: Tensor, reading: Tensor, *, target: Target) -> Tensor:
    """[..., n, d] x [..., n] -> [..., d]: sum_s p_s X[s] in float32, in the streams' type (bfloat16 or float32).

    Twin of `ops.hc_read` (report 2.4.1, eq. 6). ValueError for another shape or type.
    """
    op, key, (*lead, n, d) = "hc_read", target_key(target), streams.shape
    check_tensor(op, "streams", streams, (*lead, n, d), (torch.bfloat16, torch.float32), key)
    check_tensor(op, "reading", reading, (*lead, n), (torch.float32,), key)
    collapsed = result_like((*lead, d), streams.dtype, streams, key)
    if collapsed.numel():
        kernel = compiled(n=n, d=d, dtype=storage_type(streams.dtype, key), key=key)
        kernel(to_storage(streams, key).view(-1, n, d), to_storage(reading, key).view(-1, n), collapsed.view(-1, d))
    return collapsed.to(streams.dtype)
