"""Pages of a small model, from its YAML to HTML: every element of the design, in order, on each page."""

from __future__ import annotations

import json
import posixpath
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from sitegen import loader, resolver, statements
from sitegen.diagnostics import SitegenError
from sitegen.render import status
from sitegen.render.book import Account, Book, CodeState, PartCount, RowCount, Verdict
from sitegen.render.links import dead_links
from sitegen.render.settings import Settings
from sitegen.render.site import Site, render
from sitegen.render.tree import tree_config, tree_files
from sitegen.render.view import Run

FILES = {
    "spec/toy/model.yml": """
schema: 1
name: toy
title: Toy
purpose: A model with <b>three</b> components, {{ 7*7 }}.
config: spec/toy/config.json
implementation: {harness: toy.probe, sources: [toy]}
configurations: [{id: small, set: {}}]
places:
- {id: layers, title: 6 layers, layers: 0-5, parts: [norm]}
- {id: groups, title: 3 layers, repeat: 2, layers: 0-5, parent: layers}
- {id: blocks, title: blocks, repeat: 2, layers: [1, 2, 4, 5], path: "layers.{i}", parts: [mix], parent: groups}
""",
    "spec/toy/symbols.yml": r"""
symbols:
  n: {tex: n, meaning: "streams: copies of the residual", field: num_streams, upstream: num_streams}
  d: {tex: d, meaning: width, value: 4 * 16}
  B: {tex: B, meaning: batch}
  j: {tex: j, meaning: source stream}
  k: {tex: k, meaning: target stream}
  C: {tex: C, meaning: combination}
  x: {tex: '\hat{x}', meaning: input}
  eps: {tex: '\varepsilon', meaning: guard, field: epsilon}
""",
    "spec/toy/sources.yml": """
sources:
  paper: {title: "A paper <i>", url: "https://example.org/paper"}
  upstream:
    title: Released code
    repository: owner/repo
    revision: 2cba9e42aa026125f3ed06c6d98c1db82f7ca027
    path: inference/model.py
    url: https://example.org/owner/repo/blob/2cba9e42aa026125f3ed06c6d98c1db82f7ca027/inference/model.py
""",
    "spec/toy/evidence.yml": """
evidence:
  streams: {kind: external, claim: "Streams are cited to others & <others>.", source: paper, section: 2.4.1}
  lines: {kind: direct, claim: The sum runs over the source., source: upstream, lines: [430, 458]}
""",
    "spec/toy/policies.yml": """
policies:
  all: {title: Everything, scope: "Counts all weights; scales are not counted.", terms: [{places: [layers]}]}
""",
    "spec/toy/config.json": '{"num_streams": 4, "epsilon": 1e-6}',
    "spec/toy/components/mix.yml": r"""
id: mix
title: '流组合 *mix* <T>'
kind: learned
purpose: {text: "Mixes `Tensor<T>` for $5 or $6 across {n} streams.", by: ["step:mix"]}
parts: [mix/weights]
expression: {code: "mix(streams, weights)", pin: mix, source: upstream, lines: [948, 955]}
inputs:
- {name: x, axes: [B, n, d], dtype: bfloat16, text: the streams, component: norm}
outputs:
- {name: C, axes: [B, "j: n", "k: n"], dtype: float32, text: the combination}
parameters:
- {id: offsets, tensor: mix_base, slice: "[0:16]", axes: ["j: n", "k: n"], count: n * n, dtype: F32, text: offsets}
steps:
- id: mix
  expr: 'C[j,k] = x[j]*x[k] + eps'
  tex: 'C_{jk} = \hat{x}_j\,\hat{x}_k + \varepsilon'
  text: the product of two entries
  main: true
- {id: halve, expr: 'C[j,k] = C[j,k]/2', text: half of it}
numerics:
- {id: guard, text: "The guard is `1e-6`.", by: ["step:mix"]}
properties:
- {id: symmetric, text: "$C_{jk} = C_{kj}$", kind: identity, holds: "C[j,k] = C[k,j]", tolerance: {kind: exact}}
reason: {given: false, text: No reason is given., section: 2.4.1, cites: [streams]}
explanation:
- {text: "See [the sum](code:sum) and [its weights](component:mix/weights): {total}.", by: ["property:symmetric"]}
code:
- {id: mix, path: toy/mix.py, symbol: mix, main: true, text: The whole function}
- {id: sum, path: toy/mix.py, symbol: mix, fragment: return}
upstream:
- {source: upstream, lines: [962, 966]}
evidence: [lines]
""",
    "spec/toy/components/weights.yml": """
id: mix/weights
title: Weights
kind: learned
purpose: {text: Holds the weights., by: ["row:matrix"]}
parameters:
- {id: matrix, tensor: mix_fn, axes: [n, d], count: n * d, dtype: F32, text: the matrix}
reason: {given: true, text: It must., cites: [lines]}
views: []
""",
    "spec/toy/components/norm.yml": """
id: norm
title: Norm
kind: computed
purpose: {text: Divides., cites: [lines]}
outputs:
- {name: x, axes: [B, n, d], dtype: bfloat16, text: the streams, component: mix}
views:
- {tensor: mix_base, axes: ["n*n"], text: the offsets of the mix}
reason: {given: true, text: It must., cites: [lines]}
""",
}

