# The math font: STIX Two Math from the ziamath package, cut down to the characters that pages use.
#
# The browser shows a single Latin or Greek letter of a formula in its mathematical italic form, so
# those forms are kept for every letter; stretchy variants follow through the font's MATH table.
"""Subset the math font, with its licence beside it."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from sitegen.diagnostics import SitegenError

FILE_NAME = "stix-two-math.woff2"
LICENCE_NAME = "stix-two-math.OFL.txt"

_ITALIC_LATIN = {chr(ord("A") + i): chr(0x1D434 + i) for i in range(26)} | {
    chr(ord("a") + i): chr(0x1D44E + i) for i in range(26)
}
_ITALIC_LATIN["h"] = "\u210e"
_GREEK = "ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡϴΣΤΥΦΧΨΩ∇αβγδεζηθικλμνξοπρςστυφχψω∂ϵϑϰϕϱϖ"
_ITALIC_GREEK = {letter: chr(0x1D6E2 + i) for i, letter in enumerate(_GREEK)}
# Always present, so that small edits of a spec do not give readers a new font file.
_ALWAYS = "".join(map(chr, range(0x20, 0x7F))) + "".join(_ITALIC_LATIN.values()) + "−×·∑∏√′∈≤≥≠←→∞ˆ¯˜⌊⌋⌈⌉ℝ"


def source() -> Path:
    """The whole font.  Raises `SitegenError` when the ziamath package is missing."""
    spec = importlib.util.find_spec("ziamath")
    if spec is None or spec.origin is None:
        raise SitegenError("the math font is missing", hint="pip install ziamath, which carries STIX Two Math")
    return Path(spec.origin).parent / "fonts" / "STIXTwoMath-Regular.ttf"


def wanted(characters: Iterable[str]) -> str:
    """The characters to keep, sorted: those used, their italic forms, and a fixed set."""
    letters = set(_ALWAYS)
    for character in characters:
        letters.add(character)
        letters.add(_ITALIC_LATIN.get(character, character))
        letters.add(_ITALIC_GREEK.get(character, character))
    return "".join(sorted(letters))


def subset_font(characters: Iterable[str], cache: Path | None = None) -> bytes:
    """A WOFF2 file with the characters needed for `characters`; kept in `cache` under its content's digest."""
    text = wanted(characters)
    file = source()
    key = hashlib.sha256(f"1\0{file.stat().st_size}\0{text}".encode()).hexdigest()
    kept = cache / f"{key}.woff2" if cache else None
    if kept is not None:
        with contextlib.suppress(OSError):
            data = kept.read_bytes()
            if data[:4] == b"wOF2":
                return data
    data = _subset(file, text)
    if kept is not None:
        with contextlib.suppress(OSError):
            kept.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=kept.parent, suffix=".part")
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            os.replace(name, kept)
    return data


def _subset(file: Path, text: str) -> bytes:
    import logging

    from fontTools import subset
    from fontTools.ttLib import TTFont

    logging.getLogger("fontTools").setLevel(logging.ERROR)
    options = subset.Options(flavor="woff2", layout_features=["*"], notdef_outline=True, name_IDs=["*"], hinting=False)
    font = TTFont(file, recalcTimestamp=False)
    chosen = subset.Subsetter(options)
    chosen.populate(text=text)
    chosen.subset(font)
    font.flavor = "woff2"
    stream = io.BytesIO()
    font.save(stream, reorderTables=True)
    return stream.getvalue()
