"""Attention over a window of this layer and compressed slots shared between layers (report 2.2, 2.3).

Axes: B batch, T positions of this call, d width, H heads, D head width, J compressed slots, r ratio, W window.
`start_pos` is the position of the call's first token: 0 is the prefill, later calls bring one token.
"""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor, nn

from .config import ModelArgs
from .layers import Build, GroupedLinear, Linear, RMSNorm, Storage, WideLinear
from .ops import FP4_GROUP, FP8_GROUP, KV_FP4_GROUP, rotary_frequencies, rotary_table


@dataclasses.dataclass
class SharedSlots:
    """What source layers publish and later layers read (report 2.3.1). Upstream: process-global slots.

    Differs: an object of the model, so that two models do not share it.
    """

    index_keys: str  # "own": each owner scores against its own keys; "upstream": see Indexer.publish_keys
    compress_kv: Tensor | None = None  # cache [max batch, max slots, D] of the last KV source
    index_k: Tensor | None = None  # cache [max batch, max slots, I] of the last key owner that published
    index_k_owner: int | None = None  # that layer
    topk_idxs: Tensor | None = None  # [B, T, k] int32, selection of the last index source
    candidates: Tensor | None = None  # [B, T, J] bool, mask of the candidate source


class Compressor(nn.Module):
    """Pools r consecutive tokens into one latent; KV sources only (report 2.3; at ratio 1 also 2.2, equation 1)."""

    def __init__(self, args: ModelArgs, build: Build, ratio: int) -> None:
        super().__init__()
        self.ops = build.ops
        self.ratio = ratio
        self.norm = RMSNorm(args.head_dim, build, eps=args.norm_eps)
        if ratio == 1:  # one token a group: nothing to weigh, and no reason to leave bf16
            self.wkv = Linear(args.dim, args.head_dim, build, Storage.PLAIN)
            return
        self.wkv = WideLinear(args.dim, args.head_dim, build)
        self.wgate = WideLinear(args.dim, args.head_dim, build)
        state = args.max_batch_size, ratio, args.head_dim  # tokens of the group that is not complete yet
        self.register_buffer("kv_state", build.cache(*state, dtype=build.wide), persistent=False)
        self.register_buffer("score_state", build.cache(*state, dtype=build.wide) - torch.inf, persistent=False)

    def forward(self, x: Tensor, start_pos: int) -> Tensor | None:
        """[B, T, d] -> [B, groups that this call completes, D] before rotation, or None when it completes none."""
        batch, length, _ = x.shape
        if self.ratio == 1:
            return self.norm(self.wkv(x))
        values, scores = self.wkv(x), self.wgate(x)
        if start_pos == 0:
            whole = length - length % self.ratio
            self.kv_state[:batch, : length - whole] = values[:, whole:]
            self.score_state[:batch, : length - whole] = scores[:, whole:]
            values, scores = values[:, :whole], scores[:, :whole]
        else:
            place = start_pos % self.ratio
            self.kv_state[:batch, place] = values[:, 0]
            self.score_state[:batch, place] = scores[:, 0]
            if place + 1 < self.ratio:
                return None
            values, scores = self.kv_state[:batch], self.score_state[:batch]
        if values.shape[1] == 0:
            return None
        groups = (-1, self.ratio)
        pooled = self.ops.pool_group(values.unflatten(1, groups), scores.unflatten(1, groups))  # [B, J, D] float32
        return self.norm(pooled.to(x.dtype))


def completed_slots(latent: Tensor, start_pos: int, ratio: int) -> tuple[slice, slice]:
    """[B, new slots, D] -> their places in the caches, and the positions where they rotate: a group's first token."""
    first, end = start_pos // ratio, start_pos // ratio + latent.shape[1]
    return slice(first, end), slice(first * ratio, end * ratio, ratio)


