"""How the operations are put together: which positions, which layers, which weights, in which order.

Each test records a pass of a tiny float64 model and recomputes a step from its recorded inputs by its formula.
"""

from __future__ import annotations

import math

import pytest
import torch
from tiny_models import prompt, tiny_model
from torch import Tensor

from reference_impl.model import Image, Transformer
from reference_impl.recording import Call, recording

LENGTH = 25
DECODE = LENGTH  # position of the decode step that is looked at; completes a ratio-2 group


class Calls(list):
    """Recorded calls, looked up by path and operation."""

    def of(self, path: str, op: str, occurrence: int = 0) -> Call:
        found = [call for call in self if (call.path, call.op, call.occurrence) == (path, op, occurrence)]
        assert len(found) == 1, f"{path} {op} {occurrence}: {len(found)} calls"
        return found[0]


@pytest.fixture(scope="module")
def model() -> Transformer:
    return tiny_model()


@pytest.fixture(scope="module")
def prefill(model: Transformer) -> Calls:
    return record(model, lambda: model(prompt(LENGTH, rows=2), 0))


@pytest.fixture(scope="module")
def decode(model: Transformer, prefill: Calls) -> Calls:
    return record(model, lambda: model(prompt(1, rows=2, seed=3), DECODE))


@pytest.fixture(scope="module")
def draft(model: Transformer, decode: Calls) -> Calls:
    """The drafting pass after the decode step, its rings filled with the prompt's context."""
    model.draft(
        torch.tensor([1, 2]), 0, torch.cat([c.output for c in decode if c.op == "concat_taps"]).repeat(1, LENGTH, 1)
    )
    context = decode.of("", "concat_taps").output
    return record(model, lambda: model.draft(torch.tensor([5, 9]), DECODE, context))


def record(model: Transformer, run) -> Calls:
    calls = Calls()
    with recording(model, calls.append):
        run()
    return calls


def angles(base: float, positions: list[int], model: Transformer, *, yarn: bool) -> Tensor:
    """[T, P] complex, from the formula of the report's rotary section."""
    args = model.args
    pairs = args.rope_head_dim // 2
    theta = [base ** (-2 * i / args.rope_head_dim) for i in range(pairs)]
    if yarn:

        def pair_of(turns: float) -> float:
            rotated = args.rope_head_dim
            return rotated * math.log(args.original_seq_len / (turns * 2 * math.pi)) / (2 * math.log(base))

        low, high = max(math.floor(pair_of(args.beta_fast)), 0), min(math.ceil(pair_of(args.beta_slow)), 2 * pairs - 1)
        ramp = [min(max((i - low) / (high - low), 0), 1) for i in range(pairs)]
        theta = [t / args.rope_factor * r + t * (1 - r) for t, r in zip(theta, ramp, strict=True)]
    phases = torch.outer(torch.tensor(positions).double(), torch.tensor(theta, dtype=torch.float64))
    return torch.polar(torch.ones_like(phases), phases)


