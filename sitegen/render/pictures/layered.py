# A layered layout for small graphs: ranks from top to bottom, few crossings, edges that pass between boxes.
#
# The graphs have a dozen or two of nodes, so plain sweeps do; the libraries that lay out graphs are either
# large (networkx, which has no layered layout), need native tools (graphviz), or carry a copyleft licence
# (grandalf).
"""Lay out an acyclic graph in ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sitegen.render.pictures.geometry import Box

#: Between boxes of a rank, between ranks, and the room that an edge takes on its way through a rank.
BESIDE, BETWEEN, PASS = 18.0, 48.0, 12.0
#: The last upright piece of an edge, beside its label.
ARROW = 18.0
#: How often orders and places are swept over; more changes nothing at these sizes.
SWEEPS = 8


@dataclass(frozen=True)
class Node:
    """A box to be placed."""

    id: str
    width: float
    height: float


@dataclass(frozen=True)
class Edge:
    """A connection; `label` is the room that its label takes at the target."""

    source: str
    target: str
    label: float = 0.0


@dataclass(frozen=True)
class Route:
    """An edge's way: the upright lines (x, top, bottom) that it follows, from its source's edge to its target's."""

    uprights: tuple[tuple[float, float, float], ...]


@dataclass(frozen=True)
class Layout:
    """Boxes by node, a route for each edge, and the size of the whole."""

    boxes: Mapping[str, Box]
    routes: tuple[Route, ...]
    width: float
    height: float


def in_room(labels: Iterable[float]) -> float:
    """The width that a box needs for the labels of what comes in."""
    return sum(label + PASS for label in labels)


@lru_cache(maxsize=2048)
def layered(nodes: tuple[Node, ...], edges: tuple[Edge, ...]) -> Layout:
    """Place the nodes; raises `ValueError` when the edges run in a circle or name no node."""
    return _Layouter(nodes, edges).layout()


@lru_cache(maxsize=2048)
def side_by_side(nodes: tuple[Node, ...], edges: tuple[Edge, ...], room: float) -> Layout:
    """Lay out each connected piece by itself, and the pieces in rows no wider than `room` where they fit.

    Pieces come in the order of their first nodes; nodes without an edge stand together below.
    """
    piece = {node.id: number for number, node in enumerate(nodes)}
    for edge in edges:
        low, high = sorted((piece[edge.source], piece[edge.target]))
        piece = {id: low if number == high else number for id, number in piece.items()}
    sizes = Counter(piece.values())
    order = sorted(sizes, key=lambda number: (sizes[number] == 1, number))
    boxes: dict[str, Box] = {}
    routes: dict[int, Route] = {}
    x = y = height = width = 0.0
    single = False
    for number in order:
        own = [k for k, edge in enumerate(edges) if piece[edge.source] == number]
        inner = layered(tuple(n for n in nodes if piece[n.id] == number), tuple(edges[k] for k in own))
        if x and (x + inner.width > room or single != (sizes[number] == 1)):
            x, y, height = 0.0, y + height + BESIDE, 0.0
        single = sizes[number] == 1
        for id, box in inner.boxes.items():
            boxes[id] = Box(box.x + x, box.y + y, box.width, box.height)
        for k, route in zip(own, inner.routes, strict=True):
            routes[k] = Route(tuple((a + x, top + y, bottom + y) for a, top, bottom in route.uprights))
        height, width = max(height, inner.height), max(width, x + inner.width)
        x += inner.width + BESIDE
    return Layout(boxes, tuple(routes[k] for k in range(len(edges))), width, y + height)


