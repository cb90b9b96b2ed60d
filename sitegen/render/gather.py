# From the nouns of the stages before (report, accounts, pins) to what the book holds of them.
"""Conversions for whoever makes a `Book`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from sitegen.accounting import Accounts
from sitegen.pins import PinState
from sitegen.probe.result import recorded_count
from sitegen.render.book import Account, CodeState, PartCount, RowCount, Verdict
from sitegen.render.view import Run, State
from sitegen.report import EXECUTED, LEVELS, LevelRun, Outcome, Report

#: (component, row) -> elements that a side gives for one instance, None where it has not been counted.
Side = Mapping[tuple[str, str], int | None]


def state(outcome: Outcome) -> State:
    """An outcome's state as pages name it: what passed was executed, or verified without a run."""
    if outcome.state == "passed":
        return "executed" if outcome.level in EXECUTED else "verified"
    return "not-run" if outcome.state == "not_run" else outcome.state


def verdicts(outcomes: Iterable[Outcome]) -> dict[str, tuple[Verdict, ...]]:
    """Verdicts by component, in the order of the outcomes."""
    found: dict[str, list[Verdict]] = {}
    for outcome in outcomes:
        verdict = Verdict(
            outcome.statement,
            state(outcome),
            outcome.level if outcome.state != "cited" else "",
            outcome.expected,
            outcome.actual,
            outcome.detail,
        )
        found.setdefault(outcome.component, []).append(verdict)
    return {id: tuple(list_) for id, list_ in found.items()}


def runs(report: Report) -> tuple[Run, ...]:
    """The report's levels in order, each with its figures."""
    return tuple(_run(report, report.runs[level]) for level in LEVELS if level in report.runs)


def _run(report: Report, run: LevelRun) -> Run:
    counts = report.counts([o for o in report.outcomes if o.level == run.level])
    parts = [
        f"{counts[key]:,} {key.replace('_', ' ')}" for key in ("passed", "failed", "stale", "not_run") if counts[key]
    ]
    worst: State = "executed" if run.level in EXECUTED else "verified"
    if counts["failed"]:
        worst = "failed"
    elif counts["stale"]:
        worst = "stale"
    elif not counts["passed"]:
        worst = "not-run"
    return Run(run.level, ", ".join(parts) or "not run", run.device, run.versions, run.date, worst, run.reason)


def accounts(counted: Accounts, module: Side, table: Side) -> dict[tuple[str, str], Account]:
    """What every component owns, in the model ("") and in each of its places."""
    found: dict[tuple[str, str], Account] = {}
    for id, occurrences in counted.model.occurrences.items():
        for place in ("", *(o.place.id for o in occurrences)):
            account = _account(counted, id, place, module, table)
            if account is not None:
                found[id, place] = account
    return found


def _account(counted: Accounts, id: str, place: str, module: Side, table: Side) -> Account | None:
    instances = [i for i in counted.instances[id] if not place or i.occurrence.place.id == place]
    if not instances:
        return None
    first = instances[0]
    where, layer = first.occurrence.place.id, first.layer
    rows = tuple(
        RowCount(
            row.row.id,
            row.shown,
            row.count,
            recorded_count(module, id, row.row.id, where),
            recorded_count(table, id, row.row.id, where),
        )
        for row in first.counted
    )
    parts = tuple(
        PartCount(
            part,
            _sum(counted, part, where, layer),
            counted.with_parts(part, where, layer),
            _side(counted, part, where, layer, module),
            _side(counted, part, where, layer, table),
        )
        for part in counted.model.children[id]
        if counted.instance(part, where, layer) is not None
    )
    sizes = counted.per_instance(id, place or None)
    note = ""
    if len(sizes) > 1:
        note = f"Instances differ: from {min(sizes):,} to {max(sizes):,} parameters. The rows show the first one."
    buffers = ", ".join(f"{row.row.tensor} {row.count:,}" for row in first.rows if row not in first.counted)
    if buffers:
        note = f"{note} Buffers, not counted: {buffers}.".strip()
    return Account(
        rows,
        sum(i.own for i in instances),
        counted.with_parts(id, where, layer),
        counted.num_instances(id, place or None),
        counted.total(id, place or None),
        parts,
        note,
    )


def _sum(counted: Accounts, id: str, place: str, layer: int | None) -> str:
    """The calculation of a component and its parts, written out: `16 + 1`."""
    instance = counted.instance(id, place, layer)
    if instance is None:
        return ""
    shown = [row.shown for row in instance.counted]
    shown += [text for part in counted.model.children[id] if (text := _sum(counted, part, place, layer))]
    return " + ".join(shown)


def _side(counted: Accounts, id: str, place: str, layer: int | None, side: Side) -> int | None:
    """What a side gives for an instance and its parts; None where any row of them has not been counted."""
    instance = counted.instance(id, place, layer)
    if instance is None:
        return 0
    found = [recorded_count(side, id, row.row.id, place) for row in instance.counted]
    found += [_side(counted, part, place, layer, side) for part in counted.model.children[id]]
    return None if any(value is None for value in found) else sum(value for value in found if value is not None)


def codes(states: Iterable[PinState], text: Callable[[str], str]) -> dict[tuple[str, str], CodeState]:
    """Pinned code as it stands; `text(path)` gives a whole file, "" where it cannot be read."""
    found: dict[tuple[str, str], CodeState] = {}
    for pin in states:
        told = pin.recorded.acknowledged if pin.recorded else None
        words = f"Read again on {told.date} after it was {told.kind}: {told.reason}" if told else ""
        content = text(pin.pin.path)
        found[pin.pin.component, pin.pin.id] = CodeState(
            pin.pin.path,
            content,
            pin.lines if content else None,
            pin.kind,
            pin.pin.symbol,
            pin.message if pin.code else "",
            words,
        )
    return found