ROTATIONS = [
    # pass, module, operation, which call, positions, compressed layer
    ("prefill", "layers.0.attn", "rotate", 0, range(LENGTH), False),  # queries of a window layer
    ("prefill", "layers.0.attn", "rotate", 1, range(LENGTH), False),  # its window rows
    ("prefill", "layers.0.attn", "rotate_back", 0, range(LENGTH), False),
    ("prefill", "layers.1.attn", "rotate", 0, range(LENGTH), True),  # ratio-2 source: queries and window rows too
    ("prefill", "layers.1.attn", "rotate", 1, range(LENGTH), True),
    ("prefill", "layers.1.attn", "rotate", 2, range(0, LENGTH - 1, 2), True),  # compressed slots: first of each group
    ("prefill", "layers.1.attn.indexer", "rotate", 0, range(0, LENGTH - 1, 2), True),  # index keys
    ("prefill", "layers.1.attn.indexer", "rotate", 1, range(LENGTH), True),  # index queries
    ("prefill", "layers.3.attn", "rotate", 1, range(LENGTH), True),  # reusing layer
    ("prefill", "layers.4.attn", "rotate", 2, range(LENGTH), True),  # ratio-1 source
    ("decode", "layers.0.attn", "rotate", 0, [DECODE], False),
    ("decode", "layers.1.attn", "rotate", 1, [DECODE], True),
    ("decode", "layers.1.attn", "rotate", 2, [DECODE - 1], True),
    ("decode", "layers.1.attn.indexer", "rotate", 0, [DECODE - 1], True),
    ("decode", "layers.4.attn", "rotate", 2, [DECODE], True),
    ("decode", "layers.4.attn", "rotate_back", 0, [DECODE], True),
    ("draft", "mtp.0.attn", "rotate", 0, range(DECODE + 1, DECODE + 5), False),  # queries
    ("draft", "mtp.0.attn", "rotate", 1, [DECODE], False),  # context row
    ("draft", "mtp.0.attn", "rotate", 2, range(DECODE + 1, DECODE + 5), False),  # draft rows
    ("draft", "mtp.1.attn", "rotate_back", 0, range(DECODE + 1, DECODE + 5), False),
]  # fmt: skip


@pytest.mark.parametrize(("name", "path", "op", "occurrence", "positions", "compressed"), ROTATIONS)
def test_what_rotates_where(request, model, name, path, op, occurrence, positions, compressed) -> None:
    """Window layers and drafts: base 10,000 alone. Layers with compression: the long base with YaRN, for everything."""
    calls: Calls = request.getfixturevalue(name)
    base = model.args.compress_rope_theta if compressed else model.args.rope_theta
    expected = angles(base, list(positions), model, yarn=compressed)
    actual = calls.of(path, op, occurrence).inputs["freqs_cis"]
    assert torch.allclose(actual, expected, rtol=0, atol=1e-12)


def test_the_tables_differ_by_more_than_the_test_allows(model: Transformer) -> None:
    plain, yarn, short = (
        angles(base, [24], model, yarn=ramp) for base, ramp in ((160000.0, False), (160000.0, True), (10000.0, False))
    )
    assert (plain - yarn).abs().max() > 1e-3 and (plain - short).abs().max() > 1e-3


@pytest.mark.parametrize("name", ["prefill", "decode"])
def test_index_keys_come_from_the_latent_before_its_rotation(request, name: str) -> None:
    calls: Calls = request.getfixturevalue(name)
    latent = calls.of("layers.1.attn.compressor.norm", "rms_norm").output
    assert torch.equal(calls.of("layers.1.attn.indexer.wk", "linear").inputs["x"], latent)
    assert torch.equal(calls.of("layers.1.attn", "rotate", 2).inputs["x"], latent)


@pytest.mark.parametrize("name", ["prefill", "decode"])
def test_later_index_sources_select_inside_the_candidates(request, model: Transformer, name: str) -> None:
    calls: Calls = request.getfixturevalue(name)
    published = calls.of("layers.4.attn.indexer", "candidate_mask").output
    assert not published.all(), "a mask that keeps everything tests nothing"
    assert torch.equal(calls.of("layers.6.attn.indexer", "mask_candidates").inputs["candidates"], published)
    scores = calls.of("layers.6.attn.indexer", "select_slots").inputs["scores"]
    assert scores[~published].eq(-torch.inf).all()
    own = calls.of("layers.4.attn.indexer", "select_slots").inputs["scores"]
    assert own[~published].gt(-torch.inf).any(), "the candidate source itself is not restricted"
    assert not any(call.op == "mask_candidates" and call.path < "layers.5" for call in calls)


