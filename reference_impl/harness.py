"""What a checker of documentation needs to run this model: build it, list its tensors, run and record it.

Plain values go in and out, so that a checker needs to know nothing of the model's classes.  The same functions for
another model make it checkable too.

Besides the operations of `ops` a run shows three views of them, so that one formula fits all storage types:

- `forward`: what a module is called with and what it gives (`result`, or `result0`, `result1` of a tuple);
- `product`: a matrix product by logical values: `input` before rounding, `x` as multiplied, `weight`, `result`;
- `lookup`: table rows by logical values: `table`, `rows`, `result`.

An operation name may end in a phase (`kv_concat@decode`): prefill, draft, decode or image.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from . import folding, ops
from .backend import TORCH, TWINS
from .checkpoint import PARAMETER, tensor_table
from .config import ModelArgs
from .configreads import ConfigRead, refusal
from .configreads import config_reads as config_reads_of
from .initialise import randomise
from .model import Image, Transformer
from .ops import rounding
from .recording import Call, recording

DTYPES = {"float32": torch.float32, "float64": torch.float64}
LOGICAL = ("product", "lookup")
TEXT_TOKENS = 3  # before and after the image span of a run
IMAGE_CELLS = 2, 3  # rows, columns of language positions


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
    return build_of(ModelArgs.from_dict(dict(config)), dtype, seed)


def build_of(args: ModelArgs, dtype: str, seed: int) -> nn.Module:
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
    """Prefill, drafting pass, decoding step, drafts and a prefill with an image, on random ids; -> calls in order.

    Occurrences count from 0 within each phase; a call is kept the first time that its module, operation and occurrence
    are seen, and once per phase under its name with the phase.  `edits` change results on their first occurrence.
    """
    watch = Watch(set(operations), list(edits))
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(model.args.vocab_size, (batch, positions), generator=generator)
    with torch.random.fork_rng(devices=[]), recording(model, watch.after) as counts, watch.modules(model):
        torch.manual_seed(seed)  # for sampling

        def enter(phase: str) -> None:
            counts.clear()
            watch.enter(phase)

        enter("prefill")
        first = model(ids, 0)
        enter("draft")
        model.draft(first.ids, 0, first.draft_context)
        enter("decode")
        second = model(first.ids.unsqueeze(1), positions)
        enter("draft")
        model.draft(second.ids, positions, second.draft_context)
        enter("image")
        model(*image_call(model.args, batch, generator))
    return list(watch.seen.values())


def config_reads(
    config: Mapping[str, Any], *, dtype: str, batch: int, positions: int, seed: int
) -> tuple[list[ConfigRead], dict[str, str]]:
    """-> every place that a field of the configuration reaches in a run of all phases; and for each field that reaches
    none what the configuration's check says to another value, "" when it takes one."""

    def run(model: nn.Module) -> None:
        record(model, batch=batch, positions=positions, seed=seed, operations=())

    reads = config_reads_of(config, lambda args: build_of(args, dtype, seed), run)
    reached = {read.field for read in reads}
    return reads, {name: refusal(config, name) for name in config if name not in reached}


def image_call(args: ModelArgs, batch: int, generator: torch.Generator) -> tuple[Tensor, int, list[Image], Tensor]:
    """Arguments of a prefill whose first row holds an image between text, the others text only."""
    rows, columns = IMAGE_CELLS
    span = torch.tensor(ops.span_types(rows=rows, columns=columns))
    length = len(span) + 2 * TEXT_TOKENS
    ids = torch.randint(args.vocab_size, (batch, length), generator=generator)
    types = torch.full((batch, length), -1)
    inside = slice(TEXT_TOKENS, TEXT_TOKENS + len(span))
    ids[0, inside] = args.image_token_id
    types[0, inside] = span
    height, width = rows * args.vision_downsample_ratio, columns * args.vision_downsample_ratio
    patch = args.vision_patch_size
    pixels = torch.randint(256, (height * patch, width * patch, 3), generator=generator).to(torch.uint8)
    return ids, 0, [Image(ops.patch_order(pixels, patch=patch), height, width)], types


