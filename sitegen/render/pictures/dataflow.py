# The dataflow picture: parts as boxes that lead to their pages, values as arrows with their names, and the same
# as a list of sentences with shapes.
"""Draw how parts of a whole are connected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from sitegen.render.pictures.geometry import Box
from sitegen.render.pictures.layered import BETWEEN, Edge, Layout, Node, Route, in_room, side_by_side
from sitegen.render.pictures.svg import number, svg, tag, text_width, wrapped

#: A title's and a label's size, the widest title, and the padding of a box.
TITLE, LABEL, WIDEST, PAD = 12.0, 11.0, 132.0, 9.0
#: The width of a wide screen's column.
ROOM = 850.0
MARGIN = 3.0


@dataclass(frozen=True)
class FlowNode:
    """A part, a value that enters or leaves (`port`), or something outside (`outside`); `word` is shown below."""

    id: str
    title: str
    role: Literal["part", "port", "outside"]
    word: str = ""
    kind: str = ""
    href: str = ""


@dataclass(frozen=True)
class FlowEdge:
    """Values that go from one node to another: the names that the arrow shows, and their shapes for the list."""

    source: str
    target: str
    names: tuple[str, ...]
    shapes: tuple[str, ...]
    carried: bool = False  # from the round before


@dataclass(frozen=True)
class FlowView:
    """What a picture shows; edges never run in a circle."""

    title: str
    nodes: tuple[FlowNode, ...]
    edges: tuple[FlowEdge, ...]

    def node(self, id: str) -> FlowNode:
        return next(node for node in self.nodes if node.id == id)

    @property
    def loose(self) -> tuple[FlowNode, ...]:
        """Nodes without an arrow."""
        tied = {id for edge in self.edges for id in (edge.source, edge.target)}
        return tuple(node for node in self.nodes if node.id not in tied)


@dataclass(frozen=True)
class FlowLine:
    """One arrow in words."""

    source: FlowNode
    target: FlowNode
    values: tuple[tuple[str, str], ...]  # name, shape
    carried: bool


def flow_lines(view: FlowView) -> tuple[FlowLine, ...]:
    """The picture in words, arrow by arrow."""
    return tuple(
        FlowLine(
            view.node(edge.source),
            view.node(edge.target),
            tuple(zip(edge.names, edge.shapes, strict=True)),
            edge.carried,
        )
        for edge in view.edges
    )


def arrange(view: FlowView) -> Layout:
    """Where everything stands."""
    edges = tuple(Edge(edge.source, edge.target, _label_width(edge)) for edge in view.edges)
    nodes = tuple(_sized(node, [e.label for e in edges if e.target == node.id]) for node in view.nodes)
    return side_by_side(nodes, edges, ROOM)


def dataflow(view: FlowView) -> Markup:
    """The picture; its list in words is the template's."""
    layout = arrange(view)
    parts = [_edge(edge, route) for edge, route in zip(view.edges, layout.routes, strict=True)]
    parts += [_node(node, layout.boxes[node.id]) for node in view.nodes]
    drawn = tag("g", Markup("").join(parts), transform=f"translate({number(MARGIN)} {number(MARGIN)})")
    count = sum(node.role == "part" for node in view.nodes)
    label = f"Dataflow of {view.title}: {count} parts, {len(view.edges)} arrows. The list below says the same."
    return svg(layout.width + 2 * MARGIN, layout.height + 2 * MARGIN, label, drawn, "ms-flow")


def _label(edge: FlowEdge) -> str:
    return ", ".join(edge.names)


def _label_width(edge: FlowEdge) -> float:
    return text_width(_label(edge), LABEL)


def _title(node: FlowNode) -> tuple[str, ...]:
    return wrapped(node.title, TITLE, WIDEST)


def _sized(node: FlowNode, labels: list[float]) -> Node:
    lines = _title(node)
    widths = [text_width(line, TITLE) for line in lines]
    if node.word:
        widths.append(text_width(node.word, LABEL - 1))
    width = max(max(widths) + 2 * PAD, in_room(labels) + PAD)
    height = 15.0 * len(lines) + (13.0 if node.word else 0.0) + (8.0 if node.role == "port" else 12.0)
    return Node(node.id, float(round(width)), height)


def _edge(edge: FlowEdge, route: Route) -> Markup:
    """An arrow along its uprights, with its label right of the last one."""
    path, before = "", (0.0, 0.0)
    for x, top, bottom in route.uprights:
        if path:
            bend = BETWEEN * 0.4
            points = (before[0], before[1] + bend, x, top - bend, x, top)
            path += "C" + " ".join(number(value) for value in points)
        else:
            path = f"M{number(x)} {number(top)}"
        path += f"V{number(bottom)}"
        before = (x, bottom)
    x, y = before
    path += "m-3.5-6 3.5 6 3.5-6"
    label = tag("text", _label(edge), x=x + 5, y=y - 6, class_="ms-port")
    return tag("path", d=path, class_="ms-carried" if edge.carried else None) + label


def _node(node: FlowNode, box: Box) -> Markup:
    lines = _title(node)
    style = f"ms-box--{node.kind}" if node.kind else f"ms-box--{node.role}"
    radius = box.height / 2 if node.role == "port" else 3
    drawn = tag("rect", x=box.x, y=box.y, width=box.width, height=box.height, rx=radius, class_=style)
    y = box.y + (box.height - 15.0 * len(lines) - (13.0 if node.word else 0.0)) / 2 + 11.5
    for line in lines:
        drawn += tag("text", line, x=box.middle, y=y)
        y += 15.0
    if node.word:
        drawn += tag("text", node.word, x=box.middle, y=y - 1, class_="ms-word")
    return tag("a", drawn, href=node.href) if node.href else drawn
