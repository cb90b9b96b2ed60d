# The files that every page needs beside itself: style sheet, script, math font and its licence.
"""Assets of the built site."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files as package_files
from pathlib import Path

from sitegen.render import font, math

FOLDER = "assets/sitegen"
STYLE = f"{FOLDER}/sitegen.css"
SCRIPT = f"{FOLDER}/sitegen.js"


def site_assets(pages: Iterable[str], cache: Path | None = None) -> dict[str, bytes]:
    """Path below the site's root -> content; the font holds what the formulas in `pages` (HTML) show."""
    shown: set[str] = set()
    for html in pages:
        shown |= math.characters(html)
    folder = package_files("sitegen") / "assets"
    return {
        STYLE: b"\n".join((folder / name).read_bytes() for name in ("sitegen.css", "pictures.css")),
        SCRIPT: (folder / "sitegen.js").read_bytes(),
        f"{FOLDER}/{font.FILE_NAME}": font.subset_font(shown, cache),
        f"{FOLDER}/{font.LICENCE_NAME}": (folder / font.LICENCE_NAME).read_bytes(),
    }
