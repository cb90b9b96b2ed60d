"""Random weights: every parameter of a model gets values suited to its role, the same for the same seed and name.

Nothing is left at a value that hides a mistake: no zero bias, no unit gain, no equal scales.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from .layers import Linear, Storage
from .ops import FP4_GROUP, FP8_GROUP, fp4_e8m0_quantise, fp8_quantise
from .ops.rounding import E4M3_MAX, power_of_two_above

Draw = Callable[[Tensor, int], Tensor]  # standard normal values, inputs of the matrix -> values


def matrix(normal: Tensor, inputs: int) -> Tensor:
    """Outputs about as large as the inputs."""
    return normal / math.sqrt(inputs)


ROLES: tuple[tuple[str, Draw], ...] = (
    ("norm.weight", lambda normal, _: 1 + 0.3 * normal),
    ("norm1.weight", lambda normal, _: 1 + 0.3 * normal),
    ("norm2.weight", lambda normal, _: 1 + 0.3 * normal),
    ("engram.q_weight", lambda normal, _: 1 + 0.3 * normal),
    ("engram.k_weight", lambda normal, _: 1 + 0.3 * normal),
    ("_fn", matrix),  # mix numbers of about 1
    ("_base", lambda normal, _: 0.7 * normal),
    ("_scale", lambda normal, _: 0.8 + 0.4 * torch.tanh(normal)),
    ("attn_sink", lambda normal, _: normal),
    ("gate.bias", lambda normal, _: 0.3 * normal),
    ("gate.bias_vl", lambda normal, _: 0.3 * normal),
    (".bias", lambda normal, _: 0.2 * normal),
    ("embed.weight", lambda normal, _: normal),  # token rows, Markov rows, Engram rows
    ("image_start", lambda normal, _: normal),
    ("image_end", lambda normal, _: normal),
    ("image_newline", lambda normal, _: normal),
    (".weight", matrix),
)
"""Name endings, the first that fits counts."""


def randomise(model: nn.Module, seed: int) -> None:
    """Fills every parameter and persistent buffer in place, on the model's device; caches are left as they are.

    A quantised weight is the rounding of what the float model would hold under the same seed and name.
    Raises ValueError for a tensor that no role fits.
    """
    for prefix, module in model.named_modules():
        own = dict(module.named_parameters(recurse=False))
        own |= {k: v for k, v in module.named_buffers(recurse=False) if k not in module._non_persistent_buffers_set}
        scale = own.pop("scale", None)
        for name, tensor in own.items():
            full = f"{prefix}.{name}" if prefix else name
            shape = module.logical_shape if isinstance(module, Linear) and name == "weight" else tuple(tensor.shape)
            values = draw(full, shape, seed)
            if scale is None:
                tensor.copy_(values)
            else:
                codes, scales = quantise_weight(values, module)
                store(tensor, codes)
                store(scale, scales)


def draw(name: str, shape: tuple[int, ...], seed: int) -> Tensor:
    """-> float32 values for the tensor of that name; on the CPU, so that every device gets the same."""
    digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))
    normal = torch.randn(shape, generator=generator)
    for ending, values in ROLES:
        if name.endswith(ending):
            return values(normal, shape[-1])
    raise ValueError(f"initialise: no role for tensor {name} of shape {list(shape)}; add its ending to ROLES")


def quantise_weight(values: Tensor, module: nn.Module) -> tuple[Tensor, Tensor]:
    """[N, K] -> codes and scales in the module's storage type."""
    if isinstance(module, Linear) and module.storage is Storage.FP8:
        return quantise_blocks(values)
    if isinstance(module, Linear):
        codes, scale = fp4_e8m0_quantise(values, group=FP4_GROUP)
        return codes.view(torch.int8), scale
    return fp8_quantise(values, group=FP8_GROUP)  # Engram rows


def quantise_blocks(values: Tensor) -> tuple[Tensor, Tensor]:
    """[N, K] -> E4M3 [N, K], E8M0 [ceil(N/32), K/32]: one power-of-two scale a block of 32 x 32."""
    outputs, inputs = values.shape
    padded = nn.functional.pad(values, (0, 0, 0, -outputs % FP8_GROUP))
    blocks = padded.unflatten(0, (-1, FP8_GROUP)).unflatten(2, (-1, FP8_GROUP))  # [N/32, 32, K/32, 32]
    amax = blocks.abs().amax((1, 3), keepdim=True).clamp(min=torch.finfo(torch.float32).tiny * E4M3_MAX)
    scale = power_of_two_above(amax / E4M3_MAX)
    codes = (blocks / scale).flatten(2).flatten(0, 1)[:outputs].to(torch.float8_e4m3fn)
    return codes, scale[:, 0, :, 0].to(torch.float8_e8m0fnu)


def store(target: Tensor, source: Tensor) -> None:
    """Copies bytes: there is no arithmetic on FP8 types."""
    target.view(torch.uint8).copy_(source.view(torch.uint8))