@pytest.mark.parametrize("name", ["prefill", "decode"])
@pytest.mark.parametrize(
    ("layer", "kv_source", "index_source"), [(2, 1, 1), (3, 1, 1), (5, 4, 4), (7, 4, 6), (8, 4, 6)]
)
def test_reusing_layers_read_their_source(request, model, name, layer, kv_source, index_source) -> None:
    calls: Calls = request.getfixturevalue(name)
    own, source = (calls.of(f"layers.{i}.attn", "kv_concat").inputs["compressed"] for i in (layer, kv_source))
    assert torch.equal(own, source)
    selected = calls.of(f"layers.{index_source}.attn.indexer", "select_slots").output
    assert torch.equal(calls.of(f"layers.{layer}.attn", "slots_concat").inputs["selected"], selected)
    offset = LENGTH if name == "prefill" else model.args.window_size
    assert calls.of(f"layers.{index_source}.attn.indexer", "select_slots").inputs["offset"] == offset


@pytest.mark.parametrize("name", ["prefill", "decode"])
def test_experts_are_the_weighted_sum_of_their_networks(request, model: Transformer, name: str) -> None:
    """sum_e E_e(x; w_e) + shared(x), with E(x; w) = W2 (w silu(min(W1 x, limit)) clip(W3 x))."""
    calls: Calls = request.getfixturevalue(name)
    moe, limit = model.layers[3].ffn, model.args.swiglu_limit
    x = calls.of("layers.3.ffn_norm", "rms_norm").output.flatten(0, 1)
    routing = calls.of("layers.3.ffn.gate", "route").output

    def network(expert, x: Tensor, weight: Tensor | float) -> Tensor:
        gate, up = x @ expert.w1.weight.T, x @ expert.w3.weight.T
        hidden = torch.nn.functional.silu(gate.clamp(max=limit)) * up.clamp(-limit, limit)
        return (weight * hidden) @ expert.w2.weight.T

    expected = network(moe.shared_experts, x, 1.0)
    for token in range(len(x)):
        for weight, expert in zip(routing.weights[token], routing.experts[token], strict=True):
            expected[token] += network(moe.experts[expert], x[token], weight)
    assert torch.allclose(calls.of("layers.3.ffn", "combine_experts").output, expected)
    logits = x @ moe.gate.weight.T
    assert torch.allclose(calls.of("layers.3.ffn.gate", "expert_scores").inputs["logits"], logits)


def test_image_tokens_route_with_the_second_bias(model: Transformer) -> None:
    ids, types = prompt(9), torch.tensor([[-1, 0, 1, 2, 3, -1, -1, -1, -1]])
    calls = record(model, lambda: model(ids, 0, (), types))
    gate = model.layers[2].ffn.gate
    bias = calls.of("layers.2.ffn.gate", "route").inputs["bias"]
    for position, kind in enumerate(types[0].tolist()):
        assert torch.equal(bias[position], gate.bias if kind < 0 else gate.bias_vl)


def test_a_layer_is_its_two_sublayers_on_the_streams(model: Transformer, prefill: Calls) -> None:
    """X' = u y + C^T X for attention and experts; both read with the weights that came before."""
    path, layer = "layers.5", model.layers[5]
    streams = prefill.of(path, "hc_mix_projection", 0).inputs["streams"]
    reading = prefill.of("layers.4", "hc_split_sinkhorn", 1).output.reading
    for sublayer, (fn, inner, norm) in enumerate(
        ((layer.hc_attn_fn, ("layers.5.attn.wo_b", "linear"), "attn_norm"),
         (layer.hc_ffn_fn, ("layers.5.ffn", "combine_experts"), "ffn_norm"))
    ):  # fmt: skip
        projection = prefill.of(path, "hc_mix_projection", sublayer)
        assert projection.inputs["weight"] is fn and torch.equal(projection.inputs["streams"], streams)
        read = (reading.unsqueeze(-1) * streams).sum(2)
        assert torch.allclose(prefill.of(f"{path}.{norm}", "rms_norm").inputs["x"], read)
        weights = prefill.of(path, "hc_split_sinkhorn", sublayer).output
        y = prefill.of(*inner).output.view_as(read)
        streams = weights.writing.unsqueeze(-1) * y.unsqueeze(2) + torch.einsum(
            "btjk,btjd->btkd", weights.combination, streams
        )
        assert torch.allclose(prefill.of(path, "hc_write", sublayer).output, streams)
        reading = weights.reading


