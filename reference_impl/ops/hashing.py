"""N-gram hashing: token ids to Engram table rows, integers only, nothing learned (report 2.4.2, 3.1.3).

Axes: B batch, T positions, L Engram layers, O n-gram orders (2..max), A hash heads, C = O*A columns, order-major.
"""

from __future__ import annotations

import numpy
import torch
from torch import Tensor

DEAD = -1  # history entry of an image position: look-back stops there


def bucket_primes(*, start: int, layers: int, orders: int, heads: int) -> list[list[list[int]]]:
    """-> [layers][orders][heads]: consecutive primes >= start, dealt layer by layer, order by order, head by head."""
    primes: list[int] = []
    candidate = max(start, 2)
    while len(primes) < layers * orders * heads:
        if all(candidate % d for d in range(2, int(candidate**0.5) + 1)):
            primes.append(candidate)
        candidate += 1
    take = iter(primes)
    return [[[next(take) for _ in range(heads)] for _ in range(orders)] for _ in range(layers)]


def hash_multipliers(*, layer: int, count: int, compressed_vocab: int) -> list[int]:
    """-> `count` odd multipliers of one Engram layer: 2u+1, u uniform below half of (2^63-1) / compressed_vocab.

    The generator is seeded by the layer number, and products with compressed ids stay below 2^63.
    """
    bound = (2**63 - 1) // compressed_vocab // 2
    draws = numpy.random.default_rng(10007 * layer).integers(0, bound, size=count, dtype=numpy.int64)
    return [2 * int(u) + 1 for u in draws]


def fold_ids(ids: Tensor, token_map: Tensor) -> Tensor:
    """[B, T] token ids x [V] -> [B, T] compressed ids."""
    return token_map[ids]


def look_back(history: Tensor, *, length: int, distance: int, pad: int) -> Tensor:
    """[B, S] compressed ids, DEAD in image spans -> [B, length, distance+1]: ids at t, t-1, ... for the last `length`.

    A look-back that meets the start or a DEAD entry gives `pad`, and so do all longer ones.
    """
    padded = torch.nn.functional.pad(history, (distance, 0), value=DEAD)  # [B, distance + S]
    windows = padded.unfold(1, distance + 1, 1)[:, -length:].flip(-1)
    blocked = (windows == DEAD).cummax(-1).values
    return windows.masked_fill(blocked, pad)


def ngram_rows(grams: Tensor, multipliers: Tensor, primes: Tensor, offsets: Tensor) -> Tensor:
    """[B, T, O+1] x [L, O+1] x [L, O, A] x [L, C] -> [B, T, L, C] int64 table rows.

    h_k = XOR over i <= k of c_(t-i) * mu_i; row = h_k mod prime + offset. The orders share one running XOR.
    """
    mixed = grams.unsqueeze(2) * multipliers  # [B, T, L, O+1]
    hashes, running = [], mixed[..., 0]
    for order in range(1, mixed.shape[-1]):
        running = running ^ mixed[..., order]
        hashes.append(running)
    rows = torch.remainder(torch.stack(hashes, -1).unsqueeze(-1), primes)  # [B, T, L, O, A]
    return rows.flatten(-2) + offsets
