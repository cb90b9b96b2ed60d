"""Configuration, symbols, tensors and source of a small model: what is looked up, and where it leads."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from test_render_site import FILES, book, words

from sitegen.probe.result import FieldReads
from sitegen.render.configuration_page import value_text
from sitegen.render.settings import Settings
from sitegen.render.site import Site, render
from sitegen.render.source_page import SourceFile
from sitegen.render.tensors_page import tensor_groups
from sitegen.tensorindex import Owner, TensorPattern

CONFIG = """
fields:
  num_streams: {meaning: How many streams there are.}
  epsilon: {meaning: A guard., unread: It is fixed in the code., by: [norm]}
"""
FIELDS = {
    "num_streams": FieldReads(("mix", "mix/weights"), ("layers.*", ""), ("mix",)),
    "epsilon": FieldReads(refused="epsilon is fixed"),
}
TENSORS = (
    TensorPattern("layers.{i}.mix_base", (16,), (16,), "F32", False, (1, 2), 2, (Owner("mix", "offsets", "[0:16]"),)),
    TensorPattern("layers.{i}.mix_fn", (4, 64), (4, 32), "I8", False, (1,), 1, (Owner("mix/weights", "matrix"),)),
    TensorPattern("layers.{i}.mix_fn.scale", (4, 2), (4, 2), "F8", True, (1,), 1, (Owner("mix/weights", "matrix"),)),
    TensorPattern("embed.weight", (9, 64), (9, 64), "BF16", False, (), 1, ()),
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    made = book(tmp_path_factory.mktemp("toy"), **{"spec/toy/config.yml": CONFIG})
    return render([replace(made, fields=FIELDS, tensors=TENSORS)], {}, Settings())


def html(site: Site, path: str) -> str:
    return next(p for p in site.pages if p.path == path).html()


def row(page: str, start: str) -> str:
    """The words of the table row that holds `start`."""
    (found,) = [part for part in re.findall(r"<tr.*?</tr>", page, re.S) if start in part]
    return words(found)


# --- configuration ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ("num_streams", ["4", "How many streams there are.", "流组合 *mix* <T> , Weights", "layers.* , model"]),
        ("num_streams", ["passed to mix"]),
        ("epsilon", ["1e-6", "A guard.", "Norm", "It is fixed in the code. It says: epsilon is fixed."]),
    ],
)
def test_a_field_shows_value_meaning_and_readers(site: Site, field: str, shown: list[str]) -> None:
    found = row(html(site, "toy/configuration/index.md"), f'id="field-{field.replace("_", "-")}"')
    for text in shown:
        assert text in found


def test_without_a_trace_the_page_says_so(tmp_path: Path) -> None:
    page = html(render([book(tmp_path, **{"spec/toy/config.yml": CONFIG})]), "toy/configuration/index.md")
    assert "No run has traced the fields" in words(page) and "mix" not in row(page, 'id="field-num-streams"')


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([0, 0, 2, 2, 2, 1], "0 × 2, 2 × 3, 1"),
        (129280, "129,280"),
        (1e-20, "1e-20"),
        (10.0, "10"),
        (None, "null"),
        (True, "true"),
        ("fp8", "fp8"),
        ([], ""),
    ],
)
def test_values_are_shown_as_a_reader_writes_them(value: object, text: str) -> None:
    assert value_text(value) == text


# --- symbols ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("n", ["streams: copies of the residual", "4", "num_streams", "流组合 *mix* <T>", "Weights", "Norm"]),
        ("d", ["width", "64"]),
        ("eps", ["guard", "1e-6", "epsilon"]),
    ],
)
def test_a_symbol_shows_value_field_and_users(site: Site, name: str, shown: list[str]) -> None:
    page = html(site, "toy/symbols/index.md")
    found = row(page, f'id="symbol-{name}"')
    for text in shown:
        assert text in found
    assert 'href="../configuration/#field-num-streams"' in page


# --- tensors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("layers.{i}.mix_base<", ["layers 1–2", "16", "F32", "2", "32", "流组合 *mix* <T>[0:16]"]),
        ("layers.{i}.mix_fn<", ["layer 1", "4 × 64", "stored 4 × 32", "256", "Weights"]),
        ("layers.{i}.mix_fn.scale<", ["scales", "Weights"]),
        ("embed.weight<", ["9 × 64", "–"]),
    ],
)
def test_a_tensor_leads_to_the_component_that_owns_it(site: Site, name: str, shown: list[str]) -> None:
    found = row(html(site, "toy/tensors/index.md"), name)
    for text in shown:
        assert text in found


def test_an_owner_is_linked_at_its_row(site: Site) -> None:
    assert 'href="../components/mix/weights/#row-matrix"' in html(site, "toy/tensors/index.md")


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        (["embed.weight", "norm.weight"], {"model": 2}),
        (["l.{i}.a.x", "l.{i}.a.y", "l.{i}.a.z", "l.{i}.b.x"], {"l.{i}.a": 3, "l.{i}": 1}),
        (["v.x", "v.y", "v.z"], {"v": 3}),
    ],
)  # fmt: skip
def test_small_groups_stand_in_the_module_around_them(names: list[str], groups: dict[str, int]) -> None:
    patterns = [replace(TENSORS[0], pattern=name) for name in names]
    assert {name: len(found) for name, found in tensor_groups(patterns).items()} == groups


def test_both_tables_are_files(site: Site) -> None:
    lines = list(csv.DictReader(io.StringIO(site.files["toy/tensors/tensors.csv"].decode())))
    assert [line["pattern"] for line in lines] == [one.pattern for one in TENSORS]
    assert lines[0]["components"] == "mix" and lines[1]["elements"] == "256"
    rows = list(csv.DictReader(io.StringIO(site.files["toy/components/accounting.csv"].decode())))
    assert {(r["component"], r["place"], r["row"], r["part"], r["total"]) for r in rows} >= {
        ("mix", "", "offsets", "", "64"),
        ("mix", "blocks", "", "mix/weights", "1024"),
        ("mix/weights", "", "matrix", "", "1024"),
    }


# --- source ----------------------------------------------------------------------------------------


SOURCE = "toy/source/toy/mix.py/index.md"


def test_every_line_has_its_anchor_and_cited_ones_lead_back(site: Site) -> None:
    page = html(site, SOURCE)
    assert re.findall(r'class="ms-line[^"]*" id="(L\d+)"', page) == [f"L{n}" for n in range(1, 8)]
    component = "../../../components/mix/#code-mix-L4"
    assert f'<a class="ms-cited" href="{component}"' in page  # cited once
    assert '<a class="ms-cited" href="#cited-7-7" title="cited by 2 places">7</a>' in page
    assert '<li id="cited-7-7">' in page and '<a href="#L1" tabindex="-1">1</a>' in page


def test_excerpts_lead_to_the_whole_file(site: Site) -> None:
    assert 'href="../../source/toy/mix.py/#L4">toy/mix.py:4–7</a>' in html(site, "toy/components/mix/index.md")


def test_source_is_shown_as_it_is_and_never_indexed(site: Site) -> None:
    page = next(p for p in site.pages if p.path == SOURCE)
    assert not page.searchable and "# ``` &lt;b&gt;" in page.html()


def test_a_file_counts_its_lines() -> None:
    assert [SourceFile("a", text, ()).num_lines for text in ("", "a", "a\n", "a\nb")] == [0, 1, 1, 2]


def test_the_fixture_has_no_meanings_of_its_own() -> None:
    assert "spec/toy/config.yml" not in FILES
