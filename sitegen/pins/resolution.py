# Where pinned code stands today, and what became of it. Nothing is chosen among several places.
#
# The order of questions: is the file there; did the author edit the pin itself; does the symbol
# still exist once; are its tokens the recorded ones (then the cited lines are found by position among
# them); and only if they are not: what took their place.
"""`resolve`: one pin against its record and the current source."""

from __future__ import annotations

from sitegen.diagnostics import nearest
from sitegen.pins import matching
from sitegen.pins.definitions import named
from sitegen.pins.pin import Pin, PinState, Record, place, text_digest
from sitegen.pins.source import RangeInvalid, SourceReader, SourceRefused, SourceText, line_range
from sitegen.pins.spots import ACK, compared, elsewhere_advice, one_spot, record_at
from sitegen.pins.symbolic import by_symbol
from sitegen.pins.textual import by_digest, by_text
from sitegen.pins.tokens import digest


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
            return by_symbol(pin, record, source, reader)
        return by_text(pin, record, source, reader)
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
            advice=elsewhere_advice(pin, candidates),
        )
    except RangeInvalid as error:
        return _invalid(pin, record, f"{pin.path}: {error}", "lines are [first, last], counted from 1, both included")


def _unrecorded(pin: Pin, source: SourceText) -> PinState:
    if pin.digest and pin.lines and not (pin.symbol or pin.fragment.strip()):
        return by_digest(pin, source)
    state = one_spot(pin, None, source)
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


def _edited(pin: Pin, record: Record, source: SourceText) -> PinState:
    """The spec now binds something else than was recorded: never taken over without a person's word."""
    spot = one_spot(pin, record, source)
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
        return compared(pin, record, fresh)
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


def _invalid(pin: Pin, record: Record | None, message: str, advice: str) -> PinState:
    return PinState(
        pin, "unreadable", "schema-invalid", message=f"pin {pin.id}: {message}", advice=advice, recorded=record
    )


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
