# The places that a pin names as its author wrote it, and what is recorded of one.
"""Spots and records; comparing two records of the same code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sitegen.diagnostics import nearest
from sitegen.pins import matching
from sitegen.pins.definitions import Definition, named
from sitegen.pins.pin import Candidate, Lines, Pin, PinState, Record, place, trimmed
from sitegen.pins.source import RangeInvalid, SourceText
from sitegen.pins.tokens import Token, digest

ACK = "read the new code against the page, then `sitegen repin --ack {component} --reason TEXT`"
EDIT = "edit {what} of the pin in the spec to quote the code as it now is, then `sitegen repin --ack {component} …`"
REPAIR = "`sitegen repin --write` records the new place"


class Spot(NamedTuple):
    """A place that the authored pin names now."""

    definition: Definition | None
    lines: Lines


def authored_spots(pin: Pin, source: SourceText) -> list[Spot]:
    """All places that the pin names as its author wrote it.

    Raises:
        RangeInvalid: when the authored lines do not exist.
    """
    if pin.symbol:
        found = named(source.definitions, pin.symbol)
        if not pin.fragment.strip():
            return [Spot(definition, definition.lines) for definition in found]
        return [Spot(d, lines) for d in found for lines in matching.fragment_places(source, pin.fragment, d.lines)]
    if pin.fragment.strip():
        return [Spot(None, x) for x in matching.fragment_places(source, pin.fragment, matching.whole_file(source))]
    assert pin.lines is not None
    source.excerpt(pin.lines)
    return [Spot(None, pin.lines)]


def record_at(pin: Pin, source: SourceText, spot: Spot, earlier: Record | None = None) -> Record:
    """What the lock keeps when the pin is recorded at this spot."""
    definition, lines = spot
    symbol_lines = definition.lines if definition else lines
    text = trimmed(source.excerpt(lines))
    lexed = source.lexed
    code = digest(lexed.code_in(lines))
    return Record(
        path=pin.path,
        binding=pin.binding,
        symbol=definition.symbol if definition else "",
        ordinal=definition.ordinal if definition else 1,
        same_name=len(named(source.definitions, definition.symbol)) if definition else 1,
        lines=lines,
        symbol_lines=symbol_lines,
        text=text,
        symbol_text=trimmed(source.excerpt(symbol_lines)),
        code=code,
        comments=comment_digest(lexed.comments_in(lines)),
        symbol_code=digest(lexed.code_in(symbol_lines)),
        body_code=matching.body_digest(source, definition) if definition else code,
        occurrences=1 if definition else len(matching.text_places(source, text)),
        revision=pin.revision,
        acknowledged=earlier.acknowledged if earlier else None,
    )


def comment_digest(comments: Sequence[Token]) -> str:
    """Digest of comments by their words: their indentation is layout."""
    return digest(token._replace(text=" ".join(token.text.split())) for token in comments)


def one_spot(pin: Pin, record: Record | None, source: SourceText) -> Spot | PinState:
    """The one place that the pin names, or why there is not exactly one."""
    try:
        spots = authored_spots(pin, source)
    except RangeInvalid as error:
        return PinState(
            pin,
            "gone",
            "pin-gone",
            message=f"pin {pin.id}: {pin.path}: {error}",
            recorded=record,
            advice="cite lines that exist",
        )
    if len(spots) == 1:
        return spots[0]
    if len(spots) > 1:
        name = f"fragment in {pin.symbol}" if pin.symbol and pin.fragment.strip() else pin.symbol or "fragment"
        return PinState(
            pin,
            "ambiguous",
            "pin-ambiguous",
            recorded=record,
            message=f"pin {pin.id}: {name} stands in {len(spots)} places of {pin.path}: "
            + ", ".join(span(spot.lines) for spot in spots[:6]),
            candidates=tuple(
                Candidate(1.0, pin.path, s.lines, s.definition.symbol if s.definition else "", source.excerpt(s.lines))
                for s in spots[: matching.MOST_CANDIDATES]
            ),
            advice=f"quote more lines, or name one of them (`{pin.symbol or 'symbol'}#2`)",
        )
    if pin.symbol and not named(source.definitions, pin.symbol):
        return PinState(
            pin,
            "gone",
            "pin-gone",
            recorded=record,
            message=f"pin {pin.id}: {pin.path} defines no {pin.symbol!r}",
            advice=nearest(pin.symbol, (definition.symbol for definition in source.definitions)),
        )
    within = named(source.definitions, pin.symbol)[0].lines if pin.symbol else matching.whole_file(source)
    shown = " ".join(pin.fragment.split())
    quoted = _quoted(pin)
    return PinState(
        pin,
        "gone",
        "pin-gone",
        recorded=record,
        message=f"pin {pin.id}: fragment {shown[:60]!r} does not stand in {pin.symbol or pin.path}",
        candidates=tuple(matching.similar_lines(source, quoted, within)),
        advice="quote the code as it is written",
    )


def _quoted(pin: Pin) -> Record:
    """A record that holds the quoted fragment alone: enough to search for what looks like it."""
    rows = tuple(row for row in pin.fragment.split("\n") if row.strip())
    nothing = ""
    return Record(
        pin.path,
        nothing,
        nothing,
        1,
        1,
        (1, max(1, len(rows))),
        (1, max(1, len(rows))),
        rows,
        rows,
        nothing,
        nothing,
        nothing,
        nothing,
    )


def compared(pin: Pin, record: Record, fresh: Record) -> PinState:
    """Same code: tells unchanged, moved, reformatted and comment-only apart."""
    if fresh.text == record.text and fresh.lines == record.lines:
        return PinState(pin, "unchanged", "", fresh.lines, fresh.text, recorded=record, fresh=fresh)
    changes = []
    if fresh.lines != record.lines:
        changes.append(f"moved to {span(fresh.lines)}")
    if fresh.text == record.text:
        kind = "moved"
    elif fresh.comments != record.comments:
        kind = "comment-only"
        changes.append("has other comments, with the same code")
    else:
        kind = "reformatted"
        changes.append("was reformatted, with the same tokens")
    return PinState(
        pin,
        kind,
        "pin-moved",
        fresh.lines,
        fresh.text,
        recorded=record,
        fresh=fresh,
        advice=REPAIR,
        message=f"pin {pin.id}: {place(record.path, record.lines)} {' and '.join(changes)}{since(pin, record)}",
    )


def span(lines: Lines) -> str:
    return f"{lines[0]}" if lines[0] == lines[1] else f"{lines[0]}-{lines[1]}"


def elsewhere_advice(pin: Pin, candidates: Sequence[Candidate]) -> str:
    if candidates and candidates[0].path != pin.path:
        return f"the same code stands at {place(candidates[0].path, candidates[0].lines)}: name it in the spec"
    if candidates:
        return f"most alike: {candidates[0]}; name the right code in the spec, or drop the citation"
    return "name the code that the page speaks of now, or drop the citation"


def since(pin: Pin, record: Record | None) -> str:
    old = record.revision if record else ""
    if old and pin.revision and old != pin.revision:
        return f" (recorded at {old}, now at {pin.revision})"
    return f" at {pin.revision}" if pin.revision else ""
