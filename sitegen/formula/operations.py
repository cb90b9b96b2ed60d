# What the operators and functions of the language do to float64 tensors.  torch is imported when one
# is used, so that the static level runs without it.
"""Operators, functions and reductions of formulas on float64 tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


def _merge(function: str) -> Callable[[], Callable[..., Tensor]]:
    def load() -> Callable[..., Tensor]:
        import torch

        return getattr(torch, function)

    return load


MERGE = {"sum": _merge("add"), "prod": _merge("mul"), "max": _merge("maximum"), "min": _merge("minimum")}

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: (a / b).floor(),
    "%": lambda a, b: a.remainder(b),
    "**": lambda a, b: a.pow(b),
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
}


def elementwise_function(name: str) -> Callable[..., Tensor]:
    """The elementwise function of that name on float64 tensors."""
    import torch

    special: dict[str, Callable[..., Any]] = {
        # log(1 + exp(x)); torch's own softplus turns linear above a threshold
        "softplus": lambda x: torch.logaddexp(x, torch.zeros_like(x)),
        "silu": lambda x: x * torch.sigmoid(x),
        "gelu": lambda x: 0.5 * x * (1.0 + torch.erf(x / math.sqrt(2.0))),
        "max": lambda *parts: _fold(torch.maximum, parts),
        "min": lambda *parts: _fold(torch.minimum, parts),
        "clamp": lambda x, low, high: torch.minimum(torch.maximum(x, low), high),
        "delta": lambda a, b: (a == b).to(torch.float64),
    }
    return special.get(name) or getattr(torch, name)


def _fold(function: Callable[[Any, Any], Any], parts: Sequence[Any]) -> Any:
    result = parts[0]
    for part in parts[1:]:
        result = function(result, part)
    return result
