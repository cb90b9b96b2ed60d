"""P06 to P08 and P13 to P16: line ranges, YAML, and expressions."""

from __future__ import annotations

import json
import time
from pathlib import Path

from click.testing import CliRunner
from public_counts import found, row, symbols
from toy_project import REVISION, Toy, toy_component, write_toy

from sitegen import bookmaker, yamlfile
from sitegen.cli import main
from sitegen.diagnostics import Finding, SpecInvalid

# --- P06 to P08: pinned lines ------------------------------------------------------------------------

MIXES = "def mixes(x, w):\n    m = x @ w\n    return m.float()\n"
HEAD = "import torch\n\n\n"
PINNED = "\ncode:\n- {id: hc-mixes, path: code/ref.py, symbol: mixes}\n"


def pinned(folder: Path, text: str = HEAD + MIXES) -> Toy:
    """A toy whose pin was recorded, and whose count is wrong from the start in one row."""
    component = toy_component("c", [row("w", "[d]", "d")], more=PINNED)
    toy = write_toy(folder, [component], config={"d": 8, "tensors": [["w", ["d"], "F32"]]}, symbols=symbols(d="d"),
                    files={"code/ref.py": text})  # fmt: skip
    assert CliRunner().invoke(main, ["--root", str(folder), "repin", "--write"]).exit_code == 0
    assert not [c for c in toy.codes() if c.startswith("pin")]
    return toy


def p06_a_range_that_shows_other_code(folder: Path) -> None:
    toy = pinned(folder / "moved")
    (toy.root / "code/ref.py").write_text("import os\n" + HEAD + MIXES, "utf-8")
    moved = found(toy.findings(), "pin-moved", "code/ref.py")
    assert "4-6" in moved.text() and "5-7" in moved.text() and "hc-mixes" in moved.text()
    components = toy.root / "spec/toy/components/c0.yml"
    components.write_text(components.read_text("utf-8").replace('count: "d"', 'count: "d + 1"'), "utf-8")
    codes = toy.codes()
    assert "pin-moved" in codes and "count-mismatch" in codes, "a wrong count does not hide a moved pin"
    gone = pinned(folder / "gone")
    (gone.root / "code/ref.py").write_text(HEAD + "def other():\n    return 1\n", "utf-8")
    assert found(gone.findings(), "pin-gone", "hc-mixes")
    twice = pinned(folder / "twice")
    (twice.root / "code/ref.py").write_text(
        HEAD + "class A:\n" + _indented(MIXES) + "class B:\n" + _indented(MIXES), "utf-8"
    )
    both = found(twice.findings(), "pin-ambiguous", "hc-mixes")
    assert "A.mixes" in both.text() and "B.mixes" in both.text(), "it says so and picks neither"


def _indented(text: str) -> str:
    return "".join("    " + line for line in text.splitlines(keepends=True))


RANGES = {
    "a": ([1, 1], ""),
    "b": ([3, 4], "line 4 is past the end (the file has 3 lines)"),
    "c": ([0, 2], "lines count from 1"),
    "d": ([3, 2], "the range is reversed"),
    "e": ([907, 946], "line 946 is past the end (the file has 3 lines)"),
    "f": ([2], "a range needs a first and a last line"),
}


def p07_ranges_are_never_clamped(folder: Path) -> None:
    source = f"  small: {{title: small, repository: owner/name, revision: {REVISION}, path: ref/small.py, lines: 3}}\n"
    for id, (lines, says) in RANGES.items():
        more = f"\nupstream:\n- {{source: small, lines: {json.dumps(lines)}}}\n"
        toy = write_toy(folder / id, [toy_component("c", [row("w", "[2]", "2")], more=more)], config={}, sources=source)
        if says:
            assert found(toy.findings(), "schema-invalid", says).where.file.endswith("c0.yml")
        else:
            assert not toy.findings()


def p08_lines_are_those_of_git(folder: Path) -> None:
    text = "a = 1\n\x0c\nb = 2\n# \u2028 x\nc = 3\n"
    component = toy_component("c", more="\ncode:\n- {id: c-line, path: code/ff.py, fragment: c = 3}\n")
    toy = write_toy(folder, [component], config={}, files={"code/ff.py": text})
    CliRunner().invoke(main, ["--root", str(folder), "repin", "--write"])
    book, findings = bookmaker.make_book(folder, "toy")
    assert not [f for f in findings if f.code.startswith("pin")]
    code = book.codes["c", "c-line"]
    assert code.lines == (5, 5) and code.text.split("\n")[code.lines[0] - 1] == "c = 3"
    assert text.splitlines()[4] != "c = 3", "what Python would have shown"
    del toy


# --- P13 to P15: YAML --------------------------------------------------------------------------------


