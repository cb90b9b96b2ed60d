"""The family page: a model as a module of a library, made from the statements of its components alone."""

from __future__ import annotations

import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from sitegen import bookmaker, pipeline, verifier
from sitegen.render import family_view
from sitegen.render.code import Highlighter
from sitegen.render.context import Workshop
from sitegen.render.page import Page
from sitegen.render.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
MODEL = "deepseek-v4"
PAGE = f"{MODEL}/family/index.md"


@pytest.fixture(scope="module")
def pages() -> dict[str, Page]:
    return {page.path: page for page in pipeline.build(ROOT, Settings(), [MODEL]).pages}


@pytest.fixture(scope="module")
def html(pages: dict[str, Page]) -> str:
    return pages[PAGE].html()


@pytest.fixture(scope="module")
def view() -> family_view.FamilyView:
    book, _ = bookmaker.make_book(ROOT, MODEL)
    return family_view.family_view(Workshop(book, Settings(), Highlighter(None)))


def words(html: str) -> str:
    """What a reader reads: no tags, one space between words."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def test_sections_stand_in_the_order_of_a_librarys_module_page(pages: dict[str, Page]) -> None:
    assert [block.heading for block in pages[PAGE].blocks if block.heading] == [
        "Module tree", "Names", "Streams", "Hyper-connection", "Block", "What is additive", "Contributions", "Readout",
        "Attention interface", "Mixture of experts", "Counts", "Reference",
    ]  # fmt: skip


#: What the page must carry, at least, as a reader sees it.
CARRIED = (
    "transformers.models.deepseek_v4.modeling_deepseek_v4.DeepseekV4ForCausalLM", "transformers==5.24.0",
    "284,332,230,231", "284,325,869,015", "13,799,622,231", "393,243", "65,541",
    "It is no published checkpoint", "post_attention_layernorm", "hc_head", "lm_head",
    "layers.{i}.ffn.experts.{e}.w1.weight",
    "With the combination not transposed the streams are others", "The plain sum over the streams is no residual",
    "logits of deviation 8", "They are one tensor", "window and all entries so far", "cannot run from embeddings alone",
    "the model cannot be built with it", "mlp.gate.tid2eid", "mlp.gate.e_score_correction_bias",
    "project_on_vocab", "It is not latent attention", "broadcasts over batch, positions and streams",
)  # fmt: skip


@pytest.mark.parametrize("text", CARRIED)
def test_the_page_carries(text: str, html: str) -> None:
    assert text in words(html)


def test_the_module_tree_is_that_of_the_package(view: family_view.FamilyView) -> None:
    """Depth by depth, each module once, with its class; `model` only holds others."""
    names = [(row.depth, row.name, row.kind) for row in view.modules]
    once = [row for row in names if row[1] == "attn_hc"]
    assert once == [(3, "attn_hc", "DeepseekV4HyperConnection")], "once for all layers"
    assert names[0] == (0, "(the model)", "DeepseekV4ForCausalLM")
    assert (2, "embed_tokens", "Embedding") in names and (2, "layers[i]", "DeepseekV4DecoderLayer") in names
    assert (3, "attn_hc", "DeepseekV4HyperConnection") in names and (3, "ffn_hc", "DeepseekV4HyperConnection") in names
    assert (1, "lm_head", "Linear") in names
    compressor = [row for row in view.modules if row.kind in ("DeepseekV4HCACompressor", "DeepseekV4CSACompressor")]
    assert compressor and all(row.places for row in compressor), "a module of some layers says which"


def test_names_are_many_to_one_for_experts(view: family_view.FamilyView) -> None:
    """Every tensor once with all its slices; experts are stacked in the package and single in a checkpoint."""
    rows = [row for row in view.names if "mlp.experts" in row.tensor]
    assert {row.tensor: row.stored for row in rows}["model.layers[i].mlp.experts.down_proj"] == (
        "layers.{i}.ffn.experts.{e}.w2.weight",
    )
    assert [len(row.stored) for row in rows if "gate_up_proj" in row.tensor] == [2, 2]
    stored = {name for row in view.names for name in row.stored}
    assert {"embed.weight", "head.weight", "hc_head_fn", "layers.{i}.hc_attn_fn", "layers.{i}.ffn.gate.tid2eid"} <= stored


def test_every_sentence_and_check_is_a_components_own(view: family_view.FamilyView, pages: dict[str, Page]) -> None:
    """No second text: what the page says stands on the component's page too, with the same mark."""
    seen = 0
    for section in view.sections:
        for item in section.items:
            if item.kind not in ("sentence", "check", "formula"):
                continue
            goal, _, anchor = item.link.href.partition("#")
            path = posixpath.normpath(posixpath.join(posixpath.dirname(PAGE), goal)) + "/index.md"
            other = pages[path].html()
            assert f'id="{anchor}"' in other, item.link.href
            said = item.sentence.html if item.sentence else item.check.html if item.check else item.text
            assert words(str(said)) in words(other), said
            seen += 1
    assert seen > 70


def test_links_lead_somewhere(html: str, pages: dict[str, Page]) -> None:
    for href in set(re.findall(r'href="([^"]+)"', html)):
        if href.startswith("https://"):
            continue
        goal, _, anchor = unescape(href).partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(PAGE), goal)) + "/index.md" if goal else PAGE
        assert path in pages, href
        anchors = [block.anchor for block in pages[path].blocks]
        assert not anchor or f'id="{anchor}"' in pages[path].html() or anchor in anchors, href


def test_a_sweep_is_a_table_of_what_is_stated_and_what_was_seen(html: str) -> None:
    table = re.search(r'<table class="ms-table ms-sweep">.*?</table>', html, re.S)
    assert table and table.group().count("<tr>") == 7
    assert "2.0e-06" in table.group() and "1.7e-02" in table.group()


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    shutil.copytree(ROOT / "spec" / MODEL, tmp_path / "spec" / MODEL)
    shutil.copy(ROOT / "mkdocs.yml", tmp_path / "mkdocs.yml")
    yield tmp_path


#: name -> old, new, part of the message
WRONG = {
    "a component": ("  - stream_expansion\n", "  - stream_expansions\n", "no component 'stream_expansions'"),
    "a statement": ("stream_expansion#out:X", "stream_expansion#out:Y", "no statement of stream_expansion 'out:Y'"),
    "a citation": ("evidence:tracing", "evidence:traces", "no evidence entry 'traces'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_reference_of_the_page_that_leads_nowhere_is_a_finding(name: str, project: Path) -> None:
    old, new, said = WRONG[name]
    file = project / "spec" / MODEL / "family.yml"
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), "utf-8")
    report = verifier.check(project, MODEL)
    found = [f for f in report.findings if said in f.message]
    assert report.exit_code == 1 and found and found[0].code == "unknown-reference"
    assert found[0].where.file == f"spec/{MODEL}/family.yml" and found[0].where.line > 0 and found[0].hint


def test_the_page_is_made_without_torch_and_without_the_package(project: Path) -> None:
    """Facts are enough; without facts every mark says that nothing was run."""
    shutil.rmtree(project / "spec" / MODEL / "facts", ignore_errors=True)
    code = f"""
import sys
for name in ("torch", "transformers", "numpy", "safetensors"):
    sys.modules[name] = None
from pathlib import Path
from sitegen import pipeline
from sitegen.render.settings import Settings
page = next(p for p in pipeline.build(Path({str(project)!r}), Settings()).pages if p.path == {PAGE!r})
html = page.html()
assert "ms-mark--not-run" in html and "ms-mark--executed" not in html
print("284,332,230,231" in html)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.strip() == "True", done.stderr
