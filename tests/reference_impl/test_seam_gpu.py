"""The seam on a GPU: agreement with float64 on ordinary and extreme inputs, the same bits in every run and batch."""

from __future__ import annotations

import pytest
import torch
from kernel_cache import kernel_cache  # noqa: F401

pytest.importorskip("tilelang", reason="the kernels need the package tilelang")

from reference_impl import ops  # noqa: E402
from reference_impl.kernels.check import cuda_target  # noqa: E402
from reference_impl.kernels.seam import SeamResult, hc_seam, plain_seam  # noqa: E402
from reference_impl.kernels.seam_check import SeamInputs, agreement, draw, poison, relative  # noqa: E402
from reference_impl.kernels.sinkhorn_gpu import hc_split_sinkhorn  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]
CONSTANTS = {"n": 4, "iters": 20, "hc_eps": 1e-6, "norm_eps": 1e-20}


def run(inputs: SeamInputs, monkeypatch) -> SeamResult:
    """The kernel with its outputs poisoned first."""
    from reference_impl.kernels import seam

    def poisoned(*arguments):
        result = SeamResult(*arguments)
        poison(result)
        return result

    monkeypatch.setattr(seam, "SeamResult", poisoned)
    return hc_seam(*inputs, **CONSTANTS, target=cuda_target())


def same_bits(a: SeamResult, b: SeamResult) -> bool:
    pairs = zip((a.streams, a.normed, *a.weights), (b.streams, b.normed, *b.weights), strict=True)
    return all(torch.equal(x.contiguous().view(torch.uint8), y.contiguous().view(torch.uint8)) for x, y in pairs)


def rows(result: SeamResult, part: slice) -> SeamResult:
    return SeamResult(
        result.streams[part], result.normed[part], ops.StreamWeights(*(tensor[part] for tensor in result.weights))
    )


def extreme_logits(inputs):
    """Offsets of +-80 in every pattern of rows, so that gates saturate and matrices become permutations."""
    base = 80.0 * (1 - 2 * (torch.arange(24, device="cuda") % 3 % 2))
    return inputs._replace(base=base)


def zero_rows(inputs):
    streams, output = inputs.streams.clone(), inputs.output.clone()
    streams[::2], output[::2] = 0, 0
    return inputs._replace(streams=streams, output=output)


def sizes_far_apart(inputs):
    """Token i is 10^(i mod 21 - 10) times as large."""
    factor = 10.0 ** (torch.arange(inputs.output.shape[0], device="cuda") % 21 - 10)
    return inputs._replace(
        streams=(inputs.streams * factor[:, None, None]).bfloat16(), output=(inputs.output * factor[:, None]).bfloat16()
    )


def one_large_stream(inputs):
    streams = inputs.streams.clone()
    streams[:, 1] *= 1e4
    return inputs._replace(streams=streams)


def subnormals(inputs):
    return inputs._replace(streams=(inputs.streams * 1e-39).bfloat16(), output=(inputs.output * 1e-39).bfloat16())


def not_contiguous(inputs):
    wide = torch.cat([inputs.streams, inputs.streams], -1)
    return inputs._replace(streams=wide[..., : inputs.streams.shape[-1]])


@pytest.mark.parametrize("tokens", [1, 13, 64, 65, 137, 4097])
@pytest.mark.parametrize("d", [5120, 4096, 7168])
def test_agrees_with_float64(d, tokens, monkeypatch):
    inputs = draw(tokens, d, seed=tokens, device="cuda")
    found = agreement(inputs, run(inputs, monkeypatch), **CONSTANTS)
    assert found.passed, found
    assert found.stream_flips < 1e-3


@pytest.mark.parametrize("tokens", [13, 137])
@pytest.mark.parametrize(
    "change", [extreme_logits, zero_rows, sizes_far_apart, one_large_stream, subnormals, not_contiguous]
)
def test_agrees_with_float64_on_extreme_inputs(change, tokens, monkeypatch):
    inputs = change(draw(tokens, 5120, seed=7, device="cuda"))
    found = agreement(inputs, run(inputs, monkeypatch), **CONSTANTS)
    assert found.passed, found