def p13_small_numbers_are_numbers(folder: Path) -> None:
    written = "norm_eps: 1e-20\nhc_eps: 1e-06\nrope_theta: 1.0e6\n"
    values = yamlfile.load(written, "c.yml").data
    assert values == {"norm_eps": 1e-20, "hc_eps": 1e-06, "rope_theta": 1_000_000.0}
    assert values == json.loads('{"norm_eps": 1e-20, "hc_eps": 1e-06, "rope_theta": 1.0e6}')
    letters = symbols(eps="norm_eps")

    def project(name: str, stated: str, eps: object = 1e-20) -> Toy:
        more = f"\nnumerics:\n- {{id: eps, text: Its epsilon., cites: [a], constant: {{eps: {stated}}}}}\n"
        component = toy_component("c", [row("w", "[2]", "2")], more=more)
        return write_toy(folder / name, [component], config={"norm_eps": eps}, symbols=letters)

    assert not project("same", '"1e-20"').findings()
    assert "1e-20 in config.json" in found(project("other", '"1e-06"').findings(), "config-invalid", "eps").expected
    assert found(project("text", '"1e-20"', "1e-20").findings(), "unknown-symbol", "which is no number")
    number = found(project("number", "1e-20").findings(), "schema-invalid", "constant")
    assert "float" in number.actual, "a page shows the text of the configuration, so it is quoted"


def p14_neither_of_two_keys_wins(folder: Path) -> None:
    twice = "components:\n- name: reading weights\n  parameters: 5\n  shape: [4]\n  parameters: 7\n"
    (finding,) = refused(twice)
    assert "'parameters' occurs twice" in finding.message and finding.actual == "line 3 and line 5"
    assert (finding.where.file, finding.where.line) == ("x.yml", 5)
    merged = yamlfile.load("defaults: &d {dtype: fp32, instances: 40}\nother: {<<: *d, instances: 5}\n", "x.yml").data
    assert merged["other"] == {"dtype": "fp32", "instances": 5}
    toy = write_toy(folder, [toy_component("c"), toy_component("c")], parts=["c"], config={})
    both = found(toy.findings(), "schema-invalid", "used twice")
    assert "c0.yml" in both.actual and "c1.yml" in both.actual


def refused(text: str) -> list[Finding]:
    try:
        yamlfile.load(text, "x.yml")
    except SpecInvalid as error:
        return error.findings
    return []


SCALARS = {
    "a: m = x # per token": "'#' starts a comment",
    "b: &x + 1": "read as an anchor",
    "c: x[:, 0]: first column": "quotes",
    "d: {a}_{n}": "quotes",
    "e: [4] * d": "quotes",
    "note: see issue #8889 for why": "'#' starts a comment",
    "f: *x": "quote the text",
    "g: %a": "quotes",
    "h: @a": "quotes",
    "i: `a`": "quotes",
}


def p15_text_is_never_cut(folder: Path) -> None:
    del folder
    for text, says in SCALARS.items():
        findings = refused(text + "\n")
        assert findings and findings[0].where.line == 1, text
        assert says in findings[0].message + findings[0].hint, (text, findings[0].text())
    assert yamlfile.load("a: 'm = x # per token'\n", "x.yml").data == {"a": "m = x # per token"}


# --- P16: expressions --------------------------------------------------------------------------------

EXPRESSIONS = [
    "9**9**9", "1 << 10000000", "(2**4000)*(2**4000)", "__import__('os').system('touch ran')", "().__class__",
    "'a'*100", "True*5", "5//0",
    "(" * 100_000 + "1" + ")" * 100_000, "d.__class__", "lambda: 0", "d if d else d", "[d][0]", "1e3",
]  # fmt: skip


def p16_expressions_are_integers_of_bounded_work(folder: Path) -> None:
    for number, text in enumerate(EXPRESSIONS):
        toy = write_toy(
            folder / str(number), [toy_component("c", [row("w", "[d]", text.replace('"', "'"))])],
            config={"d": 8, "tensors": []}, symbols=symbols(d="d"),
        )  # fmt: skip
        start = time.perf_counter()
        findings = toy.findings()
        assert time.perf_counter() - start < 1, text[:20]
        assert found(findings, "expression-invalid", "").component in ("c", ""), text[:20]
        assert findings[0].where.file.endswith("c0.yml") and findings[0].where.line
        assert len(findings[0].text()) < 1_000, "a long expression is not printed whole"
    assert not list(folder.rglob("ran")), "nothing was run"
    for text, value in {"ceil_div(d, 3)*2**3": 24, "(d + 1)*4 - d//3": 34, "-(2 - d)": 6}.items():
        toy = write_toy(folder / "right", [toy_component("c", [row("w", f"[{value}]", text)])], config={"d": 8},
                        symbols=symbols(d="d"))  # fmt: skip
        assert not toy.findings() and toy.accounts().total("c") == value


TEXTS = {
    "P06": p06_a_range_that_shows_other_code,
    "P07": p07_ranges_are_never_clamped,
    "P08": p08_lines_are_those_of_git,
    "P13": p13_small_numbers_are_numbers,
    "P14": p14_neither_of_two_keys_wins,
    "P15": p15_text_is_never_cut,
    "P16": p16_expressions_are_integers_of_bounded_work,
}