def test_attention_of_a_window_layer_from_its_definition(model: Transformer, prefill: Calls) -> None:
    """Softmax with sink over the last `window` tokens, rotated back, then grouped and merged."""
    attn, args = model.layers[0].attn, model.args
    x = prefill.of("layers.0.attn_norm", "rms_norm").output

    def norm(x: Tensor, module) -> Tensor:
        return module.weight * x / (x.square().mean(-1, keepdim=True) + args.norm_eps).sqrt()

    table = angles(args.rope_theta, list(range(LENGTH)), model, yarn=False)

    def turn(x: Tensor, table: Tensor) -> Tensor:
        kept, last = x.split((args.head_dim - args.rope_head_dim, args.rope_head_dim), dim=-1)
        pairs = torch.complex(last[..., 0::2], last[..., 1::2]) * table
        return torch.cat((kept, torch.stack((pairs.real, pairs.imag), -1).flatten(-2)), -1)

    q = (norm(x @ attn.wq_a.weight.T, attn.q_norm) @ attn.wq_b.weight.T).unflatten(-1, (args.n_heads, args.head_dim))
    q = turn(q, table[:, None])
    kv = turn(norm(x @ attn.wkv.weight.T, attn.kv_norm), table)
    z = torch.einsum("bqhd,bkd->bhqk", q, kv) * args.head_dim**-0.5
    position = torch.arange(LENGTH)
    hidden = (position[None] > position[:, None]) | (position[None] <= position[:, None] - args.window_size)
    sinks = attn.attn_sink[None, :, None, None].expand(*z.shape[:3], 1)
    p = torch.softmax(torch.cat((z.masked_fill(hidden, -torch.inf), sinks), -1), -1)[..., :-1]
    o = turn(torch.einsum("bhqk,bkd->bqhd", p, kv), table.conj()[:, None])
    grouped = o.flatten(-2).unflatten(-1, (args.o_groups, -1))
    matrices = attn.wo_a.weight.unflatten(0, (args.o_groups, -1))
    expected = torch.einsum("btgk,grk->btgr", grouped, matrices).flatten(-2) @ attn.wo_b.weight.T
    assert torch.allclose(prefill.of("layers.0.attn.wo_b", "linear").output, expected)


def test_the_memory_of_a_decode_step_looks_back_into_the_prompt(model: Transformer) -> None:
    ids = prompt(12)
    whole = record(model, lambda: model(ids, 0)).of("ngram_hash", "ngram_rows").output
    model(ids[:, :10], 0)
    for position in (10, 11):
        step = record(model, lambda t=position: model(ids[:, t : t + 1], t)).of("ngram_hash", "ngram_rows").output
        assert torch.equal(step[:, 0], whole[:, position])
    assert not torch.equal(whole[:, 10], whole[:, 11])


def test_an_image_span_cuts_the_look_back(model: Transformer) -> None:
    """Positions in the span hash padding alone; those behind it never look across, also in later decode steps."""
    args, pad = model.args, int(model.ngram_hash.token_map[model.args.engram_pad_id])
    ids, types = prompt(6), torch.tensor([[-1, -1, 0, 3, -1, -1]])
    grams = record(model, lambda: model(ids, 0, (), types)).of("ngram_hash", "look_back").output[0].tolist()
    folded = model.ngram_hash.token_map[ids][0].tolist()
    assert grams[2] == [pad] * args.engram_max_ngram_size and grams[3] == grams[2]
    assert grams[4] == [folded[4], pad, pad, pad] and grams[5] == [folded[5], folded[4], pad, pad]
    token = prompt(1, seed=8)
    step = record(model, lambda: model(token, 6)).of("ngram_hash", "look_back").output[0, 0].tolist()
    assert step == [int(model.ngram_hash.token_map[token]), folded[5], folded[4], pad]


