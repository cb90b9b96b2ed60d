# How one symbol is typeset.  A symbol's TeX is split into letter, subscript and superscript, so that
# indices and exponents join its own scripts instead of stacking a second pair, and so that the letter
# alone can be marked for highlighting.
"""TeX of single symbols and numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from sitegen.formula.source import number

GREEK = (
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi pi rho sigma "
    "tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
).split()
_GREEK_NAMES = {**{name: f"\\{name}" for name in GREEK}, "eps": r"\epsilon"}


@dataclass(frozen=True)
class SymbolTex:
    """The TeX of a symbol.

    Attributes:
        letter: what is highlighted, such as `u` or `\\epsilon`.
        sub: its own subscript, without indices.
        sup: its own superscript; a prime is `'`.
        brackets: write indices as `X[s, d]` instead of as a subscript.
    """

    letter: str
    sub: str = ""
    sup: str = ""
    brackets: bool = False

    @classmethod
    def of(cls, tex: str, *, brackets: bool = False) -> SymbolTex:
        """Splits `W_{\\mathrm{kv}}'` into letter and scripts; scripts inside braces stay with the letter."""
        depth = 0
        for place, character in enumerate(tex):
            if character in "{[":
                depth += 1
            elif character in "}]":
                depth -= 1
            elif depth == 0 and place and character in "_^'" and tex[place - 1] != "\\":
                scripts = _scripts(tex[place:])
                if scripts is not None:
                    return cls(tex[:place].strip(), *scripts, brackets=brackets)
                break
        return cls(tex.strip(), brackets=brackets)

    @classmethod
    def default(cls, name: str) -> SymbolTex:
        """The TeX of a symbol that has none: `eps_norm` becomes an epsilon with the subscript norm."""
        stem = name.rstrip("'")
        primes = name[len(stem) :]
        head, _, rest = stem.partition("_")
        if not rest and (match := re.fullmatch(r"([A-Za-z])([0-9]+)", head)):
            head, rest = match.groups()
        letter = _GREEK_NAMES.get(head) or (head if len(head) == 1 else rf"\mathrm{{{head}}}")
        words = [word for word in rest.split("_") if word]
        sub = ",".join(word if len(word) == 1 or word.isdigit() else rf"\mathrm{{{word}}}" for word in words)
        return cls(letter, sub, primes)


_SCRIPT = re.compile(r"\s*([_^])\s*(\{|\\[A-Za-z]+|[^\s{}\\])|\s*('+)")


def _scripts(tail: str) -> tuple[str, str] | None:
    """Sub- and superscript of a text made of scripts only, otherwise None."""
    found = {"_": "", "^": ""}
    at = 0
    while at < len(tail):
        match = _SCRIPT.match(tail, at)
        if match is None:
            return None
        mark, content, primes = match.groups()
        at = match.end()
        if primes:
            mark, content = "^", primes
        elif content == "{":
            end = closing(tail, at - 1)
            content, at = tail[at : end - 1], end
        if found[mark]:
            return None
        found[mark] = content.strip()
    sup = found["^"]
    return found["_"], "'" * (sup.count(r"\prime")) if re.fullmatch(r"(\\prime\s*)+", sup) else sup


def closing(tex: str, opening: int) -> int:
    """The place after the brace that closes the one at `opening`; the end of the text if none does."""
    depth = 0
    place = opening
    while place < len(tex):
        if tex[place] == "\\":
            place += 1
        elif tex[place] == "{":
            depth += 1
        elif tex[place] == "}":
            depth -= 1
            if depth == 0:
                return place + 1
        place += 1
    return len(tex)


def number_tex(value: int | float) -> str:
    """A number: 20480 as 20{,}480, 1e-6 as 10^{-6}, 2.5e-7 as 2.5\\cdot 10^{-7}."""
    if isinstance(value, int):
        text = str(value) if abs(value) < 10_000 else f"{value:,}".replace(",", "{,}")
        return text
    text = number(value)
    if "e" not in text and (value == 0 or 1e-3 <= abs(value) < 1e6):
        return text
    sign, digits, exponent = Decimal(text).as_tuple()
    if not isinstance(exponent, int):  # not a finite number; the parser lets none pass
        return text
    shown = "".join(map(str, digits)).rstrip("0") or "0"
    power = exponent + len(digits) - 1
    mantissa = shown[0] + (f".{shown[1:]}" if shown[1:] else "")
    minus = "-" if sign else ""
    return f"{minus}10^{{{power}}}" if mantissa == "1" else rf"{minus}{mantissa}\cdot 10^{{{power}}}"
