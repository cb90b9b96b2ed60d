"""The tensors of a model or a checkpoint folder as one table: name, logical and stored shape, storage type, role.

Module paths are the checkpoint's names, so loading needs no translation. Headers are read without any other library.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import Tensor, nn

PARAMETER, SCALE = "parameter", "scale"
STORAGE = {
    torch.bfloat16: "BF16",
    torch.float32: "F32",
    torch.float64: "F64",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e8m0fnu: "F8_E8M0",
    torch.int8: "I8(packed E2M1)",
}
"""Names as in safetensors headers, but for the FP4 codes, whose two-to-a-byte packing the header does not tell."""


class CheckpointError(ValueError):
    """A checkpoint that does not fit the model; the text names the tensor and both values."""


@dataclasses.dataclass(frozen=True)
class TensorRow:
    """One tensor."""

    name: str
    shape: tuple[int, ...]  # logical: FP4 codes counted one by one
    stored_shape: tuple[int, ...]
    storage: str  # a value of STORAGE
    role: str  # PARAMETER or SCALE

    @property
    def count(self) -> int:
        """Logical elements."""
        return torch.Size(self.shape).numel()

    @property
    def weight(self) -> str | None:
        """Of a scale: the tensor that it scales."""
        return self.name.removesuffix(".scale") + ".weight" if self.role == SCALE else None


def row(name: str, stored_shape: Iterable[int], storage: str) -> TensorRow:
    """-> the row of a tensor; a scale is what ends in `.scale`, packed FP4 doubles the last axis."""
    stored_shape = tuple(stored_shape)
    packed = storage == STORAGE[torch.int8]
    shape = (*stored_shape[:-1], 2 * stored_shape[-1]) if packed else stored_shape
    return TensorRow(name, shape, stored_shape, storage, SCALE if name.endswith(".scale") else PARAMETER)


def tensor_table(model: nn.Module) -> list[TensorRow]:
    """Every tensor of the model that a checkpoint holds, scales included, in module order; works on the meta device."""
    return [row(name, tensor.shape, STORAGE[tensor.dtype]) for name, tensor in model.state_dict().items()]


def folder_table(folder: str | Path) -> list[TensorRow]:
    """Every tensor of a checkpoint (a folder, or one safetensors file), from the headers alone.

    CheckpointError when there is none, a header is unreadable, or two files hold the same name.
    """
    rows: dict[str, TensorRow] = {}
    for file in checkpoint_files(folder):
        for name, entry in read_header(file).items():
            if name in rows:
                raise CheckpointError(f"checkpoint: tensor {name} stands in more than one file of {folder}")
            storage = entry["dtype"].replace("I8", STORAGE[torch.int8]).replace("U8", STORAGE[torch.int8])
            rows[name] = row(name, entry["shape"], storage)
    return list(rows.values())


def checkpoint_files(folder: str | Path) -> list[Path]:
    folder = Path(folder)
    files = sorted(folder.glob("*.safetensors")) if folder.is_dir() else [folder] if folder.is_file() else []
    if not files:
        raise CheckpointError(f"checkpoint: no .safetensors file at {folder}")
    return files


def read_header(file: Path) -> dict[str, dict]:
    """-> name to {dtype, shape, data_offsets}. A safetensors file starts with the header's length in 8 bytes."""
    try:
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if length > file.stat().st_size:
                raise ValueError(f"header of {length} bytes in a file of {file.stat().st_size}")
            header = json.loads(stream.read(length))
        header.pop("__metadata__", None)
        return header
    except (OSError, ValueError, AttributeError) as error:
        raise CheckpointError(f"checkpoint: {file} is not a readable safetensors file: {error}") from error


def differences(model: Iterable[TensorRow], folder: Iterable[TensorRow], *, storage: bool = True) -> list[str]:
    """One line a tensor that only one side has, or whose stored shape or storage type differs."""
    ours, theirs = ({tensor.name: tensor for tensor in side} for side in (model, folder))
    lines = [f"tensor {name}: the model has it, the checkpoint does not" for name in ours if name not in theirs]
    lines += [f"tensor {name}: the checkpoint has it, the model does not" for name in theirs if name not in ours]
    for name in ours.keys() & theirs.keys():
        a, b = ours[name], theirs[name]
        if a.stored_shape != b.stored_shape:
            lines.append(
                f"tensor {name}: shape {list(b.stored_shape)} in the checkpoint, {list(a.stored_shape)} in the model"
            )
        elif storage and a.storage != b.storage:
            lines.append(f"tensor {name}: stored as {b.storage} in the checkpoint, as {a.storage} in the model")
    return sorted(lines)


def load(model: nn.Module, folder: str | Path) -> None:
    """Reads a checkpoint (a folder, or one safetensors file) into the model, in place.

    A model without quantisation takes any float type. CheckpointError when names, shapes or types differ: the
    checkpoint is of another model.
    """
    from safetensors.torch import load_file

    quantised = any(tensor.role == SCALE for tensor in tensor_table(model))
    lines = differences(tensor_table(model), folder_table(folder), storage=quantised)
    if lines:
        more = f"; and {len(lines) - 1} more" if len(lines) > 1 else ""
        raise CheckpointError(f"checkpoint {folder} is of another model: {lines[0]}{more}")
    targets: dict[str, Tensor] = model.state_dict()
    for file in checkpoint_files(folder):
        for name, values in load_file(file).items():
            targets[name].copy_(values)
