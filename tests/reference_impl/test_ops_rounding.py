"""The roundings and products on hand-worked numbers."""

from __future__ import annotations

import pytest
import torch

from reference_impl import ops
from reference_impl.ops.rounding import e2m1_decode, e2m1_encode, e2m1_pack, e2m1_unpack, power_of_two_above


@pytest.mark.parametrize(
    ("value", "power"),
    [(1.0, 1.0), (1.0000001, 2.0), (0.9999999, 1.0), (3.0, 4.0), (0.5, 0.5), (2.0**-126, 2.0**-126), (6e4, 65536.0)],
)
def test_powers_of_two_are_rounded_up(value: float, power: float) -> None:
    assert power_of_two_above(torch.tensor(value)).item() == power


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (0.0, 0), (0.25, 0), (0.26, 1), (0.75, 2), (1.0, 2), (1.25, 2), (1.75, 4), (2.5, 4), (2.51, 5), (3.5, 6),
        (5.0, 6), (5.01, 7), (6.0, 7), (-0.0, 8), (-0.25, 8), (-1.5, 11), (-6.0, 15),
    ],
)  # fmt: skip
def test_fp4_codes_ties_to_even_sign_kept(value: float, code: int) -> None:
    assert e2m1_encode(torch.tensor([value])).item() == code


def test_low_nibble_is_the_even_feature() -> None:
    packed = e2m1_pack(torch.tensor([[1, 15, 8, 7]], dtype=torch.uint8))
    assert packed.tolist() == [[0xF1, 0x78]]
    assert e2m1_unpack(packed.view(torch.int8)).tolist() == [[0.5, -6.0, 0.0, 6.0]]
    codes = torch.arange(16)
    values = e2m1_decode(codes)
    assert torch.equal(e2m1_encode(values), codes.to(torch.uint8))


ROUNDINGS = {
    # operation, group, first value of the group, its scale, what the first value becomes
    "fp8, zero group: floor 1e-4": (ops.fp8_quantise, 32, 0.0, 2.0**-22, 0.0),
    "fp8, amax 448 keeps scale 1": (ops.fp8_quantise, 32, 448.0, 1.0, 448.0),
    "fp8, amax above 448 doubles it": (ops.fp8_quantise, 32, 449.0, 2.0, 448.0),
    "fp4 e8m0, amax 6 keeps scale 1": (ops.fp4_e8m0_quantise, 32, 6.0, 1.0, 6.0),
    "fp4 e8m0, amax above 6": (ops.fp4_e8m0_quantise, 32, 7.0, 2.0, 8.0),
    "fp4 e8m0, zero group": (ops.fp4_e8m0_quantise, 32, 0.0, 2.0**-126, 0.0),
    "fp4 e4m3, scale is no power of two": (ops.fp4_e4m3_quantise, 16, 9.0, 1.5, 9.0),
    "fp4 e4m3, zero group: floor 6 * 2^-9": (ops.fp4_e4m3_quantise, 16, 0.0, 2.0**-9, 0.0),
    "fp4 e4m3, saturates at 448 * 6": (ops.fp4_e4m3_quantise, 16, 5000.0, 448.0, 2688.0),
}
ROUNDTRIP = {
    ops.fp8_quantise: ops.fp8_round,
    ops.fp4_e8m0_quantise: ops.fp4_e8m0_round,
    ops.fp4_e4m3_quantise: ops.fp4_e4m3_round,
}


@pytest.mark.parametrize("case", ROUNDINGS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_scale_and_value(case: str, dtype: torch.dtype) -> None:
    quantise, group, value, scale, rounded = ROUNDINGS[case]
    x = torch.zeros(2, 2 * group, dtype=dtype)
    x[1, group] = value  # the second group of the second row
    assert quantise(x, group=group).scale.float()[1, 1].item() == scale
    roundtrip = ROUNDTRIP[quantise](x, group=group)
    assert roundtrip.dtype == dtype and roundtrip[1, group].item() == rounded
    assert not roundtrip[0].any() and not roundtrip[1, :group].any(), "groups do not share scales"


@pytest.mark.parametrize("quantise", ROUNDTRIP, ids=lambda op: op.__name__)
def test_no_rows_and_groups_that_do_not_divide(quantise) -> None:
    group = 32
    assert quantise(torch.zeros(0, 64), group=group).scale.shape == (0, 2)
    with pytest.raises(ValueError, match="40 features do not divide into groups of 32"):
        quantise(torch.zeros(1, 40), group=group)


@pytest.mark.parametrize("roundtrip", ROUNDTRIP.values(), ids=lambda op: op.__name__)
def test_rounding_twice_is_rounding_once(normal, roundtrip) -> None:
    x = roundtrip(8 * normal(64, 64), group=16)
    assert torch.equal(roundtrip(x, group=16), x)


@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize("outputs", [32, 40])
def test_products_equal_the_product_of_the_values(normal, rows: int, outputs: int) -> None:
    """Also where the last block of 32 rows is partial."""
    inputs = 96
    x = ops.fp8_quantise(normal(rows, inputs), group=32)
    values = x.codes.double() * x.scale.double().repeat_interleave(32, -1)
    dense = ops.fp8_quantise(normal(outputs, inputs), group=32).codes
    block = torch.exp2(torch.arange(-2, 4).reshape(2, 3)[: -(-outputs // 32)].float()).to(torch.float8_e8m0fnu)
    exact = dense.double() * block.double().repeat_interleave(32, 0)[:outputs].repeat_interleave(32, 1)
    y = ops.fp8_gemm(*x, dense, block, out_dtype=torch.float64)
    assert torch.allclose(y, values @ exact.T, rtol=1e-12, atol=1e-12) and y.shape == (rows, outputs)
    assert torch.equal(ops.fp8_dequantise(dense, block, out_dtype=torch.float64), exact)

    packed, scale = ops.fp4_e8m0_quantise(normal(outputs, inputs), group=32)
    exact = e2m1_unpack(packed).double() * scale.double().repeat_interleave(32, -1)
    y = ops.fp4_gemm(*x, packed.view(torch.int8), scale, out_dtype=torch.float64)
    assert torch.allclose(y, values @ exact.T, rtol=1e-12, atol=1e-12)


def test_product_scales_of_one_block_reach_only_its_outputs() -> None:
    x = ops.fp8_quantise(torch.ones(1, 64), group=32)
    weight = torch.ones(64, 64).to(torch.float8_e4m3fn)
    scale = torch.tensor([[1.0, 2.0], [4.0, 8.0]]).to(torch.float8_e8m0fnu)
    y = ops.fp8_gemm(*x, weight, scale, out_dtype=torch.float32)
    assert y[0, :32].tolist() == [96.0] * 32 and y[0, 32:].tolist() == [384.0] * 32
