"""Embedding, RMSNorm and sampling.

Axes: B batch, T positions, V vocabulary, d width.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .precision import widen

TEMPERATURE_FLOOR = 1e-5


def embed(ids: Tensor, weight: Tensor) -> Tensor:
    """[...] int64 x [V, d] -> [..., d]: row lookup."""
    return weight[ids]


def rms_norm(x: Tensor, weight: Tensor, *, eps: float) -> Tensor:
    """[..., d] x [d] -> [..., d]: g x / sqrt(mean(x^2) + eps), in at least float32, cast to x's type last."""
    wide = widen(x)
    return (widen(weight) * (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps))).to(x.dtype)


def merge_image(embedding: Tensor, token_types: Tensor, rows: Tensor, delimiters: Tensor) -> Tensor:
    """[B, T, d] x [B, T] x [cells, d] x [3, d] -> [B, T, d]: an image span in place of its token embeddings.

    token_types: -1 text, 0 start, 1 image cell, 2 row end, 3 end. `rows` fill the cells of the batch in order,
    row-major; `delimiters` are start, row end, end. ValueError if cells and rows differ in number.
    """
    cells = int((token_types == 1).sum())
    if cells != rows.shape[0]:
        raise ValueError(f"image merge: token_types mark {cells} image cells, the images give {rows.shape[0]} rows")
    merged = embedding.clone()
    merged[token_types == 1] = rows.to(embedding.dtype)
    for delimiter, kind in enumerate((0, 2, 3)):
        merged[token_types == kind] = delimiters[delimiter].to(embedding.dtype)
    return merged


def sample(logits: Tensor, *, temperature: float, generator: torch.Generator | None = None) -> Tensor:
    """[..., V] -> [...] int64: greedy at temperature 0, else argmax of softmax(logits / temperature) / Exp(1) noise."""
    if temperature == 0.0:
        return logits.argmax(-1)
    probabilities = torch.softmax(logits / max(temperature, TEMPERATURE_FLOOR), dim=-1)
    noise = torch.empty_like(probabilities).exponential_(1, generator=generator)
    return (probabilities / noise).argmax(-1)
