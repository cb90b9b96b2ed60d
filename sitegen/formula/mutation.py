# Mutated forms of a formula: the proof that a check can fail.  A mutant that is the same formula by
# construction (normal.py) is never made; any other that no input tells apart from the original means
# that the inputs are too mild, or that the formula says less than it seems to.
"""Mutants of a formula, made from its own syntax tree."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from sitegen.formula.names import names, target_ranges
from sitegen.formula.normal import normal_form
from sitegen.formula.rewriting import Rewriter, moved_by_one
from sitegen.formula.source import to_source
from sitegen.formula.syntax import (
    Assign,
    Expr,
    Item,
    Name,
    Num,
    Repeat,
    Statement,
    Step,
    assignments,
    walk,
)

#: Every kind of mutant, with what it changes.
KINDS: dict[str, str] = {
    "term": "a term of a sum, or an argument of max or min, is dropped",
    "epsilon": "a term that keeps a sum away from zero is dropped",
    "factor": "a factor or divisor is dropped",
    "sign": "a minus sign is dropped",
    "constant": "a constant is one per cent larger",
    "power": "a power is dropped, or one higher",
    "function": "a function is dropped",
    "reduction": "mean becomes sum, max becomes min, min becomes max",
    "axis": "a reduction runs over another index",
    "index-order": "two indices change places",
    "slice": "a slice or bound moves by one",
    "condition": "a condition is changed",
    "branch": "only one branch of a where is left",
    "statement": "a statement that overwrites an earlier one is dropped",
    "order": "two statements that do not commute change places",
    "repeat": "a repeat runs one round more or less",
}


@dataclass(frozen=True)
class Mutant:
    """A changed formula.

    Attributes:
        id: `kind@statement.number`, stable as long as the formula is; statements count from 1 as written.
        kind: one of KINDS.
        description: one line that says what was changed, and where.
        step: the changed formula; its offsets still refer to the original text.
    """

    id: str
    kind: str
    description: str
    step: Step


@dataclass(frozen=True)
class _Change:
    kind: str
    number: int
    what: str
    statements: tuple[Statement, ...]


def mutants(step: Step, *, constants: Collection[str] = ()) -> list[Mutant]:
    """Every mutant of a step that is another formula than the step and than the mutants before it.

    Evaluating a mutant may raise SpecInvalid (a slice past the end, axes that do not fit): it is then told
    apart as well.

    Args:
        constants: symbols that stand for a number of the model, to be changed by one per cent like literals.
    """
    seen = {normal_form(step)}
    found: list[Mutant] = []
    counts: dict[tuple[str, int], int] = {}
    for change in _changes(step, Rewriter(frozenset(constants))):
        mutated = replace(step, statements=change.statements)
        form = normal_form(mutated)
        if form in seen:
            continue
        seen.add(form)
        place = (change.kind, change.number)
        counts[place] = counts.get(place, 0) + 1
        found.append(Mutant(f"{change.kind}@{change.number}.{counts[place]}", change.kind, change.what, mutated))
    return found


def _changes(step: Step, rewriter: Rewriter) -> Iterator[_Change]:
    uses = names(step)
    given = set(uses.inputs) | set(uses.scalars)
    yield from _block_changes(step.statements, 1, given, lambda statements: statements, rewriter)


def _block_changes(
    statements: tuple[Statement, ...],
    number: int,
    available: set[str],
    rebuild: Callable[[tuple[Statement, ...]], tuple[Statement, ...]],
    rewriter: Rewriter,
) -> Iterator[_Change]:
    """Changes in a sequence of statements, of which the first has this number; `rebuild` puts it back."""
    available = set(available)
    assigned: set[str] = set()
    for place, statement in enumerate(statements):

        def put(new: Sequence[Statement], place: int = place, width: int = 1) -> tuple[Statement, ...]:
            return rebuild((*statements[:place], *new, *statements[place + width :]))

        if isinstance(statement, Repeat):
            yield from _repeat_changes(statement, number, available, put, rewriter)
        else:
            for kind, what, changed in _statement_changes(statement, rewriter):
                yield _Change(kind, number, f"{_short(what)} in `{_short(to_source(changed))}`", put([changed]))
            if statement.name in assigned | (available & _reads(statement)) and len(statements) > 1:
                yield _Change("statement", number, f"`{_short(to_source(statement))}` is dropped", put([]))
        if place + 1 < len(statements):
            after = statements[place + 1]
            if not _commute(statement, after) and not _starves(statement, after, available):
                what = f"`{_short(to_source(statement))}` and `{_short(to_source(after))}` change places"
                yield _Change("order", number, what, put([after, statement], width=2))
        available |= _writes(statement)
        assigned |= _writes(statement)
        number += sum(1 for _ in assignments((statement,)))


def _repeat_changes(
    statement: Repeat, number: int, available: set[str], put: Callable, rewriter: Rewriter
) -> Iterator[_Change]:
    for count in _other_counts(statement.count):
        changed = replace(statement, count=count)
        what = f"repeat({to_source(statement.count)}) becomes repeat({to_source(count)})"
        yield _Change("repeat", number, what, put([changed]))
    yield from _block_changes(
        statement.body, number, available, lambda body: put([replace(statement, body=body)]), rewriter
    )


def _other_counts(count: Expr) -> Iterator[Expr]:
    if isinstance(count, Num) and isinstance(count.value, int):
        yield Num(count.value + 1)
        if count.value > 0:
            yield Num(count.value - 1)
        return
    yield from moved_by_one(count, {})


def _statement_changes(statement: Assign, rewriter: Rewriter) -> Iterator[tuple[str, str, Assign]]:
    scope = {entry.name: entry.low is not None for entry in target_ranges(statement)}
    for rewrite in rewriter.rewrites(statement.value, scope):
        changed = replace(statement, value=rewrite.node)
        yield rewrite.kind, rewrite.what, changed
    left = f"{statement.name}[{', '.join(map(to_source, statement.axes))}]"
    for first, second in itertools.combinations(range(len(statement.axes)), 2):
        axes = list(statement.axes)
        axes[first], axes[second] = axes[second], axes[first]
        yield "index-order", f"the left side {left} changes its order", replace(statement, axes=tuple(axes))
    for place, axis in enumerate(statement.axes):
        if isinstance(axis, Name):
            continue
        for moved in moved_by_one(axis, scope):
            axes = (*statement.axes[:place], moved, *statement.axes[place + 1 :])
            yield "slice", f"the left side {left} moves", replace(statement, axes=axes)


# -- what may be exchanged --------------------------------------------------------------------------------


def _writes(statement: Statement) -> set[str]:
    return {entry.name for entry in assignments((statement,))}


def _reads(statement: Statement) -> set[str]:
    parts = [entry.value for entry in assignments((statement,))]
    return {node.name for part in parts for node in walk(part) if isinstance(node, (Name, Item))}


def _commute(first: Statement, second: Statement) -> bool:
    """Whether the order cannot matter: neither reads what the other writes, nor do both write the same."""
    if _writes(first) & _reads(second) or _writes(second) & _reads(first):
        return False
    both = _writes(first) & _writes(second)
    # statements that fill parts of one tensor are taken to fill different parts
    parts = [entry for entry in assignments((first, second)) if entry.name in both]
    return all(entry.ranges or any(not isinstance(axis, Name) for axis in entry.axes) for entry in parts)


def _starves(first: Statement, second: Statement, available: set[str]) -> bool:
    """Whether the second statement, put first, would read something that does not exist yet."""
    return bool((_reads(second) & _writes(first)) - available)


def _short(text: str) -> str:
    return text if len(text) <= 96 else text[:95] + "…"
