# Names in a saved checkpoint are proved by reading one: a small model is written under the names that
# the spec states, read back by the package, and compared tensor by tensor.
"""Check the names under which tensors are stored."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sitegen.diagnostics import Finding, Location
from sitegen.probe.result import LevelResult
from sitegen.resolver import Model


@dataclass(frozen=True)
class Entry:
    """What one row says: tensors of this pattern are stored under these names."""

    component: str
    statement: str
    pattern: str  # `model.layers.{i}.mlp.experts.down_proj`
    stored: tuple[str, ...]
    where: Location

    def layer(self, name: str) -> str | None:
        """The layer number in a tensor's name; None where the name is not of this pattern."""
        match = re.fullmatch(re.escape(self.pattern).replace(r"\{i\}", r"(\d+)"), name)
        return None if match is None else (match.group(1) if match.groups() else "")


def entries(model: Model, ids: list[str]) -> list[Entry]:
    """Every stated name, once for each place."""
    found = []
    for id in ids:
        located = model.components[id]
        for number, row in enumerate(located.component.parameters):
            for path in dict.fromkeys(o.place.row.path for o in model.occurrences[id]):
                if row.stored:
                    pattern = f"{path}.{row.tensor}" if path else row.tensor
                    where = located.at("parameters", number, "stored")
                    found.append(Entry(id, f"stored:{row.id}", pattern, tuple(row.stored), where))
    return found


def split(tensor: Any, names: tuple[str, ...], layer: str) -> Iterator[tuple[str, Any]]:
    """A tensor as it is stored: `{e}` numbers the entries of its first axis, several names share the next one."""
    names = tuple(name.replace("{i}", layer) for name in names)
    letter = re.search(r"\{\w+\}", names[0])
    pieces = [(str(n), piece) for n, piece in enumerate(tensor)] if letter else [("", tensor)]
    for number, piece in pieces:
        for name, part in zip(names, piece.chunk(len(names)), strict=True):
            yield (name.replace(letter.group(), number) if letter else name), part.contiguous().clone()


def check(model: Model, ids: list[str], harness: Any, config: dict[str, Any], result: LevelResult) -> None:
    """Write, read and compare; every entry is decided."""
    stated = entries(model, ids)
    if not stated:
        return
    if not hasattr(harness, "read_stored"):
        for entry in stated:
            result.skipped[entry.component, entry.statement] = "the harness reads no checkpoints"
        return
    net = harness.build(config, dtype="float32", seed=5)
    tensors = net.state_dict()
    files: dict[str, Any] = {}
    owner: dict[str, tuple[str, ...]] = {}
    seen: dict[Entry, list[str]] = {entry: [] for entry in stated}
    every = entries(model, list(model.components))
    for name, tensor in tensors.items():
        found = next(((e, layer) for e in every if (layer := e.layer(name)) is not None), None)
        pairs = list(split(tensor, found[0].stored, found[1])) if found else [(name, tensor.contiguous().clone())]
        owner[name] = tuple(n for n, _ in pairs)
        files |= dict(pairs)
    for entry in stated:
        seen[entry] = [name for name in tensors if entry.layer(name) is not None]
    read, missing = harness.read_stored(net, files)
    for entry, names in seen.items():
        about = {"component": entry.component, "statement": entry.statement}
        expected = f"stored as {', '.join(entry.stored)}"
        wrong = next((n for n in names if n in missing or not equal(read[n], tensors[n])), None)
        if not names:
            result.fail(Finding("unknown-reference", f"no tensor is named {entry.pattern}", entry.where, **about))
        elif wrong is not None:
            actual = "nothing was read into it" if wrong in missing else "other values were read into it"
            result.fail(Finding(
                "checkpoint-mismatch", f"a checkpoint with the stated names is not read into {wrong}", entry.where,
                expected=expected, actual=f"{wrong}: {actual}",
                hint="give the names and the order of the parts", **about,
            ))  # fmt: skip
        else:
            files_of = sum(len(owner[n]) for n in names)
            detail = f"{files_of} stored tensors read into {len(names)}, equal bit for bit"
            result.hold(entry.component, entry.statement, detail)


def equal(a: Any, b: Any) -> bool:
    import torch

    return torch.equal(a, b)
