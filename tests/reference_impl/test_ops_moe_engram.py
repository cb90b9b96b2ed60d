"""Routing, experts, n-gram hashing and the Engram gate."""

from __future__ import annotations

import math

import pytest
import torch

from reference_impl import ops
from reference_impl.config import ModelArgs

RELEASED = ModelArgs.from_json()


def test_scores_are_the_square_root_of_softplus() -> None:
    z = torch.tensor([[0.0, 2.0, -2.0]], dtype=torch.float64)
    expected = [math.sqrt(math.log1p(math.exp(v))) for v in (0.0, 2.0, -2.0)]
    assert ops.expert_scores(z, temperature=1.0)[0].tolist() == pytest.approx(expected, rel=1e-12)
    assert torch.equal(ops.expert_scores(z, temperature=2.0), ops.expert_scores(z / 2, temperature=1.0))


def test_the_bias_steers_the_choice_and_not_the_weights() -> None:
    scores = torch.tensor([[0.5, 0.3, 0.2, 0.1]])
    routing = ops.route(scores, torch.tensor([0.0, 0.0, 0.0, 1.0]), topk=2, route_scale=1.5)
    assert routing.experts.tolist() == [[3, 0]]
    assert routing.weights[0].tolist() == pytest.approx([0.25, 1.25]) and routing.weights.sum().item() == pytest.approx(
        1.5
    )


def test_image_tokens_choose_with_the_second_bias() -> None:
    text, image = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    assert ops.routing_bias(text, image, None).tolist() == [1.0, 2.0]
    assert ops.routing_bias(text, image, torch.tensor([False, True])).tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_the_gate_is_clamped_above_only_and_the_up_branch_on_both_sides() -> None:
    def silu(x: float) -> float:
        return x / (1 + math.exp(-x))

    gate, up = torch.tensor([[20.0, -20.0, 1.0, 1.0]]), torch.tensor([[1.0, 1.0, 50.0, -50.0]])
    hidden = ops.expert_hidden(gate, up, torch.tensor([2.0]), limit=10.0)[0].tolist()
    assert hidden == pytest.approx([2 * silu(10), 2 * silu(-20), 2 * silu(1) * 10, -2 * silu(1) * 10], rel=1e-5)
    assert ops.expert_hidden(gate, up, None, limit=10.0)[0, 0].item() == pytest.approx(silu(10), rel=1e-6)


def test_routed_outputs_are_summed_before_the_one_cast() -> None:
    """256 + 1 + 1 - 256: bf16 sums would lose the ones."""
    routed = torch.tensor([[[256.0], [1.0], [1.0]]]).bfloat16()
    assert ops.combine_experts(routed, torch.tensor([[-256.0]]).bfloat16()).item() == 2.0


def test_primes_of_the_released_configuration_sum_to_the_table_rows() -> None:
    primes = torch.tensor(RELEASED.engram_primes())
    assert primes.shape == (2, 3, 8) and primes.unique().numel() == 48
    assert primes.sum((1, 2)).tolist() == [384_006_168, 384_016_682] == list(RELEASED.engram_num_embeddings)
    assert (primes.min().item(), primes.max().item()) == (16_000_057, 16_000_889)


def test_hash_multipliers_of_the_released_configuration() -> None:
    """Published by others, and recomputed here: odd, seeded by the layer number, products below 2^63."""
    published = {
        1: [76632096046245, 4839876093313, 35959672319349, 73987337458391],
        14: [67716810739261, 51510806800915, 30921347202721, 82619226485591],
    }
    for layer, expected in published.items():
        drawn = ops.hash_multipliers(layer=layer, count=4, compressed_vocab=RELEASED.engram_compressed_vocab_size)
        assert drawn == expected
        assert all(m % 2 and m * (RELEASED.engram_compressed_vocab_size - 1) < 2**63 for m in drawn)


