"""The configuration: the released values, and one clear error for every contradiction."""

from __future__ import annotations

import json

import pytest

from reference_impl.config import RELEASED, TINY, ConfigError, ModelArgs

VALUES = json.loads(RELEASED.read_text(encoding="utf-8"))


def test_the_released_file_has_64_fields_and_five_more_come_from_the_class() -> None:
    args = ModelArgs.from_json()
    assert len(VALUES) == 64
    extra = {name: getattr(args, name) for name in args.__dataclass_fields__ if name not in VALUES}
    assert extra == {
        "max_batch_size": 4, "max_seq_len": 4096, "temperature": 1.0, "gate_temp": 1.0, "norm_topk_prob": True
    }  # fmt: skip
    for name, value in VALUES.items():
        assert getattr(args, name) == (tuple(value) if isinstance(value, list) else value), name


def test_derived_sizes_of_the_released_configuration() -> None:
    args = ModelArgs.from_json()
    assert (args.mix_rows, args.engram_columns) == (24, 24)
    assert [args.kv_source(layer) for layer in (2, 7, 8, 19, 20, 39)] == [2, 2, 8, 14, 20, 20]


def test_the_tiny_configuration_differs_only_where_it_says() -> None:
    args = ModelArgs.tiny(window_size=11)
    assert args.window_size == 11 and args.hc_mult == VALUES["hc_mult"]
    assert all(name in ModelArgs.__dataclass_fields__ for name in TINY)
    args.check_quantisable()


CONTRADICTIONS = {
    # changes to the released values -> what the error says
    "unknown field": ({"hc_mul": 4}, "unknown field 'hc_mul' = 4; did you mean 'hc_mult'?"),
    "wrong type": ({"dim": "5120"}, "dim = '5120', expected a whole number"),
    "float for a size": ({"dim": 5120.0}, "dim = 5120.0, expected a whole number"),
    "truth for a number": ({"hc_eps": True}, "hc_eps = True, expected a number"),
    "list of another type": (
        {"kv_source_layers": [2, "8"]},
        r"kv_source_layers = \[2, '8'\], expected a list of whole",
    ),
    "zero size": ({"window_size": 0}, "window_size = 0, expected more than 0"),
    "negative epsilon": ({"norm_eps": -1e-6}, "norm_eps = -1e-06, expected more than 0"),
    "score function": (
        {"score_func": "sigmoid"},
        "score_func = 'sigmoid', but this implementation has only 'sqrtsoftplus'",
    ),
    "two shared experts": ({"n_shared_experts": 2}, "n_shared_experts = 2, but this implementation has only 1"),
    "aspect cap": ({"vision_max_wh_ratio": 4}, "vision_max_wh_ratio = 4, expected null"),
    "ratios too short": ({"compress_ratios": [0, 2]}, r"compress_ratios has 2 entries, expected .* 40 \+ 3 = 43"),
    "groups": ({"o_groups": 7}, "n_heads = 64 is not a multiple of o_groups = 7"),
    "experts": ({"n_activated_experts": 385}, "n_activated_experts = 385 is more than n_routed_experts = 384"),
    "rotary width": ({"rope_head_dim": 192}, "rope_head_dim = 192 is more than index_head_dim = 128"),
    "odd rotary width": ({"rope_head_dim": 63}, "rope_head_dim = 63, expected an even number"),
    "vision heads": ({"vision_n_heads": 15}, "vision_dim = 1024 is not a multiple of vision_n_heads = 15"),
    "layer out of range": (
        {"engram_layer_ids": [1, 40]},
        r"engram_layer_ids = \[1, 40\], expected .* below n_layers = 40",
    ),
    "layers not rising": ({"kv_source_layers": [8, 2, 14, 20]}, "expected rising layer numbers"),
    "source without ratio": ({"kv_source_layers": [1, 2, 8, 14, 20]}, r"contains 1, but compress_ratios\[1\] = 0"),
    "no source before": ({"kv_source_layers": [8, 14, 20]}, r"compress_ratios\[2\] = 2, but no layer up to 2 is in"),
    "reuse of another ratio": (
        {"kv_source_layers": [2, 8, 14, 21], "index_source_layers": [2, 8, 14, 21], "candidate_source_layer": 21},
        r"compress_ratios\[20\] = 1, but it reads the KV of layer 14, whose ratio is 2",
    ),
    "source without indexer": ({"index_source_layers": [2, 14, 20]}, "kv_source_layers contains 8, but index_source"),
    "candidates from no index source": (
        {"candidate_source_layer": 21},
        "candidate_source_layer = 21 is not in index_so",
    ),
    "candidates of another cache": (
        {"candidate_source_layer": 8},
        "index source 14 reads the compressed KV of layer 14",
    ),
    "token id": ({"image_token_id": 129280}, "image_token_id = 129280 is not below vocab_size = 129280"),
    "no draft taps": ({"dspark_target_layer_ids": []}, r"dspark_target_layer_ids = \[\], expected at least one"),
    "tables": ({"engram_num_embeddings": [384006168]}, "engram_num_embeddings has 1 entries, engram_layer_ids has 2"),
    "table rows": (
        {"engram_num_embeddings": [384006168, 384016681]},
        "has 384016681 rows for layer 14, but its primes from engram_vocab_size = 16000000 sum to 384016682",
    ),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_contradictions(case: str) -> None:
    changes, message = CONTRADICTIONS[case]
    with pytest.raises(ConfigError, match=message):
        ModelArgs.from_dict(VALUES | changes)


def test_missing_fields_are_named_all_at_once() -> None:
    values = {name: value for name, value in VALUES.items() if name not in ("dim", "hc_mult")}
    with pytest.raises(ConfigError, match="missing dim, hc_mult"):
        ModelArgs.from_dict(values)


def test_draft_blocks_have_no_compression() -> None:
    with pytest.raises(ConfigError, match=r"compress_ratios\[42\] = 1, draft blocks have none: expected 0"):
        ModelArgs.from_dict(VALUES | {"compress_ratios": [*VALUES["compress_ratios"][:-1], 1]})


@pytest.mark.parametrize(("text", "message"), [("[1]", "holds a list"), ("{", "cannot read")])
def test_unreadable_files(tmp_path, text: str, message: str) -> None:
    file = tmp_path / "config.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message):
        ModelArgs.from_json(file)
    with pytest.raises(ConfigError, match="cannot read"):
        ModelArgs.from_json(tmp_path / "absent.json")


def test_widths_that_do_not_divide_into_scale_groups() -> None:
    args = ModelArgs.tiny(moe_inter_dim=40)
    with pytest.raises(ConfigError, match="moe_inter_dim = 40 is not a multiple of 32"):
        args.check_quantisable()
