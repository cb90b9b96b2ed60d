# What became of each mutant, and the figures made from that.
"""Trials and the score over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from sitegen.diagnostics import Finding
from sitegen.selftest.mutant import Mutant

Outcome = Literal["caught", "survived", "equivalent"]
#: Findings that say only that the text of pinned code is another.
PINS = ("pin-changed", "pin-gone", "pin-ambiguous", "pin-moved")


@dataclass(frozen=True)
class Trial:
    """One mutant's outcome: `by` is the code of the first finding, `note` what it said, or the reason."""

    mutant: Mutant
    outcome: Outcome
    by: str = ""
    note: str = ""
    diff: str = ""

    @property
    def only_by_pin(self) -> bool:
        """A change of the code that nothing that runs noticed: the pin alone asked for a reader."""
        return self.outcome == "caught" and self.mutant.side == "code" and self.by in PINS

    def to_json(self) -> dict[str, Any]:
        m = self.mutant
        return {
            "id": m.id, "kind": m.kind, "component": m.component, "file": m.file, "line": m.line, "what": m.what,
            "outcome": self.outcome, "by": self.by, "note": self.note, "diff": self.diff,
        }  # fmt: skip


@dataclass(frozen=True)
class Counts:
    """How many mutants, by outcome."""

    caught: int = 0
    only_by_pin: int = 0
    survived: int = 0
    equivalent: int = 0

    @classmethod
    def of(cls, trials: Iterable[Trial]) -> Counts:
        caught = pins = survived = equivalent = 0
        for trial in trials:
            caught += trial.outcome == "caught"
            pins += trial.only_by_pin
            survived += trial.outcome == "survived"
            equivalent += trial.outcome == "equivalent"
        return cls(caught, pins, survived, equivalent)

    @property
    def executed(self) -> int:
        """Caught by more than a pin."""
        return self.caught - self.only_by_pin

    @property
    def share(self) -> float:
        """Caught by more than a pin, of all that are not equivalent; 1 when there is none."""
        total = self.caught + self.survived
        return self.executed / total if total else 1.0

    def text(self) -> str:
        parts = [f"{self.executed:,} of {self.caught + self.survived:,} caught ({percent(self.share)})"]
        if self.only_by_pin:
            parts.append(f"{self.only_by_pin:,} caught only by a pin")
        parts.append(f"{self.survived:,} survived")
        parts.append(f"{self.equivalent:,} equivalent")
        return ", ".join(parts)

    def to_json(self) -> dict[str, int]:
        return {
            "caught": self.caught, "caught_only_by_pin": self.only_by_pin, "survived": self.survived,
            "equivalent": self.equivalent,
        }  # fmt: skip


def percent(share: float) -> str:
    """Two digits, never rounded up to the whole."""
    return f"{int(share * 10_000) / 100:.2f} %"


@dataclass
class Score:
    """A model's self-test.

    Attributes:
        model, seed, seconds: what was tried, in which order, and for how long.
        digest: of the specs and the code that were tried.
        made: mutants made of the components asked for; fewer are tried when the budget ends.
        trials: their outcomes.
        findings: errors of the unchanged project (then nothing is tried), and entries of equivalent.yml to remove.
    """

    model: str
    seed: int
    seconds: float = 0.0
    digest: str = ""
    made: int = 0
    trials: list[Trial] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def counts(self) -> Counts:
        return Counts.of(self.trials)

    def by(self, key: Callable[[Trial], str]) -> dict[str, Counts]:
        groups: dict[str, list[Trial]] = {}
        for trial in self.trials:
            groups.setdefault(key(trial), []).append(trial)
        return {name: Counts.of(trials) for name, trials in sorted(groups.items())}

    @property
    def kinds(self) -> dict[str, Counts]:
        return self.by(lambda t: t.mutant.kind)

    @property
    def components(self) -> dict[str, Counts]:
        return self.by(lambda t: t.mutant.component)

    @property
    def exit_code(self) -> int:
        """0 when nothing survived and nothing is wrong, else 1; 3 when no mutant was tried."""
        if self.findings or self.counts.survived:
            return 1
        return 0 if self.trials else 3

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "model": self.model,
            "seed": self.seed,
            "digest": self.digest,
            "seconds": round(self.seconds, 1),
            "made": self.made,
            "tried": len(self.trials),
            **self.counts.to_json(),
            "kinds": {name: c.to_json() for name, c in self.kinds.items()},
            "components": {name: c.to_json() for name, c in self.components.items()},
            "findings": [f.to_json() for f in self.findings],
            "mutants": [t.to_json() for t in self.trials],
        }
