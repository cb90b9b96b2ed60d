# Pin states as findings: short in text, full in JSON.
"""`check` resolves pins against their lock; `findings` says what is wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sitegen.diagnostics import Finding, Location
from sitegen.pins.lock import Lock
from sitegen.pins.pin import KINDS, Pin, PinState, place
from sitegen.pins.resolution import resolve
from sitegen.pins.source import SourceReader

#: A text in a three-line finding is cut to this many characters.
SHOWN = 72


@dataclass(frozen=True)
class PinFinding(Finding):
    """A finding about a pin; its JSON also carries both texts in full and the ranked candidates."""

    state: PinState | None = None

    def to_json(self) -> dict[str, object]:
        return {**super().to_json(), **({"pin": state_json(self.state)} if self.state else {})}


def check(pins: Iterable[Pin], lock: Lock, reader: SourceReader) -> list[PinState]:
    """The state of each pin, in the order given."""
    return [resolve(pin, lock.of(pin), reader) for pin in pins]


def findings(states: Iterable[PinState]) -> list[Finding]:
    """One finding for each pin that is not as it was recorded."""
    return [finding(state) for state in states if state.code]


def finding(state: PinState) -> Finding:
    """The finding of a state whose `code` is not empty."""
    pin, record = state.pin, state.recorded
    old = f"{place(record.path, record.lines)} {_cut(record.text)}" if record else ""
    if not record and pin.fragment.strip():
        old = f"{pin.path} {_cut(pin.fragment.strip().split(chr(10)))}"
    new = f"{place(pin.path, state.lines)} {_cut(state.text)}" if state.lines else ""
    if not new and state.candidates:
        new = "candidates: " + "; ".join(str(candidate) for candidate in state.candidates[:3])
    return PinFinding(
        code=state.code,
        message=state.message,
        where=pin.where if pin.where.file else Location(pin.path),
        expected=old,
        actual=new or "nothing",
        hint=state.advice,
        component=pin.component,
        statement=f"pin {pin.id}",
        state=state,
    )


def _cut(rows: Sequence[str]) -> str:
    text = " ⏎ ".join(row.strip() for row in rows if row.strip())
    return f"‘{text}’" if len(text) <= SHOWN else f"‘{text[: SHOWN - 1]}…’"


def state_json(state: PinState) -> dict[str, object]:
    """A state as JSON reports carry it."""
    record = state.recorded
    return {
        "id": state.pin.id,
        "kind": state.kind,
        "path": state.pin.path,
        "symbol": state.pin.symbol,
        "fragment": state.pin.fragment,
        "recorded": None
        if record is None
        else {
            "path": record.path,
            "symbol": record.symbol,
            "lines": list(record.lines),
            "text": list(record.text),
            "revision": record.revision,
        },
        "lines": list(state.lines) if state.lines else None,
        "text": list(state.text),
        "repairable": state.repairable,
        "candidates": [
            {
                "path": c.path,
                "symbol": c.symbol,
                "lines": list(c.lines),
                "similarity": round(c.similarity, 4),
                "text": list(c.text),
            }
            for c in state.candidates
        ],
    }


def summary(states: Iterable[PinState]) -> str:
    """`14 pins: 12 unchanged, 2 moved`."""
    counts = Counter(state.kind for state in states)
    parts = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind])
    return f"{counts.total()} pins" + (f": {parts}" if parts else "")
