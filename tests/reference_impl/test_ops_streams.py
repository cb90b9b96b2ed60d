"""What each stream operation means: hand-worked numbers, and the bounds that the coefficients keep."""

from __future__ import annotations

import math

import pytest
import torch

from reference_impl import ops

N = 4
SCALE = torch.tensor([1.0, 1.0, 1.0])


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_expansion_copies_and_identity_reading_picks_the_first(normal) -> None:
    x = normal(2, 3, 5)
    streams = ops.hc_expand(x, n=N)
    assert streams.shape == (2, 3, N, 5) and all(torch.equal(streams[..., s, :], x) for s in range(N))
    reading = ops.hc_identity_reading(streams)
    assert reading.dtype == torch.float32 and reading.tolist() == [[[1.0, 0.0, 0.0, 0.0]] * 3] * 2
    assert torch.equal(ops.hc_read(streams, reading), x)


def test_mix_numbers_are_divided_by_one_rms_over_all_streams() -> None:
    """Streams 3, 4, 0, 0 of width 1: mean square (9 + 16)/4, so W = ones gives 7 / 2.5."""
    streams = torch.tensor([[[3.0], [4.0], [0.0], [0.0]]])
    mixes = ops.hc_mix_projection(streams, torch.ones(24, 4), eps=0.0)
    assert mixes.shape == (1, 24) and torch.allclose(mixes, torch.full((1, 24), 7 / 2.5))


def test_mix_projection_epsilon_guards_zero_streams() -> None:
    assert torch.equal(ops.hc_mix_projection(torch.zeros(1, N, 8), torch.ones(24, 32), eps=1e-20), torch.zeros(1, 24))


def test_offsets_scales_and_epsilons_by_position() -> None:
    """Each of the 24 mix numbers, 3 scales and 24 offsets enters exactly one coefficient; source stream first."""
    mixes, base, scale = torch.arange(24.0) / 10, torch.arange(24.0) / 7 - 1, torch.tensor([0.5, 2.0, -1.0])
    weights = ops.hc_split_sinkhorn(mixes, scale, base, n=N, iters=1, eps=0.01)
    for j in range(N):
        assert weights.reading[j] == pytest.approx(sigmoid(0.5 * j / 10 + j / 7 - 1) + 0.01, abs=1e-6)
        assert weights.writing[j] == pytest.approx(2 * sigmoid(2.0 * (4 + j) / 10 + (4 + j) / 7 - 1), abs=1e-6)
    logits = [[-(8 + 4 * j + k) / 10 + (8 + 4 * j + k) / 7 - 1 for k in range(N)] for j in range(N)]
    rows = [[math.exp(z) / sum(map(math.exp, row)) + 0.01 for z in row] for row in logits]
    sums = [sum(row[k] for row in rows) + 0.01 for k in range(N)]
    for j in range(N):
        for k in range(N):
            assert weights.combination[j, k] == pytest.approx(rows[j][k] / sums[k], abs=1e-6)


@pytest.mark.parametrize(("spread", "row_error"), [(0.1, 2e-6), (1.0, 1e-2), (4.0, 0.15)])
def test_columns_sum_to_one_and_rows_only_as_far_as_it_converged(normal, spread: float, row_error: float) -> None:
    """Ends on columns: within 1.2e-6 of 1 at eps 1e-6. Rows: the bound grows with the spread of the logits."""
    mixes = spread * normal(1000, 24)
    comb = ops.hc_combination(mixes, SCALE, torch.zeros(24), n=N, iters=20, eps=1e-6)
    assert (comb.sum(-2) - 1).abs().max() <= 1.2e-6
    worst_row = (comb.sum(-1) - 1).abs().max()
    assert worst_row <= row_error
    if spread > 1:
        assert worst_row > 1e-3, "a doubly stochastic matrix, which the released rounds do not give"
    fewer = ops.hc_combination(mixes, SCALE, torch.zeros(24), n=N, iters=19, eps=1e-6)
    assert (comb - fewer).abs().max() > (1e-8 if spread == 0.1 else 1e-6) or spread == 0.1


def test_the_write_sums_over_the_source_stream() -> None:
    """C[0, 2] = 1 alone carries stream 0 into stream 2."""
    streams = torch.tensor([[[1.0], [10.0], [100.0], [1000.0]]])
    combination = torch.zeros(1, N, N)
    combination[0, 0, 2] = 1.0
    writing = torch.tensor([[0.0, 0.5, 0.0, 2.0]])
    written = ops.hc_write(streams, torch.tensor([[7.0]]), writing, combination)
    assert written.flatten().tolist() == [0.0, 3.5, 1.0, 14.0]


def test_reads_and_writes_work_in_float32_and_return_the_streams_type(normal) -> None:
    streams, y = normal(3, N, 8).bfloat16(), normal(3, 8).bfloat16()
    weights = ops.hc_split_sinkhorn(normal(3, 24), SCALE, torch.zeros(24), n=N, iters=20, eps=1e-6)
    read = ops.hc_read(streams, weights.reading)
    written = ops.hc_write(streams, y, weights.writing, weights.combination)
    assert read.dtype == written.dtype == torch.bfloat16
    exact = (weights.reading.double().unsqueeze(-1) * streams.double()).sum(-2)
    assert torch.equal(read, exact.float().bfloat16())
    exact = weights.writing.double().unsqueeze(-1) * y.double().unsqueeze(-2)
    exact = exact + torch.einsum("tjk,tjd->tkd", weights.combination.double(), streams.double())
    assert ((written.double() - exact).abs() <= exact.abs() * 2**-8).all()


def test_float64_stays_float64(normal) -> None:
    streams = normal(2, N, 8, dtype=torch.float64)
    mixes = ops.hc_mix_projection(streams, normal(24, 32, dtype=torch.float64), eps=1e-20)
    weights = ops.hc_split_sinkhorn(mixes, SCALE.double(), torch.zeros(24).double(), n=N, iters=20, eps=1e-6)
    results = (mixes, *weights, ops.hc_read(streams, weights.reading), ops.hc_identity_reading(streams))
    assert {result.dtype for result in results} == {torch.float64}


def test_zero_tokens() -> None:
    streams = torch.zeros(0, N, 8)
    mixes = ops.hc_mix_projection(streams, torch.zeros(24, 32), eps=1e-20)
    weights = ops.hc_split_sinkhorn(mixes, SCALE, torch.zeros(24), n=N, iters=20, eps=1e-6)
    assert ops.hc_write(streams, torch.zeros(0, 8), weights.writing, weights.combination).shape == (0, N, 8)


def test_draft_taps_are_plain_means_in_layer_order() -> None:
    streams = torch.tensor([[[1.0], [2.0], [3.0], [6.0]]])
    assert ops.concat_taps([ops.hc_mean(streams), ops.hc_mean(2 * streams)]).tolist() == [[3.0, 6.0]]
