"""The plugin is a thin adapter: its pages say what the plain tree's say, and a broken spec is shown, not thrown."""

from __future__ import annotations

import logging
import re
import shutil
from html import unescape
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from project_copy import MODEL, ROOT, SPEC, Copy

from sitegen.outputs.tree import write_tree
from sitegen.render.links import dead_links, read_site

PAGES = (
    f"{MODEL}/components/stream_weights_for_feed_forward",
    f"{MODEL}/layers/ratio-2/reusing/stream_weights_for_attention/stream_combination",
    f"{MODEL}",
)


def visible(html: str) -> str:
    """The article's text as a reader sees it."""
    article = re.search(r"<article[^>]*>(.*?)</article>", html, re.S)
    assert article is not None
    text = re.sub(r"<(script|style)\b.*?</\1>", " ", article.group(1), flags=re.S)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())


def built(config_file: Path, site: Path, **changes: object) -> Path:
    config = load_config(str(config_file), site_dir=str(site), **changes)
    config.plugins.run_event("startup", command="build", dirty=False)
    build(config)
    config.plugins.run_event("shutdown")
    return site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(ROOT / "mkdocs.yml", tmp_path_factory.mktemp("plugin"), repo_url="https://example.org/owner/repo")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tree") / "tree"
    write_tree(ROOT, out, [MODEL])
    return built(out / "mkdocs.yml", out.parent / "site")


@pytest.mark.parametrize("page", PAGES)
def test_plugin_and_tree_show_the_same_text(page: str, site: Path, tree: Path) -> None:
    one, other = (visible((folder / page / "index.html").read_text("utf-8")) for folder in (site, tree))
    drop = re.compile(r"(Edit this page|Report a problem|Edit|·)", re.I)  # only the plugin knows the repository here
    assert drop.sub("", one).split() == drop.sub("", other).split()
    assert len(one) > 500


def test_no_dead_link_in_the_built_site(site: Path) -> None:
    """P11: also anchors and links in raw HTML."""
    assert not list(dead_links(*read_site(site)))


def test_the_edit_link_of_a_generated_page_leads_to_its_spec(site: Path) -> None:
    """P11: not to a Markdown file that does not exist."""
    html = (site / PAGES[0] / "index.html").read_text("utf-8")
    assert f"https://example.org/owner/repo/edit/main/{SPEC}/components/stream_weights.yml" in html
    assert "docs/deepseek" not in html


def test_a_broken_spec_is_shown_on_a_page_and_warned_about(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    copy = Copy.make(tmp_path / "project")
    shutil.copytree(ROOT / "docs", copy.root / "docs")
    copy.edit(f"{SPEC}/model.yml", "schema: 1", "schema: one")
    with caplog.at_level(logging.WARNING, "mkdocs"):
        folder = built(copy.root / "mkdocs.yml", tmp_path / "site", nav=[{"Home": "index.md"}])
    page = visible((folder / "findings" / "index.html").read_text("utf-8"))
    assert "schema-invalid" in page and f"{SPEC}/model.yml:" in page
    assert any("schema-invalid" in record.getMessage() for record in caplog.records), "so that a strict build fails"
