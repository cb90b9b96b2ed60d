"""Headline claims, ledgers and published figures: what comes out, and what each check finds when it does not."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import jsonschema
import pytest
from toy_project import Toy, toy_component, write_toy

from sitegen import bookmaker, claims
from sitegen.claimspec import ClaimsFile
from sitegen.derived import Claims
from sitegen.quantities import COUNTED
from sitegen.render import page_schema
from sitegen.render.book import Book, Verdict
from sitegen.render.claims_page import claims_pages
from sitegen.render.code import Highlighter
from sitegen.render.context import Workshop
from sitegen.render.page import Page
from sitegen.render.settings import Settings
from sitegen.render.site import render
from sitegen.render.status import anchor
from sitegen.rounding import Comparison, decimal_text
from sitegen.selftest.specs import spec_mutants

CONFIG = {"d": 8, "V": 100, "n": 3, "rows": [2, 5], "half": 0.5}
SYMBOLS = "{d: {tex: d, meaning: width, field: d}, V: {tex: V, meaning: ids, field: V}, n: {tex: n, meaning: streams, field: n}}"  # noqa: E501

#: Two tensors of 800 and 1,600 parameters, the second packed in bytes, with its 50 scales.
COMPONENTS = (
    toy_component("emb", ["{id: matrix, tensor: emb.w, axes: [V, d], count: V*d, dtype: F32, text: rows}"]),
    toy_component("wide", ['{id: matrix, tensor: wide.w, axes: ["2*V", d], count: 2*V*d, dtype: I8, text: rows}']),
)
TABLE = (
    {"name_pattern": "emb.w", "shape": [100, 8], "stored_shape": [100, 8], "dtype": "F32", "is_scale": False},
    {"name_pattern": "wide.w", "shape": [200, 8], "stored_shape": [200, 4], "dtype": "I8", "is_scale": False},
    {"name_pattern": "wide.scale", "shape": [50], "stored_shape": [50], "dtype": "F8", "is_scale": True},
)
POLICIES = """
policies:
  all: {title: All, scope: All of it., terms: [{places: [model]}]}
  thin: {title: Thin, scope: Half of the wide one is off., terms: [{places: [model]}, {components: [wide], share: [1, 2], sign: -1}]}
"""  # noqa: E501

CLAIMS = """
claims:
- id: size
  title: 2.4K parameters
  text: "Both matrices, {first} and {wide}."
  published: {text: 2.4K, number: "2.4", unit: thousand, size: 10**3, rounding: nearest, cites: [a]}
  equals: "{policy:all}"
  steps:
  - {id: first, text: the first one, value: "{row:emb:matrix}", unit: parameters}
  - {id: wide, text: "the other, {2*V} rows", value: "2 * V * d", unit: parameters, by: ["wide#row:matrix"]}
  - {id: both, text: together, value: first + wide, unit: parameters}
- id: ratio
  title: A third
  text: The first one is a third of both.
  published: {text: "1/3", number: "3", rounding: exact, cites: [a]}
  over: first
  steps:
  - {id: first, text: one, value: "{total:emb}"}
  - {id: all, text: all of it, value: "{policy:all}"}
- id: traffic
  title: (2n+2)d
  text: Reads and writes.
  published: {text: (2n+2)d, formula: (2*n + 2)*d, rounding: exact, cites: [a]}
  steps:
  - {id: reads, text: reads, value: (n + 1)*d}
  - {id: writes, text: writes, value: n*d + d}
  - {id: moved, text: both, value: reads + writes}
- id: said
  title: A quarter
  text: Somebody says so.
  published: {text: a quarter, cites: [a]}
  underived: Its layout is not known.
ledgers:
- id: sizes
  title: From one to all
  text: They add up to {all}.
  lines:
  - {id: first, text: the first, add: "{total:emb}"}
  - {id: half, text: half of the other, add: "{total:wide} + {term:thin:1}"}
  - {id: thin, text: thin, total: "{policy:thin}"}
  - {id: rest, text: the other half, add: "-{term:thin:1}"}
  - {id: all, text: all, total: "{policy:all}"}
  - {id: table, text: the table, total: "{table:elements}"}
figures:
- id: whole
  text: All of it.
  published: {text: 2K, number: "2", unit: thousand, size: 1000, rounding: nearest, cites: [a]}
  explained: sizes#all
