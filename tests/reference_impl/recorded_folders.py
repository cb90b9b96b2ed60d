"""Writes a fixture folder from this implementation itself, for any configuration: what parity must read and pass."""

from __future__ import annotations

import dataclasses
import json
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from reference_impl.attention import SharedSlots
from reference_impl.config import ModelArgs
from reference_impl.initialise import randomise
from reference_impl.model import Image, Transformer
from reference_impl.parity.points import SAME_ROLE, Point, draft_points, forward_points, vision_points
from reference_impl.recording import Call, recording

LENGTH, STEPS = 13, 2


def write_set(folder: Path, name: str, tensors: dict[str, Tensor]) -> None:
    tensors = {key: value.clone(memory_format=torch.contiguous_format) for key, value in tensors.items()}
    save_file(tensors, folder / f"{name}.safetensors")
    entries = {
        key: {"s": list(value.shape), "t": str(value.dtype).removeprefix("torch.")} for key, value in tensors.items()
    }
    (folder / f"{name}.json").write_text(json.dumps({"tensors": entries}))


def write_folder(folder: Path, args: ModelArgs) -> None:
    """tiny_float and tiny_quant of a random model, with every kind of prompt."""
    (folder / "tiny_config.json").write_text(json.dumps(dataclasses.asdict(args)))
    words = [f"word{i % args.engram_compressed_vocab_size}" for i in range(args.vocab_size)]
    ids = [i % args.engram_compressed_vocab_size for i in range(args.vocab_size)]
    (folder / "token_folding.json").write_text(json.dumps({"decoded": words, "raw": words, "compressed": ids}))
    for name, options in (
        ("tiny_float", {"quantise": False, "dtype": torch.float32}),
        ("tiny_quant", {}),
    ):
        model = Transformer(args, index_keys="upstream", token_map=ids, **options)
        randomise(model, 0)
        write_set(folder, f"{name}_weights", model.state_dict())
        write_set(folder, name, record(model))


def record(model: Transformer) -> dict[str, Tensor]:
    args, found = model.args, {}
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(0, args.image_token_id, (2, LENGTH), generator=generator)
    decode_ids = torch.randint(0, args.image_token_id, (2, STEPS), generator=generator)

    def run(prefix: str, points: dict[str, Point], call):
        wanted: dict[tuple[str, str, int], list[tuple[str, str]]] = {}
        for name, point in points.items():
            wanted.setdefault((point.path, point.op, point.occurrence), []).append((f"{prefix}{name}", point.value))

        def keep(seen: Call) -> None:
            for name, value in wanted.get((seen.path, SAME_ROLE.get(seen.op, seen.op), seen.occurrence), []):
                source = seen.inputs[value[3:]] if value.startswith("in:") else seen.output
                field = source if value.startswith("in:") or not value else getattr(source, value)
                found[name] = field.clone()

        with recording(model, keep):
            return call()

    found |= {"inputs.ids": ids[:1], "inputs.decode_ids": decode_ids[:1]}
    step = run("prefill.", forward_points(args), lambda: model(ids[:1], 0))
    run("draft_seed.", draft_points(args), lambda: model.draft(step.ids, 0, step.draft_context))
    found["after_prefill.layers.0.window_ring"] = model.layers[0].attn.window_kv_cache[:1].clone()
    for i in range(STEPS):
        position = LENGTH + i
        step = run(f"decode{position}.", forward_points(args), partial(model, decode_ids[:1, i : i + 1], position))
        found[f"decode{position}.index_key_owner"] = torch.tensor([model.shared.index_k_owner])
        draft = run(
            f"draft{position}.", draft_points(args), partial(model.draft, step.ids, position, step.draft_context)
        )
        for name, value in zip(("ids", "logits", "confidence"), draft, strict=True):
            found[f"draft{position}.draft.{name}"] = value

    source = args.kv_source_layers[0]
    slots = (LENGTH + STEPS) // args.compress_ratios[source]
    found[f"after_decode.layers.{source}.compressed_cache"] = (
        model.layers[source].attn.compress_kv_cache[:1, :slots].clone()
    )

    found |= {"batch2.ids": ids, "batch2.decode_ids": decode_ids, "batch2.prefill.logits": model(ids, 0).logits}
    found[f"batch2.decode{LENGTH}.logits"] = model(decode_ids[:, :1], LENGTH).logits
    whole = torch.cat((ids[:1], decode_ids[:1]), dim=1)
    found[f"longer_prefill.len{LENGTH + 2}.logits"] = model(whole[:, : LENGTH + 2], 0).logits
    for position in range(3):
        found[f"one_token_prefill.position{position}.logits"] = model(ids[:1, position : position + 1], position).logits

    types = torch.tensor([[-1, -1, 0, 1, 1, 2, 3, -1]])
    image_ids = torch.where(types < 0, ids[:1, :8], args.image_token_id)
    side, ratio = args.vision_patch_size, args.vision_downsample_ratio
    grid = ratio - 1, 2 * ratio  # one language row of two cells, its last patch row missing
    patches = torch.rand(grid[0] * grid[1], 3, side, side, generator=generator) * 2 - 1
    found |= {"image.ids": image_ids, "image.token_types": types, "image.patches": patches}
    found["image.decode_ids"] = decode_ids[:1, :1]
    points = {f"image.{name}": point for name, point in forward_points(args).items()}
    points |= {f"vision.{name}": point for name, point in vision_points(args).items()}
    run("", points, lambda: model(image_ids, 0, [Image(patches, *grid)], types))
    run("image_decode8.", forward_points(args), lambda: model(decode_ids[:1, :1], 8))

    model.shared = SharedSlots("own")
    model(ids[:1], 0)
    for i in range(STEPS):
        found[f"own_keys.decode{LENGTH + i}.logits"] = model(decode_ids[:1, i : i + 1], LENGTH + i).logits
    return found
