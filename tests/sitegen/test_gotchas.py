"""What ports get wrong: every point of the flagship, the findings of a list of points, and its page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from test_render_site import FILES as PAGE_FILES
from test_render_site import book, page, words
from test_spec_stages import accounts, project

from sitegen import loader, resolver
from sitegen.diagnostics import SpecInvalid
from sitegen.gotchas import gotcha_findings
from sitegen.prosenumbers import Figures
from sitegen.render.book import Verdict
from sitegen.render.settings import Settings
from sitegen.render.site import Site, render
from sitegen.statements import wrong_version

ROOT = Path(__file__).resolve().parents[2]
FLAGSHIP = "deepseek-v4.1-flash"

#: Points in which no wrong version can run: a slot that a decoding step does not publish, and a call that is refused.
UNEXECUTED = {22, 23}


@pytest.fixture(scope="module")
def flagship() -> resolver.Model:
    return resolver.resolve(loader.load(ROOT, FLAGSHIP))


def test_the_flagship_makes_all_39_points_and_runs_all_that_can_be_run(flagship: resolver.Model) -> None:
    gotchas = [gotcha for chapter in flagship.sources.gotchas for gotcha in chapter.file.gotchas]
    assert [gotcha.point for gotcha in gotchas] == list(range(1, 40))
    assert {gotcha.point for gotcha in gotchas if gotcha.unexecuted} == UNEXECUTED
    for gotcha in gotchas:
        assert set(gotcha.components) <= flagship.components.keys()
        for name in gotcha.by:
            owner, _, statement = name.partition("#")
            assert wrong_version(flagship.component(owner), statement) is not None, (gotcha.point, name)


# --- findings ---------------------------------------------------------------------------------------

POINTS = """
title: All
gotchas:
- point: 1
  title: First
  text: There are {n} of [them](component:mix).
  components: [mix/weights, mix]
  by: ["mix/weights#property:doubled", "mix/weights#case:turned", "mix/weights#property:edited"]
- {point: 2, title: Second, text: A refusal., components: [mix], unexecuted: nothing runs}
"""
CHECKS = """
  properties:
  - {id: same, text: The same., holds: "y = y", tolerance: {kind: exact}}
  - {id: doubled, kind: control, text: Doubled., holds: "y = 2*y", margin: 0.1}
  - {id: edited, kind: causal, text: Edited., edit: {value: a.x, add: 1.0}, moves: [b.y]}
  cases:
  - {id: plain, text: Plain., call: turn, with: {x: 1}, gives: {result: 2}}
  - {id: turned, text: Turned., call: turn, with: {x: 1}, gives: {result: 2}, instead: {text: no, gives: {result: 3}}}
- id: mix/experts"""


def findings(folder: Path, old: str, new: str) -> list[tuple[str, str, str, int]]:
    """Code, message and place of what is wrong with the points when `old` is `new`."""
    assert old in POINTS
    project(folder, spec__toy__components__mix__yml=("\n- id: mix/experts", CHECKS))
    (folder / "spec/toy/gotchas-all.yml").write_text(POINTS.replace(old, new, 1), "utf-8")
    try:
        counted = accounts(folder)
    except SpecInvalid as error:
        found = list(error.findings)
    else:
        found = list(gotcha_findings(counted, Figures(counted)))
    return [(f.code, f.message, f.where.file, f.where.line) for f in found]


def test_points_that_name_checks_of_wrong_versions_are_in_order(tmp_path: Path) -> None:
    assert findings(tmp_path, "First", "First") == []


@pytest.mark.parametrize(
    ("old", "new", "code", "told"),
    [
        ("#property:doubled", "#property:same", "gotcha-untested", "no wrong version runs in 'property:same'"),
        ("#case:turned", "#case:plain", "gotcha-untested", "no wrong version runs in 'case:plain'"),
        ("#case:turned", "#row:upper", "gotcha-untested", "no wrong version runs in 'row:upper'"),
        ("#property:doubled", "#property:double", "unknown-reference", "no statement 'property:double'"),
        ("mix/weights#case", "mix/weight#case", "unknown-reference", "no component 'mix/weight'"),
        ("mix/weights#case:turned", "case:turned", "unknown-reference", "no component 'case:turned'"),
        ("[mix/weights, mix]", "[mix/weights, mox]", "unknown-reference", "no component 'mox'"),
        ("point: 2", "point: 1", "schema-invalid", "the point 1 is made twice"),
        ("point: 2", "point: 0", "schema-invalid", "gotchas.1.point: input should be greater than or equal to 1"),
        (", unexecuted: nothing runs", "", "schema-invalid", "give either the checks"),
        ("components: [mix], unexecuted", "components: [], unexecuted", "schema-invalid", "gotchas.1.components"),
        ("{n} of", "{nn} of", "unknown-symbol", ""),
        ("(component:mix)", "(component:mox)", "unknown-reference", "no component 'mox'"),
        ("(component:mix)", "(code:mix)", "unknown-reference", "a point has no code 'mix'"),
        ("There are {n}", "There are 256", "number-unbound", "256 in prose is a known figure"),
        ("title: All\n", "", "schema-invalid", "the field 'title' is missing"),
    ],
)
def test_a_fault_of_a_point_is_a_finding_with_its_place(
    tmp_path: Path, old: str, new: str, code: str, told: str
) -> None:
    found = findings(tmp_path, old, new)
    assert found, (old, new)
    assert {f[0] for f in found} == {code}
    assert all(told in f[1] and f[2] == "spec/toy/gotchas-all.yml" and f[3] > 0 for f in found), found


# --- the page ---------------------------------------------------------------------------------------

PAGE_POINTS = {
    "spec/toy/gotchas-all.yml": """
