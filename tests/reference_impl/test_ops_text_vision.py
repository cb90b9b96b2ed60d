"""Norm, sampling, image merge; patches, unshuffle, grid plans, vision attention."""

from __future__ import annotations

import pytest
import torch

from reference_impl import ops


def test_rms_norm_multiplies_the_gain_before_the_cast() -> None:
    x = torch.tensor([[3.0, 4.0]])
    assert torch.allclose(ops.rms_norm(x, torch.tensor([1.0, 2.0]), eps=0.0), x * torch.tensor([1.0, 2.0]) / 12.5**0.5)
    assert ops.rms_norm(torch.zeros(1, 4).bfloat16(), torch.ones(4), eps=1e-20).tolist() == [[0.0] * 4]


def test_greedy_takes_the_first_of_equal_logits_and_sampling_follows_the_odds() -> None:
    assert ops.sample(torch.tensor([[1.0, 3.0, 3.0]]), temperature=0.0).tolist() == [1]
    logits = torch.log(torch.tensor([0.7, 0.2, 0.1])).expand(20_000, 3)
    generator = torch.Generator().manual_seed(0)
    shares = ops.sample(logits, temperature=1.0, generator=generator).bincount(minlength=3) / 20_000
    assert torch.allclose(shares, torch.tensor([0.7, 0.2, 0.1]), atol=0.015)  # four standard deviations
    cold = ops.sample(logits, temperature=0.01, generator=generator)
    assert not cold.any()


def test_an_image_span_replaces_its_embeddings() -> None:
    types = torch.tensor([[-1, 0, 1, 1, 2, 3]])
    merged = ops.merge_image(
        torch.zeros(1, 6, 1), types, torch.tensor([[1.0], [2.0]]), torch.tensor([[7.0], [8.0], [9.0]])
    )
    assert merged.flatten().tolist() == [0.0, 7.0, 1.0, 2.0, 8.0, 9.0]
    with pytest.raises(ValueError, match="mark 2 image cells, the images give 3 rows"):
        ops.merge_image(torch.zeros(1, 6, 1), types, torch.zeros(3, 1), torch.zeros(3, 1))


def test_patches_are_row_major_channel_first_and_scaled() -> None:
    pixels = torch.zeros(4, 6, 3, dtype=torch.uint8)
    pixels[0, 2] = torch.tensor([255, 0, 51])  # top left of the second patch
    patches = ops.patch_order(pixels, patch=2)
    assert patches.shape == (6, 3, 2, 2)
    assert patches[1, :, 0, 0].tolist() == pytest.approx([1.0, -1.0, -0.6])


def test_unshuffle_is_channel_major_and_pads_right_and_bottom() -> None:
    x = torch.arange(1.0, 7.0).reshape(6, 1) + torch.tensor([[0.0, 100.0]])  # 2 x 3 patches, 2 channels
    cells = ops.unshuffle(x, rows=2, columns=3, ratio=2)
    assert cells.tolist() == [[1, 2, 4, 5, 101, 102, 104, 105], [3, 0, 6, 0, 103, 0, 106, 0]]


def test_vision_rotation_turns_halves_by_row_then_column() -> None:
    cos, sin = ops.vision_rotary(
        rows=2, columns=3, head_dim=8, base=100.0, dtype=torch.float64, device=torch.device("cpu")
    )
    angles = torch.atan2(sin, cos).squeeze(1)
    assert torch.allclose(angles[5], torch.tensor([1.0, 0.1, 2.0, 0.2]).double())  # row 1, column 2
    x = torch.zeros(6, 1, 8).double()
    x[5, 0, 0] = 1.0
    turned = ops.rotate_halves(x, cos, sin)[5, 0]
    assert turned[0].item() == pytest.approx(torch.tensor(1.0).cos().item()) and turned[4].item() == pytest.approx(
        torch.tensor(1.0).sin().item()
    )


def test_every_patch_attends_to_every_patch(normal) -> None:
    q, k, v = (normal(5, 2, 4).double() for _ in range(3))
    probabilities = torch.softmax(torch.einsum("qhd,khd->hqk", q, k) / 2, -1)
    assert torch.allclose(ops.full_attention(q, k, v), torch.einsum("hqk,khd->qhd", probabilities, v))


PLANS = {
    # width, height -> rows, columns, height, width of the released settings
    (544, 544): (13, 13, 546, 546),
    (640, 480): (12, 16, 490, 644),
    (1, 1): (13, 13, 546, 546),
    (1920, 1080): (23, 41, 966, 1708),
    (10, 5000): (290, 1, 12166, 28),
}


@pytest.mark.parametrize("size", PLANS)
def test_grid_plans_keep_the_span_within_its_positions(size: tuple[int, int]) -> None:
    plan = ops.image_grid(width=size[0], height=size[1], patch=14, ratio=3, min_pixels=295936, max_positions=1024)
    assert tuple(plan) == PLANS[size]
    assert len(ops.span_types(rows=plan.rows, columns=plan.columns)) == plan.rows * (plan.columns + 1) + 2 <= 1024


def test_a_strip_too_long_for_one_row_is_refused() -> None:
    with pytest.raises(ValueError, match="100000 x 10 pixels need more than 1024 positions in a single row"):
        ops.image_grid(width=100_000, height=10, patch=14, ratio=3, min_pixels=295936, max_positions=1024)
