"""What the seam is measured beside: the same work from plain PyTorch and from packages of PyPI, as they offer it.

The packages have no seam. A chain of theirs is given what it lacks: tile-kernels a projection (Triton, below), both a
norm. Their collapse uses the reading weights just computed, not the carried ones: as much work, another input of the
next sublayer, so that only their streams, writing weights and combination are compared.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from reference_impl.kernels.seam import plain_seam
from reference_impl.kernels.seam_check import SeamInputs, relative

Call = Callable[[SeamInputs], tuple[Tensor, Tensor, Tensor]]  # -> new streams, writing, combination


@dataclasses.dataclass(frozen=True)
class Rival:
    """One row of the table: how to run it, or why it does not run here."""

    name: str
    seam: Call | None = None
    split: Callable[[Tensor, Tensor, Tensor], Any] | None = None  # of [T, 24] mix numbers, scale, base
    reason: str | None = None


def eager(constants: dict[str, Any]) -> Rival:
    def seam(inputs: SeamInputs) -> tuple[Tensor, Tensor, Tensor]:
        result = plain_seam(*inputs, **constants)
        return result.streams, result.weights.writing, result.weights.combination

    return Rival("eager", seam)


def compiled(constants: dict[str, Any]) -> Rival:
    function = torch.compile(plain_seam, dynamic=True)

    def seam(inputs: SeamInputs) -> tuple[Tensor, Tensor, Tensor]:
        result = function(*inputs, **constants)
        return result.streams, result.weights.writing, result.weights.combination

    return Rival("compile", seam)


def copy_kernel() -> Callable[[Tensor, Tensor], Any]:
    """[N] int32 -> [N] int32: 16 bytes a thread, in order."""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(source, to, count, BLOCK: tl.constexpr):
        at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        tl.store(to + at, tl.load(source + at, mask=at < count), mask=at < count)

    def copy(source: Tensor, to: Tensor) -> Any:
        kernel[(triton.cdiv(source.numel(), 2048),)](source, to, source.numel(), 2048, num_warps=16)

    return copy


def projection_kernel() -> Callable[[Tensor, Tensor, int], tuple[Tensor, Tensor]]:
    """[T, K] bf16 x [24, K] -> [splits, T, 24], [splits, T]: partial products and square sums, one launch."""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(x, fn, out, squares, tokens, K: tl.constexpr, SPLITS: tl.constexpr, M: tl.constexpr, BK: tl.constexpr):
        block, split = tl.program_id(0), tl.program_id(1)
        rows, columns, outputs = block * M + tl.arange(0, M), tl.arange(0, BK), tl.arange(0, 32)
        total = tl.zeros((M, 32), tl.float32)
        square = tl.zeros((M,), tl.float32)
        for k in range(split * (K // SPLITS), (split + 1) * (K // SPLITS), BK):
            a = tl.load(x + rows[:, None].to(tl.int64) * K + k + columns[None], mask=rows[:, None] < tokens, other=0.0)
            w = tl.load(fn + outputs[None] * K + k + columns[:, None], mask=outputs[None] < 24, other=0.0)
            for _ in tl.static_range(3):  # the weight's three bfloat16 terms
                term = w.to(tl.bfloat16)
                total = tl.dot(a, term, total)
                w -= term.to(tl.float32)
            wide = a.to(tl.float32)
            square += tl.sum(wide * wide, 1)
        live = rows < tokens
        base = split.to(tl.int64) * tokens
        tl.store(out + (base + rows)[:, None] * 24 + outputs[None], total, mask=live[:, None] & (outputs[None] < 24))
        tl.store(squares + base + rows, square, mask=live)

    def project(x: Tensor, fn: Tensor, splits: int) -> tuple[Tensor, Tensor]:
        tokens, width = x.shape
        out = torch.empty(splits, tokens, 24, device=x.device)
        squares = torch.empty(splits, tokens, device=x.device)
        kernel[(triton.cdiv(tokens, 64), splits)](x, fn, out, squares, tokens, width, splits, 64, 64, num_warps=4)
        return out, squares

    return project


def norm_kernel() -> Callable[[Tensor, Tensor, float], Tensor]:
    """[T, d] x [d] -> [T, d]: RMSNorm, a block per token."""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(x, gain, out, eps, D: tl.constexpr, BLOCK: tl.constexpr):
        row, columns = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
        v = tl.load(x + row * D + columns, mask=columns < D, other=0.0).to(tl.float32)
        g = tl.load(gain + columns, mask=columns < D, other=0.0).to(tl.float32)
        v = v * tl.rsqrt(tl.sum(v * v, 0) / D + eps) * g
        tl.store(out + row * D + columns, v.to(tl.bfloat16), mask=columns < D)

    def norm(x: Tensor, gain: Tensor, eps: float) -> Tensor:
        out = torch.empty_like(x)
        kernel[(x.shape[0],)](x, gain, out, eps, x.shape[1], triton.next_power_of_2(x.shape[1]), num_warps=8)
        return out

    return norm


def flag_gems_chain(constants: dict[str, Any]) -> Rival:
    from flag_gems.fused.mhc import hc_split_sinkhorn, mhc_post, mhc_pre

    norm = norm_kernel()
    eps, iters = constants["hc_eps"], constants["iters"]

    def seam(inputs: SeamInputs) -> tuple[Tensor, Tensor, Tensor]:
        new = mhc_post(inputs.output, inputs.streams, inputs.writing.unsqueeze(-1), inputs.combination)
        results = mhc_pre(new, inputs.fn, inputs.scale, inputs.base, constants["norm_eps"], eps, eps, 2.0, iters)
        tokens, n, d = new.shape
        by_size = {result.numel() // tokens: result for result in results}
        norm(by_size[d].view(tokens, d), inputs.gain, constants["norm_eps"])
        return new, by_size[n].view(tokens, n), by_size[n * n].view(tokens, n, n)

    return Rival("flag_gems", seam, lambda mixes, scale, base: hc_split_sinkhorn(mixes, scale, base, 4, iters, eps))


def tile_kernels_chain(constants: dict[str, Any]) -> Rival:
    from tile_kernels.mhc import mhc_post_fwd, mhc_pre_big_fuse_fwd

    project, norm = projection_kernel(), norm_kernel()
    eps, iters = constants["hc_eps"], constants["iters"]

    def seam(inputs: SeamInputs) -> tuple[Tensor, Tensor, Tensor]:
        tokens, n, d = inputs.streams.shape
        new = mhc_post_fwd(  # its tensors have a batch axis before the tokens
            inputs.output[None], inputs.streams[None], inputs.writing[None, :, :, None], inputs.combination[None]
        )
        splits = 16
        products, squares = project(new.view(tokens, n * d), inputs.fn, splits)
        writing = torch.empty(tokens, n, device=new.device)
        combination = torch.empty(tokens, n * n, device=new.device)
        read = torch.empty_like(inputs.output)
        mhc_pre_big_fuse_fwd(
            products, squares, inputs.scale, inputs.base, new.view(tokens, n, d), writing, combination, read,
            constants["norm_eps"], eps, eps, 2.0, iters, n_splits=splits,
        )  # fmt: skip
        norm(read, inputs.gain, constants["norm_eps"])
        return new.view(tokens, n, d), writing, combination.view(tokens, n, n)

    return Rival("tile_kernels", seam)


MAKERS = {"eager": eager, "flag_gems": flag_gems_chain, "tile_kernels": tile_kernels_chain, "compile": compiled}


def rivals(constants: dict[str, Any]) -> list[Rival]:
    """-> every rival; one that cannot be set up carries the reason."""
    found = []
    for name, make in MAKERS.items():
        try:
            found.append(make(constants))
        except Exception as error:  # a package may be absent, too old, or built for another version of PyTorch
            found.append(Rival(name, reason=f"{type(error).__name__}: {str(error).strip().splitlines()[-1:]}"))
    return found


def rival_error(rival: Rival, inputs: SeamInputs, constants: dict[str, Any]) -> float:
    """-> the largest relative error of its writing weights and combination, from its own new streams in float64."""
    from reference_impl import ops

    new, writing, combination = rival.seam(inputs)
    mixes = ops.hc_mix_projection(new.double(), inputs.fn.double(), eps=constants["norm_eps"])
    exact = ops.hc_split_sinkhorn(
        mixes, inputs.scale.double(), inputs.base.double(), n=constants["n"], iters=constants["iters"],
        eps=constants["hc_eps"],
    )  # fmt: skip
    return max(relative(writing, exact.writing), relative(combination, exact.combination))
