"""The seam without a GPU: its two kernels and the split compile for Hopper, its wrapper refuses what they cannot do,
and the comparison with float64 sees planted faults.
"""

from __future__ import annotations

import shutil

import pytest
import torch
from kernel_cache import kernel_cache  # noqa: F401
from torch._subclasses import FakeTensorMode

pytest.importorskip("tilelang", reason="the kernels need the package tilelang")

from reference_impl import ops  # noqa: E402
from reference_impl.kernels import seam, sinkhorn_gpu  # noqa: E402
from reference_impl.kernels.seam_check import agreement, draw, poison  # noqa: E402
from reference_impl.kernels.targets import target_key  # noqa: E402

HOPPER = {"kind": "cuda", "arch": "sm_90a"}
CONSTANTS = {"n": 4, "iters": 20, "hc_eps": 1e-6, "norm_eps": 1e-20}
NEEDS_NVCC = pytest.mark.skipif(
    shutil.which("nvcc") is None, reason="nvcc is not installed: CUDA kernels cannot be compiled here"
)


@NEEDS_NVCC
@pytest.mark.parametrize("form", ["few", "many"])
@pytest.mark.parametrize("d", [4096, 5120, 7168])
def test_the_seam_compiles_for_sm_90a_without_a_gpu(d, form):
    groups = 132 // seam.Shape(d).slices
    kernel = seam.compiled(d=d, groups=groups, iters=20, hc_eps=1e-6, norm_eps=1e-20, form=form, key=target_key(HOPPER))
    source = kernel.get_kernel_source()
    assert f"seam::{form}<{d}>" in source and "mma.sync" in source
    launch = source[source.rindex("__global__") :]
    assert "this_grid().sync()" in launch, "the blocks wait for each other: they must be launched together"


@NEEDS_NVCC
def test_the_split_compiles_for_sm_90a_without_a_gpu():
    source = sinkhorn_gpu.compiled(iters=20, eps=1e-6, key=target_key(HOPPER)).get_kernel_source()
    assert "seam::split" in source[source.rindex("__global__") :]


@pytest.mark.parametrize(
    ("d", "pairs", "chunks", "slices"),
    [(4096, 64, 8, 16), (5120, 80, 10, 16), (6144, 96, 8, 24), (7168, 112, 8, 28), (8192, 128, 8, 32)],
)
def test_a_width_is_cut_into_whole_slices_that_fit_a_multiprocessor(d, pairs, chunks, slices):
    shape = seam.Shape(d)
    assert (shape.pairs, shape.chunks, shape.slices) == (pairs, chunks, slices)
    assert slices * chunks * 32 == d
    assert d in seam.WIDTHS and slices >= seam.TILE and pairs >= seam.FEW_TOKENS
    assert max(seam.shared_bytes(d, form) for form in ("few", "many")) <= 227 * 1024


def fake_inputs(tokens, d):
    """Tensors on a GPU that need not exist: they have a shape, a type and a device, and no values."""

    def on_gpu(*shape, dtype=torch.float32):
        return torch.empty(shape, dtype=dtype, device="cuda")

    bf16 = torch.bfloat16
    return {
        "streams": on_gpu(tokens, 4, d, dtype=bf16), "output": on_gpu(tokens, d, dtype=bf16),
        "writing": on_gpu(tokens, 4), "combination": on_gpu(tokens, 4, 4), "reading": on_gpu(tokens, 4),
        "fn": on_gpu(24, 4 * d), "scale": on_gpu(3), "base": on_gpu(24), "gain": on_gpu(d, dtype=bf16),
    }  # fmt: skip


def test_no_tokens_launch_nothing(monkeypatch):
    def launched(**constants):
        raise AssertionError(f"compiled a kernel for no tokens: {constants}")

    monkeypatch.setattr(seam, "compiled", launched)
    monkeypatch.setattr(sinkhorn_gpu, "compiled", launched)
    with FakeTensorMode():
        result = seam.hc_seam(**fake_inputs(0, 5120), **CONSTANTS, target=HOPPER)
        assert result.streams.shape == (0, 4, 5120) and result.normed.shape == (0, 5120)
        assert [tuple(w.shape) for w in result.weights] == [(0, 4), (0, 4), (0, 4, 4)]
        empty = torch.empty(0, 24, device="cuda")
        weights = sinkhorn_gpu.hc_split_sinkhorn(
            empty, torch.empty(3, device="cuda"), torch.empty(24, device="cuda"), n=4, iters=20, eps=1e-6,
            target=HOPPER,
        )  # fmt: skip
        assert weights.combination.shape == (0, 4, 4)


