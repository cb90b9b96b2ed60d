"""Load, resolve and count on a toy model: what is wrong is said once, all of it, with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitegen import accounting, loader, resolver, static
from sitegen.diagnostics import SitegenError, SpecInvalid

FILES = {
    "mkdocs.yml": "site_name: toy\n",
    "config.json": '{"num_streams": 4, "dim": 8, "num_experts": 3, "tables": [100, 200], "table_layers": [0, 2], "eps": 1e-6}',
    "spec/toy/model.yml": """
schema: 1
name: toy
title: Toy
purpose: A toy.
config: config.json
implementation: {harness: toy, sources: [toy]}
table: {path: table.json, origin: made up}
configurations: [{id: small, set: {}}]
places:
- {id: layers, title: 4 layers, layers: 0-3}
- {id: pair, title: 2 layers, parent: layers, repeat: 2, layers: 0-3}
- {id: pair/each, title: layer, parent: pair, repeat: 2, layers: 0-3, path: "layers.{i}", parts: [mix, {id: table, layers: [0, 2]}]}
""",
    "spec/toy/symbols.yml": """
symbols:
  n: {tex: n, meaning: streams, field: num_streams}
  d: {tex: d, meaning: width, field: dim}
  E: {tex: E, meaning: experts, field: num_experts}
  rows: {tex: R, meaning: table rows, by_layer: {layers: table_layers, values: tables}}
""",
    "spec/toy/sources.yml": 'sources: {paper: {title: A paper, url: "https://example.org"}}\n',
    "spec/toy/evidence.yml": "evidence: {a: {kind: external, claim: A., source: paper}}\n",
    "spec/toy/policies.yml": """
policies:
  all: {title: All, scope: All of it., terms: [{places: [layers]}]}
  active: {title: Active, scope: "One expert of {E}.", terms: [{components: [mix/experts], share: [1, E]}]}
  no_tables: {title: No tables, scope: Without tables., terms: [{places: [layers]}, {components: [table], sign: -1}]}
""",
    "spec/toy/components/mix.yml": """
components:
- id: mix
  title: Mix
  kind: learned
  purpose: {text: "Mixes {n} streams: {total}.", by: [account]}
  parts: [mix/weights, mix/experts]
  reason: {given: false, text: None., cites: [a]}
- id: mix/weights
  title: Weights
  kind: learned
  purpose: {text: Weights., by: ["row:upper"]}
  parameters:
  - {id: upper, tensor: base, slice: "[0:n]", axes: [n, d], count: n*d, dtype: F32, text: upper}
  - {id: lower, tensor: base, slice: "[n:2*n]", axes: [n, d], count: n*d, dtype: F32, text: lower}
  reason: {given: false, text: None., cites: [a]}
- id: mix/experts
  title: Experts
  kind: learned
  purpose: {text: Experts., by: ["row:w"]}
  parameters:
  - {id: w, tensor: "experts.{e}.w", each: {e: E}, axes: [d, d], count: E*d*d, dtype: F32, text: w}
  reason: {given: false, text: None., cites: [a]}
- id: table
  title: Table
  kind: learned
  purpose: {text: A table., by: ["row:rows"]}
  parameters:
  - {id: rows, tensor: table, axes: [rows, d], count: rows*d, dtype: F32, text: rows}
  reason: {given: false, text: None., cites: [a]}
