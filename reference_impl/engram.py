"""Engram: n-gram hashing of token ids and the memory it looks up (report 2.4.2).

Axes: B batch, T positions, L Engram layers, C columns = n-gram orders x hash heads, n streams, d width.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from .config import ModelArgs
from .layers import Build, Linear, Storage
from .ops import DEAD, FP8_GROUP, hash_multipliers


class NgramHash(nn.Module):
    """Table rows of each position for all Engram layers, from the ids of the token and those before it; not learned."""

    def __init__(self, args: ModelArgs, build: Build, token_map: Sequence[int] | Tensor | None) -> None:
        super().__init__()
        self.ops = build.ops
        self.distance, self.pad_id = args.engram_max_ngram_size - 1, args.engram_pad_id
        if token_map is not None:
            token_map = torch.as_tensor(token_map, dtype=torch.int64, device=build.device)
            check_token_map(token_map, args)
        self.register_buffer("token_map", token_map, persistent=False)

        def integers(values: object) -> Tensor:
            return torch.tensor(values, dtype=torch.int64, device=build.device)

        layers, orders = len(args.engram_layer_ids), args.engram_max_ngram_size - 1
        primes = integers(args.engram_primes()).reshape(layers, orders, args.engram_n_heads)
        sizes = primes.flatten(1)
        multipliers = [
            hash_multipliers(
                layer=layer, count=args.engram_max_ngram_size, compressed_vocab=args.engram_compressed_vocab_size
            )
            for layer in args.engram_layer_ids
        ]
        self.register_buffer("primes", primes, persistent=False)
        self.register_buffer("offsets", sizes.cumsum(-1) - sizes, persistent=False)  # first row of each bucket
        self.register_buffer("multipliers", integers(multipliers).reshape(layers, orders + 1), persistent=False)
        history = build.cache(args.max_batch_size, args.max_seq_len, dtype=torch.int64)
        self.register_buffer("history", history, persistent=False)

    def forward(self, ids: Tensor, start_pos: int, image_mask: Tensor | None) -> Tensor:
        """[B, T] x [B, T] bool or none -> [B, T, L, C] int64. ValueError without a token map."""
        if self.token_map is None:
            raise ValueError(
                "n-gram hashing: the model was built without a token map; pass token_map=, "
                "see reference_impl.folding.fold_vocabulary"
            )
        batch, length = ids.shape
        folded = self.ops.fold_ids(ids, self.token_map)
        if image_mask is not None:
            folded = folded.masked_fill(image_mask, DEAD)
        self.history[:batch, start_pos : start_pos + length] = folded
        seen = self.history[:batch, max(0, start_pos - self.distance) : start_pos + length]
        pad = int(self.token_map[self.pad_id])
        grams = self.ops.look_back(seen, length=length, distance=self.distance, pad=pad)
        return self.ops.ngram_rows(grams, self.multipliers, self.primes, self.offsets)


def check_token_map(token_map: Tensor, args: ModelArgs) -> None:
    """ValueError unless the map folds every token id onto the configured number of compressed ids."""
    if token_map.shape != (args.vocab_size,):
        raise ValueError(f"token map: {token_map.numel()} entries, expected vocab_size = {args.vocab_size}")
    if token_map.device.type != "meta":
        size = int(token_map.max()) + 1
        if size != args.engram_compressed_vocab_size or int(token_map.min()) < 0:
            raise ValueError(
                f"token map: folds onto ids {int(token_map.min())}..{size - 1}, expected 0.."
                f"{args.engram_compressed_vocab_size - 1} (engram_compressed_vocab_size - 1)"
            )


class EngramTable(nn.Module):
    """The table of one Engram layer: FP8 rows with one E8M0 scale a row and 32 columns. Upstream: EngramEmbedding."""

    def __init__(self, rows: int, width: int, build: Build) -> None:
        super().__init__()
        self.ops = build.ops
        self.quantise, self.dtype = build.quantise, build.dtype
        if build.quantise:
            self.weight = build.parameter(rows, width, dtype=torch.float8_e4m3fn)
            self.scale = build.parameter(rows, width // FP8_GROUP, dtype=torch.float8_e8m0fnu)
        else:
            self.weight = build.parameter(rows, width, dtype=build.dtype)

    def forward(self, rows: Tensor) -> Tensor:
        """[B, T, C] int64 -> [B, T, C, width]."""
        if self.quantise:
            return self.ops.engram_lookup_fp8(self.weight, self.scale, rows, out_dtype=self.dtype)
        return self.ops.engram_lookup(self.weight, rows)


class Engram(nn.Module):
    """Adds looked-up memory to every stream, gated by its match with that stream; runs before the layer."""

    def __init__(self, args: ModelArgs, build: Build, *, table_rows: int) -> None:
        super().__init__()
        self.ops = build.ops
        self.n, self.dim, self.eps = args.hc_mult, args.dim, args.norm_eps
        self.embed = EngramTable(table_rows, args.engram_head_dim, build)
        memory = args.engram_columns * args.engram_head_dim
        self.wkv = Linear(memory, (self.n + 1) * self.dim, build, Storage.FP8)
        self.q_weight = build.parameter(self.n, self.dim, dtype=build.dtype)
        self.k_weight = build.parameter(self.n, self.dim, dtype=build.dtype)

    def forward(self, streams: Tensor, rows: Tensor, image_mask: Tensor | None) -> Tensor:
        """[B, T, n, d] x [B, T, C] -> [B, T, n, d]; positions of an image span stay as they are."""
        memory = self.embed(rows).flatten(-2)
        keys, value = self.wkv(memory).split((self.n * self.dim, self.dim), dim=-1)  # n keys, then one value for all
        keys = keys.unflatten(-1, (self.n, self.dim))
        gate = self.ops.engram_gate(streams, keys, self.q_weight, self.k_weight, eps=self.eps)
        return self.ops.engram_write(streams, self.ops.mask_gate(gate, image_mask), value)