- id: stored
  text: As it is stored.
  published: {text: "1600", number: "1600", rounding: exact, cites: [a]}
  value: "{table:stored}"
- id: odd
  text: Nobody knows.
  published: {text: 3K, number: "3", unit: thousand, size: 1000, cites: [a]}
  unexplained: Nothing comes to it.
"""


def toy(folder: Path, *edits: tuple[str, str], table: bool = True, policies: str = POLICIES) -> Toy:
    """The project above with some texts of its claims changed; each must occur."""
    text = CLAIMS
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    entries = [{**entry, "instances": 1, "layers": []} for entry in TABLE]
    return write_toy(
        folder,
        COMPONENTS,
        config=CONFIG,
        symbols=SYMBOLS,
        policies=policies,
        table=entries if table else (),
        files={"spec/toy/claims.yml": text},
    )


def derived(toy: Toy) -> Claims:
    return claims.derive(toy.accounts())


def test_everything_comes_out(tmp_path: Path) -> None:
    found = derived(toy(tmp_path))
    assert not found.findings and not toy(tmp_path).findings()
    size, ratio, traffic, said = found.claims
    assert [step.quantity.value for step in size.steps] == [800, 1600, 2400]
    assert size.comparison and size.comparison.shown == "2.4" and size.comparison.agrees
    assert ratio.comparison and ratio.comparison.value == 3
    assert traffic.formula == ("(2 × 3 + 2) × 8", 64)
    assert not said.steps and said.comparison is None
    assert [(line.quantity.value, line.sum) for line in found.ledgers[0].lines] == [
        (800, 800), (800, 1600), (1600, 1600), (800, 2400), (2400, 2400), (2400, 2400),
    ]  # fmt: skip
    assert [f.quantity.value if f.quantity else None for f in found.figures] == [2400, 1600, None]


@pytest.mark.parametrize(
    ("what", "counted"),
    [
        ("tensors", 2), ("elements", 2400), ("stored", 1600), ("packed", 1600), ("stored_packed", 800), ("scales", 50),
        ("elements:emb*", 800), ("scales:wide.*", 50),
    ],
)  # fmt: skip
def test_the_table_is_counted_by_what_is_asked(tmp_path: Path, what: str, counted: int) -> None:
    edit = ('value: "{table:stored}"', f'value: "{{table:{what}}}"')
    found = derived(toy(tmp_path, edit, ('number: "1600"', f'number: "{counted}"')))
    assert not found.findings and what.partition(":")[0] in COUNTED


@pytest.mark.parametrize(
    ("old", "new", "code", "words"),
    [
        # The published figure, the derivation, and the rounding between them.
        ('number: "2.4"', 'number: "2.5"', "count-mismatch", "2.5 thousand published"),
        ("first + wide", "first + 2*wide", "count-mismatch", "4 thousand, which gives 4.0"),
        ('number: "3", rounding: exact', 'number: "4", rounding: exact', "count-mismatch", "actual 3"),
        ('number: "2.4", unit: thousand, size: 10**3', 'number: "2", unit: thousand, size: 999', "", ""),
        ('number: "2.4", unit: thousand, size: 10**3, rounding: nearest',
         'number: "3", unit: thousand, size: 850, rounding: truncated', "count-mismatch", "which gives 2"),
        ('number: "2.4", unit: thousand, size: 10**3, rounding: nearest',
         'number: "3", unit: thousand, size: 850, rounding: nearest', "", ""),
        ('number: "2.4", unit: thousand, size: 10**3, rounding: nearest',
         'number: "2.4", unit: thousand, size: 999, rounding: exact', "count-mismatch", "2.402402…"),
        ("size: 10**3", "size: 0", "expression-invalid", "must be positive"),
        ("(2*n + 2)*d, rounding", "(2*n + 3)*d, rounding", "count-mismatch", "(2*n + 3)*d"),
        ("(2*n + 2)*d, rounding", "8*d, rounding", "count-mismatch", "under other values of the symbols"),
        ('value: "{row:emb:matrix}"', 'value: "{row:emb:matrix} + 1"', "count-mismatch", "both = 2,401"),
        ('equals: "{policy:all}"', 'equals: "{policy:thin}"', "count-mismatch", "{policy:thin} = 1,600"),
        ('equals: "{policy:all}"', 'equals: "{policy:thick}"', "unknown-reference", "did you mean 'thin'?"),
        # Expressions and references.
        ("{row:emb:matrix}", "{row:emb:matrx}", "unknown-reference", "did you mean 'matrix'?"),
        ("{row:emb:matrix}", "{row:matrix}", "unknown-reference", "named with its component"),
        ("{policy:all}", "{policy:al}", "unknown-reference", "did you mean 'all'?"),
        ("{term:thin:1}", "{term:thin:2}", "unknown-reference", "it has 2, counted from 0"),
        ("{term:thin:1}", "{term:thick:1}", "unknown-reference", "did you mean 'thin'?"),
        ("{total:emb}", "{total:embed}", "unknown-reference", "did you mean 'emb'?"),
        ("{total:emb}", "{sum:emb}", "unknown-reference", "nothing is quoted as sum:"),
        ("{table:stored}", "{table:sored}", "unknown-reference", "did you mean 'stored'?"),
        ("{table:stored}", "{table:stored:x*}", "unknown-reference", "no tensor of the table"),
        ("{row:emb:matrix}", "{half}", "expression-invalid", "not an integer"),
        ("{row:emb:matrix}", "{rows[2]}", "unknown-reference", "2 entries"),
        ("{row:emb:matrix}", "{{policy:all}}", "unknown-symbol", ""),
        ("2 * V * d", "2 * V * z", "unknown-symbol", "'z'"),
        ("2 * V * d", "2 * V * both", "unknown-symbol", "'both'"),
        ("2 * V * d", "1601 // 2 + 800", "expression-invalid", "1,601 // 2"),
        ("2 * V * d", "1600.0", "expression-invalid", "exact integers"),
        ("{id: wide, text", "{id: d, text", "schema-invalid", "a symbol or a config field"),
        ("{id: wide, text", "{id: first, text", "schema-invalid", "a step before it"),
        # Carriers, evidence, prose.
        ("wide#row:matrix", "wide#row:matrx", "unknown-reference", "did you mean 'row:matrix'?"),
        ("wide#row:matrix", "wid#row:matrix", "unknown-reference", "did you mean 'wide'?"),
        ("wide#row:matrix", "row:matrix", "unknown-reference", "write component#statement"),
        ("nearest, cites: [a]", "nearest, cites: [b]", "unknown-reference", "no evidence entry 'b'"),
        ("{first} and {wide}", "{first} and {wider}", "unknown-symbol", "did you mean 'wide'?"),
        ("Somebody says so.", "See [it](component:none).", "unknown-reference", "no component 'none'"),
        # Ledgers and figures.
        ('add: "{total:emb}"', 'add: "{total:emb} - 1"', "count-mismatch", "1 too few"),
        ('total: "{policy:thin}"', 'total: "{policy:all}"', "count-mismatch", "800 too few"),
        ('add: "-{term:thin:1}"', 'add: "{term:thin:1}"', "count-mismatch", "1,600 too few"),
        ("explained: sizes#all", "explained: sizes#rest", "unknown-reference", "no total 'sizes#rest'"),
        ("explained: sizes#all", "explained: size#all", "unknown-reference", "did you mean 'sizes#all'?"),
        ("explained: sizes#all", "explained: sizes#thin", "", ""),
        ('number: "1600"', 'number: "1601"', "count-mismatch", "1601 published"),
        ('text: 3K, number: "3"', 'text: 3K, number: "2"', "count-mismatch", "sizes#thin = 1,600"),
        ("- id: ratio", "- id: size", "schema-invalid", "used twice"),
        # What the file must say.
        ("  underived: Its layout is not known.\n", "", "schema-invalid", "give steps"),
        ("over: first", "over: all", "schema-invalid", "before the last one"),
        ("unexplained: Nothing comes to it.", "note: none", "schema-invalid", ""),
        ('add: "{total:emb}"', 'total: "{total:emb}"', "schema-invalid", "the first line adds"),
        ('number: "2.4"', 'number: "2,4"', "schema-invalid", ""),
    ],
)  # fmt: skip
def test_what_does_not_come_out_is_found(tmp_path: Path, old: str, new: str, code: str, words: str) -> None:
    """An edit of the claims file, and the finding that it makes; none where it still comes out."""
    findings = toy(tmp_path, (old, new)).findings()
    if not code:
        assert not findings, [f.text() for f in findings]
        return
    hits = [f for f in findings if f.code == code and words in f.text()]
    assert hits, [f.text() for f in findings]
    assert hits[0].where.file == "spec/toy/claims.yml" and hits[0].where.line > 1


def test_a_formula_that_is_equal_by_chance_is_another_one(tmp_path: Path) -> None:
    """8*d equals (2n+2)*d where n is 3, and nowhere else: its letters are tried at other values too."""
    edit = ("value: n*d + d}", "value: 4*d}")
    (finding,) = toy(tmp_path, edit).findings()
    assert finding.code == "count-mismatch" and "n = 6" in finding.actual and "another one" in finding.message


def test_without_a_table_there_is_nothing_to_count_in_it(tmp_path: Path) -> None:
    findings = derived(toy(tmp_path, table=False)).findings
    assert {f.message for f in findings} == {"the model has no published table"}


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("It has 800,000 of them.", ["number-unbound"]),
        ("It has {first} of them, {policy:all} in all.", []),
        ("It has `800,000` of them, and 900,000 are none.", []),
    ],
)
def test_a_figure_that_has_a_name_is_quoted(tmp_path: Path, text: str, codes: list[str]) -> None:
    row = "{id: matrix, tensor: emb.w, axes: [V, d], count: V*d, dtype: F32, text: rows}"
    written = f"""
