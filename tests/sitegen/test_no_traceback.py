"""Whatever stands in a project's files, each stage gives a value or findings: specs, tables, facts, shapes, pins."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from toy_project import NAME, Toy, toy_component, write_toy

from sitegen import facts, loader, verifier
from sitegen.diagnostics import NOWHERE, Finding, SitegenError, SpecInvalid
from sitegen.outputs import WRITERS, write_reports
from sitegen.probe.result import LevelResult
from sitegen.probe.values import ValuePath, unify
from sitegen.resolver import Axis

EVERYTHING = """
expression: {code: x, pin: p, source: file, lines: [1, 2]}
inputs: [{name: x, axes: [B, T, d], dtype: float32, text: In., component: mix}]
outputs: [{name: y, axes: [B, T, "2*d"], dtype: float32, text: Out.}]
views: [{tensor: w, axes: [d], text: A view.}]
values: {operation: mix, occurrence: 0, module: "", bind: {x: a, y: result}, vary: [x], kernel: true, places: [model]}
steps: [{id: s, expr: "y = 2*x", text: Doubles., tex: "y = 2 x", main: true, indistinct: {m: r}}]
numerics: [{id: n, text: A number., by: ["step:s"], dtype: {x: float32}, constant: {eps: "1e-6"}}]
properties:
- {id: p, text: Holds., kind: identity, holds: "y = 2*x", regimes: [model],
   tolerance: {kind: fp32, value: 1.0, reason: r}}
- {id: q, text: Moves., kind: causal, edit: {value: "mix#0.result", add: 1.0},
   moves: ["mix#1.result"], still: ["mix#2.a"]}
explanation: [{text: "Of {d} and `code`, $x$ and [x](code:p).", by: ["row:w"], cites: [a]}]
code: [{id: p, path: code/model.py, symbol: call, fragment: return 1, text: Code., main: true}]
upstream: [{source: file, lines: [1, 2], text: Lines.}]
evidence: [a]
uses: [other]
"""

ROW = '{id: w, tensor: w, axes: ["d", "c: 2*d"], slice: "[0:d]", count: "2*d*d", dtype: F32, text: w, each: {e: d}}'
SYMBOLS = """{d: {tex: d, meaning: width, field: dim}, eps: {tex: e, meaning: small, field: eps},
B: {tex: B, meaning: batch}, T: {tex: T, meaning: positions}, x: {tex: x, meaning: in}, y: {tex: y, meaning: out}, R: {tex: R, meaning: rows, by_layer: {layers: ids, values: rows}}}"""
SOURCE = f"  file: {{title: A file, repository: a/b, revision: {'0' * 40}, path: x.py, lines: 9}}\n"
POLICIES = """
policies:
  all: {title: All, scope: "All {d}.", published: 32,
    terms: [{places: [model], components: [mix], layers: 0-3, share: [1, d], sign: 1, text: t}]}
  less: {title: Less, scope: Without., terms: [{places: [model]}, {components: [mix], sign: -1, text: t}], evidence: [a]}
"""
ENTRY = {"name_pattern": "layers.{i}.w", "shape": [8, 16], "stored_shape": [8, 16], "dtype": "F32", "is_scale": False,
         "instances": 2, "layers": [0, 1]}  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A toy in which every field of the schema is used."""
    return write_toy(
        tmp_path_factory.mktemp("whole"),
        [toy_component("mix", [ROW], more=EVERYTHING), toy_component("other")],
        config={"dim": 8, "eps": 1e-6, "ids": [0], "rows": [4], "tensors": [["w", ["dim", "2*dim"], "F32"]]},
        symbols=SYMBOLS,
        sources=SOURCE,
        table=[ENTRY],
        policies=POLICIES,
        places='- {id: more, title: Layers, layers: 0-1, repeat: 2, path: "layers.{i}", parts: [], symbols: {d: 3}}\n',
    )


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 99), st.just(10**39), st.floats(allow_nan=True), st.text(max_size=12),
    st.sampled_from(
        ["", "[0:", "0-", "5-1", "0-99999999999", "d", "${x}", "{d}", "{{d}}", "$\\x$", "row:w", "a#b#c", "2**99",
         "../x", "mix", "model", "step:s", "#", ":", "code/model.py", "\ud800", "x" * 500, "-1", "1e-6", "B",
         "[x](code:y)", "*"]
    ),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in nested data."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from paths(inner, (*path, key))


