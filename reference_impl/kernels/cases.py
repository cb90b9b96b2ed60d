"""Cases of the kernels: inputs of every operation with a twin, at every edge and at the released sizes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from .. import ops
from ..ops.rounding import FP4_GROUP, FP8_GROUP, KV_FP4_GROUP
from .released import matrix_shapes, released_args

TOKENS = (0, 1, 3, 64, 130, 1000)  # none, one, few, full blocks, not a multiple of a block, many

Inputs = tuple[tuple[Tensor, ...], dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Case:
    """One call of one operation. `inputs` draws its arguments on the CPU."""

    op: str
    label: str
    inputs: Callable[[torch.Generator], Inputs]

    def __str__(self) -> str:
        return f"{self.op} {self.label}"


def draw(case: Case, device: torch.device | str) -> Inputs:
    """-> the case's arguments, the same on every device: seeded by its name."""
    generator = torch.Generator().manual_seed(sum(str(case).encode()))
    args, constants = case.inputs(generator)
    return tuple(arg.to(device) for arg in args), constants


def normal(g: torch.Generator, *shape: int, dtype: torch.dtype = torch.float32, by: float = 1.0) -> Tensor:
    return (torch.randn(shape, generator=g) * by).to(dtype)


def weights_inputs(tokens: int, n: int, iters: int, eps: float, spread: float):
    """Mix numbers whose logits have this deviation."""

    def inputs(g):
        m = (2 + n) * n
        return (normal(g, tokens, m, by=spread), torch.tensor([0.9, 1.1, 1.0]), normal(g, m, by=0.1)), dict(
            n=n, iters=iters, eps=eps
        )

    return inputs


def extreme_weights_inputs(tokens: int, n: int, iters: int, eps: float, size: float):
    """Logits that are exactly +-size or 0: sigmoids and softmax saturate, whole rows may prefer one column."""

    def inputs(g):
        m = (2 + n) * n
        mixes = (torch.randint(0, 3, (tokens, m), generator=g) - 1) * size
        return (mixes, torch.ones(3), torch.zeros(m)), dict(n=n, iters=iters, eps=eps)

    return inputs


def read_inputs(tokens: int, n: int, d: int, dtype: torch.dtype):
    return lambda g: ((normal(g, tokens, n, d, dtype=dtype), torch.rand(tokens, n, generator=g)), {})


def write_inputs(tokens: int, n: int, d: int, dtype: torch.dtype):
    return lambda g: (
        (
            normal(g, tokens, n, d, dtype=dtype), normal(g, tokens, d, dtype=dtype),
            2 * torch.rand(tokens, n, generator=g), torch.softmax(normal(g, tokens, n, n), -1),
        ),
        {},
    )  # fmt: skip


def gate_inputs(tokens: int, n: int, d: int, dtype: torch.dtype, eps: float, zero: bool = False):
    def inputs(g):
        streams, keys = normal(g, tokens, n, d, dtype=dtype), normal(g, tokens, n, d, dtype=dtype)
        if zero:  # an unmatched token: no key at all, and a stream of zeros
            keys[::2], streams[1::2, 0] = 0.0, 0.0
        return (streams, keys, normal(g, n, d, dtype=torch.bfloat16), normal(g, n, d, dtype=torch.bfloat16)), dict(
            eps=eps
        )

    return inputs


def rounding_inputs(tokens: int, features: int, group: int, dtype: torch.dtype):
    """Rows of very different magnitudes, so that rows and groups that mix up their scales show."""

    def inputs(g):
        scale = torch.exp2(torch.randint(-20, 20, (tokens, 1), generator=g).float())
        return ((normal(g, tokens, features) * scale).to(dtype),), dict(group=group)

    return inputs


