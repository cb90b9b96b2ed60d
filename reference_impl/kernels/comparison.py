"""Comparison of a twin with its definition, which runs on the same inputs, in float64 where the operation allows it.

A tolerance is a bound on rounding, not a fitted number: the `unit` of the result's type times the exact value, plus a
few float32 units times the sum of the terms' magnitudes. Roundings are compared bit for bit.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

from .. import ops
from ..ops.engram import MATCH_FLOOR

UNIT = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-8}  # largest relative error of one rounding to nearest
FLOAT32_TERMS = 16 * UNIT[torch.float32]  # a float32 sum, relative to the sum of its terms' magnitudes
PRODUCT = 1e-5  # a float32 product relative to the largest result, as the published fixtures measured it
SINKHORN = 1e-6  # absolute, as the published fixtures measured it for float32

Constants = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Comparison:
    """How a twin's results compare with the definition; it passes with `worst` up to 1."""

    error: float  # largest absolute difference
    worst: float  # largest error over its tolerance
    unequal: int  # values that differ from the definition run in the inputs' own type
    values: int

    @property
    def passed(self) -> bool:
        return self.worst <= 1.0


def compare(op: str, args: tuple[Tensor, ...], constants: Constants, results: Any) -> Comparison:
    """Compare a twin's results with the definition `op` on the same arguments. ValueError for another shape or type."""
    plain = getattr(ops, op)(*args, **constants)
    results, plain = as_tuple(results), as_tuple(plain)
    exact, tolerances = EXACT[op](args, constants, plain)
    error = worst = 0.0
    unequal = values = 0
    for result, own, reference, tolerance in zip(results, plain, exact, tolerances, strict=True):
        if result.shape != own.shape or result.dtype != own.dtype:
            raise ValueError(
                f"{op}: the twin gives {tuple(result.shape)} {result.dtype}, "
                f"the operation {tuple(own.shape)} {own.dtype}"
            )
        if not result.numel():
            continue
        same = bits(result) == bits(own)
        wide, exact_value = result.double(), reference.double()
        difference = torch.where(wide == exact_value, 0.0, (wide - exact_value).abs())  # equal infinities agree
        if tolerance is None:
            ratio = torch.where(same, 0.0, torch.inf)
        else:
            ratio = torch.where(difference == 0, 0.0, difference / tolerance)
        error = max(error, float(difference.nan_to_num(nan=torch.inf).max()))
        worst = max(worst, float(ratio.nan_to_num(nan=torch.inf).max()))
        unequal += int((~same).sum())
        values += result.numel()
    return Comparison(error, worst, unequal, values)


def as_tuple(results: Any) -> tuple[Tensor, ...]:
    return results if isinstance(results, tuple) else (results,)


def bits(x: Tensor) -> Tensor:
    """[...] -> [...]: the same bytes as integers, so that zeros of both signs differ."""
    return x.view({1: torch.uint8, 2: torch.int16, 4: torch.int32}[x.element_size()])


def doubled(args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(arg.double() if arg.is_floating_point() else arg for arg in args)


# How exact results and tolerances come about, an operation each: (args, constants, plain) -> exact, tolerances.
# A tolerance of None asks for the same bits.


def exact_bits(args, constants, plain):
    """Roundings: every bit, that of a zero's sign too; no tolerance."""
    return plain, (None,) * len(plain)


def exact_weights(args, constants, plain):
    exact = ops.hc_split_sinkhorn(*doubled(args), **constants)
    return exact, tuple(torch.full((), SINKHORN, dtype=torch.float64, device=e.device) for e in exact)


def exact_sum(op: str):
    """Sums of products, linear in each argument's magnitude: the terms are as large as the result of the magnitudes."""

    def exact(args, constants, plain):
        function = getattr(ops, op)
        result = function(*doubled(args), **constants)
        terms = function(*(arg.abs() for arg in doubled(args)), **constants)
        return (result,), (UNIT[plain[0].dtype] * result.abs() + FLOAT32_TERMS * terms,)

    return exact


def exact_product(op: str):
    def exact(args, constants, plain):
        result = getattr(ops, op)(*args, **constants | dict(out_dtype=torch.float64))
        largest = result.abs().max() if result.numel() else 0.0
        return (result,), (UNIT[plain[0].dtype] * result.abs() + PRODUCT * largest,)

    return exact


def exact_attention(args, constants, plain):
    """Scores err by float32 units of their terms, probabilities by one rounding, then come the sum and the cast."""
    q, kv, slots, sink = doubled(args)
    exact = ops.sparse_attention(q, kv, slots, sink, **constants)
    if not slots.numel():
        return (exact,), (torch.zeros_like(exact),)
    listed = kv[torch.arange(kv.shape[0], device=kv.device)[:, None, None], slots.clamp(min=0).long()]
    scores = torch.einsum("bthd,btkd->bthk", q, listed) * constants["scale"]
    scores = scores.masked_fill((slots < 0).unsqueeze(2), float("-inf"))
    logits = torch.cat((scores, sink[:, None].expand(*scores.shape[:-1], 1)), -1)  # the sink is one more score
    mass = torch.einsum("bthk,btkd->bthd", torch.softmax(logits, -1)[..., :-1], listed.abs())
    terms = torch.einsum("bthd,btkd->bthk", q.abs(), listed.abs()).amax(-1, keepdim=True) * constants["scale"]
    unit = UNIT[plain[0].dtype]
    return (exact,), (unit * exact.abs() + (unit + FLOAT32_TERMS * (1 + terms)) * mass,)


def exact_gate(args, constants, plain):
    """The gate rises with the match, steeply at 0: a match off by e gives a gate between those of match - e and + e."""
    x, k, query_weight, key_weight = doubled(args)
    exact = ops.engram_gate(x, k, query_weight, key_weight, **constants)
    norms = ((x.square().mean(-1) + constants["eps"]) * (k.square().mean(-1) + constants["eps"])).sqrt()
    root = x.shape[-1] ** 0.5
    match = (x * query_weight * key_weight * k).sum(-1) / norms / root
    terms = (x * query_weight * key_weight * k).abs().sum(-1) / norms / root

    def gate(m: Tensor) -> Tensor:
        return torch.sigmoid(torch.copysign(m.abs().clamp(min=MATCH_FLOOR).sqrt(), m))

    slack = FLOAT32_TERMS * terms
    spread = torch.maximum(gate(match + slack) - exact, exact - gate(match - slack))
    return (exact,), (spread + 4 * UNIT[torch.float32],)


EXACT = {
    "hc_split_sinkhorn": exact_weights,
    "hc_read": exact_sum("hc_read"),
    "hc_write": exact_sum("hc_write"),
    "fp8_quantise": exact_bits,
    "fp8_round": exact_bits,
    "fp4_e8m0_round": exact_bits,
    "fp4_e4m3_round": exact_bits,
    "fp8_gemm": exact_product("fp8_gemm"),
    "fp4_gemm": exact_product("fp4_gemm"),
    "sparse_attention": exact_attention,
    "engram_gate": exact_gate,
}
