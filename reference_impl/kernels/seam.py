"""The seam between two sublayers in one launch: write, mix numbers, split + Sinkhorn, carried read, RMSNorm.

Single-pass form of the streams (report 2.4.1): the streams are read once and written once, (2n+2) d values per token.
Two kernels share the arithmetic, so that a token's bits do not depend on how many tokens come with it: up to 64 tokens
a block per pair of column chunks reads W once for all (`seam_few.cuh`); beyond, groups of blocks keep W on chip and
stream tiles of 16 tokens (`seam_many.cuh`). `seam_row.cuh` holds what a warp computes, `seam_mail.cuh` how blocks meet.

W is split into three bfloat16 terms, which hold all its bits, and the tensor cores multiply them with the new streams,
which are bfloat16 already: products are exact, sums are float32.

A launch leaves sums in a workspace that is kept for each device and stream. Calls that may run at the same time must
be on different streams, also where they are replayed from CUDA graphs: capture them on different streams.
"""

# Annotations stay evaluated: TileLang reads the buffers of a kernel from them, sizes included.

import dataclasses
import functools
from pathlib import Path
from typing import Any, NamedTuple

import tilelang.language as T
import torch
from torch import Tensor

from .. import ops
from ..ops import StreamWeights
from .arguments import check_tensor
from .sinkhorn_gpu import NUM_MIXES, STREAMS, check_streams
from .sinkhorn_gpu import SOURCE as SINKHORN_SOURCE
from .targets import Target, compile_program, target_key, to_storage

WIDTHS = (4096, 5120, 6144, 7168, 8192)  # d: multiples of 1,024 with at least 16 slices
TILE = 16  # tokens, the rows of a tensor core product
FEW_TOKENS = 64  # up to here the latency of a launch counts, not its bytes
WORDS = NUM_MIXES + 2  # of 8 bytes, that a block sends about a row; `seam_mail.cuh`
RING = 4  # tiles in the mail; `seam_many.cuh`
SOURCES = [SINKHORN_SOURCE, *(Path(__file__).with_name(f"seam_{part}.cuh") for part in ("row", "mail", "few", "many"))]


class SeamResult(NamedTuple):
    """What the next sublayer needs."""

    streams: Tensor  # [..., n, d] bfloat16
    normed: Tensor  # [..., d] bfloat16: its input
    weights: StreamWeights  # float32: writing and combination of its output, reading of the sublayer after it


@dataclasses.dataclass(frozen=True)
class Shape:
    """How a width is cut: chunks of 32 columns, in pairs, 4 or 5 pairs to a slice; `seam_row.cuh` has the same."""

    d: int

    @property
    def pairs(self) -> int:
        return self.d // 64

    @property
    def chunks(self) -> int:
        """Chunks of a slice, each with a warp."""
        return 10 if self.pairs % 5 == 0 else 8

    @property
    def slices(self) -> int:
        """Blocks of a group."""
        return 2 * self.pairs // self.chunks

    def workspace_bytes(self, groups: int) -> int:
        few = 8 * FEW_TOKENS * (self.pairs * WORDS + 1)
        many = 8 * groups * RING * TILE * self.slices * (WORDS + 1)
        return 128 + max(few, many)


def entry(d: int, form: str, iters: int, hc_eps: float, norm_eps: float) -> str:
    """The CUDA of a kernel: all parts, and the function that TileLang's launch calls in every block."""
    call = {"few": f"seam::few<{d}>(a, shared, block)", "many": f"seam::many<{d}>(a, shared, block, blocks)"}[form]
    parts = "\n".join(path.read_text() for path in SOURCES)
    return f"""{parts}
__device__ __forceinline__ void seam_block(
    const void *streams, const void *output, const float *writing, const float *combination, const float *reading,
    const float *fn, const float *scale, const float *base, const void *gain, void *new_streams, void *normed,
    float *new_reading, float *new_writing, float *new_combination, void *workspace, void *memory,
    int block, int tokens) {{
  const int blocks = gridDim.x;
  char *shared = (char *)memory;
  const seam::Arguments a = {{
      (const char *)streams, (const char *)output, writing, combination, reading, fn, scale, base, (const char *)gain,
      (char *)new_streams, (char *)normed, new_reading, new_writing, new_combination, (char *)workspace, tokens,
      {iters}, {hc_eps!r}f, {norm_eps!r}f}};
  static_assert(sizeof(seam::{form.title()}Shared<{d}>) <= {shared_bytes(d, form)});
  {call};
}}
"""


