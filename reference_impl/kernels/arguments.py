"""Checks of a kernel's arguments: the first wrong one raises ValueError with its name, both values and a way out."""

from __future__ import annotations

import torch
from torch import Tensor

from .targets import is_host


def check_tensor(
    op: str, name: str, tensor: Tensor, shape: tuple[int, ...], dtypes: tuple[torch.dtype, ...], key: str
) -> None:
    """ValueError unless the tensor has this shape, one of these types, and lies where the target runs."""
    if tuple(tensor.shape) != tuple(shape):
        raise ValueError(f"{op}: {name} has shape {tuple(tensor.shape)}, expected {tuple(shape)}; check its axes")
    if tensor.dtype not in dtypes:
        expected = " or ".join(str(dtype) for dtype in dtypes)
        raise ValueError(
            f"{op}: {name} is {tensor.dtype}, expected {expected}; cast it, or use reference_impl.ops.{op}, "
            f"which takes any type"
        )
    device = "cpu" if is_host(key) else "cuda"
    if tensor.device.type != device:
        raise ValueError(
            f"{op}: {name} is on {tensor.device.type}, target {key} runs on {device}; move it, or pass another target"
        )


def check_divides(op: str, what: str, size: int, block: int) -> None:
    """ValueError unless the block divides the size."""
    if size % block:
        raise ValueError(f"{op}: {what} is {size}, not a multiple of {block}; pad it to {-(-size // block) * block}")
