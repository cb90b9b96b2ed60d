# Pins bind statements to code, and tell what became of it.
"""Pins: cited places of source code that never silently come to show other code.

`check` compares pins with their lock file, `findings` reports, `repin_file` repairs and acknowledges;
`function_digest` names the code of one symbol. Floors, lowest first: strings, normal, tokens, definitions,
source, pin, matching, alignment, spots, symbolic and textual, resolution, lock, report, repair and upstream.
"""

from sitegen.pins.lock import FILE_NAME, Lock, UpstreamRecord, parse_lock, read_lock, write_lock
from sitegen.pins.pin import KINDS, Acknowledgement, Candidate, Lines, Pin, PinState, Record, place, text_digest
from sitegen.pins.repair import LinesEdit, Repin, acknowledgements, check_all, edit_lines, repin, repin_file
from sitegen.pins.report import PinFinding, check, finding, findings, state_json, summary
from sitegen.pins.resolution import function_digest, resolve, symbol_digests
from sitegen.pins.source import (
    FolderReader,
    MemoryReader,
    RangeInvalid,
    SourceReader,
    SourceRefused,
    SourceText,
    line_range,
)
from sitegen.pins.upstream import UpstreamPin, UpstreamState, check_upstream, with_upstream

__all__ = [
    "FILE_NAME",
    "KINDS",
    "Acknowledgement",
    "Candidate",
    "FolderReader",
    "Lines",
    "LinesEdit",
    "Lock",
    "MemoryReader",
    "Pin",
    "PinFinding",
    "PinState",
    "RangeInvalid",
    "Record",
    "Repin",
    "SourceReader",
    "SourceRefused",
    "SourceText",
    "UpstreamPin",
    "UpstreamRecord",
    "UpstreamState",
    "acknowledgements",
    "check",
    "check_all",
    "check_upstream",
    "edit_lines",
    "finding",
    "findings",
    "function_digest",
    "line_range",
    "parse_lock",
    "place",
    "read_lock",
    "repin",
    "repin_file",
    "resolve",
    "state_json",
    "summary",
    "symbol_digests",
    "text_digest",
    "with_upstream",
    "write_lock",
]
