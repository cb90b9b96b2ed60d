# From a project to its score: make the mutants, try them, explain the ones that no check can catch.
"""Run the self-test of a model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

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

#: Wraps the mutants in order, so that it sees each one taken.
Bar = Callable[[Sequence[Mutant]], Iterable[Mutant]]


def _quiet(message: str) -> None:
    del message


def selftest(
    root: Path,
    name: str,
    *,
    budget: float | None = None,
    seed: int = 0,
    components: Sequence[str] = (),
    bar: Bar | None = None,
    progress: Callable[[str], None] = _quiet,
) -> Score:
    """Try the mutants of a model, or of some of its components, for `budget` seconds.

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
        for mutant in bar(order) if bar is not None else order:
            if until is not None and time.monotonic() > until:
                break
            score.trials.append(tried(gate, mutant, equivalents))
    told_apart = {t.mutant.id: t.by for t in score.trials if t.outcome == "caught" and not t.only_by_pin}
    score.findings = equivalents.stale({m.id for m in everything}, told_apart)
    score.seconds = time.monotonic() - started
    return score


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
