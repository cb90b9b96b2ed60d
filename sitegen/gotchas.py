# Mistakes that ports make: each names the components concerned, and the checks in which its wrong version runs.
"""Check the gotchas of a model: what they name exists, and every check named can tell the wrong version apart."""

from __future__ import annotations

from collections.abc import Iterator

from sitegen.accounting import Accounts
from sitegen.diagnostics import Finding, Location, SpecInvalid, nearest
from sitegen.loader import Chapter
from sitegen.prosenumbers import Figures, unbound
from sitegen.quoting import quote
from sitegen.references import unknown
from sitegen.render.text import Link, Quote, parse_prose, walk
from sitegen.resolver import Model
from sitegen.statements import component_statements, wrong_version


def gotcha_findings(accounts: Accounts, figures: Figures) -> Iterator[Finding]:
    """Points that are used twice, names of nothing, checks that cannot fail, and numbers without a name."""
    model = accounts.model
    first: dict[int, Location] = {}
    for chapter in model.sources.gotchas:
        for number, gotcha in enumerate(chapter.file.gotchas):

            def at(*path: str | int, chapter: Chapter = chapter, number: int = number) -> Location:
                return chapter.document.locate(("gotchas", number, *path))

            if gotcha.point in first:
                message = f"the point {gotcha.point} is made twice"
                actual = f"{first[gotcha.point]} and {at('point')}"
                yield Finding("schema-invalid", message, at("point"), "every point once", actual)
            first.setdefault(gotcha.point, at("point"))
            for place, id in enumerate(gotcha.components):
                yield from unknown("component", id, model.components, at("components", place))
            for place, name in enumerate(gotcha.by):
                yield from carrier_findings(model, name, at("by", place))
            owner = next((id for id in gotcha.components if id in model.components), None)
            if owner is not None:
                yield from prose_findings(accounts, figures, owner, gotcha.text, at("text"))


def carrier_findings(model: Model, name: str, where: Location) -> Iterator[Finding]:
    """A name that is no statement, or one of a statement that holds whatever a port does."""
    owner, hash_, statement = name.partition("#")
    if not hash_ or owner not in model.components:
        hint = nearest(owner, model.components) if hash_ else "write component#statement"
        yield Finding("unknown-reference", f"no component {owner!r}", where, hint=hint)
        return
    known = [s.id for s in component_statements(model, owner)]
    if statement not in known:
        hint = nearest(statement, known)
        yield Finding("unknown-reference", f"no statement {statement!r} of {owner}", where, hint=hint)
    elif wrong_version(model.component(owner), statement) is None:
        yield Finding(
            "gotcha-untested",
            f"no wrong version runs in {statement!r} of {owner}",
            where,
            expected="a control, a causal edit, a refused call, or a worked case with `instead`",
            actual=statement,
            hint="name such a check, or say under unexecuted why there is none",
        )


def prose_findings(accounts: Accounts, figures: Figures, owner: str, text: str, where: Location) -> Iterator[Finding]:
    """Quotes and links of a point, which stands on the pages of several components."""
    for span in walk(parse_prose(text)):
        if isinstance(span, Quote):
            try:
                quote(accounts, owner, span.expr, where)
            except SpecInvalid as error:
                yield from error.findings
        elif isinstance(span, Link) and span.kind == "component":
            yield from unknown("component", span.target.partition("#")[0], accounts.model.components, where)
        elif isinstance(span, Link) and span.kind != "https":
            hint = "a point links to components; its code and sources are on their pages"
            yield Finding("unknown-reference", f"a point has no {span.kind} {span.target!r}", where, hint=hint)
    for number in unbound(text, figures.of(owner)):
        yield Finding(
            "number-unbound",
            f"{number.text} in prose is a known figure, and is not quoted by name",
            where,
            expected=" or ".join("{" + name + "}" for name in number.names[:4]),
            actual=number.text,
            hint=number.hint,
        )
