"""Compilation targets: how the one source of a kernel is spelled, compiled and fed on the host and on CUDA.

TileLang 0.1.15 on the host target "c": buffers must be thread-local (a fragment gets no layout and two shared buffers
do not compile), tile loops over such buffers are plain serial loops, and neither bfloat16 nor float8 exist as C types.
Hence `Placement`, bytes in place of float8, and float32 in place of bfloat16 (every bfloat16 is a float32; the wrapper
rounds the result back to nearest even, as the kernel does on CUDA).
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any

import tilelang
import tilelang.language as T
import torch
from torch import Tensor

Target = str | Mapping[str, str]

HOST = "c"
VECTOR_BYTES = 16
# TileLang reads a float's bits through a pointer of another type, which is only defined without strict aliasing.
HOST_FLAGS = ["-O2", "-fno-strict-aliasing"]


@dataclasses.dataclass(frozen=True)
class Placement:
    """The words in which the host's and CUDA's form of a kernel differ."""

    tile_loop: Callable[..., Any]  # loop over the elements of a tile: spread over the threads, or serial
    shared: Callable[..., Any]  # buffer that all threads of a block see
    fragment: Callable[..., Any]  # buffer spread over the threads' registers
    bfloat16: str  # type that carries bfloat16 values


ON_HOST = Placement(tile_loop=T.grid, shared=T.alloc_local, fragment=T.alloc_local, bfloat16="float32")
ON_CUDA = Placement(tile_loop=T.Parallel, shared=T.alloc_shared, fragment=T.alloc_fragment, bfloat16="bfloat16")


def target_key(target: Target) -> str:
    """-> the target as text, so that compiled kernels can be cached by it: "c", "cuda" or a dict's JSON."""
    if isinstance(target, Mapping):
        return json.dumps(dict(target), sort_keys=True)
    return target


def is_host(key: str) -> bool:
    return key == HOST


def placement(key: str) -> Placement:
    return ON_HOST if is_host(key) else ON_CUDA


def compile_program(program: Any, key: str, *, pass_configs: dict[str, Any] | None = None) -> Any:
    """-> the compiled kernel, called with its tensors in order.

    Callers keep it by its constants: TileLang's own cache hashes the whole source again on every look-up.
    """
    if is_host(key):
        return tilelang.compile(program, target=HOST, execution_backend="cython", compile_flags=HOST_FLAGS)
    target = json.loads(key) if key.startswith("{") else key
    return tilelang.compile(program, target=target, pass_configs=pass_configs)


def storage_type(dtype: torch.dtype, key: str) -> str:
    """-> the TileLang type in which tensors of this type reach the kernel."""
    return placement(key).bfloat16 if dtype == torch.bfloat16 else str(dtype).removeprefix("torch.")


def to_storage(x: Tensor, key: str) -> Tensor:
    """[...] -> [...]: as a kernel takes it. Contiguous and at a 16-byte address, since kernels move 16-byte vectors;
    bfloat16 widened to float32 for the host; one-byte types as their bytes.
    """
    if x.dtype in (torch.float8_e4m3fn, torch.float8_e8m0fnu, torch.int8):
        x = x.view(torch.uint8)
    elif x.dtype == torch.bfloat16 and is_host(key):
        x = x.float()
    x = x.contiguous()
    return x.clone() if x.data_ptr() % VECTOR_BYTES else x


def result_like(shape: tuple[int, ...], dtype: torch.dtype, like: Tensor, key: str) -> Tensor:
    """-> an empty tensor for the kernel to fill, on `like`'s device; `.to(dtype)` then narrows a host result."""
    if dtype == torch.bfloat16 and is_host(key):
        dtype = torch.float32
    return torch.empty(shape, dtype=dtype, device=like.device)
