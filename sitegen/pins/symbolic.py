# Pins on a symbol: is its definition still there once, with the recorded tokens? If not, what became of it?
"""Pins that name a symbol, against the present file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from sitegen.pins import matching
from sitegen.pins.alignment import Fate, fate
from sitegen.pins.definitions import Definition, named
from sitegen.pins.pin import Candidate, Lines, Pin, PinState, Record, place, trimmed
from sitegen.pins.source import SourceReader, SourceText
from sitegen.pins.spots import ACK, EDIT, Spot, compared, elsewhere_advice, record_at, since, span
from sitegen.pins.tokens import digest, lex


def by_symbol(pin: Pin, record: Record, source: SourceText, reader: SourceReader) -> PinState:
    same_name = named(source.definitions, record.symbol)
    if len(same_name) > record.same_name:
        return PinState(
            pin,
            "ambiguous",
            "pin-ambiguous",
            recorded=record,
            message=f"pin {pin.id}: {record.symbol} is defined {len(same_name)} times in {pin.path}: "
            + ", ".join(span(definition.lines) for definition in same_name[:6]),
            candidates=tuple(_as_candidates(source, same_name, record)),
            advice=f"remove the copy, or name one of them in the spec (`{record.symbol}#2`)",
        )
    named_now = named(source.definitions, pin.symbol)
    intact = [d for d in named_now if trimmed(source.excerpt(d.lines)) == record.symbol_text]
    if not intact:
        old = lex("\n".join(record.symbol_text), PurePosixPath(pin.path).suffix)
        if digest(old.code_in((1, 10**9))) != record.symbol_code:
            return PinState(
                pin,
                "unreadable",
                "facts-invalid",
                recorded=record,
                message=f"pin {pin.id}: the recorded text of {record.symbol} does not have the recorded digest",
                advice="restore the lock file from version control; it is written by `sitegen repin` alone",
            )
        intact = [d for d in named_now if digest(source.lexed.code_in(d.lines)) == record.symbol_code]
    if len(intact) > 1:
        intact = [d for d in intact if d.ordinal == record.ordinal] or intact
    if len(intact) == 1:
        return _in_intact(pin, record, source, intact[0])
    if not named_now:
        return _symbol_gone(pin, record, source, reader)
    definition = next((d for d in named_now if d.ordinal == record.ordinal), named_now[0])
    return _in_changed(pin, record, source, definition)


def _as_candidates(source: SourceText, found: Sequence[Definition], record: Record) -> list[Candidate]:
    words = [t.text for t in lex("\n".join(record.symbol_text), PurePosixPath(source.path).suffix).code]
    return matching.ranked(
        [
            Candidate(
                matching.similarity(words, [t.text for t in source.lexed.code_in(d.lines)]),
                source.path,
                d.lines,
                d.symbol,
                source.excerpt(d.lines),
            )
            for d in found
        ]
    )


def _in_intact(pin: Pin, record: Record, source: SourceText, definition: Definition) -> PinState:
    """The definition has the recorded tokens, so the cited ones are found by their position."""
    first, last = record.lines_within
    start = definition.lines[0]
    if trimmed(source.excerpt(definition.lines)) == record.symbol_text:  # then every digest is the recorded one
        fresh = replace(
            record,
            lines=(start + first, start + last),
            symbol_lines=definition.lines,
            ordinal=definition.ordinal,
            revision=pin.revision,
        )
        return compared(pin, record, fresh)
    lines = definition.lines if not pin.fragment.strip() else _by_position(pin, record, source, definition)
    if lines is None or (pin.fragment.strip() and not matching.fragment_holds(source, pin.fragment, lines)):
        return PinState(
            pin,
            "changed",
            "pin-changed",
            lines,
            source.excerpt(lines or definition.lines),
            recorded=record,
            message=f"pin {pin.id}: {record.symbol} does the same, but the quoted text of "
            f"{place(record.path, record.lines)} no longer reads so",
            advice=EDIT.format(what="the fragment", component=pin.component),
        )
    return compared(pin, record, record_at(pin, source, Spot(definition, lines), record))


def _by_position(pin: Pin, record: Record, source: SourceText, definition: Definition) -> Lines | None:
    old = lex("\n".join(record.symbol_text), PurePosixPath(pin.path).suffix)
    whole_start, _ = old.code_span((1, len(record.symbol_text)))
    first, last = record.lines_within
    start, stop = old.code_span((first + 1, last + 1))
    if start == stop:  # the cited lines are comments: only their text can be looked for
        found = matching.fragment_places(source, pin.fragment, definition.lines)
        return found[0] if len(found) == 1 else None
    base, _ = source.lexed.code_span(definition.lines)
    code = source.lexed.code
    lines = code[base + start - whole_start].line, code[base + stop - 1 - whole_start].end
    exact = matching.fragment_places(source, pin.fragment, lines)
    around = matching.fragment_places(source, pin.fragment, definition.lines)
    if not exact and len(around) == 1 and around[0][0] <= lines[1] and around[0][1] >= lines[0]:
        return around[0]
    return matching.over_comments(source, lines, pin.fragment, definition.lines)


def _symbol_gone(pin: Pin, record: Record, source: SourceText, reader: SourceReader) -> PinState:
    old = place(record.path, record.lines)
    twins = matching.same_body(source, record)
    candidates = _as_candidates(source, twins, record)
    if len(twins) == 1:
        new = twins[0]
        return PinState(
            pin,
            "renamed",
            "pin-changed",
            new.lines,
            source.excerpt(new.lines),
            recorded=record,
            candidates=tuple(candidates),
            message=f"pin {pin.id}: {record.symbol} ({old}) is {new.symbol} now "
            f"({place(source.path, new.lines)}), with the same body",
            advice=f"set `symbol: {new.symbol}` in the spec, then `sitegen repin --ack {pin.component} --reason TEXT`",
        )
    if len(twins) > 1:
        return PinState(
            pin,
            "ambiguous",
            "pin-ambiguous",
            recorded=record,
            candidates=tuple(candidates),
            message=f"pin {pin.id}: {record.symbol} ({old}) is gone, and its body stands in {len(twins)} definitions: "
            + ", ".join(d.symbol for d in twins[:6]),
            advice="name the right one in the spec",
        )
    end: Fate = fate(record, source, None)
    if end.split_into:
        return _split(pin, record, source, end, None)
    elsewhere = matching.in_other_files(reader, record)
    words = lex("\n".join(record.symbol_text), PurePosixPath(pin.path).suffix).code
    candidates = elsewhere or matching.similar_definitions(source, words)
    return PinState(
        pin,
        "gone",
        "pin-gone",
        recorded=record,
        candidates=tuple(candidates),
        message=f"pin {pin.id}: {record.symbol} ({old}) is gone from {pin.path}{since(pin, record)}",
        advice=elsewhere_advice(pin, candidates),
    )


def _in_changed(pin: Pin, record: Record, source: SourceText, definition: Definition) -> PinState:
    """The definition is there with other tokens."""
    old = place(record.path, record.lines)
    end = fate(record, source, definition)
    if not pin.fragment.strip():
        fresh = record_at(pin, source, Spot(definition, definition.lines), record)
        if end.split_into:
            return _split(pin, record, source, end, fresh)
        return PinState(
            pin,
            "changed",
            "pin-changed",
            fresh.lines,
            fresh.text,
            recorded=record,
            fresh=fresh,
            message=f"pin {pin.id}: code of {record.symbol} changed ({old}, now {span(fresh.lines)})"
            + since(pin, record),
            advice=ACK.format(component=pin.component),
        )
    places = matching.fragment_places(source, pin.fragment, definition.lines)
    if len(places) > 1:
        return PinState(
            pin,
            "ambiguous",
            "pin-ambiguous",
            recorded=record,
            message=f"pin {pin.id}: the quoted fragment stands {len(places)} times in {record.symbol}: "
            + ", ".join(span(lines) for lines in places[:6]),
            candidates=tuple(
                Candidate(1.0, pin.path, x, record.symbol, source.excerpt(x))
                for x in places[: matching.MOST_CANDIDATES]
            ),
            advice=EDIT.format(what="the fragment", component=pin.component) + " (quote more lines)",
        )
    if len(places) == 1:
        fresh = record_at(pin, source, Spot(definition, places[0]), record)
        what = "around the cited lines" if fresh.code == record.code else "beside the quoted fragment"
        return PinState(
            pin,
            "changed",
            "pin-changed",
            fresh.lines,
            fresh.text,
            recorded=record,
            fresh=fresh,
            message=f"pin {pin.id}: code of {record.symbol} changed {what} ({old}, now {span(fresh.lines)})",
            advice=ACK.format(component=pin.component),
        )
    if end.split_into:
        return _split(pin, record, source, end, None)
    candidates = matching.similar_lines(source, record, definition.lines)
    advice = EDIT.format(what="the fragment", component=pin.component)
    if end.lines is None:
        return PinState(
            pin,
            "gone",
            "pin-gone",
            recorded=record,
            candidates=tuple(candidates),
            message=f"pin {pin.id}: the cited lines ({old}) are gone from {record.symbol}",
            advice=advice,
        )
    return PinState(
        pin,
        "changed",
        "pin-changed",
        end.lines,
        source.excerpt(end.lines),
        recorded=record,
        candidates=tuple(candidates),
        advice=advice,
        message=f"pin {pin.id}: the cited lines of {record.symbol} changed ({old}, now about {span(end.lines)})",
    )


def _split(pin: Pin, record: Record, source: SourceText, end: Fate, fresh: Record | None) -> PinState:
    parts = list(end.split_into)
    names = ", ".join(f"{d.symbol} ({span(d.lines)})" for d in parts)
    advice = (
        ACK.format(component=pin.component)
        if fresh
        else EDIT.format(what="symbol and fragment", component=pin.component)
    )
    return PinState(
        pin,
        "ambiguous",
        "pin-ambiguous",
        recorded=record,
        fresh=fresh,
        lines=fresh.lines if fresh else None,
        text=fresh.text if fresh else (),
        message=f"pin {pin.id}: {record.symbol} ({place(record.path, record.lines)}) was split; parts are in {names}",
        candidates=tuple(
            Candidate(round(share, 3), source.path, d.lines, d.symbol, source.excerpt(d.lines))
            for d, share in sorted(end.shares.items(), key=lambda entry: -entry[1])
        ),
        advice=advice,
    )
