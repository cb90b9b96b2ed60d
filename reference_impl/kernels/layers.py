"""`python -m reference_impl.kernels.layers`: one layer of each kind at the released widths on a GPU.

Weights are random, in their stored types (FP4 experts as packed bytes); Engram's table is cut, its rows are stated.
Each part of a layer (Engram, attention, experts) runs on the same inputs with plain operations and with the kernels;
the two are compared, timed as the reference calls them (no graph: routing needs the host), and their memory measured.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .. import ops
from ..attention import SharedSlots
from ..backend import TORCH, Ops, tilelang_ops
from ..block import Block
from ..config import RELEASED, ModelArgs
from ..dspark import DSparkBlock
from ..initialise import draw
from ..layers import Build, Linear
from ..ops.rounding import E4M3_MAX, power_of_two_above

TOKENS = 1024  # of the prefill that is measured
TABLE_START = 4001  # Engram's prime search starts here instead of at 16,000,000: a table that fits
COMPARED = 16  # tokens of a prefill whose experts are compared: the plain product of one expert takes 30 ms
NUDGE = 2.0**-8  # half a unit of a bfloat16: what moves about every second input by one unit
FACTOR = 1.0  # kernels may differ from the plain operations by at most so many times what a nudge changes
RUNS = 3


@dataclasses.dataclass(frozen=True)
class Part:
    """One part of a layer in one call."""

    kind: str  # of the layer
    layer: int
    part: str  # layer, engram, attn or ffn
    call: str  # prefill or decode
    tokens: int
    shape: tuple[int, ...]  # of its output
    difference: float | None  # norm-wise, relative to the plain operations; None for the layer as a whole
    nudged: float | None  # the same between plain operations on inputs moved by half a unit of a bfloat16
    milliseconds: float
    plain_milliseconds: float | None
    weight_bytes: int  # that the call reads at least once
    peak_bytes: int  # allocated at the most while it ran
    complete: bool  # no NaN in the output

    @property
    def passed(self) -> bool:
        return self.complete and (self.difference is None or self.difference <= FACTOR * self.nudged)


def kinds(args: ModelArgs) -> dict[str, int]:
    """-> the first layer of each kind, sources in front of the layers that reuse them."""
    found: dict[str, int] = {}
    for layer in range(args.n_layers):
        ratio, engram = args.compress_ratios[layer], layer in args.engram_layer_ids
        role = (
            "source" if layer in args.kv_source_layers
            else "index source" if layer in args.index_source_layers
            else "reusing"
        )  # fmt: skip
        name = f"ratio-{ratio} {role}" if ratio else "window"
        found.setdefault(f"{name} with Engram" if engram and not ratio else name, layer)
    return {**found, "draft block": args.n_layers}


def cut_args(max_seq_len: int) -> ModelArgs:
    """The released configuration with small Engram tables and caches for one sequence."""
    values = json.loads(Path(RELEASED).read_text("utf-8"))
    primes = ops.bucket_primes(
        start=TABLE_START, layers=len(values["engram_layer_ids"]), orders=values["engram_max_ngram_size"] - 1,
        heads=values["engram_n_heads"],
    )  # fmt: skip
    rows = [sum(sum(order) for order in layer) for layer in primes]
    changed = {
        "engram_vocab_size": TABLE_START, "engram_num_embeddings": rows, "max_batch_size": 1,
        "max_seq_len": max_seq_len,
    }  # fmt: skip
    return ModelArgs.from_dict({**values, **changed})


@torch.no_grad()
def fill(module: nn.Module, prefix: str, seed: int = 1) -> None:
    """Random weights by role on the module's device; codes of stored matrices are drawn as bytes."""
    for path, part in module.named_modules():
        generator = torch.Generator("cuda").manual_seed(hash_of(f"{seed}:{prefix}.{path}"))
        own = dict(part.named_parameters(recurse=False))
        scale = own.pop("scale", None)
        for name, tensor in own.items():
            if scale is None:
                tensor.copy_(draw(f"{path}.{name}" if path else name, tuple(tensor.shape), seed))
            elif tensor.dtype is torch.int8:
                tensor.view(torch.uint8).random_(0, 256, generator=generator)  # every FP4 code, two to a byte
                size = 2.0 ** round_log2((tensor.shape[1] * 2) ** -0.5 / 3.0)  # codes are about 3 on the average
                scale.copy_(torch.full(scale.shape, size).to(scale.dtype))
            else:
                inputs = tensor.shape[1] if isinstance(part, Linear) else 1
                values = torch.empty(tensor.shape, device=tensor.device).normal_(generator=generator) * inputs**-0.5
                size = float(power_of_two_above(values.abs().amax() / E4M3_MAX))
                tensor.view(torch.uint8).copy_((values / size).to(tensor.dtype).view(torch.uint8))
                scale.copy_(torch.full(scale.shape, size).to(scale.dtype))


