"""How far a tensor is from its record, and whether that is near enough.

Every tolerance is the one that the fixtures' README measured and names; none is derived from this implementation.
"""

from __future__ import annotations

import dataclasses
import enum

import torch
from torch import Tensor


class Verdict(enum.Enum):
    """`REPORT` is measured and shown, and decides nothing."""

    PASS = "pass"
    MISS = "MISS"
    REPORT = "report"


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """What may differ; discrete tensors must be equal under every one."""

    name: str
    relative: float = 0.0  # of the record's largest magnitude
    absolute: float = 0.0
    differing: float = 1.0  # largest share of values that may differ at all
    steps: int | None = None  # largest distance in steps of the number format
    judged: bool = True  # False: report only


EXACT = Tolerance("equal", differing=0.0)
FLOAT32 = Tolerance("1e-4 of max", relative=1e-4)
FLOAT64 = Tolerance("1e-9 of max", relative=1e-9)
FLOAT64_AGAINST_FLOAT32 = Tolerance("1e-5 of max", relative=1e-5)
MODULE = Tolerance("99.9% equal, 1% of max", relative=1e-2, differing=1e-3)
MODULE_FLOAT32 = Tolerance("2e-6 of max", relative=2e-6)
END_TO_END = Tolerance("1e-2 of max", relative=1e-2)
REPORTED = Tolerance("reported", judged=False)


@dataclasses.dataclass(frozen=True)
class Line:
    """One compared tensor."""

    run: str
    name: str
    absolute: float
    relative: float
    tolerance: str
    verdict: Verdict
    note: str = ""

    def __str__(self) -> str:
        figures = f"abs {self.absolute:.2e}  rel {self.relative:.2e}  tolerance {self.tolerance}"
        note = f"  ({self.note})" if self.note else ""
        return f"{self.verdict.value:6}  {self.run:18} {self.name:58} {figures}{note}"


def compare(run: str, name: str, actual: Tensor, expected: Tensor, tolerance: Tolerance) -> Line:
    """-> the line of one tensor; another element count is a miss that tells both shapes."""
    if actual.numel() != expected.numel():
        note = f"shape {list(actual.shape)}, recorded {list(expected.shape)}"
        return Line(run, name, float("inf"), float("inf"), tolerance.name, Verdict.MISS, note)
    if not expected.is_floating_point() and tolerance.judged:
        tolerance = EXACT
    actual = actual.reshape(expected.shape)
    a, e = actual.double(), expected.double()
    same = (a == e) | (a.isnan() & e.isnan())
    difference = torch.where(same, 0.0, (a - e).abs()).nan_to_num(nan=float("inf"))
    absolute = difference.max().item() if difference.numel() else 0.0
    finite = e[e.isfinite()].abs()
    largest = finite.max().item() if finite.numel() else 0.0
    relative = absolute / largest if largest else (float("inf") if absolute else 0.0)
    differing = (~same).double().mean().item() if same.numel() else 0.0
    near = absolute <= max(tolerance.absolute, tolerance.relative * largest) or tolerance.steps is not None
    if tolerance.steps is not None:
        near = number_steps(actual, expected) <= tolerance.steps
    passed = near and differing <= tolerance.differing if tolerance is not EXACT else same.all().item()
    verdict = (Verdict.PASS if passed else Verdict.MISS) if tolerance.judged else Verdict.REPORT
    note = f"{differing:.2%} differ" if differing and (tolerance.differing < 1 or not tolerance.judged) else ""
    return Line(run, name, absolute, relative, tolerance.name, verdict, note)


def number_steps(a: Tensor, b: Tensor) -> int:
    """-> the largest distance in representable bfloat16 numbers."""
    if not a.numel():
        return 0

    def order(x: Tensor) -> Tensor:
        bits = x.to(torch.bfloat16).view(torch.int16).int()
        return torch.where(bits < 0, -32768 - bits, bits)

    return int((order(a) - order(b)).abs().max())


def missing(run: str, name: str, reason: str) -> Line:
    """A recorded tensor that the run did not produce: a miss."""
    return Line(run, name, float("inf"), float("inf"), "-", Verdict.MISS, reason)
