"""`repin`: what it repairs, what it refuses, and what an acknowledgement leaves behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from sitegen.diagnostics import Location, SitegenError
from sitegen.pins import (
    FolderReader,
    Lock,
    MemoryReader,
    Pin,
    acknowledgements,
    check,
    check_all,
    read_lock,
    repin,
    repin_file,
    summary,
)
from sitegen.pins.repair import LinesEdit, edit_lines

BASE = "def f(x):\n    y = g(x, 1)\n    return y\n\n\ndef h(x):\n    return f(x)\n"
F, G, H = (
    Pin("mix", "f", "m.py", symbol="f"),
    Pin("mix", "g", "m.py", symbol="f", fragment="y = g(x, 1)"),
    Pin("read", "h", "m.py", symbol="h"),
)


def lock_of(pins: list[Pin], text: str = BASE) -> Lock:
    return repin(pins, Lock(), MemoryReader({"m.py": text}), write=True).lock


def test_without_write_nothing_changes_and_everything_is_shown() -> None:
    lock = lock_of([F, G, H])
    done = repin([F, G, H], lock, MemoryReader({"m.py": "import os\n" + BASE.replace("f(x)\n", "f(x) + 1\n")}))
    assert done.lock.pins == lock.pins
    assert done.lines() == [
        "would be repaired: pin f: m.py:1-3 moved to 2-4",
        "would be repaired: pin g: m.py:2 moved to 3",
        "needs you: read/h: pin h: code of h changed (m.py:6-7, now 7-8)",
    ]
    assert [found.code for found in done.findings()] == ["pin-moved", "pin-moved", "pin-changed"]


def test_write_repairs_and_leaves_the_rest_reported() -> None:
    done = repin(
        [F, G, H], lock_of([F, G, H]), MemoryReader({"m.py": "import os\n" + BASE.replace("f(x)\n", "f(x) + 1\n")}),
        write=True,
    )  # fmt: skip
    assert {key: record.lines for key, record in done.lock.pins.items()} == {
        ("mix", "f"): (2, 4), ("mix", "g"): (3, 3), ("read", "h"): (6, 7),
    }  # fmt: skip
    assert [found.code for found in done.findings()] == ["pin-changed"]


def test_an_acknowledgement_is_for_one_component_and_keeps_its_reason() -> None:
    reader = MemoryReader({"m.py": BASE.replace("return y", "return y * 2").replace("f(x)\n", "f(x) + 1\n")})
    done = repin([F, G, H], lock_of([F, G, H]), reader, ack="mix", reason=" doubled, page says so ", today="2026-01-02")
    assert sorted(s.pin.id for s in done.acknowledged) == ["f", "g"]
    assert [s.pin.id for s in done.left] == ["h"]
    shown = acknowledgements(done.lock, "mix")
    assert {name: (a.date, a.reason, a.kind) for name, a in shown.items()} == {
        name: ("2026-01-02", "doubled, page says so", "changed") for name in ("f", "g")
    }
    moved = MemoryReader({"m.py": "import os\n" + reader.read("m.py").text})
    again = repin([F, G, H], done.lock, moved, write=True)
    assert acknowledgements(again.lock, "mix") == shown, "a repair keeps the reason"


@pytest.mark.parametrize(
    ("edit", "id_"),
    [
        (("g(x, 1)", "g(x, 2)"), "g"),
        (("    y = g(x, 1)\n", "    y = g(x, 1)\n    y = g(x, 1)\n"), "g"),
        (("    y = g(x, 1)\n", ""), "g"),
        (("def f", "def k"), "f"),
        (("def f", "def f(): pass\ndef f"), "f"),
        (("return y\n", "return (y\n"), "f"),
    ],
    ids=["fragment differs", "stands twice", "deleted", "renamed", "defined twice", "does not parse"],
)
def test_an_acknowledgement_never_anchors_where_the_pin_does_not_point(edit: tuple[str, str], id_: str) -> None:
    """Such a pin is edited in its spec first: no word of a person moves it to other code."""
    lock = lock_of([F, G, H])
    reader = MemoryReader({"m.py": BASE.replace(*edit)})
    done = repin([F, G, H], lock, reader, write=True, ack="mix", reason="fine")
    assert id_ in {state.pin.id for state in done.left}
    assert done.lock.pins["mix", id_] == lock.pins["mix", id_]


@pytest.mark.parametrize(
    ("ack", "reason", "says"),
    [
        ("mix", "", "needs a reason"),
        ("mix", " \n ", "needs a reason"),
        ("mxi", "fine", "no component 'mxi' has pins"),
        ("", "fine", "--reason belongs to --ack"),
        ("mix", "a\x1b[31mb", "U+001B"),
        ("mix", "a\u202eb", "U+202E"),
        ("mix", "x" * 2001, "more than 2000"),
    ],
)
def test_an_unusable_acknowledgement_is_refused(ack: str, reason: str, says: str) -> None:
    with pytest.raises(SitegenError) as refusal:
        repin([F], lock_of([F]), MemoryReader({"m.py": BASE}), ack=ack, reason=reason)
    assert says in str(refusal.value)


def test_records_of_vanished_pins_are_noticed_and_dropped_by_write() -> None:
    lock, reader = lock_of([F, G, H]), MemoryReader({"m.py": BASE})
    states, found = check_all([F, G], lock, reader)
    assert summary(states) == "2 pins: 2 unchanged"
    assert [(f.code, f.severity) for f in found] == [("pin-gone", "notice")]
    assert ("read", "h") in repin([F, G], lock, reader).lock.pins
    done = repin([F, G], lock, reader, write=True)
    assert done.dropped == (("read", "h"),) and ("read", "h") not in done.lock.pins


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("m.py", "x = 1\r\ny = 2\r\n", "\r\n\r\nx = 1\r\ny = 2\r\n"),
        ("m.txt", "x = 1\ny = 2", "new\n\nx = 1\ny = 2"),
    ],
)
def test_lines_in_a_spec_are_rewritten_where_they_stand(tmp_path: Path, path: str, before: str, after: str) -> None:
    spec = tmp_path / "spec/a.yml"
    spec.parent.mkdir()
    spec.write_bytes(b"# caf\xc3\xa9\r\ncode:\n  - {id: y, lines: [1, 2], note: '[1, 2]'}  # keep\n")
    (tmp_path / path).write_bytes(before.encode())
    pin = Pin("mix", "y", path, lines=(1, 2), lines_where=Location("spec/a.yml", 3, 20))
    repin_file(tmp_path / "spec/pins.json", [pin], FolderReader(tmp_path), root=tmp_path, write=True)
    (tmp_path / path).write_bytes(after.encode())
    repin_file(tmp_path / "spec/pins.json", [pin], FolderReader(tmp_path), root=tmp_path, write=True)
    assert spec.read_bytes() == b"# caf\xc3\xa9\r\ncode:\n  - {id: y, lines: [3, 4], note: '[1, 2]'}  # keep\n"
    moved = Pin("mix", "y", path, lines=(3, 4), lines_where=pin.lines_where)
    [state] = check([moved], read_lock(tmp_path / "spec/pins.json"), FolderReader(tmp_path))
    assert (state.kind, state.lines) == ("unchanged", (3, 4))


def test_lines_that_cannot_be_rewritten_are_left_to_the_author() -> None:
    text = "code:\n  lines:\n    - 1\n    - 2\n"
    with pytest.raises(SitegenError, match=r"write \[3, 4\] by hand"):
        edit_lines(text, LinesEdit(Location("a.yml", 3, 5), (1, 2), (3, 4)))
    pin = Pin("mix", "y", "m.py", lines=(2, 3))
    done = repin([pin], lock_of([pin]), MemoryReader({"m.py": "import os\n" + BASE}), write=True)
    assert [state.advice for state in done.left] == ["write lines: [3, 4]"]
    assert done.lock.pins["mix", "y"].lines == (2, 3)


def test_lines_changed_in_place_can_be_acknowledged_and_others_not() -> None:
    pin = Pin("mix", "y", "m.py", lines=(2, 3))
    lock = lock_of([pin])
    in_place = MemoryReader({"m.py": BASE.replace("g(x, 1)", "g(x, 2)")})
    assert repin([pin], lock, in_place, ack="mix", reason="two now", today="2026-01-02").acknowledged
    elsewhere = MemoryReader({"m.py": "import os\n" + BASE.replace("g(x, 1)", "g(x, 2)")})
    done = repin([pin], lock, elsewhere, ack="mix", reason="two now", today="2026-01-02")
    assert not done.acknowledged and done.left[0].lines == (3, 4)
