"""One layer: stream weights, stream read, attention or experts, stream write (report 2.4.1).

Axes: B batch, T positions, n streams, d width, M = (2+n)*n mix numbers.
"""

from __future__ import annotations

from torch import Tensor, nn

from .attention import Attention, SharedSlots
from .config import ModelArgs
from .engram import Engram
from .layers import Build, RMSNorm
from .moe import MoE
from .ops import StreamWeights


class Block(nn.Module):
    """Attention and experts, each reading the streams with weights computed one sublayer EARLIER (report 2.4.1, eq. 6).

    Writing and combination weights act in the sublayer that computed them; only the reading weights are shifted.
    """

    def __init__(self, args: ModelArgs, build: Build, layer: int) -> None:
        super().__init__()
        self.ops = build.ops
        self.n, self.iters, self.hc_eps, self.norm_eps = (
            args.hc_mult, args.hc_sinkhorn_iters, args.hc_eps, args.norm_eps
        )  # fmt: skip
        self.attn = self.make_attention(args, build, layer)
        self.ffn = self.make_experts(args, build)
        self.attn_norm = RMSNorm(args.dim, build, eps=args.norm_eps)
        self.ffn_norm = RMSNorm(args.dim, build, eps=args.norm_eps)
        for sublayer in ("attn", "ffn"):
            setattr(self, f"hc_{sublayer}_fn", build.parameter(args.mix_rows, self.n * args.dim, dtype=build.wide))
            setattr(self, f"hc_{sublayer}_base", build.parameter(args.mix_rows, dtype=build.wide))
            setattr(self, f"hc_{sublayer}_scale", build.parameter(3, dtype=build.wide))
        if layer in args.engram_layer_ids:
            rows = args.engram_num_embeddings[args.engram_layer_ids.index(layer)]
            self.engram = Engram(args, build, table_rows=rows)

    def make_attention(self, args: ModelArgs, build: Build, layer: int) -> Attention:
        return Attention(args, build, layer)

    def make_experts(self, args: ModelArgs, build: Build) -> MoE:
        return MoE(args, build, experts=args.n_routed_experts, activated=args.n_activated_experts)

    def forward(
        self, streams: Tensor, reading: Tensor, start_pos: int, image_mask: Tensor | None, memory: SharedSlots | Tensor
    ) -> tuple[Tensor, Tensor]:
        """[B, T, n, d] x [B, T, n] -> streams [B, T, n, d], reading weights [B, T, n] for the next layer.

        `memory` is what attention reads besides its input: the shared slots, in a draft block the context.
        """
        attn = self.stream_weights(streams, self.hc_attn_fn, self.hc_attn_scale, self.hc_attn_base)
        x = self.attn_norm(self.ops.hc_read(streams, reading))  # [B, T, d]
        x = self.attn(x, start_pos, memory)
        streams = self.ops.hc_write(streams, x, attn.writing, attn.combination)

        ffn = self.stream_weights(streams, self.hc_ffn_fn, self.hc_ffn_scale, self.hc_ffn_base)
        x = self.ffn_norm(self.ops.hc_read(streams, attn.reading))
        x = self.ffn(x, image_mask)
        streams = self.ops.hc_write(streams, x, ffn.writing, ffn.combination)
        return streams, ffn.reading

    def stream_weights(self, streams: Tensor, fn: Tensor, scale: Tensor, base: Tensor) -> StreamWeights:
        """[B, T, n, d] x [M, n*d] x [3] x [M] -> reading, writing [B, T, n], combination [B, T, n, n]."""
        mixes = self.ops.hc_mix_projection(streams, fn, eps=self.norm_eps)  # [B, T, M]
        return self.ops.hc_split_sinkhorn(mixes, scale, base, n=self.n, iters=self.iters, eps=self.hc_eps)
