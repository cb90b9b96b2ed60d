"""Runs a model through the recorded prompts and compares it at every recorded point.

Two ways: end to end, or from stored inputs, where each recorded value takes the place of the computed one as soon as it
has been compared, so that every module is judged on the inputs that the reference had.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from ..attention import SharedSlots
from ..config import ModelArgs
from ..model import Image, Step, Transformer
from ..ops import vision_rotary
from ..recording import Call, recording
from .folder import FixtureError, Recorded
from .points import SAME_ROLE, Point, draft_points, forward_points, vision_points
from .verdicts import Line, Tolerance, compare, missing

INPUTS = {
    "inputs.ids", "inputs.decode_ids", "image.ids", "image.token_types", "image.patches", "image.decode_ids",
    "batch2.ids", "batch2.decode_ids",
}  # fmt: skip
DTYPE_PREFIX = "float64."
WHOLE_RUNS = ("longer_prefill.", "batch2.", "one_token_prefill.", "own_keys.")
"""Prompts of which only results are recorded: there are no stored inputs to judge a module on."""

CACHES = {"window_ring": "window_kv_cache", "compressed_cache": "compress_kv_cache", "index_key_cache": "k_cache"}

Judge = Callable[[str, Tensor], Tolerance]  # recorded name, recorded tensor -> tolerance


class Replay:
    """One pass over all recorded prompts with one model; `lines` grows."""

    def __init__(
        self, run: str, model: Transformer, recorded: Recorded, judge: Judge, *, stored_inputs: bool = False,
        prefix: str = "",
    ) -> None:  # fmt: skip
        self.run, self.model, self.args, self.recorded, self.judge = run, model, model.args, recorded, judge
        self.stored_inputs, self.prefix = stored_inputs, prefix
        self.lines: list[Line] = []
        self.names = {
            name.removeprefix(prefix)
            for name in recorded.tensors
            if name.startswith(DTYPE_PREFIX) == bool(prefix) and name not in INPUTS
            if not (stored_inputs and name.startswith(WHOLE_RUNS))
        }
        self.compared: set[str] = set()

    def all(self) -> list[Line]:
        """Every prompt, then a miss for every recorded tensor that no prompt gave."""
        check_inputs(self.recorded, self.args)
        self.main_prompt()
        self.longer_prefills()
        self.two_rows()
        self.one_token_prefill()
        self.image_prompt()
        self.own_keys()
        self.lines += [
            missing(self.run, self.prefix + name, "recorded, but nothing in the model gives it")
            for name in sorted(self.names - self.compared)
        ]
        return self.lines

    # prompts

    def main_prompt(self) -> None:
        """Prefill, then one token a step, drafting after each."""
        ids, decode_ids = self.recorded["inputs.ids"], self.recorded["inputs.decode_ids"]
        step = self.forward("prefill", ids, 0)
        self.draft("draft_seed", step, 0)
        self.caches("after_prefill")
        for position, token in steps(ids, decode_ids):
            step = self.forward(f"decode{position}", token, position)
            owner = torch.tensor([-1 if self.model.shared.index_k_owner is None else self.model.shared.index_k_owner])
            self.check(f"decode{position}.index_key_owner", owner)
            self.draft(f"draft{position}", step, position)
        self.caches("after_decode")

    def longer_prefills(self) -> None:
        """The same ids in one call, a step longer each time."""
        ids = torch.cat((self.recorded["inputs.ids"], self.recorded["inputs.decode_ids"]), dim=1)
        for length in self.numbers(r"longer_prefill\.len(\d+)\.logits"):
            self.fresh_slots()
            self.check(f"longer_prefill.len{length}.logits", self.model(ids[:, :length], 0).logits)

    def two_rows(self) -> None:
        if not self.any_with("batch2."):
            return
        ids = self.recorded["batch2.ids"]
        self.fresh_slots()
        self.check("batch2.prefill.logits", self.model(ids, 0).logits)
        for position, token in steps(ids, self.recorded["batch2.decode_ids"]):
            self.check(f"batch2.decode{position}.logits", self.model(token, position).logits)

    def one_token_prefill(self) -> None:
        """The prompt fed one token at a time from the start."""
        self.fresh_slots()
        for position in self.numbers(r"one_token_prefill\.position(\d+)\.logits"):
            token = self.recorded["inputs.ids"][:, position : position + 1]
            self.check(f"one_token_prefill.position{position}.logits", self.model(token, position).logits)

    def image_prompt(self) -> None:
        """A prompt with one image span, then text."""
        if not self.any_with("image", "vision."):
            return
        ids, token_types = self.recorded["image.ids"], self.recorded["image.token_types"]
        image = image_of(self.recorded, self.args)
        self.fresh_slots()
        points = {f"image.{name}": point for name, point in forward_points(self.args).items()}
        points |= {f"vision.{name}": point for name, point in vision_points(self.args).items()}
        self.observe(points, lambda: self.model(ids, 0, [image], token_types))
        for position, token in steps(ids, self.recorded["image.decode_ids"]):
            self.forward(f"image_decode{position}", token, position)

    def own_keys(self) -> None:
        """The main prompt once more, every key owner scoring against its own cache."""
        if not self.any_with("own_keys."):
            return
        ids = self.recorded["inputs.ids"]
        released = self.model.shared
        self.model.shared = SharedSlots("own")
        self.model(ids, 0)
        for position, token in steps(ids, self.recorded["inputs.decode_ids"]):
            points = {f"own_keys.decode{position}.{n}": p for n, p in forward_points(self.args).items()}
            step = self.observe(points, lambda token=token, position=position: self.model(token, position))
            self.check(f"own_keys.decode{position}.logits", step.logits)
        self.model.shared = released

    # passes

    def forward(self, prefix: str, ids: Tensor, start_pos: int) -> Step:
        points = {f"{prefix}.{name}": point for name, point in forward_points(self.args).items()}
        return self.observe(points, lambda: self.model(ids, start_pos))

    def draft(self, prefix: str, step: Step, start_pos: int) -> None:
        if not self.any_with("draft"):
            return
        points = {f"{prefix}.{name}": point for name, point in draft_points(self.args).items()}
        drafted = self.observe(points, lambda: self.model.draft(step.ids, start_pos, step.draft_context))
        if drafted is not None:
            for name, value in zip(("ids", "logits", "confidence"), drafted, strict=True):
                self.check(f"{prefix}.draft.{name}", value)

    def observe(self, points: dict[str, Point], run: Callable[[], Any]) -> Any:
        """Runs, compares at the points that are recorded, and replaces values if this replay is from stored inputs."""
        wanted: dict[tuple[str, str, int], list[tuple[str, str]]] = {}
        for name, point in points.items():
            if name in self.names:
                wanted.setdefault((point.path, point.op, point.occurrence), []).append((name, point.value))

        def at(call: Call) -> list[tuple[str, str]]:
            return wanted.get((call.path, SAME_ROLE.get(call.op, call.op), call.occurrence), [])

        def before(call: Call) -> dict[str, Any]:
            inputs = dict(call.inputs)
            for name, value in at(call):
                if value.startswith("in:"):
                    inputs[value[3:]] = self.check(name, inputs[value[3:]])
            return inputs

        def after(call: Call) -> Any:
            output = call.output
            for name, value in at(call):
                if value == "":
                    output = self.check(name, output)
                elif not value.startswith("in:"):
                    output = output._replace(**{value: self.check(name, getattr(output, value))})
            return output

        with recording(self.model, after, before):
            return run()

    # comparisons

    def check(self, name: str, actual: Tensor) -> Tensor:
        """Compares if recorded -> the value to go on with."""
        if name not in self.names:
            return actual
        expected = self.recorded[self.prefix + name]
        self.compared.add(name)
        self.lines.append(compare(self.run, self.prefix + name, actual, expected, self.judge(name, expected)))
        if not self.stored_inputs or actual.numel() != expected.numel():
            return actual
        return expected.to(actual.dtype).reshape(actual.shape)

    def caches(self, prefix: str) -> None:
        """The rings and caches, as many rows as are recorded."""
        for name in sorted(self.names):
            match = re.fullmatch(rf"{prefix}\.((?:layers|mtp)\.\d+)\.(\w+)", name)
            if match and match[2] in CACHES:
                attention = self.model.get_submodule(f"{match[1]}.attn")
                owner = attention.indexer if match[2] == "index_key_cache" else attention
                expected = self.recorded[self.prefix + name]
                cache = getattr(owner, CACHES[match[2]], None)
                if cache is not None:
                    self.check(name, cache[: expected.shape[0], : expected.shape[1]])

    # names

    def fresh_slots(self) -> None:
        self.model.shared = SharedSlots(self.model.shared.index_keys)

    def any_with(self, *prefixes: str) -> bool:
        return any(name.startswith(prefixes) for name in self.names)

    def numbers(self, pattern: str) -> list[int]:
        return sorted(int(match[1]) for name in self.names if (match := re.fullmatch(pattern, name)))


def steps(ids: Tensor, decode_ids: Tensor) -> Iterable[tuple[int, Tensor]]:
    """-> position and token [B, 1] of every decode step after the prompt `ids`."""
    return ((ids.shape[1] + i, decode_ids[:, i : i + 1]) for i in range(decode_ids.shape[1]))


def check_inputs(recorded: Recorded, args: ModelArgs) -> None:
    """FixtureError for a prompt that does not fit the configuration, or steps that do not fit their prompt."""
    file = recorded.file.name
    for name in ("inputs.ids", "batch2.ids", "image.ids"):
        if name not in recorded.tensors and name != "inputs.ids":
            continue
        ids, decode_name = recorded[name], name.replace(".ids", ".decode_ids")
        decode_ids = recorded[decode_name]
        if ids.ndim != 2 or decode_ids.ndim != 2 or ids.shape[0] != decode_ids.shape[0]:
            raise FixtureError(
                f"{file}: {decode_name} has shape {list(decode_ids.shape)}, expected [{ids.shape[0]}, steps] as {name} "
                f"{list(ids.shape)}"
            )
        length = ids.shape[1] + decode_ids.shape[1]
        if length > args.max_seq_len or ids.shape[0] > args.max_batch_size:
            raise FixtureError(
                f"{file}: {name} and {decode_name} have {ids.shape[0]} rows and {length} positions, max_seq_len = "
                f"{args.max_seq_len} and max_batch_size = {args.max_batch_size}"
            )
        for tensor in (ids, decode_ids):
            if tensor.numel() and not 0 <= int(tensor.min()) <= int(tensor.max()) < args.vocab_size:
                raise FixtureError(
                    f"{file}: {name} holds ids up to {int(tensor.max())}, vocab_size = {args.vocab_size}"
                )
    if "image.ids" in recorded.tensors:
        ids, types, patches = (recorded[f"image.{name}"] for name in ("ids", "token_types", "patches"))
        if types.shape != ids.shape:
            raise FixtureError(
                f"{file}: image.token_types has shape {list(types.shape)}, expected {list(ids.shape)} as image.ids"
            )
        side = args.vision_patch_size
        if patches.ndim != 4 or tuple(patches.shape[1:]) != (3, side, side):
            raise FixtureError(
                f"{file}: image.patches has shape {list(patches.shape)}, expected [patches, 3, {side}, {side}]"
            )


def image_of(recorded: Recorded, args: ModelArgs) -> Image:
    """The recorded image. Its patch grid is the one that fits the span and the recorded rotary table.

    FixtureError when none, or more than one, does.
    """
    patches, types = recorded["image.patches"], recorded["image.token_types"].flatten().tolist()
    span = [kind for kind in types if kind >= 0]
    language_rows, ratio = span.count(2), args.vision_downsample_ratio
    if not language_rows or span.count(1) % language_rows:
        raise FixtureError(
            f"{recorded.file.name}: image.token_types has {span.count(1)} image cells in {language_rows} rows"
        )
    language_columns = span.count(1) // language_rows
    count = patches.shape[0]
    grids = [
        (rows, count // rows)
        for rows in range(ratio * (language_rows - 1) + 1, ratio * language_rows + 1)
        if count % rows == 0 and -(-count // rows // ratio) == language_columns
    ]
    if (cos := recorded.get("vision.rope_cos")) is not None:
        if len(cos) != count:
            raise FixtureError(
                f"{recorded.file.name}: image.patches has {count} patches, vision.rope_cos has {len(cos)}"
            )
        grids = [grid for grid in grids if torch.allclose(rotary_of(grid, args), cos, atol=1e-4)]
    if len(grids) != 1:
        raise FixtureError(
            f"{recorded.file.name}: image.patches has {count} patches; grids that fit a span of "
            f"{language_rows} x {language_columns} cells: {grids}, expected exactly one"
        )
    return Image(patches, *grids[0])


def rotary_of(grid: tuple[int, int], args: ModelArgs) -> Tensor:
    return vision_rotary(
        rows=grid[0], columns=grid[1], head_dim=args.vision_dim // args.vision_n_heads, base=args.vision_rope_theta,
        dtype=torch.float32, device=torch.device("cpu"),
    ).cos  # fmt: skip
