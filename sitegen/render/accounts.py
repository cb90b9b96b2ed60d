# Parameters on a page: the rows of one instance, their sum, and the multiplications up to the model.
"""Views of a component's account."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from markupsafe import Markup

from sitegen import schema
from sitegen.render.book import Account, Book, RowCount, Verdict
from sitegen.render.page import slug
from sitegen.render.places import times_title
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
        RowView(f"part-{part.component}", link(part.component), Markup(""), (), part.calculation, "", part.count)
        for part in account.parts
        if part.count
    )
    return own + parts


def factors(occurrence: Occurrence, account: Account) -> tuple[Factor, ...]:
    """The multiplications from one instance to all of a place, innermost repeat first."""
    repeated = [place for place in reversed(occurrence.place.chain) if place.row.repeat > 1]
    product = 1
    for place in repeated:
        product *= place.row.repeat
    if product != account.instances or account.per_instance * product != account.total:
        # Present in some layers of the place only, or different in each: there is no product to show.
        return (Factor(f"{account.instances:,} layers", account.instances, account.total),) if product > 1 else ()
    result: list[Factor] = []
    total = account.per_instance
    for place in repeated:
        total *= place.row.repeat
        result.append(Factor(times_title(place), place.row.repeat, total))
    return tuple(result)


def account_view(
    component: schema.Component,
    account: Account,
    scope: Markup,
    html: Callable[[str], Markup],
    link: Callable[[str], Link],
    occurrence: Occurrence | None = None,
) -> AccountView:
    """Per instance, and what that makes in a place or over the model."""
    rows = row_views(component, account, html, link)
    steps: tuple[Factor, ...] = ()
    across = ""
    if occurrence is not None:
        steps = factors(occurrence, account)
        if steps:
            across = f"Across {steps[0].times:,} independent {_noun(steps[0].label)}"
    elif account.instances > 1:
        steps = (Factor(f"{account.instances:,} instances", account.instances, account.total),)
        across = f"Across all {account.instances:,} instances in the model"
    return AccountView(
        rows,
        account.per_instance,
        tuple(row.count for row in rows),
        steps,
        account.instances,
        account.total,
        across,
        scope,
        account.note,
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
    account: Account,
    verdicts: Mapping[str, Verdict],
    part_verdict: Callable[[str], Verdict | None],
    link: Callable[[str], Link],
) -> tuple[CountView, ...]:
    """Each count from three sides, rows first, then parts, then all together; an absent side was not run."""
    views = [
        CountView(
            row.row.replace("_", " ").replace("-", " "),
            f"#row-{slug(row.row)}",
            _sides((row.count, row.module, row.table), verdicts.get(f"row:{row.row}")),
        )
        for row in account.rows
    ]
    for part in account.parts:
        if part.count:
            to = link(part.component)
            sides = _sides((part.count, part.module, part.table), part_verdict(part.component))
            views.append(CountView(to.text, to.href, sides))
    if "account" in verdicts:
        every = (*account.rows, *account.parts)
        totals = (account.per_instance, _all(p.module for p in every), _all(p.table for p in every))
        views.append(CountView("All together", "#parameters", _sides(totals, verdicts["account"]), "check-account"))
    return tuple(views)


def _all(values: Iterable[int | None]) -> int | None:
    found = list(values)
    return None if any(value is None for value in found) else sum(value for value in found if value is not None)


def _sides(values: tuple[int, int | None, int | None], verdict: Verdict | None) -> tuple[Side, Side, Side]:
    count, module, table = values
    return (
        _side("expression", count, count, verdict),
        _side("module", module, count, verdict),
        _side("table", table, count, verdict),
    )


@dataclass(frozen=True)
class Owner:
    """A row that owns elements of a tensor."""

    component: str
    row: str
    slice: str


def owners(model: Model, tensor: str) -> list[Owner]:
    """Every row that owns elements of a tensor, in the order of the slices."""
    found = [
        Owner(id, row.id, row.slice or "all")
        for id, located in model.components.items()
        for row in located.component.parameters
        if row.tensor == tensor
    ]
    return sorted(
        found, key=lambda owner: ([int(n) for n in re.findall(r"\d+", owner.slice)], owner.slice, owner.component)
    )


def view_counts(book: Book, tensor: str, place: str | None, link: Callable[[str], Link]) -> Iterator[CountView]:
    """The counts of a tensor that is shown on a page, by the rows of other components that own it."""
    counted: list[RowCount] = []
    weakest: Verdict | None = None
    for owner in owners(book.model, tensor):
        account = book.account(owner.component, place)
        row = next((row for row in account.rows if row.row == owner.row), None) if account else None
        if row is None:
            continue
        verdict = next((v for v in book.of(owner.component, place) if v.id == f"row:{owner.row}"), None)
        if weakest is None or (verdict is not None and verdict.state != "executed"):
            weakest = verdict
        counted.append(row)
        to = link(owner.component)
        yield CountView(f"{owner.slice} {to.text}", to.href, _sides((row.count, row.module, row.table), verdict))
    if counted:
        totals = (sum(r.count for r in counted), _all(r.module for r in counted), _all(r.table for r in counted))
        yield CountView(f"{tensor}, all together", "#parameters", _sides(totals, weakest))
