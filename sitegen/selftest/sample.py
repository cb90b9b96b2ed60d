# Which mutants fit into a budget: the same for the same seed, and no component or kind before its turn.
"""The order in which mutants are tried."""

from __future__ import annotations

import random
from collections.abc import Sequence

from sitegen.selftest.mutant import Mutant


def sampled(mutants: Sequence[Mutant], seed: int) -> list[Mutant]:
    """All mutants, so ordered that every beginning is spread evenly over components and kinds.

    One mutant of each component in turn; within a component one of each kind in turn; chance decides the rest.
    """
    chance = random.Random(seed)
    queues: dict[str, dict[str, list[Mutant]]] = {}
    for mutant in mutants:
        queues.setdefault(mutant.component, {}).setdefault(mutant.kind, []).append(mutant)
    lines = []
    for kinds in queues.values():
        for queue in kinds.values():
            chance.shuffle(queue)
        lines.append(_turns(list(kinds.values()), chance))
    return _turns(lines, chance)


def _turns(queues: list[list[Mutant]], chance: random.Random) -> list[Mutant]:
    """One from each queue in turn, the order of the queues drawn anew in every round."""
    left = [list(reversed(queue)) for queue in queues]
    found = []
    while left:
        chance.shuffle(left)
        found += [queue.pop() for queue in left]
        left = [queue for queue in left if queue]
    return found