def hash_of(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")


def round_log2(value: float) -> int:
    return round(math.log2(value))


def use(module: nn.Module, operations: Ops) -> None:
    """Let every module inside run on these operations."""
    for part in module.modules():
        if isinstance(part.__dict__.get("ops"), Ops):
            part.ops = operations


def timed(call: Callable[[], Any], runs: int = RUNS) -> float:
    """-> the median milliseconds of a call from the host's start to the device's end."""
    times = []
    for _ in range(runs):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def weight_bytes(module: nn.Module, tokens: int) -> int:
    """-> bytes of the parameters that a call must read: of routed experts at most as many as are chosen."""
    total = 0
    for path, tensor in module.named_parameters():
        share = 1.0
        if ".experts." in f".{path}" and "shared_experts" not in path:
            moe = next(m for m in module.modules() if hasattr(m, "experts") and hasattr(m, "gate"))
            share = min(1.0, tokens * moe.gate.topk / len(moe.experts))
        if path.endswith(("embed.weight", "embed.scale")):
            share = 0.0  # a few rows of the table
        total += int(tensor.numel() * tensor.element_size() * share)
    return total


class Bench:
    """Runs layers one after the other, as the model would: sources publish what the next ones read."""

    def __init__(self, target: Any, tokens: int = TOKENS) -> None:
        self.tokens = tokens
        self.args = cut_args(max_seq_len=tokens + 16)
        self.device = torch.device("cuda")
        self.kernels = tilelang_ops(target)
        self.shared = SharedSlots("own")
        self.generator = torch.Generator("cuda").manual_seed(5)

    def normal(self, *shape: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
        return torch.empty(shape, device=self.device, dtype=dtype).normal_(generator=self.generator)

    def build(self, layer: int) -> Block:
        build = Build(ops=self.kernels, quantise=True, dtype=torch.bfloat16, device=self.device)
        if layer >= self.args.n_layers:
            block: Block = DSparkBlock(self.args, build, layer - self.args.n_layers)
        else:
            block = Block(self.args, build, layer)
        fill(block, f"layers.{layer}")
        return block

    @torch.inference_mode()
    def run(self, report: Callable[[Part], None]) -> list[Part]:
        """-> the measurements: all layers are built, then each takes a prefill, then each a decoding step."""
        blocks = {kind: (layer, self.build(layer)) for kind, layer in kinds(self.args).items()}
        found = []
        for call in ("prefill", "decode"):
            for kind, (layer, block) in blocks.items():
                for part in self.layer(kind, layer, block, call):
                    report(part)
                    found.append(part)
        return found

    def layer(self, kind: str, layer: int, block: Block, call: str) -> Iterator[Part]:
        """One call of one layer; a draft block has no prefill but fills its ring."""
        n, d = self.args.hc_mult, self.args.dim
        drafts = isinstance(block, DSparkBlock)
        if drafts and call == "prefill":
            block.attn.store_context(self.normal(1, self.tokens, d), 0)
            return
        start = 0 if call == "prefill" else self.tokens
        length = self.tokens if call == "prefill" else self.args.dspark_block_size if drafts else 1
        streams = self.normal(1, length, n, d)
        reading = torch.sigmoid(self.normal(1, length, n, dtype=torch.float32))
        memory = self.normal(1, 1, d) if drafts else self.shared
        inputs: dict[str, tuple] = {}
        if hasattr(block, "engram"):
            table = block.engram.embed.weight.shape[0]
            columns = 1, length, self.args.engram_columns
            rows = torch.randint(table, columns, device=self.device, generator=self.generator)
            inputs["engram"] = (block.engram, (streams, rows, None))
        with captured(block, inputs):
            block(streams, reading, start, None, memory)
        for name, (module, given) in inputs.items():
            yield self.part(kind, layer, name, call, length, module, given)
        yield self.whole(kind, layer, call, length, block, (streams, reading, start, None, memory))

    def part(self, kind: str, layer: int, name: str, call: str, length: int, module: nn.Module, given: tuple) -> Part:
        """One part with plain operations, then with the kernels, which leave their state behind."""
        few = (given[0][:, :COMPARED], *given[1:]) if name == "ffn" else given
        use(module, TORCH)
        torch.cuda.synchronize()
        start = time.perf_counter()
        plain = module(*few)
        torch.cuda.synchronize()
        plain_ms = (time.perf_counter() - start) * 1e3
        noise = 1 + NUDGE * (2 * torch.rand(few[0].shape, device=self.device, generator=self.generator) - 1)
        moved = module((few[0].float() * noise).to(few[0].dtype), *few[1:])
        use(module, self.kernels)
        got = module(*few)
        state = module(*given)
        base = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        ms = timed(lambda: module(*given))
        peak = torch.cuda.max_memory_allocated() - base + stored_bytes(module)
        return Part(
            kind, layer, name, call, length, tuple(state.shape), distance(got, plain), distance(moved, plain), ms,
            plain_ms if few is given else None, weight_bytes(module, length), peak, not bool(state.isnan().any()),
        )  # fmt: skip

    def whole(self, kind: str, layer: int, call: str, length: int, block: Block, given: tuple) -> Part:
        streams, _ = block(*given)
        base = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        ms = timed(lambda: block(*given))
        peak = torch.cuda.max_memory_allocated() - base + stored_bytes(block)
        return Part(
            kind, layer, "layer", call, length, tuple(streams.shape), None, None, ms, None,
            weight_bytes(block, length), peak, not bool(streams.isnan().any()),
        )  # fmt: skip


def distance(got: Tensor, plain: Tensor) -> float:
    """-> the norm of the difference over the norm."""
    return float((got.double() - plain.double()).norm() / plain.double().norm())


def stored_bytes(module: nn.Module) -> int:
    return sum(t.numel() * t.element_size() for t in (*module.parameters(), *module.buffers()))


class captured:
    """While open, remembers what attention and experts of a layer are called with."""

    def __init__(self, block: Block, inputs: dict[str, tuple]) -> None:
        self.block, self.inputs = block, inputs

    def __enter__(self) -> None:
        def keep(name: str) -> Callable:
            def hook(module: nn.Module, given: tuple) -> None:
                self.inputs[name] = (module, given)

            return hook

        self.handles = [getattr(self.block, name).register_forward_pre_hook(keep(name)) for name in ("attn", "ffn")]

    def __exit__(self, *about: object) -> None:
        for handle in self.handles:
            handle.remove()


def measure(target: Any, tokens: int = TOKENS, report: Callable[[Part], None] = lambda part: None) -> list[Part]:
    """-> all parts of all kinds, prefills before decoding steps."""
    return Bench(target, tokens).run(report)


def copy_rate(size: int = 1 << 30) -> float:
    """-> bytes a second that a plain copy moves on this device, reads and writes together."""
    source = torch.empty(size, dtype=torch.uint8, device="cuda")
    goal = torch.empty_like(source)
    milliseconds = timed(lambda: goal.copy_(source), runs=9)
    return 2 * size / milliseconds * 1e3


def described(part: Part, rate: float) -> dict[str, Any]:
    """-> a part as a checker reads it; `rate` is the bytes a second of a copy."""
    bound = part.weight_bytes / rate * 1e3
    detail = (
        f"layer {part.layer}, {part.call} of {part.tokens:,} tokens, output {list(part.shape)}: "
        f"{part.milliseconds:.2f} ms, {100 * bound / part.milliseconds:.1f} % of what reading its weights once allows "
        f"({part.weight_bytes / 2**30:.2f} GiB, {bound:.2f} ms); peak memory {part.peak_bytes / 2**30:.1f} GiB"
    )
    if part.difference is not None:
        detail += (
            f"; difference from the plain operations {part.difference:.1e}, where half a unit of the inputs changes "
            f"{part.nudged:.1e}"
        )
    if part.plain_milliseconds is not None:
        detail += f"; plain operations take {part.plain_milliseconds:.0f} ms"
    return {
        "passed": part.passed,
        "expected": f"no NaN, and at most {FACTOR:g} × what half a unit of the inputs changes",
        "actual": f"{'complete' if part.complete else 'NaN'}, {part.difference} against {part.nudged}",
        "detail": detail,
    }


def main(argv: list[str] | None = None) -> int:
    from .check import cuda_target, versions

    parser = argparse.ArgumentParser(prog="python -m reference_impl.kernels.layers", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the record there too")
    options = parser.parse_args(argv)
    if not torch.cuda.is_available():
        print("kernels.layers: torch sees no GPU", file=sys.stderr)
        return 3
    target = cuda_target()
    rate = copy_rate()

    def report(part: Part) -> None:
        plain = "" if part.plain_milliseconds is None else f" (plain {part.plain_milliseconds:.0f})"
        agree = "" if part.difference is None else f", difference {part.difference:.1e} ({part.nudged:.1e} by a nudge)"
        bound = part.weight_bytes / rate * 1e3
        print(
            f"{'ok  ' if part.passed else 'MISS'} {part.kind:24} {part.part:7} {part.call:8} {part.tokens:5} tokens: "
            f"{part.milliseconds:8.2f} ms{plain}, weights alone {bound:.2f} ms, "
            f"peak {part.peak_bytes / 2**30:.2f} GiB{agree}",
            flush=True,
        )

    parts = measure(target, report=report)
    missed = sum(not part.passed for part in parts)
    if options.json:
        rows = [{**dataclasses.asdict(part), "passed": part.passed} for part in parts]
        record: Mapping[str, Any] = {
            "schema": 1, **versions(target), "date": time.strftime("%Y-%m-%d"), "copy_gbs": round(rate / 1e9),
            "table_rows": list(cut_args(TOKENS).engram_num_embeddings), "parts": rows,
        }  # fmt: skip
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    print(f"{len(parts)} parts, {missed} missed; a copy moves {rate / 1e9:,.0f} GB/s")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