claims:
- id: size
  title: 800,000 parameters
  text: "{text}"
  published: {{text: "800,000", number: "800000", rounding: exact, cites: [a]}}
  steps: [{{id: first, text: all, value: "{{policy:all}}"}}]
"""
    config = {**CONFIG, "V": 100_000}
    files = {"spec/toy/claims.yml": written}
    made = write_toy(tmp_path, [toy_component("emb", [row])], config=config, symbols=SYMBOLS, files=files)
    assert made.codes() == codes


@pytest.mark.parametrize(
    ("value", "number", "rule", "agrees", "otherwise"),
    [
        ("551880835184/1000000000", "552", "nearest", True, "cut off: 551"),
        ("551880835184/1000000000", "551", "truncated", True, "rounded to the nearest: 552"),
        ("551880835184/1000000000", "551.88", "nearest", True, ""),
        ("389120/890", "437", "nearest", True, ""),
        ("5/2", "3", "nearest", True, "cut off: 2"),
        ("5/2", "2", "nearest", False, ""),
        ("5/2", "2.5", "exact", True, ""),
        ("5/2", "2", "exact", False, ""),
        ("999/1000", "1.00", "nearest", True, "cut off: 0.99"),
        ("999/1000", "1.00", "truncated", False, ""),
    ],
)
def test_rounding(value: str, number: str, rule: str, agrees: bool, otherwise: str) -> None:
    compared = Comparison(Fraction(value), number, rule)  # type: ignore[arg-type]
    assert compared.agrees is agrees
    if agrees:
        assert compared.otherwise == otherwise


@pytest.mark.parametrize(
    ("value", "shown"),
    [("12345", "12,345"), ("1/4", "0.25"), ("1/3", "0.333333…"), ("-7/2", "−3.5"), ("1/10000000", "0…")],
)
def test_decimals(value: str, shown: str) -> None:
    assert decimal_text(Fraction(value)) == shown


def test_wrong_forms_of_the_file_are_all_found(tmp_path: Path) -> None:
    """The wrong forms that the self-test makes of a claims file: each of them is a finding."""
    made = toy(tmp_path)
    mutants = [m for m in spec_mutants(made.accounts().model) if m.kind == "claim"]
    assert len(mutants) > 40
    missed = []
    path = made.root / "spec/toy/claims.yml"
    text = path.read_text("utf-8")
    for mutant in mutants:
        changed = text
        for edit in sorted(mutant.edits, key=lambda e: -e.start):
            changed = changed[: edit.start] + edit.text + changed[edit.end :]
        path.write_text(changed, "utf-8")
        if not made.findings():
            missed.append(f"{mutant.id}: {mutant.what}")
    assert not missed


# --- pages --------------------------------------------------------------------------------------------


def pages(book: Book) -> dict[str, Page]:
    return {page.title: page for page in claims_pages(Workshop(book, Settings(), Highlighter(None)))}


def with_states(book: Book, **states: str) -> Book:
    """The book with a verdict for the row of each component."""
    return replace(book, verdicts={id: (Verdict("row:matrix", state),) for id, state in states.items()})  # type: ignore[arg-type]


def marks(html: str, id: str) -> list[str]:
    (row,) = re.findall(rf'<tr id="{id}".*?</tr>', html, re.S)
    return re.findall(r"ms-mark--([a-z-]+)", row)


@pytest.mark.parametrize(
    ("emb", "wide", "steps", "claim"),
    [
        ("executed", "executed", ["executed", "executed"], "executed"),
        ("executed", "verified", ["executed", "verified"], "verified"),
        ("executed", "not-run", ["executed", "not-run"], "not-run"),
        ("stale", "executed", ["stale", "executed"], "stale"),
        ("executed", "failed", ["executed", "failed"], "failed"),
    ],
)
def test_a_claim_stands_as_its_weakest_step(tmp_path: Path, emb: str, wide: str, steps: list[str], claim: str) -> None:
    book, _ = bookmaker.make_book(toy(tmp_path).root, "toy")
    page = pages(with_states(book, emb=emb, wide=wide))["Headline claims"]
    html = page.html()
    assert marks(html, "step-size-first") + marks(html, "step-size-wide") == steps
    assert marks(html, "step-size-both") == []
    assert page.twin is not None and page.twin["claims"][0]["state"] == claim


def test_what_the_published_table_gives_is_compared_and_not_run(tmp_path: Path) -> None:
    """The stored elements come from the table alone, the total of the ledger from rows that were run."""
    edit = ('value: "{table:stored}"', 'value: "{table:stored} + {total:emb} - {row:emb:matrix}"')
    book, _ = bookmaker.make_book(toy(tmp_path, edit).root, "toy")
    page = pages(with_states(book, emb="executed", wide="executed"))["Which number is right"]
    assert page.twin is not None
    assert [figure["state"] for figure in page.twin["figures"]] == ["executed", "verified", "cited"]
    assert [line["state"] for line in page.twin["ledgers"][0]["lines"]] == ["executed"] * 5 + ["verified"]


def test_a_number_links_to_the_statements_that_it_stands_on(tmp_path: Path) -> None:
    book, _ = bookmaker.make_book(toy(tmp_path).root, "toy")
    html = pages(book)["Headline claims"].html()
    (row,) = re.findall(r'<tr id="step-size-wide".*?</tr>', html, re.S)
    assert 'href="../components/wide/#row-matrix"' in row and 'title="wide#row:matrix"' in row
    assert anchor("figure:seam") == "figure-seam"  # where the picture itself stands


def test_pages_show_what_was_published_beside_what_comes_out(tmp_path: Path) -> None:
    book, findings = bookmaker.make_book(toy(tmp_path).root, "toy")
    assert not [f for f in findings if f.severity == "error"]
    made = pages(book)
    html = made["Headline claims"].html()
    assert "Published: <strong>2.4K</strong>" in html and "2,400 / 800" in html
    assert "Not derived: Its layout is not known." in html
    numbers = made["Which number is right"].html()
    assert "Unexplained." in numbers and 'href="#line-sizes-all"' in numbers and 'id="line-sizes-all"' in numbers
    for page in made.values():
        jsonschema.validate(page.twin, page_schema.SCHEMA)
        assert page.plain().startswith(f"# {page.title}")
    assert "2,400 parameters" in made["Headline claims"].plain()


def test_a_page_says_what_is_wrong(tmp_path: Path) -> None:
    book, _ = bookmaker.make_book(toy(tmp_path, ('number: "2.4"', 'number: "2.5"')).root, "toy")
    page = pages(book)["Headline claims"]
    assert "This is not what was published." in page.html() and "2.5 thousand published" in page.html()
    assert page.twin is not None and page.twin["claims"][0]["state"] == "failed"
    assert page.twin["claims"][0]["agrees"] is False


def test_a_model_without_claims_has_neither_page(tmp_path: Path) -> None:
    book, _ = bookmaker.make_book(toy(tmp_path).root, "toy")
    site = render([book])
    paths = {page.path for page in site.pages}
    assert {"toy/claims/index.md", "toy/numbers/index.md"} <= paths
    entry = next(page for page in site.pages if page.path == "toy/index.md")
    assert "Which number is right" in entry.html() and "Headline claims" in entry.html()
    bare = render([replace(book, claims=Claims())])
    assert not {"toy/claims/index.md", "toy/numbers/index.md"} & {page.path for page in bare.pages}
    assert not ClaimsFile().claims
