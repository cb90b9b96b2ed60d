"""Whatever stands in a project's files, each stage gives a value or findings: specs, tables, facts, shapes, pins."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_project import NAME, ROW, Toy, load_data, toy_component, write_everything, write_toy

from sitegen import facts, loader, verifier
from sitegen.diagnostics import NOWHERE, Finding, SitegenError, SpecInvalid
from sitegen.outputs import WRITERS, write_reports
from sitegen.probe.result import LevelResult
from sitegen.probe.values import ValuePath, unify
from sitegen.resolver import Axis


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A toy in which every field of the schema is used."""
    return write_everything(tmp_path_factory.mktemp("whole"))


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
    for name in (
        "model.yml",
        "config.yml",
        "symbols.yml",
        "sources.yml",
        "evidence.yml",
        "policies.yml",
        "components/c0.yml",
    )
] + ["config.json", "table.json", "record.json"]


@given(data=st.data())
def test_any_value_in_any_field_is_a_finding_or_fine(data: st.DataObject, whole: Toy) -> None:
    """One or two fields of one file are replaced by anything; `check` and its forms of output still speak."""
    file = whole.root / data.draw(st.sampled_from(FILES))
    kept = file.read_bytes()
    content = json.loads(kept) if file.suffix == ".json" else load_data(file)
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
