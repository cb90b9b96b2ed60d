"""The kernels of the released configuration: which constants each one is compiled with, from config.json."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..config import RELEASED, ModelArgs
from ..ops.rounding import FP4_GROUP, FP8_GROUP, KV_FP4_GROUP
from . import engram_gate, hc_read, hc_split_sinkhorn, hc_write, rounding, scaled_product, sparse_attention
from .scaled_product import FP4_WEIGHT, FP8_WEIGHT
from .targets import storage_type


@dataclasses.dataclass(frozen=True)
class Program:
    """One kernel: what compiles it, and with which constants (the target key apart)."""

    compile: Callable[..., Any]
    constants: Mapping[str, Any]

    def compiled(self, key: str) -> Any:
        return self.compile(key=key, **self.constants)


@functools.cache
def released_args() -> ModelArgs:
    return ModelArgs.from_json(RELEASED)


def matrix_shapes(args: ModelArgs) -> dict[str, tuple[str, int, int]]:
    """-> name: storage, outputs, inputs of one matrix of each kind that the products meet."""
    keys = args.hc_mult + 1  # an Engram key a stream, and one value
    rows = (args.engram_max_ngram_size - 1) * args.engram_n_heads * args.engram_head_dim
    return {
        "wq_a": ("fp8", args.q_lora_rank, args.dim),
        "wq_b": ("fp8", args.n_heads * args.head_dim, args.q_lora_rank),
        "wkv": ("fp8", args.head_dim, args.dim),
        "wo_b": ("fp8", args.dim, args.o_groups * args.o_lora_rank),
        "engram_wkv": ("fp8", keys * args.dim, rows),
        "main_proj": ("fp8", args.dim, len(args.dspark_target_layer_ids) * args.dim),
        "expert_w1": ("fp4", args.moe_inter_dim, args.dim),
        "expert_w2": ("fp4", args.dim, args.moe_inter_dim),
    }


def product_program(storage: str, outputs: int, inputs: int, rows: int, key: str) -> Program:
    """The product kernel that the wrapper picks for this many rows."""
    weight_format = FP8_WEIGHT if storage == "fp8" else FP4_WEIGHT
    constants = dict(
        outputs=outputs, inputs=inputs, weight_format=weight_format, out=storage_type(torch.bfloat16, key),
        tile=scaled_product.tile_for(rows, inputs, weight_format, key),
    )  # fmt: skip
    return Program(scaled_product.compiled, constants)


def released_programs(key: str) -> dict[str, Program]:
    """-> every kernel at the released sizes, by the name of its operation and, for products, matrix and rows."""
    args = released_args()
    wide = storage_type(torch.bfloat16, key)
    n, d = args.hc_mult, args.dim
    programs = {
        "hc_split_sinkhorn": Program(
            hc_split_sinkhorn.compiled, dict(n=n, iters=args.hc_sinkhorn_iters, eps=args.hc_eps)
        ),
        "hc_read": Program(hc_read.compiled, dict(n=n, d=d, dtype=wide)),
        "hc_write": Program(hc_write.compiled, dict(n=n, d=d, dtype=wide)),
        "fp8_quantise": Program(rounding.compiled_quantise, dict(size=FP8_GROUP, dtype=wide)),
        "fp8_round": Program(rounding.compiled_round, dict(form="fp8", size=FP8_GROUP, dtype=wide)),
        "fp4_e8m0_round": Program(rounding.compiled_round, dict(form="fp4_e8m0", size=FP4_GROUP, dtype=wide)),
        "fp4_e4m3_round": Program(rounding.compiled_round, dict(form="fp4_e4m3", size=KV_FP4_GROUP, dtype=wide)),
        "sparse_attention": Program(
            sparse_attention.compiled,
            dict(heads=args.n_heads, d=args.head_dim, scale=args.head_dim**-0.5, bfloat16=True),
        ),
        "engram_gate": Program(
            engram_gate.compiled, dict(n=n, d=d, eps=args.norm_eps, dtype=wide, gain_dtype=wide)
        ),
    }
    for name, (storage, outputs, inputs) in matrix_shapes(args).items():
        for rows in (1, 64, 4096):
            program = product_program(storage, outputs, inputs, rows, key)
            if all(program != other for other in programs.values()):
                programs[f"{storage}_gemm {name}, {rows} rows"] = program
    return programs
