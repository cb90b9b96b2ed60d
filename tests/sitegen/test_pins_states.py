"""What became of pinned code: cases/pins/states.yml, edit by edit, and the messages that say so."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from sitegen.diagnostics import Location
from sitegen.pins import KINDS, Lock, MemoryReader, Pin, PinState, check, findings, repin, resolve, state_json

TABLE = yaml.safe_load((Path(__file__).parent / "cases/pins/states.yml").read_text(encoding="utf-8"))
BASE: str = TABLE["base"]
PINS = [
    Pin("stream-weights", name, "ref/model.py", symbol=p.get("symbol", ""), fragment=p.get("fragment", ""))
    for name, p in TABLE["pins"].items()
]


def recorded(pins: list[Pin], text: str, path: str = "ref/model.py") -> Lock:
    done = repin(pins, Lock(), MemoryReader({path: text}), write=True)
    assert not done.left, done.lines()
    return done.lock


def apply(case: dict) -> str:
    text = case.get("text", BASE)
    for old, new in case.get("edit", ()):
        assert old in text, f"the edit of {case['name']!r} finds nothing to replace"
        text = text.replace(old, new)
    text = case.get("prepend", "") + text + case.get("append", "")
    return text.replace("\n", case.get("newline", "\n"))


def states_after(text: str) -> dict[str, PinState]:
    states = check(PINS, recorded(PINS, BASE), MemoryReader({"ref/model.py": text}))
    return {state.pin.id: state for state in states}


@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda case: case["name"])
def test_an_edit_is_told_apart(case: dict) -> None:
    shift = case.get("shift", 0)
    expected = {}
    for name, pin in TABLE["pins"].items():
        first, last = pin["lines"]
        expected[name] = ["moved" if shift else "unchanged", first + shift, last + shift]
    for name, then in case.get("then", {}).items():
        assert name in expected
        expected[name] = then
    seen = {}
    for name, state in states_after(apply(case)).items():
        places = len(expected[name]) > 1
        seen[name] = [state.kind, *(state.lines if places and state.lines else ())]
    unnamed = {name for name in expected if name not in case.get("then", {})}
    lines_follow = {n for n in unnamed if seen[n][0] == "moved" and not shift and _follows(case, n, seen[n])}
    assert {n: s for n, s in seen.items() if n not in lines_follow} == {
        n: e for n, e in expected.items() if n not in lines_follow
    }


def _follows(case: dict, name: str, seen: list) -> bool:
    """A pin that the case does not name may move, if its lines then hold exactly the recorded text."""
    first, last = TABLE["pins"][name]["lines"]
    old, new = BASE.split("\n")[first - 1 : last], apply(case).split("\n")[seen[1] - 1 : seen[2]]
    return bool(new) and old == new


def test_every_kind_is_covered() -> None:
    """The table and the tests below leave no kind untried."""
    kinds = {then[0] for case in TABLE["cases"] for then in case.get("then", {}).values()}
    assert kinds | {"unchanged", "new", "moved"} == set(KINDS)


@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda case: case["name"])
def test_only_what_moved_or_was_laid_out_anew_is_repaired(case: dict) -> None:
    """After `repin --write`, exactly the other kinds are still reported, with their records untouched."""
    before, reader = recorded(PINS, BASE), MemoryReader({"ref/model.py": apply(case)})
    first = {state.pin.id: state for state in check(PINS, before, reader)}
    done = repin(PINS, before, reader, write=True)
    for state in check(PINS, done.lock, reader):
        name, key = state.pin.id, (state.pin.component, state.pin.id)
        if first[name].repairable:
            assert state.kind == "unchanged"
            assert done.lock.pins[key].lines == first[name].lines
        else:
            assert state.kind == first[name].kind
            assert done.lock.pins[key] == before.pins[key]


def test_a_repaired_pin_quotes_its_fragment_again() -> None:
    """No pin is ever re-anchored to lines that do not hold what its author quoted."""
    for case in TABLE["cases"]:
        text = apply(case)
        done = repin(PINS, recorded(PINS, BASE), MemoryReader({"ref/model.py": text}), write=True)
        for state in done.repaired:
            record = done.lock.pins[state.pin.component, state.pin.id]
            quoted = [t for t in state.pin.fragment.replace("#", " ").split() if t.isidentifier()]
            if state.kind != "comment-only":
                joined = "\n".join(record.text)
                assert all(word in joined for word in quoted), (case["name"], state.pin.id)


def test_two_edits_at_once_are_both_named() -> None:
    text = "import os\n" + BASE.replace("weigh(a, j, eps)", "weigh(a, j, eps)  # weighted")
    state = states_after(text)["weigh"]
    assert state.kind == "comment-only"
    assert state.message == ("pin weigh: ref/model.py:14 moved to 15 and has other comments, with the same code")


def test_the_finding_names_place_texts_and_next_step() -> None:
    pin = Pin("mix", "w", "m.py", symbol="f", fragment="y = g(x)", where=Location("spec/a.yml", 7, 5))
    lock = recorded([pin], "def f(x):\n    y = g(x)\n    return y\n", "m.py")
    [found] = findings(check([pin], lock, MemoryReader({"m.py": "def f(x):\n    y = g(x, 1)\n    return y\n"})))
    assert found.text().split("\n") == [
        "spec/a.yml:7:5: error[pin-changed] pin w: the cited lines of f changed (m.py:2, now about 2)  (mix pin w)",
        "  expected m.py:2 ‘y = g(x)’; actual m.py:2 ‘y = g(x, 1)’",
        "  hint: edit the fragment of the pin in the spec to quote the code as it now is, "
        "then `sitegen repin --ack mix …`",
    ]
    details = found.to_json()["pin"]
    assert isinstance(details, dict)
    assert (details["recorded"]["text"], details["text"]) == (["    y = g(x)"], ["    y = g(x, 1)"])
    assert details["candidates"][0]["lines"] == [2, 2]


def test_long_texts_are_cut_in_the_finding_and_whole_in_json() -> None:
    body = "".join(f"    value_{i} = combine(value_{i}, {i})\n" for i in range(30))
    pin = Pin("mix", "w", "m.py", symbol="f")
    lock = recorded([pin], "def f(x):\n" + body, "m.py")
    state = resolve(pin, lock.of(pin), MemoryReader({"m.py": "def f(x):\n" + body.replace("3)", "4)")}))
    [found] = findings([state])
    assert all(len(line) < 320 for line in found.text().split("\n"))
    assert len(state_json(state)["text"]) == 31


def test_candidates_are_ranked_by_likeness() -> None:
    pin = Pin("mix", "w", "m.py", symbol="f")
    base = "def f(x):\n    y = g(x)\n    z = h(y, 2)\n    return z\n"
    near = "def near(x):\n    y = g(x)\n    z = h(y, 3)\n    return z\n"
    far = "def far(x):\n    y = g(x, x)\n    return y + 1\n"
    lock = recorded([pin], base, "m.py")
    state = resolve(pin, lock.of(pin), MemoryReader({"m.py": far + near}))
    assert (state.kind, [c.symbol for c in state.candidates]) == ("gone", ["near", "far"])
    assert "most alike: m.py:4-7 near" in state.advice


def test_code_that_went_to_another_file_is_found_there_but_not_followed() -> None:
    pin = Pin("mix", "w", "ref/m.py", symbol="f")
    body = "def f(x):\n    y = g(x)\n    return y\n"
    lock = recorded([pin], body, "ref/m.py")
    for files in ({"ref/m.py": "a = 1\n", "ref/n.py": "b = 2\n" + body}, {"ref/n.py": "b = 2\n" + body}):
        state = resolve(pin, lock.of(pin), MemoryReader(files))
        assert state.kind == "gone" and not state.repairable and state.fresh is None
        assert [(c.path, c.lines) for c in state.candidates] == [("ref/n.py", (2, 4))]
        assert "ref/n.py:2-4" in state.advice


def test_two_bodies_for_a_vanished_name_are_ambiguous() -> None:
    pin = Pin("mix", "w", "m.py", symbol="f")
    lock = recorded([pin], "def f(x):\n    return g(x) + 1\n", "m.py")
    twice = "def a(x):\n    return g(x) + 1\ndef b(x):\n    return g(x) + 1\n"
    assert resolve(pin, lock.of(pin), MemoryReader({"m.py": twice})).kind == "ambiguous"


def test_a_vanished_function_whose_parts_stand_in_two_others_was_split() -> None:
    pin = Pin("mix", "w", "m.py", symbol="f")
    parts = ["    y = g(x, 1, 2)\n    y = y * h(y)\n", "    z = norm(y, eps)\n    z = z / total(z)\n"]
    lock = recorded([pin], "def f(x):\n" + parts[0] + parts[1] + "    return z\n", "m.py")
    text = "def first(x):\n" + parts[0] + "    return y\ndef second(y):\n" + parts[1] + "    return z\n"
    state = resolve(pin, lock.of(pin), MemoryReader({"m.py": text}))
    assert (state.kind, [c.symbol for c in state.candidates]) == ("ambiguous", ["first", "second"])
    assert "was split" in state.message


@pytest.mark.parametrize(
    ("pin", "text", "kind", "code", "says"),
    [
        (dict(symbol="g"), "def f(): pass\n", "gone", "pin-gone", "defines no 'g'"),
        (dict(symbol="ff"), "def f(): pass\n", "gone", "pin-gone", "defines no 'ff'"),
        (dict(symbol="f"), "def f(): pass\ndef f(): pass\n", "ambiguous", "pin-ambiguous", "2 places"),
        (dict(symbol="f", fragment="x = 1"), "def f():\n    y = 1\n", "gone", "pin-gone", "does not stand in f"),
        (dict(fragment="x = 1"), "x = 1\nx = 1\n", "ambiguous", "pin-ambiguous", "stands in 2 places"),
        (dict(fragment=" \n "), "x = 1\n", "unreadable", "schema-invalid", "names no symbol, fragment or lines"),
        (dict(lines=(2, 3)), "x = 1\n", "gone", "pin-gone", "line 3 is past the end (file has 1 line)"),
        (dict(symbol="f"), "def f(): pass\n", "new", "pin-moved", "not recorded yet"),
        (dict(symbol="f#2"), "def f(): pass\ndef f(): return 1\n", "new", "pin-moved", "m.py:2 is not recorded"),
        (dict(symbol="f#3"), "def f(): pass\ndef f(): return 1\n", "gone", "pin-gone", "defines no 'f#3'"),
        (dict(symbol="o.<locals>.i"), "def o():\n  def i(): pass\n", "new", "pin-moved", "m.py:2 is not recorded"),
    ],
)  # fmt: skip
def test_a_pin_without_a_record(pin: dict, text: str, kind: str, code: str, says: str) -> None:
    state = resolve(Pin("c", "a", "m.py", **pin), None, MemoryReader({"m.py": text}))
    assert (state.kind, state.code) == (kind, code)
    assert says in state.message


def test_symbols_belong_to_python_files() -> None:
    state = resolve(Pin("c", "a", "config.json", symbol="hc_eps"), None, MemoryReader({"config.json": "{}\n"}))
    assert (state.kind, state.code) == ("unreadable", "schema-invalid")


def test_an_edited_pin_is_not_taken_over_silently() -> None:
    """Quoting other code in the spec needs a person's word, as changed code does."""
    text = "def f(x):\n    y = g(x)\n    z = h(y)\n    return z\n"
    old, new = (Pin("c", "a", "m.py", symbol="f", fragment=quote) for quote in ("y = g(x)", "z = h(y)"))
    lock, reader = recorded([old], text, "m.py"), MemoryReader({"m.py": text})
    state = resolve(new, lock.of(new), reader)
    assert (state.kind, state.lines, state.repairable) == ("changed", (3, 3), False)
    assert repin([new], lock, reader, write=True).lock.pins == lock.pins
    done = repin([new], lock, reader, ack="c", reason="the page speaks of h now", today="2026-01-02")
    assert resolve(new, done.lock.of(new), reader).kind == "unchanged"


