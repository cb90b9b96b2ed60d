"""Dataflow pictures: what the ports say is drawn, nothing overlaps, every box leads somewhere, and words say it all."""

from __future__ import annotations

import re
from html import unescape
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from project_copy import MODEL, ROOT

from sitegen import loader, resolver
from sitegen.render.pictures.connections import component_flow, place_flow
from sitegen.render.pictures.dataflow import FlowEdge, FlowNode, FlowView, arrange, dataflow, flow_lines
from sitegen.render.pictures.geometry import Box
from sitegen.render.pictures.layered import Edge, Layout, Node, in_room, layered, pack, side_by_side


def overlaps(layout: Layout) -> list[object]:
    return [pair for pair in combinations(layout.boxes.values(), 2) if pair[0].overlaps(pair[1])]


def struck(layout: Layout, edges: tuple[Edge, ...]) -> list[object]:
    """Boxes that an edge's upright lines pass through; its curves lie between the ranks."""
    found = []
    for route, edge in zip(layout.routes, edges, strict=True):
        for x, top, bottom in route.uprights:
            line = Box(x - 0.5, top, 1, bottom - top)
            found += [(edge, id) for id, box in layout.boxes.items() if box.overlaps(line)]
    return found


# --- the layout ---------------------------------------------------------------------------------------


@st.composite
def graphs(draw: st.DrawFn) -> tuple[tuple[Node, ...], tuple[Edge, ...]]:
    count = draw(st.integers(1, 12))
    pairs = draw(st.sets(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=24))
    edges = tuple(Edge(str(a), str(b), 8.0 + 7 * (a % 3)) for a, b in sorted(pairs) if a < b)
    nodes = []
    for number in range(count):
        room = in_room(e.label for e in edges if e.target == str(number))
        nodes.append(Node(str(number), max(room, draw(st.sampled_from([60.0, 140.0]))), 30.0 + 12 * (number % 2)))
    return tuple(nodes), edges


@given(graphs())
@settings(max_examples=60, deadline=None)
def test_boxes_never_overlap_and_no_arrow_runs_through_one(graph: tuple[tuple[Node, ...], tuple[Edge, ...]]) -> None:
    nodes, edges = graph
    layout = layered(nodes, edges)
    packed = side_by_side(nodes, edges, 400.0)
    assert not overlaps(layout) and not struck(layout, edges)
    assert not overlaps(packed) and not struck(packed, edges)
    assert all(
        b.x > -0.01 and b.right < layout.width + 0.01 and b.bottom <= layout.height for b in layout.boxes.values()
    )
    for edge, route in zip(edges, layout.routes, strict=True):
        start, end = layout.boxes[edge.source], layout.boxes[edge.target]
        assert start.x <= route.uprights[0][0] <= start.right and route.uprights[0][1] == start.bottom
        assert end.x <= route.uprights[-1][0] <= end.right and route.uprights[-1][2] == end.y
        assert start.bottom < end.y, "values flow down"


def test_labels_at_a_box_do_not_overlap() -> None:
    edges = tuple(Edge(str(n), "t", 20.0 + 9 * n) for n in range(4))
    nodes = (*(Node(str(n), 50.0, 30.0) for n in range(4)), Node("t", in_room(e.label for e in edges), 30.0))
    layout = layered(nodes, edges)
    spans = sorted((r.uprights[-1][0], r.uprights[-1][0] + e.label) for r, e in zip(layout.routes, edges, strict=True))
    assert all(before[1] < after[0] for before, after in zip(spans, spans[1:], strict=False))


