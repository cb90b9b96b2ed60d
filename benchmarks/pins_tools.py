# The tools of the pin benchmark behind one interface: write the citations, repair, check, accept.
#
# Every tool gets the same pins in its own notation and the same edited trees. Rivals run as their
# command lines, once for a whole tree.
"""sitegen's pins, snippetdrift, docpin and linecite, asked the same questions."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pins_cases import Case, Lines

from sitegen import pins

SECONDS = 300


@dataclass
class Verdict:
    """What a tool says of each pin: which alarm, and on which lines it believes each to be (where it says so)."""

    alarms: set[str] = field(default_factory=set)
    lines: dict[str, Lines] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)


class Tool:
    """One way of pinning. `folder` holds `code/<case>/<file>` and whatever the tool wrote."""

    name = ""
    package = ""
    accepts = ""  #: the command that clears all alarms, if it has one

    def missing(self) -> str:
        """Why the tool cannot run here, or nothing."""
        if not self.package:
            return ""
        try:
            importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            return f"{self.package} is not installed"
        return "" if self._program().is_file() else f"{self.package} has no command here"

    @property
    def version(self) -> str:
        return importlib.metadata.version(self.package) if self.package else "this tree"

    def record(self, folder: Path, cases: Sequence[Case]) -> set[str]:
        """Pins the unedited code; returns the cases that the tool could not pin."""
        raise NotImplementedError

    def repair(self, folder: Path, cases: Sequence[Case]) -> None:
        """What the tool does by itself, without a person's word."""

    def check(self, folder: Path, cases: Sequence[Case]) -> Verdict:
        raise NotImplementedError

    def accept(self, folder: Path, cases: Sequence[Case]) -> None:
        """Clears the alarms as a hasty person would."""

    def _program(self) -> Path:
        return Path(sysconfig.get_path("scripts")) / self.package

    def _run(self, folder: Path, *arguments: str) -> str:
        done = subprocess.run(
            [str(self._program()), *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            env={
                "PATH": str(Path(sys.executable).parent) + ":/usr/bin:/bin",
                "COLUMNS": "400",
                "NO_COLOR": "1",
                "PYTHONUTF8": "1",
                "HOME": str(folder),
            },
        )
        if done.returncode not in (0, 1):
            raise RuntimeError(
                f"{self.package} {' '.join(arguments)} ended with {done.returncode}: {done.stderr[-500:]}"
            )
        return done.stdout + done.stderr


def code_path(case: Case) -> str:
    return f"code/{case.name}/{Path(case.origin).name}"


class Sitegen(Tool):
    name = "sitegen"
    accepts = "repin --write --ack"

    def _pins(self, cases: Sequence[Case]) -> list[pins.Pin]:
        return [pins.Pin(c.name, "code", code_path(c), symbol=c.symbol, fragment=c.fragment) for c in cases]

    def _lock(self, folder: Path) -> Path:
        return folder / "spec" / pins.FILE_NAME

    def record(self, folder: Path, cases: Sequence[Case]) -> set[str]:
        done = pins.repin_file(
            self._lock(folder), self._pins(cases), pins.FolderReader(folder), root=folder, write=True
        )
        return {state.pin.component for state in done.left}

    def repair(self, folder: Path, cases: Sequence[Case]) -> None:
        pins.repin_file(self._lock(folder), self._pins(cases), pins.FolderReader(folder), root=folder, write=True)

    def check(self, folder: Path, cases: Sequence[Case]) -> Verdict:
        lock = pins.read_lock(self._lock(folder))
        states = pins.check(self._pins(cases), lock, pins.FolderReader(folder))
        return Verdict(
            {s.pin.component for s in states if s.code},
            {key[0]: record.lines for key, record in lock.pins.items()},
            {s.pin.component: s.kind for s in states},
        )

    def accept(self, folder: Path, cases: Sequence[Case]) -> None:
        lock, reader = pins.read_lock(self._lock(folder)), pins.FolderReader(folder)
        for case in cases:
            mine = self._pins([case])
            lock = pins.repin(mine, lock, reader, write=True, ack=case.name, reason="accepted unread", prune=False).lock
        pins.write_lock(self._lock(folder), lock)


class SnippetDrift(Tool):
    name = "snippetdrift"
    package = "snippetdrift"
    accepts = "accept --sync"

    def record(self, folder: Path, cases: Sequence[Case]) -> set[str]:
        _git(folder, "init", "-q", ".")  # it finds its root by git
        for case in cases:
            first, last = case.lines
            _write(
                folder / "docs" / f"{case.name}.md",
                f"<!-- snippetdrift: {code_path(case)}#L{first}-{last} -->\n```python\n```\n",
            )
        self._run(folder, "init", "docs")
        return {c.name for c in cases if "hash:" not in (folder / "docs" / f"{c.name}.md").read_text("utf-8")}

    def check(self, folder: Path, cases: Sequence[Case]) -> Verdict:
        output = self._run(folder, "check", "docs")
        rows = [row for row in output.split("\n") if re.match(r"\s+\S\s+docs/p\d+\.md:", row)]
        seen = {match[1] for row in rows if (match := re.search(r"docs/(p\d+)\.md:", row))}
        if len(seen) != len(cases):
            raise RuntimeError(f"snippetdrift spoke of {len(seen)} of {len(cases)} snippets:\n{output[:800]}")
        alarms = {re.search(r"docs/(p\d+)\.md:", row)[1] for row in rows if not re.match(r"\s+✓", row)}  # type: ignore[index]
        return Verdict(alarms, _lines_in_docs(folder, cases, r"#L(\d+)-(\d+)"))

    def accept(self, folder: Path, cases: Sequence[Case]) -> None:
        self._run(folder, "accept", "--sync", "docs")


class DocPin(Tool):
    package = "docpin"
    accepts = "record"

    def __init__(self, by_symbol: bool) -> None:
        self.by_symbol = by_symbol
        self.name = "docpin (symbol)" if by_symbol else "docpin (lines)"

    def record(self, folder: Path, cases: Sequence[Case]) -> set[str]:
        for case in cases:
            first, last = case.lines
            place = f"#{case.symbol}" if self.by_symbol else f":{first}-{last}"
            _write(folder / f"{case.name}.md", f"[pin:{code_path(case)}{place}]\n")
        self._run(folder, "record", ".")
        return {c.name for c in cases if " @" not in (folder / f"{c.name}.md").read_text("utf-8")}

    def check(self, folder: Path, cases: Sequence[Case]) -> Verdict:
        output = self._run(folder, "check", ".")
        alarms = set(re.findall(r"(p\d+)\.md:\d+", output))
        lines = {} if self.by_symbol else _lines_in_docs(folder, cases, r":(\d+)-(\d+)", "")
        return Verdict(alarms, lines)

    def accept(self, folder: Path, cases: Sequence[Case]) -> None:
        self._run(folder, "record", ".")


class LineCite(Tool):
    name = "linecite"
    package = "linecite"

    def record(self, folder: Path, cases: Sequence[Case]) -> set[str]:
        _git(folder, "init", "-q", ".")
        _write(folder / ".linecite.toml", 'code_root = "."\ndocs = ["docs/*.md"]\n')
        for case in cases:
            first, last = case.lines
            rows = [row.strip() for row in case.fragment.split("\n")]
            title = case.symbol
            if len(rows) == 1 and rows[0]:
                title = f"{case.symbol}: {rows[0]}"
            elif case.fragment:
                title = f"{case.symbol} `{rows[0]}` .. `{rows[-1]}`"
            at = f"L{first}-L{last}" if first != last else f"L{first}"
            span = f"{first}-{last}" if first != last else f"{first}"
            name = Path(case.origin).name
            _write(folder / "docs" / f"{case.name}.md", f'See [{name}:{span}]({code_path(case)}#{at} "{title}").\n')
        self._track(folder)
        self._run(folder, "sync")
        return self.check(folder, cases).alarms

    def _track(self, folder: Path) -> None:
        _git(folder, "-c", "core.autocrlf=false", "add", "-A")

    def repair(self, folder: Path, cases: Sequence[Case]) -> None:
        self._track(folder)
        self._run(folder, "sync")

    def check(self, folder: Path, cases: Sequence[Case]) -> Verdict:
        self._track(folder)
        output = self._run(folder, "check")
        alarms = set(re.findall(r"^\w+\s+docs/(p\d+)\.md:\d+", output, re.MULTILINE))
        listed = self._run(folder, "list")
        lines: dict[str, Lines] = {}
        for name, span in re.findall(r"^docs/(p\d+)\.md:\d+\t(\S+)", listed, re.MULTILINE):
            if span == "BROKEN":
                alarms.add(name)
            else:
                first, _, last = span.partition("-")
                lines[name] = int(first), int(last or first)
        silent = {case.name for case in cases} - alarms - set(lines)
        if silent:
            raise RuntimeError(f"linecite says nothing of {sorted(silent)[:5]}:\n{listed[:800]}")
        return Verdict(alarms, lines)


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, timeout=SECONDS, capture_output=True)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")


def _lines_in_docs(folder: Path, cases: Sequence[Case], pattern: str, inside: str = "docs") -> dict[str, Lines]:
    found: dict[str, Lines] = {}
    for case in cases:
        match = re.search(pattern, (folder / inside / f"{case.name}.md").read_text("utf-8"))
        if match:
            found[case.name] = int(match[1]), int(match[2])
    return found


def all_tools() -> list[Tool]:
    return [Sitegen(), SnippetDrift(), DocPin(by_symbol=False), DocPin(by_symbol=True), LineCite()]
