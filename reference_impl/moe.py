"""Mixture of experts: gate, routed experts, shared expert (report 2.1, 2.1.1, 4.2.1).

Axes: B batch, T positions, N = B*T tokens, E experts, k chosen, d width, F inner width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .config import ModelArgs
from .layers import Build, Linear, Storage
from .ops import Routing


class Gate(nn.Module):
    """Scores the experts, picks k and weights them; the bias steers the choice only."""

    def __init__(self, args: ModelArgs, build: Build, *, experts: int, activated: int) -> None:
        super().__init__()
        self.ops = build.ops
        self.topk, self.route_scale, self.temperature = activated, args.route_scale, args.gate_temp
        self.weight = build.parameter(experts, args.dim, dtype=build.dtype)
        self.bias = build.parameter(experts, dtype=build.wide)
        self.bias_vl = build.parameter(experts, dtype=build.wide)

    def forward(self, x: Tensor, image_mask: Tensor | None) -> Routing:
        """[N, d] x [N] bool or none -> weights, experts [N, k]; tokens of an image span choose with the second bias."""
        scores = self.ops.expert_scores(self.ops.linear_fp32(x, self.weight), temperature=self.temperature)
        bias = self.ops.routing_bias(self.bias, self.bias_vl, image_mask)
        return self.ops.route(scores, bias, topk=self.topk, route_scale=self.route_scale)


class Expert(nn.Module):
    """A clamped SwiGLU network."""

    def __init__(self, args: ModelArgs, build: Build, storage: Storage) -> None:
        super().__init__()
        self.ops = build.ops
        self.limit = args.swiglu_limit
        self.w1 = Linear(args.dim, args.moe_inter_dim, build, storage)
        self.w2 = Linear(args.moe_inter_dim, args.dim, build, storage)
        self.w3 = Linear(args.dim, args.moe_inter_dim, build, storage)

    def forward(self, x: Tensor, weights: Tensor | None = None) -> Tensor:
        """[N, d] x [N] or none -> [N, d]."""
        return self.w2(self.ops.expert_hidden(self.w1(x), self.w3(x), weights, limit=self.limit))


class MoE(nn.Module):
    """k routed experts and the shared one."""

    def __init__(self, args: ModelArgs, build: Build, *, experts: int, activated: int) -> None:
        super().__init__()
        self.ops = build.ops
        self.gate = Gate(args, build, experts=experts, activated=activated)
        self.experts = nn.ModuleList(Expert(args, build, Storage.FP4) for _ in range(experts))
        self.shared_experts = Expert(args, build, Storage.FP8)

    def forward(self, x: Tensor, image_mask: Tensor | None) -> Tensor:
        """[B, T, d] x [B, T] bool or none -> [B, T, d]."""
        tokens = x.flatten(0, 1)

        # route
        routing = self.gate(tokens, None if image_mask is None else image_mask.flatten())

        # expand, activate
        routed = tokens.new_zeros(*routing.experts.shape, tokens.shape[-1])  # [N, k, d]
        for expert in routing.experts.unique().tolist():
            rows, choice = torch.where(routing.experts == expert)
            routed[rows, choice] = self.experts[expert](tokens[rows], routing.weights[rows, choice])

        # combine
        return self.ops.combine_experts(routed, self.shared_experts(tokens)).view_as(x)