@pytest.mark.parametrize(
    ("edges", "message"),
    [((Edge("a", "b"), Edge("b", "a")), "edges run in a circle through a, b"), ((Edge("a", "c"),), "no node for")],
)
def test_what_cannot_be_laid_out_is_refused(edges: tuple[Edge, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        layered((Node("a", 10.0, 10.0), Node("b", 10.0, 10.0)), edges)


def test_pieces_stand_side_by_side_as_long_as_there_is_room() -> None:
    nodes = tuple(Node(id, 100.0, 20.0) for id in "abcdefg")
    edges = (Edge("a", "b"), Edge("c", "d"), Edge("e", "f"))
    layout = side_by_side(nodes, edges, 250.0)
    rows = {y: {id for id, box in layout.boxes.items() if box.y == y} for y in {b.y for b in layout.boxes.values()}}
    assert [rows[y] for y in sorted(rows)] == [{"a", "c"}, {"b", "d"}, {"e"}, {"f"}, {"g"}]
    assert layout.width <= 250


def test_few_crossings() -> None:
    nodes = tuple(Node(id, 40.0, 20.0) for id in "abcxyz")
    layout = layered(nodes, (Edge("a", "z"), Edge("b", "y"), Edge("c", "x")))
    order = sorted("abc", key=lambda id: layout.boxes[id].x), sorted("zyx", key=lambda id: layout.boxes[id].x)
    assert [{"a": "z", "b": "y", "c": "x"}[id] for id in order[0]] == order[1]


@given(st.lists(st.tuples(st.floats(-300, 300), st.floats(5, 80)), min_size=1, max_size=8))
def test_packing_keeps_order_and_distance(items: list[tuple[float, float]]) -> None:
    widths = [width for _, width in items]
    found = pack([wanted for wanted, _ in items], widths, [1.0] * len(items), 10.0)
    for number in range(1, len(found)):
        apart = (widths[number - 1] + widths[number]) / 2 + 10
        assert found[number] - found[number - 1] >= apart - 1e-6


# --- from ports to arrows -----------------------------------------------------------------------------

PLACES = """
schema: 1
name: toy
title: Toy
purpose: A model.
config: spec/toy/config.json
implementation: {harness: toy.probe, sources: [toy]}
configurations: [{id: small, set: {}}]
places:
- {id: ends, title: ends, parts: [embed]}
- {id: blocks, title: blocks, repeat: 2, layers: [0, 1], path: "layers.{i}", parts: [read, work, write]}
"""


def component(id: str, ins: str = "", outs: str = "", parts: str = "") -> str:
    return f"""
- id: {id}
  title: The {id.rpartition("/")[2]}
  kind: computed
  purpose: {{text: Does., by: []}}
  parts: [{parts}]
  inputs: [{ins}]
  outputs: [{outs}]
  reason: {{given: true, text: It must., cites: []}}
""".replace("by: []", "cites: [e]").replace("cites: []", "cites: [e]")


def port(name: str, component: str = "", axes: str = "T, d") -> str:
    return (
        f"{{name: {name}, axes: [{axes}], dtype: float32, text: t{f', component: {component}' if component else ''}}}"
    )


def toy(root: Path, *components: str, places: str = PLACES) -> resolver.Model:
    files = {
        "model.yml": places,
        "symbols.yml": "symbols:\n  T: {tex: T, meaning: positions}\n  d: {tex: d, meaning: width, value: 4}\n",
        "sources.yml": "sources: {s: {title: S}}\n",
        "evidence.yml": "evidence: {e: {kind: external, claim: c, source: s}}\n",
        "policies.yml": "policies: {}\n",
        "config.json": "{}",
        "components/all.yml": "components:" + "".join(components),
    }
    for name, text in files.items():
        path = root / "spec/toy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return resolver.resolve(loader.load(root, "toy"))


@pytest.fixture
def blocks(tmp_path: Path) -> resolver.Model:
    return toy(
        tmp_path,
        component("embed", outs=port("x")),
        component("read", ins=port("x", "write") + ", " + port("e", "embed"), outs=port("h", "work")),
        component("work", ins=port("h"), outs=port("y"), parts="work/up, work/down, work/aside"),
        component("work/up", ins=port("h") + ", " + port("W"), outs=port("u", "work/down")),
        component("work/down", ins=port("a", "work/up"), outs=port("y")),
        component("work/aside"),
        component("write", ins=port("y", "work/down") + ", " + port("h", "read"), outs=port("x")),
    )


def arrows(view: FlowView | None) -> list[str]:
    assert view is not None
    lines = flow_lines(view)
    return [
        f"{line.source.title}{f' ({line.source.word})' if line.source.role != 'part' else ''} -> {line.target.title}: "
        + ", ".join(f"{name} {shape}" for name, shape in line.values)
        for line in lines
    ]


def test_arrows_of_a_place(blocks: resolver.Model) -> None:
    view = place_flow(blocks, blocks.places["blocks"], blocks.symbols(), lambda id: f"{id}/")
    assert arrows(view) == [
        "The write (layer before) -> The read: x [T, 4] float32",
        "The embed (from elsewhere) -> The read: e [T, 4] float32",
        "The work -> The write: y [T, 4] float32",
        "The read -> The write: h [T, 4] float32",
        "The read -> The work: h [T, 4] float32",
    ]
    assert [edge.carried for edge in view.edges] == [True, False, False, False, False]  # type: ignore[union-attr]


def test_a_part_of_some_layers_says_of_which(tmp_path: Path) -> None:
    some = PLACES.replace("[read, work, write]", "[read, {id: work, layers: [1]}, write]")
    assert some != PLACES
    model = toy(tmp_path, *(component(id) for id in ("embed", "read", "work", "write")), places=some)
    view = place_flow(model, model.places["blocks"], model.symbols(), str)
    assert view is not None
    assert [node.word for node in view.nodes] == ["computed", "computed, layer 1", "computed"]


def test_arrows_inside_a_component(blocks: resolver.Model) -> None:
    parts = blocks.children["work"]
    view = component_flow(blocks, "work", parts, blocks.symbols(), lambda id: f"{id}/")
    assert arrows(view) == [
        "h (comes in) -> The up: h [T, 4] float32",
        "The up -> The down: a [T, 4] float32",
        "The down -> y: y [T, 4] float32",
    ]
    assert view is not None and [node.title for node in view.loose] == ["The aside"]
    assert component_flow(blocks, "work", parts[:1], blocks.symbols(), str) is None


def test_what_a_part_says_of_its_whole_enters_and_leaves(tmp_path: Path) -> None:
    model = toy(
        tmp_path,
        component("embed"),
        component("read", parts="read/a, read/b"),
        component("read/a", ins=port("z", "read")),
        component("read/b", ins=port("p", "read/a"), outs=port("q", "read") + ", " + port("r", "embed")),
        component("work"),
        component("write"),
    )
    view = component_flow(model, "read", model.children["read"], model.symbols(), str)
    assert arrows(view) == [
        "z (comes in) -> The a: z [T, 4] float32",
        "The a -> The b: p [T, 4] float32",
        "The b -> q: q [T, 4] float32",
        "The b -> The embed: r [T, 4] float32",
    ]


def test_parts_that_feed_each_other_are_cut_where_the_order_turns_back(tmp_path: Path) -> None:
    model = toy(
        tmp_path,
        component("embed"),
        component("read", parts="read/a, read/b, read/c"),
        component("read/a", ins=port("z", "read/c")),
        component("read/b", ins=port("p", "read/c")),
        component("read/c", ins=port("q", "read/a")),
        component("work"),
        component("write"),
    )
    view = component_flow(model, "read", model.children["read"], model.symbols(), str)
    assert arrows(view) == [
        "The c (shown again) -> The a: z [T, 4] float32",
        "The c -> The b: p [T, 4] float32",
        "The a -> The c: q [T, 4] float32",
    ]


# --- the pictures of the model ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def flagship() -> resolver.Model:
    return resolver.resolve(loader.load(ROOT, MODEL))


def flows(model: resolver.Model) -> list[FlowView]:
    def href(id: str) -> str:
        return f"../{id}/"

    found: list[FlowView | None] = []
    for id, parts in model.children.items():
        first = model.occurrences[id][0]
        sizes = model.symbols(place=first.place, layer=first.layers[0])
        found.append(component_flow(model, id, parts, sizes, href))
    found += [place_flow(model, place, model.symbols(), href) for place in model.places.values()]
    return [view for view in found if view is not None]


def test_no_picture_of_the_model_overlaps_or_weighs_much(flagship: resolver.Model) -> None:
    views = flows(flagship)
    assert len(views) >= 10
    for view in views:
        layout = arrange(view)
        edges = tuple(Edge(e.source, e.target) for e in view.edges)
        assert not overlaps(layout) and not struck(layout, edges), view.title
        svg = dataflow(view)
        drawn = len(view.nodes) + len(view.edges)
        assert len(svg.encode()) < min(400 * (drawn + 2), 10_000 if drawn <= 40 else 20_000), (view.title, len(svg))


def test_every_part_is_a_link_and_every_arrow_a_sentence(flagship: resolver.Model) -> None:
    for view in flows(flagship):
        svg = dataflow(view)
        hrefs = re.findall(r'<a href="([^"]*)"', svg)
        assert hrefs == [node.href for node in view.nodes if node.href]
        assert all(href.removeprefix("../").removesuffix("/") in flagship.components for href in hrefs)
        assert {node.role for node in view.nodes if not node.href} <= {"port"}
        told = {(line.source.id, line.target.id): [name for name, _ in line.values] for line in flow_lines(view)}
        labels = [unescape(t) for t in re.findall(r'class="ms-port">([^<]*)<', svg)]
        assert sorted(labels) == sorted(", ".join(names) for names in told.values())
        assert {id for pair in told for id in pair} | {n.id for n in view.loose} == {n.id for n in view.nodes}


def test_text_of_the_spec_is_text_in_the_picture() -> None:
    nodes = (FlowNode("a", "<b> & co", "part", "x", "learned", "../a/?x=1&y"), FlowNode("c", '"', "port", "<i>"))
    svg = dataflow(FlowView('"<svg>', nodes, (FlowEdge("a", "c", ("<n>",), ("",)),)))
    assert "<b>" not in svg and "<i>" not in svg and "<n>" not in svg
    assert 'href="../a/?x=1&amp;y"' in svg and "&#34;&lt;svg&gt;" in svg
