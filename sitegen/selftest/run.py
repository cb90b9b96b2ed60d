# From a project to its score: make the mutants, try them, explain the ones that no check can catch.
"""Run the self-test of a model."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sitegen import loader, resolver
from sitegen.diagnostics import SitegenError, SpecInvalid, nearest, ordered
from sitegen.selftest.code import code_mutants
from sitegen.selftest.equivalents import Equivalents, read_equivalents
from sitegen.selftest.gate import Gate, Verdict
from sitegen.selftest.mutant import Mutant
from sitegen.selftest.record import project_digest
from sitegen.selftest.sample import sampled
from sitegen.selftest.score import PINS, Score, Trial
from sitegen.selftest.scratch import copied
from sitegen.selftest.specs import spec_mutants
from sitegen.selftest.workers import in_workers

#: Sees the trials as they come; the number says how many there may be.
Bar = Callable[[Iterable[Trial], int], Iterable[Trial]]


def _quiet(message: str) -> None:
    del message


def selftest(
    root: Path,
    name: str,
    *,
    budget: float | None = None,
    seed: int = 0,
    jobs: int = 1,
    components: Sequence[str] = (),
    bar: Bar | None = None,
    progress: Callable[[str], None] = _quiet,
) -> Score:
    """Try the mutants of a model, or of some of its components, for `budget` seconds, in `jobs` processes.

    Raises `SitegenError` for a component that does not exist and `CannotRun` when a package is missing. A project
    that does not pass its own checks is not mutated: the score then holds its findings and no trials.
    """
    started = time.monotonic()
    score = Score(name, seed)
    try:
        model = resolver.resolve(loader.load(root, name))
        equivalents = read_equivalents(model.sources)
    except SpecInvalid as error:
        score.findings = ordered(error.findings)
        return score
    for id in components:
        if id not in model.components:
            raise SitegenError(f"no component {id!r} in {name}", hint=nearest(id, model.components))
    score.digest = project_digest(model.sources)
    progress("selftest: making mutants")
    everything = [*spec_mutants(model), *code_mutants(model)]
    chosen = [m for m in everything if not components or set(m.components) & set(components)]
    with copied(model.sources) as scratch:
        gate = Gate(scratch, name, progress)
        gate.warm(root / ".sitegen" / "tilelang")
        if gate.findings:
            score.findings = ordered(gate.findings)
            return score
        score.made = len(chosen)
        order = sampled(chosen, seed) if budget is not None else chosen
        until = None if budget is None else time.monotonic() + budget
        if jobs > 1:
            trials = spread(gate, order, equivalents, until, jobs)
        else:
            trials = one_by_one(gate, order, equivalents, until)
        place = {mutant.id: number for number, mutant in enumerate(order)}
        taken = list(bar(trials, len(order)) if bar is not None else trials)
        score.trials = sorted(taken, key=lambda t: place[t.mutant.id])
    told_apart = {t.mutant.id: t.by for t in score.trials if t.outcome == "caught" and not t.only_by_pin}
    score.findings = equivalents.stale({m.id for m in everything}, told_apart)
    score.seconds = time.monotonic() - started
    return score


def one_by_one(gate: Gate, order: Sequence[Mutant], equivalents: Equivalents, until: float | None) -> Iterator[Trial]:
    for mutant in order:
        if until is not None and time.monotonic() > until:
            return
        yield tried(gate, mutant, equivalents)


def spread(
    gate: Gate, order: Sequence[Mutant], equivalents: Equivalents, until: float | None, jobs: int
) -> Iterator[Trial]:
    """The same in several processes; the trials come in any order."""

    @contextlib.contextmanager
    def prepare() -> Iterator[Callable[[Mutant], dict[str, Any] | None]]:
        with copied(gate.sources) as scratch:
            gate.move(scratch)

            def work(mutant: Mutant) -> dict[str, Any] | None:
                if until is not None and time.monotonic() > until:
                    return None
                trial = tried(gate, mutant, equivalents)
                return {"outcome": trial.outcome, "by": trial.by, "note": trial.note, "diff": trial.diff}

            yield work

    for number, answer in in_workers(order, jobs, prepare):
        yield Trial(order[number], **answer)


def tried(gate: Gate, mutant: Mutant, equivalents: Equivalents) -> Trial:
    """The trial of one mutant; a listed reason counts only when nothing that runs tells it apart."""
    verdict, diff = gate.try_(mutant)
    reason = equivalents.reasons.get(mutant.id) or mutant.excuse
    silent = not verdict.by or (mutant.side == "code" and verdict.by in PINS)
    if silent and reason and not verdict.fault:
        return Trial(mutant, "equivalent", "", reason, diff)
    if verdict.by:
        return Trial(mutant, "caught", verdict.by, verdict.note, diff)
    return Trial(mutant, "survived", "", note_of(verdict), diff)


def note_of(verdict: Verdict) -> str:
    """Why a mutant that is not caught is none: nothing was found, or the check itself broke down."""
    return f"sitegen stopped with an internal error: {verdict.note}" if verdict.fault else "no check finds anything"
