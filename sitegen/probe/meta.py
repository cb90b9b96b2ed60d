# The released configuration on the meta device: no weights in memory, every tensor's name, shape and
# type.  Each element of a documented tensor must have exactly one owner.  Shapes are compared once more at the small
# configurations, where no two sizes are equal: at the released one an axis may stand for another unseen.
"""The meta level."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType

from sitegen import accounting
from sitegen.accounting import Accounts
from sitegen.diagnostics import Finding, Location, SpecInvalid, nearest
from sitegen.probe import census
from sitegen.probe.census import Counted
from sitegen.probe.result import LevelResult, record_count
from sitegen.probe.values import module_of, small_module


def run(accounts: Accounts, harness: ModuleType, progress: Callable[[str], None]) -> LevelResult:
    """Build the released model on the meta device and compare all rows and places with it."""
    model = accounts.model
    result = LevelResult("meta", device="meta")
    progress("meta: building the released configuration")
    try:
        taken = census.take(model, harness, model.config)
    except SpecInvalid as error:
        for finding in error.findings:
            result.fail(finding)
        return result
    owned = accounting.shares(accounts)
    shapes = {name: tensor.shape for name, tensor in taken.parameters.items()}
    shapes |= {n: t.shape for n, t in taken.tensors.items() if n in owned and not t.is_scale}
    for finding in accounting.ownership_findings(accounts, shapes, "the implementation"):
        result.fail(finding)
    for finding in scale_findings(accounts, taken.tensors):
        result.fail(finding)
    for id in model.components:
        compare_component(accounts, id, taken.tensors, set(taken.modules), result)
        compare_module(accounts, id, taken.classes, result)
    for number in range(len(model.sources.model.configurations)):
        progress(f"meta: building {model.sources.model.configurations[number].id}")
        compare_small(accounts, number, harness, result)
    return result


def scale_findings(accounts: Accounts, tensors: dict[str, Counted]) -> Iterator[Finding]:
    """Scales of the published table whose shape is another in the implementation, once for all layers and experts."""
    where = accounts.model.sources.model_document.locate(("table", "path"))
    differing: dict[str, list[str]] = {}
    for name, entry in accounts.table.items():
        if entry.is_scale and name in tensors and tensors[name].shape != entry.shape:
            differing.setdefault(re.sub(r"\d+", "#", name), []).append(name)
    for names in differing.values():
        more = f" (and {len(names) - 1:,} more)" if len(names) > 1 else ""
        yield Finding(
            "shape-mismatch",
            f"{names[0]} has another shape in the published table{more}",
            where,
            expected=f"{list(tensors[names[0]].shape)} in the implementation",
            actual=f"{list(accounts.table[names[0]].shape)} in the table",
            hint="blocks that are not full have a scale too: divide each axis by its block and round up",
        )


def compare_small(accounts: Accounts, number: int, harness: ModuleType, result: LevelResult) -> None:
    """Shapes of rows at a small configuration, in the layer that stands for each place."""
    model = accounts.model
    configuration = model.sources.model.configurations[number]
    where = model.sources.model_document.locate(("configurations", number, "set"))
    config = {**model.config, **configuration.set}
    try:
        tensors = census.take(model, harness, config, where).tensors
    except SpecInvalid as error:
        for finding in error.findings:
            result.fail(finding)
        return
    for id, occurrences in model.occurrences.items():
        located = model.components[id]
        for occurrence in occurrences:
            found = small_module(occurrence, configuration)
            if found is None or not located.component.parameters:
                continue
            for order, row in enumerate(located.component.parameters):
                at = located.at("parameters", order, "axes")
                try:
                    place = occurrence.place
                    counted = accounting.count_row(model, row, place, found[1], config, at, module=found[0])
                except SpecInvalid as error:
                    for finding in error.findings:
                        result.fail(finding.within(id, f"row:{row.id}"))
                    continue
                for name in counted.tensors[:1]:
                    if name in tensors:
                        finding = shape_finding(counted, tensors[name], at)
                        if finding is not None:
                            result.fail(finding.within(id, f"row:{row.id}"))


def shape_finding(row: accounting.RowCount, tensor: Counted, where: Location) -> Finding | None:
    """The row's axes against its part of a tensor."""
    box = own_shape(row, tensor.shape)
    if box == row.shape or (1, *row.shape) == box or squeezed(box, row.shape):
        return None
    return Finding(
        "shape-mismatch",
        f"the row's axes are not the shape of its part of {tensor.name}",
        where,
        expected=f"{list(row.shape)} from [{', '.join(row.row.axes)}]",
        actual=f"{list(box)} in the implementation",
    )


