"""What a checker of documentation needs to run this model: build it, list its tensors, run and record it.

Plain values go in and out, so that a checker needs to know nothing of the model's classes.  The same five functions
for another model make it checkable too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import torch
from torch import nn

from . import ops
from .backend import TORCH, TWINS
from .checkpoint import PARAMETER, tensor_table
from .config import ModelArgs
from .initialise import randomise
from .model import Transformer
from .recording import Call, recording

DTYPES = {"float32": torch.float32, "float64": torch.float64}


class TensorFact(NamedTuple):
    """One tensor of a built model."""

    name: str
    shape: tuple[int, ...]  # logical
    dtype: str
    is_scale: bool


class Seen(NamedTuple):
    """One operation call of a run: where, which, and all its values by name."""

    module: str
    operation: str
    occurrence: int
    values: dict[str, Any]


class Edit(NamedTuple):
    """A change to one result of a run."""

    module: str
    operation: str
    occurrence: int
    field: str
    add: float
    scale: float


def tensors(config: Mapping[str, Any]) -> tuple[list[TensorFact], list[str]]:
    """-> all tensors and module paths of the configuration, built on the meta device: no memory for weights."""
    model = Transformer(ModelArgs.from_dict(dict(config)), device="meta")
    table = [TensorFact(r.name, tuple(r.shape), r.storage, r.role != PARAMETER) for r in tensor_table(model)]
    return table, [name for name, _ in model.named_modules()]


def build(config: Mapping[str, Any], *, dtype: str, seed: int) -> nn.Module:
    """A small model on the CPU with random weights; `dtype` model = the released number types, else float."""
    args = ModelArgs.from_dict(dict(config))
    token_map = torch.arange(args.vocab_size) % args.engram_compressed_vocab_size
    if dtype == "model":
        model = Transformer(args, token_map=token_map)
    else:
        model = Transformer(args, quantise=False, dtype=DTYPES[dtype], token_map=token_map)
    randomise(model, seed)
    return model


@torch.inference_mode()
def record(
    model: nn.Module,
    *,
    batch: int,
    positions: int,
    seed: int,
    operations: Iterable[str],
    edits: Iterable[Edit] = (),
) -> list[Seen]:
    """Prefill, one decoding step and one drafting pass on random ids; -> the calls of `operations`, in order.

    Occurrences count from 0 within each of the three phases; a call is kept the first time that its module, operation
    and occurrence are seen.  `edits` change results on their first occurrence of that kind.
    """
    wanted, changes = set(operations), list(edits)
    seen: dict[tuple[str, str, int], Seen] = {}

    def after(call: Call) -> Any:
        output = call.output
        key = (call.path, call.op, call.occurrence)
        if key in seen:
            return None
        for edit in changes:
            if key == (edit.module, edit.operation, edit.occurrence):
                output = edited(output, edit)
        if call.op in wanted:
            seen[key] = Seen(*key, {**call.inputs, **fields(output)})
        return None if output is call.output else output

    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(model.args.vocab_size, (batch, positions), generator=generator)
    with recording(model, after) as counts:
        first = model(ids, 0)
        counts.clear()
        model.draft(first.ids, 0, first.draft_context)
        counts.clear()
        second = model(first.ids.unsqueeze(1), positions)
        counts.clear()
        model.draft(second.ids, positions, second.draft_context)
    return list(seen.values())


def edited(output: Any, edit: Edit) -> Any:
    """The output with one field scaled and shifted."""
    if edit.field == "result":
        return output * edit.scale + edit.add
    return output._replace(**{edit.field: getattr(output, edit.field) * edit.scale + edit.add})


def fields(output: Any) -> dict[str, Any]:
    """Results by name: the fields of a NamedTuple, else `result`."""
    return output._asdict() if hasattr(output, "_asdict") else {"result": output}


def operation(name: str) -> Callable[..., dict[str, Any]]:
    """An operation by name, giving its results by name."""
    op = getattr(ops, name)

    @functools.wraps(op)
    def call(**inputs: Any) -> dict[str, Any]:
        return fields(op(**inputs))

    return call


def has_operation(name: str) -> bool:
    return hasattr(TORCH, name)


def check_kernel(name: str, target: str) -> list[dict[str, Any]]:
    """Compare a kernel with its plain twin at edge shapes, on `cuda` also at the released widths with times.

    -> case, largest error, passed, and on `cuda` microseconds and bytes. KeyError for an operation without a kernel,
    ImportError without TileLang.
    """
    if name not in TWINS:
        raise KeyError(name)
    from .kernels import check
    from .kernels.cases import released_cases

    place = check.cuda_target() if target == "cuda" else target
    rows = check.check_edges(name, place)
    if target == "cuda":
        cases = [case for case in released_cases((1, 64, 1000, 4096)) if case.op == name]
        rows += [check.check_case(case, place, timed=True) for case in cases]
    return [
        {
            "case": row.case,
            "error": row.error,
            "passed": row.passed,
            "microseconds": row.microseconds,
            "bytes": row.bytes,
            "message": row.message,
        }
        for row in rows
    ]