def shared_bytes(d: int, form: str) -> int:
    """Shared memory of a block, as the structures of the CUDA need it; a static assertion there checks it."""
    shape = Shape(d)
    if form == "few":
        return 2 * 18432 + 4 * 2 * 1664 + 4 * TILE * 28 * 4 + shape.pairs * WORDS * 4 + 16
    per_chunk = 12288 + 5120 + 1664 + 2048  # terms of W, tile, sums, collapsed columns
    return shape.chunks * per_chunk + 2 * TILE * 28 * 4 + 2 * shape.slices * (TILE + WORDS) * 4 + 256 + 1024 + 144


def program(d: int, groups: int, iters: int, hc_eps: float, norm_eps: float, form: str) -> Any:
    """The kernel: TileLang checks its tensors and launches it, all blocks at once; blocks run `entry`."""
    shape = Shape(d)
    tokens = T.dynamic("tokens")
    tiles = T.ceildiv(tokens, TILE)
    blocks = shape.pairs if form == "few" else T.min(tiles, groups) * shape.slices
    threads = 384 if form == "few" else 32 * (shape.chunks + 2)
    workspace_bytes = shape.workspace_bytes(groups)
    memory_bytes = shared_bytes(d, form)

    @T.prim_func
    def seam(
        streams: T.Tensor((tokens, STREAMS, d), "bfloat16"),
        output: T.Tensor((tokens, d), "bfloat16"),
        writing: T.Tensor((tokens, STREAMS), "float32"),
        combination: T.Tensor((tokens, STREAMS, STREAMS), "float32"),
        reading: T.Tensor((tokens, STREAMS), "float32"),
        fn: T.Tensor((NUM_MIXES, STREAMS * d), "float32"),
        scale: T.Tensor((3,), "float32"),
        base: T.Tensor((NUM_MIXES,), "float32"),
        gain: T.Tensor((d,), "bfloat16"),
        new_streams: T.Tensor((tokens, STREAMS, d), "bfloat16"),
        normed: T.Tensor((tokens, d), "bfloat16"),
        new_reading: T.Tensor((tokens, STREAMS), "float32"),
        new_writing: T.Tensor((tokens, STREAMS), "float32"),
        new_combination: T.Tensor((tokens, STREAMS, STREAMS), "float32"),
        workspace: T.Tensor((workspace_bytes,), "uint8"),
    ):
        with T.Kernel(blocks, threads=threads, prelude=entry(d, form, iters, hc_eps, norm_eps)) as block:
            memory = T.alloc_shared((memory_bytes,), "uint8", scope="shared.dyn")
            T.evaluate(
                T.call_extern(
                    "void", "seam_block", T.address_of(streams[0, 0, 0]), T.address_of(output[0, 0]),
                    T.address_of(writing[0, 0]), T.address_of(combination[0, 0, 0]), T.address_of(reading[0, 0]),
                    T.address_of(fn[0, 0]), T.address_of(scale[0]), T.address_of(base[0]), T.address_of(gain[0]),
                    T.address_of(new_streams[0, 0, 0]), T.address_of(normed[0, 0]), T.address_of(new_reading[0, 0]),
                    T.address_of(new_writing[0, 0]), T.address_of(new_combination[0, 0, 0]),
                    T.address_of(workspace[0]), T.address_of(memory[0]), block, tokens,
                )
            )  # fmt: skip
            if tokens > NEVER:  # blocks wait for each other: a mention of sync_grid has all of them launched together
                T.sync_grid()

    return seam


NEVER = 1 << 30  # more tokens than any tensor of streams can hold on a device


@functools.cache
def compiled(*, d: int, groups: int, iters: int, hc_eps: float, norm_eps: float, form: str, key: str) -> Any:
    return compile_program(program(d, groups, iters, hc_eps, norm_eps, form), key)


@functools.cache
def group_count(d: int, device: int) -> int:
    """Groups of blocks that the device holds at once, a block a processor. ValueError if it is too small."""
    processors = torch.cuda.get_device_properties(device).multi_processor_count
    if processors < Shape(d).pairs:
        raise ValueError(
            f"hc_seam: width {d} needs {Shape(d).pairs} multiprocessors at once, the device has {processors}; "
            f"use reference_impl.kernels.seam.plain_seam"
        )
    return processors // Shape(d).slices


@functools.cache
def workspace(d: int, groups: int, device: int, stream: int) -> Tensor:
    """[bytes] uint8, zeros at first; every launch leaves it ready for the next. One for each stream."""
    return torch.zeros(Shape(d).workspace_bytes(groups), dtype=torch.uint8, device=torch.device("cuda", device))


