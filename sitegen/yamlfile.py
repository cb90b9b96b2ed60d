# The strict YAML subset in which specs are written, with a position for every value.
#
# PyYAML's parser delivers events; values are built here, because its own constructors follow
# YAML 1.1 (`1e-6` a string, `no` False, `12:30` 750, `010` 8), let the last of two equal keys win,
# and forget where a value stood.
"""Read a spec's YAML file into plain data plus the place of each value."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from sitegen.diagnostics import Finding, Location, SpecInvalid

MAX_BYTES = 2_000_000
MAX_DEPTH = 40
MAX_NODES = 50_000  # after aliases are expanded: bounds "billion laughs"
MAX_DIGITS = 40

Path = tuple["str | int", ...]

_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?\Z")
_NULL = {"", "~", "null", "Null", "NULL"}
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
#: Format characters that spelling needs: joiners and the soft hyphen.  All others are refused, direction marks first.
_JOINERS = set("\u200c\u200d\u00ad")


@dataclass(frozen=True)
class Document:
    """A YAML file as authored: plain data, and the location of every key's value and list item."""

    file: str
    data: Any
    places: dict[Path, Location] = field(repr=False)

    def locate(self, path: Path) -> Location:
        """The place of the value at `path`, or of its nearest parent."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, Location(self.file, 1, 1))


def load(text: str | bytes, file: str) -> Document:
    """Parse one YAML document.

    Raises `SpecInvalid` with findings (`yaml-invalid`, `unsafe-text`) that name line and column.
    """
    if isinstance(text, bytes):
        if len(text) > MAX_BYTES:
            raise _stop(file, f"the file has {len(text):,} bytes; at most {MAX_BYTES:,} are read")
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise _stop(file, f"the file is not UTF-8 (byte {error.start})") from None
    builder = _Builder(file, text)
    try:
        data = builder.document()
    except yaml.YAMLError as error:
        raise SpecInvalid([*builder.findings, _syntax_finding(file, error)]) from None
    if builder.findings:
        raise SpecInvalid(builder.findings)
    return Document(file, data, builder.places)


def unsafe_characters(text: str) -> list[str]:
    """Names of control, direction and other invisible characters in `text` (newline, tab and joiners are fine).

    Half of a surrogate pair is one too: no encoding can write it.
    """
    if text.isascii() and text.isprintable():
        return []
    return [
        f"U+{ord(c):04X}"
        for c in dict.fromkeys(text)
        if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c not in "\n\t" and c not in _JOINERS
    ]


def _stop(file: str, message: str, line: int = 1, column: int = 1, hint: str = "") -> SpecInvalid:
    return SpecInvalid([Finding("yaml-invalid", message, Location(file, line, column), hint=hint)])


def _syntax_finding(file: str, error: yaml.YAMLError) -> Finding:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    where = Location(file, mark.line + 1, mark.column + 1) if mark else Location(file, 1, 1)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    if "control characters" in str(error) or "unacceptable character" in str(error):
        return Finding("unsafe-text", f"the file holds a control character: {problem}", where)
    return Finding(
        "yaml-invalid",
        f"not valid YAML: {problem}",
        where,
        hint="put the text in 'single quotes' or in a block scalar (`|`) if it holds : # { [ * & % @ or `",
    )


class _Builder:
    """Turns parser events into data; one instance per file."""

    def __init__(self, file: str, text: str) -> None:
        self.file, self.text = file, text
        self.lines = text.split("\n")
        self.findings: list[Finding] = []
        self.places: dict[Path, Location] = {}
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.open_anchors: set[str] = set()
        self.nodes = 0
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self.events: Iterator[Any] = iter(yaml.parse(text, Loader=loader))

    def document(self) -> Any:
        next(self.events)  # stream start
        event = next(self.events)
        if isinstance(event, yaml.StreamEndEvent):
            raise _stop(self.file, "the file is empty")
        data = self.value(next(self.events), ())
        next(self.events)  # document end
        after = next(self.events)
        if not isinstance(after, yaml.StreamEndEvent):
            self.complain(after, "a second document starts here; a spec file holds one")
        return data

    def at(self, event: Any) -> Location:
        return Location(self.file, event.start_mark.line + 1, event.start_mark.column + 1)

    def complain(self, event: Any, message: str, hint: str = "", code: str = "yaml-invalid", **values: str) -> None:
        self.findings.append(Finding(code, message, self.at(event), hint=hint, **values))

    def count(self, amount: int, event: Any) -> None:
        self.nodes += amount
        if self.nodes > MAX_NODES:
            where = self.at(event)
            raise _stop(
                self.file,
                f"more than {MAX_NODES:,} values after expanding aliases",
                where.line,
                where.column,
                "split the file, or repeat less through aliases",
            )

    def value(self, event: Any, path: Path) -> Any:
        self.places[path] = self.at(event)
        if len(path) > MAX_DEPTH:
            where = self.at(event)
            raise _stop(self.file, f"nested deeper than {MAX_DEPTH} levels", where.line, where.column)
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event)
        if event.tag is not None and not (event.tag == "!" and isinstance(event, yaml.ScalarEvent)):
            self.complain(event, f"the tag {event.tag} is not allowed in a spec", "remove the tag")
        before = self.nodes
        self.count(1, event)
        if event.anchor:
            self.open_anchors.add(event.anchor)
        if isinstance(event, yaml.MappingStartEvent):
            result: Any = self.mapping(event, path)
        elif isinstance(event, yaml.SequenceStartEvent):
            result = self.sequence(path)
        else:
            result = self.scalar(event)
        if event.anchor:
            self.open_anchors.discard(event.anchor)
            self.anchors[event.anchor] = (result, self.nodes - before)
        return result

    def alias(self, event: Any) -> Any:
        if event.anchor in self.open_anchors:
            self.complain(event, f"the alias *{event.anchor} contains itself")
            return None
        if event.anchor not in self.anchors:
            self.complain(event, f"the alias *{event.anchor} has no anchor", "quote the text if * is meant literally")
            return None
        data, size = self.anchors[event.anchor]
        self.count(size, event)
        return data

    def sequence(self, path: Path) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            items.append(self.value(event, (*path, len(items))))
        return items

    def mapping(self, start: Any, path: Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        first: dict[str, int] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                self.complain(event, "a key must be plain text")
                self.value(event, (*path, "?"))
                self.value(next(self.events), (*path, "?"))
                continue
            key = event.value
            self.check_text(event, key)
            if key == "<<" and not event.style:
                source = self.value(next(self.events), (*path, "<<"))
                for part in source if isinstance(source, list) else [source]:
                    if isinstance(part, dict):
                        merged = {**part, **merged}
                    else:
                        self.complain(event, "a merge key (<<) needs a mapping")
                continue
            line = event.start_mark.line + 1
            if key in first:
                self.complain(
                    event,
                    f"the key {key!r} occurs twice",
                    "remove one of the two; neither wins silently",
                    expected=f"one {key!r}",
                    actual=f"line {first[key]} and line {line}",
                )
            first.setdefault(key, line)
            value = self.value(next(self.events), (*path, key))
            result.setdefault(key, value)
        return {**merged, **result}

    def scalar(self, event: Any) -> Any:
        text: str = event.value
        self.check_text(event, text)
        if event.style:
            return text
        value = self.plain(event, text)
        if isinstance(value, str):
            if event.anchor:
                self.complain(
                    event,
                    f"unquoted '&{event.anchor}' is read as an anchor, not as text",
                    f"quote the whole text: '&{event.anchor} {text}'",
                )
            end = event.end_mark
            line = self.lines[end.line] if end.line < len(self.lines) else ""
            if re.match(r"[ \t]+#", line[end.column :]):
                self.complain(
                    event,
                    "unquoted '#' starts a comment, so the text ends before it",
                    "quote the text, or put the comment on a line of its own",
                    expected=line[event.start_mark.column :].strip() if end.line == event.start_mark.line else "",
                    actual=text,
                )
        return value

    def plain(self, event: Any, text: str) -> Any:
        if text in _NULL:
            return None
        if text in _BOOL:
            return _BOOL[text]
        if _INT.match(text):
            if len(text) > MAX_DIGITS:
                self.complain(event, f"an integer of {len(text):,} digits; at most {MAX_DIGITS} are read")
                return 0
            return int(text)
        if len(text) <= MAX_DIGITS and _FLOAT.match(text):
            return float(text)
        return text

    def check_text(self, event: Any, text: str) -> None:
        bad = unsafe_characters(text)
        if bad:
            hint = "remove them"
            if event.style == '"':
                hint = "in double quotes a backslash starts an escape (\\a is a bell); use 'single quotes' for TeX"
            self.complain(event, f"the text holds {', '.join(bad)}", hint, code="unsafe-text")
