"""FP8 and FP4 arithmetic on a float's bits, as TileLang expressions: the same on every target, no float8 type needed.

Formats: E4M3 (sign, 4 exponent bits with bias 7, 3 mantissa bits), E2M1 (sign, 2, 1), E8M0 (a power of two, bias 127).
All functions take and give expressions and assume finite values.
"""

from __future__ import annotations

import dataclasses
import math
import struct
from typing import Any

import tilelang.language as T

Expr = Any

SIGN = T.int32(-(2**31))
# An E4M3 number's bits, moved to the top of a float32's exponent and mantissa, read 2^120 times too small: the biases
# differ by 127 - 7. That holds for its subnormals too, which become float32 subnormals.
E4M3_BIAS_GAP = 2.0**120


def bits(x: Expr) -> Expr:
    return T.reinterpret(x, "int32")


def from_bits(b: Expr) -> Expr:
    return T.reinterpret(b, "float32")


def constant(x: float) -> Expr:
    """Python number -> float32, nearest, exact on every target.

    The host target prints float constants with 7 digits, two short of a float32. Its 24 bits are therefore given as two
    halves, each a short whole number scaled by a call that TileLang cannot fold back into one constant.
    """
    mantissa, exponent = math.frexp(struct.unpack("<f", struct.pack("<f", x))[0])
    high, low = divmod(int(mantissa * 2**24), 2**12)
    scaled = T.call_pure_extern("float32", "ldexpf", T.float32(high), T.int32(exponent - 12))
    return scaled + T.call_pure_extern("float32", "ldexpf", T.float32(low), T.int32(exponent - 24)) if low else scaled


def magnitude(x: Expr) -> Expr:
    """|x|, by the sign bit: the host target has no fabs."""
    return from_bits(bits(x) & 0x7FFFFFFF)


def power_of_two(exponent_byte: Expr) -> Expr:
    """E8M0 byte (int32) -> float32 2^(byte - 127); byte 0 is the float32 subnormal 2^-127."""
    return from_bits(T.if_then_else(exponent_byte == 0, T.int32(0x400000), exponent_byte << 23))


def power_of_two_byte_above(x: Expr) -> Expr:
    """x > 0, normal -> E8M0 byte (int32) of the smallest power of two that is not below x."""
    return (bits(x) >> 23) + T.if_then_else((bits(x) & 0x7FFFFF) == 0, T.int32(0), T.int32(1))


def inverse_power_of_two(exponent_byte: Expr) -> Expr:
    """E8M0 byte (int32) in 1..253 -> float32 2^(127 - byte)."""
    return from_bits((254 - exponent_byte) << 23)


@dataclasses.dataclass(frozen=True)
class Format:
    """A float format whose values are whole numbers of steps, the step given by the exponent."""

    min_exponent: int  # of the smallest normal number; below it the step stays
    mantissa_bits: int

    def exponent_field(self, size: Expr) -> Expr:
        """size >= 0 -> float32 exponent field (int32) of its binade, at least that of the smallest normal number."""
        return T.max(bits(size) >> 23, T.int32(127 + self.min_exponent))

    def steps(self, size: Expr) -> Expr:
        """size >= 0 -> int32: nearest number of steps, ties to even.

        Adding 1.5 * 2^23 steps leaves no digit below a step, so the sum's last bits count the steps. They are taken as
        integers: (size + offset) - offset would be simplified away.
        """
        offset = ((self.exponent_field(size) - self.mantissa_bits + 23) << 23) | T.int32(0x400000)
        return bits(size + from_bits(offset)) - offset

    def value(self, size: Expr) -> Expr:
        """size >= 0 -> float32: the nearest value of the format."""
        step = from_bits((self.exponent_field(size) - self.mantissa_bits) << 23)
        return T.cast(self.steps(size), "float32") * step

    def code(self, size: Expr) -> Expr:
        """size >= 0 -> int32: the code of that value, without sign; a step up from the last mantissa carries over."""
        binade = self.exponent_field(size) - (127 + self.min_exponent)
        return (binade << self.mantissa_bits) + self.steps(size)


E4M3 = Format(min_exponent=-6, mantissa_bits=3)
E2M1 = Format(min_exponent=0, mantissa_bits=1)


def with_sign(size: Expr, signed: Expr) -> Expr:
    """size >= 0 with the sign bit of `signed`, that of a zero too."""
    return from_bits(bits(size) | (bits(signed) & SIGN))


def e4m3_byte(size: Expr, signed: Expr) -> Expr:
    """0 <= size <= 448, and a float of its sign -> uint8: the nearest E4M3 code."""
    return T.cast(E4M3.code(size) | ((bits(signed) >> 24) & 0x80), "uint8")


def e4m3_value(byte: Expr) -> Expr:
    """uint8 E4M3 code -> float32; the two NaN codes are not treated apart."""
    wide = T.cast(byte, "int32")
    return from_bits(((wide & 0x7F) << 20) | ((wide & 0x80) << 24)) * constant(E4M3_BIAS_GAP)


def e2m1_value(nibble: Expr) -> Expr:
    """int32 E2M1 code 0..15 -> float32: as for E4M3, with the biases 127 - 1 apart."""
    return from_bits(((nibble & 7) << 22) | ((nibble & 8) << 28)) * constant(2.0**126)


def bfloat16_value(x: Expr) -> Expr:
    """float32 -> float32: rounded to 8 significant bits, ties to even, for targets without the type."""
    b = bits(x)
    return from_bits((b + 0x7FFF + ((b >> 16) & 1)) & T.int32(-0x10000))
