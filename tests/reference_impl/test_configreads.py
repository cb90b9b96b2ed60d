"""Fields of the configuration, followed to the tensors and operations that their values reach."""

from __future__ import annotations

import json
from functools import cache

import pytest

from reference_impl import harness
from reference_impl.config import RELEASED, TINY, ModelArgs
from reference_impl.configreads import TracedFloat, TracedInt, fields_of, other_values, refusal, traced
from reference_impl.layers import Build


@cache
def reads() -> tuple[list[harness.ConfigRead], dict[str, str]]:
    config = json.loads(RELEASED.read_text("utf-8")) | TINY
    return harness.config_reads(config, dtype="float64", batch=2, positions=11, seed=1)


@pytest.mark.parametrize(
    "read",
    [
        harness.ConfigRead("hc_mult", "layers.0", tensor="layers.0.hc_attn_fn"),
        harness.ConfigRead("dim", "layers.0", tensor="layers.0.hc_attn_fn"),
        harness.ConfigRead("hc_eps", "layers.3", operation="hc_split_sinkhorn"),
        harness.ConfigRead("norm_eps", "norm", operation="rms_norm"),
        harness.ConfigRead("rope_factor", "layers.1.attn", operation="rotary_frequencies"),
        harness.ConfigRead("engram_vocab_size", "ngram_hash", operation="bucket_primes"),
        harness.ConfigRead("engram_num_embeddings", "layers.1.engram.embed", tensor="layers.1.engram.embed.weight"),
        harness.ConfigRead("kv_source_layers", "layers.1.attn"),
        harness.ConfigRead("dspark_noise_token_id", ""),
        harness.ConfigRead("head_dim", "layers.0.attn", operation="sparse_attention"),
    ],
)
def test_a_value_is_seen_where_it_arrives(read: harness.ConfigRead) -> None:
    assert read in reads()[0]


@pytest.mark.parametrize(
    ("field", "part"),
    [("vocab_size", "layers.0"), ("hc_mult", "vision"), ("vision_dim", "layers.0"), ("index_topk", "layers.0")],
)
def test_a_value_is_not_seen_where_it_does_not_arrive(field: str, part: str) -> None:
    assert not [r for r in reads()[0] if r.field == field and (r.module + ".").startswith(part + ".")]


def test_fields_that_reach_nothing_are_named_with_what_the_check_says() -> None:
    found = reads()[1]
    assert set(found) == {
        "n_shared_experts", "score_func", "dtype", "expert_dtype", "vision_max_n_token", "vision_min_pixels",
        "vision_max_wh_ratio", "image_token_id",
    }  # fmt: skip
    assert {name for name, said in found.items() if not said} == {
        "vision_max_n_token", "vision_min_pixels", "image_token_id",
    }  # fmt: skip
    assert "but this implementation has only 'sqrtsoftplus'" in found["score_func"]


def test_watching_leaves_no_trace() -> None:
    kept = Build.parameter, Build.cache
    reads()
    assert (Build.parameter, Build.cache) == kept
    assert type(ModelArgs.tiny().dim) is int


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        (traced(6, frozenset("a")) * traced(7, frozenset("b")) + 1, "ab"),
        (100 - traced(6, frozenset("a")), "a"),
        (traced(6, frozenset("a")) / 4, "a"),
        (traced(1e-6, frozenset("e")) * 2, "e"),
        (-traced(6, frozenset("a")) // 4, "a"),
        (traced(6, frozenset("a")) ** -0.5, "a"),
        ((1, traced((2, 3), frozenset("l"))), "l"),
        (2, ""),
        ("text", ""),
    ],
)
def test_names_travel_with_the_numbers(value: object, fields: str) -> None:
    assert fields_of(value) == frozenset(fields)


def test_traced_numbers_are_the_numbers_that_they_are() -> None:
    a = traced(6, frozenset("a"))
    assert isinstance(a, TracedInt) and a == 6 and list(range(a)) == [0, 1, 2, 3, 4, 5] and 7 - a == 1
    assert isinstance(traced(0.5, frozenset("b")), TracedFloat) and traced(True, frozenset("c")) is True


def test_another_value_is_refused_or_taken() -> None:
    config = json.loads(RELEASED.read_text("utf-8"))
    assert refusal(config, "vision_min_pixels") == ""
    assert "expected null" in refusal(config, "vision_max_wh_ratio")
    assert other_values([1]) == [] and other_values(False) == [True]
