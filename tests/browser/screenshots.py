"""Take pictures of pages of a built site: python tests/browser/screenshots.py SITE OUT PATH [PATH …].

Each PATH below the site's root is opened in light and dark, at desktop and phone width; OUT gets one
picture of the whole page for each, and a page that scrolls sideways is named.
"""

from __future__ import annotations

import sys
from pathlib import Path

from serving import VIEWS, browser, serve, visit


def main(site: Path, out: Path, paths: list[str]) -> int:
    """Writes the pictures; returns how many pages scroll sideways."""
    out.mkdir(parents=True, exist_ok=True)
    wide = 0
    with serve(site) as address, browser() as opened:
        for path in paths:
            for view in VIEWS:
                with visit(opened, address + path, view) as seen:
                    name = path.strip("/").replace("/", "_") or "home"
                    seen.page.screenshot(path=out / f"{name}-{view}.png", full_page=True)
                    width, inner = seen.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
                    if width > inner:
                        wide += 1
                        print(f"{path} ({view}): {width} px of content in {inner} px")
                    for error in seen.errors + seen.outside:
                        print(f"{path} ({view}): {error}")
    return wide


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(1 if main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]) else 0)
