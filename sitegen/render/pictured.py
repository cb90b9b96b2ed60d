# The pictures of a component's page, from its ports and records.
"""What is drawn on the page of a component."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property

from sitegen.diagnostics import SpecInvalid
from sitegen.figures import measure
from sitegen.render.context import PageContext
from sitegen.render.pictures.bars import FigureView, figure_view
from sitegen.render.pictures.connections import component_flow
from sitegen.render.pictures.dataflow import FlowView
from sitegen.render.view import Mark


class PicturedPage(PageContext):
    """A component's page with its dataflow and figures."""

    @cached_property
    def flow(self) -> FlowView | None:
        """How the component's parts are connected."""
        parts = self.parts_here()
        return component_flow(self.model, self.id, parts, self.values, lambda id: self.link(id).href)

    @cached_property
    def figures(self) -> tuple[tuple[FigureView, Mark], ...]:
        """The component's figures with how they stand; one that lacks a length is a finding, and is not drawn."""
        found = []
        for number, figure in enumerate(self.component.figures):
            with suppress(SpecInvalid):
                view = figure_view(measure(self.model, self.id, number), self.prose)
                found.append((view, self.mark(f"figure:{figure.id}")))
        return tuple(found)

    def parts_here(self) -> tuple[str, ...]:
        """The component's parts, in this place those that occur in it."""
        children = self.model.children[self.id]
        if self.place is None:
            return children
        around = {
            o.component: o.parents[-1:]
            for id in children
            for o in self.model.occurrences[id]
            if o.place.id == self.place.id
        }
        return tuple(id for id in children if around.get(id) == (self.id,))
