# Code on a page: pins that overlap share one excerpt, so that no line is printed twice.
"""Group a component's pins into excerpts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from sitegen import schema
from sitegen.render.book import CodeState, Verdict
from sitegen.render.code import LONG, Excerpt, Highlighter
from sitegen.render.page import slug
from sitegen.render.status import mark, worst
from sitegen.render.view import ExcerptView, Mark

#: Pin states in which the code shown is the code that was read.
_SOUND = ("unchanged", "moved", "reformatted", "comment-only", "renamed")


@dataclass(frozen=True)
class Group:
    """Pins of one file whose lines overlap: shown as one excerpt."""

    path: str
    first: int
    last: int
    pins: tuple[schema.Code, ...]

    @property
    def anchor(self) -> str:
        return f"code-{slug(self.pins[0].id)}"


def groups(codes: Sequence[schema.Code], states: Mapping[str, CodeState]) -> list[Group]:
    """Overlapping pins together, in the order in which their first pin is written; main pins first."""
    found: list[Group] = []
    for code in sorted(codes, key=lambda c: not c.main):
        state = states.get(code.id)
        if state is None or state.lines is None:
            continue
        first, last = state.lines
        together = [g for g in found if g.path == state.path and g.first <= last and first <= g.last]
        pins = (*(pin for group in together for pin in group.pins), code)
        lows, highs = [first, *(g.first for g in together)], [last, *(g.last for g in together)]
        merged = Group(state.path, min(lows), max(highs), pins)
        at = found.index(together[0]) if together else len(found)
        found = [g for g in found if g not in together]
        found.insert(at, merged)
    return found


def pin_anchors(found: Sequence[Group], states: Mapping[str, CodeState]) -> dict[str, str]:
    """Pin id -> anchor of its first line on the page."""
    return {
        pin.id: f"{group.anchor}-L{states[pin.id].lines[0]}"  # type: ignore[index]
        for group in found
        for pin in group.pins
    }


def lines_text(first: int, last: int) -> str:
    """`41` or `41–66`."""
    return f"{first}" if first == last else f"{first}–{last}"


def excerpt_views(
    found: Sequence[Group],
    codes: Sequence[schema.Code],
    states: Mapping[str, CodeState],
    verdicts: Mapping[str, Verdict],
    identifiers: Mapping[str, str],
    highlighter: Highlighter,
) -> tuple[ExcerptView, ...]:
    """The excerpts of a page; a pin without lines is shown as what happened to it."""
    views = [_view(group, states, verdicts, identifiers, highlighter) for group in found]
    for code in codes:
        state = states.get(code.id)
        if state is None or state.lines is None:
            problem = state.message if state else "This pin was not resolved."
            path = state.path if state else code.path
            anchor = f"code-{slug(code.id)}"
            text = (code.text or "").strip()
            failed = Mark("failed", problem)
            views.append(
                ExcerptView(anchor, path, "?", code.symbol, Markup(""), failed, False, 0, text=text, problem=problem)
            )
    return tuple(views)


def _view(
    group: Group,
    states: Mapping[str, CodeState],
    verdicts: Mapping[str, Verdict],
    identifiers: Mapping[str, str],
    highlighter: Highlighter,
) -> ExcerptView:
    main = group.pins[0]
    state = states[main.id]
    cited = {
        line
        for pin in group.pins[1:]
        for line in range(states[pin.id].lines[0], states[pin.id].lines[1] + 1)  # type: ignore[index]
    }
    excerpt = Excerpt(group.path, state.text, group.first, group.last, group.anchor, identifiers, tuple(sorted(cited)))
    num_lines = group.last - group.first + 1
    marks = [mark(verdicts.get(f"pin:{pin.id}")) for pin in group.pins]
    chosen = worst(m.state for m in marks)
    problems = [states[pin.id].message for pin in group.pins if states[pin.id].kind not in _SOUND]
    texts = [pin.text.strip() for pin in group.pins if pin.text]
    acknowledged = [states[pin.id].acknowledged for pin in group.pins if states[pin.id].acknowledged]
    return ExcerptView(
        group.anchor,
        group.path,
        lines_text(group.first, group.last),
        state.symbol or main.symbol,
        Markup(highlighter.excerpt_html(excerpt)),
        next(m for m in marks if m.state == chosen),
        num_lines > LONG,
        num_lines,
        text=" ".join(texts),
        acknowledged="; ".join(acknowledged),
        problem=" ".join(p for p in problems if p),
    )