@pytest.mark.parametrize("tokens", [16, 300])
def test_twenty_runs_give_the_same_bits(tokens):
    inputs = draw(tokens, 5120, seed=3, device="cuda")
    first = hc_seam(*inputs, **CONSTANTS, target=cuda_target())
    for _ in range(20):
        assert same_bits(first, hc_seam(*inputs, **CONSTANTS, target=cuda_target()))


@pytest.mark.parametrize("d", [5120, 4096, 7168])
def test_a_token_has_the_same_bits_alone_and_in_any_batch(d):
    """The two kernels, tiles, groups and places in a tile do not show."""
    inputs = draw(1100, d, seed=4, device="cuda")
    whole = hc_seam(*inputs, **CONSTANTS, target=cuda_target())
    for part in (slice(0, 1), slice(1099, 1100), slice(500, 513), slice(3, 67), slice(100, 165), slice(37, 700)):
        alone = hc_seam(*inputs.rows(part), **CONSTANTS, target=cuda_target())
        assert same_bits(alone, rows(whole, part)), part


def test_leading_axes_are_kept():
    inputs = draw(6, 5120, device="cuda")
    shaped = SeamInputs(*(tensor.unflatten(0, (2, 3)) for tensor in inputs[:5]), *inputs[5:])
    flat = hc_seam(*inputs, **CONSTANTS, target=cuda_target())
    result = hc_seam(*shaped, **CONSTANTS, target=cuda_target())
    assert result.streams.shape == (2, 3, 4, 5120) and result.weights.combination.shape == (2, 3, 4, 4)
    assert torch.equal(result.streams.flatten(0, 1), flat.streams)


def test_a_captured_seam_replays():
    inputs = draw(137, 5120, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        first = hc_seam(*inputs, **CONSTANTS, target=cuda_target())
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            result = hc_seam(*inputs, **CONSTANTS, target=cuda_target())
        for _ in range(3):
            poison(result)
            graph.replay()
        torch.cuda.synchronize()
    assert same_bits(first, result)


def chain(seam, inputs: SeamInputs, steps: int, wide: bool) -> torch.Tensor:
    """-> the streams after so many seams, with a seeded output of the sublayer between; float64 rounds them alike."""
    generator = torch.Generator("cuda").manual_seed(11)
    as_wide = (lambda t: t.double()) if wide else (lambda t: t)
    streams, writing, combination, reading = map(
        as_wide, (inputs.streams, inputs.writing, inputs.combination, inputs.reading)
    )
    for _ in range(steps):
        output = torch.empty_like(inputs.output).normal_(generator=generator)
        result = seam(streams, as_wide(output), writing, combination, reading, *map(as_wide, inputs[5:]), **CONSTANTS)
        streams = as_wide(result.streams.bfloat16())
        (reading, writing, combination) = result.weights
    return streams


def test_a_hundred_seams_drift_no_further_than_plain_float32():
    inputs = draw(64, 5120, seed=9, device="cuda")
    exact = chain(plain_seam, inputs, 100, wide=True)

    def drift(seam) -> float:
        return float((chain(seam, inputs, 100, wide=False).double() - exact).norm() / exact.norm())

    plain = drift(plain_seam)
    ours = drift(lambda *tensors, **constants: hc_seam(*tensors, **constants, target=cuda_target()))
    assert ours <= 2 * plain, f"relative drift {ours:.1e} of the kernel, {plain:.1e} of float32"


@pytest.mark.parametrize("tokens", [1, 33, 4097])
@pytest.mark.parametrize("spread", [1.0, 80.0])
def test_the_split_agrees_with_float64(spread, tokens):
    generator = torch.Generator("cuda").manual_seed(tokens)
    mixes = torch.empty(tokens, 24, device="cuda").normal_(generator=generator)
    scale = torch.tensor([1.0, 1.0, 1.0], device="cuda")
    base = spread * torch.empty(24, device="cuda").uniform_(-1, 1, generator=generator)
    got = hc_split_sinkhorn(mixes, scale, base, n=4, iters=20, eps=1e-6, target=cuda_target())
    exact = ops.hc_split_sinkhorn(mixes.double(), scale.double(), base.double(), n=4, iters=20, eps=1e-6)
    for name, own, wide in zip(got._fields, got, exact, strict=True):
        assert relative(own, wide) <= 1e-5, name
