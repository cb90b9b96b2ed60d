"""Index scores, visibility, candidate blocks, selection and their rule for ties."""

from __future__ import annotations

import pytest
import torch

from reference_impl import ops

CPU = torch.device("cpu")
INF = float("inf")


def test_ties_go_to_the_lowest_index() -> None:
    best = ops.top_k(torch.tensor([[2.0, 5.0, 5.0, 1.0, 5.0]]), k=2)
    assert best.indices.tolist() == [[1, 2]] and best.values.tolist() == [[5.0, 5.0]]
    assert ops.top_k(torch.zeros(3, 100), k=7).indices.tolist() == [list(range(7))] * 3
    assert ops.top_k(torch.zeros(1, 2), k=7).indices.tolist() == [[0, 1]]
    routing = ops.route(torch.ones(1, 6), torch.tensor([0.0, 0.0, 1.0, 0.0, 1.0, 0.0]), topk=3, route_scale=1.5)
    assert routing.experts.tolist() == [[2, 4, 0]]


@pytest.mark.parametrize(
    ("ratio", "start", "visible"),
    [(1, 0, [1, 2, 3, 4]), (2, 0, [0, 1, 1, 2]), (2, 7, [4, 4, 5, 5]), (3, 0, [0, 0, 1, 1])],
)
def test_a_slot_counts_once_its_last_token_is_reached(ratio: int, start: int, visible: list[int]) -> None:
    assert ops.visible_slots(ratio=ratio, length=4, start=start, device=CPU).tolist() == visible


def test_scores_are_weighted_sums_of_positive_matches() -> None:
    q = torch.tensor([[[[1.0, 0.0], [0.0, 1.0]]]])  # two heads
    keys = torch.tensor([[[2.0, -3.0], [-1.0, 4.0]]])
    weights = ops.index_head_weights(torch.tensor([[[8.0, -4.0]]]), index_dim=4, heads=4)
    assert weights.tolist() == [[[2.0, -1.0]]]
    assert ops.index_scores(q, keys, weights).tolist() == [[[4.0, -4.0]]]


def test_invisible_slots_score_minus_infinity() -> None:
    masked = ops.mask_invisible(torch.zeros(1, 2, 3), torch.tensor([0, 2]))
    assert masked.tolist() == [[[-INF, -INF, -INF], [0.0, 0.0, -INF]]]


CANDIDATES = {
    # scores (one query), visible slots, blocks kept -> slots kept, with blocks of 2
    "best block and newest": ([9, 0, 1, 1, 5, 5, 2, 2], 8, 2, [1, 1, 0, 0, 0, 0, 1, 1]),
    "newest counts as one of them": ([9, 0, 1, 1, 5, 5, 2, 2], 8, 1, [0, 0, 0, 0, 0, 0, 1, 1]),
    "a block scores its best slot": ([0, 6, 5, 5, 1, 1], 6, 2, [1, 1, 0, 0, 1, 1]),
    "last block partly filled": ([9, 0, 1, 1, 5], 5, 2, [1, 1, 0, 0, 1]),
    "blocks without a visible slot are dropped": ([3, 3, 4, -INF, -INF, -INF], 3, 3, [1, 1, 1, 1, 0, 0]),
    "nothing visible, nothing kept": ([-INF, -INF], 0, 1, [0, 0]),
    "tied blocks: the earlier one": ([4, 4, 4, 4, 0, 0], 6, 2, [1, 1, 0, 0, 1, 1]),
}


@pytest.mark.parametrize("case", CANDIDATES)
def test_candidate_blocks(case: str) -> None:
    scores, visible, kept, expected = CANDIDATES[case]
    mask = ops.candidate_mask(
        torch.tensor([[scores]], dtype=torch.float32), torch.tensor([visible]), block_size=2, topk_blocks=kept
    )
    assert mask.int().tolist() == [[expected]]


def test_selection_is_sorted_shifted_and_decided_by_visibility() -> None:
    scores = torch.tensor([[[1.0, 9.0, 5.0, -INF], [7.0, -INF, -INF, -INF]]])
    slots = ops.select_slots(scores, torch.tensor([3, 2]), topk=3, offset=10)
    # Second query: slot 1 is visible though it scores -inf, slot 2 is not.
    assert slots.tolist() == [[[10, 11, 12], [10, 11, -1]]] and slots.dtype == torch.int32
    assert ops.select_slots(torch.zeros(1, 1, 0), torch.tensor([0]), topk=3, offset=8).shape == (1, 1, 0)


def test_candidates_restrict_the_scores() -> None:
    masked = ops.mask_candidates(torch.ones(1, 1, 3), torch.tensor([[[True, False, True]]]))
    assert masked.tolist() == [[[1.0, -INF, 1.0]]]