SOURCE = '''"""Doc."""


def mix(streams, weights):
    # ``` <b>
    scaled = streams * weights
    return scaled @ scaled
'''
MIX = (RowCount("offsets", "4 × 4", 16, 16, 16),)
CODE = CodeState("toy/mix.py", SOURCE, (4, 7), "unchanged", "mix")


def model(root: Path, **changes: str) -> resolver.Model:
    for name, text in {**FILES, **changes}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return resolver.resolve(loader.load(root, "toy"))


def verdicts(*states: tuple[str, str, str]) -> tuple[Verdict, ...]:
    return tuple(Verdict(id, state, level) for id, state, level in states)  # type: ignore[arg-type]


def book(root: Path, **changes: str) -> Book:
    return Book(
        model(root, **changes),
        {
            "mix": (
                *verdicts(
                    ("purpose", "executed", "cpu"),
                    ("in:x", "executed", "cpu"),
                    ("out:C", "executed", "cpu"),
                    ("row:offsets", "executed", "meta"),
                    ("step:mix", "executed", "cpu"),
                    ("property:symmetric", "executed", "cpu"),
                    ("pin:mix", "verified", "static"),
                    ("pin:sum", "verified", "static"),
                    ("citation:0", "cited", ""),
                    ("account", "executed", "meta"),
                    ("place:blocks", "verified", "static"),
                ),
                Verdict("step:halve", "failed", "cpu", "0.5", "0.25", "regime sharp"),
                Verdict("kernel:mix", "not-run", "gpu", detail="no CUDA device"),
            ),
            "mix/weights": verdicts(("row:matrix", "stale", "meta")),
            "norm": verdicts(("purpose", "cited", "")),
        },
        {
            (id, place): account
            for place in ("", "blocks")
            for id, account in {
                "mix": Account(MIX, 64, 272, 4, 1088, (PartCount("mix/weights", "4 × 64", 256, 256, 255),)),
                "mix/weights": Account((RowCount("matrix", "4 × 64", 256, None, 255),), 1024, 256, 4, 1024),
                "norm": Account((), 0, 0, 1, 0),
            }.items()
        },
        {("mix", "mix"): CODE, ("mix", "sum"): replace(CODE, lines=(7, 7))},
        (Run("cpu", "9 passed", "x86-64", "torch 2.13.0", "2026-11-30", "executed"),),
        {"all": 544},
        lambda component, expr: {"n": ("4", "num_streams"), "total": ("272", "16 + 256")}.get(expr, ("?", "")),
        policies_of={"mix": ("all",), "mix/weights": ("all",)},
        date="2026-11-30",
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    root = tmp_path_factory.mktemp("toy")
    specs = {name: text.encode() for name, text in FILES.items()}
    return render([book(root)], specs, Settings(edit_url="https://h/edit/", issue_url="https://h/new"))


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def page(site: Site, path: str) -> str:
    return next(p for p in site.pages if p.path == path).html()


CANONICAL = "toy/components/mix/index.md"
IN_PLACE = "toy/layers/blocks/mix/index.md"


@pytest.mark.parametrize("path", [CANONICAL, IN_PLACE])
def test_a_page_has_every_element_of_the_design_in_order(site: Site, path: str) -> None:
    html = page(site, path)
    elements = [
        'class="ms-crumbs"',
        "<h1",
        'class="ms-kind ms-kind--learned"',
        'class="ms-purpose"',
        "mix(streams, weights)",
        'href="#code-mix-L4"',
        "#L948-L955",
        'class="ms-status ms-status--failed"',
        "statements executed",
        'class="ms-why',
        'class="ms-formula"',
        "All 2 steps",
        "Indices count from 1",
        'class="ms-table ms-symbols"',
        'class="ms-table ms-ports"',
        'class="ms-total"',
        'class="ms-table ms-account"',
        'class="ms-across"',
        'class="ms-scope"',
        'class="ms-table ms-counts"',
        'class="ms-table ms-checks"',
        'class="ms-explanation"',
        'class="ms-code"',
        'class="ms-sources"',
        'class="ms-related"',
        'class="ms-walk"',
        'href="page.json"',
        "mix.yml",
        "https://h/edit/spec/toy/components/mix.yml",
        "https://h/new",
        "Cite this page",
    ]
    at = 0
    for element in elements:
        found = html.find(element, at)
        assert found >= 0, f"{element} is missing after {html[max(0, at - 60) : at]}"
        at = found


def test_the_breadcrumb_shows_multiplicities(site: Site) -> None:
    html = page(site, IN_PLACE)
    crumbs = words(html[html.index("<ol>") : html.index("</ol>")])
    assert crumbs == "Toy 6 layers 2 groups of 3 layers 2 blocks 流组合 *mix* <T>"


@pytest.mark.parametrize(
    ("path", "texts"),
    [
        (
            CANONICAL,
            ["272 parameters per instance = 16 + 256", "4 × 64", "Across all 4 instances in the model: 1,088"],
        ),
        (IN_PLACE, ["Across 2 independent blocks: 544 (272 × 2); × 2 groups of 3 layers: 1,088"]),
        ("toy/components/norm/index.md", ["[0:16] 流组合 *mix* <T>", "0 parameters owned"]),
        (
            CANONICAL,
            ["[ B batch , 4 streams , 64 width ]", "1 statement failed", "step:halve : expected 0.5; actual 0.25"],
        ),
        (CANONICAL, ["no CUDA device", "not run", "7 of 13 statements executed", "Report section 2.4.1"]),
    ],
)
def test_numbers_are_text(site: Site, path: str, texts: list[str]) -> None:
    shown = words(page(site, path))
    for text in texts:
        assert text in shown, f"{text!r} not in {shown}"


def test_three_sides_of_a_count_and_the_one_that_disagrees(site: Site) -> None:
    html = page(site, "toy/components/mix/weights/index.md")
    table = html[html.index("ms-counts") :]
    assert words(table[: table.index("</tbody>")]).endswith("matrix 256 verified not run 255 failed")


def test_titles_and_texts_are_shown_as_written(site: Site) -> None:
    html = page(site, CANONICAL)
    assert "流组合 *mix* &lt;T&gt;</h1>" in html
    assert "Mixes <code>Tensor&lt;T&gt;</code> for $5 or $6 across" in html
    entry = page(site, "toy/index.md")
    assert "A model with &lt;b&gt;three&lt;/b&gt; components, {{ 7*7 }}." in entry
    titles = [p.title for p in site.pages if p.path == CANONICAL]
    assert titles == ["流组合 *mix* <T>"]


def test_code_stands_once_with_overlapping_pins_as_marked_lines(site: Site) -> None:
    html = page(site, CANONICAL)
    assert html.count('class="ms-code"') == 1 and html.count("<code>def</code>") == 0
    assert words(html).count("scaled @ scaled") == 1
    assert 'class="ms-line ms-line--cited" id="code-mix-L7"' in html
    assert 'href="#code-mix-L7" title="toy/mix.py:7, verified"' in html


@pytest.mark.parametrize("path", [CANONICAL, IN_PLACE])
def test_every_statement_has_its_element_on_the_page(site: Site, path: str) -> None:
    html = page(site, path)
    made = list(statements.component_statements(site.proofs[0].model, "mix"))
    assert len(made) > 15
    ids = re.findall(r'\sid="([^"]+)"', html)
    missing = []
    for statement in made:
        anchor = "code-mix-L7" if statement.id == "pin:sum" else status.anchor(statement.id)
        if ids.count(anchor) != 1:
            missing.append(f"{statement.id}: {ids.count(anchor)} × #{anchor}")
    assert missing == [] and len(ids) == len(set(ids))


def test_one_name_ties_formula_table_axes_and_code(site: Site) -> None:
    html = page(site, CANONICAL)
    places = {
        "formula": '<mrow class="ms-sym" data-sym="C">',
        "table": '<tr id="sym-C" data-sym-row="C">',
        "axes": 'class="ms-sym" data-sym="n" href="#sym-n">4</a>',
    }
    assert all(text in html for text in places.values()), [n for n, text in places.items() if text not in html]


def test_a_statement_without_a_verdict_counts_as_not_run_and_is_never_green(tmp_path: Path) -> None:
    bare = replace(book(tmp_path), verdicts={}, runs=())
    html = page(render([bare]), CANONICAL)
    body = html[: html.index('id="code-')]
    assert "ms-mark--executed" not in body and "ms-status--not-run" in body
    assert "0 of 0 statements executed" in words(body)


def test_every_link_and_anchor_leads_somewhere(site: Site) -> None:
    pages = {}
    for p in site.pages:
        anchors = "".join(f'<h2 id="{b.anchor}">{b.heading}</h2>' for b in p.blocks if b.heading)
        pages[p.path.replace("index.md", "index.html")] = p.html() + anchors
    pages["index.html"] = ""
    assert dead_links(pages, frozenset(site.files)) == []


def test_paths_come_from_ids_and_places_stay_out_of_the_index(site: Site) -> None:
    assert {p.path: p.searchable for p in site.pages} == {
        "toy/index.md": True,
        "toy/components/index.md": True,
        "toy/layers/index.md": True,
        "toy/configuration/index.md": True,
        "toy/symbols/index.md": True,
        "toy/source/index.md": False,
        "toy/source/toy/mix.py/index.md": False,
        CANONICAL: True,
        "toy/components/mix/weights/index.md": True,
        "toy/components/norm/index.md": True,
        "toy/layers/layers/index.md": False,
        "toy/layers/layers/norm/index.md": False,
        "toy/layers/groups/index.md": False,
        "toy/layers/blocks/index.md": False,
        IN_PLACE: False,
        "toy/layers/blocks/mix/weights/index.md": False,
    }
    assert {p.source for p in site.pages if p.path == CANONICAL} == {"spec/toy/components/mix.yml"}


def test_the_twin_is_the_page_as_data(site: Site) -> None:
    data = json.loads(site.files["toy/layers/blocks/mix/page.json"])
    assert data["place"] == "blocks" and data["parameters"]["total"] == 1088
    assert data["formulas"][0]["tex"] == r"C_{jk} = \hat{x}_j\,\hat{x}_k + \varepsilon"
    assert data["explanation"] == ["See the sum and its weights: 272."]
    assert {v["state"] for v in data["verdicts"]} == {"executed", "verified", "cited", "not-run", "failed"}
    assert data["evidence"][0]["revision"] == "2cba9e42aa026125f3ed06c6d98c1db82f7ca027"


def test_navigation_lists_every_page_once(site: Site) -> None:
    def walk(items: object) -> list[str]:
        return [p for item in items for p in ([item.path] if item.path else []) + walk(item.items)]  # type: ignore[attr-defined]

    assert sorted(walk(site.nav)) == sorted(p.path for p in site.pages)


def test_a_title_is_text_wherever_a_theme_puts_it(site: Site) -> None:
    made = tree_files(site, {"index.md": b"# Home"})
    for path, data in made.items():
        if path.endswith(".md"):
            head = data.decode().split("---\n", 2)[1] if data.startswith(b"---") else ""
            assert "<" not in head and "{{" not in head.replace("{{ 7*7 }}", ""), path
    assert "<" not in json.dumps(tree_config({"nav": [{"Home": "index.md"}]}, site)["nav"])


def test_the_tree_leaves_the_plugin_out_and_refuses_clashes(site: Site) -> None:
    config = tree_config(
        {"plugins": ["search", {"sitegen": {}}], "nav": [{"Home": "index.md"}], "watch": ["spec"]}, site
    )
    assert config["plugins"] == ["search"] and "watch" not in config
    assert config["nav"][0] == {"Home": "index.md"} and list(config["nav"][1]) == ["Toy"]
    assert config["extra_css"] == ["assets/sitegen/sitegen.css"]
    with pytest.raises(SitegenError, match="docs/toy/index.md stands where a page is made"):
        tree_files(site, {"toy/index.md": b""})


def test_hand_written_pages_get_their_figures_and_unknown_ones_are_refused(site: Site) -> None:
    text = site.insert("how.md", "# H\n\n<!-- sitegen:proof -->\n\n<!-- sitegen:legend -->\n")
    assert "sitegen:" not in text and "<h1" not in text
    shown = words(text)
    assert "7 of 15 statements executed" in shown and "Nothing here could check it" in shown
    assert 'href="../toy/"' in text
    with pytest.raises(SitegenError, match="no insertion 'prof'"):
        site.insert("index.md", "<!-- sitegen:prof -->")


def test_two_pages_never_share_an_address(tmp_path: Path) -> None:
    places = FILES["spec/toy/model.yml"] + "- {id: layers/norm, title: x, path: x, parts: []}\n"
    with pytest.raises(SitegenError, match="two pages would have the address toy/layers/layers/norm/index.md"):
        render([book(tmp_path, **{"spec/toy/model.yml": places})])


def test_the_site_speaks_to_no_other_host(site: Site) -> None:
    for p in site.pages:
        assert not re.findall(r'(?:src|srcset|data)="(?:https?:)?//', p.html())
    style = site.files["assets/sitegen/sitegen.css"].decode()
    urls = re.findall(r"url\(([^)]*)\)", style)
    assert urls and all(url.startswith(('"data:', '"stix')) for url in urls)
    assert posixpath.join("assets/sitegen", "stix-two-math.woff2") in site.files


def test_rendering_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = render([book(tmp_path)]), render([book(tmp_path)])
    assert [p.markdown() for p in first.pages] == [p.markdown() for p in second.pages]
    assert first.files == second.files


def test_a_place_lists_only_what_occurs_in_it(tmp_path: Path) -> None:
    """Parts of several places may be written once; those of other places are not shown in this one."""
    listed = FILES["spec/toy/model.yml"].replace("parts: [mix]", "parts: [mix, {id: norm, places: [layers]}]")
    elsewhere = listed.replace("parts: [mix, {id: norm, places: [layers]}]", "parts: [mix, {id: norm, places: [ends]}]")
    assert listed != elsewhere
    for text, shown in ((listed, True), (elsewhere, False)):
        site = render([book(tmp_path, **{"spec/toy/model.yml": text})])
        html = page(site, "toy/layers/index.md")
        assert ('href="blocks/norm/"' in html) == shown
        blocks = html[html.index('href="blocks/"') :]
        assert (">Norm</a>" in blocks) == shown


def test_what_is_said_once_is_not_said_again(tmp_path: Path) -> None:
    """Upstream lines that the expression has already; ports where there is none; checks where only cases run."""
    mix = FILES["spec/toy/components/mix.yml"].replace("lines: [962, 966]", "lines: [948, 955]")
    norm = FILES["spec/toy/components/norm.yml"].partition("outputs:")[0] + """
cases: [{id: half, text: Half., call: half, with: {x: 2}, gives: {result: 1}}]
reason: {given: true, text: It must., cites: [lines]}
"""
    made = render(
        [book(tmp_path, **{"spec/toy/components/mix.yml": mix, "spec/toy/components/norm.yml": norm})], {}, Settings()
    )
    assert page(made, "toy/components/mix/index.md").count("#L948-L955") == 1
    assert "Nothing flows in or out." not in page(made, "toy/components/mix/index.md")
    assert "Nothing flows in or out." in page(made, "toy/components/norm/index.md")
    assert "its checks are the worked cases below" in page(made, "toy/components/norm/index.md")
