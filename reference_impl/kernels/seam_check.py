"""Agreement of a seam with float64: seeded inputs, and the distance of each output from the exact one.

An output is compared with what float64 makes of the inputs of its own step: the new streams of the bfloat16 inputs, the
rest of the new streams as they came out, rounded. Distances of bfloat16 outputs are in their units in the last place,
after the rounding that float32 sums may have where terms cancel.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import ops
from .seam import SeamResult

FLOAT32_SUM = 2.0**-22  # error of a float32 sum of five products, relative to the sum of their magnitudes
COEFFICIENT_ERROR = 1e-5  # relative
STREAM_ULPS = 1.0
NORMED_ULPS = 2.0  # one rounding of the read, which the norm can move into the next binade, and one of the result
CHUNK = 1024  # tokens compared at once


class SeamInputs(NamedTuple):
    """The tensors of `hc_seam`, in its order."""

    streams: Tensor
    output: Tensor
    writing: Tensor
    combination: Tensor
    reading: Tensor
    fn: Tensor
    scale: Tensor
    base: Tensor
    gain: Tensor

    def rows(self, part: slice) -> SeamInputs:
        """The same seam for some of the tokens."""
        return SeamInputs(*(tensor[part] for tensor in self[:5]), *self[5:])


@dataclasses.dataclass(frozen=True)
class Agreement:
    """Largest distances from float64 over all tokens."""

    coefficient_error: float  # of reading, writing and combination, relative
    stream_ulps: float
    stream_flips: float  # share of the new streams' values that are not the exact ones rounded
    normed_ulps: float
    complete: bool  # no value is a NaN: all were written

    @property
    def passed(self) -> bool:
        return (
            self.complete
            and self.coefficient_error <= COEFFICIENT_ERROR
            and self.stream_ulps <= STREAM_ULPS
            and self.normed_ulps <= NORMED_ULPS
        )


def draw(tokens: int, d: int, *, n: int = 4, seed: int = 0, device: str | torch.device = "cpu") -> SeamInputs:
    """Seeded inputs of ordinary size: mix numbers of order 1, coefficients as a sublayer would have left them."""
    generator = torch.Generator(device).manual_seed(seed)

    def normal(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.empty(shape, device=device, dtype=dtype).normal_(generator=generator)

    num_mixes = (2 + n) * n
    return SeamInputs(
        streams=normal(tokens, n, d, dtype=torch.bfloat16), output=normal(tokens, d, dtype=torch.bfloat16),
        writing=2 * torch.sigmoid(normal(tokens, n)), combination=torch.softmax(2 * normal(tokens, n, n), -2),
        reading=torch.sigmoid(normal(tokens, n)), fn=normal(num_mixes, n * d) * (n * d) ** -0.5,
        scale=torch.tensor([0.8, 1.1, 1.3], device=device), base=normal(num_mixes),
        gain=(1 + 0.2 * normal(d)).to(torch.bfloat16),
    )  # fmt: skip


def poison(result: SeamResult) -> None:
    """Fill every output with NaN, so that a value which is never written shows."""
    for tensor in (result.streams, result.normed, *result.weights):
        tensor.fill_(float("nan"))


def ulp(exact: Tensor) -> Tensor:
    """[...] float64 -> [...]: a bfloat16's unit in the last place there."""
    return torch.exp2(torch.floor(torch.log2(exact.abs().clamp_min(2.0**-126))) - 7)


def ulps(got: Tensor, exact: Tensor, magnitude: Tensor, coarse: Tensor | float = 0.0) -> float:
    """-> the largest distance of bfloat16 values, in ulps, past the float32 rounding of terms of this magnitude."""
    distance = (got.double() - exact).abs() - FLOAT32_SUM * magnitude - coarse
    return float((distance.clamp_min(0) / ulp(exact)).max())


def relative(got: Tensor, exact: Tensor) -> float:
    return float(((got.double() - exact).abs() / exact.abs().clamp_min(2.0**-126)).max())