class Indexer(nn.Module):
    """A light attention that picks the compressed slots of each query (report 2.3.1, 2.3.2)."""

    def __init__(self, args: ModelArgs, build: Build, layer: int) -> None:
        super().__init__()
        self.ops = build.ops
        self.layer, self.ratio = layer, args.compress_ratios[layer]
        self.heads, self.dim, self.topk = args.index_n_heads, args.index_head_dim, args.index_topk
        self.candidate_source = args.candidate_source_layer
        self.topk_blocks, self.block_size = args.candidate_topk_blocks, args.candidate_block_size
        self.quantise = build.quantise
        self.wq_b = Linear(args.q_lora_rank, self.heads * self.dim, build, Storage.FP8)
        self.weights_proj = Linear(args.dim, self.heads, build, Storage.PLAIN)
        self.owns_keys = layer in args.kv_source_layers
        if self.owns_keys:
            self.wk = Linear(args.head_dim, self.dim, build, Storage.PLAIN)
            self.k_norm = RMSNorm(self.dim, build, eps=args.norm_eps)
            slots = args.max_seq_len // self.ratio
            cache = build.cache(args.max_batch_size, slots, self.dim, dtype=build.dtype)
            self.register_buffer("k_cache", cache, persistent=False)

    def forward(
        self, x: Tensor, q_latent: Tensor, latent: Tensor | None, start_pos: int, offset: int, freqs_cis: Tensor,
        shared: SharedSlots,
    ) -> Tensor:  # fmt: skip
        """[B, T, d] x [B, T, q rank] x [B, new slots, D] -> [B, T, min(topk, J)] int32 rows of the attention's KV."""
        batch, length, _ = x.shape
        if self.owns_keys:
            self.publish_keys(latent, start_pos, freqs_cis, shared)

        # project and rotate
        q = self.wq_b(q_latent).unflatten(-1, (self.heads, self.dim))
        q = self.round_fp4(self.ops.rotate(q, freqs_cis[start_pos : start_pos + length]))
        weights = self.ops.index_head_weights(self.weights_proj(x), index_dim=self.dim, heads=self.heads)

        # score
        keys = shared.index_k[:batch, : (start_pos + length) // self.ratio]
        visible = self.ops.visible_slots(ratio=self.ratio, length=length, start=start_pos, device=x.device)
        scores = self.ops.mask_invisible(self.ops.index_scores(q, keys, weights), visible)

        # restrict and select
        if self.layer == self.candidate_source:
            shared.candidates = self.ops.candidate_mask(
                scores, visible, block_size=self.block_size, topk_blocks=self.topk_blocks
            )
        elif self.layer > self.candidate_source:
            scores = self.ops.mask_candidates(scores, shared.candidates)
        return self.ops.select_slots(scores, visible, topk=self.topk, offset=offset)

    def publish_keys(self, latent: Tensor | None, start_pos: int, freqs_cis: Tensor, shared: SharedSlots) -> None:
        """Projects the latents, before their rotation, to keys, and publishes this layer's cache.

        Differs: the released code publishes only when a group completed, so that on other decode steps the ratio-2
        sources score against the keys of whichever owner came last. index_keys="upstream" does the same.
        """
        if latent is not None:
            slots, positions = completed_slots(latent, start_pos, self.ratio)
            keys = self.round_fp4(self.ops.rotate(self.k_norm(self.wk(latent)), freqs_cis[positions]))
            self.k_cache[: keys.shape[0], slots] = keys
        if latent is not None or shared.index_keys == "own" or shared.index_k is None:
            shared.index_k, shared.index_k_owner = self.k_cache, self.layer

    def round_fp4(self, x: Tensor) -> Tensor:
        return self.ops.fp4_e8m0_round(x, group=FP4_GROUP) if self.quantise else x


class Attention(nn.Module):
    """Query heads over one shared key/value row a slot; low-rank query, grouped low-rank output (report 2.3, 4.2.1)."""

    def __init__(self, args: ModelArgs, build: Build, layer: int) -> None:
        super().__init__()
        self.ops = build.ops
        self.layer, self.ratio = layer, args.compress_ratios[layer]
        self.heads, self.head_dim, self.groups = args.n_heads, args.head_dim, args.o_groups
        self.window, self.scale = args.window_size, args.head_dim**-0.5
        self.quantise = build.quantise
        self.attn_sink = build.parameter(self.heads, dtype=build.wide)
        self.wq_a = Linear(args.dim, args.q_lora_rank, build, Storage.FP8)
        self.q_norm = RMSNorm(args.q_lora_rank, build, eps=args.norm_eps)
        self.wq_b = Linear(args.q_lora_rank, self.heads * self.head_dim, build, Storage.FP8)
        self.wkv = Linear(args.dim, self.head_dim, build, Storage.FP8)
        self.kv_norm = RMSNorm(self.head_dim, build, eps=args.norm_eps)
        group_width = self.heads // self.groups * self.head_dim
        self.wo_a = GroupedLinear(group_width, self.groups * args.o_lora_rank, build, Storage.FP8)
        self.wo_b = Linear(self.groups * args.o_lora_rank, args.dim, build, Storage.FP8)
        self.compressor = self.indexer = None
        if layer in args.kv_source_layers:
            self.compressor = Compressor(args, build, self.ratio)
            slots = args.max_seq_len // self.ratio
            cache = build.cache(args.max_batch_size, slots, self.head_dim, dtype=build.dtype)
            self.register_buffer("compress_kv_cache", cache, persistent=False)
        if layer in args.index_source_layers:
            self.indexer = Indexer(args, build, layer)
        ring = build.cache(args.max_batch_size, self.window, self.head_dim, dtype=build.dtype)
        self.register_buffer("window_kv_cache", ring, persistent=False)
        # With compression, window keys and queries use the long base too; only plain window layers go without YaRN.
        theta = rotary_frequencies(
            rotated=args.rope_head_dim,
            base=args.compress_rope_theta if self.ratio else args.rope_theta,
            original_length=args.original_seq_len if self.ratio else 0,
            factor=args.rope_factor, beta_fast=args.beta_fast, beta_slow=args.beta_slow,
            dtype=build.wide, device=build.device,
        )  # fmt: skip
        positions = torch.arange(args.max_seq_len, device=build.device)
        self.register_buffer("freqs_cis", rotary_table(theta, positions), persistent=False)

    def forward(self, x: Tensor, start_pos: int, shared: SharedSlots) -> Tensor:
        """[B, T, d] -> [B, T, d]."""
        freqs_cis = self.freqs_cis[start_pos : start_pos + x.shape[1]]

        # project and rotate
        q_latent, q = self.query(x, freqs_cis)
        kv, slots = self.window_kv(x, start_pos)

        # compress
        if self.ratio:
            latent = self.compressor(x, start_pos) if self.compressor else None
            if self.indexer:
                shared.topk_idxs = self.indexer(x, q_latent, latent, start_pos, kv.shape[1], self.freqs_cis, shared)
            kv = self.ops.kv_concat(kv, self.compressed_kv(x, latent, start_pos, shared))
            slots = self.ops.slots_concat(slots, shared.topk_idxs)
        else:
            slots = slots.expand(x.shape[0], -1, -1)

        # attend and project back
        o = self.ops.sparse_attention(q, kv, slots, self.attn_sink, scale=self.scale)
        return self.output(o, freqs_cis)

    def query(self, x: Tensor, freqs_cis: Tensor) -> tuple[Tensor, Tensor]:
        """[B, T, d] -> latent [B, T, q rank], which also feeds the indexer, and rotated heads [B, T, H, D]."""
        q_latent = self.q_norm(self.wq_a(x))
        q = self.wq_b(q_latent).unflatten(-1, (self.heads, self.head_dim))
        return q_latent, self.ops.rotate(q, freqs_cis)

    def window_rows(self, x: Tensor, freqs_cis: Tensor) -> Tensor:
        """[B, T, d] -> [B, T, D]: rotated at the token's position, then the whole row rounded to FP8."""
        kv = self.ops.rotate(self.kv_norm(self.wkv(x)), freqs_cis)
        return self.ops.fp8_round(kv, group=FP8_GROUP) if self.quantise else kv

    def store_window(self, kv: Tensor, start_pos: int) -> None:
        """[B, T, D] into the ring: the last W rows, slot = position mod W."""
        batch, length, _ = kv.shape
        kept = min(length, self.window)
        slots = torch.arange(start_pos + length - kept, start_pos + length, device=kv.device) % self.window
        self.window_kv_cache[:batch, slots] = kv[:, length - kept :]

    def window_kv(self, x: Tensor, start_pos: int) -> tuple[Tensor, Tensor]:
        """[B, T, d] -> rows [B, T or W, D], slots [T, K]: the chunk itself at the prefill, the ring at decode."""
        batch, length, _ = x.shape
        kv = self.window_rows(x, self.freqs_cis[start_pos : start_pos + length])
        self.store_window(kv, start_pos)
        slots = self.ops.window_slots(window=self.window, length=length, start=start_pos, device=x.device)
        return (kv if start_pos == 0 else self.window_kv_cache[:batch]), slots

    def compressed_kv(self, x: Tensor, latent: Tensor | None, start_pos: int, shared: SharedSlots) -> Tensor:
        """[B, new slots, D] or None -> [B, J, D]: stores this call's slots if this layer is a source, reads all."""
        batch, length, _ = x.shape
        if self.compressor:
            if latent is not None:
                slots, positions = completed_slots(latent, start_pos, self.ratio)
                rows = self.ops.rotate(latent, self.freqs_cis[positions])
                if self.quantise:
                    rows = self.ops.fp4_e4m3_round(rows, group=KV_FP4_GROUP)
                self.compress_kv_cache[:batch, slots] = rows
            shared.compress_kv = self.compress_kv_cache
        return shared.compress_kv[:batch, : (start_pos + length) // self.ratio]

    def output(self, o: Tensor, freqs_cis: Tensor) -> Tensor:
        """[B, T, H, D] -> [B, T, d]: turned back by the query position, then the two output projections.

        The rows are values too, so their sum carries key rotations; turning back leaves relative ones.
        """
        o = self.ops.rotate_back(o, freqs_cis)
        return self.wo_b(self.wo_a(o, groups=self.groups).flatten(-2))
