# How far a published number was rounded, and whether an exact value comes to it.
"""Compare exact values with published numbers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

Rule = Literal["exact", "nearest", "truncated"]

#: What each rule does, as pages say it.
WORDS: dict[str, str] = {
    "exact": "exactly",
    "nearest": "rounded to the nearest",
    "truncated": "cut off",
}
#: Digits after the point that are shown of a value that has more.
SHOWN_DIGITS = 6


@dataclass(frozen=True)
class Comparison:
    """An exact value beside a published number: `value` in the published unit, and what the rule makes of it."""

    value: Fraction
    number: str
    rule: Rule

    @property
    def decimals(self) -> int:
        """Digits that the published number has after its point."""
        return len(self.number.partition(".")[2])

    @property
    def agrees(self) -> bool:
        """Whether the value comes to the published number under the rule."""
        if self.rule == "exact":
            return self.value == Fraction(self.number)
        return rounded(self.value, self.decimals, self.rule) == Fraction(self.number)

    @property
    def shown(self) -> str:
        """The value in the published unit, `551.880835`; a longer one ends in `…`."""
        return decimal_text(self.value)

    @property
    def result(self) -> str:
        """What the rule makes of the value."""
        if self.rule == "exact":
            return self.shown
        return decimal_text(rounded(self.value, self.decimals, self.rule), self.decimals)

    @property
    def otherwise(self) -> str:
        """What the other way of rounding gives, where it differs; else nothing."""
        if self.rule == "exact":
            return ""
        other: Rule = "nearest" if self.rule == "truncated" else "truncated"
        value = rounded(self.value, self.decimals, other)
        if value == rounded(self.value, self.decimals, self.rule):
            return ""
        return f"{WORDS[other]}: {decimal_text(value, self.decimals)}"


def rounded(value: Fraction, decimals: int, rule: Rule) -> Fraction:
    """`value` with so many digits after the point; a half goes away from zero.  Values are not negative."""
    scaled = value * 10**decimals
    whole = scaled.numerator // scaled.denominator
    if rule == "nearest" and scaled - whole >= Fraction(1, 2):
        whole += 1
    return Fraction(whole, 10**decimals)


def decimal_text(value: Fraction, decimals: int | None = None) -> str:
    """An exact value as decimal digits: all of them, `decimals`, or the first few and `…`."""
    digits = SHOWN_DIGITS if decimals is None else decimals
    scaled = abs(value) * 10**digits
    whole = scaled.numerator // scaled.denominator
    head, tail = divmod(whole, 10**digits)
    text = f"{head:,}"
    if digits:
        shown = f"{tail:0{digits}d}"
        text += "." + shown if decimals is not None else ("." + shown).rstrip("0").rstrip(".")
    if decimals is None and scaled != whole:
        text += "…"
    return ("−" if value < 0 else "") + text
