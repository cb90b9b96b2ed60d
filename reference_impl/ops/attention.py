"""Attention over listed slots: slot lists, pooling of groups, the sparse softmax with its sink, the grouped output.

Axes: B batch, T queries, H heads, D head width, K listed slots, N key/value rows, J compressed slots, r ratio,
G output groups, R output rank. Keys and values are one tensor (report 2.3).
"""

from __future__ import annotations

import torch
from torch import Tensor

from .precision import widen


def window_slots(*, window: int, length: int, start: int, device: torch.device) -> Tensor:
    """-> [length, min(length, window)] int32 at the prefill (start 0), [1, window] at a decode step; -1 = none.

    Prefill: rows of the chunk, query t sees t-window+1..t. Decode: slots of the ring, oldest first.
    """
    if start == 0:
        query = torch.arange(length, device=device)[:, None]
        slots = (query - window + 1).clamp(min=0) + torch.arange(min(length, window), device=device)
        slots = torch.where(slots > query, -1, slots)
    else:
        position = torch.arange(start - window + 1, start + 1, device=device)[None]
        slots = torch.where(position < 0, -1, position % window)
    return slots.to(torch.int32)


def draft_slots(*, window: int, block: int, start: int, device: torch.device) -> Tensor:
    """-> [block, min(window, start+1) + block] int32: the context ring, then the draft positions, for each draft.

    The drafts see one another both ways. `start` is the last context position; draft i sits in slot window + i.
    """
    context = torch.arange(min(window, start + 1), device=device)
    drafts = window + torch.arange(block, device=device)
    return torch.cat((context, drafts)).to(torch.int32).expand(block, -1)


def pool_group(values: Tensor, scores: Tensor) -> Tensor:
    """[..., r, D] x [..., r, D] -> [..., D]: softmax over the r tokens of a group, a gate for every feature."""
    return (torch.softmax(scores, dim=-2) * values).sum(-2)


def kv_concat(window: Tensor, compressed: Tensor) -> Tensor:
    """[B, Nw, D] x [B, J, D] -> [B, Nw+J, D]: window rows first."""
    return torch.cat((window, compressed), dim=1)


def slots_concat(window: Tensor, selected: Tensor) -> Tensor:
    """[T, Kw] x [B, T, Ks] -> [B, T, Kw+Ks] int32: slot lists in the order of the rows."""
    return torch.cat((window.expand(selected.shape[0], -1, -1), selected), dim=-1)


def sparse_attention(q: Tensor, kv: Tensor, slots: Tensor, sink: Tensor, *, scale: float) -> Tensor:
    """[B, T, H, D] x [B, N, D] x [B, T, K] x [H] -> [B, T, H, D] in q's type.

    o = sum_i e^(z_i-m) c_i / (sum_i e^(z_i-m) + e^(a-m)) over the listed slots i, z_i = scale * <q, c_i>. The sink a is
    not scaled and not part of the maximum m; slot -1 scores -inf; a query without any slot gives 0, because m starts at
    the finite -1e30. The probabilities take the rows' type for the value product, the denominator stays float32.
    Differs: one pass over all slots where the released kernel goes by blocks of 64 with a running maximum.
    """
    rows = kv[torch.arange(kv.shape[0], device=kv.device)[:, None, None], slots.clamp(min=0).long()]
    rows = torch.where((slots < 0).unsqueeze(-1), 0, rows)  # [B, T, K, D]
    z = torch.einsum("bthd,btkd->bthk", widen(q), widen(rows)) * scale
    z = z.masked_fill((slots < 0).unsqueeze(2), float("-inf"))
    m = torch.cat((z, z.new_full((*z.shape[:-1], 1), -1e30)), dim=-1).amax(-1, keepdim=True)  # [B, T, H, 1]
    p = torch.exp(z - m)
    denominator = p.sum(-1, keepdim=True) + torch.exp(widen(sink)[:, None] - m)
    # A query without slots has m = -1e30 and an infinite denominator: its zero numerator over it is 0.
    out = torch.einsum("bthk,btkd->bthd", widen(p.to(kv.dtype)), widen(rows)) / denominator
    return out.to(q.dtype)


def grouped_output(o: Tensor, weight: Tensor, *, groups: int) -> Tensor:
    """[B, T, H, D] x [G*R, H/G*D] -> [B, T, G, R]: each group of neighbouring heads through its own matrix."""
    o = o.flatten(-2).unflatten(-1, (groups, -1))  # [B, T, G, H/G*D]
    return torch.einsum("btgk,grk->btgr", o, weight.unflatten(0, (groups, -1)))
