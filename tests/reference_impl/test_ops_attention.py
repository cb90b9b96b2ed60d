"""Rotation, slot lists, pooling, the sparse softmax and its sink, the grouped output."""

from __future__ import annotations

import math

import pytest
import torch

from reference_impl import ops
from reference_impl.config import ModelArgs

CPU = torch.device("cpu")
RELEASED = ModelArgs.from_json()


def test_yarn_bounds_of_the_released_configuration() -> None:
    bounds = ops.yarn_bounds(
        rotated=RELEASED.rope_head_dim, base=RELEASED.compress_rope_theta, original_length=RELEASED.original_seq_len,
        beta_fast=RELEASED.beta_fast, beta_slow=RELEASED.beta_slow,
    )  # fmt: skip
    assert bounds == (15, 25)


def released_theta(original_length: int) -> torch.Tensor:
    return ops.rotary_frequencies(
        rotated=RELEASED.rope_head_dim, base=RELEASED.compress_rope_theta, original_length=original_length,
        factor=RELEASED.rope_factor, beta_fast=RELEASED.beta_fast, beta_slow=RELEASED.beta_slow,
        dtype=torch.float64, device=CPU,
    )  # fmt: skip


def test_yarn_keeps_fast_pairs_divides_slow_ones_and_ramps_between() -> None:
    ratio = released_theta(0) / released_theta(RELEASED.original_seq_len)
    assert torch.allclose(ratio[:16], torch.ones(16).double()) and torch.allclose(
        ratio[25:], torch.full((7,), 16.0).double()
    )
    assert (ratio.diff()[15:25] > 0).all()
    middle = 1 / (0.5 / 16 + 0.5)
    assert ratio[20].item() == pytest.approx(middle, rel=1e-12)


def test_only_the_last_features_turn_as_adjacent_pairs() -> None:
    """A quarter turn takes (x, y) to (-y, x)."""
    table = torch.polar(torch.ones(1, 2), torch.tensor([[math.pi / 2, 0.0]]))
    x = torch.tensor([[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]])
    turned = ops.rotate(x, table)
    assert torch.allclose(turned, torch.tensor([[[1.0, 2.0, -4.0, 3.0, 5.0, 6.0]]]), atol=1e-6)


def test_rotation_is_undone_by_the_inverse_and_scores_depend_on_distance_alone(normal) -> None:
    theta = released_theta(0)
    q, k = normal(1, 1, 1, 80, dtype=torch.float64), normal(1, 1, 1, 80, dtype=torch.float64)

    def at(x: torch.Tensor, position: int) -> torch.Tensor:
        return ops.rotate(x, ops.rotary_table(theta, torch.tensor([position])))

    table = ops.rotary_table(theta, torch.tensor([7]))
    assert torch.allclose(ops.rotate_back(ops.rotate(q, table), table), q)
    assert torch.allclose((at(q, 9) * at(k, 4)).sum(), (at(q, 105) * at(k, 100)).sum())
    assert not torch.allclose((at(q, 9) * at(k, 4)).sum(), (at(q, 9) * at(k, 5)).sum())


WINDOWS = [
    # window, length, start, expected
    (3, 5, 0, [[0, -1, -1], [0, 1, -1], [0, 1, 2], [1, 2, 3], [2, 3, 4]]),
    (4, 2, 0, [[0, -1], [0, 1]]),
    (3, 1, 1, [[-1, 0, 1]]),
    (3, 1, 4, [[2, 0, 1]]),
]


@pytest.mark.parametrize(("window", "length", "start", "expected"), WINDOWS)
def test_window_slots(window: int, length: int, start: int, expected: list) -> None:
    assert ops.window_slots(window=window, length=length, start=start, device=CPU).tolist() == expected


def test_draft_slots_are_the_filled_ring_and_all_drafts() -> None:
    assert ops.draft_slots(window=4, block=2, start=1, device=CPU).tolist() == [[0, 1, 4, 5]] * 2
    assert ops.draft_slots(window=4, block=2, start=9, device=CPU).tolist() == [[0, 1, 2, 3, 4, 5]] * 2


def test_pooling_has_a_gate_for_every_feature() -> None:
    values = torch.tensor([[[1.0, 1.0], [3.0, 3.0]]])
    scores = torch.tensor([[[0.0, 50.0], [0.0, 0.0]]])
    assert torch.allclose(ops.pool_group(values, scores), torch.tensor([[2.0, 1.0]]))


def attend(q, kv, slots, sink, scale=1.0):
    return ops.sparse_attention(q, kv, torch.tensor(slots, dtype=torch.int32), sink, scale=scale)


def test_sink_enters_the_denominator_alone_and_unscaled(normal) -> None:
    q, kv = normal(1, 1, 2, 8, dtype=torch.float64), normal(1, 5, 8, dtype=torch.float64)
    sink = torch.tensor([0.3, -1.2], dtype=torch.float64)
    scale = 0.25
    z = torch.einsum("hd,kd->hk", q[0, 0], kv[0]) * scale
    weights = z.exp() / (z.exp().sum(-1, keepdim=True) + sink.exp()[:, None])
    out = attend(q, kv, [[[0, 1, 2, 3, 4]]], sink, scale)
    assert torch.allclose(out[0, 0], weights @ kv[0])
    assert (weights.sum(-1) < 1).all()
    # The same probabilities up to one factor per head: the sink never enters a numerator.
    without = attend(q, kv, [[[0, 1, 2, 3, 4]]], torch.full((2,), -1e9).double(), scale)
    factor = out / without
    assert torch.allclose(factor, factor[..., :1].expand_as(factor))


def test_order_and_absent_slots_do_not_matter(normal) -> None:
    q, kv, sink = normal(1, 2, 2, 8).double(), normal(1, 6, 8).double(), normal(2).double()
    a = attend(q, kv, [[[4, 0, 2], [1, 5, -1]]], sink)
    b = attend(q, kv, [[[-1, 2, 4, 0], [-1, -1, 5, 1]]], sink)
    assert torch.allclose(a, b)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_a_query_without_slots_gives_zero(normal, dtype: torch.dtype) -> None:
    q, kv = normal(1, 2, 2, 8).to(dtype), normal(1, 3, 8).to(dtype)
    out = attend(q, kv, [[[-1, -1], [0, 1]]], torch.zeros(2))
    assert not out[0, 0].any() and out[0, 1].any() and out.dtype == dtype
    empty = ops.sparse_attention(q, kv, torch.zeros(1, 2, 0, dtype=torch.int32), torch.zeros(2), scale=1.0)
    assert not empty.any()


def test_extreme_scores_stay_finite() -> None:
    q, kv = torch.full((1, 1, 1, 4), 100.0), torch.stack((torch.full((1, 4), 1.0), torch.full((1, 4), -1.0)), 1)
    assert torch.allclose(attend(q, kv, [[[0, 1]]], torch.zeros(1)), torch.ones(1, 1, 1, 4))


def test_neighbouring_heads_share_an_output_matrix() -> None:
    o = torch.arange(4.0).reshape(1, 1, 4, 1)  # 4 heads of width 1 in 2 groups
    weight = torch.tensor([[1.0, 10.0], [0.0, 1.0], [1.0, 10.0], [0.0, 1.0]])  # group, then rank
    assert ops.grouped_output(o, weight, groups=2).tolist() == [[[[10.0, 1.0], [32.0, 3.0]]]]
