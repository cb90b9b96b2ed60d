# A formula is right when it gives the values that the implementation gives, and proven when every
# changed form of it does not.
"""Evaluate a component's steps against captured values, and try to pass off their mutants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sitegen import formula
from sitegen.diagnostics import Finding, SpecInvalid
from sitegen.formula.mutation import Mutant, mutants
from sitegen.loader import Located
from sitegen.probe.regimes import Sample
from sitegen.probe.tolerance import Difference, by_type, difference, dtype_name


@dataclass(frozen=True)
class Case:
    """One set of values for the formulas: where they come from, and the symbols that hold there."""

    label: str
    values: Mapping[str, Any]
    symbols: Mapping[str, int | float]


def sample_case(sample: Sample, symbols: Mapping[str, int | float], configuration: str) -> Case:
    return Case(f"{configuration}, regime {sample.regime}", sample.values, symbols)


def outputs_of(steps: Sequence[formula.Step]) -> set[str]:
    """Names that the steps assign."""
    found: set[str] = set()
    for step in steps:
        found |= formula.names(step).outputs.keys()
    return found


def run_steps(steps: Sequence[formula.Step], case: Case) -> dict[str, Any]:
    """All names that the steps assign, in order, in float64; raises `SpecInvalid`."""
    import torch

    assigned = outputs_of(steps)
    env = {n: v for n, v in case.values.items() if n not in assigned and not isinstance(v, bool)}
    shapes = {n: tuple(v.shape) for n, v in case.values.items() if n in assigned and isinstance(v, torch.Tensor)}
    results: dict[str, Any] = {}
    for step in steps:
        own = formula.names(step).outputs
        given = {n: v for n, v in {**env, **results}.items() if n not in own or n in formula.names(step).inputs}
        results.update(formula.evaluate(step, given, case.symbols, shapes=shapes))
    return results


def compare(steps: Sequence[formula.Step], case: Case) -> dict[str, Difference]:
    """Bound result name -> how the formulas' value differs from the captured one."""
    results = run_steps(steps, case)
    found = {}
    for name, value in results.items():
        captured = case.values.get(name)
        if captured is not None:
            found[name] = difference(value, captured, by_type(dtype_name(captured), captured.double()))
    return found


def mismatches(located: Located, steps: Sequence[formula.Step], cases: Sequence[Case]) -> Iterator[Finding]:
    """Findings for the first case in which the formulas do not hold, per result."""
    reported: set[str] = set()
    for case in cases:
        try:
            differences = compare(steps, case)
        except SpecInvalid as error:
            yield from (f.within(located.component.id) for f in error.findings)
            return
        for name, found in differences.items():
            if found.within or name in reported:
                continue
            reported.add(name)
            number = last_assigning(steps, name)
            yield Finding(
                "formula-mismatch",
                f"the formula for {name} does not give the values of the run ({case.label})",
                located.at("steps", number, "expr"),
                expected=f"{found.expected:.9g} from the implementation{at(found)}",
                actual=f"{found.actual:.9g} from the formula; {found.shown()}",
                hint="formula indices count from 1; check constants, axes and the place of each epsilon",
                component=located.component.id,
                statement=f"step:{located.component.steps[number].id}",
            )


def at(found: Difference) -> str:
    return f" at index {list(found.at)}" if found.at else ""


def last_assigning(steps: Sequence[formula.Step], name: str) -> int:
    numbers = [n for n, step in enumerate(steps) if name in formula.names(step).outputs]
    return numbers[-1] if numbers else 0


def indistinct(
    located: Located, steps: Sequence[formula.Step], cases: Sequence[Case], constants: Sequence[str]
) -> Iterator[tuple[int, Mutant | None, Finding | None]]:
    """Try all mutants of all steps; yields (step number, mutant, finding), the finding only for a survivor."""
    for number, step in enumerate(steps):
        excused = located.component.steps[number].indistinct
        for mutant in mutants(step, constants=constants):
            changed = [*steps[:number], mutant.step, *steps[number + 1 :]]
            if any(told_apart(changed, case) for case in cases):
                yield number, mutant, None
            elif mutant.id in excused or mutant.kind in excused:
                yield number, mutant, None
            else:
                yield (
                    number,
                    mutant,
                    Finding(
                        "formula-not-distinguished",
                        f"a changed formula gives the same values in every regime: {mutant.description}",
                        located.at("steps", number, "expr"),
                        expected="a difference in at least one regime",
                        actual=f"none in {len(cases)} samples",
                        hint=f"drive an input that tells it apart (values.vary), or give the reason under "
                        f"indistinct: {{{mutant.id}: …}}",
                        component=located.component.id,
                        statement=f"step:{located.component.steps[number].id}",
                    ),
                )


def told_apart(steps: Sequence[formula.Step], case: Case) -> bool:
    """Whether the changed steps give other values than the run (an evaluation that fails does too)."""
    try:
        return any(not found.within for found in compare(steps, case).values())
    except SpecInvalid:
        return True
