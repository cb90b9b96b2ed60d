"""Where each recorded tensor arises: its name in the fixtures, and the operation call of the model that gives it.

One table row a tensor: name below the layer, module below the layer, operation, which call of it, and which value: the
output, a field of it, or a named input.
"""

from __future__ import annotations

import dataclasses

from ..config import ModelArgs

PRODUCT = "product"  # whichever of the matrix products the module's storage calls for
LOOKUP = "lookup"
SAME_ROLE = {
    "linear": PRODUCT, "linear_fp32": PRODUCT, "fp8_gemm": PRODUCT, "fp4_gemm": PRODUCT,
    "engram_lookup": LOOKUP, "engram_lookup_fp8": LOOKUP,
}  # fmt: skip
"""The float model calls another operation in the same role than the quantised one."""

OUTPUT = ""


@dataclasses.dataclass(frozen=True)
class Point:
    """A value of one operation call."""

    path: str
    op: str
    occurrence: int = 0
    value: str = OUTPUT  # "" the output, "reading" a field of it, "in:kv" an input


LAYER = {
    "engram.rows": Point("engram.embed", LOOKUP),
    "engram.key_value": Point("engram.wkv", PRODUCT),
    "engram.gate": Point("engram", "engram_gate"),
    "engram.out": Point("engram", "engram_write"),
    "stream_in": Point("", "hc_mix_projection", 0, "in:streams"),
    "hc_attn.m": Point("", "hc_mix_projection", 0),
    "hc_attn.read_weights": Point("", "hc_split_sinkhorn", 0, "reading"),
    "hc_attn.write_weights": Point("", "hc_split_sinkhorn", 0, "writing"),
    "hc_attn.combination": Point("", "hc_split_sinkhorn", 0, "combination"),
    "attn_read": Point("", "hc_read", 0),
    "attn.in": Point("attn_norm", "rms_norm"),
    "attn.q_latent": Point("attn.q_norm", "rms_norm"),
    "attn.q": Point("attn", "rotate", 0),
    "attn.window_kv_normed": Point("attn.kv_norm", "rms_norm", 0),
    "attn.draft_kv_normed": Point("attn.kv_norm", "rms_norm", 1),
    "attn.compressor.latent": Point("attn.compressor.norm", "rms_norm"),
    "attn.indexer.head_weights_raw": Point("attn.indexer.weights_proj", PRODUCT),
    "attn.indexer.q": Point("attn.indexer", "index_scores", 0, "in:q"),
    "attn.indexer.k": Point("attn.indexer", "index_scores", 0, "in:keys"),
    "attn.indexer.score_before_candidates": Point("attn.indexer", "candidate_mask", 0, "in:scores"),
    "attn.indexer.candidates": Point("attn.indexer", "candidate_mask"),
    "attn.indexer.score": Point("attn.indexer", "select_slots", 0, "in:scores"),
    "attn.indexer.slots": Point("attn.indexer", "select_slots"),
    "attn.kv": Point("attn", "sparse_attention", 0, "in:kv"),
    "attn.slots": Point("attn", "sparse_attention", 0, "in:slots"),
    "attn.o": Point("attn", "rotate_back"),
    "attn.o_grouped": Point("attn.wo_a", "grouped_output"),
    "attn.out": Point("attn.wo_b", PRODUCT),
    "stream_mid": Point("", "hc_write", 0),
    "hc_ffn.m": Point("", "hc_mix_projection", 1),
    "hc_ffn.read_weights": Point("", "hc_split_sinkhorn", 1, "reading"),
    "next_read_weights": Point("", "hc_split_sinkhorn", 1, "reading"),
    "hc_ffn.write_weights": Point("", "hc_split_sinkhorn", 1, "writing"),
    "hc_ffn.combination": Point("", "hc_split_sinkhorn", 1, "combination"),
    "ffn_read": Point("", "hc_read", 1),
    "ffn.in": Point("ffn_norm", "rms_norm"),
    "ffn.gate_scores": Point("ffn.gate", "expert_scores"),
    "ffn.gate_weights": Point("ffn.gate", "route", 0, "weights"),
    "ffn.gate_experts": Point("ffn.gate", "route", 0, "experts"),
    "ffn.expert_out": Point("ffn", "combine_experts", 0, "in:routed"),
    "ffn.shared_out": Point("ffn.shared_experts.w2", PRODUCT),
    "ffn.out": Point("ffn", "combine_experts"),
    "stream_out": Point("", "hc_write", 1),
}
"""Below `layers.{i}` and `mtp.{m}`, in the order of the forward pass."""

MODEL = {
    "engram_rows": Point("ngram_hash", "ngram_rows"),
    "embedding": Point("embed", "embed"),
    "final.collapsed": Point("", "hc_read"),
    "final.normed": Point("norm", "rms_norm"),
    "final.logits": Point("head", PRODUCT),
    "final.output_ids": Point("", "sample"),
    "final.draft_context": Point("", "concat_taps"),
}

DRAFT = {
    "embedding": Point("embed", "embed"),
    "mtp.context_projected": Point("mtp.0.main_proj", PRODUCT),
    "mtp.context": Point("mtp.0.main_norm", "rms_norm"),
    "final.collapsed": Point("", "hc_read"),
    "draft.collapsed": Point("", "hc_read"),
}
"""The draft's ids, logits and confidence are what the pass returns."""

VISION = {
    "rope_cos": Point("vision", "vision_rotary", 0, "cos"),
    "rope_sin": Point("vision", "vision_rotary", 0, "sin"),
    "patch_embedded": Point("vision.patch_embed.proj", PRODUCT),
    "tower_out": Point("vision.norm", "rms_norm"),
    "unshuffled": Point("aligner", "unshuffle"),
    "aligner_hidden": Point("aligner.w1", PRODUCT),
    "aligner_out": Point("aligner.w2", PRODUCT),
}

VISION_BLOCK = {
    "norm1": Point("norm1", "rms_norm"),
    "qkv": Point("attn.wqkv", PRODUCT),
    "attn_out": Point("attn.wo", PRODUCT),
    "norm2": Point("norm2", "rms_norm"),
    "mlp_out": Point("mlp.w2", PRODUCT),
    "out": Point("", "add", 1),
}
"""Below `vision.blocks.{b}`; recorded as `block{b}_norm1` and so on."""


def below(parent: str, point: Point) -> Point:
    return dataclasses.replace(point, path=f"{parent}.{point.path}".strip("."))


def forward_points(args: ModelArgs) -> dict[str, Point]:
    """-> name to point, of a forward pass; names as behind the run's prefix."""
    points = dict(MODEL)
    for layer in range(args.n_layers):
        points |= {f"layers.{layer}.{name}": below(f"layers.{layer}", point) for name, point in LAYER.items()}
    return points


def vision_points(args: ModelArgs) -> dict[str, Point]:
    """-> of the vision tower, within the same pass."""
    points = dict(VISION)
    for block in range(args.vision_n_layers):
        parent = f"vision.blocks.{block}"
        points |= {f"block{block}_{name}": below(parent, point) for name, point in VISION_BLOCK.items()}
    return points


def draft_points(args: ModelArgs) -> dict[str, Point]:
    """-> of a drafting pass."""
    points = DRAFT | {"draft.normed": Point(f"mtp.{args.n_mtp_layers - 1}.norm", "rms_norm")}
    for block in range(args.n_mtp_layers):
        points |= {f"mtp.{block}.{name}": below(f"mtp.{block}", point) for name, point in LAYER.items()}
    return points
