# Where each value of a YAML (or JSON) file stands in its text, so that one can be replaced and the
# rest stays as it was written.
"""Spans of the values of a YAML text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from sitegen.selftest.mutant import Edit

Path = tuple["str | int", ...]


@dataclass(frozen=True)
class Span:
    """A value or key in the text.

    Attributes:
        path: as in `yamlfile.Document`.
        kind: scalar, key, mapping or sequence.
        value: the text of a scalar or key as read.
        style: how a scalar is quoted (None: plain); for a collection "flow" or "block".
        dash: of an item of a block sequence: where its line starts.
    """

    path: Path
    kind: str
    start: int
    end: int
    value: str = ""
    style: str | None = None

    @property
    def inline(self) -> bool:
        """A scalar on one line: replaceable by another one as it stands."""
        return self.kind == "scalar" and self.style not in ("|", ">")


def spans(text: str) -> dict[Path, Span]:
    """Path -> span of every value that is written out (aliases are not); keys under `(*path, "<key>")`."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    events = iter(yaml.parse(text, Loader=loader))
    found: dict[Path, Span] = {}
    next(events)
    next(events)
    _value(next(events), (), events, found)
    return found


def _value(event: Any, path: Path, events: Iterator[Any], found: dict[Path, Span]) -> None:
    start = event.start_mark.index
    if isinstance(event, yaml.ScalarEvent):
        # an anchor belongs to the span of the event, and stays
        end = event.end_mark.index
        found[path] = Span(path, "scalar", start, end, event.value, event.style or None)
    elif isinstance(event, yaml.SequenceStartEvent):
        number = 0
        while not isinstance(inner := next(events), yaml.SequenceEndEvent):
            _value(inner, (*path, number), events, found)
            number += 1
        style = "flow" if event.flow_style else "block"
        found[path] = Span(path, "sequence", start, inner.end_mark.index, style=style)
    elif isinstance(event, yaml.MappingStartEvent):
        while not isinstance(key := next(events), yaml.MappingEndEvent):
            name = key.value if isinstance(key, yaml.ScalarEvent) else "?"
            inner_path = (*path, name)
            found[(*inner_path, "<key>")] = Span(
                inner_path, "key", key.start_mark.index, key.end_mark.index, name, getattr(key, "style", None) or None
            )
            if not isinstance(key, yaml.ScalarEvent):
                _value(key, (*path, "?"), events, {})
            _value(next(events), inner_path, events, found)
        style = "flow" if event.flow_style else "block"
        found[path] = Span(path, "mapping", start, key.end_mark.index, style=style)


def quoted(value: str) -> str:
    """A text as a single-quoted scalar of one line, or a double-quoted one if it has several."""
    if "\n" in value:
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    return "'" + value.replace("'", "''") + "'"


def written(span: Span, value: str) -> str:
    """Another value in the place of a scalar: plain where it was plain and both are words, else quoted."""
    if span.style is None and value.replace("-", "").replace("_", "").replace(".", "").replace("/", "").isalnum():
        return value
    return quoted(value)


def replaced(text: str, span: Span, value: str, raw: bool = False) -> Edit:
    """The edit that puts `value` where the scalar stands; `raw` as it is, such as a number."""
    start, end = span.start, span.end
    before = text[start:end]
    lead = before.partition(" ")[0] + " " if before.startswith("&") else ""
    tail = before[len(before.rstrip()) :] if span.style in ("|", ">") else ""
    return Edit(start, end, lead + (value if raw else written(span, value)) + tail)


def dropped(text: str, sequence: Span, items: list[Span], number: int) -> Edit | None:
    """The edit that takes one item out of a sequence; None where the layout does not allow it."""
    item = items[number]
    if sequence.style == "flow":
        if number + 1 < len(items):
            return Edit(item.start, items[number + 1].start, "")
        if number > 0:
            return Edit(items[number - 1].end, item.end, "")
        return None
    start = text.rfind("\n", 0, item.start) + 1
    if text[start : item.start].strip() != "-":
        return None
    if number + 1 < len(items):
        return Edit(start, text.rfind("\n", 0, items[number + 1].start) + 1, "")
    end = text.find("\n", item.end - 1 if item.style == "block" else item.end)
    return Edit(start, len(text) if end < 0 else end + 1, "")
