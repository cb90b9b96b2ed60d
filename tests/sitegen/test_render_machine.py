"""Pages for machines: JSON and its schema, Markdown twins, and the map of the site."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from test_render_index_pages import CONFIG, FIELDS, TENSORS
from test_render_site import book

from sitegen import pipeline
from sitegen.render import page_schema
from sitegen.render.markdown_twin import page_markdown
from sitegen.render.settings import Settings
from sitegen.render.site import Site, render

ROOT = Path(__file__).resolve().parents[2]


def toy(folder: Path, settings: Settings) -> Site:
    made = book(folder, **{"spec/toy/config.yml": CONFIG})
    return render([replace(made, fields=FIELDS, tensors=TENSORS)], {}, settings)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return toy(tmp_path_factory.mktemp("toy"), Settings(site_url="https://example.org/docs/"))


@pytest.fixture(scope="module")
def flagship() -> Site:
    return pipeline.build(ROOT, Settings(cache=ROOT / ".sitegen" / "cache")).site


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = json.loads(page_schema.schema_file())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def errors(validator: jsonschema.Draft202012Validator, data: dict[str, Any]) -> list[str]:
    """What is wrong with a page's data, by the form that its kind has."""
    one = validator.evolve(schema=page_schema.PAGES[data["page"]])
    return [f"{'/'.join(map(str, e.path))}: {e.message[:120]}" for e in one.iter_errors(data)]


def test_every_page_of_the_flagship_has_json_that_fits_the_published_schema(
    flagship: Site, validator: jsonschema.Draft202012Validator
) -> None:
    assert flagship.files[page_schema.FILE] == page_schema.schema_file()
    kinds = set()
    for page in flagship.pages:
        if page.twin is None:
            continue
        data = json.loads(flagship.files[page.path.removesuffix("index.md") + "page.json"])
        assert errors(validator, data) == [], page.path
        kinds.add(data["page"])
    assert kinds == set(page_schema.PAGES)
    one = next(page.twin for page in flagship.pages if page.twin)
    assert validator.is_valid(json.loads(json.dumps(one)))


def _set(*path: str | int, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        _set("schema", value=2),
        _set("page", value="other"),
        _set("stray", value=1),
        _set("verdicts", 0, "state", value="green"),
        _set("parameters", "total", value="1088"),
        _set("code", 0, "lines", value=[4]),
        _set("formulas", 0, "tex", value=None),
        lambda data: data.pop("reason"),
    ],
)
def test_data_of_another_form_does_not_fit(
    site: Site, validator: jsonschema.Draft202012Validator, change: Callable[[dict[str, Any]], None]
) -> None:
    data = json.loads(site.files["toy/components/mix/page.json"])
    assert validator.is_valid(data)
    changed = copy.deepcopy(data)
    change(changed)
    assert not validator.is_valid(changed)


@pytest.mark.parametrize(
    ("path", "texts"),
    [
        ("toy/components/mix/index.md", ["# 流组合 *mix* <T>\n", "`mix`, learned", "Mixes Tensor<T> for $5 or $6",
                                         "C[j,k] = x[j]*x[k] + eps", "272 in an instance, 4 instances, 1,088 in all",
                                         "| `step:halve` | failed | cpu |", "lines 430–458"]),
        ("toy/layers/blocks/mix/index.md", ["in the place `blocks`"]),
        ("toy/configuration/index.md", ["| `epsilon` | `1e-06` | A guard. |", "It is fixed in the code."]),
        ("toy/symbols/index.md", ["| `n` | `n` | streams: copies of the residual | 4 | `num_streams` |"]),
        ("toy/tensors/index.md", ["| `layers.{i}.mix_fn` | 4 × 64 | I8 | 1 | `mix/weights` |"]),
        ("toy/source/toy/mix.py/index.md", ["7 lines.", "| 4–7 | mix, mix |"]),
        ("toy/index.md", ["3 components; 7 of 15 statements executed.", "| Everything | 544 |"]),
        ("toy/layers/blocks/index.md", ["`blocks`, 4 instances, layers 1, 2, 4, 5"]),
    ],
)  # fmt: skip
def test_a_page_is_plain_markdown_too(site: Site, path: str, texts: list[str]) -> None:
    plain = next(page for page in site.pages if page.path == path).plain()
    for text in texts:
        assert text in plain, plain
    assert "<span" not in plain and "[page.json](page.json)" in plain


def test_a_bar_in_a_cell_does_not_end_it(site: Site) -> None:
    data = next(page.twin for page in site.pages if page.path == "toy/configuration/index.md")
    changed = copy.deepcopy(data)
    assert changed is not None
    changed["fields"][0]["meaning"] = "a | b\nc"
    assert "| a \\| b c |" in page_markdown(changed)


def test_the_map_follows_the_form_of_llms_txt(site: Site) -> None:
    lines = site.files["llms.txt"].decode().splitlines()
    assert lines[0] == "# Model specifications" and lines[2].startswith("> Documentation of Toy")
    heads = [line for line in lines if line.startswith("## ")]
    assert heads == ["## Toy", "## Components of Toy", "## Optional"]
    after = lines[lines.index(heads[0]) :]
    assert all(re.fullmatch(r"(## .+|- \[[^\]]+\]\(https://example\.org/docs/\S+\)(: .+)?|)", line) for line in after)


@pytest.mark.parametrize(("twins", "file"), [(True, "index.md"), (False, "page.json")])
def test_the_map_leads_to_files_that_are_there(tmp_path: Path, twins: bool, file: str) -> None:
    site = toy(tmp_path, Settings(markdown_twins=twins))
    linked = re.findall(r"\]\((\S+?)\)", site.files["llms.txt"].decode())
    pages = {page.path for page in site.pages if page.plain()}
    assert f"toy/components/mix/{file}" in linked
    folders = {page.path.removesuffix("index.md") for page in site.pages}
    assert [link for link in linked if link not in site.files and link not in pages and link not in folders] == []
