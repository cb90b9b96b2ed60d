"""The set of operations that a model runs on, passed in: plain PyTorch, or the same with TileLang twins.

A model never picks a back end by itself: `Transformer(args, TORCH)` or `Transformer(args, tilelang_ops(target))`.
Every module keeps the set as its attribute `ops`, so that a wrapped set can record or replace any step of any module.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

from . import ops

Op = Callable[..., Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ops:
    """One field per operation, each with the name, signature and meaning that it has in `reference_impl.ops`."""

    # text: embedding, norm, sampling
    embed: Op
    merge_image: Op
    rms_norm: Op
    sample: Op
    # n-gram hashing and Engram
    fold_ids: Op
    look_back: Op
    ngram_rows: Op
    engram_lookup: Op
    engram_lookup_fp8: Op
    engram_gate: Op
    mask_gate: Op
    engram_write: Op
    # hyper-connection streams
    hc_expand: Op
    hc_identity_reading: Op
    hc_mix_projection: Op
    hc_reading_weights: Op
    hc_writing_weights: Op
    hc_combination: Op
    hc_split_sinkhorn: Op
    hc_read: Op
    hc_write: Op
    hc_mean: Op
    concat_taps: Op
    # matrix products and roundings
    add: Op
    linear: Op
    linear_fp32: Op
    fp8_quantise: Op
    fp8_gemm: Op
    fp4_gemm: Op
    fp8_dequantise: Op
    fp8_round: Op
    fp4_e8m0_round: Op
    fp4_e4m3_round: Op
    # rotary
    rotate: Op
    rotate_back: Op
    # attention
    window_slots: Op
    draft_slots: Op
    pool_group: Op
    kv_concat: Op
    slots_concat: Op
    sparse_attention: Op
    grouped_output: Op
    # indexer
    visible_slots: Op
    index_head_weights: Op
    index_scores: Op
    mask_invisible: Op
    candidate_mask: Op
    mask_candidates: Op
    select_slots: Op
    # mixture of experts
    expert_scores: Op
    routing_bias: Op
    route: Op
    expert_hidden: Op
    combine_experts: Op
    # vision
    vision_rotary: Op
    rotate_halves: Op
    full_attention: Op
    swiglu: Op
    gelu: Op
    unshuffle: Op


TORCH = Ops(**{field.name: getattr(ops, field.name) for field in dataclasses.fields(Ops)})

TWINS = (
    "hc_split_sinkhorn", "hc_read", "hc_write",
    "fp8_quantise", "fp8_round", "fp4_e8m0_round", "fp4_e4m3_round", "fp8_gemm", "fp4_gemm",
    "sparse_attention", "engram_gate",
)  # fmt: skip
"""Operations with a TileLang twin in `kernels/<name>.py`, of the same name and signature plus keyword `target`."""


def tilelang_ops(target: Any) -> Ops:
    """-> TORCH with every twin in place of its plain form.

    `target` is passed to each kernel: "c" for the host, "cuda" or {"kind": "cuda", "arch": "sm_90a"} for a GPU.
    Raises ImportError, naming the package to install, when TileLang is missing.
    """
    twins = {}
    for name in TWINS:
        try:
            module = importlib.import_module(f".kernels.{name}", __package__)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "tilelang":
                raise
            raise ImportError(f"{name}: its twin needs the package `tilelang`; install tilelang==0.1.15") from error
        twins[name] = partial(getattr(module, name), target=target)
    return dataclasses.replace(TORCH, **twins)