def every_bfloat16_inputs(group: int, dtype: torch.dtype, shuffled: bool):
    """All finite bfloat16 numbers, subnormals and both zeros among them: neighbours share a group, or strangers do."""

    def inputs(g):
        numbers = torch.arange(2**16, dtype=torch.int32).to(torch.uint16).view(torch.bfloat16)
        numbers = numbers[numbers.isfinite()]
        if shuffled:
            numbers = numbers[torch.randperm(numbers.numel(), generator=g)]
        return (numbers[: numbers.numel() // group * group].view(-1, group).to(dtype),), dict(group=group)

    return inputs


def tie_inputs(group: int, step: float, dtype: torch.dtype):
    """Multiples of a quarter of a grid step: every tie of the format, at many scales."""
    numbers = torch.arange(-512, 512, dtype=torch.float32) * step
    return lambda g: ((numbers.view(-1, group).to(dtype),), dict(group=group))


def product_inputs(op: str, rows: int, outputs: int, inputs: int, out_dtype: torch.dtype):
    def draw_product(g):
        x = ops.fp8_quantise(normal(g, rows, inputs, by=3.0), group=FP8_GROUP)
        if op == "fp8_gemm":
            weight = normal(g, outputs, inputs).to(torch.float8_e4m3fn)
            scale_rows = -(-outputs // FP8_GROUP)
        else:
            weight = torch.randint(0, 256, (outputs, inputs // 2), generator=g).to(torch.uint8)
            scale_rows = outputs
        exponents = torch.randint(-8, 3, (scale_rows, inputs // FP8_GROUP), generator=g)
        scale = torch.exp2(exponents.float()).to(torch.float8_e8m0fnu)
        return (x.codes, x.scale, weight, scale), dict(out_dtype=out_dtype)

    return draw_product


def attention_inputs(
    b: int, t: int, h: int, d: int, rows: int, listed: int, dtype: torch.dtype, *,
    missing: float = 0.3, sharp: float = 1.0, sink: float = 1.0,
):  # fmt: skip
    """`missing` of the slots are -1; from 1.0 up, all are."""

    def inputs(g):
        slots = torch.randint(0, rows, (b, t, listed), generator=g, dtype=torch.int32)
        slots = slots.masked_fill(torch.rand(b, t, listed, generator=g) < missing, -1)
        if missing < 1.0 and t > 1:
            slots[:, 0] = -1  # the first query has no slot at all
        return (
            normal(g, b, t, h, d, dtype=dtype, by=sharp), normal(g, b, rows, d, dtype=dtype), slots,
            normal(g, h, by=sink),
        ), dict(scale=d**-0.5)  # fmt: skip

    return inputs


def edge_cases() -> Iterator[Case]:
    """Small sizes: every edge of every kernel, for any target."""
    bf16, f32 = torch.bfloat16, torch.float32
    args = released_args()
    n, iters, eps = args.hc_mult, args.hc_sinkhorn_iters, args.hc_eps
    for tokens in TOKENS:
        yield Case("hc_split_sinkhorn", f"{tokens} tokens", weights_inputs(tokens, n, iters, eps, 1.0))
        yield Case("hc_read", f"{tokens} tokens, d 96", read_inputs(tokens, n, 96, bf16))
        yield Case("hc_write", f"{tokens} tokens, d 96", write_inputs(tokens, n, 96, bf16))
        yield Case("fp8_quantise", f"{tokens} tokens, 96 features", rounding_inputs(tokens, 96, FP8_GROUP, bf16))
        yield Case("fp8_round", f"{tokens} tokens, 96 features", rounding_inputs(tokens, 96, FP8_GROUP, bf16))
        yield Case("fp4_e8m0_round", f"{tokens} tokens, 96 features", rounding_inputs(tokens, 96, FP4_GROUP, bf16))
        yield Case("fp4_e4m3_round", f"{tokens} tokens, 96 features", rounding_inputs(tokens, 96, KV_FP4_GROUP, bf16))
        yield Case("fp8_gemm", f"{tokens} rows, 80 x 96", product_inputs("fp8_gemm", tokens, 80, 96, bf16))
        yield Case("fp4_gemm", f"{tokens} rows, 80 x 96", product_inputs("fp4_gemm", tokens, 80, 96, bf16))
        yield Case("sparse_attention", f"{tokens} queries", attention_inputs(1, tokens, 6, 32, 40, 20, bf16))
        yield Case("engram_gate", f"{tokens} tokens, d 96", gate_inputs(tokens, n, 96, bf16, args.norm_eps))
    for spread in (4.0, 8.0):
        yield Case("hc_split_sinkhorn", f"logits of deviation {spread}", weights_inputs(200, n, iters, eps, spread))
    for size in (30.0, 80.0):
        yield Case("hc_split_sinkhorn", f"logits +-{size}", extreme_weights_inputs(200, n, iters, eps, size))
    yield Case("hc_split_sinkhorn", "3 streams, 4 rounds, eps 0.005", weights_inputs(50, 3, 4, 0.005, 1.0))
    yield Case("hc_split_sinkhorn", "one round", weights_inputs(50, n, 1, eps, 1.0))
    yield Case("hc_read", "float32, d 100", read_inputs(7, n, 100, f32))
    yield Case("hc_write", "float32, d 100", write_inputs(7, n, 100, f32))
    yield Case("hc_write", "3 streams", write_inputs(7, 3, 64, bf16))
    for op, group, step in (
        ("fp8_quantise", FP8_GROUP, 2.0**-7), ("fp8_round", FP8_GROUP, 2.0**-7),
        ("fp4_e8m0_round", FP4_GROUP, 2.0**-3), ("fp4_e4m3_round", KV_FP4_GROUP, 2.0**-3),
    ):  # fmt: skip
        yield Case(op, "every bfloat16, in order", every_bfloat16_inputs(group, bf16, False))
        yield Case(op, "every bfloat16, shuffled", every_bfloat16_inputs(group, bf16, True))
        yield Case(op, "ties", tie_inputs(group, step, bf16))
        yield Case(op, "float32", rounding_inputs(64, 96, group, f32))
    yield Case("fp8_gemm", "float32 result", product_inputs("fp8_gemm", 17, 48, 320, f32))
    yield Case("fp4_gemm", "float32 result", product_inputs("fp4_gemm", 17, 48, 320, f32))
    for op in ("fp8_gemm", "fp4_gemm"):
        yield Case(op, "one step: 7 rows, 40 x 32", product_inputs(op, 7, 40, 32, bf16))
        yield Case(op, "one step: 300 rows, 40 x 64", product_inputs(op, 300, 40, 64, bf16))
    yield Case("sparse_attention", "all slots missing", attention_inputs(1, 3, 6, 32, 40, 20, bf16, missing=1.0))
    yield Case("sparse_attention", "130 slots, 2 batches", attention_inputs(2, 3, 3, 32, 150, 130, bf16))
    yield Case("sparse_attention", "no listed slot", attention_inputs(1, 2, 6, 32, 40, 0, bf16))
    yield Case("sparse_attention", "sharp queries", attention_inputs(1, 4, 6, 32, 150, 130, bf16, sharp=8.0))
    yield Case("sparse_attention", "sinks of deviation 30", attention_inputs(1, 4, 6, 32, 40, 20, bf16, sink=30.0))
    yield Case("engram_gate", "zero keys and streams", gate_inputs(6, n, 96, bf16, args.norm_eps, zero=True))
    yield Case("engram_gate", "float32, d 100", gate_inputs(7, n, 100, f32, args.norm_eps))


def released_cases(tokens: tuple[int, ...]) -> Iterator[Case]:
    """The released widths at these token counts, timed on CUDA."""
    bf16 = torch.bfloat16
    args = released_args()
    n, d = args.hc_mult, args.dim
    listed = args.window_size + args.index_topk
    index_width = args.index_n_heads * args.index_head_dim
    for t in tokens:
        label = f"released, {t} tokens"
        yield Case(
            "hc_split_sinkhorn", label, weights_inputs(t, n, args.hc_sinkhorn_iters, args.hc_eps, 1.0)
        )
        yield Case("hc_read", label, read_inputs(t, n, d, bf16))
        yield Case("hc_write", label, write_inputs(t, n, d, bf16))
        yield Case("fp8_quantise", label, rounding_inputs(t, d, FP8_GROUP, bf16))
        yield Case("fp8_round", label, rounding_inputs(t, args.head_dim, FP8_GROUP, bf16))
        yield Case("fp4_e8m0_round", label, rounding_inputs(t, index_width, FP4_GROUP, bf16))
        yield Case("fp4_e4m3_round", label, rounding_inputs(t, args.head_dim, KV_FP4_GROUP, bf16))
        for name, (storage, outputs, inputs) in matrix_shapes(args).items():
            if name in ("wo_b", "expert_w1", "expert_w2"):
                op = f"{storage}_gemm"
                yield Case(op, f"{name}, {t} rows", product_inputs(op, t, outputs, inputs, bf16))
        queries = min(t, 512)  # the definition gathers every listed row in float64
        rows = args.window_size + max(t, listed)
        yield Case(
            "sparse_attention", f"released, {queries} queries, {rows} rows",
            attention_inputs(1, queries, args.n_heads, args.head_dim, rows, listed, bf16, missing=0.05),
        )  # fmt: skip
        yield Case("engram_gate", label, gate_inputs(t, n, d, bf16, args.norm_eps))
