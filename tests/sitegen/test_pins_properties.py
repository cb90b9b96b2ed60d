"""Properties of pins on generated texts and edits: nothing raises, nothing lies."""

from __future__ import annotations

import string

from hypothesis import given
from hypothesis import strategies as st

from sitegen.diagnostics import SpecInvalid
from sitegen.pins import KINDS, Lock, MemoryReader, Pin, SourceText, check, findings, parse_lock, repin, resolve
from sitegen.pins.pin import REPAIRABLE
from sitegen.pins.tokens import digest, lex

# Characters that lexers and line counters stumble over.
odd = st.text(alphabet="ab1_.=()[]{}'\"#\\:,; \t\n\r\x0c\x0b\x1c\x85\u2028\ufefffrbu!{}é@", max_size=120)
names = st.sampled_from(["a", "b", "total", "x1", "eps"])
expressions = st.recursive(
    names | st.integers(0, 99).map(str) | st.sampled_from(["1e-6", "'t'", 'f"{a}:{b!r}"']),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "@"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"f({', '.join(parts)})"),
    ),
    max_leaves=6,
)
statements = st.tuples(names, expressions).map(lambda t: f"{t[0]} = {t[1]}")
bodies = st.lists(statements, min_size=2, max_size=6, unique=True)


def function(body: list[str], name: str = "cited") -> str:
    return f"def {name}(a, b):\n" + "".join(f"    {row}\n" for row in body) + "    return a\n"


@given(text=odd, quoted=odd, suffix=st.sampled_from([".py", ".json", ".cu", ".yml", ".txt", ".js"]))
def test_no_text_gives_a_traceback(text: str, quoted: str, suffix: str) -> None:
    reader = MemoryReader({f"m{suffix}": text})
    for pin in (
        Pin("c", "a", f"m{suffix}", fragment=quoted),
        Pin("c", "b", f"m{suffix}", symbol=quoted, fragment=quoted),
        Pin("c", "d", f"m{suffix}", lines=(1, 2)),
    ):
        state = resolve(pin, None, reader)
        assert state.kind in KINDS
        for found in findings([state]):
            assert found.text() and found.to_json()
        done = repin([pin], Lock(), reader, write=True)
        for other in (quoted, text + quoted, quoted + text, ""):
            again = resolve(pin, done.lock.of(pin), MemoryReader({f"m{suffix}": other}))
            assert again.kind in KINDS


@given(data=st.binary(max_size=200), path=st.text(max_size=20))
def test_no_bytes_and_no_path_give_a_traceback(data: bytes, path: str) -> None:
    for name in ("m.py", "m.txt"):
        assert resolve(Pin("c", "a", name, symbol="a", fragment="b"), None, MemoryReader({name: data})).kind in KINDS
    assert resolve(Pin("c", "a", path, fragment="b"), None, MemoryReader({path: data})).kind in KINDS


@given(data=st.binary(max_size=100) | st.text(alphabet='{}[]":,0schemapinstexts1 \n', max_size=60).map(str.encode))
def test_no_lock_file_gives_a_traceback(data: bytes) -> None:
    try:
        parse_lock(data, "pins.json")
    except SpecInvalid as refusal:
        assert [found.code for found in refusal.findings] == ["facts-invalid"]


@given(text=odd)
def test_lines_are_those_of_git(text: str) -> None:
    source = SourceText("m.txt", text)
    assert source.count == text.count("\n") + bool(text and not text.endswith("\n"))
    assert all("\n" not in row for row in source.lines)


@given(text=odd)
def test_tokens_lose_no_ink(text: str) -> None:
    """Every visible character of a text is in exactly one token, in order (backslashes aside: some join lines)."""
    ink = "".join(token.text for token in lex(text, ".py").tokens if token.kind != "newline")
    assert "".join(ink.replace("\\", "").split()) == "".join(text.replace("\\", "").split())


@given(body=bodies, index=st.integers(0, 5), above=st.lists(statements, max_size=3), whole=st.booleans())
def test_moving_code_is_always_seen_as_that(body: list[str], index: int, above: list[str], whole: bool) -> None:
    quoted = body[index % len(body)]
    pin = Pin("c", "a", "m.py", symbol="cited", fragment="" if whole else quoted)
    done = repin([pin], Lock(), MemoryReader({"m.py": function(body)}), write=True)
    if done.left:
        return  # the statement is a part of another one: the author is asked to quote more
    text = "".join(row + "\n" for row in above) + function(body)
    [state] = check([pin], done.lock, MemoryReader({"m.py": text}))
    assert state.kind == ("moved" if above else "unchanged")
    assert state.text == done.lock.pins["c", "a"].text


@given(body=bodies, index=st.integers(0, 5), other=bodies, cut=st.integers(0, 6), whole=st.booleans())
def test_a_silent_or_repaired_pin_always_has_the_recorded_code(
    body: list[str], index: int, other: list[str], cut: int, whole: bool
) -> None:
    """Whatever the edit: `unchanged` and every repair stand on lines with the recorded tokens, in a
    definition with the recorded tokens."""
    quoted = body[index % len(body)]
    pin = Pin("c", "a", "m.py", symbol="cited", fragment="" if whole else quoted)
    done = repin([pin], Lock(), MemoryReader({"m.py": function(body)}), write=True)
    if done.left:
        return
    record = done.lock.pins["c", "a"]
    text = function(other, "first") + function(body[:cut] + other[:cut] + body[cut:]) + function(body, "last")
    reader = MemoryReader({"m.py": text})
    [state] = check([pin], done.lock, reader)
    if state.kind == "unchanged" or state.kind in REPAIRABLE:
        assert state.lines is not None
        source = reader.read("m.py")
        assert digest(source.lexed.code_in(state.lines)) == record.code
        [definition] = [d for d in source.definitions if d.symbol == "cited"]
        assert definition.lines[0] <= state.lines[0] and state.lines[1] <= definition.lines[1]
        assert digest(source.lexed.code_in(definition.lines)) == record.symbol_code
    else:
        assert cut and other[:cut], "code that did not change is never reported as changed"


@given(name=st.text(alphabet=string.ascii_letters, min_size=1, max_size=8))
def test_a_rename_keeps_the_body_digest(name: str) -> None:
    pin = Pin("c", "a", "m.py", symbol="cited")
    base = "def cited(a):\n    return cited(a - 1) + 1\n"
    lock = repin([pin], Lock(), MemoryReader({"m.py": base}), write=True).lock
    text = base.replace("cited", name + "_")
    assert resolve(pin, lock.of(pin), MemoryReader({"m.py": text})).kind == "renamed"
