# From ports to a dataflow: what each part takes and gives, read from the `component` of its ports; what no port
# says is not drawn.
"""Build the dataflow of a component's parts, or of the components of a place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sitegen import schema
from sitegen.render.pictures.dataflow import FlowEdge, FlowNode, FlowView
from sitegen.render.places import layers_text, occurs
from sitegen.render.symbols import axis_sizes
from sitegen.resolver import Model, Place, part_id


def component_flow(
    model: Model,
    id: str,
    parts: Sequence[str],
    sizes: Mapping[str, int | float],
    href: Callable[[str], str],
) -> FlowView | None:
    """The flow through a component; None where fewer than two parts are there.

    `sizes` are the symbols' values for the shapes, `href` gives the address of a component's page.
    """
    if len(parts) < 2:
        return None
    component = model.component(id)
    builder = _Builder(model, tuple(parts), sizes, href, whole=component)
    return builder.view(component.title.strip())


def place_flow(
    model: Model, place: Place, sizes: Mapping[str, int | float], href: Callable[[str], str]
) -> FlowView | None:
    """The flow through the components that stand directly in a place; None where fewer than two do."""
    parts = tuple(part_id(part) for part in place.row.parts if occurs(model, part_id(part), place))
    if len(parts) < 2:
        return None
    some = {
        o.component: layers_text([layer for layer in o.layers if layer is not None])
        for id in parts
        for o in model.occurrences[id]
        if o.place.id == place.id and len(o.layers) < len(place.layers)
    }
    layered = "{i}" in place.row.path
    return _Builder(model, parts, sizes, href, layered=layered, some=some if layered else {}).view(place.title)


@dataclass
class _Builder:
    model: Model
    parts: tuple[str, ...]
    sizes: Mapping[str, int | float]
    href: Callable[[str], str]
    whole: schema.Component | None = None
    layered: bool = False
    some: Mapping[str, str] = field(default_factory=dict)  # parts of a few layers only, and which
    #: (source node, target node) -> values by name; nodes beside the parts as they are met.
    found: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    others: dict[str, FlowNode] = field(default_factory=dict)

    def view(self, title: str) -> FlowView:
        owner = self.owners()
        given: list[tuple[str, str, schema.Port]] = []
        for part in self.parts:
            for port in self.model.component(part).inputs:
                self.take(part, port, owner)
            for port in self.model.component(part).outputs:
                target = owner.get(port.component or "")
                if target and target != part:
                    given.append((part, target, port))
                elif port.component and not target:
                    self.give(part, port)
        if self.whole is not None:
            for port in self.whole.outputs:
                source = owner.get(port.component or "") or self.giver(port)
                if source:
                    self.add(source, self.port("out", port), port)
        told = set(self.found)
        for source, target, port in given:
            # What both ends name is one arrow, under the name that it has where it arrives.
            if (source, target) not in told:
                self.add(source, target, port)
        return FlowView(title, *self.assembled())

    def owners(self) -> dict[str, str]:
        """Component -> the part that it is, or belongs to."""
        found: dict[str, str] = {}
        todo = [(part, part) for part in self.parts]
        while todo:
            id, part = todo.pop()
            found.setdefault(id, part)
            todo += [(child, part) for child in self.model.children[id]]
        return found | {part: part for part in self.parts}

    def take(self, part: str, port: schema.Port, owner: Mapping[str, str]) -> None:
        """Where an input comes from: another part, the whole's input, or outside."""
        entry = self.entry(port)
        if port.component and port.component in owner:
            if owner[port.component] != part:
                self.add(owner[port.component], part, port)
        elif entry is not None or (self.whole is not None and port.component == self.whole.id):
            self.add(self.port("in", entry or port), part, port)
        elif port.component:
            self.add(self.outside(port.component, "in"), part, port)

    def give(self, part: str, port: schema.Port) -> None:
        """An output that leaves: as an output of the whole, or to a component outside."""
        assert port.component is not None
        if self.whole is not None and any(_same(port, out) for out in self.whole.outputs):
            return  # drawn from the whole's side
        if self.whole is not None and port.component == self.whole.id:
            self.add(part, self.port("out", port), port)
        else:
            self.add(part, self.outside(port.component, "out"), port)

    def entry(self, port: schema.Port) -> schema.Port | None:
        """The whole's input that a part's input is."""
        if self.whole is None:
            return None
        same = [p for p in self.whole.inputs if _same(p, port)]
        if port.component and port.component != self.whole.id:
            same = [p for p in same if p.component == port.component]
        return same[0] if same else None

    def giver(self, port: schema.Port) -> str | None:
        """The one part that gives an output of the whole by that name and shape."""
        parts = [id for id in self.parts if any(_same(port, out) for out in self.model.component(id).outputs)]
        return parts[0] if len(parts) == 1 else None

    def port(self, direction: str, port: schema.Port) -> str:
        id = f"{direction}:{port.name}"
        word = "comes in" if direction == "in" else "goes out"
        other = port.component if direction == "in" and self.whole and port.component != self.whole.id else None
        title = self.model.component(other).title.strip() if other else ""
        href = self.href(other) if other else ""
        self.others.setdefault(id, FlowNode(id, port.name, "port", f"from {title}" if title else word, "", href))
        return id

    def outside(self, component: str, direction: str) -> str:
        id = f"{direction}:{component}"
        title = self.model.component(component).title.strip()
        word = "from elsewhere" if direction == "in" else "elsewhere"
        self.others.setdefault(id, FlowNode(id, title, "outside", word, "", self.href(component)))
        return id

    def add(self, source: str, target: str, port: schema.Port) -> None:
        self.found.setdefault((source, target), {}).setdefault(port.name, self.shape(port))

    def shape(self, port: schema.Port) -> str:
        return f"[{', '.join(axis_sizes(port.axes, self.sizes))}] {port.dtype}"

    def assembled(self) -> tuple[tuple[FlowNode, ...], tuple[FlowEdge, ...]]:
        """Nodes and edges; one against the order that would close a circle starts at its source drawn once more.

        In a layer the parts stand in the order in which they run, so every edge against it comes from the one before.
        """
        order = {id: number for number, id in enumerate(self.parts)}
        onward = [pair for pair in self.found if order.get(pair[0], -1) < order.get(pair[1], len(order))]
        back = [pair for pair in self.found if pair not in onward]
        kept, edges = set(onward), []
        for pair in () if self.layered else back:
            if not _reaches(kept, pair[1], pair[0]):
                kept.add(pair)
        for (source, target), values in self.found.items():
            again = (source, target) not in kept
            start = self.again(source) if again else source
            edges.append(FlowEdge(start, target, tuple(values), tuple(values.values()), again and self.layered))
        nodes = []
        for id in self.parts:
            component, children = self.model.component(id), self.model.children[id]
            told = [component.kind, f"{len(children)} parts" if len(children) > 1 else "", self.some.get(id, "")]
            word = ", ".join(text for text in told if text)
            nodes.append(FlowNode(id, component.title.strip(), "part", word, component.kind, self.href(id)))
        ins = [node for node in self.others.values() if not node.id.startswith("out:")]
        outs = [node for node in self.others.values() if node.id.startswith("out:")]
        return (*ins, *nodes, *outs), tuple(edges)

    def again(self, part: str) -> str:
        """A part drawn once more, as a source: in a layer, that of the layer before."""
        id = f"again:{part}"
        title = self.model.component(part).title.strip()
        word = "layer before" if self.layered else "shown again"
        self.others.setdefault(id, FlowNode(id, title, "outside", word, "", self.href(part)))
        return id


def _same(a: schema.Port, b: schema.Port) -> bool:
    return a.name == b.name and len(a.axes) == len(b.axes)


def _reaches(edges: set[tuple[str, str]], start: str, goal: str) -> bool:
    seen, todo = {start}, [start]
    while todo:
        here = todo.pop()
        if here == goal:
            return True
        for source, target in edges:
            if source == here and target not in seen:
                seen.add(target)
                todo.append(target)
    return False