""",
}


def table_text() -> str:
    import json

    def entry(name: str, shape: list[int], layers: list[int], instances: int) -> dict:
        return {"name_pattern": name, "shape": shape, "stored_shape": shape, "dtype": "F32", "is_scale": False,
                "instances": instances, "layers": layers}  # fmt: skip

    return json.dumps(
        [
            entry("layers.{i}.base", [8, 8], [0, 1, 2, 3], 4),
            entry("layers.{i}.experts.{e}.w", [8, 8], [0, 1, 2, 3], 12),
            entry("layers.{i}.table", [100, 8], [0], 1),
            entry("layers.{i}.table", [200, 8], [2], 1),
        ]
    )


def project(folder: Path, **changes: tuple[str, str]) -> Path:
    """The toy project; `changes` maps a file (`/` and `.` as `__`) to a replacement in it."""
    for name, text in {**FILES, "table.json": table_text()}.items():
        key = name.replace("/", "__").replace(".", "__")
        if key in changes:
            old, new = changes[key]
            assert old in text, f"{old!r} is not in {name}"
            text = text.replace(old, new, 1)
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


def accounts(folder: Path) -> accounting.Accounts:
    return accounting.count(resolver.resolve(loader.load(folder, "toy")))


def codes(folder: Path) -> list[str]:
    """All finding codes of the static stages, pins aside."""
    try:
        counted = accounts(folder)
    except SpecInvalid as error:
        return [f.code for f in error.findings]
    return [f.code for f in static.run(counted)[0].findings]


def test_counts_multiply_along_places_and_differ_by_layer(tmp_path: Path) -> None:
    """P21: instances of a table need not be equal; there is no multiplication to hide behind."""
    counted = accounts(project(tmp_path))
    assert counted.per_instance("mix/weights") == [64]
    assert counted.total("mix/weights") == 256
    assert counted.total("mix") == 4 * (64 + 3 * 64)
    assert counted.per_instance("table") == [800, 1600]
    assert counted.total("table") == 2400 and counted.num_instances("table") == 2
    policies = counted.model.sources.policies
    assert counted.policy(policies["all"]) == 4 * 256 + 2400
    assert counted.policy(policies["active"]) == 4 * 64
    assert counted.policy(policies["no_tables"]) == 4 * 256


def test_the_toy_itself_is_clean(tmp_path: Path) -> None:
    assert codes(project(tmp_path)) == []


C = "spec__toy__components__mix__yml"
M = "spec__toy__model__yml"
FAULTS: dict[str, tuple[str, str, str, str]] = {
    "a row that the table does not have": (C, "tensor: table", "tensor: tables", "tensor-unassigned"),
    "a nominal size for the real rows (P21)": (C, "count: rows*d", "count: 100*d", "count-mismatch"),
    "an expert too few": (C, "each: {e: E}, axes: [d, d], count: E*d*d", "each: {e: 2}, axes: [d, d], count: 2*d*d", "tensor-unassigned"),  # noqa: E501
    "the right count with the wrong shape (P05)": (C, "axes: [rows, d]", "axes: [d, rows]", "shape-mismatch"),
    "a slice beyond the tensor": (C, '"[n:2*n]"', '"[n:3*n]"', "shape-mismatch"),
    "a slice that overlaps": (C, '"[n:2*n]"', '"[n-1:2*n-1]"', "tensor-assigned-twice"),
    "a gap": (C, '"[0:n]", axes: [n, d], count: n*d', '"[0:n-1]", axes: [n-1, d], count: (n-1)*d', "tensor-unassigned"),
    "a slice that is no slice": (C, '"[0:n]"', '"[a b]"', "expression-invalid"),
    "another number type": (C, "dtype: F32, text: rows", "dtype: BF16, text: rows", "dtype-mismatch"),
    "an empty row (P04)": (C, "count: rows*d", "count: 0*rows*d", "count-mismatch"),
    "a place that occurs too rarely": (M, "repeat: 2, layers: 0-3, path", "repeat: 3, layers: 0-3, path", "count-mismatch"),
    "a part that does not exist": (M, "parts: [mix,", "parts: [mixx,", "unknown-reference"),
    "a part of itself": (C, "parts: [mix/weights, mix/experts]", "parts: [mix/weights, mix]", "schema-invalid"),
    "a component in no place": (C, "parts: [mix/weights, mix/experts]", "parts: [mix/weights]", "component-unreachable"),
    "one id twice": (C, "- id: mix/experts", "- id: mix/weights", "schema-invalid"),
    "ids that differ only in case (P12)": (C, "- id: table", "- id: Table", "schema-invalid"),
    "an id with dots and slashes (P12)": (C, "- id: table", "- id: sub/../x", "schema-invalid"),
    "text for a number": (M, "repeat: 2, layers: 0-3}", "repeat: '2', layers: 0-3}", "schema-invalid"),
    "a configuration outside the project": (M, "config: config.json", "config: ../config.json", "path-outside"),
    "an absolute path": (M, "config: config.json", "config: /etc/hostname", "path-outside"),
    "a missing file": (M, "config: config.json", "config: nothing.json", "config-invalid"),
    "a quote of an unknown number": (C, "{total}", "{totals}", "unknown-symbol"),
    "a total that is no integer (P20)": ("spec__toy__policies__yml", "terms: [{places: [layers]}]}\n  active", "terms: [{places: [layers]}], published: 763e9}\n  active", "schema-invalid"),  # noqa: E501
    "a published total that is another one (P20)": ("spec__toy__policies__yml", "terms: [{places: [layers]}]}\n  active", "terms: [{places: [layers]}], published: 763}\n  active", "count-mismatch"),  # noqa: E501
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_has_its_code(name: str, tmp_path: Path) -> None:
    key, old, new, code = FAULTS[name]
    found = codes(project(tmp_path, **{key: (old, new)}))
    assert code in found


def test_all_faults_of_all_files_are_reported_at_once(tmp_path: Path) -> None:
    folder = project(tmp_path, **{C: ("kind: learned", "kinds: learned"), M: ("title: Toy", "titel: Toy")})
    with pytest.raises(SpecInvalid) as caught:
        loader.load(folder, "toy")
    assert {f.where.file for f in caught.value.findings} == {"spec/toy/model.yml", "spec/toy/components/mix.yml"}
    assert any("kind" in f.hint for f in caught.value.findings)


def test_a_link_out_of_the_project_is_refused(tmp_path: Path) -> None:
    folder = project(tmp_path / "project")
    outside = tmp_path / "secret.yml"
    outside.write_text("id: x\n", "utf-8")
    (folder / "spec/toy/components/link.yml").symlink_to(outside)
    assert "path-outside" in codes(folder)


HOSTILE = ["<script>alert(1)</script>", "{{ 7*7 }}", "{% raw %}", "Tensor<T>", "costs $5 or $6", "${HOME}", "a ``` b", "\\(x\\)"]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_text(text: str, tmp_path: Path) -> None:
    """P09: nothing in a text is run or swallowed; the render tests show it on a page."""
    from sitegen.render.text import prose_text

    folder = project(tmp_path)
    path = folder / "spec/toy/components/mix.yml"
    path.write_text(path.read_text("utf-8").replace("title: Table", f"title: '{text}'"), "utf-8")
    assert loader.load(folder, "toy").components["table"].component.title == text
    assert text.replace("`", "") in prose_text(text).replace("`", "")


def test_unknown_models_are_named_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(SitegenError, match="did you mean 'toy'"):
        loader.choose(project(tmp_path), ("toyy",))


@given(st.text(alphabet="[]:,0123456789n*+- abc", max_size=20))
def test_no_slice_gives_a_traceback(text: str) -> None:
    from sitegen.diagnostics import NOWHERE

    try:
        box = accounting.parse_slice(f"[{text}]", {"n": 4}, NOWHERE)
        assert all(isinstance(a, int) and isinstance(b, int) for a, b in box)
    except SpecInvalid as error:
        assert error.findings