title: Mixing
gotchas:
- point: 7
  title: The sum <b>
  text: It has {n} streams, see [the norm](component:norm).
  components: [mix, norm]
  by: ["mix#property:doubled", "mix#case:turned"]
- {point: 8, title: Refused, text: A call is refused., components: [mix], unexecuted: nothing comes of it}
""",
    "spec/toy/components/mix.yml": PAGE_FILES["spec/toy/components/mix.yml"].replace(
        "properties:\n",
        """cases:
- {id: turned, text: Turned., call: turn, with: {x: 1}, gives: {result: 2}, instead: {text: other, gives: {result: 3}}}
properties:
- {id: doubled, kind: control, text: "Not twice.", holds: "C[j,k] = 2*C[j,k]", regimes: [sharp], margin: 0.25}
""",
    ),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    made = book(tmp_path_factory.mktemp("toy"), **PAGE_POINTS)
    seen = (
        Verdict("property:doubled", "executed", "cpu", detail="error 3 over 1 samples (small, regime sharp)"),
        Verdict("case:turned", "executed", "cpu", detail="it differs by 1"),
    )
    return render([replace(made, verdicts={**made.verdicts, "mix": (*made.verdicts["mix"], *seen)})], {}, Settings())


def test_a_point_says_what_was_tried_on_which_input_and_what_was_seen(site: Site) -> None:
    (found,) = [p for p in site.pages if p.path == "toy/gotchas/index.md"]
    assert [(b.heading, b.anchor) for b in found.blocks][1:] == [
        ("Mixing", "mixing"), ("7. The sum <b>", "point-7"), ("8. Refused", "point-8")
    ]  # fmt: skip
    shown = words(found.blocks[2].html)
    for text in (
        "It has 4 streams, see the norm . executed",
        "Not twice. executed On sharp drawn inputs: error 3 over 1 samples (small, regime sharp); at least 0.25 is asked",
        "Wrong formula C[j,k] = 2*C[j,k]",
        "Turned. Wrong: other executed turn(x=1) : it differs by 1.",
    ):
        assert text in shown, shown
    assert 'href="../components/mix/#check-property-doubled"' in found.blocks[2].html
    assert "not run" in words(found.blocks[3].html) and "Not executed: nothing comes of it." in words(found.html())


def test_every_component_concerned_shows_its_points(site: Site) -> None:
    for path, href in (
        ("toy/components/mix/index.md", "../../gotchas/#point-7"),
        ("toy/components/norm/index.md", "../../gotchas/#point-7"),
        ("toy/layers/blocks/mix/index.md", "../../../gotchas/#point-7"),
    ):
        assert f'<a href="{href}">The sum &lt;b&gt;</a>' in page(site, path), path
    weights = next(p for p in site.pages if p.path == "toy/components/mix/weights/index.md")
    assert "What a port gets wrong" not in [b.heading for b in weights.blocks]


def test_points_are_data_and_markdown_too(site: Site) -> None:
    data = json.loads(site.files["toy/gotchas/page.json"])
    assert [(g["point"], g["state"], g["unexecuted"]) for g in data["gotchas"]] == [
        (7, "executed", None), (8, "not-run", "nothing comes of it")
    ]  # fmt: skip
    assert data["gotchas"][0]["checks"][0] == {
        "statement": "mix#property:doubled",
        "text": "Not twice.",
        "formula": "C[j,k] = 2*C[j,k]",
        "input": "sharp drawn inputs",
        "state": "executed",
        "seen": "error 3 over 1 samples (small, regime sharp)",
        "least": 0.25,
    }
    plain = next(p for p in site.pages if p.path == "toy/gotchas/index.md").plain()
    assert "| `mix#case:turned` | Turned. Wrong: other | turn(x=1) | executed | it differs by 1 |" in plain
    component = json.loads(site.files["toy/components/mix/page.json"])
    assert [g["point"] for g in component["gotchas"]] == [7, 8]
    mix = next(p for p in site.pages if p.path == "toy/components/mix/index.md").plain()
    assert "- Point 7, The sum <b>: It has 4 streams, see the norm." in mix


def test_a_model_without_points_has_no_page_of_them(tmp_path: Path) -> None:
    made = render([book(tmp_path)], {}, Settings())
    assert not [p for p in made.pages if "gotchas" in p.path]
    assert "gotchas" not in made.files["llms.txt"].decode()
