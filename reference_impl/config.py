"""The configuration: one field per value of the released inference/config.json, checked for contradictions."""

from __future__ import annotations

import dataclasses
import difflib
import json
import typing
from pathlib import Path
from typing import Any

from .ops.hashing import bucket_primes
from .ops.rounding import FP8_GROUP

RELEASED = Path(__file__).with_name("config.json")


class ConfigError(ValueError):
    """A configuration that cannot be built; the text names the field and both values."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelArgs:
    """All sizes and constants of the model, in the order of the released file.

    Raises ConfigError, on construction, for fields that contradict one another.
    """

    vocab_size: int  # token ids
    dim: int  # d, width of a stream
    moe_inter_dim: int  # inner width of every expert: routed, shared, draft
    n_layers: int  # backbone layers
    n_mtp_layers: int  # draft blocks, stored as mtp.0 and on, numbered after the backbone in compress_ratios
    dspark_block_size: int  # draft positions per pass
    dspark_noise_token_id: int  # placeholder id of positions not drafted yet
    dspark_target_layer_ids: tuple[int, ...]  # layers whose incoming streams (mean) feed the drafter
    dspark_markov_rank: int  # rank of the bigram bias
    dspark_n_routed_experts: int  # experts of a draft block
    dspark_n_activated_experts: int  # of which used per token
    n_heads: int  # query heads
    n_routed_experts: int  # routed experts of a layer
    n_shared_experts: int  # must be 1
    n_activated_experts: int  # routed experts used per token
    score_func: str  # must be "sqrtsoftplus"
    route_scale: float  # what the routing weights of a token sum to
    swiglu_limit: float  # clamp of the expert branches
    q_lora_rank: int  # query latent width
    head_dim: int  # width of a head and of the shared key/value row
    rope_head_dim: int  # last features that rotate, in heads and index heads
    norm_eps: float  # under the root of every text RMSNorm, of the mix projection and of the Engram norms
    o_groups: int  # groups of the output projection
    o_lora_rank: int  # width per group
    window_size: int  # sliding window, and slots of its ring
    kv_source_layers: tuple[int, ...]  # layers that compress their own KV
    index_source_layers: tuple[int, ...]  # layers that run an indexer
    original_seq_len: int  # YaRN original length, for layers with compression
    rope_theta: float  # rotary base of window layers and draft blocks
    rope_factor: float  # YaRN division factor
    beta_fast: float  # YaRN bound: turns in original_seq_len above which a pair is kept
    beta_slow: float  # YaRN bound: turns below which a pair is divided
    index_n_heads: int  # index heads
    index_head_dim: int  # index head width
    index_topk: int  # compressed slots kept per query
    candidate_source_layer: int  # layer that builds the candidate mask
    candidate_topk_blocks: int  # candidate blocks kept
    candidate_block_size: int  # slots per block
    hc_mult: int  # n, residual streams
    hc_sinkhorn_iters: int  # column normalisations
    hc_eps: float  # in reading weights and Sinkhorn
    engram_layer_ids: tuple[int, ...]  # layers with Engram
    engram_vocab_size: int  # where the prime search starts
    engram_num_embeddings: tuple[int, ...]  # table rows of each Engram layer
    engram_max_ngram_size: int  # longest n-gram; the orders are 2 and up
    engram_pad_id: int  # token id (before compression) that fills blocked look-back
    engram_compressed_vocab_size: int  # number of compressed ids; the hash multipliers depend on it
    dtype: str  # storage of matrices, must be "fp8"
    expert_dtype: str  # storage of routed experts, must be "fp4"
    compress_rope_theta: float  # rotary base of layers with compression
    compress_ratios: tuple[int, ...]  # per layer and draft block: 0 none, else tokens per compressed slot
    vision_n_layers: int  # vision blocks
    vision_dim: int  # vision width
    vision_n_heads: int  # vision heads
    vision_inter_dim: int  # vision MLP width
    vision_patch_size: int  # side of a patch in pixels
    vision_downsample_ratio: int  # patches per side of a language cell
    vision_max_n_token: int  # most language positions of an image span
    vision_min_pixels: int  # smallest image area
    vision_max_wh_ratio: None = None  # aspect cap; off in the released model, and not implemented
    image_token_id: int  # id carried by every position of an image span
    engram_n_heads: int  # hash heads per order
    engram_head_dim: int  # columns of a table row
    vision_rope_theta: float  # vision rotary base
    # Not in the released file; these are the released class's defaults.
    max_batch_size: int = 4  # rows of every cache
    max_seq_len: int = 4096  # positions of every cache
    temperature: float = 1.0  # of sampling; 0 is greedy
    gate_temp: float = 1.0  # divides the router logits
    norm_topk_prob: bool = True  # must be true

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ModelArgs:
        """Lists become tuples, whole numbers become floats where a float is meant; ConfigError for unknown, missing or
        mistyped fields."""
        fields = {field.name: field for field in dataclasses.fields(cls)}
        for name in values:
            if name not in fields:
                near = difflib.get_close_matches(name, fields, n=1)
                hint = f"did you mean {near[0]!r}?" if near else "remove it"
                raise ConfigError(f"config: unknown field {name!r} = {values[name]!r}; {hint}")
        missing = [n for n, f in fields.items() if f.default is dataclasses.MISSING and n not in values]
        if missing:
            raise ConfigError(f"config: missing {', '.join(missing)}; the released file has all of them")
        types = typing.get_type_hints(cls)
        return cls(**{name: _typed(name, value, types[name]) for name, value in values.items()})

    @classmethod
    def from_json(cls, path: str | Path = RELEASED) -> ModelArgs:
        """The released values by default. ConfigError when the file is unreadable or not a JSON object."""
        try:
            values = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigError(f"config: cannot read {path}: {error}") from error
        if not isinstance(values, dict):
            raise ConfigError(f"config: {path} holds a {type(values).__name__}, expected one JSON object")
        return cls.from_dict(values)

    @classmethod
    def tiny(cls, **changes: Any) -> ModelArgs:
        """A model of every layer kind that runs on a CPU in milliseconds; sizes differ pairwise where they can."""
        values = json.loads(RELEASED.read_text(encoding="utf-8")) | TINY | changes
        return cls.from_dict(values)

    @property
    def mix_rows(self) -> int:
        """M = (2+n)*n mix numbers per token and sublayer."""
        return (2 + self.hc_mult) * self.hc_mult

    @property
    def engram_columns(self) -> int:
        """C, table rows looked up per token and Engram layer: n-gram orders times hash heads."""
        return (self.engram_max_ngram_size - 1) * self.engram_n_heads

    def kv_source(self, layer: int) -> int:
        """The layer whose compressed KV `layer` reads: itself or the last source before it."""
        return max(source for source in self.kv_source_layers if source <= layer)

    def __post_init__(self) -> None:
        self._check_sizes()
        self._check_layer_lists()
        self._check_token_ids()
        self._check_engram_tables()

    def _check_sizes(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool | str | tuple) or value is None or field.name in _MAY_BE_ZERO:
                continue
            if value <= 0:
                raise ConfigError(f"config: {field.name} = {value}, expected more than 0")
        for name, allowed in _FIXED.items():
            if getattr(self, name) != allowed:
                raise ConfigError(
                    f"config: {name} = {getattr(self, name)!r}, but this implementation has only {allowed!r}, "
                    "as in the released model"
                )
        self._divides("n_heads", "o_groups")
        self._divides("vision_dim", "vision_n_heads")
        if (self.vision_dim // self.vision_n_heads) % 4:
            raise ConfigError(
                f"config: vision_dim / vision_n_heads = {self.vision_dim} / {self.vision_n_heads} = "
                f"{self.vision_dim // self.vision_n_heads}, expected a multiple of 4 for the two-dimensional rotation"
            )
        if self.rope_head_dim % 2:
            raise ConfigError(f"config: rope_head_dim = {self.rope_head_dim}, expected an even number of features")
        for small, large in _AT_MOST:
            if getattr(self, small) > getattr(self, large):
                raise ConfigError(
                    f"config: {small} = {getattr(self, small)} is more than {large} = {getattr(self, large)}"
                )
        if self.engram_max_ngram_size < 2:
            raise ConfigError(f"config: engram_max_ngram_size = {self.engram_max_ngram_size}, expected 2 or more")

    def _divides(self, whole: str, part: str) -> None:
        if getattr(self, whole) % getattr(self, part):
            raise ConfigError(
                f"config: {whole} = {getattr(self, whole)} is not a multiple of {part} = {getattr(self, part)}"
            )

    def _check_layer_lists(self) -> None:
        expected = self.n_layers + self.n_mtp_layers
        if len(self.compress_ratios) != expected:
            raise ConfigError(
                f"config: compress_ratios has {len(self.compress_ratios)} entries, expected n_layers + n_mtp_layers = "
                f"{self.n_layers} + {self.n_mtp_layers} = {expected}"
            )
        for name in _LAYER_LISTS:
            layers = getattr(self, name)
            if list(layers) != sorted(set(layers)) or not all(0 <= layer < self.n_layers for layer in layers):
                raise ConfigError(
                    f"config: {name} = {list(layers)}, expected rising layer numbers below n_layers = {self.n_layers}"
                )
        if not self.dspark_target_layer_ids:
            raise ConfigError("config: dspark_target_layer_ids = [], expected at least one layer for the drafter")
        for block, ratio in enumerate(self.compress_ratios[self.n_layers :]):
            if ratio:
                raise ConfigError(
                    f"config: compress_ratios[{self.n_layers + block}] = {ratio}, draft blocks have none: expected 0"
                )
        for layer, ratio in enumerate(self.compress_ratios[: self.n_layers]):
            self._check_ratio(layer, ratio)
        source = self.candidate_source_layer
        if source not in self.index_source_layers:
            raise ConfigError(
                f"config: candidate_source_layer = {source} is not in index_source_layers = "
                f"{list(self.index_source_layers)}"
            )
        for layer in self.index_source_layers:
            if layer > source and self.kv_source(layer) != self.kv_source(source):
                raise ConfigError(
                    f"config: index source {layer} reads the compressed KV of layer {self.kv_source(layer)}, but "
                    f"candidate_source_layer = {source}, whose mask it uses, reads that of {self.kv_source(source)}"
                )

    def _check_ratio(self, layer: int, ratio: int) -> None:
        if ratio < 0:
            raise ConfigError(f"config: compress_ratios[{layer}] = {ratio}, expected 0 or more")
        for name in ("kv_source_layers", "index_source_layers"):
            if ratio == 0 and layer in getattr(self, name):
                raise ConfigError(f"config: {name} contains {layer}, but compress_ratios[{layer}] = 0")
        if ratio == 0:
            return
        before = [source for source in self.kv_source_layers if source <= layer]
        if not before:
            raise ConfigError(
                f"config: compress_ratios[{layer}] = {ratio}, but no layer up to {layer} is in kv_source_layers = "
                f"{list(self.kv_source_layers)}"
            )
        if self.compress_ratios[before[-1]] != ratio:
            raise ConfigError(
                f"config: compress_ratios[{layer}] = {ratio}, but it reads the KV of layer {before[-1]}, whose ratio "
                f"is {self.compress_ratios[before[-1]]}"
            )
        if before[-1] == layer and layer not in self.index_source_layers:
            raise ConfigError(
                f"config: kv_source_layers contains {layer}, but index_source_layers = "
                f"{list(self.index_source_layers)} does not: nothing would select from its KV"
            )

    def _check_token_ids(self) -> None:
        for name in ("dspark_noise_token_id", "image_token_id", "engram_pad_id"):
            if not 0 <= getattr(self, name) < self.vocab_size:
                raise ConfigError(f"config: {name} = {getattr(self, name)} is not below vocab_size = {self.vocab_size}")

    def _check_engram_tables(self) -> None:
        if len(self.engram_num_embeddings) != len(self.engram_layer_ids):
            raise ConfigError(
                f"config: engram_num_embeddings has {len(self.engram_num_embeddings)} entries, engram_layer_ids has "
                f"{len(self.engram_layer_ids)}"
            )
        primes = self.engram_primes()
        for layer, rows, table in zip(self.engram_layer_ids, self.engram_num_embeddings, primes, strict=True):
            buckets = sum(map(sum, table))
            if rows != buckets:
                raise ConfigError(
                    f"config: engram_num_embeddings has {rows} rows for layer {layer}, but its primes from "
                    f"engram_vocab_size = {self.engram_vocab_size} sum to {buckets}"
                )

    def engram_primes(self) -> list[list[list[int]]]:
        """-> [Engram layer][order][head]: the bucket sizes."""
        return bucket_primes(
            start=self.engram_vocab_size,
            layers=len(self.engram_layer_ids),
            orders=self.engram_max_ngram_size - 1,
            heads=self.engram_n_heads,
        )

    def check_quantisable(self) -> None:
        """ConfigError when a width that is rounded in groups does not divide into them (32, or half of that)."""
        widths = {
            "dim": self.dim,
            "moe_inter_dim": self.moe_inter_dim,
            "q_lora_rank": self.q_lora_rank,
            "head_dim": self.head_dim,
            "index_head_dim": self.index_head_dim,
            "o_groups * o_lora_rank": self.o_groups * self.o_lora_rank,
            "engram_head_dim": self.engram_head_dim,
        }
        for name, width in widths.items():
            if width % FP8_GROUP:
                raise ConfigError(
                    f"config: {name} = {width} is not a multiple of {FP8_GROUP}, the features that share one scale"
                )


def _typed(name: str, value: Any, kind: Any) -> Any:
    """`value` as the field's type; ConfigError when it is of another one."""
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if typing.get_origin(kind) is tuple:
        if isinstance(value, list | tuple) and all(type(item) is int for item in value):
            return tuple(value)
        raise ConfigError(f"config: {name} = {value!r}, expected a list of whole numbers")
    if type(value) is not kind:
        expected = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}.get(kind, "null")
        raise ConfigError(f"config: {name} = {value!r}, expected {expected}")
    return value


