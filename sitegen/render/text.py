# Prose: the small markup in which authors write sentences, parsed to typed spans and shown as HTML.
#
# A sentence never reaches a Markdown or template engine: whatever is not one of the span forms below
# is plain text and is escaped once.  The same spans feed the checks (unknown references, numbers that
# are not quoted by name), so that what is checked is what is shown.
"""Parse prose into spans and render spans as HTML or plain text.

Markup: `` `code` ``, ``*emphasis*``, ``{expr}`` (a number quoted by name), ``$tex$`` (inline formula),
``[text](component:id)``, ``[text](code:pin)``, ``[text](source:evidence)``, ``[text](https://…)``.
``{{`` and ``$$`` are a literal ``{`` and ``$``; a whole ``{{ … }}`` on one line is shown as written.
A blank line separates paragraphs, and lines that begin with ``- `` form a list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Protocol

#: What a link may lead to, besides an https address.
REFERENCES = ("component", "code", "source")


@dataclass(frozen=True)
class Text:
    """Characters shown as they are."""

    text: str
    start: int


@dataclass(frozen=True)
class Code:
    """An inline code fragment."""

    text: str
    start: int


@dataclass(frozen=True)
class Quote:
    """A number quoted by name: the text of an expression over rows, totals and symbols."""

    expr: str
    start: int


@dataclass(frozen=True)
class Formula:
    """An inline formula in TeX."""

    tex: str
    start: int


@dataclass(frozen=True)
class Emphasis:
    spans: tuple[Span, ...]
    start: int


@dataclass(frozen=True)
class Link:
    """A reference (`kind` component, code or source) or an address (`kind` https)."""

    spans: tuple[Span, ...]
    kind: str
    target: str
    start: int


Span = Text | Code | Quote | Formula | Emphasis | Link


@dataclass(frozen=True)
class Anchor:
    """Where a reference leads: its address, and what a reader sees on pointing at it."""

    href: str
    title: str = ""
    mark: str = ""  # a class for the link, such as the state of the cited code


class Prose(Protocol):
    """What a renderer must know about the things that prose refers to."""

    def quote(self, expr: str) -> tuple[str, str]:
        """The value of a quoted expression as shown (`491,520`), and the calculation behind it."""

    def formula(self, tex: str) -> str:
        """Inline MathML of a formula."""

    def link(self, kind: str, target: str) -> Anchor | None:
        """Where a reference leads; None shows its text without a link."""


# An expression begins with a letter, a digit, a bracket or a sign and stays on its line; `${` and `#{`
# belong to template languages and are text.
_EXPR = re.compile(r"(?<![$#])\{([A-Za-z0-9_(\-][A-Za-z0-9_.:,+\-*/%()\[\] ]*)\}")
# Lengths are bounded, so that a hostile text costs time in proportion to its length.
_TEMPLATE = re.compile(r"\{\{[^\n]{0,400}?\}\}")
_TEX = re.compile(r"\$(?=[^\s$])((?:\\.|[^$\\\n]|\n(?!\n)){0,300}?)(?<=[^\s\\])\$(?!\d)", re.S)
_EMPHASIS = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]{0,1000}?[^\s*])\*(?![\w*])")
_LINK = re.compile(
    r"\[((?:[^\[\]\n]|\[[^\[\]\n]*\])+)\]\((?:("
    + "|".join(REFERENCES)
    + r"):([^\s()<>\"']+)|(https://[^\s()<>\"']+))\)"
)
_TICKS = re.compile(r"`+")
_SPECIAL = re.compile(r"[`*{$\[]")


def parse_prose(text: str, offset: int = 0) -> list[Span]:
    """The spans of one text, each with its start as an index into the whole (`offset` added).

    Never fails: what is not a span is text.
    """
    return _merged(_spans(text, offset, in_link=False))


def _merged(spans: Iterator[Span]) -> list[Span]:
    result: list[Span] = []
    for span in spans:
        if isinstance(span, Text) and result and isinstance(result[-1], Text):
            result[-1] = Text(result[-1].text + span.text, result[-1].start)
        else:
            result.append(span)
    return result


def _spans(text: str, offset: int, in_link: bool) -> Iterator[Span]:
    at = 0
    while at < len(text):
        special = _SPECIAL.search(text, at)
        if special is None:
            yield Text(text[at:], offset + at)
            return
        if special.start() > at:
            yield Text(text[at : special.start()], offset + at)
        at = special.start()
        span, at = _span(text, at, offset, in_link)
        yield span


def _span(text: str, at: int, offset: int, in_link: bool) -> tuple[Span, int]:
    start = offset + at
    match text[at]:
        case "`":
            ticks = _TICKS.match(text, at)
            assert ticks
            for close in _TICKS.finditer(text, ticks.end()):
                if close.group() == ticks.group():
                    body = text[ticks.end() : close.start()].replace("\n", " ")
                    if body.startswith(" ") and body.endswith(" ") and body.strip():
                        body = body[1:-1]
                    return Code(body, start), close.end()
            return Text(ticks.group(), start), ticks.end()
        case "{":
            if text.startswith("{{", at):
                whole = _TEMPLATE.match(text, at)
                return (Text(whole.group(), start), whole.end()) if whole else (Text("{", start), at + 2)
            if quoted := _EXPR.match(text, at):
                return Quote(quoted.group(1).strip(), start), quoted.end()
        case "$":
            if text.startswith("$$", at):
                return Text("$", start), at + 2
            if tex := _TEX.match(text, at):
                return Formula(tex.group(1), start), tex.end()
        case "*":
            if strong := _EMPHASIS.match(text, at):
                inner = _merged(_spans(strong.group(1), start + 1, in_link))
                return Emphasis(tuple(inner), start), strong.end()
        case "[":
            if not in_link and (link := _LINK.match(text, at)):
                inner = _merged(_spans(link.group(1), start + 1, in_link=True))
                kind, target = (link.group(2), link.group(3)) if link.group(2) else ("https", link.group(4))
                return Link(tuple(inner), kind, target, start), link.end()
    return Text(text[at], start), at + 1


def walk(spans: list[Span] | tuple[Span, ...]) -> Iterator[Span]:
    """Every span, outer before inner."""
    for span in spans:
        yield span
        if isinstance(span, Emphasis | Link):
            yield from walk(span.spans)


def prose_html(text: str, prose: Prose) -> str:
    """One text as inline HTML, everything escaped."""
    return "".join(_html(span, prose) for span in parse_prose(text))


def _html(span: Span, prose: Prose) -> str:
    match span:
        case Text(text=text):
            return escape(text, quote=False)
        case Code(text=text):
            return f"<code>{escape(text, quote=False)}</code>"
        case Quote(expr=expr):
            value, title = prose.quote(expr)
            hint = f' title="{escape(title)}"' if title else ""
            return f'<data class="ms-num" value="{escape(value.replace(",", ""))}"{hint}>{escape(value)}</data>'
        case Formula(tex=tex):
            return prose.formula(tex)
        case Emphasis(spans=spans):
            return f"<em>{''.join(_html(inner, prose) for inner in spans)}</em>"
        case Link(spans=spans, kind=kind, target=target):
            inner = "".join(_html(part, prose) for part in spans)
            anchor = Anchor(target) if kind == "https" else prose.link(kind, target)
            if anchor is None:
                return inner
            title = f' title="{escape(anchor.title)}"' if anchor.title else ""
            rel = ' rel="noopener"' if kind == "https" else ""
            classes = " ".join(part for part in (f"ms-ref ms-ref--{kind}", anchor.mark) if part)
            return f'<a class="{classes}" href="{escape(anchor.href)}"{title}{rel}>{inner}</a>'
    raise TypeError(f"not a span: {span!r}")


def prose_text(text: str, prose: Prose | None = None) -> str:
    """One text as plain words, for titles, descriptions and JSON; formulas as their TeX."""

    def plain(span: Span) -> str:
        match span:
            case Text(text=shown) | Code(text=shown):
                return shown
            case Quote(expr=expr):
                return prose.quote(expr)[0] if prose else "{" + expr + "}"
            case Formula(tex=tex):
                return tex
            case Emphasis(spans=spans) | Link(spans=spans):
                return "".join(plain(inner) for inner in spans)
        raise TypeError(f"not a span: {span!r}")

    return " ".join("".join(plain(span) for span in parse_prose(text)).split())


def blocks_html(text: str, prose: Prose) -> str:
    """A text of several paragraphs and lists as block HTML."""
    return "\n".join(_block(part, prose) for part in re.split(r"\n[ \t]*\n", text.strip()) if part.strip())


def _block(part: str, prose: Prose) -> str:
    head, *items = re.split(r"(?:^|\n)[ \t]*- ", part)
    html = f"<p>{prose_html(head.strip(), prose)}</p>" if head.strip() else ""
    if items:
        html += "<ul>" + "".join(f"<li>{prose_html(item.strip(), prose)}</li>" for item in items) + "</ul>"
    return html
