"""Split + Sinkhorn for one GPU kernel of its own: a token a thread, the rounds on scaling vectors.

The twin `hc_split_sinkhorn` is the same operation written out in TileLang for any target. This one is what the seam
(`kernels.seam`) uses, alone: a division of a row by its sum is kept as a factor per row and per column, so that a
Sinkhorn step is 16 multiply-adds and 2 reciprocals (`sinkhorn_gpu.cuh`).
"""

# Annotations stay evaluated: TileLang reads the buffers of a kernel from them, sizes included.

import functools
from pathlib import Path
from typing import Any

import tilelang.language as T
import torch
from torch import Tensor

from ..ops import StreamWeights
from .arguments import check_tensor
from .targets import Target, compile_program, is_host, target_key, to_storage

STREAMS = 4
NUM_MIXES = (2 + STREAMS) * STREAMS
BLOCK = 32  # tokens a block, one per thread: a warp, so that few tokens still spread over many processors
SOURCE = Path(__file__).with_name("sinkhorn_gpu.cuh")


def program(iters: int, eps: float) -> Any:
    """The kernel: TileLang launches and checks, the token is CUDA."""
    tokens = T.dynamic("tokens")

    @T.prim_func
    def split_sinkhorn(
        mixes: T.Tensor((tokens, NUM_MIXES), "float32"),
        scale: T.Tensor((3,), "float32"),
        base: T.Tensor((NUM_MIXES,), "float32"),
        reading: T.Tensor((tokens, STREAMS), "float32"),
        writing: T.Tensor((tokens, STREAMS), "float32"),
        combination: T.Tensor((tokens, STREAMS, STREAMS), "float32"),
    ):
        with T.Kernel(T.ceildiv(tokens, BLOCK), threads=BLOCK, prelude=SOURCE.read_text()):
            T.evaluate(
                T.call_extern(
                    "void", "seam::split", T.address_of(mixes[0, 0]), T.address_of(scale[0]), T.address_of(base[0]),
                    T.address_of(reading[0, 0]), T.address_of(writing[0, 0]), T.address_of(combination[0, 0, 0]),
                    tokens, iters, T.float32(eps),
                )
            )  # fmt: skip

    return split_sinkhorn


@functools.cache
def compiled(*, iters: int, eps: float, key: str) -> Any:
    return compile_program(program(iters, eps), key)


def check_streams(op: str, n: int, key: str) -> None:
    """ValueError unless the kernel is for this many streams and for a GPU."""
    if is_host(key):
        raise ValueError(
            f"{op}: target {key} is the host, expected a GPU; use the operation of reference_impl.ops there"
        )
    if n != STREAMS:
        raise ValueError(f"{op}: n is {n}, expected {STREAMS}; other counts have the twins in reference_impl.kernels")


def hc_split_sinkhorn(
    mixes: Tensor, scale: Tensor, base: Tensor, *, n: int, iters: int, eps: float, target: Target
) -> StreamWeights:
    """[..., 24] x [3] x [24] -> reading [..., 4], writing [..., 4], combination [..., 4 source, 4 target], float32.

    Twin of `ops.hc_split_sinkhorn` (report 2.4.1) for 4 streams on a GPU. ValueError for another number of streams,
    shape or type, iters < 1, or the host target.
    """
    op, key, lead = "hc_split_sinkhorn", target_key(target), mixes.shape[:-1]
    check_streams(op, n, key)
    check_tensor(op, "mixes", mixes, (*lead, NUM_MIXES), (torch.float32,), key)
    check_tensor(op, "scale", scale, (3,), (torch.float32,), key)
    check_tensor(op, "base", base, (NUM_MIXES,), (torch.float32,), key)
    if iters < 1:
        raise ValueError(f"{op}: iters is {iters}, expected at least 1: the first column step always runs")
    reading, writing = mixes.new_empty(*lead, n), mixes.new_empty(*lead, n)
    combination = mixes.new_empty(*lead, n, n)
    if mixes.numel():
        compiled(iters=iters, eps=eps, key=key)(
            to_storage(mixes, key).view(-1, NUM_MIXES), to_storage(scale, key), to_storage(base, key),
            reading.view(-1, n), writing.view(-1, n), combination.view(-1, n, n),
        )  # fmt: skip
    return StreamWeights(reading, writing, combination)
