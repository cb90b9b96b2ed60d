# The layer map: every layer of the schedule as a cell of its kind, and under the cells one track per relation
# that shows who owns what and how far it reaches.  Geometry is a value of its own, so that tests can look at it.
"""Draw the layers of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from markupsafe import Markup

from sitegen.render.pictures.geometry import Box
from sitegen.render.pictures.svg import defs, svg, tag, text_width

#: Sizes in pixels of a wide screen.
CELL, HEIGHT, STRIP, GAP = 33.0, 46.0, 9.0, 9.0
TRACK, ROW_GAP, MARGIN = 21.0, 26.0, 2.0
#: Layers in a row before the next group goes below.
CAPACITY = 20


@dataclass(frozen=True)
class KindView:
    """A kind of layer: its title and mark, where its places are described, and its layers in words."""

    name: str
    title: str
    mark: str
    layers: str
    count: int


@dataclass(frozen=True)
class CellView:
    """A layer: its kind, its place's page, and the group that it stands in (a change of group makes a gap)."""

    layer: int
    kind: str
    href: str
    label: str  # everything that the map shows of it, in words
    block: str  # the outermost place; a change begins a row
    group: str


@dataclass(frozen=True)
class TrackView:
    """A relation: its owners, and for each layer that uses one the owner whose it uses."""

    title: str
    mark: str
    owners: tuple[int, ...]
    source: Mapping[int, int]
    owns: str
    uses: str = ""


@dataclass(frozen=True)
class MapRow:
    """Layers that the map's table lists in one line: what they are, and what each relation says of them."""

    layers: str
    href: str
    kind: str
    says: tuple[str, ...]


@dataclass(frozen=True)
class MapView:
    kinds: tuple[KindView, ...]
    cells: tuple[CellView, ...]
    tracks: tuple[TrackView, ...]
    rows: tuple[MapRow, ...]


@dataclass(frozen=True)
class Geometry:
    """The boxes of the cells by layer, the top of each row, and which tracks it has."""

    view: MapView

    @cached_property
    def rows(self) -> tuple[tuple[CellView, ...], ...]:
        """Rows of cells: a block begins a row, and so does a group that would not fit."""
        rows: list[list[CellView]] = []
        for group in _groups(self.view.cells):
            if not rows or rows[-1][-1].block != group[0].block or len(rows[-1]) + len(group) > CAPACITY:
                rows.append([])
            for cell in group:
                if len(rows[-1]) == CAPACITY:
                    rows.append([])
                rows[-1].append(cell)
        return tuple(tuple(row) for row in rows)

    @cached_property
    def label_width(self) -> float:
        return max([text_width(track.title, 12) + 12 for track in self.view.tracks] + [text_width("Layer", 12) + 12])

    def tracks(self, row: Sequence[CellView]) -> tuple[TrackView, ...]:
        """The relations that say something of a row's layers."""
        layers = {cell.layer for cell in row}
        return tuple(t for t in self.view.tracks if layers & ({*t.owners} | t.source.keys()))

    @cached_property
    def tops(self) -> tuple[float, ...]:
        found, y = [], MARGIN
        for row in self.rows:
            found.append(y)
            y += HEIGHT + TRACK * len(self.tracks(row)) + ROW_GAP
        return (*found, y - ROW_GAP + MARGIN)

    @cached_property
    def boxes(self) -> dict[int, Box]:
        found: dict[int, Box] = {}
        for row, top in zip(self.rows, self.tops, strict=False):
            x, before = self.label_width, row[0]
            for cell in row:
                x += GAP if cell.group != before.group else 0
                found[cell.layer] = Box(x, top, CELL, HEIGHT)
                x, before = x + CELL, cell
        return found

    @property
    def width(self) -> float:
        return max(box.x + box.width for box in self.boxes.values()) + MARGIN

    @property
    def height(self) -> float:
        return self.tops[-1]


def layer_map(view: MapView) -> Markup:
    """The picture; its table and legend are the template's."""
    geometry = Geometry(view)
    patterns = {kind.name: number for number, kind in enumerate(view.kinds)}
    marks = {kind.name: kind.mark for kind in view.kinds}
    parts = [defs("ms-k", len(view.kinds))]
    for row, top in zip(geometry.rows, geometry.tops, strict=False):
        parts.append(_label("Layer", top + 18))
        for number, track in enumerate(geometry.tracks(row)):
            y = top + HEIGHT + TRACK * number + TRACK / 2 + 2
            parts.append(_label(track.title, y + 4))
            parts += _track(track, row, geometry, y)
        parts += [_cell(cell, geometry.boxes[cell.layer], patterns[cell.kind], marks[cell.kind]) for cell in row]
    label = f"Layer map: {len(view.cells)} layers by kind; each leads to its place. The table below says the same."
    return svg(geometry.width, geometry.height, label, Markup("").join(parts), "ms-map")


def swatch(number: int, mark: str) -> Markup:
    """A kind's pattern with its mark, for the legend; it uses the patterns of the map on the same page."""
    body = tag("rect", width=23, height=9, y=4.5, fill=f"url(#ms-k{number})")
    return Markup('<svg class="ms-swatch" viewBox="0 0 23 18" aria-hidden="true">{}</svg> <b>{}</b>').format(body, mark)


def _groups(cells: Sequence[CellView]) -> Iterator[list[CellView]]:
    group: list[CellView] = []
    for cell in cells:
        if group and (group[-1].block, group[-1].group) != (cell.block, cell.group):
            yield group
            group = []
        group.append(cell)
    if group:
        yield group


def _label(text: str, y: float) -> Markup:
    return tag("text", text, x=0, y=y, class_="ms-soft")


def _cell(cell: CellView, box: Box, pattern: int, mark: str) -> Markup:
    fill = f"url(#ms-k{pattern})"
    inner = (
        tag("title", cell.label)
        + tag("rect", x=box.x + 1, y=box.y, width=box.width - 2, height=box.height - 2, rx=3, class_="ms-cell")
        + tag("text", str(cell.layer), x=box.middle, y=box.y + 17, class_="ms-mid ms-strong")
        + tag("text", mark, x=box.middle, y=box.y + 31, class_="ms-mid ms-small")
        + tag("rect", x=box.x + 2, y=box.y + box.height - STRIP - 3, width=box.width - 4, height=STRIP, fill=fill)
    )
    return tag("a", inner, href=cell.href, aria_label=cell.label)


def _track(track: TrackView, row: Sequence[CellView], geometry: Geometry, y: float) -> Iterator[Markup]:
    boxes = geometry.boxes
    layers = [cell.layer for cell in row]
    for owner in dict.fromkeys([*track.owners, *track.source.values()]):
        users = [layer for layer in layers if track.source.get(layer) == owner]
        if users:
            here = owner in layers
            start = boxes[owner].middle if here else boxes[layers[0]].x
            yield tag("path", d=f"M{start:g} {y:g}H{boxes[users[-1]].middle:g}", class_="ms-span")
            for layer in users:
                yield tag("circle", cx=boxes[layer].middle, cy=y, r=3, class_="ms-dot")
            if not here:
                shown = f"of {owner}"
                yield tag("text", shown, x=boxes[users[0]].middle + 6, y=y - 5, class_="ms-small ms-halo")
    for owner in track.owners:
        if owner in layers:
            middle = boxes[owner].middle
            yield tag("rect", x=middle - 9, y=y - 8, width=18, height=16, rx=3, class_="ms-badge")
            yield tag("text", track.mark, x=middle, y=y + 4, class_="ms-mid ms-on-badge")
