"""Pictures as a reader meets them: by keyboard, at phone width, in both schemes, and without a script."""

from __future__ import annotations

import re
from typing import Any

import pytest
import serving

MODEL = "deepseek-v4.1-flash"
PAGES = (
    f"{MODEL}/",
    f"{MODEL}/components/",
    f"{MODEL}/layers/window/",
    f"{MODEL}/layers/window/stream_weights_for_attention/",
    "on-the-gpu/",
)


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("view", ["light", "phone-dark"])
def test_pictures_can_be_read_and_never_make_the_page_scroll(chromium: Any, address: str, path: str, view: str) -> None:
    """Text is no smaller than 10 px however narrow the screen, and stands out 4.5 to 1 against what it stands on."""
    with serving.visit(chromium, address + path, view) as seen:
        width, inner = seen.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert width <= inner
        found = seen.page.evaluate(CONTRAST)
        assert found or path.endswith("/components/"), "no text in pictures"
        assert not [(text, size, ratio) for text, size, ratio in found if size < 9.9 or ratio < 4.5]
        seen.assert_clean()


#: Text, drawn size in pixels, contrast with the box below it.
CONTRAST = """() => {
  const channel = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const rgb = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const solid = (text) => text && text !== "none" && !text.startsWith("url") && !/rgba\\(.*, 0\\)/.test(text);
  const inside = (a, b) => a.x >= b.x - 1 && a.right <= b.right + 1 && a.y >= b.y - 1 && a.bottom <= b.bottom + 1;
  return [...document.querySelectorAll(".ms-svg text")].map((text) => {
    const svg = text.closest("svg"), box = text.getBoundingClientRect(), style = getComputedStyle(text);
    let back = "";
    for (const rect of svg.querySelectorAll("rect")) {
      const fill = getComputedStyle(rect).fill;
      if (solid(fill) && inside(box, rect.getBoundingClientRect())) back = fill;
    }
    for (let e = svg.parentElement; e && !back; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (solid(colour)) back = colour;
    }
    const [a, b] = [light(rgb(style.fill)), light(rgb(back || "rgb(255, 255, 255)"))].sort((x, y) => y - x);
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    return [text.textContent, parseFloat(style.fontSize) * scale, (a + 0.05) / (b + 0.05)];
  });
}"""


def test_every_cell_of_the_layer_map_is_reached_seen_and_followed_by_keyboard(chromium: Any, address: str) -> None:
    with serving.visit(chromium, f"{address}{MODEL}/") as seen:
        page = seen.page
        cells = page.evaluate("[...document.querySelectorAll('.ms-map a')].map((a) => a.getAttribute('aria-label'))")
        assert len(cells) == 43
        page.evaluate("document.querySelector('.ms-map a').focus()")
        for label in cells[:4]:
            assert page.evaluate("document.activeElement.getAttribute('aria-label')") == label
            page.keyboard.press("Tab")
        edge = "getComputedStyle(document.activeElement.querySelector('.ms-cell')).strokeWidth"
        assert page.evaluate(edge) == "3px", "the focus is seen"
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert page.url == f"{address}{MODEL}/layers/ratio-2/reusing/"


def test_folds_and_pictures_need_no_script(chromium: Any, address: str) -> None:
    with serving.visit(chromium, f"{address}{MODEL}/components/", script=False) as seen:
        fold = seen.page.locator(".ms-shares details").first
        assert fold.get_attribute("open") is not None
        fold.locator("summary").first.click()
        assert fold.get_attribute("open") is None
    with serving.visit(chromium, f"{address}{MODEL}/", script=False) as seen:
        assert seen.page.locator(".ms-map a").count() == 43
        table = seen.page.locator("#layer-table")
        table.locator("summary").click()
        assert re.search(r"layers 21–23.*layer 20", " ".join(table.inner_text().split()))


def test_a_wide_picture_scrolls_in_its_own_box(chromium: Any, address: str) -> None:
    with serving.visit(chromium, f"{address}{MODEL}/", "phone") as seen:
        box = "document.querySelector('.ms-picture__box')"
        assert seen.page.evaluate(f"{box}.scrollWidth > {box}.clientWidth")
        assert seen.page.evaluate(f"{box}.tabIndex") == 0, "and the keyboard can scroll it"
