"""Hyper-connection streams: the weights that read, write and carry the residual streams (report 2.4.1).

Axes: n streams, d width, M = (2+n)*n mix numbers per token, ordered reading (n), writing (n),
combination (n*n, row-major: source stream first). Leading axes `...` are batch and position.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from .precision import widen


class StreamWeights(NamedTuple):
    """What one sublayer computes from the streams; all at least float32."""

    reading: Tensor  # [..., n]: how the NEXT sublayer collapses the streams into its input
    writing: Tensor  # [..., n]: how much of this sublayer's output each stream receives
    combination: Tensor  # [..., n source, n target]: how the streams are carried over


def hc_expand(x: Tensor, *, n: int) -> Tensor:
    """[..., d] -> [..., n, d]: the embedding copied into every stream."""
    return x.unsqueeze(-2).expand(*x.shape[:-1], n, x.shape[-1]).contiguous()


def hc_identity_reading(streams: Tensor) -> Tensor:
    """[..., n, d] -> [..., n]: (1, 0, ..., 0), the reading weights before any sublayer has computed some."""
    reading = torch.zeros_like(widen(streams[..., 0]))
    reading[..., 0] = 1.0
    return reading


def hc_mix_projection(streams: Tensor, weight: Tensor, *, eps: float) -> Tensor:
    """[..., n, d] x [M, n*d] -> [..., M]: mix numbers, m = W x / sqrt(mean(x^2) + eps).

    One root mean square over all n*d values of a token, not one a stream; the division comes after the projection
    and there is no learned gain (report 2.4.1: folded into W).
    """
    x = widen(streams).flatten(-2)  # [..., n*d], stream-major
    return F.linear(x, widen(weight)) * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)


def hc_reading_weights(mixes: Tensor, scale: Tensor, base: Tensor, *, n: int, eps: float) -> Tensor:
    """[..., M] x [3] x [M] -> [..., n]: sigmoid(s1*m + b) + eps of the first n mix numbers; not normalised."""
    return torch.sigmoid(scale[0] * mixes[..., :n] + base[:n]) + eps


def hc_writing_weights(mixes: Tensor, scale: Tensor, base: Tensor, *, n: int) -> Tensor:
    """[..., M] x [3] x [M] -> [..., n]: 2*sigmoid(s2*m + b) of the next n mix numbers; no epsilon here."""
    return 2.0 * torch.sigmoid(scale[1] * mixes[..., n : 2 * n] + base[n : 2 * n])


def hc_combination(mixes: Tensor, scale: Tensor, base: Tensor, *, n: int, iters: int, eps: float) -> Tensor:
    """[..., M] x [3] x [M] -> [..., n source, n target]: softmax over the targets, then Sinkhorn rounds.

    `iters` counts column steps; the softmax is the first row step. It ends on columns, so column sums are 1 to
    about eps, while row sums are only as good as the convergence.
    """
    logits = (scale[2] * mixes[..., 2 * n :] + base[2 * n :]).unflatten(-1, (n, n))
    comb = torch.softmax(logits, dim=-1) + eps
    comb = comb / (comb.sum(-2, keepdim=True) + eps)
    for _ in range(iters - 1):
        comb = comb / (comb.sum(-1, keepdim=True) + eps)
        comb = comb / (comb.sum(-2, keepdim=True) + eps)
    return comb


def hc_split_sinkhorn(mixes: Tensor, scale: Tensor, base: Tensor, *, n: int, iters: int, eps: float) -> StreamWeights:
    """[..., M] x [3] x [M] -> reading [..., n], writing [..., n], combination [..., n, n]: all three at once."""
    return StreamWeights(
        reading=hc_reading_weights(mixes, scale, base, n=n, eps=eps),
        writing=hc_writing_weights(mixes, scale, base, n=n),
        combination=hc_combination(mixes, scale, base, n=n, iters=iters, eps=eps),
    )


def hc_read(streams: Tensor, reading: Tensor) -> Tensor:
    """[..., n, d] x [..., n] -> [..., d]: sum_s p_s X[s], in at least float32, cast to the streams' type."""
    return (reading.unsqueeze(-1) * widen(streams)).sum(-2).to(streams.dtype)


def hc_write(streams: Tensor, output: Tensor, writing: Tensor, combination: Tensor) -> Tensor:
    """[..., n, d] x [..., d] x [..., n] x [..., n, n] -> [..., n, d]: X'[k] = u_k y + sum_j C[j,k] X[j].

    The sum runs over the FIRST index of the combination, the source stream.
    """
    added = writing.unsqueeze(-1) * widen(output).unsqueeze(-2)
    carried = torch.einsum("...jk,...jd->...kd", combination, widen(streams))
    return (added + carried).to(streams.dtype)


def hc_mean(streams: Tensor) -> Tensor:
    """[..., n, d] -> [..., d]: the plain mean over the streams, which the drafter listens to (report 2.4.3)."""
    return widen(streams).mean(-2).to(streams.dtype)


def concat_taps(taps: Sequence[Tensor]) -> Tensor:
    """taps of [..., d] -> [..., taps*d]: what the drafter listens to, in layer order."""
    return torch.cat(tuple(taps), dim=-1)