_FIXED = {
    "n_shared_experts": 1, "score_func": "sqrtsoftplus", "dtype": "fp8", "expert_dtype": "fp4",
    "vision_max_wh_ratio": None, "norm_topk_prob": True,
}  # fmt: skip
_MAY_BE_ZERO = {
    "engram_pad_id", "dspark_noise_token_id", "image_token_id", "candidate_source_layer", "temperature",
}  # fmt: skip
_LAYER_LISTS = ("kv_source_layers", "index_source_layers", "engram_layer_ids", "dspark_target_layer_ids")
_AT_MOST = (
    ("n_activated_experts", "n_routed_experts"),
    ("dspark_n_activated_experts", "dspark_n_routed_experts"),
    ("rope_head_dim", "head_dim"),
    ("rope_head_dim", "index_head_dim"),
    ("engram_compressed_vocab_size", "vocab_size"),
)

TINY = dict(
    vocab_size=211, dim=96, moe_inter_dim=64, n_layers=9, n_mtp_layers=2,
    dspark_block_size=4, dspark_noise_token_id=205, dspark_target_layer_ids=[6, 7, 8], dspark_markov_rank=20,
    dspark_n_routed_experts=5, dspark_n_activated_experts=2,
    n_heads=6, n_routed_experts=8, n_activated_experts=3, q_lora_rank=160, head_dim=32, rope_head_dim=12,
    o_groups=2, o_lora_rank=112, window_size=7, kv_source_layers=[1, 4], index_source_layers=[1, 4, 6],
    original_seq_len=512, compress_ratios=[0, 2, 2, 2, 1, 1, 1, 1, 1, 0, 0],
    index_n_heads=3, index_head_dim=128, index_topk=9, candidate_source_layer=4, candidate_topk_blocks=4,
    candidate_block_size=3, engram_layer_ids=[0, 1], engram_vocab_size=23, engram_num_embeddings=[204, 358],
    engram_n_heads=2, engram_head_dim=32, engram_compressed_vocab_size=173,
    vision_n_layers=2, vision_dim=48, vision_n_heads=3, vision_inter_dim=72, vision_patch_size=5,
    vision_max_n_token=40, vision_min_pixels=300, image_token_id=207,
    max_batch_size=3, max_seq_len=128, temperature=0.0,
)  # fmt: skip
"""What differs from the released values in `ModelArgs.tiny()`."""
