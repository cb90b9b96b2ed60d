# Pins on text: a fragment or lines of a file in which no symbol is named.
"""Pins without a symbol, against the present file."""

from __future__ import annotations

from collections.abc import Sequence

from sitegen.pins import matching
from sitegen.pins.pin import Candidate, Lines, Pin, PinState, Record, place, text_digest
from sitegen.pins.source import RangeInvalid, SourceReader, SourceText
from sitegen.pins.spots import ACK, EDIT, REPAIR, Spot, compared, elsewhere_advice, one_spot, record_at, since, span


def by_text(pin: Pin, record: Record, source: SourceText, reader: SourceReader) -> PinState:
    places = matching.same_text_places(source, record)
    if not pin.fragment.strip():
        assert pin.lines is not None
        if pin.lines != record.lines:
            return _relined(pin, record, source)
        if pin.lines in places:
            return compared(pin, record, record_at(pin, source, Spot(None, pin.lines), record))
    if places:
        return moved_text(pin, record, source, places)
    same_code = matching.code_places(source, record)
    if len(same_code) == 1 and (
        not pin.fragment.strip() or matching.fragment_holds(source, pin.fragment, same_code[0])
    ):
        return compared(pin, record, record_at(pin, source, Spot(None, same_code[0]), record))
    if len(same_code) > 1:
        return moved_text(pin, record, source, same_code)
    if pin.fragment.strip():
        spots = matching.fragment_places(source, pin.fragment, matching.whole_file(source))
        if len(spots) > 1:
            return moved_text(pin, record, source, spots)
        if len(spots) == 1:
            fresh = record_at(pin, source, Spot(None, spots[0]), record)
            return PinState(
                pin,
                "changed",
                "pin-changed",
                fresh.lines,
                fresh.text,
                recorded=record,
                fresh=fresh,
                message=f"pin {pin.id}: the lines of the quoted fragment changed beside it "
                f"({place(record.path, record.lines)}, now {span(fresh.lines)})",
                advice=ACK.format(component=pin.component),
            )
    return _text_gone(pin, record, source, reader)


def _relined(pin: Pin, record: Record, source: SourceText) -> PinState:
    """The author wrote other lines than were recorded."""
    spot = one_spot(pin, record, source)
    if isinstance(spot, PinState):
        return spot
    fresh = record_at(pin, source, spot, record)
    if fresh.text == record.text:
        return compared(pin, record, fresh)
    return PinState(
        pin,
        "changed",
        "pin-changed",
        fresh.lines,
        fresh.text,
        recorded=record,
        fresh=fresh,
        message=f"pin {pin.id}: the spec now cites {place(pin.path, fresh.lines)}; {span(record.lines)} was recorded, "
        "with other text",
        advice=ACK.format(component=pin.component),
    )


def by_digest(pin: Pin, source: SourceText) -> PinState:
    """A pin whose spec carries lines and the digest of their text, and nothing is recorded."""
    assert pin.lines is not None
    wanted = pin.digest.lower()
    size = pin.lines[1] - pin.lines[0] + 1
    rows = source.lines
    found = [
        (first, first + size - 1)
        for first in range(1, len(rows) - size + 2)
        if text_digest(rows[first - 1 : first - 1 + size]) == wanted
    ]
    if pin.lines in found and len(found) == 1:
        fresh = record_at(pin, source, Spot(None, pin.lines))
        return PinState(pin, "unchanged", "", pin.lines, fresh.text, fresh=fresh)
    return moved_text(pin, None, source, found)


def moved_text(pin: Pin, record: Record | None, source: SourceText, places: Sequence[Lines]) -> PinState:
    """Text that stands at these places, none of them the recorded one for certain."""
    old = place(pin.path, record.lines if record else pin.lines)
    if len(places) == 1:
        fresh = record_at(pin, source, Spot(None, places[0]), record)
        if record is not None:
            return compared(pin, record, fresh)
        return PinState(
            pin,
            "moved",
            "pin-moved",
            fresh.lines,
            fresh.text,
            fresh=fresh,
            advice=REPAIR,
            message=f"pin {pin.id}: {old} moved to {span(fresh.lines)}{since(pin, record)}",
        )
    if not places:
        try:
            source.excerpt(pin.lines or (1, 1))
            detail = f"text of {pin.id} not found in {pin.path}{since(pin, record)}"
        except RangeInvalid as error:
            detail = f"pin {pin.id}: {pin.path}: {error}"
        return PinState(
            pin,
            "gone",
            "pin-gone",
            message=detail,
            recorded=record,
            advice="read the file as it now is, and cite it anew",
        )
    return PinState(
        pin,
        "ambiguous",
        "pin-ambiguous",
        recorded=record,
        message=f"pin {pin.id}: text of {old} stands in {len(places)} places of {pin.path}: "
        + ", ".join(span(lines) for lines in places[:6]),
        candidates=tuple(
            Candidate(1.0, pin.path, lines, "", source.excerpt(lines)) for lines in places[: matching.MOST_CANDIDATES]
        ),
        advice="quote a fragment that stands once, or give the right lines in the spec",
    )


def _text_gone(pin: Pin, record: Record, source: SourceText, reader: SourceReader) -> PinState:
    candidates = matching.similar_lines(source, record, matching.whole_file(source))
    old = place(record.path, record.lines)
    what = "the fragment" if pin.fragment.strip() else "lines"
    if candidates:
        best = candidates[0]
        in_place = not pin.fragment.strip() and best.lines == record.lines
        fresh = record_at(pin, source, Spot(None, best.lines), record) if in_place else None
        advice = ACK if in_place else EDIT.replace("{what}", what)
        return PinState(
            pin,
            "changed",
            "pin-changed",
            best.lines,
            best.text,
            recorded=record,
            fresh=fresh,
            candidates=tuple(candidates),
            advice=advice.format(component=pin.component),
            message=f"pin {pin.id}: the cited text changed ({old}, now about {span(best.lines)})" + since(pin, record),
        )
    elsewhere = matching.in_other_files(reader, record)
    detail = f"text of {pin.id} not found in {pin.path}{since(pin, record)}"
    if record.lines[1] > source.count:
        noun = "line" if source.count == 1 else "lines"
        detail += f"; line {record.lines[1]} is past the end (file has {source.count} {noun})"
    return PinState(
        pin,
        "gone",
        "pin-gone",
        message=detail,
        recorded=record,
        candidates=tuple(elsewhere),
        advice=elsewhere_advice(pin, elsewhere),
    )
