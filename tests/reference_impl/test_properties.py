"""What the model does and does not depend on. Every property comes with a broken model in which it must fail."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
import torch
from tiny_models import prompt, tiny_model
from torch import Tensor

from reference_impl import ops
from reference_impl.backend import TORCH, Ops
from reference_impl.block import Block
from reference_impl.model import Transformer
from reference_impl.recording import Call, recording

LENGTH = 25  # odd: the last token of a ratio-2 group waits

# What a property reads off a model


def values(model: Transformer, path: str, op: str, ids: Tensor, occurrence: int = 0, start: int = 0) -> Tensor:
    """The output of one operation call during a forward pass."""
    found = []

    def keep(call: Call) -> None:
        if (call.path, call.op, call.occurrence) == (path, op, occurrence):
            found.append(call.output)

    with recording(model, keep):
        model(ids, start)
    return found[0]


def collapsed(model: Transformer, ids: Tensor) -> Tensor:
    """[B, T, d]: what the final norm gets, at every position."""
    return values(model, "", "hc_read", ids)


def close(a: Tensor, b: Tensor) -> bool:
    """Equal to rounding in float64: summation order may differ."""
    return torch.allclose(a, b, rtol=1e-9, atol=1e-9)


# Properties: assert, or return normally


def no_position_sees_a_later_one(model: Transformer) -> None:
    ids = prompt(LENGTH)
    for changed in (1, 12, 17, LENGTH - 1):
        other = ids.clone()
        other[0, changed] += 1
        a, b = collapsed(model, ids), collapsed(model, other)
        assert close(a[:, :changed], b[:, :changed]), f"token {changed} changes an earlier position"
        assert not close(a[:, changed], b[:, changed]), f"token {changed} does not even change its own position"


def logits_are_those_of_a_longer_prompt_at_that_position(model: Transformer) -> None:
    ids = prompt(LENGTH)
    whole = model.head(model.norm(collapsed(model, ids)))
    for length in (1, 2, 8, 17, LENGTH):
        assert close(model(ids[:, :length], 0).logits, whole[:, length - 1]), f"prompt of {length}"


def decode_equals_prefill(model: Transformer) -> None:
    ids = prompt(LENGTH + 6)
    for first in (1, 2, LENGTH):
        model(ids[:, :first], 0)
        stepped = {t: model(ids[:, t : t + 1], t).logits for t in range(first, first + 6)}
        for position, logits in stepped.items():
            whole = model(ids[:, : position + 1], 0).logits
            assert close(logits, whole), f"decode at {position} after a prefill of {first}"


def rows_of_a_batch_are_independent(model: Transformer) -> None:
    ids = prompt(LENGTH, rows=3)
    together = model(ids, 0).logits
    token = model(ids, 0).ids[:, None]
    decoded = model(token, LENGTH).logits
    for row in range(3):
        assert close(model(ids[row : row + 1], 0).logits[0], together[row]), f"row {row}, prefill"
        assert close(model(token[row : row + 1], LENGTH).logits[0], decoded[row]), f"row {row}, decode"


def first_sublayer_reads_stream_one_alone(model: Transformer) -> None:
    ids = prompt(LENGTH)

    def with_streams(factor: float) -> Callable[[Call], Tensor | None]:
        def change(call: Call) -> Tensor | None:
            if call.path == "" and call.op == "hc_expand":
                streams = call.output.clone()
                streams[:, :, 1:] *= factor
                return streams
            return None

        return change

    reads = []
    for factor in (1.0, 5.0):
        with recording(model, both(with_streams(factor), lambda call: keep_first_read(call, reads))):
            model(ids, 0)
    assert torch.equal(reads[0], reads[1])


def is_first_read(call: Call) -> bool:
    return (call.path, call.op, call.occurrence) == ("layers.0", "hc_read", 0)


def keep_first_read(call: Call, reads: list[Tensor]) -> None:
    if is_first_read(call):
        reads.append(call.output)


def both(first: Callable, second: Callable) -> Callable:
    def observe(call: Call) -> Tensor | None:
        second(call)
        return first(call)

    return observe


def reading_weights_act_one_sublayer_later(model: Transformer) -> None:
    """The attention's reading offsets move the feed-forward's input; the feed-forward's, the next layer's."""
    ids, n = prompt(LENGTH), model.args.hc_mult
    inputs = {
        "attn of 3": ("layers.3", 0),
        "ffn of 3": ("layers.3", 1),
        "attn of 4": ("layers.4", 0),
    }
    last = model.args.n_layers - 1
    cases = {
        "layers.3.hc_attn_base": (["attn of 3"], "ffn of 3"),
        "layers.3.hc_ffn_base": (["attn of 3", "ffn of 3"], "attn of 4"),
    }
    before = {name: values(model, path, "hc_read", ids, call) for name, (path, call) in inputs.items()}
    for parameter, (unmoved, moved) in cases.items():
        offsets = model.get_parameter(parameter)
        kept = offsets.clone()
        offsets[:n] += 1.0
        after = {name: values(model, path, "hc_read", ids, call) for name, (path, call) in inputs.items()}
        offsets.copy_(kept)
        for name in unmoved:
            assert torch.equal(before[name], after[name]), f"{parameter} moves the input of {name}"
        assert not close(before[moved], after[moved]), f"{parameter} does not move the input of {moved}"
    offsets = model.get_parameter(f"layers.{last}.hc_ffn_base")
    streams = values(model, f"layers.{last}", "hc_write", ids, 1)
    final = collapsed(model, ids)
    offsets[:n] += 1.0
    assert torch.equal(values(model, f"layers.{last}", "hc_write", ids, 1), streams)
    assert not close(collapsed(model, ids), final), "the final collapse does not use the last layer's reading weights"


def routing_weights_sum_to_route_scale(model: Transformer) -> None:
    routing = values(model, "layers.2.ffn.gate", "route", prompt(LENGTH))
    sums = routing.weights.sum(-1)
    assert close(sums, torch.full_like(sums, model.args.route_scale))


def an_image_position_gets_no_memory(model: Transformer) -> None:
    ids = prompt(LENGTH)
    types = torch.full_like(ids, -1)
    types[0, 5:9] = 1
    seen = {}

    def keep(call: Call) -> None:
        if (call.path, call.op) == ("layers.1.engram", "engram_write"):
            seen["moved"] = (call.output - call.inputs["streams"]).abs().amax((0, 2, 3))

    with recording(model, keep):
        model(ids, 0, (), types)
    assert not seen["moved"][5:9].any() and (seen["moved"][:5] > 0).all()


# Ways to break a model, one operation or method at a time


def future_in_window(**kwargs) -> Tensor:
    slots = ops.window_slots(**kwargs)
    return torch.where(slots < kwargs["length"] - 1, slots + 1, slots) if kwargs["start"] == 0 else slots


def one_slot_too_early(*, ratio: int, length: int, start: int, device: torch.device) -> Tensor:
    return (torch.arange(start, start + length, device=device) + ratio) // ratio


def mixing_rows(streams: Tensor, reading: Tensor) -> Tensor:
    read = ops.hc_read(streams, reading)
    return read + 0.1 * read.mean(0, keepdim=True)


def even_reading(streams: Tensor) -> Tensor:
    return torch.full_like(streams[..., 0], 1 / streams.shape[-2])


def last_token_pooled(values: Tensor, scores: Tensor) -> Tensor:
    return values.mean((-3, -2), keepdim=True)[..., 0, :].expand(*values.shape[:-2], -1)


def unnormalised(scores: Tensor, bias: Tensor, *, topk: int, route_scale: float) -> ops.Routing:
    routing = ops.route(scores, bias, topk=topk, route_scale=route_scale)
    return routing._replace(weights=scores.gather(-1, routing.experts) * route_scale)


def unmasked(gate: Tensor, image_mask: Tensor | None) -> Tensor:
    return gate


def unshifted(block: Block, streams, reading, start_pos, image_mask, memory):
    """Each sublayer reads with its own weights, as before the shift (report 2.4.1, equation 2)."""
    attn = block.stream_weights(streams, block.hc_attn_fn, block.hc_attn_scale, block.hc_attn_base)
    x = block.attn(block.attn_norm(block.ops.hc_read(streams, attn.reading)), start_pos, memory)
    streams = block.ops.hc_write(streams, x, attn.writing, attn.combination)
    ffn = block.stream_weights(streams, block.hc_ffn_fn, block.hc_ffn_scale, block.hc_ffn_base)
    x = block.ffn(block.ffn_norm(block.ops.hc_read(streams, ffn.reading)), image_mask)
    return block.ops.hc_write(streams, x, ffn.writing, ffn.combination), ffn.reading


def broken(**replacements: Callable) -> Callable[[], Transformer]:
    backend: Ops = dataclasses.replace(TORCH, **replacements)
    return lambda: tiny_model(backend)


PROPERTIES = {
    no_position_sees_a_later_one: {
        "window sees the next token": broken(window_slots=future_in_window),
        "compressed slot visible before its last token": broken(visible_slots=one_slot_too_early),
        "groups pooled over the whole prompt": broken(pool_group=last_token_pooled),
    },
    logits_are_those_of_a_longer_prompt_at_that_position: {
        "window sees the next token": broken(window_slots=future_in_window),
    },
    decode_equals_prefill: {
        "index keys as the released code publishes them": lambda: tiny_model(index_keys="upstream"),
        "decode reads the whole ring": broken(
            window_slots=lambda **given: (
                ops.window_slots(**given)
                if given["start"] == 0
                else torch.arange(given["window"], dtype=torch.int32)[None]
            )
        ),
    },
    rows_of_a_batch_are_independent: {"the read mixes rows": broken(hc_read=mixing_rows)},
    first_sublayer_reads_stream_one_alone: {"even reading weights": broken(hc_identity_reading=even_reading)},
    reading_weights_act_one_sublayer_later: {},
    routing_weights_sum_to_route_scale: {"weights not normalised": broken(route=unnormalised)},
    an_image_position_gets_no_memory: {"gate not masked": broken(mask_gate=unmasked)},
}


@pytest.mark.parametrize("check", PROPERTIES, ids=lambda check: check.__name__)
def test_property_holds(check: Callable[[Transformer], None]) -> None:
    check(tiny_model())


BREAKS = [(check, why) for check, ways in PROPERTIES.items() for why in ways]


@pytest.mark.parametrize(("check", "why"), BREAKS, ids=[f"{check.__name__}: {why}" for check, why in BREAKS])
def test_property_fails_when_broken(check: Callable[[Transformer], None], why: str) -> None:
    with pytest.raises(AssertionError):
        check(PROPERTIES[check][why]())


def test_reading_weights_property_fails_without_the_shift(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Block, "forward", unshifted)
    with pytest.raises(AssertionError, match="moves the input of attn of 3"):
        reading_weights_act_one_sublayer_later(tiny_model())


@pytest.mark.parametrize(("position", "owner"), [(25, 1), (26, 4), (27, 1), (28, 4)])
def test_upstream_index_keys_are_stale_at_even_positions(position: int, owner: int) -> None:
    """Released code: without a finished group, the ratio-2 source scores against the ratio-1 source's keys (quirk)."""
    ids = prompt(position + 1)
    model = tiny_model(index_keys="upstream")
    model(ids[:, :25], 0)
    seen = {}

    def keep(call: Call) -> None:
        if (call.path, call.op) == ("layers.1.attn.indexer", "index_scores"):
            seen["keys"] = call.inputs["keys"].clone()

    for t in range(25, position + 1):
        with recording(model, keep):
            model(ids[:, t : t + 1], t)
    cache = model.layers[owner].attn.indexer.k_cache[:1, : (position + 1) // 2]
    assert torch.equal(seen["keys"], cache)


def test_own_index_keys_are_always_the_owners() -> None:
    ids = prompt(27)
    model = tiny_model(index_keys="own")
    model(ids[:, :26], 0)
    owners = {}

    def keep(call: Call) -> None:
        if call.op == "index_scores":
            owners[call.path] = call.inputs["keys"].data_ptr()

    with recording(model, keep):
        model(ids[:, 26:], 26)
    for layer, source in ((1, 1), (4, 4), (6, 4)):
        assert owners[f"layers.{layer}.attn.indexer"] == model.layers[source].attn.indexer.k_cache.data_ptr()


def test_drafts_see_one_another_both_ways_and_stay_out_of_the_ring() -> None:
    model = tiny_model()
    step = model(prompt(LENGTH), 0)
    model.draft(step.ids, 0, step.draft_context)
    step = model(step.ids[:, None], LENGTH)
    ring = model.mtp[0].attn.window_kv_cache.clone()

    def perturbed(position: int) -> Tensor:
        streams = []

        def change(call: Call) -> Tensor | None:
            if (call.path, call.op) == ("", "hc_expand"):
                other = call.output.clone()
                other[:, position] += 1.0
                return other if position >= 0 else None
            if (call.path, call.op, call.occurrence) == ("mtp.0", "hc_write", 1):
                streams.append(call.output)
            return None

        with recording(model, change):
            model.draft(step.ids, LENGTH, step.draft_context)
        return streams[0]

    plain = perturbed(-1)
    drafts = range(model.args.dspark_block_size)
    for position in drafts:
        moved = (perturbed(position) - plain).abs().amax((0, 2, 3)) > 1e-9
        assert moved.all(), f"draft {position} moves only {moved.tolist()}"
    after = model.mtp[0].attn.window_kv_cache
    slot = LENGTH % model.args.window_size
    others = [s for s in range(model.args.window_size) if s != slot]
    assert torch.equal(after[:, others], ring[:, others]) and not torch.equal(after[:1, slot], ring[:1, slot])


def test_expected_ways_of_calling_the_model_wrongly() -> None:
    model = tiny_model()
    ids = prompt(4)
    image = torch.zeros(1, 3, 5, 5)
    for call, message in {
        lambda: model(ids, 3): "4 tokens at start_pos = 3; only a call at 0 takes more than one",
        lambda: model(prompt(4, rows=4), 0): "4 rows, caches hold max_batch_size = 3",
        lambda: model(prompt(129), 0): "position 128, caches hold max_seq_len = 128",
        lambda: model(ids, 0, [(image, 1, 1)]): "images need token_types and start_pos = 0",
        lambda: model(ids[0], 0): r"ids have shape \[4\]",
        lambda: model.draft(
            ids[:, 0], 125, torch.zeros(1, 1, 3 * 96, dtype=torch.float64)
        ): "last draft at position 129",
        lambda: model.draft(ids[:, 0], 5, torch.zeros(1, 2, 3 * 96, dtype=torch.float64)): "2 context positions",
    }.items():
        with pytest.raises(ValueError, match=message):
            call()