def plain_seam(
    streams: Tensor, output: Tensor, writing: Tensor, combination: Tensor, reading: Tensor,
    fn: Tensor, scale: Tensor, base: Tensor, gain: Tensor,
    *, n: int, iters: int, hc_eps: float, norm_eps: float,
) -> SeamResult:  # fmt: skip
    """The seam as the model runs it, operation by operation; shapes as in `hc_seam`, any type and device."""
    new = ops.hc_write(streams, output, writing, combination)
    mixes = ops.hc_mix_projection(new, fn, eps=norm_eps)
    weights = ops.hc_split_sinkhorn(mixes, scale, base, n=n, iters=iters, eps=hc_eps)
    return SeamResult(new, ops.rms_norm(ops.hc_read(new, reading), gain, eps=norm_eps), weights)


def hc_seam(
    streams: Tensor, output: Tensor, writing: Tensor, combination: Tensor, reading: Tensor,
    fn: Tensor, scale: Tensor, base: Tensor, gain: Tensor,
    *, n: int, iters: int, hc_eps: float, norm_eps: float, target: Target,
) -> SeamResult:  # fmt: skip
    """One launch: write, mix projection, split + Sinkhorn, read with the carried weights, RMSNorm (report 2.4.1).

    streams [..., n, d] and output [..., d] of the sublayer before, bfloat16; its writing [..., n] and combination
    [..., n source, n target], and the reading weights [..., n] carried from the sublayer before that, float32;
    fn [M, n*d], scale [3], base [M] float32 and gain [d] bfloat16 of the next sublayer. n = 4, d one of WIDTHS.

    -> new streams and normed input of the next sublayer, bfloat16, and its weights, float32. The same bits in every
    run and whatever tokens come along. No tokens: nothing is launched. The first call on a stream allocates: make it
    before capturing a CUDA graph. ValueError for another n, width, shape, type, device, iters < 1 or the host target.
    """
    op, key, lead, d = "hc_seam", target_key(target), streams.shape[:-2], streams.shape[-1]
    check_streams(op, n, key)
    if d not in WIDTHS:
        raise ValueError(f"{op}: width is {d}, expected one of {', '.join(map(str, WIDTHS))}; use plain_seam")
    if iters < 1:
        raise ValueError(f"{op}: iters is {iters}, expected at least 1: the first column step always runs")
    wide, narrow, num_mixes = (torch.float32,), (torch.bfloat16,), NUM_MIXES
    arguments = {
        "streams": (streams, (*lead, n, d), narrow), "output": (output, (*lead, d), narrow),
        "writing": (writing, (*lead, n), wide), "combination": (combination, (*lead, n, n), wide),
        "reading": (reading, (*lead, n), wide), "fn": (fn, (num_mixes, n * d), wide), "scale": (scale, (3,), wide),
        "base": (base, (num_mixes,), wide), "gain": (gain, (d,), narrow),
    }  # fmt: skip
    for name, (tensor, shape, dtypes) in arguments.items():
        check_tensor(op, name, tensor, shape, dtypes, key)
    result = SeamResult(
        torch.empty_like(streams, memory_format=torch.contiguous_format),
        torch.empty_like(output, memory_format=torch.contiguous_format),
        StreamWeights(reading.new_empty(*lead, n), reading.new_empty(*lead, n), reading.new_empty(*lead, n, n)),
    )
    tokens = output.numel() // d
    if tokens:
        device = streams.device.index or 0
        groups = group_count(d, device)
        form = "few" if tokens <= FEW_TOKENS else "many"
        kernel = compiled(d=d, groups=groups, iters=iters, hc_eps=hc_eps, norm_eps=norm_eps, form=form, key=key)
        kernel(
            to_storage(streams, key).view(tokens, n, d), to_storage(output, key).view(tokens, d),
            to_storage(writing, key).view(tokens, n), to_storage(combination, key).view(tokens, n, n),
            to_storage(reading, key).view(tokens, n), to_storage(fn, key), to_storage(scale, key),
            to_storage(base, key), to_storage(gain, key), result.streams.view(tokens, n, d),
            result.normed.view(tokens, d), result.weights.reading.view(tokens, n),
            result.weights.writing.view(tokens, n), result.weights.combination.view(tokens, n, n),
            workspace(d, groups, device, torch.cuda.current_stream(device).cuda_stream),
        )  # fmt: skip
    return result