def test_memory_is_written_before_the_stream_weights_of_its_layer(model: Transformer, prefill: Calls) -> None:
    for layer, columns in ((0, 0), (1, 1)):
        written = prefill.of(f"layers.{layer}.engram", "engram_write")
        assert torch.equal(prefill.of(f"layers.{layer}", "hc_mix_projection", 0).inputs["streams"], written.output)
        rows = prefill.of("ngram_hash", "ngram_rows").output[:, :, columns]
        assert torch.equal(prefill.of(f"layers.{layer}.engram.embed", "engram_lookup").inputs["rows"], rows)
        value = prefill.of(f"layers.{layer}.engram.wkv", "linear").output[..., -model.args.dim :]
        assert torch.equal(written.inputs["value"], value), "the value stands behind the keys"


def test_a_model_without_engram_layers_runs() -> None:
    model = tiny_model(engram_layer_ids=[], engram_num_embeddings=[])
    calls = record(model, lambda: model(prompt(9), 0))
    assert calls.of("ngram_hash", "ngram_rows").output.shape == (1, 9, 0, 6)
    assert not any("engram" in call.path for call in calls)


def test_draft_taps_are_the_streams_that_enter_their_layers(model: Transformer, prefill: Calls) -> None:
    entering = [
        prefill.of(f"layers.{layer - 1}", "hc_write", 1).output.mean(2) for layer in model.args.dspark_target_layer_ids
    ]
    assert torch.allclose(prefill.of("", "concat_taps").output, torch.cat(entering, -1))


def test_logits_are_those_of_the_last_position(model: Transformer, prefill: Calls) -> None:
    streams = prefill.of("layers.8", "hc_write", 1).output
    reading = prefill.of("layers.8", "hc_split_sinkhorn", 1).output.reading
    x = (reading.unsqueeze(-1) * streams).sum(2)[:, -1]
    x = model.norm.weight * x / (x.square().mean(-1, keepdim=True) + model.args.norm_eps).sqrt()
    assert torch.allclose(prefill.of("head", "linear_fp32").output, x @ model.head.weight.T)


def test_drafts_from_their_definition(model: Transformer, decode: Calls, draft: Calls) -> None:
    """Noise behind the given token; each draft's bias and confidence from the token before it; confidence un-normed."""
    args, last = model.args, model.mtp[-1]
    noise = [args.dspark_noise_token_id] * (args.dspark_block_size - 1)
    assert draft.of("embed", "embed").inputs["ids"].tolist() == [[5, *noise], [9, *noise]]
    drafted = record_draft(model, decode)
    collapsed = draft.of("", "hc_read").output
    normed = last.norm.weight * collapsed / (collapsed.square().mean(-1, keepdim=True) + args.norm_eps).sqrt()
    logits, token = normed @ model.head.weight.T, torch.tensor([5, 9])
    for position in range(args.dspark_block_size):
        assert torch.equal(drafted.ids[:, position], token)
        markov = last.markov_head.embed.weight[token]
        biased = logits[:, position] + markov @ last.markov_head.head.weight.T
        assert torch.allclose(drafted.logits[:, position], biased)
        confidence = torch.cat((collapsed[:, position], markov), -1) @ last.confidence_head.proj.weight[0]
        assert torch.allclose(drafted.confidence[:, position], confidence)
        token = biased.argmax(-1)
    assert torch.equal(drafted.ids[:, -1], token)
    context = draft.of("mtp.0.main_norm", "rms_norm").output
    for block in range(args.n_mtp_layers):
        assert torch.equal(draft.of(f"mtp.{block}.attn.wkv", "linear", 0).inputs["x"], context)


def record_draft(model: Transformer, decode: Calls):
    return model.draft(torch.tensor([5, 9]), DECODE, decode.of("", "concat_taps").output)


