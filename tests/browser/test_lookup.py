"""Finding one's way: what the search leads to, how large its index may be, and the indices themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from serving import visit

MODEL = "deepseek-v4.1-flash/"
LARGEST_INDEX = 5_000_000  # bytes, of all models together


@pytest.mark.parametrize(
    ("query", "leads_to"),
    [
        ("Stream combination", "components/stream_weights_for_attention/stream_combination/"),
        ("mix_projection", "components/stream_weights_for_attention/mix_projection/"),
        ("hc_ffn_fn", "tensors/"),
        ("experts.w1", "components/moe/routed_experts/w1/"),
        ("eps_hc", "symbols/"),
        ("candidate_topk_blocks", "configuration/"),
        ("dspark_markov_rank", "configuration/"),
        ("No norm on query heads", "gotchas/"),
    ],
)
def test_the_search_leads_to_the_page(chromium: Any, address: str, query: str, leads_to: str) -> None:
    with visit(chromium, address) as seen:
        page = seen.page
        page.locator(".md-search__input").press_sequentially(query)
        link = page.locator(f".md-search-result__item a[href*='{MODEL}{leads_to}']")
        link.first.wait_for(timeout=15_000, state="attached")
        seen.assert_clean()


def test_the_index_of_the_search_stays_small_and_without_places_or_source(built: Path) -> None:
    file = built / "search" / "search_index.json"
    assert file.stat().st_size <= LARGEST_INDEX
    found = {entry["location"].partition("#")[0] for entry in json.loads(file.read_text("utf-8"))["docs"]}
    assert {f"{MODEL}{name}/" for name in ("configuration", "symbols", "tensors")} <= found
    assert [place for place in found if place.startswith((f"{MODEL}source/", f"{MODEL}layers/"))] == [f"{MODEL}layers/"]


def test_the_index_stays_small_with_every_component_documented(built: Path) -> None:
    """Pages of places are left out, so the index grows with components alone: 122 of them, at the present mean."""
    docs = json.loads((built / "search" / "search_index.json").read_text("utf-8"))["docs"]
    components = f"{MODEL}components/"
    per_page: dict[str, int] = {}
    for entry in docs:
        page = entry["location"].partition("#")[0]
        per_page[page] = per_page.get(page, 0) + len(json.dumps(entry))
    own = [size for page, size in per_page.items() if page.startswith(components) and page != components]
    rest = sum(per_page.values()) - sum(own)
    assert rest + 122 * sum(own) / len(own) <= LARGEST_INDEX


def test_names_of_tensors_are_narrowed_as_one_types(chromium: Any, address: str) -> None:
    with visit(chromium, f"{address}{MODEL}tensors/") as seen:
        page = seen.page
        page.locator(".ms-filter input").press_sequentially("hc_ffn")
        names = page.locator("table.ms-names tbody tr").filter(visible=True).locator("th code").all_inner_texts()
        assert names and all("hc_ffn" in name for name in names)
        page.locator("table.ms-names tbody tr").filter(visible=True).locator("td a").first.click()
        assert "components/stream_weights_for_feed_forward/" in page.url and "#row-" in page.url
        seen.assert_clean()


def test_a_cited_line_leads_to_the_page_and_back(chromium: Any, address: str) -> None:
    with visit(chromium, f"{address}{MODEL}components/stream_expansion/") as seen:
        page = seen.page
        page.locator(".ms-code__path a").first.click()
        assert f"{MODEL}source/reference_impl/ops/streams.py/#L" in page.url
        line = page.url.rpartition("#")[2]
        page.locator(f"#{line}").wait_for(state="visible")
        page.locator(".ms-code__gutter .ms-cited", has_text=line.removeprefix("L")).first.click()
        page.wait_for_url("**/components/stream_expansion/#code-*")
        seen.assert_clean()


def test_without_script_the_filter_is_not_offered(chromium: Any, address: str) -> None:
    with visit(chromium, f"{address}{MODEL}tensors/", script=False) as seen:
        assert seen.page.locator(".ms-filter").is_hidden()
        assert seen.page.locator("table.ms-names tbody tr").count() > 100


@pytest.mark.parametrize("path", ["llms.txt", f"{MODEL}tensors/tensors.csv", f"{MODEL}components/accounting.csv"])
def test_files_for_machines_are_there(built: Path, path: str) -> None:
    assert (built / path).stat().st_size > 1000


def test_every_page_with_data_has_its_markdown_twin(built: Path) -> None:
    twins = [path.with_name("index.md") for path in built.rglob("page.json")]
    assert len(twins) > 100 and [str(path) for path in twins if not path.is_file()] == []
    assert twins[0].read_text("utf-8").startswith("# ")
