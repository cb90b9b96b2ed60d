"""Which compressed slots a query reads: index scores, visibility, candidate blocks, top-k (report 2.3.1, 2.3.2).

Axes: B batch, T queries, J compressed slots, H index heads, I index width, k chosen.
Ties: everywhere in this model, equal scores are taken lowest index first. The released code leaves the order of ties to
its backend, and its index scores are bf16, so ties do occur there.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class TopK(NamedTuple):
    """The k largest along the last axis, largest first, ties lowest index first."""

    values: Tensor  # [..., k]
    indices: Tensor  # [..., k] int64


def top_k(scores: Tensor, *, k: int) -> TopK:
    """[..., J] -> values, indices [..., min(k, J)]: largest first; equal scores lowest index first."""
    values, indices = torch.sort(scores, dim=-1, descending=True, stable=True)
    return TopK(values[..., :k], indices[..., :k])


def visible_slots(*, ratio: int, length: int, start: int, device: torch.device) -> Tensor:
    """-> [length] int64: how many compressed slots each query sees; a slot counts once its last token is reached."""
    return (torch.arange(start, start + length, device=device) + 1) // ratio


def index_head_weights(raw: Tensor, *, index_dim: int, heads: int) -> Tensor:
    """[B, T, H] -> [B, T, H]: projected head weights times 1/sqrt(index_dim * heads); may be negative."""
    return raw * (index_dim**-0.5 * heads**-0.5)


def index_scores(q: Tensor, keys: Tensor, head_weights: Tensor) -> Tensor:
    """[B, T, H, I] x [B, J, I] x [B, T, H] -> [B, T, J]: I_tj = sum_h w_th relu(<q_th, k_j>), all in q's type."""
    match = torch.relu(torch.einsum("bthi,bji->bthj", q, keys))
    return (match * head_weights.unsqueeze(-1)).sum(2)


def mask_invisible(scores: Tensor, visible: Tensor) -> Tensor:
    """[B, T, J] x [T] -> [B, T, J]: -inf from the first slot that a query cannot see yet."""
    hidden = torch.arange(scores.shape[-1], device=scores.device) >= visible[:, None]
    return scores.masked_fill(hidden, float("-inf"))


def candidate_mask(scores: Tensor, visible: Tensor, *, block_size: int, topk_blocks: int) -> Tensor:
    """[B, T, J] masked scores x [T] -> [B, T, J] bool: slots of the best blocks and of the newest one.

    A block scores its best slot (a partly filled last block too). The newest visible block is always kept and counts
    as one of topk_blocks; blocks without a visible slot are dropped even if picked. Whole blocks are kept, so the mask
    may cover slots that are not visible yet.
    """
    slots = scores.shape[-1]
    padded = torch.nn.functional.pad(scores, (0, -slots % block_size), value=float("-inf"))
    blocks = padded.unflatten(-1, (-1, block_size)).amax(-1)  # [B, T, blocks]
    newest = torch.arange(blocks.shape[-1], device=scores.device) == (visible[:, None] - 1) // block_size
    blocks = blocks.masked_fill(newest, float("inf"))
    best = top_k(blocks, k=topk_blocks)
    kept = torch.zeros_like(blocks, dtype=torch.bool).scatter(-1, best.indices, best.values > float("-inf"))
    return kept.repeat_interleave(block_size, dim=-1)[..., :slots]


def mask_candidates(scores: Tensor, candidates: Tensor) -> Tensor:
    """[B, T, J] x [B, T, J] bool -> [B, T, J]: -inf outside the candidate blocks."""
    return scores.masked_fill(~candidates, float("-inf"))


def select_slots(scores: Tensor, visible: Tensor, *, topk: int, offset: int) -> Tensor:
    """[B, T, J] x [T] -> [B, T, min(topk, J)] int32: best slots by position, shifted by `offset` window rows.

    Visibility, not the score, decides what becomes -1; the -1 stand at the end of the list.
    """
    chosen = top_k(scores, k=topk).indices.sort(-1).values
    return torch.where(chosen < visible[:, None], chosen + offset, -1).to(torch.int32)
