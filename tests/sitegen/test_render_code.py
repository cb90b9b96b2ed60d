"""Excerpts: the text on the page is the file's, with the file's line numbers."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest

from sitegen.diagnostics import SitegenError
from sitegen.render.code import Excerpt, Highlighter

SOURCE = '''# top
def f(streams):
    """
    ```
    usage: f(<x>) & more
    ```
    """
\treturn streams  # 2 < 3


class A:
    pass
'''


def code_text(markup: str) -> str:
    found = re.search(r"<code[^>]*>(.*)</code>", markup, re.S)
    assert found
    return html.unescape(re.sub("<[^>]+>", "", found.group(1)))


def excerpt(first: int, last: int, text: str = SOURCE, path: str = "a/b.py", **more: object) -> Excerpt:
    return Excerpt(path, text, first, last, "code-x", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["a.py", "a.json", "a.cu", "a.unknown", "Makefile"])
@pytest.mark.parametrize(("first", "last"), [(1, 12), (2, 8), (4, 6), (9, 9), (12, 12)])
def test_the_text_equals_the_pinned_lines(path: str, first: int, last: int) -> None:
    markup = Highlighter(None).excerpt_html(excerpt(first, last, path=path))
    assert code_text(markup) == "\n".join(SOURCE.split("\n")[first - 1 : last]) + "\n"
    assert markup.count("<code") == 1


@pytest.mark.parametrize(
    "text", ["a\r\nb\r\nc", "a\n\x0cb\nc\n", "a\u2028b\nb\x85\nc", '"""open\nstill\nin string', "\n\n\n", "\tx\n  y\nz"]
)
def test_lines_are_those_of_git_whatever_else_breaks_a_line(text: str) -> None:
    markup = Highlighter(None).excerpt_html(excerpt(1, 3, text))
    lines = [line.removesuffix("\r") for line in text.split("\n")][:3]
    assert code_text(markup) == "\n".join(lines) + "\n"


def test_numbers_are_the_files_own_and_lead_to_anchors() -> None:
    markup = Highlighter(None).excerpt_html(excerpt(4, 6))
    assert re.findall(r'<a href="#code-x-L(\d+)"[^>]*>(\d+)</a>', markup) == [("4", "4"), ("5", "5"), ("6", "6")]
    assert re.findall(r'id="code-x-L(\d+)"', markup) == ["4", "5", "6"]


def test_an_excerpt_that_begins_inside_a_docstring_is_coloured_as_one() -> None:
    markup = Highlighter(None).lines_html(excerpt(5, 5))
    assert '<span class="sd">' in markup and "mi" not in re.findall(r'class="(\w+)"', markup)


def test_identifiers_that_map_to_symbols_are_marked_and_strings_are_not() -> None:
    text = "streams = 'streams'\nx.streams = streams_2\n"
    markup = Highlighter(None).lines_html(excerpt(1, 2, text, symbols={"streams": "X'"}))
    assert markup.count('<span class="ms-sym" data-sym="X&#x27;">streams</span>') == 2


@pytest.mark.parametrize(("first", "last"), [(0, 1), (3, 2), (1, 13), (13, 13)])
def test_a_range_outside_the_file_is_refused_by_name(first: int, last: int) -> None:
    with pytest.raises(SitegenError, match=f"lines {first}-{last} are not in a/b.py, which has 12 lines"):
        Highlighter(None).excerpt_html(excerpt(first, last))


def test_the_cache_is_keyed_by_content_and_never_trusted(tmp_path: Path) -> None:
    first = Highlighter(tmp_path).excerpt_html(excerpt(1, 12))
    (stored,) = tmp_path.glob("*.json")
    assert Highlighter(tmp_path).excerpt_html(excerpt(1, 12)) == first
    stored.write_text(json.dumps([["", "forged"]]), "utf-8")
    assert Highlighter(tmp_path).excerpt_html(excerpt(1, 12)) == first
    stored.write_text("not json", "utf-8")
    assert Highlighter(tmp_path).excerpt_html(excerpt(1, 12)) == first
    Highlighter(tmp_path).excerpt_html(excerpt(1, 12, SOURCE + "\n# more\n"))
    assert len(list(tmp_path.glob("*.json"))) == 2


def test_a_cache_that_cannot_be_written_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "ms-line" in Highlighter(tmp_path / "file" / "cache").lines_html(excerpt(1, 2))
