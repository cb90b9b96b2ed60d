# Where pinned code stands today, and what became of it. Nothing is chosen among several places.
#
# The order of questions: is the file there; did the author edit the pin itself; does the symbol
# still exist once; are its tokens the recorded ones (then the cited lines are found by position among
# them); and only if they are not: what took their place.
"""`resolve`: one pin against its record and the current source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import NamedTuple

from sitegen.diagnostics import nearest
from sitegen.pins import matching
from sitegen.pins.alignment import Fate, fate
from sitegen.pins.definitions import Definition, named
from sitegen.pins.pin import Candidate, Lines, Pin, PinState, Record, place, text_digest, trimmed
from sitegen.pins.source import RangeInvalid, SourceReader, SourceRefused, SourceText, line_range
from sitegen.pins.tokens import Token, digest, lex

ACK = "read the new code against the page, then `sitegen repin --ack {component} --reason TEXT`"
EDIT = "edit {what} of the pin in the spec to quote the code as it now is, then `sitegen repin --ack {component} …`"
REPAIR = "`sitegen repin --write` records the new place"


class Spot(NamedTuple):
    """A place that the authored pin names now."""

    definition: Definition | None
    lines: Lines


def resolve(pin: Pin, record: Record | None, reader: SourceReader) -> PinState:
    """How the pin stands today. Reads files through `reader` and changes nothing."""
    try:
        if not (pin.symbol or pin.fragment.strip() or pin.lines):
            return _invalid(pin, record, "the pin names no symbol, fragment or lines", "give at least one of them")
        if pin.lines is not None:
            line_range(pin.lines)
        source = reader.read(pin.path)
        if pin.symbol and not source.is_python:
            return _invalid(
                pin,
                record,
                f"symbol {pin.symbol!r} in {pin.path}: symbols are known in Python files only",
                "quote a fragment, or give lines",
            )
        if record is None:
            return _unrecorded(pin, source)
        if record.binding != pin.binding:
            return _edited(pin, record, source)
        if pin.symbol:
            return _by_symbol(pin, record, source, reader)
        return _by_text(pin, record, source, reader)
    except SourceRefused as refusal:
        if not refusal.missing:
            kind = "unreadable"
            return PinState(
                pin,
                kind,
                refusal.code,
                message=f"pin {pin.id}: {refusal.message}",
                advice="make the file readable, or cite another one",
                recorded=record,
            )
        candidates = matching.in_other_files(reader, record) if record and record.path == pin.path else []
        return PinState(
            pin,
            "gone",
            "pin-gone",
            message=f"pin {pin.id}: {refusal.message}",
            recorded=record,
            candidates=tuple(candidates),
            advice=_elsewhere(pin, candidates),
        )
    except RangeInvalid as error:
        return _invalid(pin, record, f"{pin.path}: {error}", "lines are [first, last], counted from 1, both included")


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


# --- pins without a record, and pins that their author edited ------------------------------------------


def _unrecorded(pin: Pin, source: SourceText) -> PinState:
    if pin.digest and pin.lines and not (pin.symbol or pin.fragment.strip()):
        return _by_digest(pin, source)
    state = _one_spot(pin, None, source)
    if isinstance(state, PinState):
        return state
    fresh = record_at(pin, source, state)
    if pin.digest and text_digest(fresh.text) != pin.digest.lower():
        return PinState(
            pin,
            "changed",
            "pin-changed",
            fresh.lines,
            fresh.text,
            recorded=None,
            message=f"pin {pin.id}: {place(pin.path, fresh.lines)} has digest {text_digest(fresh.text)[:12]}, "
            f"the spec says {pin.digest[:12]}",
            advice="read the code, then correct the digest in the spec",
        )
    return PinState(
        pin,
        "new",
        "pin-moved",
        fresh.lines,
        fresh.text,
        fresh=fresh,
        message=f"pin {pin.id}: {place(pin.path, fresh.lines)} is not recorded yet",
        advice="`sitegen repin --write` records a new pin",
    )


def _by_digest(pin: Pin, source: SourceText) -> PinState:
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
    return _moved_text(pin, None, source, found)


def _one_spot(pin: Pin, record: Record | None, source: SourceText) -> Spot | PinState:
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
            + ", ".join(_span(spot.lines) for spot in spots[:6]),
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
    quoted = record_of_fragment(pin)
    return PinState(
        pin,
        "gone",
        "pin-gone",
        recorded=record,
        message=f"pin {pin.id}: fragment {shown[:60]!r} does not stand in {pin.symbol or pin.path}",
        candidates=tuple(matching.similar_lines(source, quoted, within)),
        advice="quote the code as it is written",
    )


def record_of_fragment(pin: Pin) -> Record:
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


def _edited(pin: Pin, record: Record, source: SourceText) -> PinState:
    """The spec now binds something else than was recorded: never taken over without a person's word."""
    spot = _one_spot(pin, record, source)
    if isinstance(spot, PinState):
        return spot
    fresh = record_at(pin, source, spot, record)
    same_place = (
        (fresh.path, fresh.symbol, fresh.symbol_code, fresh.code)
        == (record.path, record.symbol, record.symbol_code, record.code)
        and fresh.ordinal == record.ordinal
        and (pin.symbol != "" or fresh.text == record.text)
    )
    if same_place:
        return _compared(pin, record, fresh)
    old, new = place(record.path, record.lines), place(fresh.path, fresh.lines)
    advice = ACK.format(component=pin.component)
    if fresh.code and record.symbol and fresh.body_code == record.body_code and fresh.symbol != record.symbol:
        return PinState(
            pin,
            "renamed",
            "pin-changed",
            fresh.lines,
            fresh.text,
            recorded=record,
            fresh=fresh,
            advice=advice,
            message=f"pin {pin.id}: {record.symbol} ({old}) is {fresh.symbol} now ({new}), with the same body",
        )
    return PinState(
        pin,
        "changed",
        "pin-changed",
        fresh.lines,
        fresh.text,
        recorded=record,
        fresh=fresh,
        advice=advice,
        message=f"pin {pin.id}: the spec now cites {new}; {old} was recorded, with other code",
    )


