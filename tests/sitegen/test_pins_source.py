"""Lines as git counts them, ranges that name no lines (P07, P08), and paths that leave the repository."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

from sitegen.pins import (
    FolderReader,
    Lock,
    MemoryReader,
    Pin,
    RangeInvalid,
    SourceRefused,
    SourceText,
    check,
    findings,
    line_range,
    repin,
    resolve,
)

SMALL = "a = 1\nb = 2\nc = 3\n"


@pytest.mark.parametrize("text", [SMALL, SMALL.removesuffix("\n")], ids=["final newline", "no final newline"])
@pytest.mark.parametrize(
    ("lines", "outcome"),
    [
        ([1, 1], "a = 1"),
        ([3, 4], "line 4 is past the end (file has 3 lines)"),
        ([0, 2], "lines count from 1"),
        ([3, 2], "range is reversed"),
        ([907, 946], "line 946 is past the end (file has 3 lines)"),
        ([2], "a range needs a first and a last line"),
        ([1, 3], SMALL.strip()),
        ([], "a range needs a first and a last line"),
        ([1, 2, 3], "a range needs a first and a last line"),
        (7, "a range needs a first and a last line"),
        (None, "a range needs a first and a last line"),
        ([True, 2], "a line number is a whole number"),
        (["1", "2"], "a line number is a whole number"),
        ([1.0, 2], "a line number is a whole number"),
        ([-3, -1], "lines count from 1"),
    ],
)
def test_a_range_is_taken_exactly_or_refused(text: str, lines: object, outcome: str) -> None:
    """P07: nothing is clamped, and no excerpt is empty."""
    source = SourceText("ref/small.py", text)
    try:
        excerpt = "\n".join(source.excerpt(line_range(lines)))
    except RangeInvalid as error:
        assert outcome in str(error)
        assert error.past_end == ("past the end" in outcome)
    else:
        assert excerpt == outcome


@pytest.mark.parametrize(
    ("lines", "code", "says"),
    [((3, 4), "pin-gone", "line 4 is past the end (file has 3 lines)"),
     ((0, 2), "schema-invalid", "lines count from 1"),
     ((3, 2), "schema-invalid", "range is reversed"),
     ((2,), "schema-invalid", "a range needs a first and a last line")],
)  # fmt: skip
def test_a_pin_with_such_a_range_is_a_finding(lines: tuple, code: str, says: str) -> None:
    [found] = findings(check([Pin("c", "b", "s.py", lines=lines)], Lock(), MemoryReader({"s.py": SMALL})))
    assert found.code == code
    assert says in found.message


def test_lines_follow_newline_bytes_alone() -> None:
    """P08: form feed, NEL and U+2028 end no line, for the excerpt, for `ast` and for the tokens."""
    text = "a = 1\n\x0c\nb = 2\n# \u2028 \x85 x\nc = 3\n"
    source = SourceText.from_bytes("ref/ff.py", text.encode())
    assert source.excerpt((5, 5)) == ("c = 3",)
    assert len(text.splitlines()) == 8  # what Python would have counted
    assert [d.lines for d in source.definitions] == [(1, 1), (3, 3), (5, 5)]
    assert [t.line for t in source.lexed.code if t.kind == "number"] == [1, 3, 5]
    pin = Pin("c", "c-line", "ref/ff.py", symbol="c")
    assert resolve(pin, None, MemoryReader({"ref/ff.py": text})).lines == (5, 5)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("", ()),
        ("\n", ("",)),
        ("x", ("x",)),
        ("x\r\ny\r\n", ("x", "y")),
        ("x\r\r\ny\r\r\n", ("x\r", "y\r")),
        ("x\ry\n", ("x\ry",)),
        ("x\x0by\x1cz\n", ("x\x0by\x1cz",)),
    ],
)
def test_line_ends(text: str, rows: tuple[str, ...]) -> None:
    source = SourceText("a.txt", text)
    assert source.lines == rows
    assert source.count == text.count("\n") + (not text.endswith("\n") and text != "")


def test_a_lone_carriage_return_ends_a_line_for_the_compiler_only() -> None:
    """Python's compiler sees two statements on the first line; both stand on line 1 for git."""
    text = "a = 1\rb = 2\nclass C:\n    def f(self):\r\n        return 3\n"
    assert len(ast.parse(text).body) == 3
    source = SourceText("a.py", text)
    assert {d.symbol: d.lines for d in source.definitions} == {
        "a": (1, 1), "b": (1, 1), "C": (2, 4), "C.f": (3, 4),
    }  # fmt: skip
    assert [(t.text, t.line) for t in source.lexed.code if t.kind == "number"] == [("1", 1), ("2", 1), ("3", 4)]


def test_a_bom_is_no_text_and_a_declared_encoding_is_used() -> None:
    assert SourceText.from_bytes("a.py", b"\xef\xbb\xbfx = 1\n").lines == ("x = 1",)
    assert SourceText.from_bytes("a.txt", b"\xef\xbb\xbfx\n").lines == ("x",)
    latin = SourceText.from_bytes("a.py", "# coding: latin-1\nx = '\xe9'\n".encode("latin-1"))
    assert latin.lines[1] == "x = '\xe9'"


