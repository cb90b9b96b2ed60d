"""Routing and experts (report 2.1, 2.1.1, 4.2.1).

Axes: N tokens (batch and position flattened), E experts, k chosen, d width, F inner width of an expert.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from .precision import widen
from .selection import top_k

ROUTING_EPS = 1e-20  # added to the sum that normalises the routing weights


class Routing(NamedTuple):
    """Chosen experts of each token, best biased score first."""

    weights: Tensor  # [N, k], at least float32; sums to route_scale
    experts: Tensor  # [N, k] int64


def expert_scores(logits: Tensor, *, temperature: float) -> Tensor:
    """[N, E] -> [N, E]: sqrt(softplus(z / temperature)), before any bias."""
    return F.softplus(logits / temperature).sqrt()


def routing_bias(bias: Tensor, bias_vl: Tensor, image_mask: Tensor | None) -> Tensor:
    """[E] x [E] x [N] bool or none -> [E] or [N, E]: the second bias for tokens of an image span."""
    return bias if image_mask is None else torch.where(image_mask.unsqueeze(-1), bias_vl, bias)


def route(scores: Tensor, bias: Tensor, *, topk: int, route_scale: float) -> Routing:
    """[N, E] x [E] or [N, E] -> weights, experts [N, k]: the bias steers the choice, the weights come without it."""
    experts = top_k(scores + bias, k=topk).indices
    chosen = scores.gather(-1, experts)
    return Routing(chosen / (chosen.sum(-1, keepdim=True) + ROUTING_EPS) * route_scale, experts)


def expert_hidden(gate: Tensor, up: Tensor, weights: Tensor | None, *, limit: float) -> Tensor:
    """[N, F] x [N, F] x [N] or none -> [N, F] in gate's type: w silu(min(g, limit)) clip(u, -limit, limit).

    The gate is clamped above only. The routing weight enters here, before the down projection and its rounding.
    """
    hidden = F.silu(widen(gate).clamp(max=limit)) * widen(up).clamp(-limit, limit)
    if weights is not None:
        hidden = weights.unsqueeze(-1) * hidden
    return hidden.to(gate.dtype)


def combine_experts(routed: Tensor, shared: Tensor) -> Tensor:
    """[N, k, d] x [N, d] -> [N, d]: routed outputs summed in at least float32, the shared one added, one cast."""
    return (widen(routed).sum(1) + widen(shared)).to(shared.dtype)
