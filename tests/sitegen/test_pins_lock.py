"""The lock file: read back as written, refused when damaged, replaced in one step, one writer at a time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from sitegen.diagnostics import SpecInvalid
from sitegen.pins import (
    Acknowledgement,
    Lock,
    MemoryReader,
    Pin,
    UpstreamRecord,
    parse_lock,
    read_lock,
    repin,
    write_lock,
)

ROOT = Path(__file__).resolve().parents[2]
TEXT = "def f(x):\n    y = g(x)  # \u2028 é\n    return y\n\n\ndef h(x):\n    return x\n"


def a_lock() -> Lock:
    pins = [
        Pin("a/b", "one", "m.py", symbol="f"),
        Pin("a/b", "two", "m.py", symbol="f", fragment="y = g(x)", revision="R1"),
        Pin("c", "one", "m.py", fragment="return x"),
        Pin("c", "all", "m.py", lines=(1, 7)),
    ]
    lock = repin(pins, Lock(), MemoryReader({"m.py": TEXT}), write=True).lock
    records = dict(lock.pins)
    records["c", "one"] = replace(records["c", "one"], acknowledged=Acknowledgement("2026-01-02", "read", "changed"))
    return Lock(records, {("c", "up"): UpstreamRecord("o/r", "a" * 40, "m.py", (1, 2), "b" * 64)})


def test_a_lock_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    lock, path = a_lock(), tmp_path / "spec/pins.json"
    assert write_lock(path, lock) is True
    assert read_lock(path) == lock
    before = path.stat().st_mtime_ns
    assert write_lock(path, lock) is False, "an equal lock is not written again"
    assert path.stat().st_mtime_ns == before
    assert [p.name for p in path.parent.iterdir()] == ["pins.json"]


def test_equal_texts_are_kept_once_and_lines_are_sorted() -> None:
    content = json.loads(a_lock().to_text())
    assert len(content["texts"]) == 4  # f, its cited line, the line of h, and the whole file
    assert list(content["pins"]) == ["a/b", "c"]
    assert parse_lock(a_lock().to_text().encode(), "x").to_text() == a_lock().to_text()


def test_no_file_is_an_empty_lock(tmp_path: Path) -> None:
    assert read_lock(tmp_path / "pins.json") == Lock()


def changed(edit) -> bytes:  # noqa: ANN001
    content = json.loads(a_lock().to_text())
    edit(content)
    return json.dumps(content).encode()


def _text_edit(content: dict) -> None:
    reference = content["pins"]["c"]["one"]["text"]
    content["texts"][reference] = ["    return 2"]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is not JSON"),
        (a_lock().to_text().encode()[:-40], "is not JSON"),
        (b"\xff", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "is not an object"),
        (b'{"schema": 1, "schema": 1}', "given twice"),
        (b'{"schema": 2}', "has schema 2, this version reads 1"),
        (changed(lambda c: c.pop("texts")), "has the keys"),
        (changed(lambda c: c.update(pins=[])), "pins is not an object"),
        (changed(lambda c: c["pins"].update(c=1)), "c is not an object"),
        (changed(lambda c: c["pins"]["c"].update(one=[])), "c/one is not an object"),
        (changed(lambda c: c["pins"]["c"]["one"].pop("code")), "c/one has the keys"),
        (changed(lambda c: c["pins"]["c"]["one"].update(code=7)), "code is not text"),
        (changed(lambda c: c["pins"]["c"]["one"].update(ordinal=0)), "ordinal is not a count"),
        (changed(lambda c: c["pins"]["c"]["one"].update(lines=[7])), "is no line range"),
        (changed(lambda c: c["pins"]["c"]["one"].update(lines=[9, 7])), "is no line range"),
        (changed(lambda c: c["pins"]["c"]["one"].update(lines=[6, 7])), "differ in length"),
        (changed(lambda c: c["pins"]["c"]["one"].update(text="0")), "text names no text"),
        (changed(lambda c: c["pins"]["a/b"]["two"].update(symbol_lines=[2, 4])), "is no part of"),
        (changed(lambda c: c["pins"]["c"]["one"].update(acknowledged={"date": 1})), "acknowledged is not"),
        (changed(_text_edit), "does not have its digest"),
        (changed(lambda c: c["texts"].update(x="y")), "is no list"),
        (changed(lambda c: c["upstream"]["c"]["up"].update(lines=[0, 1])), "is no line range"),
        (changed(lambda c: c["upstream"]["c"]["up"].pop("digest")), "has the keys"),
    ],
)
def test_a_damaged_lock_is_a_finding(data: bytes, says: str) -> None:
    with pytest.raises(SpecInvalid) as refusal:
        parse_lock(data, "spec/m/pins.json")
    [found] = refusal.value.findings
    assert (found.code, found.where.file) == ("facts-invalid", "spec/m/pins.json")
    assert says in found.message


def test_a_forged_digest_is_noticed_where_it_would_matter() -> None:
    """Writing today's digest over the recorded one does not make changed code unchanged."""
    from sitegen.pins import check
    from sitegen.pins.tokens import digest, lex

    edited = TEXT.replace("g(x)", "k(x)")
    lock, pin = a_lock(), Pin("a/b", "one", "m.py", symbol="f")
    forged = replace(lock.pins["a/b", "one"], symbol_code=digest(lex(edited, ".py").code_in((1, 3))))
    for record, expected in ((lock.pins["a/b", "one"], "pin-changed"), (forged, "facts-invalid")):
        [state] = check([pin], Lock({("a/b", "one"): record}), MemoryReader({"m.py": edited}))
        assert state.code == expected


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from sitegen.pins import FolderReader, Pin, repin_file
root = Path(sys.argv[2])
pins = [Pin(c, f"p{i}", "m.py", symbol=f"f{i}") for c in ("a", "b") for i in range(40)]
print("ready", flush=True)
for turn in range(int(sys.argv[4])):
    repin_file(root / "pins.json", pins, FolderReader(root), root=root, ack=sys.argv[3], reason=f"turn {turn}")
