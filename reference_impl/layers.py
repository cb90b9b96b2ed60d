"""The leaves of the module tree: matrices by storage type, embedding, norm, head, and what all modules are built with.

Axes: K inputs, N outputs, d width, V vocabulary.
"""

from __future__ import annotations

import dataclasses
import enum

import torch
from torch import Tensor, nn

from .backend import Ops
from .ops import FP4_GROUP, FP8_GROUP


class Storage(enum.Enum):
    """How a matrix is stored; without quantisation all are stored in the one float type."""

    PLAIN = "bf16"
    FP8 = "fp8"
    FP4 = "fp4"


@dataclasses.dataclass(frozen=True)
class Build:
    """What every module is built with: the operations, the types of weights and activations, the device."""

    ops: Ops
    quantise: bool  # False: one float type for all weights and no rounding, for parity in float32 and float64
    dtype: torch.dtype  # of activations and plain weights: bfloat16 when quantised
    device: torch.device

    @property
    def wide(self) -> torch.dtype:
        """Of stream weights, sinks, router biases and rotary phases: at least float32."""
        return torch.promote_types(self.dtype, torch.float32)

    def parameter(self, *shape: int, dtype: torch.dtype) -> nn.Parameter:
        """An uninitialised parameter; every value comes from a checkpoint or from `initialise`."""
        return nn.Parameter(torch.empty(shape, dtype=dtype, device=self.device), requires_grad=False)

    def cache(self, *shape: int, dtype: torch.dtype) -> Tensor:
        """A zeroed cache, to be registered as a buffer that is not part of the checkpoint."""
        return torch.zeros(shape, dtype=dtype, device=self.device)


class Linear(nn.Module):
    """A matrix in one of the storage types. Upstream: Linear, ColumnParallelLinear, RowParallelLinear.

    An FP8 or FP4 matrix rounds its input to FP8 first (report 2.4.4: the model was trained with that rounding).
    `inputs` and `outputs` are the logical sizes: two FP4 codes share a stored byte.
    Differs: one device, so nothing is sharded.
    """

    def __init__(self, inputs: int, outputs: int, build: Build, storage: Storage, *, bias: bool = False) -> None:
        super().__init__()
        self.ops = build.ops
        self.storage = storage if build.quantise else Storage.PLAIN
        if self.storage is Storage.FP8:
            self.weight = build.parameter(outputs, inputs, dtype=torch.float8_e4m3fn)
            blocks = -(-outputs // FP8_GROUP), inputs // FP8_GROUP
            self.scale = build.parameter(*blocks, dtype=torch.float8_e8m0fnu)
        elif self.storage is Storage.FP4:
            self.weight = build.parameter(outputs, inputs // 2, dtype=torch.int8)
            self.scale = build.parameter(outputs, inputs // FP4_GROUP, dtype=torch.float8_e8m0fnu)
        else:
            self.weight = build.parameter(outputs, inputs, dtype=build.dtype)
            self.bias = build.parameter(outputs, dtype=build.dtype) if bias else None

    @property
    def logical_shape(self) -> tuple[int, int]:
        """(outputs, inputs): with two inputs to a stored byte of an FP4 weight."""
        outputs, stored = self.weight.shape
        return outputs, stored * 2 if self.storage is Storage.FP4 else stored

    def forward(self, x: Tensor) -> Tensor:
        """[..., K] -> [..., N] in x's type."""
        if self.storage is Storage.PLAIN:
            return self.ops.linear(x, self.weight, self.bias)
        codes, scale = self.ops.fp8_quantise(x, group=FP8_GROUP)
        product = self.ops.fp8_gemm if self.storage is Storage.FP8 else self.ops.fp4_gemm
        return product(codes, scale, self.weight, self.scale, out_dtype=x.dtype)


class GroupedLinear(Linear):
    """The grouped output projection: stored FP8, used as its exact bf16 value, its input not rounded.

    Differs: dequantised at each use, where upstream does so once at load, so that the stored tensor is the parameter.
    """

    def forward(self, o: Tensor, *, groups: int) -> Tensor:
        """[B, T, H, D] -> [B, T, G, R]."""
        weight = self.weight
        if self.storage is Storage.FP8:
            weight = self.ops.fp8_dequantise(weight, self.scale, out_dtype=o.dtype)
        return self.ops.grouped_output(o, weight, groups=groups)


class WideLinear(nn.Module):
    """A matrix stored in bf16 and used in float32: head, ratio-2 compressor, Markov projection, confidence.

    Differs: widened at each use, where upstream holds a float32 copy, so that the stored tensor is the parameter.
    """

    def __init__(self, inputs: int, outputs: int, build: Build) -> None:
        super().__init__()
        self.ops = build.ops
        self.weight = build.parameter(outputs, inputs, dtype=build.dtype)

    def forward(self, x: Tensor) -> Tensor:
        """[..., K] -> [..., N] in at least float32."""
        return self.ops.linear_fp32(x, self.weight)


class Embedding(nn.Module):
    """A row per token id. Upstream: ParallelEmbedding."""

    def __init__(self, rows: int, dim: int, build: Build) -> None:
        super().__init__()
        self.ops = build.ops
        self.weight = build.parameter(rows, dim, dtype=build.dtype)

    def forward(self, ids: Tensor) -> Tensor:
        """[...] int64 -> [..., d]."""
        return self.ops.embed(ids, self.weight)


class RMSNorm(nn.Module):
    """Root-mean-square norm with a gain."""

    def __init__(self, dim: int, build: Build, *, eps: float) -> None:
        super().__init__()
        self.ops = build.ops
        self.eps = eps
        self.weight = build.parameter(dim, dtype=build.dtype)

    def forward(self, x: Tensor) -> Tensor:
        """[..., d] -> [..., d]."""
        return self.ops.rms_norm(x, self.weight, eps=self.eps)
