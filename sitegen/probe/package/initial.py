# Random values for every parameter and persistent buffer, by a recipe that the spec states: what a
# package draws by itself (zero sinks, zero biases, one routing for all tokens) makes checks vacuous.
"""Fill a model by a recipe."""

from __future__ import annotations

import fnmatch
import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sitegen.schema import Fill

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn


def fill(net: nn.Module, recipe: Sequence[Fill], config: Mapping[str, Any], seed: int) -> None:
    """Draw every tensor of the state dict; a tensor's values depend on its name and the seed alone.

    Raises `ValueError` for a tensor that no rule names and for a rule that names no tensor.
    """
    import torch

    used: set[int] = set()
    with torch.no_grad():
        for name, tensor in net.state_dict().items():
            rule = next((n for n, r in enumerate(recipe) if any(fnmatch.fnmatchcase(name, p) for p in r.names)), None)
            if rule is None:
                raise ValueError(f"no rule of initialise draws the tensor {name}")
            used.add(rule)
            number = int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:7], "big")
            tensor.copy_(drawn(tensor, recipe[rule], config, torch.Generator().manual_seed(number)))
    idle = [", ".join(rule.names) for number, rule in enumerate(recipe) if number not in used]
    if idle:
        raise ValueError(f"a rule of initialise names no tensor: {idle[0]}")


def drawn(tensor: Tensor, rule: Fill, config: Mapping[str, Any], generator: Generator) -> Tensor:
    """Values for one tensor, drawn in float64."""
    import torch

    if rule.below is not None:
        rows = torch.rand((*tensor.shape[:-1], int(config[rule.below])), generator=generator, dtype=torch.float64)
        return rows.argsort(-1)[..., : tensor.shape[-1]]
    deviation = rule.deviation / (tensor.shape[-1] ** 0.5 if rule.fan_in else 1.0)
    return rule.mean + deviation * torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
