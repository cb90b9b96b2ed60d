"""Every operation of the model in plain PyTorch: no state, shapes in the docstring. This package is the definition."""

from __future__ import annotations

from .attention import draft_slots, grouped_output, kv_concat, pool_group, slots_concat, sparse_attention, window_slots
from .engram import engram_gate, engram_lookup, engram_lookup_fp8, engram_write, mask_gate
from .hashing import DEAD, bucket_primes, fold_ids, hash_multipliers, look_back, ngram_rows
from .moe import Routing, combine_experts, expert_hidden, expert_scores, route, routing_bias
from .precision import widen
from .products import add, fp4_gemm, fp8_dequantise, fp8_gemm, linear, linear_fp32
from .rotary import rotary_frequencies, rotary_table, rotate, rotate_back, yarn_bounds
from .rounding import (
    FP4_GROUP,
    FP8_GROUP,
    KV_FP4_GROUP,
    Quantised,
    fp4_e4m3_quantise,
    fp4_e4m3_round,
    fp4_e8m0_quantise,
    fp4_e8m0_round,
    fp8_quantise,
    fp8_round,
)
from .selection import (
    TopK,
    candidate_mask,
    index_head_weights,
    index_scores,
    mask_candidates,
    mask_invisible,
    select_slots,
    top_k,
    visible_slots,
)
from .streams import (
    StreamWeights,
    concat_taps,
    hc_combination,
    hc_expand,
    hc_identity_reading,
    hc_mean,
    hc_mix_projection,
    hc_read,
    hc_reading_weights,
    hc_split_sinkhorn,
    hc_write,
    hc_writing_weights,
)
from .text import embed, merge_image, rms_norm, sample
from .vision import (
    GridPlan,
    RotaryTables,
    full_attention,
    gelu,
    image_grid,
    patch_order,
    rotate_halves,
    span_types,
    swiglu,
    unshuffle,
    vision_rotary,
)

__all__ = [
    "DEAD", "FP4_GROUP", "FP8_GROUP", "KV_FP4_GROUP", "GridPlan", "Quantised", "RotaryTables", "Routing",
    "StreamWeights", "TopK", "add", "bucket_primes", "candidate_mask", "combine_experts", "concat_taps",
    "draft_slots", "embed", "engram_gate", "engram_lookup", "engram_lookup_fp8", "engram_write", "expert_hidden",
    "expert_scores", "fold_ids", "fp4_e4m3_quantise", "fp4_e4m3_round", "fp4_e8m0_quantise", "fp4_e8m0_round",
    "fp4_gemm", "fp8_dequantise", "fp8_gemm", "fp8_quantise", "fp8_round", "full_attention", "gelu",
    "grouped_output", "hash_multipliers", "hc_combination", "hc_expand", "hc_identity_reading", "hc_mean",
    "hc_mix_projection", "hc_read", "hc_reading_weights", "hc_split_sinkhorn", "hc_write", "hc_writing_weights",
    "image_grid", "index_head_weights", "index_scores", "kv_concat", "linear", "linear_fp32", "look_back",
    "mask_candidates", "mask_gate", "mask_invisible", "merge_image", "ngram_rows", "patch_order", "pool_group",
    "rms_norm", "rotary_frequencies", "rotary_table", "rotate", "rotate_back", "rotate_halves", "route",
    "routing_bias", "sample", "select_slots", "slots_concat", "span_types", "sparse_attention", "swiglu", "top_k",
    "unshuffle", "visible_slots", "vision_rotary", "widen", "window_slots", "yarn_bounds",
]  # fmt: skip
