"""Two models side by side, and one model at two revisions: nothing is guessed, and every difference is named."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sitegen import comparison, pipeline
from sitegen.cli import main
from sitegen.diagnostics import SpecInvalid
from sitegen.render.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
OLD, NEW = "deepseek-v4", "deepseek-v4.1-flash"
COMPONENTS = """    components:
      compressor/visibility: indexer/visibility
      attention/window_kv/rotation: attention/window_kv/rotation_and_fp8
"""
WEIGHTS = f"spec/{OLD}/components/stream_weights.yml"


def sitegen(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["--root", str(root), *arguments])


@pytest.fixture(scope="module")
def found() -> comparison.Comparison:
    return comparison.compare(comparison.load(ROOT, OLD), comparison.load(ROOT, NEW))


def change(found: comparison.Comparison, id: str, aspect: str) -> comparison.Change | None:
    pair = next(pair for pair in found.pairs if pair.after == id)
    return next((c for c in pair.changes if c.aspect == aspect), None)


def test_a_hyper_connection_is_the_same_formula_with_more_parameters(found: comparison.Comparison) -> None:
    """393,243 become 491,547; the collapse moves out of it."""
    assert change(found, "stream_weights_for_attention", "per instance") == comparison.Change(
        "per instance", "393,243", "491,547"
    )
    assert change(found, "stream_weights_for_attention/stream_combination", "parameters") is None
    shapes = change(found, "stream_weights_for_attention/mix_projection", "parameters")
    assert shapes and shapes.before == "projection: [24, 16384] = 393,216 F32"
    assert shapes.after == "projection: [24, 20480] = 491,520 F32"
    assert change(found, "stream_weights_for_attention/writing_weights", "formula") is None


def test_what_one_model_alone_has_is_new_or_gone(found: comparison.Comparison) -> None:
    assert {"identity_reading_weights", "image_merge"} <= set(found.new)
    assert {"moe/gate/token_table", "attention/query/head_norm", "compressor/position_bias"} <= set(found.gone)
    collapse = change(found, "final_collapse", "per instance")
    assert collapse == comparison.Change("per instance", "65,541", "0"), "the weights of the last collapse are gone"
    assert set(found.new).isdisjoint(p.after for p in found.pairs)
    assert len(found.pairs) + len(found.gone) == len(found.before.model.components)


def test_figures_are_counted_from_each_models_own_configuration(found: comparison.Comparison) -> None:
    figures = {v.name: (v.before, v.after) for v in found.figures}
    assert figures["Routed experts"] == (256, 384)
    assert figures["Compressed cache in bfloat16, bytes per token"] == (6_880, 3_200)
    assert figures["Positions per compressed entry, second kind of layer"] == (128, 1)
    assert figures["Parameters per hyper-connection"] == (393_243, 491_547)
    assert {v.name: (v.before, v.after) for v in found.symbols}["d"] == (4096, 5120)


def test_the_other_way_round_new_and_gone_change_places(found: comparison.Comparison) -> None:
    turned = comparison.compare(found.after, found.before)
    assert set(turned.new) == set(found.gone) and set(turned.gone) == set(found.new)
    assert {v.name: (v.after, v.before) for v in turned.figures} == {v.name: (v.before, v.after) for v in found.figures}


def test_a_model_beside_itself_states_the_same() -> None:
    done = sitegen(ROOT, "diff", OLD, OLD)
    assert done.exit_code == 0, done.output
    assert "nothing that is cited changed" in done.output


def test_json_holds_what_the_text_holds(found: comparison.Comparison) -> None:
    done = sitegen(ROOT, "diff", OLD, NEW, "--format", "json")
    assert done.exit_code == 1
    data = json.loads(done.output)
    assert data["before"] == OLD and data["after"] == NEW and data["differs"]
    assert [entry["id"] for entry in data["gone"]] == list(found.gone)
    assert [entry["after"] for entry in data["changed"]] == [pair.after for pair in found.changed]


#: name -> arguments, part of what is said
REFUSED = {
    "one name": (("diff", OLD), "compares two"),
    "a model that does not exist": (("diff", OLD, "deepseek-v5"), "no model 'deepseek-v5'"),
    "a revision that does not exist": (("diff", "--model", OLD, "HEAD", "no-such-revision"), "no revision"),
    "a revision that looks like an option": (("diff", "--model", OLD, "--", "--output=x", "HEAD"), "no revision"),
    "two models at two revisions": (("diff", "--model", OLD, "--model", NEW, "HEAD", "HEAD"), "give --model once"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_compared_is_refused_with_exit_code_2(name: str) -> None:
    arguments, said = REFUSED[name]
    done = sitegen(ROOT, *arguments)
    assert done.exit_code == 2 and said in done.output, done.output


# --- maps ------------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in (OLD, NEW):
        shutil.copytree(ROOT / "spec" / name, tmp_path / "spec" / name)
    (tmp_path / "reference_impl").mkdir()
    shutil.copy(ROOT / "reference_impl/config.json", tmp_path / "reference_impl/config.json")
    shutil.copytree(ROOT / "benchmarks/results", tmp_path / "benchmarks/results")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path / "mkdocs.yml")
    return tmp_path


def edit(root: Path, file: str, old: str, new: str) -> None:
    text = (root / file).read_text("utf-8")
    assert old in text
    (root / file).write_text(text.replace(old, new, 1), "utf-8")


def test_a_map_joins_two_ids_and_keeps_two_equal_ones_apart(project: Path) -> None:
    pairs = "    apart: [final_collapse]\n    components:\n      attention/query/head_norm: identity_reading_weights\n"
    edit(project, f"spec/{OLD}/map.yml", COMPONENTS, pairs)
    found = comparison.compare(comparison.load(project, OLD), comparison.load(project, NEW))
    joined = next(pair for pair in found.pairs if pair.before == "attention/query/head_norm")
    assert joined.after == "identity_reading_weights"
    assert "final_collapse" in found.new and "final_collapse" in found.gone


#: name -> what stands in the map, part of the message
WRONG_MAPS = {
    "an id that this model does not have": ("components: {attention/querry: head}", "no component 'attention/querry'"),
    "an id that the other model does not have": ("components: {head: heads}", "no component 'heads'"),
    "two ids with one counterpart": ("components: {head: final_norm, final_norm: final_norm}", "same counterpart"),
    "an id to keep apart that one model lacks": ("apart: [moe/gate/token_table]", "not an id of both models"),
}


@pytest.mark.parametrize("name", WRONG_MAPS)
def test_a_map_that_names_what_is_not_there_is_a_finding(name: str, project: Path) -> None:
    text, said = WRONG_MAPS[name]
    edit(project, f"spec/{OLD}/map.yml", COMPONENTS, f"    {text}\n")
    with pytest.raises(SpecInvalid) as refused:
        comparison.compare(comparison.load(project, OLD), comparison.load(project, NEW))
    finding = refused.value.findings[0]
    assert said in finding.message and finding.where.file == f"spec/{OLD}/map.yml" and finding.where.line > 0
    counted = {name: comparison.load(project, name) for name in (OLD, NEW)}
    assert [f.message for f in pipeline.comparisons(counted)[1]] == [f.message for f in refused.value.findings]


# --- revisions -------------------------------------------------------------------------------------


@pytest.fixture
def history(project: Path) -> Callable[..., None]:
    """A repository of its own with one commit; calling it makes another."""

    def commit(message: str = "next") -> None:
        identity = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
        for arguments in (("add", "-A"), (*identity, "commit", "-q", "-m", message)):
            subprocess.run(["git", "-C", str(project), *arguments], check=True, capture_output=True)

    subprocess.run(["git", "-C", str(project), "init", "-q"], check=True)
    commit("first")
    return commit


#: name -> file, old, new, component, aspect
REVISIONS = {
    "a formula": (WEIGHTS, 'expr: "u[k] = 2*sigmoid(', 'expr: "u[k] = 3*sigmoid(', "stream_weights_for_attention", "formula"),  # noqa: E501
    "an axis": (WEIGHTS, "{name: m, axes: [B, T, M]", "{name: m, axes: [B, T, n]", "stream_weights_for_attention/mix_projection", "outputs"),  # noqa: E501
    "a count": (WEIGHTS, "count: n*d*M", "count: n*d*M + n", "stream_weights_for_attention/mix_projection", "per instance"),  # noqa: E501
    "a margin": (WEIGHTS, "margin: 0.3", "margin: 0.2", "stream_weights_for_attention", "properties"),
    "what a source says": (f"spec/{OLD}/evidence.yml", "The package's norm with a gain", "A norm with a gain", "attention_norm", "cited"),  # noqa: E501
}  # fmt: skip


@pytest.mark.parametrize("name", REVISIONS)
def test_a_change_between_two_revisions_is_named(name: str, project: Path, history: Callable[..., None]) -> None:
    file, old, new, component, aspect = REVISIONS[name]
    edit(project, file, old, new)
    history()
    done = sitegen(project, "diff", "--model", OLD, "HEAD~1..HEAD", "--format", "json")
    assert done.exit_code == 1, done.output
    changed = {entry["after"]: [c["aspect"] for c in entry["changes"]] for entry in json.loads(done.output)["changed"]}
    assert aspect in changed[component]


def test_a_title_or_a_comment_is_no_change_of_what_is_cited(project: Path, history: Callable[..., None]) -> None:
    edit(project, WEIGHTS, "title: Mix projection", "title: Projection to mix numbers")
    edit(project, f"spec/{OLD}/symbols.yml", "meaning: width of a stream", "meaning: the width of a stream")
    history()
    edit(project, WEIGHTS, "title: Offsets", "title: not committed")
    done = sitegen(project, "diff", "--model", OLD, "HEAD~1", "HEAD")
    assert done.exit_code == 0 and "nothing that is cited changed" in done.output, done.output
    assert subprocess.run(["git", "-C", str(project), "worktree", "list"], capture_output=True).stdout.count(b"\n") == 1


def test_the_site_shows_the_comparison_with_formulas_on_both_sides() -> None:
    page = next(p for p in pipeline.build(ROOT, Settings()).pages if p.path == f"{NEW}/changes-from/{OLD}/index.md")
    html = page.html()
    assert "491,547" in html and "393,243" in html and html.count("<math") > 20
    assert f'href="../../../{OLD}/components/moe/gate/token_table/"' in html