@pytest.mark.parametrize(
    ("path", "data", "says"),
    [
        ("a.py", b"x = '\xff'\n", "is not utf-8 text (byte 5, line 1)"),
        ("a.txt", b"ok\n\xff\n", "is not utf-8 text (byte 3, line 2)"),
        ("a.py", b"# coding: nonsense\n", "declares no usable encoding"),
        ("a.txt", b"a\n\0b\n", "holds a NUL byte (line 2)"),
        ("a.txt", "x = 1\n".encode("utf-16"), "is not utf-8 text"),
        ("a.py", b"def (:\n", "does not parse as Python: invalid syntax (line 1)"),
        ("a.py", b"x = " + b"(" * 5000 + b"\n", "does not parse as Python"),
        ("a.py", b"x = " + b"-" * 100_000 + b"1\n", "does not parse as Python"),
    ],
)
def test_what_cannot_be_read_is_a_finding(path: str, data: bytes, says: str) -> None:
    pin = Pin("c", "a", path, symbol="x" if path.endswith(".py") else "", fragment="x")
    state = resolve(pin, None, MemoryReader({path: data}))
    assert (state.kind, state.code) == ("unreadable", "pin-gone")
    assert says in state.message


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    (root / "ref").mkdir(parents=True)
    (root / "ref/m.py").write_text(SMALL)
    (tmp_path / "secret.py").write_text("token = 1\n")
    (tmp_path / "repository-2").mkdir()
    (tmp_path / "repository-2/m.py").write_text(SMALL)
    (root / "inside.py").symlink_to("ref/m.py")
    (root / "outside.py").symlink_to(tmp_path / "secret.py")
    (root / "neighbour").symlink_to(tmp_path / "repository-2")
    (root / "up").symlink_to("..")
    (root / "loop").symlink_to("loop")
    os.mkfifo(root / "pipe.py")
    return root


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("ref/m.py", ""),
        ("inside.py", ""),
        ("../secret.py", "path-outside"),
        ("ref/../../secret.py", "path-outside"),
        ("/etc/passwd", "path-outside"),
        ("outside.py", "path-outside"),
        ("neighbour/m.py", "path-outside"),
        ("up/secret.py", "path-outside"),
        ("up/repository/ref/m.py", ""),
        ("C:/x.py", "path-outside"),
        ("ref\\m.py", "path-outside"),
        ("~/x.py", "path-outside"),
        ("ref/./m.py", "pin-gone"),
        ("ref//m.py", "pin-gone"),
        ("", "pin-gone"),
        ("ref/m.py\n", "pin-gone"),
        ("ref/\0", "pin-gone"),
        ("ref", "pin-gone"),
        ("ref/absent.py", "pin-gone"),
        ("ref/m.py/x.py", "pin-gone"),
        ("loop", "pin-gone"),
        ("pipe.py", "pin-gone"),
        ("x" * 5000, "pin-gone"),
    ],
)
def test_only_files_of_the_repository_are_read(folder: Path, path: str, code: str) -> None:
    try:
        assert FolderReader(folder).read(path).text == SMALL
    except SourceRefused as refusal:
        assert refusal.code == code
    else:
        assert code == ""
    state = resolve(Pin("c", "a", path, fragment="b = 2"), None, FolderReader(folder))
    assert state.code == (code or "pin-moved")


def test_p06_an_inserted_line_moves_the_range_and_says_where() -> None:
    """P06: failing, with id, path, both revisions, and the line where the same text now starts."""
    old = "import torch\n\n\ndef mix(x, w):\n    m = x @ w\n    m = m.float()\n    return m\n"
    pin = Pin("mixes", "hc-mixes", "ref/model.py", lines=(5, 7), revision="R1")
    lock = repin([pin], Lock(), MemoryReader({"ref/model.py": old}), write=True).lock
    now = Pin("mixes", "hc-mixes", "ref/model.py", lines=(5, 7), revision="R2")

    def seen(text: str) -> tuple[str, str]:
        [found] = findings(check([now], lock, MemoryReader({"ref/model.py": text})))
        return found.code, found.message

    assert seen("import os\n" + old) == (
        "pin-moved", "pin hc-mixes: ref/model.py:5-7 moved to 6-8 (recorded at R1, now at R2)",
    )  # fmt: skip
    assert seen("x = 1\n") == (
        "pin-gone",
        "text of hc-mixes not found in ref/model.py (recorded at R1, now at R2); line 7 is past the end "
        "(file has 1 line)",
    )
    code, message = seen("import os\n" + old + "\n" + old)
    assert code == "pin-ambiguous" and "6-8, 14-16" in message


def test_p06_with_the_digest_in_the_spec_instead_of_a_record() -> None:
    """As `sed -n 5,7p FILE | sha256sum` prints it."""
    import hashlib

    text = "import torch\n\n\ndef mix(x, w):\n    m = x @ w\n    m = m.float()\n    return m\n"
    digest = hashlib.sha256("".join(text.splitlines(keepends=True)[4:7]).encode()).hexdigest()
    pin = Pin("mixes", "hc-mixes", "ref/model.py", lines=(5, 7), digest=digest, revision="R2")

    def seen(body: str) -> tuple[str, str]:
        state = resolve(pin, None, MemoryReader({"ref/model.py": body}))
        return state.kind, state.message

    assert seen(text) == ("unchanged", "")
    assert seen("import os\n" + text) == ("moved", "pin hc-mixes: ref/model.py:5-7 moved to 6-8 at R2")
    assert seen(text.replace("float", "half")) == ("gone", "text of hc-mixes not found in ref/model.py at R2")
    assert seen(text + text)[0] == "ambiguous"
    assert seen("x = 1\n") == ("gone", "pin hc-mixes: ref/model.py: line 7 is past the end (file has 1 line)")
