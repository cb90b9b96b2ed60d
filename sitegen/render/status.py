# States as pages show them: a mark for one statement, and the summary of many.
"""Marks, counts and headlines from verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from markupsafe import Markup

from sitegen.render.book import Verdict
from sitegen.render.page import slug
from sitegen.render.view import Mark, Run, State, Status

#: Worst first, but what was checked stands before what was not.
ORDER: tuple[State, ...] = ("failed", "stale", "executed", "verified", "not-run", "cited")


def anchor(statement: str) -> str:
    """The id of the element that shows a statement; pins have theirs in the excerpts."""
    kind, _, name = statement.partition(":")
    match kind:
        case "row" | "step" | "in" | "out" | "dtype":
            return f"{kind}-{slug(name)}"
        case "evidence":
            return f"ev-{slug(name)}"
        case "pin":
            return f"code-{slug(name)}"
        case "figure":
            return f"figure-{slug(name)}"
    return f"check-{slug(statement)}"


def mark(verdict: Verdict | None) -> Mark:
    """The mark of a statement; one that has no verdict was not run, and says so."""
    if verdict is None:
        return Mark("not-run", "no run speaks of this statement")
    note = ", ".join(part for part in (verdict.level, verdict.detail) if part)
    if verdict.state == "failed":
        note = f"expected {verdict.expected}; actual {verdict.actual}" + (f"; {note}" if note else "")
    return Mark(verdict.state, note)


def worst(states: Iterable[State]) -> State:
    """One state for several statements: failed and stale outweigh all; green needs more checked than not run."""
    found = Counter(states)
    if found["not-run"] > found["executed"] + found["verified"] and not (found["failed"] or found["stale"]):
        return "not-run"
    return next((state for state in ORDER if found[state]), "not-run")


def counts(verdicts: Sequence[Verdict]) -> tuple[tuple[State, int], ...]:
    """How many statements are in each state that occurs, best first."""
    found = Counter(verdict.state for verdict in verdicts)
    order: tuple[State, ...] = ("executed", "verified", "cited", "stale", "not-run", "failed")
    return tuple((state, found[state]) for state in order if found[state])


def status(verdicts: Sequence[Verdict], runs: Sequence[Run]) -> Status:
    """The state of a page and of the runs it rests on."""
    found = Counter(verdict.state for verdict in verdicts)
    state = worst(verdict.state for verdict in verdicts)
    return Status(
        state,
        headline(verdicts),
        found["executed"],
        len(verdicts),
        counts(verdicts),
        tuple(page_run(run, verdicts) for run in runs),
        tuple(_problem(verdict) for verdict in verdicts if verdict.state == "failed"),
    )


def headline(verdicts: Sequence[Verdict]) -> str:
    """The state of many statements in a few words."""
    found = Counter(verdict.state for verdict in verdicts)
    if found["failed"]:
        return f"{found['failed']:,} statement{'s' if found['failed'] > 1 else ''} failed"
    levels = dict.fromkeys(v.level for v in verdicts if v.state in ("executed", "verified") and v.level)
    order = [level for level in ("static", "meta", "cpu", "gpu", "checkpoint") if level in levels]
    passed = f"Verified on {_and(order)}" if order else "Verified"
    if found["stale"]:
        return f"{found['stale']:,} of {len(verdicts):,} statements stale: facts are older than what they speak of"
    if found["executed"] or found["verified"]:
        return passed + (f"; {found['not-run']:,} not run" if found["not-run"] else "")
    return "Not run" if found["not-run"] or not found["cited"] else "Cited only"


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def page_run(run: Run, verdicts: Sequence[Verdict]) -> Run:
    """A level's run as far as it concerns these statements."""
    found = Counter(verdict.state for verdict in verdicts if verdict.level == run.level)
    passed = found["executed"] + found["verified"]
    parts = [
        f"{number:,} {word}"
        for number, word in (
            (passed, "passed"),
            (found["failed"], "failed"),
            (found["stale"], "stale"),
            (found["not-run"], "not run"),
        )
        if number
    ]
    if not parts:
        return replace(run, summary="nothing here" if run.state != "not-run" else "not run")
    state = worst(state for state, number in found.items() if number and state != "cited")
    return replace(run, summary=", ".join(parts), state=state)


def _problem(verdict: Verdict) -> Markup:
    return Markup('<a href="#{}">{}</a>: expected {}; actual {}').format(
        anchor(verdict.id), verdict.id, verdict.expected or "–", verdict.actual or "–"
    )
