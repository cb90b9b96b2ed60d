# What became of cited statements when the code of their definition changed.
"""Aligns a recorded definition with its present form, statement by statement."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import NamedTuple

from sitegen.pins.definitions import Definition
from sitegen.pins.pin import Lines, Record
from sitegen.pins.source import SourceText
from sitegen.pins.tokens import Token, lex

#: A statement with fewer tokens (`return x`, `else:`) says nothing about where code went.
TELLING_TOKENS = 5
#: Less alike statements are no successors of each other.
SUCCESSOR = 0.5
#: This share of a vanished definition must stand in others to call it split.
SPLIT_SHARE = 0.6
#: A definition that holds more than this of a vanished one is its successor, not a part.
MOST_OF_IT = 0.75


class Statement(NamedTuple):
    """A logical line."""

    words: tuple[str, ...]
    lines: Lines


@dataclass(frozen=True)
class Fate:
    """Where the cited statements went: `lines` is None when all were deleted.

    `split_into` are the definitions that took parts over, `shares` how much of the recorded code each holds.
    """

    lines: Lines | None
    split_into: tuple[Definition, ...] = ()
    shares: dict[Definition, float] = field(default_factory=dict)


def statements(tokens: Sequence[Token]) -> list[Statement]:
    found: list[Statement] = []
    words: list[str] = []
    first = 0
    for index, token in enumerate(tokens):
        if token.kind != "newline":
            if not words:
                first = token.line
            words.append(token.text)
        if words and (token.kind == "newline" or index == len(tokens) - 1):
            end = tokens[index - 1].end if token.kind == "newline" else token.end
            found.append(Statement(tuple(words), (first, end)))
            words = []
    return found


def fate(record: Record, source: SourceText, definition: Definition | None) -> Fate:
    """Follows the cited statements into `definition` (None: it is gone) and into other definitions."""
    old = statements(lex("\n".join(record.symbol_text), PurePosixPath(record.path).suffix).code)
    first, last = (number + 1 for number in record.lines_within)
    cited = [i for i, statement in enumerate(old) if statement.lines[1] >= first and statement.lines[0] <= last]
    new = statements(source.lexed.code_in(definition.lines)) if definition else []
    successors = _successors(old, new)
    lost = [old[i] for i in cited if not _equal(old, new, successors, i)]
    shares = _taken_over(lost, old, new, source, definition, record)
    spans = [new[j].lines for i in cited for j in successors.get(i, ())]
    lines = (min(s[0] for s in spans), max(s[1] for s in spans)) if spans else None
    return Fate(lines, tuple(sorted(shares, key=lambda d: d.lines)), shares)


def _equal(
    old: Sequence[Statement], new: Sequence[Statement], successors: dict[int, tuple[int, ...]], index: int
) -> bool:
    return any(new[j].words == old[index].words for j in successors.get(index, ()))


def _successors(old: Sequence[Statement], new: Sequence[Statement]) -> dict[int, tuple[int, ...]]:
    """Old statement -> the new ones that stand for it; without an entry it was deleted."""
    matcher = difflib.SequenceMatcher(None, [s.words for s in old], [s.words for s in new], autojunk=False)
    found: dict[int, tuple[int, ...]] = {}
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal" or (tag == "replace" and i2 - i1 == j2 - j1):
            found.update({i1 + k: (j1 + k,) for k in range(i2 - i1)})
        elif tag == "replace":
            for i in range(i1, i2):
                best = max(range(j1, j2), key=lambda j: _alike(old[i], new[j]))
                if _alike(old[i], new[best]) >= SUCCESSOR:
                    found[i] = (best,)
    return found


def _alike(left: Statement, right: Statement) -> float:
    return difflib.SequenceMatcher(None, left.words, right.words, autojunk=False).ratio()


def _taken_over(
    lost: Sequence[Statement],
    old: Sequence[Statement],
    new: Sequence[Statement],
    source: SourceText,
    definition: Definition | None,
    record: Record,
) -> dict[Definition, float]:
    """The definitions that now hold statements lost from the recorded one.

    While that one lives, a part counts only if it is called or named there now and was not before; for one
    that vanished, the parts must together hold most of it.
    """
    least = TELLING_TOKENS if definition is None else 2
    telling = [s for s in lost if len(s.words) >= least]
    if not telling:
        return {}
    before = {word for statement in old for word in statement.words}
    now = {word for statement in new for word in statement.words}
    total = sum(len(s.words) for s in telling)
    shares: dict[Definition, float] = {}
    covered: set[tuple[str, ...]] = set()
    for other in source.definitions:
        if definition is not None and (other == definition or other.name not in now or other.name in before):
            continue
        if definition is None and any(o is not other and _inside(o, other) for o in source.definitions):
            continue  # a class or outer function: its members speak for themselves
        held = {s.words for s in statements(source.lexed.code_in(other.lines))}
        mine = {s.words for s in telling} & held
        if mine:
            covered |= mine
            shares[other] = sum(len(words) for words in mine) / total
    if definition is None:
        share = sum(len(words) for words in covered) / total
        if share < SPLIT_SHARE or len(shares) < 2 or max(shares.values()) > MOST_OF_IT:
            return {}
    return shares


def _inside(inner: Definition, outer: Definition) -> bool:
    return inner.symbol.startswith(outer.symbol + ".") and outer.lines[0] <= inner.lines[0]