WRONG = {  # argument -> what replaces it, what the message must say
    "streams": (lambda t: t.float(), "streams is torch.float32, expected torch.bfloat16"),
    "output": (lambda t: t.new_empty(3, 5119), "output has shape (3, 5119), expected (3, 5120)"),
    "writing": (lambda t: t.bfloat16(), "writing is torch.bfloat16, expected torch.float32"),
    "combination": (lambda t: t.new_empty(3, 3, 4), "combination has shape (3, 3, 4), expected (3, 4, 4)"),
    "reading": (lambda t: t.new_empty(2, 4), "reading has shape (2, 4), expected (3, 4)"),
    "fn": (lambda t: t.new_empty(20480, 24), "fn has shape (20480, 24), expected (24, 20480)"),
    "scale": (lambda t: t.new_empty(2), "scale has shape (2,), expected (3,)"),
    "base": (lambda t: t.new_empty(24, device="cpu"), "base is on cpu"),
    "gain": (lambda t: t.float(), "gain is torch.float32, expected torch.bfloat16"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_is_named_with_both_values(name):
    change, message = WRONG[name]
    with FakeTensorMode():
        inputs = fake_inputs(3, 5120)
        inputs[name] = change(inputs[name])
        with pytest.raises(ValueError, match="hc_seam: ") as error:
            seam.hc_seam(**inputs, **CONSTANTS, target=HOPPER)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("constants", "d", "target", "message"),
    [
        ({"n": 2}, 5120, HOPPER, "n is 2, expected 4"),
        ({"iters": 0}, 5120, HOPPER, "iters is 0, expected at least 1"),
        ({}, 5000, HOPPER, "width is 5000, expected one of 4096, 5120"),
        ({}, 5120, "c", "target c is the host"),
    ],
)
def test_what_the_kernel_cannot_do_is_refused(constants, d, target, message):
    with FakeTensorMode(), pytest.raises(ValueError) as error:
        seam.hc_seam(**fake_inputs(3, d), **{**CONSTANTS, **constants}, target=target)
    assert message in str(error.value)


def test_the_plain_seam_is_the_chain_of_operations_and_agrees_with_float64():
    inputs = draw(5, 4096, seed=1)
    result = seam.plain_seam(*inputs, **CONSTANTS)
    new = ops.hc_write(inputs.streams, inputs.output, inputs.writing, inputs.combination)
    assert torch.equal(result.streams, new)
    assert torch.equal(result.normed, ops.rms_norm(ops.hc_read(new, inputs.reading), inputs.gain, eps=1e-20))
    found = agreement(inputs, result, **CONSTANTS)
    assert found.passed, found


def one_up(x):
    """The next bfloat16 away from zero."""
    return (x.view(torch.int16) + 1).view(torch.bfloat16)


FAULTS = {
    "stream off by two ulps": lambda r: r._replace(streams=one_up(one_up(r.streams))),
    "normed off by three ulps": lambda r: r._replace(normed=one_up(one_up(one_up(r.normed)))),
    "normed columns reversed": lambda r: r._replace(normed=r.normed.flip(-1)),
    "coefficient off by 2e-5": lambda r: r._replace(weights=r.weights._replace(writing=r.weights.writing * (1 + 2e-5))),
    "combination transposed": lambda r: r._replace(
        weights=r.weights._replace(combination=r.weights.combination.transpose(-1, -2))
    ),
    "one token never written": lambda r: r._replace(normed=r.normed.index_fill(0, torch.tensor([2]), float("nan"))),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_comparison_sees_a_planted_fault(name):
    inputs = draw(5, 4096, seed=2)
    result = seam.plain_seam(*inputs, **CONSTANTS)
    assert not agreement(inputs, FAULTS[name](result), **CONSTANTS).passed


def test_poison_reaches_every_output():
    result = seam.plain_seam(*draw(2, 4096), **CONSTANTS)
    poison(result)
    assert all(bool(tensor.isnan().all()) for tensor in (result.streams, result.normed, *result.weights))


def test_a_subnormal_read_is_as_coarse_as_bfloat16_makes_it():
    """The plain seam passes there too, and a result off by more than the read's own unit does not."""
    inputs = draw(5, 4096, seed=3)
    tiny = inputs._replace(streams=(inputs.streams * 1e-39).bfloat16(), output=(inputs.output * 1e-39).bfloat16())
    result = seam.plain_seam(*tiny, **CONSTANTS)
    found = agreement(tiny, result, **CONSTANTS)
    assert found.passed, found
    far = result._replace(normed=(result.normed.float() * 1.2).bfloat16())
    assert not agreement(tiny, far, **CONSTANTS).passed
