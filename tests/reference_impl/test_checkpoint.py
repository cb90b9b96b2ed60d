"""Reading checkpoints: tables from headers, loading, and what is said of a checkpoint of another model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from tiny_models import prompt, tiny_model

from reference_impl.checkpoint import CheckpointError, differences, folder_table, load, tensor_table
from reference_impl.initialise import randomise


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint in two files, with the index that no reader needs."""
    folder = tmp_path_factory.mktemp("checkpoint")
    tensors = tiny_model(quantise=True).state_dict()
    names = sorted(tensors)
    save_file({name: tensors[name] for name in names[::2]}, folder / "model-1.safetensors")
    save_file({name: tensors[name] for name in names[1::2]}, folder / "model-2.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {}}))
    return folder


def test_the_headers_tell_what_the_model_has(saved: Path) -> None:
    model = tiny_model(quantise=True)
    assert differences(tensor_table(model), folder_table(saved)) == []
    assert {row.name: row for row in folder_table(saved)} == {row.name: row for row in tensor_table(model)}


def test_a_loaded_model_gives_the_same_logits(saved: Path) -> None:
    model = tiny_model(quantise=True)
    expected = model(prompt(9), 0).logits
    randomise(model, seed=5)
    assert not torch.equal(model(prompt(9), 0).logits, expected)
    load(model, saved)
    assert torch.equal(model(prompt(9), 0).logits, expected)


def test_a_float_model_takes_any_float_type(tmp_path: Path) -> None:
    model = tiny_model()
    save_file({name: t.to(torch.bfloat16) for name, t in model.state_dict().items()}, tmp_path / "weights.safetensors")
    load(model, tmp_path / "weights.safetensors")
    assert torch.equal(model.embed.weight, model.embed.weight.bfloat16().double())


CHANGES = {
    "a tensor too few": (
        lambda t: t.pop("norm.weight"), "tensor norm.weight: the model has it, the checkpoint does not"
    ),
    "a tensor too many": (
        lambda t: t.update({"zz": torch.zeros(1)}), "tensor zz: the checkpoint has it, the model does not"
    ),
    "another shape": (
        lambda t: t.update({"head.weight": torch.zeros(3, 96).bfloat16()}),
        r"tensor head.weight: shape \[3, 96\] in the checkpoint, \[211, 96\] in the model",
    ),
    "another type": (
        lambda t: t.update({"norm.weight": torch.zeros(96)}),
        "tensor norm.weight: stored as F32 in the checkpoint, as BF16 in the model",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
def test_a_checkpoint_of_another_model(tmp_path: Path, case: str) -> None:
    change, message = CHANGES[case]
    model = tiny_model(quantise=True)
    tensors = dict(model.state_dict())
    change(tensors)
    save_file(tensors, tmp_path / "model.safetensors")
    before = model.norm.weight.clone()
    with pytest.raises(CheckpointError, match=message):
        load(model, tmp_path)
    assert torch.equal(model.norm.weight, before), "a refused checkpoint must leave the model alone"


def test_several_differences_are_counted(tmp_path: Path) -> None:
    save_file({"zz": torch.zeros(1)}, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"is of another model: .*; and \d+ more"):
        load(tiny_model(), tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "no .safetensors file"), (b"\xff" * 20, "not a readable safetensors file"), (b"", "not a readable")],
    ids=["no file", "not safetensors", "empty"],
)
def test_unreadable_folders(tmp_path: Path, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(CheckpointError, match=message):
        folder_table(tmp_path)


def test_a_name_in_two_files(saved: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        save_file({"norm.weight": torch.zeros(1)}, tmp_path / f"{name}.safetensors")
    with pytest.raises(CheckpointError, match="norm.weight stands in more than one file"):
        folder_table(tmp_path)