LOOK_BACK = {
    "start of the text": ([5, 6], [[5, 9, 9], [6, 5, 9]]),
    "nothing in the way": ([5, 6, 7, 8], [[5, 9, 9], [6, 5, 9], [7, 6, 5], [8, 7, 6]]),
    "a dead position blocks all longer look-backs": ([5, -1, 7, 8], [[5, 9, 9], [9, 9, 9], [7, 9, 9], [8, 7, 9]]),
}


@pytest.mark.parametrize("case", LOOK_BACK)
def test_look_back(case: str) -> None:
    history, expected = LOOK_BACK[case]
    grams = ops.look_back(torch.tensor([history]), length=len(history), distance=2, pad=9)
    assert grams.tolist() == [expected]
    last = ops.look_back(torch.tensor([history]), length=1, distance=2, pad=9)
    assert last.tolist() == [expected[-1:]]


def test_rows_share_one_running_xor_and_stand_order_by_order() -> None:
    grams = torch.tensor([[[3, 5, 7]]])
    multipliers, primes = torch.tensor([[11, 13, 17]]), torch.tensor([[[5, 7], [11, 13]]])
    sizes = primes.flatten(1)
    rows = ops.ngram_rows(grams, multipliers, primes, sizes.cumsum(-1) - sizes)
    two = 3 * 11 ^ 5 * 13
    three = two ^ 7 * 17
    assert rows.tolist() == [[[[two % 5, 5 + two % 7, 12 + three % 11, 23 + three % 13]]]]


def test_an_unmatched_memory_is_half_on() -> None:
    """A zero match has magnitude floor 1e-6 under the root: sigmoid(0.001); a hair below zero, sigmoid(-0.001)."""
    streams, keys = torch.ones(1, 4, 8), torch.zeros(1, 4, 8)
    gate = ops.engram_gate(streams, keys, torch.ones(4, 8), torch.ones(4, 8), eps=1e-20)
    assert gate[0].tolist() == pytest.approx([1 / (1 + math.exp(-0.001))] * 4, abs=1e-7)
    assert gate[0, 0].item() == pytest.approx(0.50025, abs=1e-6)
    below = ops.engram_gate(streams, keys - 1e-20, torch.ones(4, 8), torch.ones(4, 8), eps=1e-20)
    assert below[0].tolist() == pytest.approx([1 / (1 + math.exp(0.001))] * 4, abs=1e-7)


def test_the_gate_is_the_signed_root_of_a_normalised_match(normal) -> None:
    """Equal vectors match with sqrt(d); each stream has its own norm, and gains multiply."""
    d = 16
    x = normal(2, 4, d).double()
    ones = torch.ones(4, d).double()
    scaled = x * torch.tensor([1.0, 5.0, 0.1, 7.0]).double()[:, None]
    gate = ops.engram_gate(scaled, x, ones, 0.5 * ones, eps=0.0)
    assert torch.allclose(gate, torch.full_like(gate, 1 / (1 + math.exp(-math.sqrt(0.5 * math.sqrt(d))))))
    opposite = ops.engram_gate(scaled, -x, ones, 0.5 * ones, eps=0.0)
    assert torch.allclose(gate + opposite, torch.ones_like(gate))


def test_one_value_is_added_to_every_stream_by_its_gate() -> None:
    written = ops.engram_write(torch.ones(1, 2, 1), torch.tensor([[0.5, 2.0]]), torch.tensor([[10.0]]))
    assert written.flatten().tolist() == [6.0, 21.0]


def test_table_rows_are_values_times_their_scales() -> None:
    table = torch.arange(-32.0, 32.0).reshape(1, 64).repeat(3, 1).to(torch.float8_e4m3fn)
    scale = torch.tensor([[1.0, 1.0], [2.0, 0.5], [4.0, 4.0]]).to(torch.float8_e8m0fnu)
    row = ops.engram_lookup_fp8(table, scale, torch.tensor([[1]]), out_dtype=torch.float32)[0, 0]
    plain = table[0].float()
    assert torch.equal(row, torch.cat((plain[:32] * 2, plain[32:] * 0.5)))
