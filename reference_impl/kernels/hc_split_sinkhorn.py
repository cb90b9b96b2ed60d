"""Split + Sinkhorn: reading weights, writing weights and combination of a token, in one thread's registers.

Axes: n streams, M = (2+n)*n mix numbers per token (reading, writing, combination row-major with the source first).
"""

# Annotations stay evaluated: TileLang reads the buffers of a kernel from them, sizes included.

import functools
from typing import Any

import tilelang.language as T
import torch
from torch import Tensor

from ..ops import StreamWeights
from .arguments import check_tensor
from .number_formats import constant
from .targets import Target, compile_program, target_key, to_storage

BLOCK = 32  # tokens a block, one per thread: a warp, so that few tokens still spread over many processors


def program(n: int, iters: int, eps: float) -> Any:
    """The kernel's source. No reduction over a fragment: 4 x 4 matrices live in one thread, sums are unrolled."""
    num_mixes = (2 + n) * n
    epsilon = constant(eps)
    # Neighbouring numbers move together where they fill whole 16-byte vectors, as with 4 streams.
    mix_loop = T.vectorized if num_mixes % 4 == 0 else T.serial
    row_loop = T.vectorized if n % 4 == 0 else T.serial
    tokens = T.dynamic("tokens")

    @T.prim_func
    def split_sinkhorn(
        mixes: T.Tensor((tokens, num_mixes), "float32"),
        scale: T.Tensor((3,), "float32"),
        base: T.Tensor((num_mixes,), "float32"),
        reading: T.Tensor((tokens, n), "float32"),
        writing: T.Tensor((tokens, n), "float32"),
        combination: T.Tensor((tokens, n, n), "float32"),
    ):
        with T.Kernel(T.ceildiv(tokens, BLOCK), threads=BLOCK) as block:
            mix = T.alloc_local((num_mixes,), "float32")
            comb = T.alloc_local((n, n), "float32")
            total = T.alloc_local((1,), "float32")
            for lane in T.Parallel(BLOCK):
                t = block * BLOCK + lane
                if t < tokens:
                    for i in mix_loop(num_mixes):
                        mix[i] = mixes[t, i]
                    # reading = sigmoid(s1 m + b) + eps;  writing = 2 sigmoid(s2 m + b)
                    for j in T.unroll(n):
                        reading[t, j] = 1.0 / (1.0 + T.exp(-(scale[0] * mix[j] + base[j]))) + epsilon
                    for k in T.unroll(n):
                        writing[t, k] = 2.0 / (1.0 + T.exp(-(scale[1] * mix[n + k] + base[n + k])))
                    # comb = softmax over the targets k, + epsilon
                    for j in T.unroll(n):
                        total[0] = -T.infinity("float32")
                        for k in T.unroll(n):
                            comb[j, k] = scale[2] * mix[2 * n + j * n + k] + base[2 * n + j * n + k]
                            total[0] = T.max(total[0], comb[j, k])
                        for k in T.unroll(n):
                            comb[j, k] = T.exp(comb[j, k] - total[0])
                        total[0] = 0.0
                        for k in T.unroll(n):
                            total[0] += comb[j, k]
                        for k in T.unroll(n):
                            comb[j, k] = comb[j, k] / total[0] + epsilon
                    # comb /= column sums + eps, then iters - 1 times rows and columns
                    for k in T.unroll(n):
                        total[0] = 0.0
                        for j in T.unroll(n):
                            total[0] += comb[j, k]
                        for j in T.unroll(n):
                            comb[j, k] = comb[j, k] / (total[0] + epsilon)
                    for _ in T.serial(iters - 1):
                        for j in T.unroll(n):
                            total[0] = 0.0
                            for k in T.unroll(n):
                                total[0] += comb[j, k]
                            for k in T.unroll(n):
                                comb[j, k] = comb[j, k] / (total[0] + epsilon)
                        for k in T.unroll(n):
                            total[0] = 0.0
                            for j in T.unroll(n):
                                total[0] += comb[j, k]
                            for j in T.unroll(n):
                                comb[j, k] = comb[j, k] / (total[0] + epsilon)
                    for j in T.unroll(n):
                        for k in row_loop(n):
                            combination[t, j, k] = comb[j, k]

    return split_sinkhorn


@functools.cache
def compiled(*, n: int, iters: int, eps: float, key: str) -> Any:
    return compile_program(program(n, iters, eps), key)


def hc_split_sinkhorn(
    mixes: Tensor, scale: Tensor, base: Tensor, *, n: int, iters: int, eps: float, target: Target
) -> StreamWeights:
    """[..., M] x [3] x [M] -> reading [..., n], writing [..., n], combination [..., n source, n target], float32.

    Twin of `ops.hc_split_sinkhorn` (report 2.4.1). ValueError for another shape, another type than float32, iters < 1.
    """
    op, key, num_mixes, lead = "hc_split_sinkhorn", target_key(target), (2 + n) * n, mixes.shape[:-1]
    check_tensor(op, "mixes", mixes, (*lead, num_mixes), (torch.float32,), key)
    check_tensor(op, "scale", scale, (3,), (torch.float32,), key)
    check_tensor(op, "base", base, (num_mixes,), (torch.float32,), key)
    if iters < 1:
        raise ValueError(f"{op}: iters is {iters}, expected at least 1: the first column step always runs")
    reading, writing = mixes.new_empty(*lead, n), mixes.new_empty(*lead, n)
    combination = mixes.new_empty(*lead, n, n)
    if mixes.numel():
        kernel = compiled(n=n, iters=iters, eps=eps, key=key)
        kernel(
            to_storage(mixes, key).view(-1, num_mixes), to_storage(scale, key), to_storage(base, key),
            reading.view(-1, n), writing.view(-1, n), combination.view(-1, n, n),
        )  # fmt: skip
    return StreamWeights(reading, writing, combination)
