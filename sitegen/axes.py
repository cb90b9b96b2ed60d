# Axes that no size can tell apart: letters against the indices of formulas, views against the table.
"""Check the letters of square ports, and the axes of tensors that a page only shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sitegen import expr
from sitegen.accounting import Accounts, TableTensor
from sitegen.diagnostics import Finding, SpecInvalid
from sitegen.formula.syntax import Item, Name, Step, assignments, walk
from sitegen.loader import Located
from sitegen.resolver import Axis


def letter_findings(located: Located, steps: Sequence[Step]) -> Iterator[Finding]:
    """Ports whose named axes (`j: n`) stand in another order than any formula writes their indices."""
    used = index_orders(steps)
    for direction, ports in (("inputs", located.component.inputs), ("outputs", located.component.outputs)):
        for number, port in enumerate(ports):
            letters = [Axis.parse(axis).letter if ":" in axis else "" for axis in port.axes]
            orders = used.get(port.name, {})
            fitting = {o: None for o in orders if len(o) <= len(letters) and any(letters[len(letters) - len(o) :])}
            if sum(map(bool, letters)) < 2 or not fitting or any(agree(o, letters) for o in fitting):
                continue
            side = "in" if direction == "inputs" else "out"
            yield Finding(
                "shape-mismatch",
                f"the axes of {port.name} have letters in another order than its indices in the formulas",
                located.at(direction, number, "axes"),
                expected=" or ".join(f"{port.name}[{', '.join(order)}]" for order in fitting),
                actual=f"[{', '.join(port.axes)}]",
                hint="two axes of one size differ only in their letters: write them as the formula does",
                component=located.component.id,
                statement=f"{side}:{port.name}",
            )


def index_orders(steps: Sequence[Step]) -> dict[str, dict[tuple[str, ...], None]]:
    """Tensor -> the orders in which plain letters index it, read or written."""
    found: dict[str, dict[tuple[str, ...], None]] = {}
    for step in steps:
        places = [(a.name, a.axes) for a in assignments(step.statements)]
        places += [(n.name, n.indices) for n in walk(step) if isinstance(n, Item)]
        for name, indices in places:
            if all(isinstance(index, Name) for index in indices):
                found.setdefault(name, {})[tuple(index.name for index in indices if isinstance(index, Name))] = None
    return found


def agree(order: tuple[str, ...], letters: Sequence[str]) -> bool:
    """Whether indices of the last axes are their letters, where these are given."""
    own = letters[len(letters) - len(order) :]
    return all(not letter or letter == index for letter, index in zip(own, order, strict=True))


def view_findings(accounts: Accounts, id: str, table: Mapping[str, TableTensor]) -> Iterator[Finding]:
    """Tensors that a page shows as another component's: they exist, with the stated axes, in every instance."""
    model = accounts.model
    located = model.components[id]
    for number, view in enumerate(located.component.views):
        for instance in accounts.instances[id]:
            module = instance.occurrence.place.module(instance.layer)
            name = f"{module}.{view.tensor}" if module else view.tensor
            symbols = model.symbols(place=instance.occurrence.place, layer=instance.layer)
            sizes = {n: v for n, v in symbols.items() if type(v) is int}
            where = located.at("views", number, "axes")
            try:
                shape = tuple(expr.evaluate(Axis.parse(axis).size, sizes, where) for axis in view.axes)
            except SpecInvalid as error:
                yield from (f.within(id) for f in error.findings)
                break
            tensor = table.get(name)
            if tensor is None:
                yield Finding(
                    "unknown-reference",
                    f"the view shows {name}, which the published table does not have",
                    located.at("views", number, "tensor"),
                    component=id,
                )
                break
            if tensor.shape != shape:
                yield Finding(
                    "shape-mismatch",
                    f"the axes of the view are not those of {name}",
                    where,
                    expected=f"{list(tensor.shape)} in the published table",
                    actual=f"{list(shape)} from [{', '.join(view.axes)}]",
                    component=id,
                )
                break