def pack(wanted: Sequence[float], widths: Sequence[float], weights: Sequence[float], gap: float) -> list[float]:
    """Middles nearest to the wanted ones, in the same order and without overlap (weighted least squares)."""
    offsets, at = [], 0.0
    for number, width in enumerate(widths):
        at += (widths[number - 1] + width) / 2 + gap if number else 0.0
        offsets.append(at)
    # Pool neighbours whose wanted places are out of order, until none are.
    pools: list[tuple[float, float, int]] = []  # mean, weight, members
    for place, offset, weight in zip(wanted, offsets, weights, strict=True):
        pools.append((place - offset, weight, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (a, u, m), (b, v, n) = pools[-2:]
            pools[-2:] = [((a * u + b * v) / (u + v), u + v, m + n)]
    return [mean + offset for (mean, offset) in zip((p[0] for p in pools for _ in range(p[2])), offsets, strict=True)]


class _Layouter:
    def __init__(self, nodes: Sequence[Node], edges: Sequence[Edge]) -> None:
        self.nodes = {node.id: node for node in nodes}
        self.edges = edges
        for edge in edges:
            if edge.source not in self.nodes or edge.target not in self.nodes:
                raise ValueError(f"no node for the edge {edge.source!r} to {edge.target!r}")
        self.rank = self.ranks()
        # Chains of the edges through the ranks; the inner links are passes.
        self.chains: list[list[str]] = []
        self.rows: list[list[str]] = [[] for _ in range(max(self.rank.values(), default=-1) + 1)]
        for id in self.nodes:
            self.rows[self.rank[id]].append(id)
        self.up: dict[str, list[str]] = {}
        self.down: dict[str, list[str]] = {}
        for number, edge in enumerate(edges):
            chain = [edge.source]
            for rank in range(self.rank[edge.source] + 1, self.rank[edge.target]):
                chain.append(f"\0{number}.{rank}")
                self.rows[rank].append(chain[-1])
            chain.append(edge.target)
            for above, below in zip(chain, chain[1:], strict=False):
                self.down.setdefault(above, []).append(below)
                self.up.setdefault(below, []).append(above)
            self.chains.append(chain)

    def ranks(self) -> dict[str, int]:
        """Longest way from the top; what nothing comes into stands right above what it goes to."""
        into: dict[str, list[str]] = {id: [] for id in self.nodes}
        out: dict[str, list[str]] = {id: [] for id in self.nodes}
        for edge in self.edges:
            into[edge.target].append(edge.source)
            out[edge.source].append(edge.target)
        rank: dict[str, int] = {}
        left = list(self.nodes)
        while left:
            ready = [id for id in left if all(source in rank for source in into[id])]
            if not ready:
                raise ValueError(f"edges run in a circle through {', '.join(left)}")
            for id in ready:
                rank[id] = max((rank[source] + 1 for source in into[id]), default=0)
            left = [id for id in left if id not in rank]
        for id in self.nodes:
            if not into[id] and out[id]:
                rank[id] = min(rank[target] for target in out[id]) - 1
        return rank

    def crossings(self, rows: Sequence[Sequence[str]]) -> int:
        at = {id: number for row in rows for number, id in enumerate(row)}
        found = 0
        for row in rows[:-1]:
            links = [(at[id], at[below]) for id in row for below in self.down.get(id, ())]
            found += sum((a - c) * (b - d) < 0 for k, (a, b) in enumerate(links) for c, d in links[k + 1 :])
        return found

    def order(self) -> list[list[str]]:
        """Rows in an order with few crossings: each node goes to the mean of its neighbours, down and up in turn."""
        best, rows = self.rows, self.rows
        fewest = self.crossings(rows)
        for sweep in range(SWEEPS):
            if not fewest:
                break
            rows = [list(row) for row in rows]
            near = self.up if sweep % 2 == 0 else self.down
            for number in range(len(rows)) if sweep % 2 == 0 else reversed(range(len(rows))):
                at = {id: k / max(1, len(row) - 1) for row in rows for k, id in enumerate(row)}
                rows[number].sort(
                    key=lambda id, at=at: (  # type: ignore[misc]
                        sum(at[n] for n in near[id]) / len(near[id]) if near.get(id) else at[id]
                    )
                )
            found = self.crossings(rows)
            if found < fewest:
                best, fewest = rows, found
        return best

    def size(self, id: str) -> tuple[float, float]:
        node = self.nodes.get(id)
        return (node.width, node.height) if node else (PASS, 0.0)

    def middles(self, rows: Sequence[Sequence[str]]) -> dict[str, float]:
        x: dict[str, float] = {}
        for row in rows:
            widths = [self.size(id)[0] for id in row]
            total = sum(widths) + BESIDE * (len(row) - 1)
            x |= dict(zip(row, pack([-total / 2] * len(row), widths, [1.0] * len(row), BESIDE), strict=True))
        for sweep in range(SWEEPS):
            near = self.up if sweep % 2 == 0 else self.down
            for row in rows if sweep % 2 == 0 else reversed(rows):
                wanted = [sum(x[n] for n in near[id]) / len(near[id]) if near.get(id) else x[id] for id in row]
                weights = [1.0 if id in self.nodes else 3.0 for id in row]
                x |= dict(zip(row, pack(wanted, [self.size(id)[0] for id in row], weights, BESIDE), strict=True))
        return x

    def layout(self) -> Layout:
        rows = self.order()
        x = self.middles(rows)
        left = min((x[id] - self.size(id)[0] / 2 for id in x), default=0.0)
        x = {id: value - left for id, value in x.items()}
        boxes: dict[str, Box] = {}
        tops: list[tuple[float, float]] = []
        y = 0.0
        for number, row in enumerate(rows):
            height = max((self.size(id)[1] for id in row), default=0.0)
            for id in row:
                if id in self.nodes:
                    w, h = self.size(id)
                    boxes[id] = Box(x[id] - w / 2, y + (height - h) / 2, w, h)
            tops.append((y, y + height))
            y += height + (BETWEEN if number + 1 < len(rows) else 0.0)
        width = max((box.right for box in boxes.values()), default=0.0)
        width = max([width, *(x[id] + PASS for row in rows for id in row)])
        return Layout(boxes, tuple(self.routes(x, boxes, tops)), width, y)

    def routes(
        self, x: Mapping[str, float], boxes: Mapping[str, Box], tops: Sequence[tuple[float, float]]
    ) -> list[Route]:
        starts: dict[int, tuple[float, float]] = {}
        ends: dict[int, tuple[float, float]] = {}
        for id, box in boxes.items():
            out = [n for n, edge in enumerate(self.edges) if edge.source == id]
            for place, number in enumerate(sorted(out, key=lambda n: x[self.chains[n][1]])):
                step = min(PASS, box.width / (len(out) + 1))
                starts[number] = (box.middle + (place - (len(out) - 1) / 2) * step, box.bottom)
            into = sorted(
                (n for n, edge in enumerate(self.edges) if edge.target == id), key=lambda n: x[self.chains[n][-2]]
            )
            at = box.middle - in_room(self.edges[n].label for n in into) / 2
            for number in into:
                ends[number] = (at + PASS / 2, box.y)
                at += self.edges[number].label + PASS
        found = []
        for number, chain in enumerate(self.chains):
            first, last = self.rank[chain[0]], self.rank[chain[-1]]
            (leave, bottom), (arrive, top) = starts[number], ends[number]
            box = boxes[chain[0]]
            if len(self.down[chain[0]]) == 1 and len(chain) == 2 and box.x + PASS < arrive < box.right - PASS:
                leave = arrive  # straight down
            passes = [(x[id], *tops[first + 1 + k]) for k, id in enumerate(chain[1:-1])]
            found.append(Route(((leave, bottom, tops[first][1]), *passes, (arrive, tops[last][0] - ARROW, top))))
        return found