class Watch:
    """Keeps the calls that are wanted and changes those that are edited."""

    def __init__(self, wanted: set[str], edits: list[Edit]) -> None:
        self.wanted, self.edits = wanted, edits
        self.seen: dict[tuple[str, str, int], Seen] = {}
        self.phase = ""
        self.counts: Counter = Counter()  # of views and of module calls, in this phase
        self.unrounded: dict[str, Tensor] = {}  # module -> input of its last FP8 rounding

    def enter(self, phase: str) -> None:
        self.phase = phase
        self.counts.clear()

    def after(self, call: Call) -> Any:
        """Called after every operation; another output than the call's takes its place."""
        if call.op == "fp8_quantise":
            self.unrounded[call.path] = call.inputs["x"]
        output = self.pass_on(call.path, call.op, call.occurrence, call.inputs, call.output)
        view = logical_values(call, self.unrounded)
        if view is not None:
            name, inputs = view
            number = self.counts[call.path, name]
            self.counts[call.path, name] += 1
            output = self.pass_on(call.path, name, number, inputs, output)
        return None if output is call.output else output

    def pass_on(self, path: str, op: str, occurrence: int, inputs: Mapping[str, Any], output: Any) -> Any:
        """Edit, keep, give back."""
        names = (op, f"{op}@{self.phase}")
        for edit in self.edits:
            fresh = (path, edit.operation, occurrence) not in self.seen
            if edit.module == path and edit.operation in names and edit.occurrence == occurrence and fresh:
                output = edited(output, edit)
        for name in names:
            key = (path, name, occurrence)
            if name in self.wanted and key not in self.seen:
                values = {**inputs, **fields(output)}
                self.seen[key] = Seen(*key, {n: v.clone() if isinstance(v, Tensor) else v for n, v in values.items()})
        return output

    @contextlib.contextmanager
    def modules(self, model: nn.Module) -> Iterator[None]:
        """While open, the calls of modules are seen as `forward`."""
        named = {module: path for path, module in model.named_modules()}

        def hook(module: nn.Module, args: tuple, kwargs: dict, output: Any) -> Any:
            path = named[module]
            inputs = signature_of_module(type(module)).bind(module, *args, **kwargs).arguments
            number = self.counts[path, "forward"]
            self.counts[path, "forward"] += 1
            changed = self.pass_on(path, "forward", number, {n: v for n, v in inputs.items() if n != "self"}, output)
            return None if changed is output else changed

        wanted = {name.partition("@")[0] for name in self.wanted} | {e.operation.partition("@")[0] for e in self.edits}
        handles = [m.register_forward_hook(hook, with_kwargs=True) for m in named] if "forward" in wanted else []
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


@functools.cache
def signature_of_module(kind: type[nn.Module]) -> inspect.Signature:
    return inspect.signature(kind.forward)


def logical_values(call: Call, unrounded: Mapping[str, Tensor]) -> tuple[str, dict[str, Any]] | None:
    """The view of a call that does not depend on how its weight is stored: its name and its inputs."""
    given = call.inputs
    if call.op == "linear":
        values = {"input": given["x"], "x": given["x"], "weight": given["weight"]}
        return "product", values if given["bias"] is None else {**values, "bias": given["bias"]}
    if call.op in ("fp8_gemm", "fp4_gemm"):
        kind, scale = given["out_dtype"], given["weight_scale"]
        x = given["x"].float() * given["x_scale"].float().repeat_interleave(ops.FP8_GROUP, dim=-1)
        if call.op == "fp8_gemm":
            weight = ops.fp8_dequantise(given["weight"], scale, out_dtype=kind)
        else:
            weight = rounding.e2m1_unpack(given["weight"]) * scale.float().repeat_interleave(ops.FP4_GROUP, dim=-1)
        # codes times powers of two: exact in the type of the activations
        return "product", {"input": unrounded[call.path], "x": x.to(kind), "weight": weight.to(kind)}
    if call.op == "engram_lookup":
        return "lookup", {"table": given["table"], "rows": given["rows"]}
    if call.op == "engram_lookup_fp8":
        values = given["table"].float() * given["scale"].float().repeat_interleave(ops.FP8_GROUP, dim=-1)
        return "lookup", {"table": values.to(given["out_dtype"]), "rows": given["rows"]}
    return None


