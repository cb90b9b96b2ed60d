# The nouns of pins: what an author binds, what was recorded of it, and how the two compare today.
"""Pin, Record, Candidate and PinState: the values that the pin stages pass on."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from sitegen.diagnostics import NOWHERE, Location

#: Every state a pin can be in, with what it means.
KINDS: dict[str, str] = {
    "unchanged": "same text on the same lines",
    "moved": "same text on other lines",
    "reformatted": "same tokens, another layout",
    "comment-only": "same code, other comments or docstrings",
    "renamed": "same body under another name",
    "changed": "other code",
    "ambiguous": "split, or found in several places",
    "gone": "found nowhere",
    "unreadable": "the file cannot be read or parsed",
    "new": "not recorded yet",
}
#: `repin --write` repairs these and no others.
REPAIRABLE = frozenset({"moved", "reformatted", "comment-only"})

Lines = tuple[int, int]


@dataclass(frozen=True)
class Pin:
    """A cited place of the project's own code, as its author binds it.

    Give `symbol`, `fragment`, or both, or (for text without symbols) `lines`.

    Attributes:
        component: id of the component that cites.
        id: unique within the component.
        path: file, relative to the repository, with `/`.
        symbol: qualified name (`Block.hc_mixes`, `kernel.main`); `name#2` is the second of that name.
        fragment: a quoted piece of the code, one or more lines; it marks the cited lines.
        lines: first and last line, both cited, counted from 1 by "\\n".
        digest: SHA-256 (hex) of the cited lines, each ended by "\\n"; replaces a record where there is none.
        revision: the revision that the author read, shown in messages.
        where: the pin's place in the spec; `lines_where` that of its `lines` value.
    """

    component: str
    id: str
    path: str
    symbol: str = ""
    fragment: str = ""
    lines: Lines | None = None
    digest: str = ""
    revision: str = ""
    where: Location = NOWHERE
    lines_where: Location = NOWHERE

    @property
    def binding(self) -> str:
        """Digest of what the author bound; another one means that the pin itself was edited.

        Lines are left out: they follow from the text, and a repair rewrites them.
        """
        parts = (self.path, self.symbol, self.fragment.strip(), self.digest.lower())
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@dataclass(frozen=True)
class Acknowledgement:
    """That a person read changed code again: `reason` in their words, `date` (ISO), `kind` of the change."""

    date: str
    reason: str
    kind: str


@dataclass(frozen=True)
class Record:
    """What the lock file keeps of a pin: the place and its text when it was last read.

    Attributes:
        binding: `Pin.binding` at that time.
        symbol, ordinal, same_name: the enclosing definition, its number among the same-named ones, how many there were.
        lines, symbol_lines: cited lines, and those of the definition (equal to `lines` without a symbol).
        text, symbol_text: their lines, without line ends and trailing blanks.
        code: token digest of the cited lines; `comments` that of their comments.
        symbol_code: token digest of the definition; `body_code` the same with its name left out.
        occurrences: how often the cited text stood in the file (pins without symbol).
    """

    path: str
    binding: str
    symbol: str
    ordinal: int
    same_name: int
    lines: Lines
    symbol_lines: Lines
    text: tuple[str, ...]
    symbol_text: tuple[str, ...]
    code: str
    comments: str
    symbol_code: str
    body_code: str
    occurrences: int = 1
    revision: str = ""
    acknowledged: Acknowledgement | None = None

    @property
    def lines_within(self) -> Lines:
        """The cited lines, counted from the first line of the definition."""
        return self.lines[0] - self.symbol_lines[0], self.lines[1] - self.symbol_lines[0]


@dataclass(frozen=True, order=True)
class Candidate:
    """A place that may be the pinned code; `similarity` is 0 to 1 over tokens."""

    similarity: float
    path: str
    lines: Lines
    symbol: str = ""
    text: tuple[str, ...] = ()

    def __str__(self) -> str:
        name = f" {self.symbol}" if self.symbol else ""
        return f"{place(self.path, self.lines)}{name} ({self.similarity:.0%} alike)"


@dataclass(frozen=True)
class PinState:
    """How a pin stands today.

    Attributes:
        kind: one of KINDS.
        code: finding code, empty when there is nothing to report.
        lines: where the pinned code stands now; None when that cannot be said.
        text: its lines there (for `changed`: the lines that took its place).
        message: one sentence: what happened, with old and new place.
        advice: what to do next.
        candidates: other places, most similar first.
        fresh: what a repair or an acknowledgement would record; None when the pin must be edited first.
    """

    pin: Pin
    kind: str
    code: str = ""
    lines: Lines | None = None
    text: tuple[str, ...] = ()
    message: str = ""
    advice: str = ""
    candidates: tuple[Candidate, ...] = ()
    recorded: Record | None = None
    fresh: Record | None = None

    @property
    def repairable(self) -> bool:
        """Whether `repin --write` may record the new place."""
        return self.kind in REPAIRABLE and self.fresh is not None


def place(path: str, lines: Lines | None) -> str:
    """`path:3-7`, or `path:3` for one line."""
    if lines is None:
        return path
    return f"{path}:{lines[0]}" if lines[0] == lines[1] else f"{path}:{lines[0]}-{lines[1]}"


def text_digest(lines: Sequence[str]) -> str:
    """SHA-256 (hex) of lines, each ended by "\\n": what `sed -n 3,7p FILE | sha256sum` prints."""
    return hashlib.sha256("".join(line + "\n" for line in lines).encode("utf-8", "surrogatepass")).hexdigest()


def trimmed(lines: Sequence[str]) -> tuple[str, ...]:
    """Lines without trailing blanks, which no reader sees."""
    return tuple(line.rstrip(" \t\f\r") for line in lines)
