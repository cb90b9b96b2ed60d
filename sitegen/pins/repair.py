# `sitegen repin`: repairs what only moved or was laid out anew; records what a person acknowledged.
#
# Nothing else changes a record. An acknowledgement never moves a pin to code that its fragment does
# not quote: then the author edits the fragment first.
"""Repairing pins, and acknowledging changed ones."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from sitegen.diagnostics import Finding, Location, SitegenError, nearest
from sitegen.pins.lock import Lock, exclusive, read_lock, replace_file, sweep, write_lock
from sitegen.pins.pin import Acknowledgement, Lines, Pin, PinState, Record, place
from sitegen.pins.report import check, finding, findings
from sitegen.pins.source import SourceReader

MAX_REASON = 2000


@dataclass(frozen=True)
class LinesEdit:
    """The `lines` value of a pin at `where` in a spec, to be rewritten from `old` to `new`."""

    where: Location
    old: Lines
    new: Lines


@dataclass(frozen=True)
class Repin:
    """What `repin` found and did (or, without `write` and `ack`, would do).

    Attributes:
        lock: the records after it.
        repaired, recorded, acknowledged: pins whose record is (or would be) written.
        left: pins that still need a person.
        dropped: records of pins that no spec has any more.
        edits: line ranges to rewrite in specs.
    """

    lock: Lock
    repaired: tuple[PinState, ...] = ()
    recorded: tuple[PinState, ...] = ()
    acknowledged: tuple[PinState, ...] = ()
    left: tuple[PinState, ...] = ()
    dropped: tuple[tuple[str, str], ...] = ()
    edits: tuple[LinesEdit, ...] = ()
    written: bool = False

    def findings(self) -> list[Finding]:
        """What is still wrong: the pins left over and, if nothing was written, the repairable ones."""
        pending = () if self.written else (*self.repaired, *self.recorded)
        return [finding(state) for state in (*pending, *self.left)]

    def lines(self) -> list[str]:
        """One line for each pin that was or would be touched, then those that need a person."""
        done = "" if self.written else "would be "
        rows = [f"{done}repaired: {state.message}" for state in self.repaired]
        rows += [f"{done}recorded: {_name(s.pin)} {place(s.pin.path, s.lines)}" for s in self.recorded]
        rows += [f"acknowledged: {_name(s.pin)} ({s.kind}) {place(s.pin.path, s.lines)}" for s in self.acknowledged]
        rows += [f"{done}dropped: {component}/{name}, which no spec has" for component, name in self.dropped]
        rows += [f"needs you: {_name(state.pin)}: {state.message}" for state in self.left]
        return rows


def _name(pin: Pin) -> str:
    return f"{pin.component}/{pin.id}"


def checked_reason(reason: str) -> str:
    """The reason of an acknowledgement, trimmed.

    Raises:
        SitegenError: when it is empty, too long, or holds control or direction-override characters.
    """
    reason = reason.strip()
    if not reason:
        raise SitegenError("an acknowledgement needs a reason", hint="add --reason TEXT; the page shows it")
    if len(reason) > MAX_REASON:
        raise SitegenError(f"the reason has {len(reason)} characters, more than {MAX_REASON}", hint="shorten it")
    for character in reason:
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            raise SitegenError(f"the reason holds the character U+{ord(character):04X}", hint="write it in one line")
    return reason


def repin(
    pins: Sequence[Pin],
    lock: Lock,
    reader: SourceReader,
    *,
    write: bool = False,
    ack: str = "",
    reason: str = "",
    today: str = "",
    prune: bool = True,
) -> Repin:
    """Works out the new lock; touches no file.

    Args:
        pins: all pins of the model (records of others count as dropped, unless `prune` is off).
        write: repair moved, reformatted and comment-only pins, and record new ones.
        ack: id of a component whose other pins a person has read again; `reason` says what they found.
        today: ISO date of the acknowledgement; by default today's, in UTC.

    Raises:
        SitegenError: for a component without pins, or an unusable reason.
    """
    if ack:
        reason = checked_reason(reason)
        components = {pin.component for pin in pins}
        if ack not in components:
            raise SitegenError(f"no component {ack!r} has pins", hint=nearest(ack, components))
    elif reason:
        raise SitegenError("--reason belongs to --ack COMPONENT")
    today = today or datetime.now(UTC).date().isoformat()
    states = check(pins, lock, reader)
    records = dict(lock.pins)
    repaired, recorded, acknowledged, left, edits = [], [], [], [], []
    for state in states:
        key = (state.pin.component, state.pin.id)
        if state.kind == "unchanged":
            if state.recorded is None and state.fresh is not None and write:
                records[key] = state.fresh
                recorded.append(state)
        elif state.repairable:
            assert state.fresh is not None
            edit = _edit(state)
            if edit is None and _needs_edit(state):
                left.append(replace(state, advice=f"write lines: [{state.fresh.lines[0]}, {state.fresh.lines[1]}]"))
                continue
            edits += [edit] if edit else []
            records[key] = state.fresh
            repaired.append(state)
        elif state.kind == "new" and state.fresh is not None:
            records[key] = state.fresh
            recorded.append(state)
        elif ack == state.pin.component and state.fresh is not None and state.recorded is not None:
            records[key] = _acknowledged(state, today, reason)
            acknowledged.append(state)
        else:
            left.append(state)
    known = {(pin.component, pin.id) for pin in pins}
    dropped = tuple(sorted(key for key in records if key not in known)) if prune else ()
    if not write:  # only what was acknowledged enters the lock
        touched = {(s.pin.component, s.pin.id) for s in acknowledged}
        records = {**lock.pins, **{key: records[key] for key in touched}}
    else:
        records = {key: record for key, record in records.items() if key not in dropped}
    return Repin(
        Lock(records, lock.upstream),
        tuple(repaired),
        tuple(recorded),
        tuple(acknowledged),
        tuple(left),
        dropped,
        tuple(edits) if write else (),
        write,
    )


def _acknowledged(state: PinState, today: str, reason: str) -> Record:
    assert state.fresh is not None
    return replace(state.fresh, acknowledged=Acknowledgement(today, reason, state.kind))


def _needs_edit(state: PinState) -> bool:
    """Whether the spec itself names the lines that moved."""
    pin = state.pin
    by_lines = pin.lines is not None and not pin.symbol and not pin.fragment.strip()
    return by_lines and state.lines is not None and pin.lines != state.lines


def _edit(state: PinState) -> LinesEdit | None:
    pin = state.pin
    if not _needs_edit(state) or not pin.lines_where.file or state.lines is None or pin.lines is None:
        return None
    return LinesEdit(pin.lines_where, pin.lines, state.lines)


_RANGE = re.compile(r"\[\s*([0-9]+)\s*,\s*([0-9]+)\s*\]")


def edit_lines(text: str, edit: LinesEdit) -> str:
    """The spec's text with one `[first, last]` rewritten, everything else as it was.

    Raises:
        SitegenError: when the range does not stand where the edit says.
    """
    rows = text.split("\n")
    where = edit.where
    row = rows[where.line - 1] if 1 <= where.line <= len(rows) else ""
    match = _RANGE.match(row, max(0, where.column - 1))
    if match is None or (int(match[1]), int(match[2])) != edit.old:
        raise SitegenError(
            f"the lines {list(edit.old)} are not written as [first, last] there",
            where=where,
            hint=f"write {list(edit.new)} by hand",
        )
    rows[where.line - 1] = row[: match.start()] + f"[{edit.new[0]}, {edit.new[1]}]" + row[match.end() :]
    return "\n".join(rows)


def repin_file(
    lock_path: Path,
    pins: Sequence[Pin],
    reader: SourceReader,
    *,
    root: Path,
    write: bool = False,
    ack: str = "",
    reason: str = "",
    today: str = "",
) -> Repin:
    """`repin` on files: reads the lock, and replaces it and the edited specs, each in one step.

    Two runs at once wait for one another. A run that is killed leaves each file old or new.

    Args:
        root: the folder to which `Pin.lines_where` is relative.
    """
    if not (write or ack):
        return repin(pins, read_lock(lock_path), reader)
    with exclusive(lock_path.parent):
        sweep(lock_path.parent, lock_path.name)
        result = repin(pins, read_lock(lock_path), reader, write=write, ack=ack, reason=reason, today=today)
        by_file: dict[str, list[LinesEdit]] = {}
        for edit in result.edits:
            by_file.setdefault(edit.where.file, []).append(edit)
        contents: dict[Path, bytes] = {}
        for name, edits in by_file.items():
            path = root / name
            text = path.read_bytes().decode("utf-8")
            for edit in sorted(edits, key=lambda e: e.where, reverse=True):
                text = edit_lines(text, edit)
            contents[path] = text.encode("utf-8")
        for path, content in contents.items():
            replace_file(Path(os.path.realpath(path)), content)
        write_lock(lock_path, result.lock)
    return result


def acknowledgements(lock: Lock, component: str) -> dict[str, Acknowledgement]:
    """What a page shows: pin id -> the last acknowledgement of that pin."""
    return {
        name: record.acknowledged
        for (owner, name), record in sorted(lock.pins.items())
        if owner == component and record.acknowledged is not None
    }


def check_all(pins: Iterable[Pin], lock: Lock, reader: SourceReader) -> tuple[list[PinState], list[Finding]]:
    """States and findings of a model's pins, with those of stale records."""
    pins = list(pins)
    states = check(pins, lock, reader)
    known = {(pin.component, pin.id) for pin in pins}
    stale = [
        Finding(
            "pin-gone",
            f"a record is kept for {component}/{name}, which no spec has",
            severity="notice",
            hint="`sitegen repin --write` drops it",
        )
        for component, name in sorted(lock.pins)
        if (component, name) not in known
    ]
    return states, findings(states) + stale