def test_a_requoted_pin_on_the_same_lines_stays_as_it_is() -> None:
    text = "def f(x):\n    y = g(x, 1)\n    return y\n"
    old, new = (Pin("c", "a", "m.py", symbol="f", fragment=quote) for quote in ("y = g(x, 1)", "g(x,1)"))
    assert resolve(new, recorded([old], text, "m.py").of(new), MemoryReader({"m.py": text})).kind == "unchanged"


def test_a_renamed_symbol_follows_once_the_spec_names_it() -> None:
    old, new = Pin("c", "a", "m.py", symbol="f"), Pin("c", "a", "m.py", symbol="g")
    lock = recorded([old], "def f(x):\n    return f(x - 1)\n", "m.py")
    reader = MemoryReader({"m.py": "def g(x):\n    return g(x - 1)\n"})
    state = resolve(old, lock.of(old), reader)
    assert state.kind == "renamed" and "set `symbol: g`" in state.advice and state.fresh is None
    assert resolve(new, lock.of(new), reader).kind == "renamed"
    done = repin([new], lock, reader, ack="c", reason="renamed", today="2026-01-02")
    assert resolve(new, done.lock.of(new), reader).kind == "unchanged"


def test_a_body_that_still_calls_the_old_name_is_another_body() -> None:
    pin = Pin("c", "a", "m.py", symbol="f")
    lock = recorded([pin], "def f(x):\n    return f(x - 1)\n", "m.py")
    assert resolve(pin, lock.of(pin), MemoryReader({"m.py": "def g(x):\n    return f(x - 1)\n"})).kind == "gone"


