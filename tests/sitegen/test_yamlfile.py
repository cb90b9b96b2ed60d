"""The strict YAML subset: YAML 1.2 scalars, no silent loss, positions kept, nothing a file can do hangs or crashes."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitegen import yamlfile
from sitegen.diagnostics import SpecInvalid

VALUES = {
    "1e-6": 1e-6, "1e-20": 1e-20, "1.0e6": 1e6, "-3": -3, ".5": 0.5, "0": 0, "+7": 7, "12": 12,
    "no": "no", "on": "on", "yes": "yes", "12:30": "12:30", "010": "010", "1_000": "1_000", "0x1F": "0x1F",
    "true": True, "False": False, "null": None, "~": None, "'5'": "5", '"1e-6"': "1e-6", "e5": "e5", "2026-12-01": "2026-12-01",
    ".inf": ".inf", "nan": "nan",
}  # fmt: skip


@pytest.mark.parametrize("text", VALUES)
def test_a_plain_scalar_is_what_yaml_1_2_says(text: str) -> None:
    value = yamlfile.load(f"key: {text}\n", "x.yml").data["key"]
    assert value == VALUES[text] and type(value) is type(VALUES[text])


def test_json_and_yaml_of_the_same_numbers_compare_equal() -> None:
    """P13: epsilons are numbers, in whichever way they are written."""
    data = yamlfile.load("norm_eps: 1e-20\nhc_eps: 1e-06\nrope_theta: 1.0e6\n", "x.yml").data
    assert data == {"norm_eps": 1e-20, "hc_eps": 1e-06, "rope_theta": 1000000.0}


#: name -> text, code, line, column, part of the message or hint
FAULTS = {
    "repeated key (P14)": ("a: 1\nb: 2\na: 3\n", "yaml-invalid", 3, 1, "occurs twice"),
    "comment sign (P15)": ("a: m = x # per token\n", "yaml-invalid", 1, 4, "starts a comment"),
    "note cut at a number sign (P15)": ("note: see issue #8889 for why\n", "yaml-invalid", 1, 7, "starts a comment"),
    "anchor that was meant as text (P15)": ("b: &x + 1\n", "yaml-invalid", 1, 4, "anchor"),
    "colon inside (P15)": ("c: x[:, 0]: first column\n", "yaml-invalid", 1, 11, "quotes"),
    "flow text (P15)": ("d: {a}_{n}\n", "yaml-invalid", 1, 7, "quotes"),
    "alias without anchor": ("e: *d\n", "yaml-invalid", 1, 4, "no anchor"),
    "TeX in double quotes": ('f: "\\alpha"\n', "unsafe-text", 1, 4, "single quotes"),
    "direction override": ("g: a\u202eb\n", "unsafe-text", 1, 4, "U+202E"),
    "tag": ("h: !!python/object:os.system x\n", "yaml-invalid", 1, 4, "tag"),
    "alias inside itself": ("i: &i [*i]\n", "yaml-invalid", 1, 8, "contains itself"),
    "two documents": ("a: 1\n---\nb: 2\n", "yaml-invalid", 2, 1, "second document"),
    "a list as key": ("[1, 2]: 3\n", "yaml-invalid", 1, 1, "key"),
    "empty file": ("", "yaml-invalid", 1, 1, "empty"),
    "huge integer": (f"a: {'9' * 5000}\n", "yaml-invalid", 1, 4, "digits"),
    "deep nesting": ("a: " + "[" * 100 + "]" * 100 + "\n", "yaml-invalid", 1, 44, "deeper"),
    "null byte": ("a: b\x00c\n", "unsafe-text", 1, 1, "control"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_names_line_column_and_what_to_do(name: str) -> None:
    text, code, line, column, words = FAULTS[name]
    with pytest.raises(SpecInvalid) as caught:
        yamlfile.load(text, "x.yml")
    finding = caught.value.findings[0]
    assert finding.code == code
    if name != "null byte":  # the reader refuses the whole text before it counts columns
        assert (finding.where.line, finding.where.column) == (line, column)
    assert words in finding.message + finding.hint


def test_a_merge_key_may_override() -> None:
    """P14: a legal override through a merge key is no repeated key."""
    data = yamlfile.load("d: &d {dtype: fp32, n: 40}\no: {<<: *d, n: 5}\n", "x.yml").data
    assert data["o"] == {"dtype": "fp32", "n": 5}


def test_an_alias_bomb_is_refused_within_a_second() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    start = time.perf_counter()
    with pytest.raises(SpecInvalid, match="expanding aliases"):
        yamlfile.load("\n".join(levels), "bomb.yml")
    assert time.perf_counter() - start < 1


def test_every_value_keeps_its_place() -> None:
    document = yamlfile.load("a:\n- b: 1\n  c: [2,   3]\n", "x.yml")
    assert document.locate(("a", 0, "c", 1)).line == 3
    assert document.locate(("a", 0, "c", 1)).column == 12
    assert document.locate(("a", 0, "missing", "deeper")) == document.locate(("a", 0))


@given(st.text(max_size=200))
def test_no_text_raises_anything_else(text: str) -> None:
    try:
        yamlfile.load(text, "x.yml")
    except SpecInvalid as error:
        assert error.findings
        assert all(f.where.file == "x.yml" for f in error.findings)


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    try:
        yamlfile.load(data, "x.yml")
    except SpecInvalid as error:
        assert error.findings
