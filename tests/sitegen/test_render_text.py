"""Prose: what each piece of markup becomes, and that everything else is shown as written."""

from __future__ import annotations

import html
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitegen.render import text as prose
from sitegen.render.text import Anchor, Code, Emphasis, Formula, Link, Quote, Text, parse_prose


class Known:
    """A model that knows one row, one component and one pin."""

    def quote(self, expr: str) -> tuple[str, str]:
        return {"mix.total": ("491,520", "20,480 × 24")}.get(expr, ("?", ""))

    def formula(self, tex: str) -> str:
        return f"<math>{html.escape(tex)}</math>"

    def link(self, kind: str, target: str) -> Anchor | None:
        known = {("component", "stream/mix"), ("code", "split"), ("source", "report")}
        return Anchor(f"#{kind}-{target}", "its title") if (kind, target) in known else None


def visible(markup: str) -> str:
    """What a reader sees: tags removed, entities decoded once."""
    return html.unescape(re.sub(r"<[^>]*>", "", markup))


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("plain", [Text("plain", 0)]),
        ("a `b` c", [Text("a ", 0), Code("b", 2), Text(" c", 5)]),
        ("``a`b``", [Code("a`b", 0)]),
        ("*very* much", [Emphasis((Text("very", 1),), 0), Text(" much", 6)]),
        ("has {mix.total} weights", [Text("has ", 0), Quote("mix.total", 4), Text(" weights", 15)]),
        ("{2 * n}", [Quote("2 * n", 0)]),
        (r"$x_k$ and $2\,\sigma$", [Formula("x_k", 0), Text(" and ", 5), Formula(r"2\,\sigma", 10)]),
        ("[mix](component:stream/mix)", [Link((Text("mix", 1),), "component", "stream/mix", 0)]),
        ("[`f`](code:split)", [Link((Code("f", 1),), "code", "split", 0)]),
        ("[w](https://x.org/a?b=1)", [Link((Text("w", 1),), "https", "https://x.org/a?b=1", 0)]),
        ("{{ and $$", [Text("{ and $", 0)]),
    ],
)
def test_markup_gives_typed_spans_with_their_place(text: str, spans: list[object]) -> None:
    assert parse_prose(text) == spans


@pytest.mark.parametrize(
    "text",
    [
        "returns Tensor<T> and costs $5 or $6",
        "<script>alert(1)</script><img src=x onerror=alert(1)>",
        "{{ 7*7 }} and {% if x %} and ${7*7} and #{x}",
        "[x](javascript:alert(1)) [y](data:text/html,z) [z](http://plain.org)",
        "2 * 3 * 4, a*b*c, snake_case_name, a_*b_*",
        "an open `tick, an open {brace, an open $dollar, an open [bracket](component:",
        "&amp; &lt; &#60; \\{ \\( \\alpha",
        "[B, T](x) and [B](T)",
        "# no heading\n> no quote\n1. no list",
    ],
)
def test_anything_else_is_shown_exactly_as_written(text: str) -> None:
    markup = prose.prose_html(text, Known())
    assert visible(markup) == text
    assert "<" not in markup and "onerror=" not in re.sub(r"&lt;.*?&gt;", "", markup)


def test_a_quoted_number_is_text_with_its_calculation_as_title() -> None:
    markup = prose.prose_html("{mix.total}", Known())
    assert markup == '<data class="ms-num" value="491520" title="20,480 × 24">491,520</data>'


def test_references_become_links_and_unknown_ones_their_text() -> None:
    markup = prose.prose_html("[mix](component:stream/mix), [gone](component:nowhere)", Known())
    assert 'href="#component-stream/mix"' in markup and 'title="its title"' in markup
    assert visible(markup) == "mix, gone" and markup.count("<a ") == 1


def test_checks_and_renderer_see_the_same_spans() -> None:
    text = "*see [the {mix.total} of `f`](code:split)* and $x$"
    kinds = [type(span).__name__ for span in prose.walk(parse_prose(text))]
    assert kinds == ["Emphasis", "Text", "Link", "Text", "Quote", "Text", "Code", "Text", "Formula"]


def test_plain_words_for_titles_and_json() -> None:
    assert prose.prose_text("the *{mix.total}* of\n `f`", Known()) == "the 491,520 of f"
    assert prose.prose_text("{mix.total}") == "{mix.total}"


def test_paragraphs_and_lists() -> None:
    assert prose.blocks_html("one\n\ntwo:\n- a\n- `b`", Known()) == (
        "<p>one</p>\n<p>two:</p><ul><li>a</li><li><code>b</code></li></ul>"
    )


@given(st.text(alphabet="ab `*{}[]()$\\<>&\"'\n:/", max_size=80))
def test_no_text_escapes_or_fails(text: str) -> None:
    markup = prose.prose_html(text, Known())
    tags = set(re.findall(r"<(/?\w+)", markup))
    assert tags <= {"code", "/code", "em", "/em", "a", "/a", "data", "/data", "math", "/math"}
    for span in prose.walk(parse_prose(text)):
        assert 0 <= span.start <= len(text)


@pytest.mark.parametrize("unit", ["{{", "$a\\", "[", "[a", "*a ", "*a", "`a", "{a"])
def test_hostile_repetition_takes_time_in_proportion(unit: str) -> None:
    start = time.perf_counter()
    parse_prose(unit * (20_000 // len(unit)))
    assert time.perf_counter() - start < 1.0