# --- pins on a symbol -------------------------------------------------------------------------------------


def _by_symbol(pin: Pin, record: Record, source: SourceText, reader: SourceReader) -> PinState:
    same_name = named(source.definitions, record.symbol)
    if len(same_name) > record.same_name:
        return PinState(
            pin,
            "ambiguous",
            "pin-ambiguous",
            recorded=record,
            message=f"pin {pin.id}: {record.symbol} is defined {len(same_name)} times in {pin.path}: "
            + ", ".join(_span(definition.lines) for definition in same_name[:6]),
            candidates=tuple(_as_candidates(source, same_name, record)),
            advice=f"remove the copy, or name one of them in the spec (`{record.symbol}#2`)",
        )
    named_now = named(source.definitions, pin.symbol)
    intact = [d for d in named_now if trimmed(source.excerpt(d.lines)) == record.symbol_text]
    old = lex("\n".join(record.symbol_text), PurePosixPath(pin.path).suffix)
    if not intact:
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
    lines: Lines | None = (start + first, start + last)
    if trimmed(source.excerpt(definition.lines)) != record.symbol_text:
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
    return _compared(pin, record, record_at(pin, source, Spot(definition, lines or definition.lines), record))


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


def _compared(pin: Pin, record: Record, fresh: Record) -> PinState:
    """Same code: tells unchanged, moved, reformatted and comment-only apart."""
    if fresh.text == record.text and fresh.lines == record.lines:
        return PinState(pin, "unchanged", "", fresh.lines, fresh.text, recorded=record, fresh=fresh)
    changes = []
    if fresh.lines != record.lines:
        changes.append(f"moved to {_span(fresh.lines)}")
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
        message=f"pin {pin.id}: {place(record.path, record.lines)} {' and '.join(changes)}{_revisions(pin, record)}",
    )


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
        message=f"pin {pin.id}: {record.symbol} ({old}) is gone from {pin.path}{_revisions(pin, record)}",
        advice=_elsewhere(pin, candidates),
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
            message=f"pin {pin.id}: code of {record.symbol} changed ({old}, now {_span(fresh.lines)})"
            + _revisions(pin, record),
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
            + ", ".join(_span(lines) for lines in places[:6]),
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
            message=f"pin {pin.id}: code of {record.symbol} changed {what} ({old}, now {_span(fresh.lines)})",
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
        message=f"pin {pin.id}: the cited lines of {record.symbol} changed ({old}, now about {_span(end.lines)})",
    )


def _split(pin: Pin, record: Record, source: SourceText, end: Fate, fresh: Record | None) -> PinState:
    parts = list(end.split_into)
    names = ", ".join(f"{d.symbol} ({_span(d.lines)})" for d in parts)
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


# --- pins on text -----------------------------------------------------------------------------------------


def _by_text(pin: Pin, record: Record, source: SourceText, reader: SourceReader) -> PinState:
    places = matching.text_places(source, record.text)
    if not pin.fragment.strip():
        assert pin.lines is not None
        if pin.lines != record.lines:
            return _relined(pin, record, source)
        if pin.lines in places:
            return _compared(pin, record, record_at(pin, source, Spot(None, pin.lines), record))
    if places:
        return _moved_text(pin, record, source, places)
    same_code = matching.code_places(source, record)
    if len(same_code) == 1 and (
        not pin.fragment.strip() or matching.fragment_holds(source, pin.fragment, same_code[0])
    ):
        return _compared(pin, record, record_at(pin, source, Spot(None, same_code[0]), record))
    if len(same_code) > 1:
        return _moved_text(pin, record, source, same_code)
    if pin.fragment.strip():
        spots = matching.fragment_places(source, pin.fragment, matching.whole_file(source))
        if len(spots) > 1:
            return _moved_text(pin, record, source, spots)
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
                f"({place(record.path, record.lines)}, now {_span(fresh.lines)})",
                advice=ACK.format(component=pin.component),
            )
    return _text_gone(pin, record, source, reader)


