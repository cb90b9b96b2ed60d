"""Stream write: the sublayer's output into every stream, the streams carried over, 8 features a thread.

Axes: n streams (j source, k target), d width; the leading axes of the wrapper are flattened to tokens.
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

    def carried(streams, combination, t, k, i):
        """sum over the source j of combination[j, k] * streams[j], added in the order of the sources."""
        terms = [combination[t, j, k] * T.cast(streams[t, j, i], "float32") for j in range(n)]
        return functools.reduce(lambda a, b: a + b, terms)

    @T.prim_func
    def stream_write(
        streams: T.Tensor((tokens, n, d), dtype),
        output: T.Tensor((tokens, d), dtype),
        writing: T.Tensor((tokens, n), "float32"),
        combination: T.Tensor((tokens, n, n), "float32"),
        written: T.Tensor((tokens, n, d), dtype),
    ):
        with T.Kernel(tokens, T.ceildiv(d, width), threads=THREADS) as (t, block):
            # Target by target, so that the loop over the features vectorises; the loads are merged by the compiler.
            for k in T.unroll(n):
                for i in T.Parallel(width):
                    if block * width + i < d:
                        written[t, k, block * width + i] = T.cast(
                            writing[t, k] * T.cast(output[t, block * width + i], "float32")
                            + carried(streams, combination, t, k, block * width + i),
                            dtype,
                        )

    return stream_write


@functools.cache
def compiled(*, n: int, d: int, dtype: str, key: str) -> Any:
    return compile_program(program(n, d, dtype), key)


def hc_write(streams: Tensor, output: Tensor, writing: Tensor, combination: Tensor, *, target: Target) -> Tensor:
    """[..., n, d] x [..., d] x [..., n] x [..., n, n] -> [..., n, d]: X'[k] = u_k y + sum_j C[j,k] X[j].

    Twin of `ops.hc_write` (report 2.4.1, eq. 6): float32 inside, in the streams' type (bfloat16 or float32).
    ValueError for another shape or type.
    """
    op, key, (*lead, n, d) = "hc_write", target_key(target), streams.shape
    check_tensor(op, "streams", streams, (*lead, n, d), (torch.bfloat16, torch.float32), key)
    check_tensor(op, "output", output, (*lead, d), (streams.dtype,), key)
    check_tensor(op, "writing", writing, (*lead, n), (torch.float32,), key)
    check_tensor(op, "combination", combination, (*lead, n, n), (torch.float32,), key)
    written = result_like((*lead, n, d), streams.dtype, streams, key)
    if written.numel():
        kernel = compiled(n=n, d=d, dtype=storage_type(streams.dtype, key), key=key)
        kernel(
            to_storage(streams, key).view(-1, n, d), to_storage(output, key).view(-1, d),
            to_storage(writing, key).view(-1, n), to_storage(combination, key).view(-1, n, n), written.view(-1, n, d),
        )  # fmt: skip
    return written.to(streams.dtype)
