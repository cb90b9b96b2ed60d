# From a checked model to the book that pages are made of.
"""Make the render stage's input from specs, pins and committed facts."""

from __future__ import annotations

import math
from pathlib import Path

from sitegen import accounting, claims, verifier
from sitegen.diagnostics import Finding, SpecInvalid
from sitegen.pins import FolderReader, SourceRefused
from sitegen.probe.result import record_count
from sitegen.quoting import quote
from sitegen.render import gather
from sitegen.render.book import Book, CodeState
from sitegen.selftest.record import read_record
from sitegen.tensorindex import tensor_patterns
from sitegen.verifier import Checked


def make_book(root: Path, name: str) -> tuple[Book, list[Finding]]:
    """The book of a model, and the findings of its static check.

    Raises `SpecInvalid` when the spec cannot be resolved at all.
    """
    checked = verifier.inspect(root, name)
    if not isinstance(checked, Checked):
        raise SpecInvalid(checked.findings)
    return book_of(checked), checked.report.findings


def book_of(checked: Checked) -> Book:
    """The book of a checked model."""
    accounts, report = checked.accounts, checked.report
    model = accounts.model
    policies = {}
    for name, policy in model.sources.policies.items():
        try:
            policies[name] = accounts.policy(policy)
        except SpecInvalid:
            continue  # a finding of the static level
    return Book(
        model=model,
        verdicts=gather.verdicts(report.outcomes),
        accounts=gather.accounts(accounts, checked.counts, table_counts(accounts)),
        codes=codes(checked),
        runs=gather.runs(report),
        policies=policies,
        quote=lambda id, text: quote(accounts, id, text),
        policies_of=policies_of(accounts),
        selftest=read_record(model.sources),
        fields=checked.fields,
        tensors=tensor_patterns(accounts),
        claims=claims.derive(accounts),
        date=max((run.date for run in report.runs.values()), default=""),
    )


def table_counts(accounts: accounting.Accounts) -> dict[tuple[str, str], int | None]:
    """Elements that the published table gives for each row, in its first instance and in places that differ from it."""
    found: dict[tuple[str, str], int | None] = {}
    for id, instances in accounts.instances.items():
        met: set[str] = set()
        for instance in instances:
            place = instance.occurrence.place.id
            for row in instance.rows if place not in met else ():
                total = table_count(accounts, row)
                if total is not None:
                    record_count(found, id, row.row.id, place, total)
            met.add(place)
    return found


def table_count(accounts: accounting.Accounts, row: accounting.RowCount) -> int | None:
    """Elements that a row owns in the published table; None where a tensor of it is not there."""
    total = 0
    for name in row.tensors:
        tensor = accounts.table.get(name)
        if tensor is None:
            return None
        if row.box is None:
            total += math.prod(tensor.shape)
        else:
            ends = zip(row.box, tensor.shape, strict=False)
            box = [(a, min(n, n if b == -1 else b)) for (a, b), n in ends]
            total += math.prod([b - a for a, b in box]) * math.prod(tensor.shape[len(box) :])
    return total


def policies_of(accounts: accounting.Accounts) -> dict[str, tuple[str, ...]]:
    """Component -> policies that count at least one of its rows or of its parts'."""
    model = accounts.model
    found: dict[str, list[str]] = {id: [] for id in model.components}
    for name, policy in model.sources.policies.items():
        counted: set[str] = set()
        for term in policy.terms:
            for instance in accounts.term_instances(term):
                if instance.rows:
                    counted |= {instance.occurrence.component, *instance.occurrence.parents}
        for id in counted:
            found[id].append(name)
    return {id: tuple(names) for id, names in found.items()}


def codes(checked: Checked) -> dict[tuple[str, str], CodeState]:
    """Every pin with the file it points into, as it stands today."""
    reader = FolderReader(checked.accounts.model.sources.root)

    def text(path: str) -> str:
        try:
            return reader.read(path).text
        except SourceRefused:
            return ""

    return gather.codes(checked.pinned.states.values(), text)
