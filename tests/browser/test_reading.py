"""What a reader meets in a browser: a plain file server, no network, light and dark, desktop and phone."""

from __future__ import annotations

from typing import Any

import pytest
from serving import VIEWS, visit

MODEL = "deepseek-v4.1-flash/"
FEED_FORWARD = MODEL + "components/stream_weights_for_feed_forward/"
COMBINATION = MODEL + "components/stream_weights_for_attention/stream_combination/"
PAGES = ["", "how-verification-works/", MODEL, FEED_FORWARD, COMBINATION]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("path", PAGES)
def test_a_page_opens_without_errors_requests_outside_or_sideways_scrolling(
    chromium: Any, address: str, path: str, view: str
) -> None:
    with visit(chromium, address + path, view) as seen:
        seen.page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
        width, inner = seen.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert width <= inner, f"{width} px of content in {inner} px"
        background = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
        light = sum(int(part) for part in background.strip("rgba()").split(",")[:3]) > 384
        assert light == (VIEWS[view][2] == "light"), background
        seen.assert_clean()


@pytest.mark.parametrize("script", [True, False])
@pytest.mark.parametrize(
    ("path", "numbers"),
    [
        (FEED_FORWARD, ["491,547", "491,520 + 5 + 5 + 17"]),
        (COMBINATION, ["17", "731"]),
        (MODEL, ["39,323,760", "39,323,760"]),
    ],
)
def test_numbers_are_in_the_text_with_and_without_script(
    chromium: Any, address: str, path: str, numbers: list[str], script: bool
) -> None:
    with visit(chromium, address + path, script=script) as seen:
        text = seen.page.locator("article").inner_text()
        assert [number for number in numbers if number not in text] == []
        seen.assert_clean()


def test_a_symbol_lights_up_everywhere_by_keyboard_and_goes_out_on_escape(chromium: Any, address: str) -> None:
    with visit(chromium, address + COMBINATION) as seen:
        page = seen.page
        first = page.locator(".ms-formula math .ms-sym[tabindex='0']").first
        name = first.get_attribute("data-sym")
        page.locator("#formula").scroll_into_view_if_needed()
        for _ in range(200):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.getAttribute('data-sym')") == name:
                break
        lit = page.locator(".ms-sym--on")
        kinds = lit.evaluate_all(
            """found => [...new Set(found.map(e => e.closest('.ms-formula') ? 'formula'
              : e.closest('.ms-symbols') ? 'table' : e.closest('.ms-ports') ? 'axes'
              : e.closest('.ms-code') ? 'code' : '?'))]"""
        )
        assert {"formula", "table"} <= set(kinds) and "?" not in kinds
        every = page.locator(f".ms-sym[data-sym='{name}']").count()
        assert lit.count() == every > 1
        outline = lit.first.evaluate("e => getComputedStyle(e).outlineStyle")
        assert outline == "solid", "the highlight must not be by colour alone"
        assert page.locator(".ms-hint").is_visible()
        page.keyboard.press("Escape")
        assert lit.count() == 0 and page.locator(".ms-hint").is_hidden()
        seen.assert_clean()


def test_a_symbol_ties_formula_table_axes_and_code_together_on_hover(chromium: Any, address: str) -> None:
    with visit(chromium, address + COMBINATION) as seen:
        page = seen.page
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
        tied = page.evaluate(
            """() => {
              const names = new Set([...document.querySelectorAll('.ms-formula .ms-sym')].map(e => e.dataset?.sym
                || e.getAttribute('data-sym')));
              const inside = (box, name) => document.querySelector(`${box} .ms-sym[data-sym="${CSS.escape(name)}"]`);
              return [...names].filter(n => ['.ms-symbols', '.ms-ports', '.ms-code'].every(box => inside(box, n)));
            }"""
        )
        assert tied, "no symbol stands in formula, table, axes and code"
        name = tied[0]
        page.locator(f".ms-symbols a.ms-sym[data-sym='{name}']").hover()
        places = [".ms-formula", ".ms-symbols", ".ms-ports", ".ms-code"]
        assert [box for box in places if page.locator(f"{box} .ms-sym--on[data-sym='{name}']").count() == 0] == []
        page.mouse.move(1, 1)
        assert page.locator(".ms-sym--on").count() == 0


def test_formulas_use_the_embedded_font(chromium: Any, address: str) -> None:
    with visit(chromium, address + COMBINATION) as seen:
        loaded = seen.page.evaluate(
            "document.fonts.ready.then(() => [...document.fonts].filter(f => f.status === 'loaded').map(f => f.family))"
        )
        assert any("STIX Two Math" in family for family in loaded)
        heights = seen.page.locator(".ms-formula math").evaluate_all(
            "found => found.filter(e => e.checkVisibility()).map(e => e.getBoundingClientRect().height)"
        )
        assert heights and min(heights) > 10
        seen.assert_clean()


def test_tables_scroll_inside_their_own_box_on_a_phone(chromium: Any, address: str) -> None:
    with visit(chromium, address + FEED_FORWARD, "phone") as seen:
        boxes = seen.page.locator(".ms-scroll").evaluate_all(
            "found => found.filter(e => e.checkVisibility())"
            ".map(e => [e.getBoundingClientRect().right, e.scrollWidth > e.clientWidth, e.tabIndex])"
        )
        assert boxes and all(right <= 390 for right, _, _ in boxes)
        assert all(index == 0 for _, scrolls, index in boxes if scrolls), "a box that scrolls takes the keyboard"


def test_a_link_to_a_folded_line_opens_its_fold(chromium: Any, address: str) -> None:
    with visit(chromium, address + COMBINATION) as seen:
        page = seen.page
        anchor = page.evaluate("document.querySelector('details .ms-line')?.id || ''")
        if not anchor:
            anchor = page.evaluate("document.querySelector('.ms-steps__all .ms-step')?.id || ''")
        assert anchor, "nothing is folded on this page"
        page.goto(address + COMBINATION + "#" + anchor)
        assert page.locator("#" + anchor).is_visible()


def test_the_search_finds_a_component_and_a_number(chromium: Any, address: str) -> None:
    with visit(chromium, address) as seen:
        page = seen.page
        for query, expected in (("Stream combination", "Stream combination"), ("491,547", "Stream weights")):
            # Keys, not `fill`: the search listens to key events. A fresh page: no result of the query before is left.
            page.goto(address, wait_until="load")
            page.locator(".md-search__input").press_sequentially(query)
            found = page.locator(".md-search-result__item", has_text=expected).filter(has_text=query)
            found.first.wait_for(timeout=10_000)
        seen.assert_clean()
