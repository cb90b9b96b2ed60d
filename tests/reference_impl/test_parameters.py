"""Every tensor of the released configuration, on the meta device: names, shapes, types, totals, time and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest
import torch
from conftest import ROOT

from reference_impl.checkpoint import PARAMETER, SCALE, TensorRow, tensor_table
from reference_impl.config import ModelArgs
from reference_impl.model import Transformer


@pytest.fixture(scope="module")
def released() -> Transformer:
    return Transformer(ModelArgs.from_json(), device="meta")


@pytest.fixture(scope="module")
def table(released: Transformer) -> list[TensorRow]:
    return tensor_table(released)


def total(rows) -> int:
    return sum(row.count for row in rows)


def test_tensor_counts(table: list[TensorRow]) -> None:
    assert Counter(row.role for row in table) == {PARAMETER: 48_496, SCALE: 47_589}
    assert len({row.name for row in table}) == 96_085
    assert sum(row.name.startswith("mtp.") for row in table) == 2_401
    assert sum(row.name.startswith("vision.") for row in table) == 259


def test_every_scale_stands_beside_its_weight(table: list[TensorRow]) -> None:
    rows = {row.name: row for row in table}
    for scale in (row for row in table if row.role == SCALE):
        weight = rows[scale.weight]
        per_row = weight.storage.startswith("I8") or weight.name.endswith("engram.embed.weight")
        height = weight.shape[0] if per_row else -(-weight.shape[0] // 32)
        assert scale.shape == (height, weight.shape[1] // 32), scale.name
    quantised = {row.name for row in table if row.storage in ("F8_E4M3", "I8(packed E2M1)")}
    assert quantised == {row.weight for row in table if row.role == SCALE}


def test_elements_by_storage_type(table: list[TensorRow]) -> None:
    """Published totals of the checkpoint; FP4 codes counted one by one."""
    elements = Counter()
    for row in table:
        elements[row.storage] += row.count
    assert elements == {
        "F8_E4M3": 204_015_223_296,
        "I8(packed E2M1)": 557_171_343_360,
        "BF16": 1_976_441_856,
        "F32": 42_307_282,
        "F8_E8M0": 23_563_015_184,
    }


PARTS = {
    # what the names have in common -> parameters
    "everything": (lambda n: True, 763_205_315_794),
    "Engram tables": (lambda n: ".engram.embed." in n, 196_613_849_600),
    "text path": (lambda n: not n.startswith(("mtp.", "vision.", "aligner.", "image_")), 748_494_684_784),
    "DSpark": (lambda n: n.startswith("mtp."), 14_225_362_530),
    "vision": (lambda n: n.startswith(("vision.", "aligner.", "image_")), 485_268_480),
    "window layer": (lambda n: n.startswith("layers.0."), 13_754_511_990),
    "ratio-2 source": (lambda n: n.startswith("layers.2."), 13_765_227_766),
    "ratio-2 reusing": (lambda n: n.startswith("layers.3."), 13_754_511_990),
    "ratio-1 source": (lambda n: n.startswith("layers.20."), 13_762_606_326),
    "ratio-1 index source": (lambda n: n.startswith("layers.24."), 13_759_918_710),
    "ratio-1 reusing": (lambda n: n.startswith("layers.39."), 13_754_511_990),
    "stream weights of a sublayer": (lambda n: n.startswith("layers.7.hc_ffn_"), 491_547),
    "first draft block": (lambda n: n.startswith("mtp.0."), 4_772_152_438),
    "last draft block": (lambda n: n.startswith("mtp.2."), 4_759_705_974),
}


@pytest.mark.parametrize("part", PARTS)
def test_parameters_of_a_part(table: list[TensorRow], part: str) -> None:
    belongs, expected = PARTS[part]
    assert total(row for row in table if row.role == PARAMETER and belongs(row.name)) == expected


def test_stored_bytes(released: Transformer) -> None:
    assert sum(t.numel() * t.element_size() for t in released.state_dict().values()) == 510_286_023_000


def test_building_takes_under_4_seconds_and_1_gibibyte() -> None:
    """In a process of its own: processor time of the build, and the peak memory of the whole process."""
    code = (
        "import json, re, time, torch; torch.set_num_threads(1)\n"
        "from reference_impl.config import ModelArgs\n"
        "from reference_impl.model import Transformer\n"
        "args = ModelArgs.from_json(); start = time.process_time()\n"
        "model = Transformer(args, device='meta'); seconds = time.process_time() - start\n"
        # ru_maxrss keeps the peak of the process that started this one; VmHWM begins with the program.
        "peak = int(re.search(r'VmHWM:\\s+(\\d+) kB', open('/proc/self/status').read())[1]) * 1024\n"
        "print(json.dumps({'seconds': seconds, 'peak': peak}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    measured = json.loads(done.stdout)
    assert measured["seconds"] < 4 and measured["peak"] < 2**30, measured


def test_global_kv_takes_890_bytes_a_token(released: Transformer) -> None:
    """From the caches: slots a token, and their width as packed FP4 with one scale byte a group."""
    groups = {"compress_kv_cache": 16, "k_cache": 32}
    tokens = released.args.max_seq_len
    by_cache = Counter()
    for name, cache in released.named_buffers():
        kind = name.rsplit(".", 1)[1] if "." in name else name
        if kind in groups:
            slots, width = cache.shape[1:]
            by_cache[kind] += slots * (width // 2 + width // groups[kind]) / tokens
    assert by_cache == {"compress_kv_cache": 720.0, "k_cache": 170.0}
    rings = [cache for name, cache in released.named_buffers() if name.endswith("window_kv_cache")]
    assert len(rings) == 43
    row = rings[0].shape[2] + rings[0].shape[2] // 32  # FP8 and one scale byte a group of 32
    assert rings[0].shape[1] * row == 67_584


def test_without_quantisation_there_are_no_scales_and_one_type() -> None:
    model = Transformer(ModelArgs.tiny(), quantise=False, dtype=torch.float64, device="meta")
    rows = tensor_table(model)
    assert {row.role for row in rows} == {PARAMETER} and {row.storage for row in rows} == {"F64"}
    quantised = tensor_table(Transformer(ModelArgs.tiny(), device="meta"))
    assert {r.name: r.shape for r in rows} == {r.name: r.shape for r in quantised if r.role == PARAMETER}


def test_the_quantised_model_runs_in_bf16_alone() -> None:
    with pytest.raises(ValueError, match=r"dtype = torch.float32 with quantise=True"):
        Transformer(ModelArgs.tiny(), dtype=torch.float32, device="meta")
    with pytest.raises(ValueError, match="index_keys = 'both', expected one of"):
        Transformer(ModelArgs.tiny(), index_keys="both", device="meta")
