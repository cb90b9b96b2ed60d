# The index of tensors: from a name in a checkpoint to the component that explains it.
"""The page of tensors, and the same as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sitegen.render import paths, places
from sitegen.render.context import Workshop
from sitegen.render.model_view import layers_text
from sitegen.render.page import Block, Page, slug
from sitegen.render.status import anchor
from sitegen.render.templates import fill
from sitegen.render.view import Link
from sitegen.tensorindex import TensorPattern

#: Groups with fewer patterns stand in the group around them.
SMALL_GROUP = 3


@dataclass(frozen=True)
class TensorRow:
    """One name pattern."""

    pattern: str
    shape: str
    stored: str  # where it differs
    dtype: str
    is_scale: bool
    layers: str
    tensors: int
    elements: int
    owners: tuple[Link, ...]


@dataclass(frozen=True)
class TensorGroup:
    """The patterns of one module."""

    title: str
    rows: tuple[TensorRow, ...]

    @property
    def anchor(self) -> str:
        return f"tensors-{slug(self.title)}"


def tensor_groups(patterns: Sequence[TensorPattern]) -> dict[str, list[TensorPattern]]:
    """Patterns by module, small groups within the module around them; top-level ones under `model`."""
    groups: dict[str, list[TensorPattern]] = {}
    for one in patterns:
        groups.setdefault(one.group, []).append(one)
    found: dict[str, list[TensorPattern]] = {}
    for one in patterns:
        name = one.group
        while len(groups.get(name, ())) < SMALL_GROUP and "." in name:
            name = name.rpartition(".")[0]
            if name.endswith("}") and "." in name:
                break
        if "." not in name and len(groups.get(name, ())) < SMALL_GROUP:
            name = "model"
        found.setdefault(name, []).append(one)
    return found


def tensor_row(workshop: Workshop, start: str, one: TensorPattern) -> TensorRow:
    model, addresses = workshop.model, workshop.settings.addresses
    owners = []
    for owner in one.owners:
        link = places.component_link(model, start, addresses, owner.component, None, anchor(f"row:{owner.row}"))
        owners.append(Link(link.text + owner.slice, link.href, f"row {owner.row}"))
    return TensorRow(
        one.pattern,
        " × ".join(f"{size:,}" for size in one.shape),
        " × ".join(f"{size:,}" for size in one.stored) if one.stored != one.shape else "",
        one.dtype,
        one.is_scale,
        layers_text(one.layers),
        one.tensors,
        one.elements,
        tuple(owners),
    )


def tensors_page(workshop: Workshop) -> Page:
    """All tensors of the published table by name pattern."""
    model, patterns = workshop.model, workshop.book.tensors
    title = model.sources.model.title.strip()
    start = paths.tensors_page(model.name)
    groups = [
        TensorGroup(name, tuple(tensor_row(workshop, start, one) for one in found))
        for name, found in tensor_groups(patterns).items()
    ]
    weights = sum(one.tensors for one in patterns if not one.is_scale)
    scales = sum(one.tensors for one in patterns if one.is_scale)
    text = f"{weights:,} tensors of {title}" + (f" and {scales:,} scales" if scales else "")
    head = fill("index.html.j2", title="Tensors", text=f"{text}, by {len(patterns):,} patterns of names.")
    file = workshop.settings.addresses.href(start, paths.tensors_file(model.name))
    origin = model.sources.model.table.origin.strip() if model.sources.model.table else ""
    blocks = [Block(head), Block(fill("tensors.html.j2", file=file, origin=origin))]
    blocks += [Block(fill("tensor_group.html.j2", group=group), group.title, group.anchor) for group in groups]
    return Page(
        start,
        "Tensors",
        tuple(blocks),
        f"Every tensor of {title} by name: shape, number type, instances, and the component that owns it.",
        model.sources.model_document.file,
        twin=tensors_json(workshop),
    )


def tensors_json(workshop: Workshop) -> dict[str, Any]:
    return {
        "schema": 1,
        "page": "tensors",
        "model": workshop.model.name,
        "title": "Tensors",
        "tensors": [
            {
                "pattern": one.pattern,
                "shape": list(one.shape),
                "stored_shape": list(one.stored),
                "dtype": one.dtype,
                "scale": one.is_scale,
                "layers": list(one.layers),
                "tensors": one.tensors,
                "elements": one.elements,
                "owners": [{"component": o.component, "row": o.row, "slice": o.slice or None} for o in one.owners],
            }
            for one in workshop.book.tensors
        ],
    }


def tensors_csv(patterns: Sequence[TensorPattern]) -> bytes:
    """All patterns, one line each."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        ["pattern", "shape", "stored_shape", "dtype", "scale", "layers", "tensors", "elements", "components", "rows"]
    )
    for one in patterns:
        writer.writerow(
            [
                one.pattern,
                "x".join(map(str, one.shape)),
                "x".join(map(str, one.stored)),
                one.dtype,
                int(one.is_scale),
                " ".join(map(str, one.layers)),
                one.tensors,
                one.elements,
                " ".join(owner.component for owner in one.owners),
                " ".join(owner.row + owner.slice.replace(" ", "") for owner in one.owners),
            ]
        )
    return out.getvalue().encode()