def edited(output: Any, edit: Edit) -> Any:
    """The output with one field scaled and shifted."""
    if edit.field == "result":
        return output * edit.scale + edit.add
    return output._replace(**{edit.field: getattr(output, edit.field) * edit.scale + edit.add})


def fields(output: Any) -> dict[str, Any]:
    """Results by name: the fields of a NamedTuple, `result0`, `result1` of a tuple, nothing of None, else `result`."""
    if output is None:
        return {}
    if hasattr(output, "_asdict"):
        return output._asdict()
    if isinstance(output, tuple):
        return {f"result{number}": value for number, value in enumerate(output)}
    return {"result": output}


def operation(name: str) -> Callable[..., dict[str, Any]]:
    """An operation by name, giving its results by name."""
    name = name.partition("@")[0]
    if name == "product":
        return product
    op = named_function(name)

    @functools.wraps(op)
    def call(**inputs: Any) -> dict[str, Any]:
        return fields(op(**inputs))

    return call


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> dict[str, Any]:
    return {"input": x, "result": ops.linear(x, weight, bias)}


def has_operation(name: str) -> bool:
    name = name.partition("@")[0]
    return hasattr(TORCH, name) or name in (*LOGICAL, "forward")


def named_function(name: str) -> Callable[..., Any]:
    """A function of `ops`, of number formats or of token folding; KeyError for another name."""
    for module in (ops, rounding, folding):
        found = getattr(module, name, None)
        if inspect.isfunction(found):
            return found
    raise KeyError(name)


def evaluate(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Call a function with plain values: lists become tensors where it takes tensors; -> results by name.

    A tensor may be `{"values": list, "dtype": "bfloat16"}` or `{"zeros": shape}` too.  KeyError for an unknown
    function, TypeError or ValueError for arguments that it does not take.
    """
    function = named_function(name)
    parameters = inspect.signature(function).parameters
    unknown = sorted(arguments.keys() - parameters.keys())
    if unknown:
        raise TypeError(f"{name} takes {', '.join(parameters)}, not {', '.join(unknown)}")
    given = dict(arguments)
    if "device" in parameters and "device" not in given:
        given["device"] = "cpu"
    return fields(function(**{n: argument(v, str(parameters[n].annotation)) for n, v in given.items()}))


def argument(value: Any, annotation: str) -> Any:
    """A plain value as the type that a parameter's annotation names."""
    if "dtype" in annotation:
        return getattr(torch, value)
    if "device" in annotation:
        return torch.device(value)
    if "Tensor" not in annotation or value is None:
        return value
    if isinstance(value, dict) and "zeros" in value:
        return torch.zeros(value["zeros"], dtype=getattr(torch, value.get("dtype", "float32")))
    values, kind = (value["values"], value.get("dtype")) if isinstance(value, dict) else (value, None)
    tensor = torch.tensor(values)
    return tensor if kind is None else tensor.to(getattr(torch, kind))


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


@functools.cache
def measured_layers() -> tuple[Any, ...]:
    """All parts of one layer of each kind at the released widths, with their kernels on the first GPU."""
    from .kernels import check, layers

    return tuple(layers.measure(check.cuda_target()))


@functools.cache
def copied_bytes_a_second() -> float:
    from .kernels import layers

    return layers.copy_rate()


def measure(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A measurement on the GPU: `layer` (kind, part, call) or `seam` (tokens).

    -> passed, expected, actual (of the comparison with the plain operations), and detail: time, bytes, memory, in words.
    KeyError for a measurement or a part that there is not.
    """
    if name == "seam":
        from .kernels import check, seam_check

        return seam_check.measure(int(arguments["tokens"]), check.cuda_target(), copied_bytes_a_second())
    if name != "layer":
        raise KeyError(name)
    wanted = arguments["kind"], arguments["part"], arguments["call"]
    for part in measured_layers():
        if (part.kind, part.part, part.call) == wanted:
            from .kernels import layers

            return layers.described(part, copied_bytes_a_second())
    raise KeyError(", ".join(map(str, wanted)))
