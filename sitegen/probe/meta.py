# The released configuration on the meta device: no weights in memory, every tensor's name, shape and
# type.  Each element of a documented tensor must have exactly one owner.
"""The meta level."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType

from sitegen import accounting
from sitegen.accounting import Accounts
from sitegen.diagnostics import Finding
from sitegen.probe.result import LevelResult


def run(accounts: Accounts, harness: ModuleType, progress: Callable[[str], None]) -> LevelResult:
    """Build the released model on the meta device and compare all rows and places with it."""
    model = accounts.model
    result = LevelResult("meta", device="meta")
    progress("meta: building the released configuration")
    try:
        facts, modules = harness.tensors(model.config)
    except (ValueError, TypeError) as error:
        where = model.sources.model_document.locate(("config",))
        result.fail(Finding("config-invalid", f"the implementation refuses the configuration: {error}", where))
        return result
    tensors = {fact.name: fact for fact in facts if not fact.is_scale}
    shapes = {name: tuple(fact.shape) for name, fact in tensors.items()}
    for finding in accounting.ownership_findings(accounts, shapes, "the implementation"):
        result.fail(finding)
    known = set(modules)
    for id in model.components:
        compare_component(accounts, id, tensors, known, result)
    return result


def compare_component(accounts: Accounts, id: str, tensors: dict, modules: set[str], result: LevelResult) -> None:
    """Rows against tensors in every instance, and the places against the module tree."""
    located = accounts.model.components[id]
    component = located.component
    for instance in accounts.instances[id]:
        module = instance.occurrence.place.module(instance.layer)
        if module not in modules:
            result.fail(
                Finding(
                    "unknown-reference",
                    f"the implementation has no module {module!r} for the place {instance.occurrence.place.id!r}",
                    accounts.model.sources.model_document.locate(("places",)),
                    component=id,
                    statement=f"place:{instance.occurrence.place.id}",
                )
            )
        for number, row in enumerate(instance.rows):
            about = {"component": id, "statement": f"row:{row.row.id}"}
            where = located.at("parameters", number, "count")
            seen = 0
            for name in row.tensors:
                if name not in tensors:
                    continue  # ownership_findings names it
                fact = tensors[name]
                box = own_shape(row, tuple(fact.shape))
                seen += math.prod(box)
                if tuple(box) != row.shape and (1, *row.shape) != tuple(box) and not squeezed(box, row.shape):
                    result.fail(
                        Finding(
                            "shape-mismatch",
                            f"the row's axes are not the shape of its part of {name}",
                            located.at("parameters", number, "axes"),
                            expected=f"{list(row.shape)} from [{', '.join(row.row.axes)}]",
                            actual=f"{list(box)} in the implementation",
                            **about,
                        )
                    )
                if fact.dtype != row.row.dtype:
                    result.fail(
                        Finding(
                            "dtype-mismatch",
                            f"{name} is stored in another number type",
                            located.at("parameters", number, "dtype"),
                            expected=f"{row.row.dtype} in the spec",
                            actual=f"{fact.dtype} in the implementation",
                            **about,
                        )
                    )
            if row.count != seen:
                result.fail(
                    Finding(
                        "count-mismatch",
                        f"the count of {row.row.id} disagrees with the implementation ({module or 'model'})",
                        where,
                        expected=f"{seen:,} elements in the implementation",
                        actual=f"{row.row.count} = {row.count:,} in the spec",
                        hint="the expression and the tensor's slice must count the same elements",
                        **about,
                    )
                )
            result.counts[id, row.row.id] = seen
            result.hold(
                id, f"row:{row.row.id}", f"{seen:,} elements in each of {len(accounts.instances[id])} instances"
            )
        result.hold(id, f"place:{instance.occurrence.place.id}", "modules and tensors exist in every instance")
    if component.parameters or component.parts:
        failing = {f.component for f in result.findings if f.statement.startswith(("row:", "count:"))}
        if not failing & {id, *descendants(accounts, id)}:
            result.hold(id, "account", f"{accounts.total(id):,} in all instances")
        else:
            first = next(f for f in result.findings if f.component in {id, *descendants(accounts, id)})
            result.fail(
                Finding(
                    "count-mismatch",
                    "the account is wrong because a row is",
                    located.at("parameters"),
                    expected=first.expected,
                    actual=first.actual,
                    component=id,
                    statement="account",
                )
            )


def own_shape(row: accounting.RowCount, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the part of a tensor that the row owns."""
    if row.box is None:
        return shape
    box = [(a, n if b == -1 else b) for (a, b), n in zip(row.box, shape, strict=False)]
    return tuple(max(0, b - a) for a, b in box) + shape[len(box) :]


def squeezed(box: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether a stated shape is the slice seen with its axes written out (16 as [4, 4]) or ones left out."""
    return math.prod(box) == math.prod(shape) and (
        len(box) == 1 or [n for n in box if n > 1] == [n for n in shape if n > 1]
    )


def descendants(accounts: Accounts, id: str) -> set[str]:
    found: set[str] = set()
    todo = list(accounts.model.children[id])
    while todo:
        part = todo.pop()
        if part not in found:
            found.add(part)
            todo += accounts.model.children[part]
    return found
