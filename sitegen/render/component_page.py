# A component's page from its view: the sections of the design, in their order.
"""Compose a component page."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from sitegen.render.page import Block
from sitegen.render.pictures.bars import FigureView, heading, panel_svg
from sitegen.render.pictures.dataflow import FlowView, dataflow, flow_lines
from sitegen.render.templates import fill
from sitegen.render.view import ComponentView, Mark


def component_blocks(view: ComponentView) -> tuple[Block, ...]:
    """The page's blocks, top to bottom; a section without content is left out, never shown empty."""
    return tuple(_blocks(view))


def flow_block(flow: FlowView, heading: str) -> Block:
    """A dataflow picture with its list in words; the words stand elsewhere on the page, so search needs neither."""
    html = fill("picture/flow.html.j2", picture=dataflow(flow), lines=flow_lines(flow), loose=flow.loose)
    return Block(html, heading, heading.lower().replace(" ", "-"), searchable=False)


def figure_html(figure: FigureView, mark: Mark | None = None) -> Markup:
    """A figure with the words below it."""
    return fill("picture/figure.html.j2", v=figure, mark=mark, panel_svg=panel_svg, heading=heading)


def _blocks(view: ComponentView) -> Iterator[Block]:
    def section(template: str, heading: str = "", *, searchable: bool = True) -> Block:
        html = fill(f"component/{template}.html.j2", v=view)
        return Block(html, heading, heading.lower().replace(" ", "-"), searchable=searchable)

    yield section("head")
    yield section("why", "Why")
    if view.formulas:
        yield section("formula", "Formula")
    yield section("symbols", "Symbols")
    yield section("ports", "Inputs and outputs")
    if view.flow is not None:
        yield flow_block(view.flow, "Parts")
    yield section("parameters", "Parameters")
    yield section("checks", "Checks")
    if view.cases:
        yield section("cases", "Worked cases")
    for figure, mark in view.figures:
        yield Block(figure_html(figure, mark), figure.title, figure.id + "-title", searchable=False)
    if view.explanation:
        yield section("explanation", "Explanation")
    if view.gotchas:
        yield section("gotchas", "What a port gets wrong", searchable=False)
    if view.excerpts:
        yield section("code", "Code", searchable=False)
    if view.evidence:
        block = section("sources", "Sources")
        yield Block(block.html, f"Sources {len(view.evidence)}", "sources")
    yield section("neighbours", "Around it")