def test_a_picture_becomes_its_span(model: Transformer) -> None:
    """Tower of pre-norm residual blocks; cells in row-major order; start, row ends, end are three learned vectors."""
    types = torch.tensor([[-1, 0, 1, 1, 2, 1, 1, 2, 3, -1]])
    patches = torch.rand(20, 3, 5, 5, generator=torch.Generator().manual_seed(0)) * 2 - 1
    calls = record(model, lambda: model(prompt(10), 0, [Image(patches, 4, 5)], types))
    rows = calls.of("aligner.w2", "linear").output
    merged = calls.of("", "merge_image").output[0]
    for position, expected in {
        1: model.image_start, 2: rows[0], 3: rows[1], 4: model.image_newline, 5: rows[2], 6: rows[3],
        7: model.image_newline, 8: model.image_end, 9: model.embed.weight[prompt(10)[0, 9]],
    }.items():  # fmt: skip
        assert torch.equal(merged[position], expected), position
    x = calls.of("vision.patch_embed.proj", "linear").output
    assert torch.equal(calls.of("vision.patch_embed.proj", "linear").inputs["x"], patches.double().flatten(1))
    for block in range(model.args.vision_n_layers):
        path = f"vision.blocks.{block}"
        assert torch.equal(calls.of(f"{path}.norm1", "rms_norm").inputs["x"], x)
        x = x + calls.of(f"{path}.attn.wo", "linear").output
        assert torch.equal(calls.of(f"{path}.norm2", "rms_norm").inputs["x"], x)
        normed = calls.of(f"{path}.norm2", "rms_norm").output
        assert torch.equal(calls.of(f"{path}.mlp.w1", "linear").inputs["x"], normed)
        x = x + calls.of(f"{path}.mlp.w2", "linear").output
    assert torch.equal(calls.of("vision.norm", "rms_norm").inputs["x"], x)
    assert {call.inputs["eps"] for call in calls if call.path.startswith("vision") and call.op == "rms_norm"} == {1e-6}


ROUNDED = {
    # what the quantised model rounds -> operation, and which input of the next step is its output
    "window rows": ("layers.0.attn", "fp8_round", 32),
    "compressed rows": ("layers.1.attn", "fp4_e4m3_round", 16),
    "index keys and queries": ("layers.1.attn.indexer", "fp4_e8m0_round", 32),
    "draft rows": ("mtp.0.attn", "fp8_round", 32),
}


@pytest.mark.parametrize("what", ROUNDED)
def test_rounding_comes_after_rotation_and_over_the_whole_row(what: str) -> None:
    path, op, group = ROUNDED[what]
    model = tiny_model(quantise=True)
    step = model(prompt(9), 0)
    model.draft(step.ids, 0, step.draft_context)
    calls = record(model, lambda: model(prompt(1), 9))
    calls += record(model, lambda: model.draft(step.ids, 9, step.draft_context[:, -1:]))
    rounded = [call for call in calls if (call.path, call.op) == (path, op)]
    turned = [call.output for call in calls if (call.path, call.op) == (path, "rotate")]
    assert rounded and all(call.inputs["group"] == group for call in rounded)
    for call in rounded:
        assert any(call.inputs["x"] is output for output in turned)
    if what == "index keys and queries":
        assert len(rounded) == 2


def test_every_fp8_and_fp4_matrix_sees_rounded_inputs_and_the_others_do_not() -> None:
    model = tiny_model(quantise=True)
    calls = record(model, lambda: model(prompt(9), 0))
    products = {call.path for call in calls if call.op in ("fp8_gemm", "fp4_gemm")}
    assert products == {call.path for call in calls if call.op == "fp8_quantise"}
    assert "layers.0.engram.wkv" in products and "layers.4.ffn.shared_experts.w2" in products
    plain = {call.path for call in calls if call.op in ("linear", "linear_fp32", "grouped_output")}
    assert plain & {"layers.1.attn.indexer.wk", "layers.1.attn.indexer.weights_proj", "layers.0.attn.wo_a", "head"}
    assert {"layers.1.attn.compressor.wkv", "layers.1.attn.compressor.wgate", "layers.4.attn.compressor.wkv"} <= plain
    wide = {call.path for call in calls if call.op == "linear_fp32"}
    assert "layers.1.attn.compressor.wkv" in wide and "layers.4.attn.compressor.wkv" not in wide
