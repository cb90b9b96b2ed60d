"""An automated accessibility check: one page of each template in light and dark, and 20 pages by a fixed seed."""

from __future__ import annotations

import importlib.util
import os
import random
from pathlib import Path
from typing import Any

import pytest
from serving import visit

MODEL = "deepseek-v4.1-flash/"
TEMPLATES = {
    "home": "",
    "hand-written": "how-verification-works/",
    "model": MODEL,
    "components": f"{MODEL}components/",
    "component": f"{MODEL}components/stream_weights_for_attention/",
    "places": f"{MODEL}layers/",
    "place": f"{MODEL}layers/ratio-2/source/",
    "component in a place": f"{MODEL}layers/window/stream_weights_for_attention/stream_combination/",
    "configuration": f"{MODEL}configuration/",
    "symbols": f"{MODEL}symbols/",
    "tensors": f"{MODEL}tensors/",
    "gotchas": f"{MODEL}gotchas/",
    "files": f"{MODEL}source/",
    "source": f"{MODEL}source/reference_impl/ops/streams.py/",
}
SEED, DRAWN = 20261201, 20


@pytest.fixture(scope="module")
def axe() -> Any:
    """The checker; skipped, and counted so, where it is not installed."""
    if importlib.util.find_spec("axe_playwright_python") is None:
        missing = "no accessibility checker (pip install axe-playwright-python)"
        if os.environ.get("CI"):
            pytest.fail(f"{missing}: CI must not skip what a reader sees")
        pytest.skip(missing)
    from axe_playwright_python.sync_playwright import Axe

    return Axe()


def violations(axe: Any, page: Any) -> list[str]:
    """What the checker objects to, with the elements that it means."""
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    found = axe.run(page).response["violations"]
    return [
        f"{rule['id']} ({rule['impact']}): {rule['help']}; {len(rule['nodes'])} × "
        + "; ".join(node["html"][:160] for node in rule["nodes"][:2])
        for rule in found
    ]


@pytest.mark.parametrize("view", ["light", "dark"])
@pytest.mark.parametrize("name", TEMPLATES)
def test_a_page_of_each_template_is_accessible(chromium: Any, address: str, axe: Any, name: str, view: str) -> None:
    with visit(chromium, address + TEMPLATES[name], view) as seen:
        assert violations(axe, seen.page) == []


def test_pages_drawn_by_a_fixed_seed_are_accessible(chromium: Any, address: str, built: Path, axe: Any) -> None:
    every = sorted(path.parent.relative_to(built).as_posix() for path in built.rglob("index.html"))
    assert len(every) > DRAWN
    problems = {}
    for number, folder in enumerate(random.Random(SEED).sample(every, DRAWN)):
        with visit(chromium, f"{address}{folder}/", ("light", "dark")[number % 2]) as seen:
            if found := violations(axe, seen.page):
                problems[folder] = found
    assert problems == {}


@pytest.mark.parametrize(
    ("html", "rule"),
    [
        ("<p style='color:#bbb;background:#fff'>faint</p>", "color-contrast"),
        ("<img src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>", "image-alt"),
        ("<input type='text'>", "label"),
    ],
)
def test_the_check_can_fail(chromium: Any, address: str, axe: Any, html: str, rule: str) -> None:
    with visit(chromium, address) as seen:
        seen.page.evaluate("html => document.querySelector('article').insertAdjacentHTML('beforeend', html)", html)
        assert [text for text in violations(axe, seen.page) if text.startswith(rule)]
