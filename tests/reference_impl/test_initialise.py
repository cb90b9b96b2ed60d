"""Random weights: deterministic by seed and name, and nothing left at a value that hides a mistake."""

from __future__ import annotations

import pytest
import torch
from tiny_models import prompt, tiny_model
from torch import nn

from reference_impl.initialise import draw, quantise_blocks, randomise
from reference_impl.layers import Linear
from reference_impl.ops import fp8_dequantise
from reference_impl.ops.rounding import e2m1_unpack


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(torch.uint8)


def test_same_seed_same_bits_other_seed_other_bits() -> None:
    a, b, c = (tiny_model(quantise=True, seed=seed).state_dict() for seed in (3, 3, 4))
    for name in a:
        assert torch.equal(bits(a[name]), bits(b[name])), name
        assert not torch.equal(bits(a[name]), bits(c[name])) or name.endswith(".scale"), name


def test_no_tensor_is_constant_and_no_two_are_alike() -> None:
    state = tiny_model().state_dict()
    for name, tensor in state.items():
        assert tensor.unique().numel() == tensor.numel() or tensor.numel() > 1000, name
        assert ((tensor == 0) | (tensor == 1)).double().mean() < 0.01, name
    seen = {}
    for name, tensor in state.items():
        key = tuple(tensor.flatten()[:3].tolist())
        assert key not in seen, f"{name} starts like {seen.get(key)}"
        seen[key] = name


def test_a_quantised_weight_is_the_rounding_of_the_float_one() -> None:
    quantised, plain = tiny_model(quantise=True), tiny_model()
    for name in ("layers.2.attn.wq_a", "layers.2.ffn.shared_experts.w2", "mtp.0.main_proj", "layers.1.engram.wkv"):
        module, exact = quantised.get_submodule(name), plain.get_submodule(name).weight
        error = (fp8_dequantise(module.weight, module.scale, out_dtype=torch.float64) - exact).abs()
        assert 0 < error.max() <= exact.abs().max() * 2**-4, name
    expert = quantised.layers[0].ffn.experts[1].w3
    values = e2m1_unpack(expert.weight) * expert.scale.float().repeat_interleave(32, -1)
    exact = plain.layers[0].ffn.experts[1].w3.weight
    assert 0 < (values - exact).abs().max() <= exact.abs().max() / 4


def test_scales_differ_between_blocks() -> None:
    model = tiny_model(quantise=True)
    scale = model.layers[2].attn.wq_b.scale.float()
    assert scale.unique().numel() > 1
    assert model.layers[0].engram.embed.scale.float().unique().numel() > 1


def test_block_rounding_keeps_a_partial_block() -> None:
    values = torch.linspace(-3, 5, 40 * 64).reshape(40, 64)
    codes, scale = quantise_blocks(values)
    assert codes.shape == (40, 64) and scale.shape == (2, 2)
    assert (fp8_dequantise(codes, scale, out_dtype=torch.float32) - values).abs().max() < 5 * 2**-4


def test_a_tensor_without_role_is_refused() -> None:
    module = nn.Module()
    module.register_parameter("mystery", nn.Parameter(torch.zeros(2), requires_grad=False))
    with pytest.raises(ValueError, match=r"no role for tensor mystery of shape \[2\]"):
        randomise(module, 0)
    with pytest.raises(ValueError, match="no role for tensor layers.0.mystery"):
        draw("layers.0.mystery", (2,), 0)


def test_logical_shapes_count_fp4_codes_one_by_one() -> None:
    model = tiny_model(quantise=True)
    assert model.layers[0].ffn.experts[0].w1.logical_shape == (64, 96)
    assert tuple(model.layers[0].ffn.experts[0].w1.weight.shape) == (64, 48)
    assert isinstance(model.layers[0].attn.wq_a, Linear) and model.layers[0].attn.wq_a.logical_shape == (160, 96)


def test_the_random_model_is_alive_at_every_layer() -> None:
    """Logits spread and depend on the prompt, so that tests on it can fail."""
    model = tiny_model(quantise=True)
    a, b = model(prompt(20), 0).logits, model(prompt(20, seed=2), 0).logits
    assert a.isfinite().all() and a.std() > 0.3 and (a - b).abs().max() > 0.1
