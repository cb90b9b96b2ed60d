# Tensors by name: tens of thousands of them are a hundred or so patterns, each with its owners.
"""The index of tensors: name pattern -> shape, number type, instances and the components that own it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sitegen import accounting
from sitegen.accounting import Accounts


@dataclass(frozen=True)
class Owner:
    """A component's row, and the slice of the tensor that it owns ("" for all of it)."""

    component: str
    row: str
    slice: str = ""


@dataclass(frozen=True)
class TensorPattern:
    """Tensors of one name pattern, shape and number type.

    Attributes:
        pattern: the name with `{i}` for the layer and other letters for experts.
        shape: logical shape; `stored` is the one on disk where it differs.
        layers: the layers in which it occurs; empty outside of layers.
        tensors: how many tensors there are.
        owners: whose rows they are; of a scale, whose weight it scales.
    """

    pattern: str
    shape: tuple[int, ...]
    stored: tuple[int, ...]
    dtype: str
    is_scale: bool
    layers: tuple[int, ...]
    tensors: int
    owners: tuple[Owner, ...]

    @property
    def elements(self) -> int:
        """Elements of all its tensors."""
        return math.prod(self.shape) * self.tensors

    @property
    def group(self) -> str:
        """The module that its table of the index is about: `layers.{i}.attn`, `vision.blocks.{i}`, `embed`."""
        parts = re.sub(r"(?<=\.)\d+(?=\.)", "{i}", self.pattern).split(".")
        at = next((number for number, part in enumerate(parts) if part.startswith("{")), None)
        if at is None:
            return parts[0]
        return ".".join(parts[: at + 2 if len(parts) > at + 2 else at + 1])


def tensor_patterns(accounts: Accounts) -> tuple[TensorPattern, ...]:
    """All patterns: those of the published table, or without one those that components own."""
    found = _of_table(accounts) if accounts.model.sources.table else _of_rows(accounts)
    merged: dict[tuple[object, ...], TensorPattern] = {}
    for one in found:
        key = (one.pattern, one.shape, one.dtype, one.owners)
        other = merged.get(key)
        if other is not None:
            layers = tuple(sorted({*other.layers, *one.layers}))
            one = replace(one, layers=layers, tensors=one.tensors + other.tensors)
        merged[key] = one
    return tuple(merged.values())


def _of_table(accounts: Accounts) -> Iterator[TensorPattern]:
    owners = accounting.shares(accounts)
    for entry in accounts.model.sources.table:
        name = next(accounting.names_of(entry))
        weight = re.sub(r"scale$", "weight", name) if entry["is_scale"] else name
        yield TensorPattern(
            entry["name_pattern"],
            tuple(entry["shape"]),
            tuple(entry["stored_shape"]),
            entry["dtype"],
            entry["is_scale"],
            tuple(entry["layers"]),
            entry["instances"],
            tuple(_owner(accounts, share) for share in owners.get(weight, ())),
        )


def _owner(accounts: Accounts, share: accounting.Share) -> Owner:
    component = accounts.model.component(share.component)
    row = next(row for row in component.parameters if row.id == share.row)
    return Owner(share.component, share.row, row.slice or "")


def _of_rows(accounts: Accounts) -> Iterator[TensorPattern]:
    for id in accounts.model.order():
        for instance in accounts.instances[id]:
            path = instance.occurrence.place.row.path
            for row in instance.rows:
                pattern = f"{path}.{row.row.tensor}" if path else row.row.tensor
                layers = () if instance.layer is None else (instance.layer,)
                owner = Owner(id, row.row.id, row.row.slice or "")
                yield TensorPattern(
                    pattern, row.shape, row.shape, row.row.dtype, False, layers, len(row.tensors), (owner,)
                )
