# What ports get wrong: every point with the wrong version that runs, by how much it differs, and on which input.
"""The page of gotchas, and the notes that components show of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sitegen import schema
from sitegen.render import calls, paths, places, status
from sitegen.render.context import Workshop, statement_label
from sitegen.render.page import Block, Page, slug
from sitegen.render.prose import PageProse
from sitegen.render.templates import fill
from sitegen.render.text import Anchor
from sitegen.render.view import Link, Mark
from sitegen.statements import wrong_version

#: Regime -> the inputs that it means.
INPUTS = {
    "model": "values of a run",
    "ordinary": "ordinary drawn inputs",
    "sharp": "sharp drawn inputs",
    "saturated": "saturated drawn inputs",
    "tiny": "tiny drawn inputs",
    "zero-rows": "drawn inputs with rows of zeros",
}


@dataclass(frozen=True)
class Trial:
    """One check of a point: the wrong version in words, the input on which it runs, and what was seen."""

    link: Link
    text: Markup
    plain: str
    formula: str  # of the wrong version, where it is one
    input: str
    code: bool  # the input is a call
    mark: Mark
    detail: str
    least: str


@dataclass(frozen=True)
class Point:
    """A point as the page shows it; `unexecuted` says why no check runs its wrong version."""

    number: int
    title: str
    text: Markup
    plain: str
    mark: Mark
    components: tuple[Link, ...]
    trials: tuple[Trial, ...]
    unexecuted: str


def anchor(gotcha: schema.Gotcha) -> str:
    return f"point-{gotcha.point}"


def prose_of(workshop: Workshop, owner: str, start: str) -> PageProse:
    """Prose that quotes the figures of a component and is read on the page `start`."""
    model, addresses = workshop.model, workshop.settings.addresses

    def component(target: str) -> Anchor | None:
        id, _, goal = target.partition("#")
        if id not in model.components:
            return None
        link = places.component_link(model, start, addresses, id, anchor=goal)
        return Anchor(link.href, link.title)

    return PageProse(lambda expr: workshop.book.quote(owner, expr), {"component": component})


def gotcha_mark(workshop: Workshop, gotcha: schema.Gotcha) -> Mark:
    """The state of a point: that of its checks, or why there is none."""
    if gotcha.unexecuted is not None:
        return Mark("not-run", gotcha.unexecuted.strip())
    return Mark(status.worst(_mark(workshop, name).state for name in gotcha.by))


def _mark(workshop: Workshop, name: str) -> Mark:
    owner, _, statement = name.partition("#")
    return status.mark(next((v for v in workshop.book.of(owner) if v.id == statement), None))


def points(workshop: Workshop) -> Iterator[tuple[str, list[Point]]]:
    """Chapter by chapter, the points in order."""
    for chapter in workshop.model.sources.gotchas:
        ordered = sorted(chapter.file.gotchas, key=lambda gotcha: gotcha.point)
        yield chapter.file.title.strip(), [point(workshop, gotcha) for gotcha in ordered]


def point(workshop: Workshop, gotcha: schema.Gotcha) -> Point:
    model, addresses = workshop.model, workshop.settings.addresses
    start = paths.gotchas_page(model.name)
    known = [id for id in gotcha.components if id in model.components]
    prose = prose_of(workshop, known[0] if known else "", start)
    return Point(
        gotcha.point,
        gotcha.title.strip(),
        prose.html(gotcha.text),
        prose.plain(gotcha.text),
        gotcha_mark(workshop, gotcha),
        tuple(places.component_link(model, start, addresses, id) for id in known),
        tuple(found for name in gotcha.by if (found := trial(workshop, name)) is not None),
        (gotcha.unexecuted or "").strip(),
    )


def trial(workshop: Workshop, name: str) -> Trial | None:
    """A check as a point shows it; None for a name of nothing, which is a finding."""
    model = workshop.model
    owner, _, statement = name.partition("#")
    found = wrong_version(model.component(owner), statement) if owner in model.components else None
    if found is None:
        return None
    start = paths.gotchas_page(model.name)
    goal = places.component_link(model, start, workshop.settings.addresses, owner, anchor=status.anchor(statement))
    link = Link(f"{goal.text}: {statement_label(statement)}", goal.href, name)
    verdict = next((v for v in workshop.book.of(owner) if v.id == statement), None)
    prose = prose_of(workshop, owner, start)
    case = isinstance(found, schema.WorkedCase)
    # Each text is read by itself: a dollar sign in both would make a formula of what stands between.
    words = [found.text, found.instead.text] if case and found.instead else [found.text]
    return Trial(
        link,
        Markup(" Wrong: ").join(prose.html(text) for text in words),
        " Wrong: ".join(prose.plain(text).strip() for text in words),
        (found.holds or "").strip() if not case and found.kind == "control" else "",
        calls.call(found) if case else _input(found),
        case,
        status.mark(verdict),
        (verdict.actual or verdict.detail) if verdict else "",
        f"{found.margin:g}" if not case and found.kind == "control" and found.margin else "",
    )


def _input(prop: schema.Property) -> str:
    """On which input a control, an edit or a refused call runs."""
    if prop.edit is not None:
        added = f"plus {prop.edit.add:g}" if prop.edit.add else f"times {prop.edit.scale:g}"
        where = f" in {prop.edit.module}" if prop.edit.module else ""
        return f"a run with {prop.edit.value} {added}{where}"
    if prop.kind == "error":
        return "a call that is refused"
    inputs = ", ".join(INPUTS.get(r, r) for r in prop.regimes) if prop.regimes else "values of a run, drawn inputs"
    return inputs + (f" ({', '.join(prop.configurations)})" if prop.configurations else "")


def gotchas_page(workshop: Workshop) -> Page:
    """All points of a model."""
    model = workshop.model
    title = model.sources.model.title.strip()
    chapters = list(points(workshop))
    everything = [found for _, found_points in chapters for found in found_points]
    unexecuted = sum(bool(p.unexecuted) for p in everything)
    text = (
        f"{len(everything):,} things that a port of {title} gets wrong, each with checks that run the wrong version"
        + (f"; {unexecuted:,} cannot be run and say why." if unexecuted else ".")
    )
    blocks = [Block(fill("index.html.j2", title="Gotchas", text=text))]
    for name, found in chapters:
        blocks.append(Block("", name, slug(name).lower()))
        for p in found:
            blocks.append(Block(fill("gotcha.html.j2", p=p), f"{p.number}. {p.title}", f"point-{p.number}", level=3))
    return Page(
        paths.gotchas_page(model.name),
        "Gotchas",
        tuple(blocks),
        f"What a port of {title} gets wrong, and by how much each mistake shows.",
        model.sources.gotchas[0].document.file,
        twin=gotchas_json(workshop, chapters),
    )


def gotchas_json(workshop: Workshop, chapters: list[tuple[str, list[Point]]]) -> dict[str, Any]:
    """The points as data, in the order of the page."""
    named = {g.point: g for chapter in workshop.model.sources.gotchas for g in chapter.file.gotchas}
    return {
        "schema": 1,
        "page": "gotchas",
        "model": workshop.model.name,
        "title": "Gotchas",
        "gotchas": [
            {
                "point": p.number,
                "chapter": chapter,
                "title": p.title,
                "text": p.plain,
                "state": p.mark.state,
                "components": list(named[p.number].components),
                "unexecuted": p.unexecuted or None,
                "checks": [
                    {
                        "statement": t.link.title,
                        "text": t.plain,
                        "formula": t.formula or None,
                        "input": t.input,
                        "state": t.mark.state,
                        "seen": t.detail,
                        "least": float(t.least) if t.least else None,
                    }
                    for t in p.trials
                ],
            }
            for chapter, found in chapters
            for p in found
        ],
    }
