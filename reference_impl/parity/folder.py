"""A folder of fixtures: recorded tensors with their manifests, the configuration, the token map.

Layout: `<set>.safetensors` with a `<set>.json` of the same name that tells each tensor's shape and type;
`tiny_config.json`; `token_folding.json`. The sets are tiny_float and tiny_quant with their `_weights`, primitives and
sinkhorn.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..config import ModelArgs
from ..folding import fold_vocabulary

SETS = ("primitives", "sinkhorn", "tiny_float", "tiny_quant")


class FixtureError(ValueError):
    """A folder that cannot be compared; the text names file and tensor and both values."""


@dataclasses.dataclass(frozen=True)
class Recorded:
    """One set: tensors by name, and what its manifest says of each."""

    file: Path
    tensors: dict[str, Tensor]
    manifest: dict[str, dict[str, Any]]
    statistics: dict[str, Any]

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.tensors:
            raise FixtureError(f"{self.file.name}: no tensor {name}, which the run needs")
        return self.tensors[name]

    def get(self, name: str) -> Tensor | None:
        return self.tensors.get(name)

    def parameters(self, name: str) -> dict[str, Any]:
        """The `params` of a tensor's manifest entry."""
        if "params" not in self.manifest.get(name, {}):
            raise FixtureError(f"{self.file.with_suffix('.json').name}: tensor {name} has no params")
        return self.manifest[name]["params"]


def read_json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FixtureError(f"cannot read {file}: {error}") from error


def read_set(folder: Path, name: str) -> Recorded:
    """FixtureError unless manifest and tensors agree in names, shapes and types."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    file = folder / f"{name}.safetensors"
    document = read_json(file.with_suffix(".json"))
    try:
        tensors = load_file(file)
    except (OSError, SafetensorError) as error:
        raise FixtureError(f"cannot read {file}: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("tensors"), dict):
        raise FixtureError(f"{file.with_suffix('.json')}: expected an object with `tensors`")
    manifest = document["tensors"]
    for tensor in manifest.keys() | tensors.keys():
        if tensor not in tensors:
            raise FixtureError(f"{file.name}: tensor {tensor} is missing; the manifest lists it")
        if tensor not in manifest:
            raise FixtureError(f"{file.name}: tensor {tensor} is not listed in the manifest")
        entry = manifest[tensor]
        shape, kind = entry.get("s", entry.get("shape")), entry.get("t", entry.get("dtype"))
        actual = list(tensors[tensor].shape), str(tensors[tensor].dtype).removeprefix("torch.")
        if (shape, kind) != actual:
            raise FixtureError(
                f"{file.name}: tensor {tensor} is {actual[1]} {actual[0]}, the manifest says {kind} {shape}"
            )
    return Recorded(file, tensors, manifest, document.get("statistics", {}))


def read_args(folder: Path) -> ModelArgs:
    file = folder / "tiny_config.json"
    if not file.is_file():
        raise FixtureError(f"{folder}: no tiny_config.json")
    return ModelArgs.from_json(file)


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """The token strings of a folder, their recorded compressed ids, and those of this implementation."""

    recorded: Tensor
    folded: Tensor


def read_vocabulary(folder: Path) -> Vocabulary:
    document = read_json(folder / "token_folding.json")
    for key in ("decoded", "raw", "compressed"):
        if key not in document:
            raise FixtureError(f"token_folding.json: no {key}")
    return Vocabulary(
        torch.tensor(document["compressed"]), torch.tensor(fold_vocabulary(document["decoded"], document["raw"]))
    )
