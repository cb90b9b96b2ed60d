# Inputs that tell formulas apart.  At mild inputs a dropped Sinkhorn round changes 4e-16 and two
# swapped epsilons change nothing; a mutant has to survive all of these to be indistinguishable.
"""Regimes: an operation called directly on ordinary, sharp, saturated, tiny and partly zero inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sitegen import schema

#: Regime -> standard deviation of the driven inputs.
SPREAD = {"ordinary": 1.0, "sharp": 4.0, "saturated": 40.0, "tiny": 1e-9}
NAMES = ("model", *SPREAD, "zero-rows")


@dataclass(frozen=True)
class Sample:
    """Values of a component's formula names in one regime."""

    regime: str
    values: Mapping[str, Any]


def samples(
    binding: schema.Binding, captured: Mapping[str, Any], operation: Callable[..., Mapping[str, Any]], seed: int
) -> Iterator[Sample]:
    """Call the operation in float64 in every regime.

    `captured` are the values of one recorded call by argument and result name; the inputs in
    `binding.vary` are redrawn, the others (also sizes and constants) are kept as captured.
    """
    import torch

    fields = {name: path for name, path in binding.bind.items() if "." not in path}
    driven = {fields[name] for name in binding.vary}
    arguments = operation_arguments(operation, captured)
    for number, regime in enumerate((*SPREAD, "zero-rows")):
        generator = torch.Generator().manual_seed(1000 * seed + number)
        inputs = {}
        for name, value in arguments.items():
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                value = value.double()
                if name in driven:
                    drawn = torch.randn(value.shape, generator=generator, dtype=torch.float64)
                    value = drawn * SPREAD.get(regime, 1.0)
                    if regime == "zero-rows" and value.dim() > 1:
                        value[:, ::2] = 0.0
            inputs[name] = value
        results = operation(**inputs)
        everything = {**inputs, **results}
        yield Sample(regime, {name: everything[field] for name, field in fields.items()})


def operation_arguments(operation: Callable[..., Any], captured: Mapping[str, Any]) -> dict[str, Any]:
    """The captured values that are arguments of the operation."""
    import inspect

    return {name: captured[name] for name in inspect.signature(operation).parameters if name in captured}
