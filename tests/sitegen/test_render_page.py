"""Pages and addresses: names come from ids, titles are shown unchanged, links are relative."""

from __future__ import annotations

import io
from html import unescape
from pathlib import Path

import pytest
import yaml
from fontTools.ttLib import TTFont
from markdown import Markdown

from sitegen.render import font
from sitegen.render.page import Addresses, Block, Page, slug

A = "m/components/a/index.md"


@pytest.mark.parametrize(
    ("start", "goal", "anchor", "directory", "plain"),
    [
        (A, "m/components/b/index.md", "", "../b/", "../b/index.html"),
        (A, "m/components/a/part/index.md", "x", "part/#x", "part/index.html#x"),
        (A, "index.md", "", "../../../", "../../../index.html"),
        (A, A, "x", "#x", "#x"),
        (A, A, "", "./", "./index.html"),
        (A, "m/components/a/page.json", "", "page.json", "page.json"),
        ("index.md", A, "", "m/components/a/", "m/components/a/index.html"),
        ("how.md", A, "", "../m/components/a/", "m/components/a/index.html"),
        ("a/how.md", "index.md", "", "../../", "../index.html"),
        ("index.md", "how.md", "x", "how/#x", "./how.html#x"),
        ("how.md", "assets/x.css", "", "../assets/x.css", "assets/x.css"),
    ],
)
def test_links_are_relative_with_and_without_directory_urls(
    start: str, goal: str, anchor: str, directory: str, plain: str
) -> None:
    assert Addresses(True).href(start, goal, anchor) == directory
    assert Addresses(False).href(start, goal, anchor) == plain


@pytest.mark.parametrize(
    "path",
    ["", "../x/index.md", "a/../index.md", "/a/index.md", "a b/index.md", "a//index.md", "a/page.md", "流/index.md"],
)
def test_a_path_that_could_leave_the_site_or_be_mistaken_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="is no page path"):
        Page(path, "t", ())


@pytest.mark.parametrize(
    "title", ["流组合", "Größe Σ", "$C_{jk}$ *comb*", "a: b # c", '"q" \\ {{x}} {#y}', "1. one", "- x", "<b>x</b>"]
)
def test_titles_are_shown_unchanged_and_anchors_do_not_follow_them(title: str) -> None:
    text = Page(A, title, (Block("<p>x</p>", title, "fixed"),)).markdown()
    _, head, body = text.split("---\n", 2)
    assert unescape(yaml.safe_load(head)["title"]) == title and "<" not in head
    html = Markdown(extensions=["attr_list", "toc"]).convert(body)
    assert '<h2 id="fixed">' in html
    shown = html[html.index(">") + 1 : html.index("</h2>")]
    assert "<" not in shown
    assert unescape(shown) == title


def test_block_html_passes_markdown_unchanged() -> None:
    html = "<p>a_*b_* `x` [y](z)\n\n    indented\n\n# no heading &lt;T&gt;</p>"
    html += "\n<pre><code>\n\n```\n~~~\n\ta\tb\n</code></pre>"
    body = Page(A, "t", (Block(html, "H", "h"), Block(html))).markdown().split("---\n", 2)[2]
    built = Markdown(extensions=["attr_list", "toc", "tables", "pymdownx.superfences"]).convert(body)
    assert unescape(built).count(unescape(html)) == 2 and "&amp;" not in built


def test_blocks_are_held_back_with_whether_search_reads_them() -> None:
    page = Page(A, "t", (Block("<p>words</p>", "H", "h"), Block("<pre>code</pre>", searchable=False)))
    held: list[tuple[str, bool]] = []
    text = page.markdown(lambda html, searchable: held.append((html, searchable)) or "<div>HOLD</div>")
    assert held == [("<p>words</p>", True), ("<pre>code</pre>", False)]
    assert text.count("HOLD") == 2 and "words" not in text and "code" not in text and "## H" in text
    assert "search: {exclude: true}" in Page(A, "t", page.blocks, searchable=False).markdown()
    assert "code" in page.markdown() and "HOLD" not in page.markdown()


@pytest.mark.parametrize(
    ("name", "id"), [("X'", "X-prime"), ("x'", "x-prime"), ("a/b_c.d", "a-b-c-d"), ("''", "prime-prime"), ("", "x")]
)
def test_ids_for_anchors(name: str, id: str) -> None:
    assert slug(name) == id


def test_the_font_has_what_formulas_show_and_keeps_its_name_and_licence(tmp_path: Path) -> None:
    data = font.subset_font({"u", "σ", "∑", "ℓ"}, tmp_path)
    built = TTFont(io.BytesIO(data))
    assert data[:4] == b"wOF2" and len(data) < 80_000
    assert {0x1D462, 0x1D70E, ord("∑"), ord("ℓ"), ord("7"), 0x210E} <= set(built.getBestCmap())
    assert "MATH" in built and built["name"].getDebugName(1) == "STIX Two Math"
    assert "Open Font License" in built["name"].getDebugName(13)
    assert font.subset_font({"u", "σ", "∑", "ℓ"}, tmp_path) == data and len(list(tmp_path.iterdir())) == 1
    licence = Path(font.__file__).parent.parent / "assets" / font.LICENCE_NAME
    assert "SIL OPEN FONT LICENSE Version 1.1" in licence.read_text("utf-8")
