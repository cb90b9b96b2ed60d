"""The built site without a browser: links, elements, what is indexed, what is told to no one."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import pytest

from sitegen.render.links import dead_links, read_site

MODEL = "deepseek-v4.1-flash"


@pytest.fixture(scope="module")
def pages(built: Path) -> dict[str, str]:
    return read_site(built)[0]


@pytest.fixture(scope="module")
def component_pages(pages: dict[str, str]) -> dict[str, str]:
    found = {p: html for p, html in pages.items() if 'class="ms-status ' in html and p.startswith(f"{MODEL}/")}
    assert len(found) > 20
    return found


def words(html: str) -> str:
    article = html[html.index("<article") : html.index("</article>")]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", article)).split())


def test_no_link_or_anchor_is_dead(built: Path) -> None:
    assert [str(dead) for dead in dead_links(*read_site(built))] == []


@pytest.mark.parametrize(
    "element",
    [
        'class="ms-crumbs"',
        "<h1",
        'class="ms-kind ',
        'class="ms-purpose"',
        "upstream</span>",
        'class="ms-status ',
        "statements executed",
        'id="why"',
        'id="symbols"',
        'id="inputs-and-outputs"',
        'id="parameters"',
        'class="ms-scope"',
        'id="checks"',
        'id="explanation"',
        'class="ms-code"',
        'id="sources"',
        'class="ms-related"',
        'class="ms-walk"',
        'href="page.json"',
        "Cite this page",
    ],
)
def test_every_component_page_has_every_element(component_pages: dict[str, str], element: str) -> None:
    assert [path for path, html in component_pages.items() if element not in html] == []


def test_each_line_of_code_stands_once_on_its_page(component_pages: dict[str, str]) -> None:
    for path, html in component_pages.items():
        ids = re.findall(r'class="ms-line[^"]*" id="([^"]+)"', html)
        places = [
            (figure.group(1), line)
            for figure in re.finditer(r'class="ms-code__path"><a[^>]*>([^:<]+):[^<]*</a>(.*?)</figure>', html, re.S)
            for line in re.findall(r'id="[^"]*-L(\d+)"', figure.group(2))
        ]
        assert len(ids) == len(set(ids)) and len(places) == len(set(places)), path


def test_ids_are_unique_on_every_page(pages: dict[str, str]) -> None:
    for path, html in pages.items():
        ids = re.findall(r'\sid="([^"]+)"', html)
        assert sorted(ids) == sorted(set(ids)), path


def test_nothing_is_left_of_placeholders_or_markdown(pages: dict[str, str]) -> None:
    for path, html in pages.items():
        text = words(html)
        assert "sitegen:" not in html.replace("mkdocs", ""), path
        assert not re.search(r"\]\((component|code|source):|\{#|&amp;lt;|&lt;/?(p|div|span)\b", text), path


def test_the_search_index_holds_canonical_pages_and_no_code(built: Path) -> None:
    index = json.loads((built / "search" / "search_index.json").read_text("utf-8"))
    places = {entry["location"].split("#")[0] for entry in index["docs"]}
    assert f"{MODEL}/components/stream_weights_for_feed_forward/" in places
    assert {place for place in places if "/layers/" in place} == {"deepseek-v4/layers/", f"{MODEL}/layers/"}
    text = "".join(entry["text"] for entry in index["docs"])
    assert "491,547" in text and "def hc_" not in text and "\\frac" not in text


def test_the_twin_of_a_page_agrees_with_its_text(built: Path, component_pages: dict[str, str]) -> None:
    for path, html in component_pages.items():
        data = json.loads((built / path).with_name("page.json").read_text("utf-8"))
        shown = words(html)
        assert f"{data['executed']:,} of {data['statements']:,} statements executed" in shown, path
        if data["parameters"]:
            assert f"{data['parameters']['per_instance']:,}" in shown and f"{data['parameters']['total']:,}" in shown, (
                path
            )


def test_the_built_site_asks_no_other_host_for_anything(pages: dict[str, str], built: Path) -> None:
    for path, html in pages.items():
        assert re.findall(r'(?:\ssrc|srcset)="(?:https?:)?//[^"]+"', html) == [], path
        assert re.findall(r'<link[^>]+rel="(?:stylesheet|preconnect|preload)"[^>]+href="(?:https?:)?//', html) == [], (
            path
        )
    for sheet in built.rglob("*.css"):
        assert not re.search(r"url\(\s*['\"]?(?:https?:)?//", sheet.read_text("utf-8")), sheet


def test_not_run_is_never_green(component_pages: dict[str, str], built: Path) -> None:
    style = (built / "assets/sitegen/sitegen.css").read_text("utf-8")
    colour = re.search(r"\.ms-mark--not-run \{[^}]*color: (var\([^)]*\))", style)
    assert colour and colour.group(1) == "var(--ms-off)"
    for path, html in component_pages.items():
        for state, word in re.findall(r'ms-mark--(\S+?)[ "][^>]*><span class="ms-mark__word">([^<]+)<', html):
            assert not ("not run" in word and state in ("executed", "verified") and "passed" not in word), path