def chunk_agreement(
    inputs: SeamInputs, result: SeamResult, *, n: int, iters: int, hc_eps: float, norm_eps: float
) -> Agreement:
    wide = SeamInputs(*(tensor.double() for tensor in inputs))
    exact = ops.hc_write(wide.streams, wide.output, wide.writing, wide.combination)
    magnitude = ops.hc_write(wide.streams.abs(), wide.output.abs(), wide.writing.abs(), wide.combination.abs())
    stream_ulps = ulps(result.streams, exact, magnitude)
    flips = float((result.streams != exact.to(result.streams.dtype)).double().mean())

    new = result.streams.double()
    mixes = ops.hc_mix_projection(new, wide.fn, eps=norm_eps)
    weights = ops.hc_split_sinkhorn(mixes, wide.scale, wide.base, n=n, iters=iters, eps=hc_eps)
    error = max(relative(got, own) for got, own in zip(result.weights, weights, strict=True))

    read = ops.hc_read(new, wide.reading)
    gain = wide.gain.abs() * torch.rsqrt(read.square().mean(-1, keepdim=True) + norm_eps)
    normed = wide.gain.sign() * gain * read
    # The read is rounded to bfloat16 before the norm. Half its unit is at most one unit of the result, which the bound
    # has room for, except where the read is subnormal and its unit coarse.
    coarse = (gain * ulp(read) / 2 - ulp(normed)).clamp_min(0)
    magnitude = gain * ops.hc_read(new.abs(), wide.reading.abs())
    normed_ulps = ulps(result.normed, normed, magnitude, coarse)
    complete = not any(bool(tensor.isnan().any()) for tensor in (result.streams, result.normed, *result.weights))
    return Agreement(error, stream_ulps, flips, normed_ulps, complete)


def agreement(
    inputs: SeamInputs, result: SeamResult, *, n: int, iters: int, hc_eps: float, norm_eps: float
) -> Agreement:
    """Compare a seam's outputs [T, ...] with float64. Memory for CHUNK tokens in float64 is needed at a time."""
    tokens = inputs.output.shape[0]
    parts = []
    for start in range(0, tokens, CHUNK):
        part = slice(start, start + CHUNK)
        own = SeamResult(
            result.streams[part], result.normed[part], ops.StreamWeights(*(tensor[part] for tensor in result.weights))
        )
        parts.append(chunk_agreement(inputs.rows(part), own, n=n, iters=iters, hc_eps=hc_eps, norm_eps=norm_eps))
    sizes = [min(CHUNK, tokens - start) for start in range(0, tokens, CHUNK)]
    return Agreement(
        coefficient_error=max(part.coefficient_error for part in parts),
        stream_ulps=max(part.stream_ulps for part in parts),
        stream_flips=sum(part.stream_flips * size for part, size in zip(parts, sizes, strict=True)) / tokens,
        normed_ulps=max(part.normed_ulps for part in parts),
        complete=all(part.complete for part in parts),
    )


def measure(tokens: int, target: Any, rate: float) -> dict[str, Any]:
    """-> agreement, time and bytes of one seam at the released width; `rate` is the bytes a second of a copy."""
    from .check import median_microseconds
    from .released import released_args
    from .seam import hc_seam

    args = released_args()
    constants = dict(n=args.hc_mult, iters=args.hc_sinkhorn_iters, hc_eps=args.hc_eps, norm_eps=args.norm_eps)
    inputs = draw(tokens, args.dim, n=args.hc_mult, device="cuda")
    result = hc_seam(*inputs, **constants, target=target)
    found = agreement(inputs, result, **constants)
    microseconds, _ = median_microseconds(lambda: hc_seam(*inputs, **constants, target=target))
    moved = (2 * args.hc_mult + 2) * args.dim * 2 * tokens
    copy = moved / rate * 1e6
    return {
        "passed": found.passed,
        "expected": f"coefficients within {COEFFICIENT_ERROR:g}, streams {STREAM_ULPS} and input {NORMED_ULPS} ulp",
        "actual": f"{found.coefficient_error:.2e}, {found.stream_ulps:.2f} and {found.normed_ulps:.2f} ulp",
        "detail": (
            f"{tokens:,} tokens in one launch: {microseconds:.1f} µs for {moved / 1e6:,.0f} MB of streams, "
            f"{100 * copy / microseconds:.0f} % of the rate of a copy; coefficients within "
            f"{found.coefficient_error:.1e} of float64, streams within {found.stream_ulps:.2f} ulp"
        ),
    }