def replaced(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy of the data with another value at one path."""
    if not path:
        return value
    changed = copy.deepcopy(data)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed


FILES = [
    f"spec/{NAME}/{name}"
    for name in ("model.yml", "symbols.yml", "sources.yml", "evidence.yml", "policies.yml", "components/c0.yml")
] + ["config.json", "table.json"]


@given(data=st.data())
def test_any_value_in_any_field_is_a_finding_or_fine(data: st.DataObject, whole: Toy) -> None:
    """One or two fields of one file are replaced by anything; `check` and its forms of output still speak."""
    file = whole.root / data.draw(st.sampled_from(FILES))
    kept = file.read_bytes()
    content = json.loads(kept) if file.suffix == ".json" else yaml.safe_load(kept)
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(sorted(paths(content), key=str)))
        content = replaced(content, path, data.draw(VALUES))
    try:
        file.write_text(json.dumps(content), "utf-8")  # JSON is YAML, and every value stays what it is
        report = verifier.check(whole.root, NAME)
        for form in WRITERS:
            write_reports([report], form).encode("utf-8")
    finally:
        file.write_bytes(kept)


def test_the_toy_itself_says_what_is_wrong_with_it(whole: Toy) -> None:
    """Its rows do not fit its table, on purpose: the stages past the schema have something to say."""
    assert {"tensor-unassigned", "shape-mismatch", "config-invalid"} & set(whole.codes())
    assert "schema-invalid" not in whole.codes()


AXES = st.text(alphabet="BTdn2*+:-/ (){}#'é", max_size=8) | st.sampled_from(["B", "T", "d", "2*d"])


@given(axes=st.lists(AXES, max_size=4), shape=st.lists(st.integers(0, 99), max_size=4))
def test_no_shape_gives_a_traceback(axes: list[str], shape: list[int]) -> None:
    try:
        found = unify(axes, shape, {"d": 8, "n": 4}, {}, NOWHERE)
    except SpecInvalid as error:
        assert error.findings
    else:
        assert found is None or found.code == "shape-mismatch"
        if found is None:
            assert len(axes) == len(shape)
    for text in axes:
        assert Axis.parse(text).size == Axis.parse(text).size.strip()


@given(st.text(max_size=20))
def test_no_value_path_gives_a_traceback(text: str) -> None:
    try:
        assert ValuePath.parse(text).field
    except ValueError as error:
        assert "value path" in str(error)


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> tuple[loader.Sources, dict[str, Any]]:
    """A toy's sources and a whole facts file of it."""
    toy = write_toy(tmp_path_factory.mktemp("facts"), [toy_component("mix", [ROW])], config={"dim": 8, "tensors": []},
                    symbols="{d: {tex: d, meaning: width, field: dim}}")  # fmt: skip
    sources = loader.load(toy.root, NAME)
    result = LevelResult("meta", {("mix", "row:w"): "128 elements"}, {("mix", "account"): "no"}, device="meta")
    result.counts["mix", "w"] = 128
    result.fail(Finding("count-mismatch", "no", component="mix", statement="purpose"))
    return sources, facts.to_json(sources, result, "2026-12-01")


@given(data=st.data())
def test_no_facts_give_a_traceback_even_with_a_right_seal(
    data: st.DataObject, sealed: tuple[loader.Sources, Any]
) -> None:
    sources, content = sealed
    path = data.draw(st.sampled_from(sorted(paths(content), key=str)))
    content = replaced(content, path, data.draw(VALUES))
    if isinstance(content, dict):
        content.pop("seal", None)
        content = {**content, "seal": facts.digest(content)}
    file = facts.path_of(sources, "meta")
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content), "utf-8")
    known, findings = facts.read(sources, "meta")
    assert (known is None) == any(f.code == "facts-invalid" for f in findings)
    report = verifier.check(sources.root, NAME)
    write_reports([report], "text").encode("utf-8")


@given(st.binary(max_size=200) | st.text(alphabet='{}[]":,0schemavltdigs \n', max_size=80).map(str.encode))
def test_no_bytes_of_facts_give_a_traceback(sealed: tuple[loader.Sources, Any], content: bytes) -> None:
    sources, _ = sealed
    file = facts.path_of(sources, "meta")
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content)
    known, findings = facts.read(sources, "meta")
    assert known is None and [f.code for f in findings] == ["facts-invalid"]


@given(st.lists(st.text(max_size=10), max_size=3))
def test_no_name_of_a_model_gives_a_traceback(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    folder: Path = tmp_path_factory.getbasetemp()
    try:
        loader.choose(folder, tuple(names))
    except SitegenError as error:
        assert str(error)