def class_finding(row: accounting.RowCount, tensor: Counted, where: Location) -> Finding | None:
    """What a row says a tensor is, learned or a buffer or its own, against what it is here."""
    if tensor.shared_with:
        return Finding(
            "count-mismatch",
            f"{tensor.name} is {tensor.shared_with}: the same elements are counted twice",
            where,
            expected=f"{tensor.elements:,} elements under one of the two names",
            actual=f"{row.count + tensor.elements:,} by the rows of both",
            hint=f"show {tensor.name} under `views`; its elements belong to the row of {tensor.shared_with}",
        )
    if tensor.is_buffer and row.row.role == "parameter":
        return Finding(
            "count-mismatch",
            f"counted as parameter, is a buffer here: {tensor.name} {tensor.elements:,}",
            where,
            expected="learned parameters",
            actual=f"{tensor.dtype} {list(tensor.shape)}, which nothing learns",
            hint="give the row `role: buffer`; buffers are stated and never counted as parameters",
        )
    if not tensor.is_buffer and row.row.role == "buffer":
        return Finding(
            "count-mismatch",
            f"stated as a buffer, is a parameter here: {tensor.name} {tensor.elements:,}",
            where,
            expected="a buffer",
            actual="a learned parameter, so the totals lack it",
            hint="leave out `role: buffer`",
        )
    return None


def compare_module(accounts: Accounts, id: str, modules: Mapping[str, str], result: LevelResult) -> None:
    """The class of the module that a component is, in every instance."""
    located = accounts.model.components[id]
    stated = located.component.module
    if stated is None:
        return
    about = {"component": id, "statement": "module"}
    if not modules:
        result.skipped[id, "module"] = "the harness does not tell the classes of modules"
        return
    for instance in accounts.instances[id]:
        path = module_of(instance.occurrence.place.module(instance.layer), stated.path)
        if path not in modules:
            message, hint = f"the implementation has no module {path!r}", nearest(path, modules)
            result.fail(Finding("unknown-reference", message, located.at("module", "path"), hint=hint, **about))
            return
        if modules[path] != stated.kind:
            where, expected = located.at("module", "class"), f"{modules[path]} in the implementation"
            message = f"the module {path!r} is of another class"
            result.fail(Finding("unknown-reference", message, where, expected, stated.kind, **about))
            return
    result.hold(id, "module", f"{stated.kind} in each of {len(accounts.instances[id])} instances")


def compare_component(accounts: Accounts, id: str, tensors: dict, modules: set[str], result: LevelResult) -> None:
    """Rows against tensors in every instance, and the places against the module tree."""
    located = accounts.model.components[id]
    component = located.component
    met: set[tuple[str, str]] = set()
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
                if fact.is_scale:
                    continue  # no row may own one: ownership_findings names it
                wrong = class_finding(row, fact, where)
                if wrong is not None:
                    result.fail(wrong.within(id, f"row:{row.row.id}"))
                seen += math.prod(own_shape(row, fact.shape))
                shape = shape_finding(row, fact, located.at("parameters", number, "axes"))
                if shape is not None:
                    result.fail(shape.within(id, f"row:{row.row.id}"))
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
                scales = {tensor.name: tensor.elements for tensor in tensors.values() if tensor.is_scale}
                result.fail(
                    Finding(
                        "count-mismatch",
                        f"the count of {row.row.id} disagrees with the implementation ({module or 'model'})",
                        where,
                        expected=f"{seen:,} elements in the implementation",
                        actual=f"{row.row.count} = {row.count:,} in the spec",
                        hint=accounting.scale_words(row.count - seen, row.tensors, scales)
                        or "the expression and the tensor's slice must count the same elements",
                        **about,
                    )
                )
            place = instance.occurrence.place.id
            if (row.row.id, place) not in met:
                met.add((row.row.id, place))
                record_count(result.counts, id, row.row.id, place, seen)
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
