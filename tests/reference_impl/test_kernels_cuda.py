"""Every kernel at the released sizes compiles for Hopper without a GPU; with one, all of them agree."""

from __future__ import annotations

import shutil
import time

import pytest
import torch
from kernel_cache import kernel_cache  # noqa: F401

pytest.importorskip("tilelang", reason="the twins need the package tilelang")

from reference_impl.backend import TWINS  # noqa: E402
from reference_impl.kernels import check  # noqa: E402
from reference_impl.kernels.released import released_programs  # noqa: E402
from reference_impl.kernels.scaled_product import (  # noqa: E402
    FP4_WEIGHT,
    FP8_WEIGHT,
    GROUP,
    shared_bytes,
    tile_for,
)
from reference_impl.kernels.targets import target_key  # noqa: E402

HOPPER = target_key({"kind": "cuda", "arch": "sm_90a"})
PROGRAMS = {  # one matrix of each storage: the others differ in sizes alone
    name: program
    for name, program in released_programs(HOPPER).items()
    if "_gemm" not in name or "wo_b" in name or "expert_w1" in name
}


def test_every_twin_is_compiled():
    assert {name.split()[0] for name in PROGRAMS} == set(TWINS)


@pytest.mark.parametrize("weight_format", [FP8_WEIGHT, FP4_WEIGHT], ids=["fp8", "fp4"])
@pytest.mark.parametrize("rows", [1, 32, 33, 256, 257, 10**6])
@pytest.mark.parametrize("inputs", [32, 64, 96, 1280, 2304, 5120, 8192, 15360])
def test_a_product_tile_divides_its_inputs_and_fits_a_block(inputs, rows, weight_format):
    tile = tile_for(rows, inputs, weight_format, HOPPER)
    assert inputs % tile.inputs == 0 and tile.inputs % GROUP == 0
    assert shared_bytes(tile, inputs, weight_format) <= 227 * 1024
    steps = inputs // tile.inputs
    assert tile.stages <= steps and (steps > 1 or tile.stages == 0), "a pipeline deeper than its steps can deadlock"


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed: CUDA kernels cannot be compiled here")
@pytest.mark.parametrize("name", PROGRAMS)
def test_kernel_compiles_for_sm_90a_without_a_gpu(name, record_property):
    start = time.perf_counter()
    kernel = PROGRAMS[name].compiled(HOPPER)
    record_property("compile_seconds", round(time.perf_counter() - start, 1))
    source = kernel.get_kernel_source()
    assert "__global__" in source
    if "_gemm" in name or name == "sparse_attention":
        assert "wgmma" in source or "mma_sync" in source, f"{name} does not use the matrix unit"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")
def test_every_kernel_agrees_on_the_gpu():
    assert check.main(["--target", "cuda"]) == 0
