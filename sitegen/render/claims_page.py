# What others publish about the model, on two pages: claims derived step by step, and totals that reconcile figures.
"""The pages "Headline claims" and "Which number is right"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sitegen.derived import DerivedClaim, DerivedFigure, DerivedLedger
from sitegen.render import paths
from sitegen.render.claims_view import ClaimView, ClaimViews, FigureView, LedgerView, StepView
from sitegen.render.context import Workshop
from sitegen.render.page import Block, Page
from sitegen.render.templates import fill
from sitegen.render.view import Link

CLAIMS = "Headline claims"
NUMBERS = "Which number is right"


def claims_pages(workshop: Workshop) -> Iterator[Page]:
    """The pages that a model has: one for claims, one for ledgers and published figures."""
    if workshop.book.claims.claims:
        yield claims_page(workshop)
    if has_numbers(workshop):
        yield numbers_page(workshop)


def has_numbers(workshop: Workshop) -> bool:
    return bool(workshop.book.claims.ledgers or workshop.book.claims.figures)


def claims_page(workshop: Workshop) -> Page:
    """Each claim with its derivation."""
    model, derived = workshop.model, workshop.book.claims.claims
    title, path = model.sources.model.title.strip(), paths.claims_page(model.name)
    views = ClaimViews(workshop, path)
    claims = [views.claim(claim) for claim in derived]
    other = []
    if has_numbers(workshop):
        href = workshop.settings.addresses.href(path, paths.numbers_page(model.name))
        other = [Link(NUMBERS, href, "totals that reconcile published figures")]
    text = f"What is said about {title}, and how each figure follows from its configuration and implementation."
    blocks = [
        Block(fill("index.html.j2", title=CLAIMS, text=text)),
        Block(fill("claims/summary.html.j2", claims=claims, links=other)),
        *(Block(fill("claims/claim.html.j2", c=claim), claim.title, claim.anchor) for claim in claims),
        _sources(views),
    ]
    description = f"Published claims about {title}, each derived step by step or marked as cited."
    twin = claims_json(workshop, list(zip(derived, claims, strict=True)))
    return Page(path, CLAIMS, tuple(blocks), description, _file(workshop), twin=twin)


def numbers_page(workshop: Workshop) -> Page:
    """Published figures, and the ledgers whose totals they are."""
    model, derived = workshop.model, workshop.book.claims
    title, path = model.sources.model.title.strip(), paths.numbers_page(model.name)
    views = ClaimViews(workshop, path)
    figures = [views.figure(figure) for figure in derived.figures]
    ledgers = [views.ledger(ledger) for ledger in derived.ledgers]
    other = []
    if derived.claims:
        other = [Link(CLAIMS, workshop.settings.addresses.href(path, paths.claims_page(model.name)), "derivations")]
    text = f"How many parameters {title} has depends on what is counted. Each figure is a total of the same tensors."
    blocks = [Block(fill("index.html.j2", title=NUMBERS, text=text))]
    body = fill("claims/figures.html.j2", figures=figures, links=other)
    blocks.append(Block(body, "Figures seen in public", "figures"))
    blocks += [Block(fill("claims/ledger.html.j2", l=ledger), ledger.title, ledger.anchor) for ledger in ledgers]
    blocks.append(_sources(views))
    description = f"The published sizes of {title}, reconciled from one list of tensors."
    twin = numbers_json(
        workshop, list(zip(derived.figures, figures, strict=True)), list(zip(derived.ledgers, ledgers, strict=True))
    )
    return Page(path, NUMBERS, tuple(blocks), description, _file(workshop), twin=twin)


def _sources(views: ClaimViews) -> Block:
    return Block(fill("component/sources.html.j2", v={"evidence": views.evidence()}), "Sources", "sources")


def _file(workshop: Workshop) -> str:
    document = workshop.model.sources.claims_document
    return document.file if document else workshop.model.sources.model_document.file


# --- the same as data ---------------------------------------------------------------------------------


def claims_json(workshop: Workshop, claims: list[tuple[DerivedClaim, ClaimView]]) -> dict[str, Any]:
    return {
        "schema": 1,
        "page": "claims",
        "model": workshop.model.name,
        "title": CLAIMS,
        "claims": [
            {
                "id": view.id,
                "title": view.title,
                "text": _plain(workshop, derived.spec.text, derived),
                "published": derived.spec.published.text.strip(),
                "unit": view.unit,
                "cites": list(derived.spec.published.cites),
                "state": view.mark.state,
                "derived": view.outcome.exact if view.outcome else None,
                "rounding": derived.spec.published.rounding,
                "rounded": view.outcome.result if view.outcome else None,
                "agrees": view.outcome.agrees if view.outcome else None,
                "over": derived.spec.over,
                "equals": str(derived.spec.equals) if derived.spec.equals is not None else None,
                "steps": [
                    {
                        **_step(step),
                        "text": _plain(workshop, own.spec.text, derived),
                        "by": [f"{component}#{statement}" for component, statement in own.carriers],
                        "cites": list(own.spec.cites),
                    }
                    for own, step in zip(derived.steps, view.steps, strict=True)
                ],
                "underived": _plain(workshop, derived.spec.underived, derived) if derived.spec.underived else None,
            }
            for derived, view in claims
        ],
    }


def _plain(workshop: Workshop, text: str, derived: DerivedClaim | DerivedLedger | None = None) -> str:
    values: dict[str, int] = {}
    if isinstance(derived, DerivedClaim):
        values = {step.spec.id: step.quantity.value for step in derived.steps}
    elif derived is not None:
        values = {line.spec.id: line.quantity.value for line in derived.lines}
    return ClaimViews(workshop, paths.claims_page(workshop.model.name)).prose(values).plain(text)


def _step(view: StepView) -> dict[str, Any]:
    return {
        "id": view.id,
        "expression": view.expression,
        "value": view.value,
        "unit": view.unit,
        "state": view.mark.state if view.mark else None,
    }


def numbers_json(
    workshop: Workshop,
    figures: list[tuple[DerivedFigure, FigureView]],
    ledgers: list[tuple[DerivedLedger, LedgerView]],
) -> dict[str, Any]:
    return {
        "schema": 1,
        "page": "numbers",
        "model": workshop.model.name,
        "title": NUMBERS,
        "figures": [
            {
                "id": view.id,
                "published": derived.spec.published.text.strip(),
                "unit": view.unit,
                "text": _plain(workshop, derived.spec.text),
                "cites": list(derived.spec.published.cites),
                "state": view.mark.state,
                "value": view.value,
                "total": derived.spec.explained,
                "rounding": derived.spec.published.rounding,
                "rounded": view.outcome.result if view.outcome else None,
                "agrees": view.outcome.agrees if view.outcome else None,
                "unexplained": _plain(workshop, derived.spec.unexplained) if derived.spec.unexplained else None,
            }
            for derived, view in figures
        ],
        "ledgers": [
            {
                "id": view.id,
                "title": view.title,
                "text": _plain(workshop, derived.spec.text, derived),
                "state": view.mark.state,
                "lines": [
                    {
                        **_step(step),
                        "text": _plain(workshop, own.spec.text, derived),
                        "total": step.is_total,
                        "by": [f"{component}#{statement}" for component, statement in own.carriers],
                    }
                    for own, step in zip(derived.lines, view.lines, strict=True)
                ],
            }
            for derived, view in ledgers
        ],
    }
