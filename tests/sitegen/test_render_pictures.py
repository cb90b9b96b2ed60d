"""Pictures: what they show follows from the spec, nothing overlaps, every box leads somewhere, and words say it all."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from itertools import combinations
from pathlib import Path

import pytest
from project_copy import MODEL, ROOT
from test_render_site import FILES, book

from sitegen import loader, relations, resolver
from sitegen.diagnostics import SpecInvalid
from sitegen.render.page import Addresses
from sitegen.render.pictures.layer_map import CAPACITY, Geometry, MapView, layer_map
from sitegen.render.pictures.schedule import map_view
from sitegen.render.pictures.shares import share_bar, share_text
from sitegen.render.pictures.svg import text_width, wrapped
from sitegen.render.site import render


@pytest.fixture(scope="module")
def flagship() -> resolver.Model:
    return resolver.resolve(loader.load(ROOT, MODEL))


@pytest.fixture(scope="module")
def layers(flagship: resolver.Model) -> MapView:
    view = map_view(flagship, f"{MODEL}/index.md", Addresses())
    assert view is not None
    return view


def model(root: Path, text: str, **config: str) -> resolver.Model:
    """The toy model with `text` after its model.yml."""
    files = {**FILES, "spec/toy/model.yml": FILES["spec/toy/model.yml"] + text}
    if config:
        files["spec/toy/config.json"] = '{"num_streams": 4, "epsilon": 1e-6, ' + config["json"] + "}"
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")
    return resolver.resolve(loader.load(root, "toy"))


# --- relations ----------------------------------------------------------------------------------------

#: The kinds of layer as the release describes them: layers, compressor, indexer, keys from, selection from.
TABLE = (
    ("window", (0, 1), False, False, None, None),
    ("ratio2_source", (2, 8, 14), True, True, None, None),
    ("ratio2_reusing", (3, 4, 5, 6, 7), False, False, 2, 2),
    ("ratio2_reusing", (9, 10, 11, 12, 13), False, False, 8, 8),
    ("ratio2_reusing", (15, 16, 17, 18, 19), False, False, 14, 14),
    ("ratio1_source", (20,), True, True, None, None),
    ("ratio1_reusing", (21, 22, 23), False, False, 20, 20),
    ("ratio1_index_source", (24, 28, 32, 36), False, True, 20, None),
    ("ratio1_reusing", (25, 26, 27), False, False, 20, 24),
    ("ratio1_reusing", (29, 30, 31), False, False, 20, 28),
    ("ratio1_reusing", (33, 34, 35), False, False, 20, 32),
    ("ratio1_reusing", (37, 38, 39), False, False, 20, 36),
    ("dspark", (40, 41, 42), False, False, None, None),
)


def test_relations_derived_from_the_configuration_are_those_of_the_release(flagship: resolver.Model) -> None:
    found = {r.relation.id: r for r in relations.related(flagship)}
    places = relations.place_of_layer(flagship)
    assert sorted(layer for row in TABLE for layer in row[1]) == list(places) == list(range(43))
    for kind, layers, compressor, indexer, keys, selection in TABLE:
        for layer in layers:
            assert places[layer].row.kind == kind, layer
            assert (layer in found["keys"].owners) == compressor, layer
            assert (layer in found["selection"].owners) == indexer, layer
            assert found["keys"].source.get(layer) == keys, layer
            assert found["selection"].source.get(layer) == selection, layer
    assert found["engram"].owners == (1, 14) and found["taps"].owners == (37, 38, 39)
    assert found["candidates"].owners == (20,)
    assert found["candidates"].source == dict.fromkeys([24, 28, 32, 36], 20)


RULE = "relations:\n- {{id: keys, title: Keys, mark: K, owns: keeps keys, uses: reads keys of, {}}}\n"


@pytest.mark.parametrize(
    ("text", "config", "message"),
    [
        (RULE.format("source_of: sources"), '"source": [1]', "no field 'sources' in spec/toy/config.json"),
        (RULE.format("source_of: sources"), '"sources": "1"', "the field 'sources' lists no layers"),
        (RULE.format("source_of: sources"), '"sources": [1, true]', "the field 'sources' lists no layers"),
        (RULE.format("source_of: sources"), '"sources": [4, 1]', "the layers of 'sources' are not in order, each once"),
        (RULE.format("source_of: sources"), '"sources": [1, 9]', "'sources' lists layers outside any place"),
        (RULE.format("source_of: sources, within: blocks"), '"sources": [0]', "'sources' lists layers outside blocks"),
        (RULE.format("source_of: sources, within: block"), '"sources": [1]', "no place 'block'"),
        (RULE.format("source_of: sources, users: readers"), '"sources": [1]', "no field 'readers'"),
        (RULE.format("source_of: sources, components: [mux]"), '"sources": [1]', "no component 'mux'"),
        (
            RULE.format("source_of: sources, components: [mix]"),
            '"sources": [1, 2]',
            "mix do not occur in the layers that own Keys",
        ),
        (
            RULE.format("source_of: sources") + "- {id: keys, title: x, mark: X, owns: y, owners: sources}\n",
            '"sources": [1]',
            "two relations have the id 'keys'",
        ),
        ("kinds: {plain: {title: plain layer, mark: P}}\n", '"x": 1', "no place is of the kind 'plain'"),
    ],
)
def test_a_relation_that_contradicts_the_schedule_is_a_finding(
    tmp_path: Path, text: str, config: str, message: str
) -> None:
    toy = model(tmp_path, text, json=config)
    findings = list(relations.relation_findings(toy))
    assert message in [f.message.partition(" in spec")[0] if " in spec" not in message else f.message for f in findings]
    assert all(f.where.line for f in findings)
    assert "relations" not in text or map_view(toy, "toy/index.md", Addresses()) is None


@pytest.mark.parametrize(
    ("rule", "message"),
    [("title: x", "give either owners or source_of"), ("title: x, source_of: y", "source_of and uses belong together")],
)
def test_a_relation_needs_one_rule(tmp_path: Path, rule: str, message: str) -> None:
    with pytest.raises(SpecInvalid, match=message):
        model(tmp_path, f"relations: [{{id: r, mark: R, owns: z, {rule}}}]\n")


TWICE = '- {id: eyes, title: eyes, kind: eye, repeat: 2, layers: [0, 1], path: "eyes.{i}", parts: []}\n'


@pytest.mark.parametrize(
    ("kinds", "messages"),
    [
        ("", ["the places 'layers' and 'eyes' both have a layer 0"]),
        ("kinds: {eye: {title: eye, mark: E}}\n", ["the places 'layers' and 'eyes' both have a layer 0"]),
        ("kinds: {eye: {title: eye, mark: E, mapped: false}}\n", []),
    ],
)
def test_layers_that_count_anew_are_left_out_of_the_map_by_name(
    tmp_path: Path, kinds: str, messages: list[str]
) -> None:
    toy = model(tmp_path, TWICE + kinds)
    assert [f.message for f in relations.relation_findings(toy)] == messages
    view = map_view(toy, "toy/index.md", Addresses())
    assert view is not None and len(view.cells) == 6


def test_components_of_a_relation_occur_where_it_says(tmp_path: Path) -> None:
    text = RULE.format("source_of: sources, within: blocks, components: [mix]")
    toy = model(tmp_path, text, json='"sources": [1, 2, 4, 5]')
    assert not list(relations.relation_findings(toy))


# --- the layer map ------------------------------------------------------------------------------------


def links(svg: str) -> list[tuple[str, str]]:
    """(href, label) of the links of a picture."""
    return [(unescape(h), unescape(t)) for h, t in re.findall(r'<a href="([^"]*)" aria-label="([^"]*)"', svg)]


def test_every_layer_is_a_cell_that_leads_to_its_place(flagship: resolver.Model, layers: MapView) -> None:
    found = links(layer_map(layers))
    places = relations.place_of_layer(flagship)
    assert [label.split(":")[0] for _, label in found] == [f"layer {n}" for n in range(43)]
    assert [href for href, _ in found] == [f"layers/{place.id}/" for place in places.values()]


def test_cells_do_not_overlap_and_lie_inside(layers: MapView) -> None:
    geometry = Geometry(layers)
    boxes = list(geometry.boxes.values())
    assert not [pair for pair in combinations(boxes, 2) if pair[0].overlaps(pair[1])]
    assert all(b.x >= 0 and b.x + b.width <= geometry.width and b.y + b.height <= geometry.height for b in boxes)
    assert [len(row) for row in geometry.rows] == [20, 20, 3]
    assert all(len(row) <= CAPACITY for row in geometry.rows)


def test_the_table_says_all_that_the_map_shows(flagship: resolver.Model, layers: MapView) -> None:
    told: dict[int, list[str]] = {}
    for row in layers.rows:
        for span in row.layers.split(" ", 1)[1].split(", "):
            first, _, last = span.partition("–")
            for layer in range(int(first), int(last or first) + 1):
                told[layer] = [text for text in row.says if text]
    for cell in layers.cells:
        assert cell.label.split("; ")[1:] == told[cell.layer]
    for related in relations.related(flagship):
        for layer in {*related.owners} | related.source.keys():
            assert related.says(layer) in told[layer]


def test_kinds_differ_by_mark_and_by_pattern(layers: MapView) -> None:
    svg = layer_map(layers)
    assert len({kind.mark for kind in layers.kinds}) == len(layers.kinds) == 7
    fills = re.findall(r'fill="url\(#(ms-k\d)\)"', svg)
    assert len(fills) == 43 and len(set(fills)) == 7
    patterns = re.findall(r"<pattern[^>]*>(.*?)</pattern>", svg)
    assert len(set(patterns)) == 7
    assert not re.search(r"#[0-9a-f]{3,6}\b(?!\))", svg.replace("#ms-k", "")), "colours belong to the style sheet"


def test_a_line_that_goes_on_in_the_next_row_says_where_it_began(layers: MapView) -> None:
    moved = replace(layers, cells=tuple(replace(cell, block=str(cell.layer // 5)) for cell in layers.cells))
    geometry = Geometry(moved)
    assert [len(row) for row in geometry.rows] == [5] * 8 + [3]
    assert layer_map(moved).count(">of 20</text>") == 3 + 3, "keys and candidates"


def test_a_model_without_kinds_gets_marks_of_its_own(tmp_path: Path) -> None:
    view = map_view(model(tmp_path, ""), "toy/index.md", Addresses())
    assert view is not None
    assert [(k.title, k.mark, k.count) for k in view.kinds] == [("3 layers", "L", 2), ("blocks", "B", 4)]
    assert [row.layers for row in view.rows] == ["layer 0", "layers 1–2", "layer 3", "layers 4–5"]
    assert "Layer map: 6 layers" in layer_map(view)


# --- text ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("Stream weights for attention", 110.0, ("Stream weights", "for attention")),
        ("Head", 110.0, ("Head",)),
        ("one two three four five six seven eight nine", 60.0, ("one two", "three fo…")),
        ("Donaudampfschifffahrtsgesellschaft", 80.0, ("Donaudampf", "schifffahrt…")),
    ],
)
def test_titles_fit_their_boxes(text: str, width: float, lines: tuple[str, ...]) -> None:
    found = wrapped(text, 12, width)
    assert all(text_width(line, 12) <= width for line in found)
    assert len(found) <= 2 and found[0] == lines[0] and (len(found) == len(lines))


# --- the component tree ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0, 100, ""),
        (100, 100, "100 %"),
        (99_999, 100_000, "> 99.9 %"),
        (484, 1000, "48.4 %"),
        (16, 100_000, "0.016 %"),
        (1, 10**9, "< 0.0001 %"),
    ],
)
def test_a_share_is_said_in_words(part: int, whole: int, text: str) -> None:
    assert share_text(part, whole) == text
    widths = [float(w) for w in re.findall(r'width="([\d.]+)" height="4"', share_bar(part, whole))]
    assert widths == ([round(max(0.5, 100 * part / whole), 1)] if part else [])


def test_the_component_tree_lists_every_component_once_with_its_share(tmp_path: Path) -> None:
    site = render([book(tmp_path)])
    html = next(p for p in site.pages if p.path == "toy/components/index.md").html()
    assert re.findall(r'ms-shares__name"><a href="([^"]*)"', html) == ["norm/", "mix/", "mix/weights/"]
    told = " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())
    assert "shares are of the 1,088 that documented components own" in told
    assert "learned , × 4 1,088 100 %" in told.replace("learned,", "learned ,")
    assert "Weights learned , × 4 1,024 94.1 %" in told.replace("learned,", "learned ,")
    assert "1 part of 流组合 *mix* <T>" in told and "no parameters" in told
    inside = html[html.index("<details") : html.index("</details>")]
    assert "mix/weights/" in inside and 'href="norm/"' not in inside
