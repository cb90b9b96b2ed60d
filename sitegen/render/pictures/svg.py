# The little SVG that all pictures share: escaped attributes, short numbers, and how wide a text will be.
"""Write inline SVG."""

from __future__ import annotations

from markupsafe import Markup, escape

#: Patterns by which areas are told apart besides their colour; drawn in the colour of the area.
PATTERNS = (
    '<rect width="8" height="8" fill="currentColor"/>',
    '<path d="M-2 2 2-2M0 8 8 0M6 10l4-4" stroke="currentColor" stroke-width="2"/>',
    '<circle cx="2" cy="2" r="1.5" fill="currentColor"/><circle cx="6" cy="6" r="1.5" fill="currentColor"/>',
    '<path d="M0 1.5h8M0 5.5h8" stroke="currentColor" stroke-width="1.5"/>',
    '<path d="M1 0v8M5 0v8" stroke="currentColor" stroke-width="1.5"/>',
    '<path d="M0 0l8 8M8 0 0 8" stroke="currentColor" stroke-width="1.3"/>',
    '<path d="M-2 6l4 4M0 0l8 8M6-2l4 4" stroke="currentColor" stroke-width="1"/>',
    '<path d="M0 4h8M4 0v8" stroke="currentColor" stroke-width="1"/>',
)

_NARROW, _WIDE = frozenset("iljtfrI.,:;'|!()[] "), frozenset("mwMWQO@%—…")


def number(value: float) -> str:
    """A coordinate, at most one digit after the point."""
    text = f"{value:.1f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def tag(name: str, content: Markup | str = "", **attributes: object) -> Markup:
    """An element; `_` in an attribute's name stands for `-`, one at its end is dropped, None leaves it out."""
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(number(value) if isinstance(value, float) else value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{shown}>{escape(content)}</{name}>" if content else f"<{name}{shown}/>")


def defs(prefix: str, used: int) -> Markup:
    """The first `used` patterns as `#PREFIX0`, `#PREFIX1`, …, each in a colour of its own."""
    return Markup("<defs>{}</defs>").format(
        Markup("").join(
            Markup('<pattern id="{}{}" class="ms-hue-{}" width="8" height="8" patternUnits="userSpaceOnUse">').format(
                prefix, k, k % len(PATTERNS)
            )
            + Markup(PATTERNS[k % len(PATTERNS)] + "</pattern>")
            for k in range(used)
        )
    )


def text_width(text: str, size: float) -> float:
    """Room for a line of text in any common sans-serif face of `size` pixels; rather too much than too little."""
    units = sum(0.36 if c in _NARROW else 0.95 if c in _WIDE else 0.72 if c.isupper() else 0.6 for c in text)
    wide = sum(0.4 for c in text if ord(c) > 0x2E80)
    return (units + wide) * size


def wrapped(text: str, size: float, width: float, lines: int = 2) -> tuple[str, ...]:
    """A text in at most `lines` lines no wider than `width`; what does not fit ends in an ellipsis."""
    found: list[str] = []
    words = text.split()
    while words and len(found) < lines:
        line = words.pop(0)
        while words and text_width(f"{line} {words[0]}", size) <= width:
            line += " " + words.pop(0)
        cut = line
        while text_width(cut, size) > width and len(cut) > 1:
            cut = cut[:-1]
        if cut != line:
            line, words = cut, [line[len(cut) :], *words]
        found.append(line)
    if words:
        last = found[-1]
        while last and text_width(last + "…", size) > width:
            last = last[:-1]
        found[-1] = last.rstrip() + "…"
    return tuple(found)


def svg(width: float, height: float, label: str, body: Markup, name: str) -> Markup:
    """The picture itself: as large as drawn on a wide screen, in a box that scrolls where there is less room."""
    size = f"--ms-w:{number(width)};--ms-h:{number(height)}"
    return Markup('<div class="ms-scroll ms-picture__box">{}</div>').format(
        Markup('<svg class="ms-svg {}" viewBox="0 0 {} {}" style="{}" role="group" aria-label="{}">{}</svg>').format(
            name, number(width), number(height), size, label, body
        )
    )
