"""Tiny random models and prompts for the tests."""

from __future__ import annotations

import torch

from reference_impl.backend import TORCH, Ops
from reference_impl.config import ModelArgs
from reference_impl.initialise import randomise
from reference_impl.model import Transformer


def tiny_model(
    ops: Ops = TORCH, *, seed: int = 0, quantise: bool = False, index_keys: str = "own", **changes
) -> Transformer:
    """A random tiny model; float64 without quantisation, so that what should be equal is equal to 1e-9."""
    args = ModelArgs.tiny(**changes)
    dtype = torch.bfloat16 if quantise else torch.float64
    token_map = torch.arange(args.vocab_size) % args.engram_compressed_vocab_size
    model = Transformer(args, ops, quantise=quantise, dtype=dtype, index_keys=index_keys, token_map=token_map)
    randomise(model, seed)
    return model


def prompt(length: int, rows: int = 1, *, seed: int = 1) -> torch.Tensor:
    """[rows, length] token ids, none of them an image or noise id."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 200, (rows, length), generator=generator)
