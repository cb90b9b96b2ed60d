"""Dead links in built HTML: which addresses lead somewhere, with and without directory URLs."""

from __future__ import annotations

from pathlib import Path

import pytest

from sitegen.render.links import dead_links, read_site

SITE = {
    "index.html": '<h1 id="top">x</h1><a name=old></a>',
    "m/a/index.html": "<p id='p'>x</p>",
    "m/b.html": "",
}
FILES = frozenset({"m/a/data.json", "assets/x.css"})


@pytest.mark.parametrize(
    ("page", "href", "problem"),
    [
        ("index.html", "m/a/", ""),
        ("index.html", "m/a/index.html#p", ""),
        ("index.html", "m/b.html", ""),
        ("index.html", "#top", ""),
        ("index.html", "#old", ""),
        ("index.html", "m/a/data.json", ""),
        ("index.html", "https://example.org/x#y", ""),
        ("index.html", "mailto:a@b.c", ""),
        ("m/a/index.html", "../../#top", ""),
        ("m/a/index.html", "../..", ""),
        ("m/a/index.html", ".", ""),
        ("m/a/index.html", "../b.html?x=1", ""),
        ("index.html", "missing.md#x", "no such file"),
        ("index.html", "m/a", "a folder needs / at its end"),
        ("index.html", "missing/", "no such page"),
        ("index.html", "#nope", "no anchor 'nope' in index.html"),
        ("index.html", "m/a/#nope", "no anchor 'nope' in m/a/index.html"),
        ("m/a/index.html", "../../../x/", "leaves the site"),
        ("index.html", "/m/a/", "begins at the server's root; pages link relative to themselves"),
    ],
)
def test_where_a_link_leads(page: str, href: str, problem: str) -> None:
    pages = dict(SITE)
    pages[page] += f'<a class="x" href="{href}">l</a>'
    assert [dead.problem for dead in dead_links(pages, FILES)] == ([problem] if problem else [])


def test_images_count_and_scripts_styles_and_comments_do_not() -> None:
    html = (
        '<img src="no.png"><!-- <a href="no/"> --><style><a href="no/"></style>'
        '<script>var a = \'<a href="no/">\'</script><a href="&#x6d;/a/">y</a>'
    )
    assert [dead.href for dead in dead_links({**SITE, "index.html": html}, FILES)] == ["no.png"]


def test_a_built_folder_is_read_without_its_error_page(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "index.html").write_text('<a href="../x.json">x</a>')
    (tmp_path / "x.json").write_text("{}")
    (tmp_path / "404.html").write_text('<a href="/">home</a>')
    pages, files = read_site(tmp_path)
    assert sorted(pages) == ["a/index.html"] and dead_links(pages, files) == []
