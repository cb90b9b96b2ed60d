# One wrong form of a project: which text changes, where, and whose statement it should break.
"""Mutants: their kinds, their ids that outlive edits elsewhere, and their diffs."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

#: Every kind, with what it changes. Kinds of formulas are those of `sitegen.formula.KINDS`, as `step-KIND`.
SPEC_KINDS: dict[str, str] = {
    "number": "a number that a spec states is another",
    "number-type": "a number type is another",
    "shape": "an axis is one longer, or missing",
    "axis-order": "two axes change places",
    "count": "a count expression is another",
    "slice": "a bound of a tensor slice moves by one",
    "relation": "a constant in a property is off by one per cent, to the side on which it is false",
    "pin": "a pin quotes another fragment, or names another symbol",
    "policy": "a term of a policy, or a figure in its words, is another",
    "claim": "a published figure, a number that it is derived from, or what carries one is another",
    "reference": "an id of an evidence entry, source, statement or component is misspelt",
}
CONFIG_KINDS: dict[str, str] = {"config": "a value of the configuration file is another"}
CODE_KINDS: dict[str, str] = {
    "code-constant": "a constant of the code is another",
    "code-axis": "an operation runs over another axis",
    "code-epsilon": "an epsilon is dropped, or is another one",
    "code-order": "operands, arguments, calls or statements change places",
    "code-bound": "a bound or an index is off by one",
    "code-term": "a term, factor, call or statement is dropped",
    "code-comparison": "a comparison or condition is another",
}

Side = Literal["spec", "config", "code"]


@dataclass(frozen=True)
class Edit:
    """Characters `start` to `end` of a file give way to `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Mutant:
    """One changed text of the project.

    Attributes:
        id: `file:place:kind:digest`; the digest is of the changed lines, so that edits elsewhere keep it.
        kind: one of the kinds above, or `step-` and a kind of `sitegen.formula`.
        side: what is changed, and so what has to be run again.
        components: those whose statements it concerns, in browsing order; empty where it is the whole model's.
        file: relative to the project; `line` counts from 1.
        what: one line that says what was changed.
        excuse: the spec's own reason why no check can tell it apart (`indistinct` of a step).
    """

    id: str
    kind: str
    side: Side
    components: tuple[str, ...]
    file: str
    line: int
    what: str
    edits: tuple[Edit, ...]
    symbol: str = ""
    excuse: str = ""

    @property
    def component(self) -> str:
        return self.components[0] if self.components else ""

    def applied(self, text: str) -> str:
        """The file's text with the change."""
        for edit in sorted(self.edits, key=lambda e: e.start, reverse=True):
            text = text[: edit.start] + edit.text + text[edit.end :]
        return text

    def diff(self, text: str) -> str:
        """A unified diff of the file."""
        before, after = text.splitlines(), self.applied(text).splitlines()
        lines = difflib.unified_diff(before, after, f"a/{self.file}", f"b/{self.file}", n=1, lineterm="")
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Draft:
    """A change that has no id yet: kind, words, edits, and where in the file's own terms."""

    kind: str
    place: str
    what: str
    edits: tuple[Edit, ...]
    components: tuple[str, ...] = ()
    symbol: str = ""
    excuse: str = ""


def named(drafts: Iterable[Draft], texts: Mapping[str, str], file: str, side: Side) -> list[Mutant]:
    """Drafts of one file as mutants: without those that change nothing or what another one changes, with ids."""
    text = texts[file]
    seen: set[str] = set()
    twins: dict[str, int] = {}
    found = []
    for draft in drafts:
        bare = Mutant("", draft.kind, side, draft.components, file, 1, draft.what, draft.edits)
        changed = bare.applied(text)
        if changed == text or changed in seen:
            continue
        seen.add(changed)
        first = min(edit.start for edit in draft.edits)
        changes = [line for line in bare.diff(text).splitlines()[2:] if line[:1] in "+-"]
        digest = hashlib.sha256("\n".join(line[0] + line[1:].strip() for line in changes).encode()).hexdigest()[:8]
        id = f"{file}:{draft.place}:{draft.kind}:{digest}"
        twins[id] = twins.get(id, 0) + 1
        if twins[id] > 1:
            id += f".{twins[id]}"
        line = text.count("\n", 0, first) + 1
        found.append(
            Mutant(id, draft.kind, side, draft.components, file, line, draft.what, draft.edits, draft.symbol,
                   draft.excuse)
        )  # fmt: skip
    return found