JSON = '{\n  "dim": 5120,\n  "hc_mult": 4,\n  "hc_eps": 1e-06\n}\n'


@pytest.mark.parametrize(
    ("path", "base", "edit", "kind"),
    [
        ("c.json", JSON, ('"dim"', '"n": 1,\n  "dim"'), "moved"),
        ("c.json", JSON, ('  "hc_mult": 4,\n', '    "hc_mult" : 4,\n'), "reformatted"),
        ("c.json", JSON, ('"hc_mult": 4', '"hc_mult": 5'), "changed"),
        ("c.json", JSON, ('  "hc_mult": 4,\n', ""), "gone"),
        ("c.json", JSON, ('"dim": 5120,\n', '"dim": 5120,\n  "hc_mult": 4,\n'), "ambiguous"),
        ("k.cu", "int hc_mult = 4;\nint b;\n", ("int hc_mult", "int  hc_mult"), "reformatted"),
        ("k.cu", "int hc_mult = 4;\nint b;\n", ("= 4;", "= 4;  // streams"), "comment-only"),
        ("k.cu", "int hc_mult = 4;\nint b;\n", ("= 4;", "= 8;"), "changed"),
        ("m.yml", "a:\n  hc_mult: 4\n", ("a:\n", "# a\na:\n"), "moved"),
        ("m.yml", "a:\n  hc_mult: 4\n", ("4", "4  # streams"), "comment-only"),
        ("n.txt", "the hc_mult is four\n", ("is  four", "is four"), "unchanged"),
        ("n.txt", "the hc_mult is four\n", ("is four", "is   four"), "reformatted"),
    ],
)
def test_text_files_are_pinned_by_lines_and_tokens(path: str, base: str, edit: tuple[str, str], kind: str) -> None:
    line = next(i for i, row in enumerate(base.split("\n"), 1) if "hc_mult" in row)
    quoted = base.split("\n")[line - 1].strip()
    pin = Pin("c", "a", path, fragment=quoted)
    lock = recorded([pin], base, path)
    assert lock.pins["c", "a"].lines == (line, line)
    state = resolve(pin, lock.of(pin), MemoryReader({path: base.replace(*edit)}))
    assert state.kind == kind, state.message


def test_indentation_of_yaml_and_nesting_of_python_is_code() -> None:
    """The same words one level deeper are not the same code, though the pin has no symbol."""
    for path, base, edited in (
        ("m.yml", "a:\n  b: 1\n  c: 2\n", "a:\n  b: 1\n    c: 2\n"),
        ("m.py", "for i in x:\n    f(i)\n    g(i)\n", "for i in x:\n    f(i)\ng(i)\n"),
    ):
        pin = Pin("c", "a", path, lines=(2, 3))
        lock = recorded([pin], base, path)
        assert resolve(pin, lock.of(pin), MemoryReader({path: edited})).kind == "changed"
