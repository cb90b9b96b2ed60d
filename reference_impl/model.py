"""The whole model: token ids and images in, logits of the last position out, and drafts from the same streams.

From the top: Transformer embeds the ids, copies them into n residual streams, runs the layers (block.py: attention.py
and moe.py inside hyper-connection streams; engram.py in front of two of them), collapses, norms and projects. dspark.py
drafts, vision.py turns pictures into rows. Each numeric step is an operation of `ops/`, called through `self.ops`.

Axes: B batch, T positions, n streams, d width, V vocabulary, L draft positions.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .attention import SharedSlots
from .backend import TORCH, Ops
from .block import Block
from .config import ModelArgs
from .dspark import DSparkBlock
from .engram import NgramHash
from .layers import Build, Embedding, RMSNorm, WideLinear
from .vision import Aligner, ViT

INDEX_KEYS = ("own", "upstream")


class Image(NamedTuple):
    """One picture, cut into patches (`ops.image_grid`, `ops.patch_order`)."""

    patches: Tensor  # [rows*columns, 3, patch, patch], in [-1, 1]
    rows: int  # patch grid
    columns: int


class Step(NamedTuple):
    """What one call gives."""

    ids: Tensor  # [B] int64, sampled
    logits: Tensor  # [B, V] of the last position, at least float32
    draft_context: Tensor  # [B, T, taps*d], what the drafter listens to


class Draft(NamedTuple):
    """What one drafting pass gives."""

    ids: Tensor  # [B, 1+L] int64: the given token, then the drafts
    logits: Tensor  # [B, L, V], with the Markov bias
    confidence: Tensor  # [B, L], raw


@contextlib.contextmanager
def paused_garbage_collection() -> Iterator[None]:
    """The released model has 64,000 modules, all alive: scanning them over and over would double the time to build."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Transformer(nn.Module):
    """DeepSeek-V4.1-Flash. Weights are uninitialised until a checkpoint is loaded or `initialise.randomise` fills them.

    `quantise=False` with `dtype` gives the same model in one float type without any rounding. `index_keys="upstream"`
    reproduces how the released code scores on decode steps without a finished group (see Indexer.publish_keys).
    `token_map` folds token ids for the n-gram hash; without it the model builds but does not run.
    """

    def __init__(
        self, args: ModelArgs, ops: Ops = TORCH, *, quantise: bool = True, dtype: torch.dtype = torch.bfloat16,
        index_keys: str = "own", token_map: Sequence[int] | Tensor | None = None, device: torch.device | str = "cpu",
    ) -> None:  # fmt: skip
        super().__init__()
        if index_keys not in INDEX_KEYS:
            raise ValueError(f"index_keys = {index_keys!r}, expected one of {INDEX_KEYS}")
        if quantise:
            args.check_quantisable()
            if dtype is not torch.bfloat16:
                raise ValueError(f"dtype = {dtype} with quantise=True: the quantised model runs in torch.bfloat16")
        build = Build(ops=ops, quantise=quantise, dtype=dtype, device=torch.device(device))
        self.args, self.ops = args, ops
        self.shared = SharedSlots(index_keys)
        with paused_garbage_collection():
            self.build_modules(build, token_map)

    def build_modules(self, build: Build, token_map: Sequence[int] | Tensor | None) -> None:
        args = self.args
        self.ngram_hash = NgramHash(args, build, token_map)
        self.embed = Embedding(args.vocab_size, args.dim, build)
        self.layers = nn.ModuleList(Block(args, build, layer) for layer in range(args.n_layers))
        self.norm = RMSNorm(args.dim, build, eps=args.norm_eps)
        self.head = WideLinear(args.dim, args.vocab_size, build)
        self.mtp = nn.ModuleList(DSparkBlock(args, build, block) for block in range(args.n_mtp_layers))
        self.vision = ViT(args, build)
        self.aligner = Aligner(args, build)
        self.image_start = build.parameter(args.dim, dtype=build.dtype)
        self.image_end = build.parameter(args.dim, dtype=build.dtype)
        self.image_newline = build.parameter(args.dim, dtype=build.dtype)

    @torch.inference_mode()
    def forward(
        self, ids: Tensor, start_pos: int, images: Sequence[Image] = (), token_types: Tensor | None = None
    ) -> Step:
        """[B, T] at position 0, or [B, 1] at start_pos; token_types [B, T]: -1 text, 0..3 inside an image span.

        ValueError when the call does not fit: several tokens after position 0, more rows or positions than the caches.
        """
        self.check_call(ids, start_pos, images, token_types)
        image_mask = None if token_types is None else token_types >= 0
        rows = self.ngram_hash(ids, start_pos, image_mask)  # [B, T, Engram layers, columns]

        x = self.embed(ids)  # [B, T, d]
        if images:
            x = self.merge_images(x, images, token_types)
        streams = self.ops.hc_expand(x, n=self.args.hc_mult)  # [B, T, n, d]
        reading = self.ops.hc_identity_reading(streams)  # [B, T, n]

        taps = []
        for number, layer in enumerate(self.layers):
            if number in self.args.engram_layer_ids:
                columns = rows[:, :, self.args.engram_layer_ids.index(number)]
                streams = layer.engram(streams, columns, image_mask)
            if number in self.args.dspark_target_layer_ids:
                taps.append(self.ops.hc_mean(streams))
            streams, reading = layer(streams, reading, start_pos, image_mask, self.shared)

        x = self.norm(self.ops.hc_read(streams, reading))
        logits = self.head(x[:, -1])
        ids = self.ops.sample(logits, temperature=self.args.temperature)
        return Step(ids, logits, self.ops.concat_taps(taps))

    def merge_images(self, x: Tensor, images: Sequence[Image], token_types: Tensor) -> Tensor:
        """[B, T, d] -> [B, T, d]: image spans filled from the tower and the three learned delimiters."""
        rows = [self.aligner(self.vision(*image), image.rows, image.columns) for image in images]
        delimiters = torch.stack((self.image_start, self.image_newline, self.image_end))
        return self.ops.merge_image(x, token_types, torch.cat(rows), delimiters)

    @torch.inference_mode()
    def draft(self, ids: Tensor, start_pos: int, draft_context: Tensor) -> Draft | None:
        """[B] tokens just sampled x position of the last context token x [B, T, taps*d] -> drafts.

        At start_pos 0, after the prefill, it only fills the rings with the context of all T positions and gives None.
        """
        first, last = self.mtp[0], self.mtp[-1]
        context = first.main_norm(first.main_proj(draft_context))  # [B, T, d]
        if start_pos == 0:
            for block in self.mtp:
                block.attn.store_context(context, start_pos)
            return None
        self.check_draft(start_pos, context)

        noise = ids.new_full((len(ids), self.args.dspark_block_size - 1), self.args.dspark_noise_token_id)
        x = self.embed(torch.cat((ids[:, None], noise), dim=1))  # [B, L, d]
        streams = self.ops.hc_expand(x, n=self.args.hc_mult)
        reading = self.ops.hc_identity_reading(streams)
        for block in self.mtp:
            streams, reading = block(streams, reading, start_pos, None, context)
        collapsed = self.ops.hc_read(streams, reading)  # [B, L, d]
        logits = self.head(last.norm(collapsed))  # [B, L, V]

        tokens, biased, markov = [ids], [], []
        for position in range(self.args.dspark_block_size):
            bias, embedding = last.markov_head(tokens[-1])
            biased.append(self.ops.add(logits[:, position], bias))
            markov.append(embedding)
            tokens.append(self.ops.sample(biased[-1], temperature=self.args.temperature))
        confidence = last.confidence_head(collapsed, torch.stack(markov, dim=1))
        return Draft(torch.stack(tokens, dim=1), torch.stack(biased, dim=1), confidence)

    def check_call(self, ids: Tensor, start_pos: int, images: Sequence[Image], token_types: Tensor | None) -> None:
        if ids.ndim != 2 or ids.shape[1] == 0:
            raise ValueError(f"forward: ids have shape {list(ids.shape)}, expected [batch, positions] with a position")
        if start_pos > 0 and ids.shape[1] != 1:
            raise ValueError(
                f"forward: {ids.shape[1]} tokens at start_pos = {start_pos}; only a call at 0 takes more than one"
            )
        if ids.shape[0] > self.args.max_batch_size:
            raise ValueError(f"forward: {ids.shape[0]} rows, caches hold max_batch_size = {self.args.max_batch_size}")
        if start_pos + ids.shape[1] > self.args.max_seq_len:
            raise ValueError(
                f"forward: position {start_pos + ids.shape[1] - 1}, caches hold max_seq_len = {self.args.max_seq_len}"
            )
        if token_types is not None and token_types.shape != ids.shape:
            raise ValueError(f"forward: token_types {list(token_types.shape)}, expected as ids {list(ids.shape)}")
        if images and (token_types is None or start_pos):
            raise ValueError("forward: images need token_types and start_pos = 0; an image span lies in the first call")

    def check_draft(self, start_pos: int, context: Tensor) -> None:
        if context.shape[1] != 1:
            raise ValueError(f"draft: {context.shape[1]} context positions at start_pos = {start_pos}, expected 1")
        end = start_pos + self.args.dspark_block_size
        if end >= self.args.max_seq_len:
            raise ValueError(f"draft: last draft at position {end}, tables hold max_seq_len = {self.args.max_seq_len}")
