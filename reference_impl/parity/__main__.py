"""`python -m reference_impl.parity DIR`: one line per recorded tensor; exit 0 all pass, 1 a miss, 2 unusable input."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from ..checkpoint import CheckpointError, load
from ..config import ConfigError
from ..model import Transformer
from .folder import SETS, FixtureError, Recorded, read_args, read_set, read_vocabulary
from .primitives import compare_primitives, compare_sinkhorn
from .replay import Replay
from .verdicts import (
    END_TO_END,
    EXACT,
    FLOAT32,
    FLOAT64,
    FLOAT64_AGAINST_FLOAT32,
    MODULE,
    MODULE_FLOAT32,
    REPORTED,
    Line,
    Tolerance,
    Verdict,
    compare,
)

STRICT_LAYERS = 4  # end to end, the quantised model is judged up to this layer; beyond, one flipped rounding amplifies


def judge_module(_: str, recorded: Tensor) -> Tolerance:
    """The quantised model from stored inputs."""
    return MODULE_FLOAT32 if recorded.dtype == torch.float32 else MODULE


def judge_end_to_end(name: str, _: Tensor) -> Tolerance:
    """The quantised model end to end."""
    layer = re.search(r"\blayers\.(\d+)\.", name)
    before_layers = name.endswith((".engram_rows", ".embedding")) and not name.startswith(("draft", "image."))
    return END_TO_END if before_layers or (layer and int(layer[1]) <= STRICT_LAYERS) else REPORTED


def compare_folder(folder: Path) -> Iterator[Line]:
    """A line per recorded tensor and run, set by set; a set that the folder lacks is left out.

    FixtureError, CheckpointError or ConfigError for a folder that cannot be compared.
    """
    present = [name for name in SETS if (folder / f"{name}.safetensors").exists()]
    if not present:
        raise FixtureError(f"{folder}: none of {', '.join(f'{name}.safetensors' for name in SETS)}")
    if (folder / "token_folding.json").exists():
        vocabulary = read_vocabulary(folder)
        yield compare("token_folding", "compressed", vocabulary.folded, vocabulary.recorded, EXACT)
    for name in present:
        recorded = read_set(folder, name)
        if name == "primitives":
            yield from compare_primitives(recorded)
        elif name == "sinkhorn":
            yield from compare_sinkhorn(recorded)
        elif name == "tiny_float":
            yield from compare_float(folder, recorded)
        else:
            yield from compare_quantised(folder, recorded)


def compare_float(folder: Path, recorded: Recorded) -> Iterator[Line]:
    for run, dtype, prefix, tolerance in (
        ("float32", torch.float32, "", FLOAT32),
        ("float64", torch.float64, "float64.", FLOAT64),
        ("float64 vs float32", torch.float64, "", FLOAT64_AGAINST_FLOAT32),
    ):
        model = model_of(folder, "tiny_float", quantise=False, dtype=dtype)
        yield from Replay(run, model, recorded, lambda *_, t=tolerance: t, prefix=prefix).all()


def compare_quantised(folder: Path, recorded: Recorded) -> Iterator[Line]:
    for run, judge, stored_inputs in (
        ("quantised, modules", judge_module, True),
        ("quantised, whole", judge_end_to_end, False),
    ):
        model = model_of(folder, "tiny_quant", quantise=True, dtype=torch.bfloat16)
        yield from Replay(run, model, recorded, judge, stored_inputs=stored_inputs).all()


def model_of(folder: Path, name: str, *, quantise: bool, dtype: torch.dtype) -> Transformer:
    """The recorded weights in the released code's way of scoring at decode, which is what the folder records."""
    read_set(folder, f"{name}_weights")
    model = Transformer(
        read_args(folder), quantise=quantise, dtype=dtype, index_keys="upstream",
        token_map=read_vocabulary(folder).recorded,
    )  # fmt: skip
    load(model, folder / f"{name}_weights.safetensors")
    return model


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m reference_impl.parity", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="a folder of fixtures")
    parser.add_argument("--misses", action="store_true", help="print only the misses and the summary")
    options = parser.parse_args(argv)
    counts = dict.fromkeys(Verdict, 0)
    try:
        for line in compare_folder(options.folder):
            counts[line.verdict] += 1
            if line.verdict is Verdict.MISS or not options.misses:
                print(line)
    except (FixtureError, CheckpointError, ConfigError) as error:
        print(f"parity: {error}", file=sys.stderr)
        return 2
    print(f"{counts[Verdict.PASS]} pass, {counts[Verdict.MISS]} miss, {counts[Verdict.REPORT]} reported only")
    if counts[Verdict.REPORT]:
        print(f"reported only: the quantised model end to end beyond layer {STRICT_LAYERS}, and what follows from it")
    return 1 if counts[Verdict.MISS] or not counts[Verdict.PASS] else 0


if __name__ == "__main__":
    sys.exit(main())
