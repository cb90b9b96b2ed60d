# Pins into code that is not ours: repository, full revision, path, lines. Cited; checked where a copy is at hand.
#
# The record keeps a digest of the range and never its text: upstream's code stays upstream.
"""Upstream pins against a local checkout (a git repository) or an unpacked archive."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from sitegen.diagnostics import NOWHERE, Finding, Location
from sitegen.pins.lock import Lock, UpstreamRecord
from sitegen.pins.pin import Lines, place, text_digest
from sitegen.pins.source import FolderReader, RangeInvalid, SourceReader, SourceRefused, SourceText, check_relative
from sitegen.pins.source import line_range as checked_range

_REVISION = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
GIT_SECONDS = 20


@dataclass(frozen=True)
class UpstreamPin:
    """A cited range of someone else's file; `digest` (optional) as `sed -n 3,7p FILE | sha256sum` prints it."""

    component: str
    id: str
    repository: str
    revision: str
    path: str
    lines: Lines
    digest: str = ""
    where: Location = NOWHERE


@dataclass(frozen=True)
class UpstreamState:
    """`kind`: cited (no copy at hand; `message` says why), verified, new, moved, changed, ambiguous, gone, invalid."""

    pin: UpstreamPin
    kind: str
    message: str = ""
    finding: Finding | None = None
    fresh: UpstreamRecord | None = None


class GitReader:
    """The files of a git repository at one revision, whatever is checked out."""

    def __init__(self, folder: Path, revision: str) -> None:
        self.folder, self.revision = folder, revision
        self._texts: dict[str, SourceText] = {}

    def read(self, path: str) -> SourceText:
        if path not in self._texts:
            check_relative(path)
            kind = self._git("cat-file", "-t", f"{self.revision}:{path}")
            if kind is None or kind.strip() != b"blob":
                raise SourceRefused("pin-gone", f"{path} does not exist at {self.revision}", missing=True)
            data = self._git("cat-file", "blob", f"{self.revision}:{path}")
            if data is None:
                raise SourceRefused("pin-gone", f"{path} cannot be read at {self.revision}")
            self._texts[path] = SourceText.from_bytes(path, data)
        return self._texts[path]

    def neighbours(self, path: str) -> Iterator[str]:
        listed = self._git("ls-tree", "-r", "--name-only", "-z", self.revision) or b""
        suffix = PurePosixPath(path).suffix
        for name in sorted(listed.decode("utf-8", "replace").split("\0")):
            if name and name != path and PurePosixPath(name).suffix == suffix:
                yield name

    def has_revision(self) -> bool:
        return self._git("cat-file", "-e", f"{self.revision}^{{commit}}") is not None

    def _git(self, *arguments: str) -> bytes | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(self.folder), *arguments], capture_output=True, timeout=GIT_SECONDS, check=False
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout if done.returncode == 0 else None


def open_copy(folder: Path, revision: str) -> tuple[SourceReader | None, str]:
    """A reader of a local copy at a revision, or None and the reason.

    A folder with `.git` is read at that revision; any other folder is taken as an unpacked archive of it.
    """
    if not folder.is_dir():
        return None, f"no local copy at {folder}"
    if (folder / ".git").exists():
        reader = GitReader(folder, revision)
        return (reader, "") if reader.has_revision() else (None, f"{folder} does not hold revision {revision}")
    return FolderReader(folder), ""


def check_upstream(pins: Sequence[UpstreamPin], lock: Lock, copies: Mapping[str, Path]) -> list[UpstreamState]:
    """The state of each upstream pin.

    Args:
        copies: repository -> folder, as `sources.yml` names them; the others are cited.
    """
    readers: dict[tuple[str, str], tuple[SourceReader | None, str]] = {}
    states = []
    for pin in pins:
        problem = _problem(pin)
        if problem is not None:
            states.append(problem)
            continue
        key = (pin.repository, pin.revision)
        if key not in readers:
            folder = copies.get(pin.repository)
            readers[key] = open_copy(folder, pin.revision) if folder else (None, "no local copy is named")
        reader, reason = readers[key]
        if reader is None:
            states.append(UpstreamState(pin, "cited", reason))
        else:
            states.append(resolve_upstream(pin, lock.upstream.get((pin.component, pin.id)), reader))
    return states


