# The lock file: what was read when each pin was last looked at by a person or repaired by `repin`.
#
# Texts are kept once, under their digest, so that a damaged or edited text is noticed when it is read.
"""Reading and writing `spec/<model>/pins.json`."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from sitegen.diagnostics import Finding, Location, SpecInvalid
from sitegen.pins.pin import Acknowledgement, Pin, Record, text_digest

try:
    import fcntl
except ImportError:  # a platform without it: one `repin` at a time is then up to the user
    fcntl = None  # type: ignore[assignment]

SCHEMA = 1
FILE_NAME = "pins.json"
MAX_BYTES = 64 * 1024 * 1024

Key = tuple[str, str]


@dataclass(frozen=True)
class UpstreamRecord:
    """What was seen of an upstream range in a local checkout: the digest of its lines, never their text."""

    repository: str
    revision: str
    path: str
    lines: tuple[int, int]
    digest: str


@dataclass(frozen=True)
class Lock:
    """Records by (component id, pin id)."""

    pins: Mapping[Key, Record] = field(default_factory=dict)
    upstream: Mapping[Key, UpstreamRecord] = field(default_factory=dict)

    def of(self, pin: Pin) -> Record | None:
        return self.pins.get((pin.component, pin.id))

    def to_text(self) -> str:
        """The file's content: sorted, so that a change touches only its own lines."""
        texts: dict[str, list[str]] = {}
        pins: dict[str, dict[str, object]] = {}
        for (component, name), record in sorted(self.pins.items()):
            entry: dict[str, object] = asdict(record)
            for part in ("text", "symbol_text"):
                rows = getattr(record, part)
                reference = text_digest(rows)
                texts[reference] = list(rows)
                entry[part] = reference
            pins.setdefault(component, {})[name] = entry
        upstream: dict[str, dict[str, object]] = {}
        for (component, name), seen in sorted(self.upstream.items()):
            upstream.setdefault(component, {})[name] = asdict(seen)
        content = {"schema": SCHEMA, "pins": pins, "texts": dict(sorted(texts.items())), "upstream": upstream}
        return json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def read_lock(path: Path, shown: str = "") -> Lock:
    """The lock; an empty one when there is no file.

    Args:
        path: of the file.
        shown: how findings name it; by default as `path`.

    Raises:
        SpecInvalid: with a `facts-invalid` finding when the file is damaged, forged or of another schema.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return Lock()
    except OSError as error:
        raise _damaged(shown or str(path), f"cannot be read: {error.strerror}") from None
    return parse_lock(data, shown or str(path))


def parse_lock(data: bytes, shown: str) -> Lock:
    """The lock from its bytes; raises as `read_lock` does."""
    if len(data) > MAX_BYTES:
        raise _damaged(shown, f"is larger than {MAX_BYTES} bytes")
    try:
        content = json.loads(data.decode("utf-8"), object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise _damaged(shown, f"is not JSON: {error}") from None
    _expect(isinstance(content, dict), shown, "is not an object")
    _expect(
        content.get("schema") == SCHEMA, shown, f"has schema {content.get('schema')!r}, this version reads {SCHEMA}"
    )
    _expect(set(content) == {"schema", "pins", "texts", "upstream"}, shown, f"has the keys {sorted(content)}")
    for part in ("pins", "texts", "upstream"):
        _expect(isinstance(content[part], dict), shown, f"{part} is not an object")
    texts: dict[str, tuple[str, ...]] = {}
    for reference, rows in content["texts"].items():
        _expect(
            isinstance(rows, list) and all(isinstance(row, str) for row in rows), shown, f"text {reference} is no list"
        )
        _expect(text_digest(rows) == reference, shown, f"text {reference[:12]} does not have its digest")
        texts[reference] = tuple(rows)
    pins = {
        (component, name): _record(entry, texts, shown, f"{component}/{name}")
        for component, name, entry in _entries(content["pins"], shown)
    }
    upstream = {
        (component, name): _upstream(entry, shown, f"{component}/{name}")
        for component, name, entry in _entries(content["upstream"], shown)
    }
    return Lock(pins, upstream)


def _entries(content: Mapping[str, object], shown: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for component, pins in content.items():
        if not isinstance(pins, dict):
            raise _damaged(shown, f"{component} is not an object")
        for name, entry in pins.items():
            if not isinstance(entry, dict):
                raise _damaged(shown, f"{component}/{name} is not an object")
            yield component, name, entry


_STRINGS = ("path", "binding", "symbol", "code", "comments", "symbol_code", "body_code", "revision")
_NUMBERS = ("ordinal", "same_name", "occurrences")


def _record(entry: dict[str, Any], texts: Mapping[str, tuple[str, ...]], shown: str, name: str) -> Record:
    wanted = {f.name for f in fields(Record)}
    _expect(set(entry) == wanted, shown, f"{name} has the keys {sorted(entry)}")
    for key in _STRINGS:
        _expect(isinstance(entry[key], str), shown, f"{name}: {key} is not text")
    for key in _NUMBERS:
        _expect(_is_count(entry[key]), shown, f"{name}: {key} is not a count from 1")
    lines, symbol_lines = _lines(entry["lines"], shown, name), _lines(entry["symbol_lines"], shown, name)
    for key in ("text", "symbol_text"):
        _expect(isinstance(entry[key], str) and entry[key] in texts, shown, f"{name}: {key} names no text")
    text, symbol_text = texts[entry["text"]], texts[entry["symbol_text"]]
    _expect(len(text) == lines[1] - lines[0] + 1, shown, f"{name}: lines and text differ in length")
    _expect(len(symbol_text) == symbol_lines[1] - symbol_lines[0] + 1, shown, f"{name}: symbol_lines and text differ")
    first = lines[0] - symbol_lines[0]
    _expect(
        first >= 0 and symbol_text[first : first + len(text)] == text, shown, f"{name}: text is no part of symbol_text"
    )
    given = entry["acknowledged"]
    if given is not None:
        keys = {f.name for f in fields(Acknowledgement)}
        right = isinstance(given, dict) and set(given) == keys and all(isinstance(v, str) for v in given.values())
        _expect(right, shown, f"{name}: acknowledged is not a date, a reason and a kind")
        given = Acknowledgement(**given)
    return Record(
        **{
            **entry,
            "lines": lines,
            "symbol_lines": symbol_lines,
            "text": text,
            "symbol_text": symbol_text,
            "acknowledged": given,
        }
    )


def _upstream(entry: dict[str, Any], shown: str, name: str) -> UpstreamRecord:
    _expect(set(entry) == {f.name for f in fields(UpstreamRecord)}, shown, f"{name} has the keys {sorted(entry)}")
    for key in ("repository", "revision", "path", "digest"):
        _expect(isinstance(entry[key], str), shown, f"{name}: {key} is not text")
    return UpstreamRecord(**{**entry, "lines": _lines(entry["lines"], shown, name)})


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 10**9


def _lines(value: object, shown: str, name: str) -> tuple[int, int]:
    right = isinstance(value, list) and len(value) == 2 and all(_is_count(v) for v in value) and value[0] <= value[1]
    _expect(right, shown, f"{name}: {value!r} is no line range")
    assert isinstance(value, list)
    return value[0], value[1]


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"key {next(n for n in names if names.count(n) > 1)!r} is given twice")
    return result


def _expect(holds: bool, shown: str, message: str) -> None:
    if not holds:
        raise _damaged(shown, message)


def _damaged(shown: str, message: str) -> SpecInvalid:
    return SpecInvalid(
        [
            Finding(
                "facts-invalid",
                f"the pin record {message}",
                Location(shown),
                hint="restore the file from version control; it is written by `sitegen repin` alone",
            )
        ]
    )


def write_lock(path: Path, lock: Lock) -> bool:
    """Replaces the file in one step; leaves it alone when its content would be the same.

    Returns:
        Whether the file changed.
    """
    content = lock.to_text().encode("utf-8")
    with contextlib.suppress(OSError):
        if path.read_bytes() == content:
            return False
    replace_file(path, content)
    return True


def replace_file(path: Path, content: bytes, *, sync: bool = True) -> None:
    """Writes beside the file and renames, so that at any moment it is old or new.

    With `sync` also when the machine stops; without, when the program does.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def sweep(folder: Path, name: str) -> None:
    """Removes what killed runs left beside a file; for whoever holds the folder (`exclusive`)."""
    for left in folder.glob(f".{name}.*.tmp"):
        with contextlib.suppress(OSError):
            left.unlink()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Holds a folder for one writer at a time; the others wait. Leaves no file behind."""
    if fcntl is None:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
