# The accounting tables as one file: every row of every component in every place.
"""Accounting rows as CSV."""

from __future__ import annotations

import csv
import io

from sitegen.render import places
from sitegen.render.book import Book


def accounting_csv(book: Book) -> bytes:
    """One line per row or part of a component in a place, and with an empty place over the whole model.

    `count` is what one instance owns; a part's count includes its own parts.
    """
    model = book.model
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        ["component", "place", "row", "part", "tensor", "expression", "calculation", "dtype", "count", "module",
         "table", "instances", "total"]
    )  # fmt: skip
    here = places.occurrences_by_place(model)
    for id in model.order():
        authored = {row.id: row for row in model.component(id).parameters}
        spots = ["", *(place for place, found in here.items() if any(o.component == id for o in found))]
        for place in spots:
            account = book.account(id, place)
            if account is None:
                continue
            for row in account.rows:
                spec = authored[row.row]
                writer.writerow(
                    [id, place, row.row, "", spec.tensor + (spec.slice or ""), spec.count, row.calculation, spec.dtype,
                     row.count, _side(row.module), _side(row.table), account.instances, row.count * account.instances]
                )  # fmt: skip
            for part in account.parts:
                writer.writerow(
                    [id, place, "", part.component, "", "", part.calculation, "", part.count, _side(part.module),
                     _side(part.table), account.instances, part.count * account.instances]
                )  # fmt: skip
    return out.getvalue().encode()


def _side(number: int | None) -> int | str:
    return "" if number is None else number