def _problem(pin: UpstreamPin) -> UpstreamState | None:
    if not _REVISION.fullmatch(pin.revision):
        return _bad(
            pin,
            "invalid",
            "schema-invalid",
            f"revision {pin.revision!r} is not a full one (40 hex digits)",
            "give the full revision",
        )
    try:
        checked_range(pin.lines)
    except RangeInvalid as error:
        return _bad(pin, "invalid", "schema-invalid", str(error), "lines are [first, last], counted from 1")
    try:
        check_relative(pin.path)
    except SourceRefused as refusal:
        return _bad(pin, "invalid", refusal.code, refusal.message, "name the path inside the repository")
    return None


def resolve_upstream(pin: UpstreamPin, record: UpstreamRecord | None, reader: SourceReader) -> UpstreamState:
    """One upstream pin against a copy of its repository at its revision."""
    try:
        source = reader.read(pin.path)
    except SourceRefused as refusal:
        return _bad(pin, "gone", refusal.code, refusal.message, "is the local copy complete, and at that revision?")
    same_file = record is not None and (record.repository, record.path) == (pin.repository, pin.path)
    wanted = pin.digest.lower() or (record.digest if record and same_file else "")
    size = record.lines if record and same_file and not pin.digest else pin.lines
    past = None
    try:
        rows = source.excerpt(pin.lines)
        fresh = UpstreamRecord(pin.repository, pin.revision, pin.path, pin.lines, text_digest(rows))
    except RangeInvalid as error:
        past, fresh = str(error), None
    if fresh is not None and (not wanted or wanted == fresh.digest):
        return UpstreamState(pin, "verified" if wanted else "new", fresh=fresh)
    if not wanted:
        return _bad(pin, "gone", "pin-gone", f"{pin.path}: {past}", "cite lines that exist at that revision")
    length = size[1] - size[0] + 1
    rows = source.lines
    found = [
        (first, first + length - 1)
        for first in range(1, len(rows) - length + 2)
        if text_digest(rows[first - 1 : first - 1 + length]) == wanted
    ]
    old = f"{place(pin.path, size)}" + (f" at {record.revision}" if record and record.revision != pin.revision else "")
    if len(found) == 1:
        return _bad(
            pin,
            "moved",
            "pin-moved",
            f"{old} moved to {found[0][0]}-{found[0][1]} at {pin.revision}",
            f"write lines: [{found[0][0]}, {found[0][1]}]",
        )
    if found:
        spans = ", ".join(f"{a}-{b}" for a, b in found[:6])
        return _bad(
            pin,
            "ambiguous",
            "pin-ambiguous",
            f"text of {old} stands in {len(found)} places: {spans}",
            "read them, and give the right lines",
        )
    detail = f"text of {pin.id} ({old}) not found at {pin.revision}" + (f"; {past}" if past else "")
    return _bad(
        replace(pin),
        "changed" if fresh else "gone",
        "pin-changed" if fresh else "pin-gone",
        detail,
        "read the file at the pinned revision, and cite it anew",
        fresh,
    )


def _bad(
    pin: UpstreamPin, kind: str, code: str, message: str, hint: str, fresh: UpstreamRecord | None = None
) -> UpstreamState:
    shown = f"{pin.repository}@{pin.revision[:12]}"
    problem = Finding(
        code,
        f"upstream pin {pin.id}: {message}",
        pin.where,
        expected=f"{shown} {place(pin.path, pin.lines)}",
        actual=f"digest {fresh.digest[:12]} there" if fresh else "",
        hint=hint,
        component=pin.component,
        statement=f"pin {pin.id}",
    )
    return UpstreamState(pin, kind, message, problem, fresh)


def with_upstream(lock: Lock, states: Sequence[UpstreamState], *, write: bool = False, ack: str = "") -> Lock:
    """The lock with what was seen in local copies.

    `write` records new ranges and renews verified ones; changed ones only for the component that is
    acknowledged. Records stay while no copy is at hand; those of pins that are gone are dropped by `write`.
    """
    known = {(s.pin.component, s.pin.id) for s in states}
    records = {key: seen for key, seen in lock.upstream.items() if key in known or not write}
    for state in states:
        if state.fresh is None:
            continue
        settled = state.kind in ("new", "verified") and write
        if settled or (state.kind == "changed" and ack == state.pin.component):
            records[state.pin.component, state.pin.id] = state.fresh
    return Lock(lock.pins, records)
