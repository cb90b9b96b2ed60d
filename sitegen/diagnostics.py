# What can be wrong with a documented statement, where it stands, and how to say it.
#
# A fault of the user (spec, config, code under documentation) is a `Finding`: a value that is
# collected, sorted and printed once, in several formats.  Nothing that a user can cause ends in a
# traceback: stages raise `SpecInvalid` with all their findings, and `SitegenError` stops a run
# that cannot start at all (exit code 2).
"""Findings: the values in which sitegen reports what is wrong, where, and what to do next."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

#: Every finding code, with one sentence that `sitegen explain CODE` opens with.
CODES: dict[str, str] = {
    "yaml-invalid": "A YAML file cannot be read as the strict subset that specs use.",
    "schema-invalid": "A field is missing, unknown, or of the wrong type.",
    "config-invalid": "The model's configuration contradicts itself or the spec.",
    "unknown-symbol": "An expression or formula uses a name that no symbol, axis or row has.",
    "unknown-reference": "A reference names a component, source, evidence entry or row that does not exist.",
    "expression-invalid": "A count expression or formula cannot be parsed or evaluated.",
    "tex-invalid": "A formula's TeX cannot be rendered to MathML.",
    "tex-differs": "A hand-written TeX does not use the symbols and constants of the executed step.",
    "unsafe-text": "A text holds control or direction-override characters.",
    "path-outside": "A path leaves the repository.",
    "number-unbound": "A number in prose equals a known figure but is not quoted by name.",
    "count-mismatch": "Two sides of a parameter count disagree.",
    "shape-mismatch": "A stated shape disagrees with the shape seen in a run or in the table.",
    "dtype-mismatch": "A stated number type disagrees with the one seen.",
    "tensor-unassigned": "Elements of a tensor are owned by no accounting row.",
    "tensor-assigned-twice": "Elements of a tensor are owned by two accounting rows.",
    "formula-mismatch": "A formula disagrees with the values captured from the implementation.",
    "formula-not-distinguished": "A mutated form of a formula agrees with the captured values too.",
    "control-holds": "A negative control holds although it must fail.",
    "gotcha-untested": "A mistake that ports make names a check in which no wrong version runs.",
    "property-mismatch": "A stated property does not hold within its tolerance.",
    "tolerance-loose": "A measured tolerance is more than ten times the largest error seen.",
    "kernel-mismatch": "A kernel disagrees with its plain twin.",
    "checkpoint-mismatch": "A checkpoint's headers disagree with the tensor table.",
    "package-mismatch": "An installed package is not the version that the spec pins.",
    "pin-moved": "Pinned code stands on other lines, or was only reformatted; `sitegen repin --write` repairs it.",
    "pin-changed": "Pinned code changed; it must be read again and acknowledged.",
    "pin-gone": "Pinned code no longer exists.",
    "pin-ambiguous": "Pinned code now stands in several places, or was split.",
    "evidence-unused": "An evidence entry is cited by no component.",
    "component-unreachable": "A component occurs in no place of the model.",
    "equivalent-stale": "An entry of equivalent.yml names a mutant that does not exist, or that a check does catch.",
    "facts-stale": "Facts are older than the code or spec they speak of.",
    "facts-invalid": "A facts file is damaged, forged, or of another schema.",
    "not-run": "A statement could not be verified here.",
}

SEVERITIES = ("error", "warning", "notice")


def printable(text: str, keep: str = "") -> str:
    """`text` on one line, with every character that no reader sees shown by its number; those in `keep` stay.

    What a finding quotes was written by others: it must not move a terminal's cursor, turn the reading direction, or
    begin a line of its own, or hold a command (`##[…]`) of a platform that reads logs.
    """
    text = text.replace("##[", "## [")
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else _shown(c) for c in text)


def _shown(character: str) -> str:
    if character == "\n":
        return " ⏎ "
    if character in "\t\u00a0\u3000" or unicodedata.category(character) == "Zs":
        return " "
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


@dataclass(frozen=True, order=True)
class Location:
    """A place in a text file: path relative to the project, line and column from 1 (0 = whole file)."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return self.file if not self.line else f"{self.file}:{self.line}:{self.column}"


NOWHERE = Location("")


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong.

    `message` says what; `expected` and `actual` are both values with their origin; `hint` says what
    to do next.  `component` and `statement` name the documented statement where there is one.
    """

    code: str
    message: str
    where: Location = NOWHERE
    expected: str = ""
    actual: str = ""
    hint: str = ""
    component: str = ""
    statement: str = ""
    severity: str = "error"

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise ValueError(f"unknown finding code {self.code!r}")
        if self.severity not in SEVERITIES:
            raise ValueError(f"unknown severity {self.severity!r}")

    def within(self, component: str, statement: str = "") -> Finding:
        """The same finding, attributed to a component (and statement) unless it already is."""
        return replace(self, component=self.component or component, statement=self.statement or statement)

    def text(self) -> str:
        """Three lines: place, code and message; both values; what to do next."""
        subject = " ".join(part for part in (self.component, self.statement) if part)
        head = f"{self.where or '-'}: {self.severity}[{self.code}] {self.message}"
        if subject:
            head += f"  ({subject})"
        lines = [head]
        if self.expected or self.actual:
            lines.append(f"  expected {self.expected or '-'}; actual {self.actual or '-'}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(printable(line) for line in lines)

    def to_json(self) -> dict[str, object]:
        """The finding as the JSON report carries it."""
        return {
            "code": self.code,
            "severity": self.severity,
            "component": self.component,
            "statement": self.statement,
            "file": self.where.file,
            "line": self.where.line,
            "column": self.where.column,
            "message": self.message,
            "expected": self.expected,
            "actual": self.actual,
            "hint": self.hint,
        }


class SpecInvalid(Exception):
    """A stage refuses its input; carries every finding of that stage."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = list(findings)
        super().__init__("\n".join(finding.text() for finding in self.findings))


class SitegenError(Exception):
    """A run cannot start (usage, configuration, unreadable input): exit code 2."""

    def __init__(self, message: str, *, hint: str = "", where: Location = NOWHERE) -> None:
        self.message, self.hint, self.where = message, hint, where
        place = f"{where}: " if where.file else ""
        super().__init__(f"{place}{message}" + (f"\n  hint: {hint}" if hint else ""))


@dataclass
class Collector:
    """Gathers findings so that a stage can report all of them at once."""

    findings: list[Finding] = field(default_factory=list)

    def add(self, finding: Finding) -> None:
        self.findings.append(finding)

    def raise_if_any(self) -> None:
        if any(finding.severity == "error" for finding in self.findings):
            raise SpecInvalid(ordered(self.findings))


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Findings sorted by severity, file and line; repeated ones once."""
    unique = dict.fromkeys(findings)
    return sorted(unique, key=lambda f: (SEVERITIES.index(f.severity), f.where, f.code, f.message))


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint that names the closest known name, or lists a few."""
    names = sorted(set(known))
    same = [known_name for known_name in names if known_name.casefold() == name.casefold()]
    close = same or difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    if not names:
        return "no names are known here"
    shown = ", ".join(names[:8])
    return f"known names: {shown}" + (", …" if len(names) > 8 else "")
