# Parameters on a page: the rows of one instance, their sum, and the multiplications up to the model.
"""Views of a component's account."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from markupsafe import Markup

from sitegen import schema
from sitegen.render.book import Account, Verdict
from sitegen.render.places import factor_title
from sitegen.render.status import mark
from sitegen.render.view import AccountView, CountView, Factor, Link, Mark, RowView, Side
from sitegen.resolver import Model, Occurrence


def row_views(
    component: schema.Component,
    account: Account,
    html: Callable[[str], Markup],
    link: Callable[[str], Link],
) -> tuple[RowView, ...]:
    """The component's own rows, then one line for each part."""
    authored = {row.id: row for row in component.parameters}
    own = tuple(
        RowView(
            row.row,
            None,
            html(authored[row.row].text),
            (authored[row.row].tensor + (authored[row.row].slice or ""),),
            row.calculation,
            str(authored[row.row].count),
            row.count,
            authored[row.row].dtype,
        )
        for row in account.rows
    )
    parts = tuple(
        RowView(f"part-{part}", link(part), Markup(""), (), calculation, "", total)
        for part, total, calculation in account.parts
        if total
    )
    return own + parts


def factors(occurrence: Occurrence, per_instance: int) -> tuple[Factor, ...]:
    """The multiplications from one instance to all of a place, innermost repeat first."""
    repeated = [place for place in reversed(occurrence.place.chain) if place.row.repeat > 1]
    product = 1
    for place in repeated:
        product *= place.row.repeat
    if product != occurrence.instances:
        # Present in some layers of the place only: there is no product to show.
        times = occurrence.instances
        return (Factor(f"{times:,} layers", times, per_instance * times),) if times > 1 else ()
    result: list[Factor] = []
    total = per_instance
    for place in repeated:
        total *= place.row.repeat
        result.append(Factor(factor_title(place), place.row.repeat, total))
    return tuple(result)


def account_view(
    component: schema.Component,
    account: Account,
    occurrences: tuple[Occurrence, ...],
    scope: Markup,
    html: Callable[[str], Markup],
    link: Callable[[str], Link],
    occurrence: Occurrence | None = None,
) -> AccountView:
    """Per instance, and what that makes in a place or over the model."""
    rows = row_views(component, account, html, link)
    instances = occurrence.instances if occurrence else sum(o.instances for o in occurrences)
    steps: tuple[Factor, ...]
    across = ""
    if occurrence is not None:
        steps = factors(occurrence, account.per_instance)
        if steps:
            across = f"Across {steps[0].times:,} independent {_noun(steps[0].label)}"
    else:
        steps = (
            (Factor(f"{instances:,} instances", instances, account.per_instance * instances),) if instances > 1 else ()
        )
        across = f"Across all {instances:,} instances in the model" if steps else ""
    return AccountView(
        rows,
        account.per_instance,
        tuple(row.count for row in rows),
        steps,
        instances,
        account.per_instance * instances,
        across,
        scope,
    )


def _noun(label: str) -> str:
    return "blocks" if "block" in label.lower() else "layers"


def _side(side: str, value: int | None, count: int, verdict: Verdict | None) -> Side:
    if value is None or (verdict is None and side != "expression"):
        detail = verdict.detail if verdict and verdict.state == "not-run" else "no run has counted it"
        return Side(None, Mark("not-run", detail))
    if value != count:
        return Side(value, Mark("failed", f"the expression gives {count:,}"))
    if side != "module":
        return Side(value, Mark("verified", "static"))
    return Side(value, mark(verdict) if verdict and verdict.state == "stale" else Mark("executed", "meta"))


def count_views(
    component: schema.Component, account: Account, verdicts: Mapping[str, Verdict]
) -> tuple[CountView, ...]:
    """Each row's count from three sides; a side that is absent was not run."""
    views = []
    for row in account.rows:
        verdict = verdicts.get(f"row:{row.row}")
        sides = []
        for side, value in (("expression", row.count), ("module", row.module), ("table", row.table)):
            sides.append(_side(side, value, row.count, verdict))
        views.append(CountView(row.row, row.row.replace("_", " "), (sides[0], sides[1], sides[2])))
    return tuple(views)


def owners(model: Model, tensor: str) -> list[tuple[str, str]]:
    """(slice, component) of every row that owns elements of a tensor, in the order of the slices."""
    found = [
        (row.slice or "all", id)
        for id, located in model.components.items()
        for row in located.component.parameters
        if row.tensor == tensor
    ]
    return sorted(found, key=lambda pair: ([int(n) for n in re.findall(r"\d+", pair[0])], pair))