def _relined(pin: Pin, record: Record, source: SourceText) -> PinState:
    """The author wrote other lines than were recorded."""
    spot = _one_spot(pin, record, source)
    if isinstance(spot, PinState):
        return spot
    fresh = record_at(pin, source, spot, record)
    if fresh.text == record.text:
        return _compared(pin, record, fresh)
    return PinState(
        pin,
        "changed",
        "pin-changed",
        fresh.lines,
        fresh.text,
        recorded=record,
        fresh=fresh,
        message=f"pin {pin.id}: the spec now cites {place(pin.path, fresh.lines)}; {_span(record.lines)} was recorded, "
        "with other text",
        advice=ACK.format(component=pin.component),
    )


def _moved_text(pin: Pin, record: Record | None, source: SourceText, places: Sequence[Lines]) -> PinState:
    """Text that stands at these places, none of them the recorded one for certain."""
    old = place(pin.path, record.lines if record else pin.lines)
    if len(places) == 1:
        fresh = record_at(pin, source, Spot(None, places[0]), record)
        if record is not None:
            return _compared(pin, record, fresh)
        return PinState(
            pin,
            "moved",
            "pin-moved",
            fresh.lines,
            fresh.text,
            fresh=fresh,
            advice=REPAIR,
            message=f"pin {pin.id}: {old} moved to {_span(fresh.lines)}{_revisions(pin, record)}",
        )
    if not places:
        try:
            source.excerpt(pin.lines or (1, 1))
            detail = f"text of {pin.id} not found in {pin.path}{_revisions(pin, record)}"
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
        + ", ".join(_span(lines) for lines in places[:6]),
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
            message=f"pin {pin.id}: the cited text changed ({old}, now about {_span(best.lines)})"
            + _revisions(pin, record),
        )
    elsewhere = matching.in_other_files(reader, record)
    detail = f"text of {pin.id} not found in {pin.path}{_revisions(pin, record)}"
    if record.lines[1] > source.count:
        detail += f"; line {record.lines[1]} is past the end (file has {source.count} lines)"
    return PinState(
        pin,
        "gone",
        "pin-gone",
        message=detail,
        recorded=record,
        candidates=tuple(elsewhere),
        advice=_elsewhere(pin, elsewhere),
    )


# --- wording ----------------------------------------------------------------------------------------------


def _invalid(pin: Pin, record: Record | None, message: str, advice: str) -> PinState:
    return PinState(
        pin, "unreadable", "schema-invalid", message=f"pin {pin.id}: {message}", advice=advice, recorded=record
    )


def _span(lines: Lines) -> str:
    return f"{lines[0]}" if lines[0] == lines[1] else f"{lines[0]}-{lines[1]}"


def _elsewhere(pin: Pin, candidates: Sequence[Candidate]) -> str:
    if candidates and candidates[0].path != pin.path:
        return f"the same code stands at {place(candidates[0].path, candidates[0].lines)}: name it in the spec"
    if candidates:
        return f"most alike: {candidates[0]}; name the right code in the spec, or drop the citation"
    return "name the code that the page speaks of now, or drop the citation"


def _revisions(pin: Pin, record: Record | None) -> str:
    old = record.revision if record else ""
    if old and pin.revision and old != pin.revision:
        return f" (recorded at {old}, now at {pin.revision})"
    return f" at {pin.revision}" if pin.revision else ""


def function_digest(reader: SourceReader, path: str, symbol: str) -> str:
    """Token digest (SHA-256, hex) of one symbol's code, decorators included.

    Comments, docstrings and layout do not enter, so it changes only when the code may do something else.

    Raises:
        SourceRefused: when the file cannot be read or parsed, or does not define the symbol exactly once.
    """
    source = reader.read(path)
    found = named(source.definitions, symbol)
    if len(found) != 1:
        hint = nearest(symbol, (definition.symbol for definition in source.definitions))
        raise SourceRefused("pin-gone", f"{path} defines {symbol} {len(found)} times; {hint}", missing=not found)
    return digest(source.lexed.code_in(found[0].lines))


def symbol_digests(reader: SourceReader, path: str) -> dict[str, str]:
    """Token digest of every symbol of a Python file; the second of a name is under `name#2`."""
    source = reader.read(path)
    return {
        d.symbol if d.ordinal == 1 else f"{d.symbol}#{d.ordinal}": digest(source.lexed.code_in(d.lines))
        for d in source.definitions
    }


def relabelled(record: Record, pin: Pin) -> Record:
    """The record with the pin's present revision."""
    return replace(record, revision=pin.revision)
