"""DSpark: extra blocks that draft several tokens in one pass from the backbone's streams (report 2.4.3).

Axes: B batch, L draft positions, T context positions, n streams, d width, V vocabulary, W window.
`start_pos` is the position of the last context token; draft i stands at start_pos + 1 + i.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .attention import Attention
from .block import Block
from .config import ModelArgs
from .layers import Build, Embedding, Linear, RMSNorm, Storage, WideLinear
from .moe import MoE


class DSparkAttention(Attention):
    """Drafts attend to a ring of context rows and to one another, both ways; only context rows enter the ring."""

    def __init__(self, args: ModelArgs, build: Build, layer: int) -> None:
        super().__init__(args, build, layer)
        self.block_size = args.dspark_block_size

    def forward(self, x: Tensor, start_pos: int, context: Tensor) -> Tensor:
        """[B, L, d] x [B, 1, d] -> [B, L, d]."""
        batch, length, _ = x.shape
        freqs_cis = self.freqs_cis[start_pos + 1 : start_pos + 1 + length]

        # project and rotate
        _, q = self.query(x, freqs_cis)
        self.store_context(context, start_pos)
        drafts = self.window_rows(x, freqs_cis)
        kv = self.ops.kv_concat(self.window_kv_cache[:batch], drafts)
        slots = self.ops.draft_slots(window=self.window, block=length, start=start_pos, device=x.device)

        # attend and project back
        o = self.ops.sparse_attention(q, kv, slots.expand(batch, -1, -1), self.attn_sink, scale=self.scale)
        return self.output(o, freqs_cis)

    def store_context(self, context: Tensor, start_pos: int) -> None:
        """[B, T, d] into the ring, through the same projection, norm, rotation and rounding as the drafts."""
        freqs_cis = self.freqs_cis[start_pos : start_pos + context.shape[1]]
        self.store_window(self.window_rows(context, freqs_cis), start_pos)


class DSparkMarkovHead(nn.Module):
    """A low-rank bigram bias on the logits: V2 V1[token]."""

    def __init__(self, args: ModelArgs, build: Build) -> None:
        super().__init__()
        self.embed = Embedding(args.vocab_size, args.dspark_markov_rank, build)
        self.head = WideLinear(args.dspark_markov_rank, args.vocab_size, build)

    def forward(self, token: Tensor) -> tuple[Tensor, Tensor]:
        """[B] -> bias [B, V], embedding [B, rank]."""
        embedding = self.embed(token)
        return self.head(embedding), embedding


class DSparkConfidenceHead(nn.Module):
    """One raw number per draft position, for a scheduler that picks how many drafts to verify; no sigmoid here."""

    def __init__(self, args: ModelArgs, build: Build) -> None:
        super().__init__()
        self.proj = WideLinear(args.dim + args.dspark_markov_rank, 1, build)

    def forward(self, collapsed: Tensor, markov: Tensor) -> Tensor:
        """[B, L, d], before the draft norm, x [B, L, rank] -> [B, L] in at least float32."""
        return self.proj(torch.cat((collapsed, markov), dim=-1)).squeeze(-1)


class DSparkBlock(Block):
    """A window-type block with its own experts; the first also owns the context projection, the last the heads."""

    def __init__(self, args: ModelArgs, build: Build, block: int) -> None:
        super().__init__(args, build, args.n_layers + block)
        if block == 0:
            taps = len(args.dspark_target_layer_ids)
            self.main_proj = Linear(taps * args.dim, args.dim, build, Storage.FP8)
            self.main_norm = RMSNorm(args.dim, build, eps=args.norm_eps)
        if block == args.n_mtp_layers - 1:
            self.norm = RMSNorm(args.dim, build, eps=args.norm_eps)
            self.markov_head = DSparkMarkovHead(args, build)
            self.confidence_head = DSparkConfidenceHead(args, build)

    def make_attention(self, args: ModelArgs, build: Build, layer: int) -> DSparkAttention:
        return DSparkAttention(args, build, layer)

    def make_experts(self, args: ModelArgs, build: Build) -> MoE:
        return MoE(args, build, experts=args.dspark_n_routed_experts, activated=args.dspark_n_activated_experts)