"""


def _pinned_folder(root: Path) -> None:
    from sitegen.pins import FolderReader, repin_file

    (root / "m.py").write_text("".join(f"def f{i}(x):\n    return x + {i}\n" for i in range(40)))
    pins = [Pin(c, f"p{i}", "m.py", symbol=f"f{i}") for c in ("a", "b") for i in range(40)]
    repin_file(root / "pins.json", pins, FolderReader(root), root=root, write=True)
    (root / "m.py").write_text("".join(f"def f{i}(x):\n    return x * {i}\n" for i in range(40)))


def _writer(root: Path, component: str, turns: int) -> subprocess.Popen:
    arguments = [sys.executable, "-c", WRITER, str(ROOT), str(root), component, str(turns)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def _ended(writer: subprocess.Popen) -> int:
    writer.communicate(timeout=60)
    return writer.returncode


def test_two_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    _pinned_folder(tmp_path)
    writers = [_writer(tmp_path, component, 1) for component in ("a", "b")]
    assert [_ended(writer) for writer in writers] == [0, 0]
    lock = read_lock(tmp_path / "pins.json")
    assert {key[0] for key, record in lock.pins.items() if record.acknowledged} == {"a", "b"}
    assert sum(record.acknowledged is not None for record in lock.pins.values()) == 80


def test_a_killed_writer_leaves_the_old_or_the_new_file(tmp_path: Path) -> None:
    _pinned_folder(tmp_path)
    for delay in (0.0, 0.01, 0.03):
        writer = _writer(tmp_path, "a", 1000)
        assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
        time.sleep(delay)
        os.kill(writer.pid, signal.SIGKILL)
        assert _ended(writer) == -signal.SIGKILL
        lock = read_lock(tmp_path / "pins.json")  # raises if it were neither
        assert len(lock.pins) == 80
    assert _ended(_writer(tmp_path, "b", 1)) == 0, "the next run is not blocked"
