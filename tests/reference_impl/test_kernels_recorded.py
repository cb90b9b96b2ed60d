"""The twins on the host target against recorded numbers of the public reference."""

from __future__ import annotations

import json

import pytest
import torch
from kernel_cache import kernel_cache  # noqa: F401

pytest.importorskip("tilelang", reason="the twins need the package tilelang")
load_file = pytest.importorskip("safetensors.torch", reason="the fixtures need the package safetensors").load_file

from reference_impl.kernels.fp4_e4m3_round import fp4_e4m3_round  # noqa: E402
from reference_impl.kernels.fp4_e8m0_round import fp4_e8m0_round  # noqa: E402
from reference_impl.kernels.fp4_gemm import fp4_gemm  # noqa: E402
from reference_impl.kernels.fp8_gemm import fp8_gemm  # noqa: E402
from reference_impl.kernels.fp8_quantise import fp8_quantise  # noqa: E402
from reference_impl.kernels.fp8_round import fp8_round  # noqa: E402
from reference_impl.kernels.hc_split_sinkhorn import hc_split_sinkhorn  # noqa: E402
from reference_impl.kernels.sparse_attention import sparse_attention  # noqa: E402


@pytest.fixture(scope="module")
def primitives(recorded_folder):
    return load_file(recorded_folder / "primitives.safetensors")


def prefixes(tensors: dict, kind: str, ending: str) -> list[str]:
    names = [name.removesuffix(ending) for name in tensors if name.startswith(kind) and name.endswith(ending)]
    assert names, f"no {kind}*{ending} in the fixtures"
    return names


def test_roundings_are_equal_bit_for_bit(primitives):
    for name in prefixes(primitives, "quant.", ".x"):
        x = primitives[f"{name}.x"]
        codes, scale = fp8_quantise(x, group=32, target="c")
        pairs = {
            "fp8_q": codes,
            "fp8_scale": scale,
            "fp8_roundtrip": fp8_round(x, group=32, target="c"),
            "fp4_e8m0_roundtrip": fp4_e8m0_round(x, group=32, target="c"),
            "fp4_e4m3_roundtrip": fp4_e4m3_round(x, group=16, target="c"),
        }
        for what, got in pairs.items():
            expected = primitives[f"{name}.{what}"]
            assert got.shape == expected.shape and got.dtype == expected.dtype, f"{name}.{what}"
            integers = torch.uint8 if got.element_size() == 1 else torch.int16
            unequal = int((got.view(integers) != expected.view(integers)).sum())
            assert unequal == 0, f"{name}.{what}: {unequal} of {got.numel()} values differ"


def test_products_agree_before_and_after_the_cast(primitives):
    """Before the cast 1e-5 of the largest result, as the fixtures state; after it, equal but for rare single steps."""
    for name in prefixes(primitives, "gemm.", ".x"):
        x = fp8_quantise(primitives[f"{name}.x"], group=32, target="c")
        for kind, product in (("8", fp8_gemm), ("4", fp4_gemm)):
            weight, scale = primitives[f"{name}.w{kind}"], primitives[f"{name}.w{kind}_scale"]
            wide = product(x.codes, x.scale, weight, scale, out_dtype=torch.float32, target="c")
            expected = primitives[f"{name}.y{kind}_f32"]
            assert (wide - expected).abs().max() <= 1e-5 * expected.abs().max(), f"{name}.y{kind}_f32"
            narrow = product(x.codes, x.scale, weight, scale, out_dtype=torch.bfloat16, target="c")
            steps = (narrow.view(torch.int16) - primitives[f"{name}.y{kind}_bf16"].view(torch.int16)).abs()
            assert steps.max() <= 1 and (steps > 0).float().mean() < 0.01, f"{name}.y{kind}_bf16"


def test_sparse_attention_agrees_with_exact_values(primitives):
    """8e-3 from the exact value in bf16, 5e-6 in float32, as the fixtures state."""
    for name in prefixes(primitives, "sparse_attn.", ".q"):
        q, kv, sink, slots, exact = (primitives[f"{name}.{part}"] for part in ("q", "kv", "sink", "slots", "out_f64"))
        scale = q.shape[-1] ** -0.5
        assert (sparse_attention(q, kv, slots, sink, scale=scale, target="c") - exact).abs().max() <= 8e-3, name
        wide = sparse_attention(q.float(), kv.float(), slots, sink, scale=scale, target="c")
        assert (wide - exact).abs().max() <= 5e-6, name
        assert torch.equal(wide[exact == 0], torch.zeros_like(wide[exact == 0])), f"{name}: an empty query is not 0"


def test_stream_weights_agree_at_every_scale_round_count_and_stream_count(recorded_folder):
    """1e-6 absolute, as the fixtures state for float32."""
    tensors = load_file(recorded_folder / "sinkhorn.safetensors")
    described = json.loads((recorded_folder / "sinkhorn.json").read_text())["tensors"]
    for name in prefixes(tensors, "", ".comb_f64"):
        mixes = tensors.get(f"{name}.mixes", tensors.get(f"{name.split('.')[0]}.mixes"))
        params = described[f"{name}.comb_f64"]["params"]
        result = hc_split_sinkhorn(
            mixes, tensors[f"{name}.scale"], tensors[f"{name}.base"],
            n=params["hc_mult"], iters=params["sinkhorn_iters"], eps=params["eps"], target="c",
        )  # fmt: skip
        for got, part in zip(result, ("pre", "post", "comb"), strict=True):
            difference = (got - tensors[f"{name}.{part}_f64"]).abs().max()
            assert difference <= 1e-6, f"{name}.{part}: {difference:.2e}"
