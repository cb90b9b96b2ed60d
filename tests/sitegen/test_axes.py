"""What no size can tell apart: letters of square ports, views, and ids in the model's own files."""

from __future__ import annotations

from pathlib import Path

import pytest
from project_copy import SPEC, Copy

from sitegen import accounting, loader, resolver, static

WEIGHTS = f"{SPEC}/components/stream_weights.yml"
WRITE = f"{SPEC}/components/stream_read_write.yml"
EVIDENCE, POLICIES = f"{SPEC}/evidence.yml", f"{SPEC}/policies.yml"

FAULTS: dict[str, tuple[str, str, str, str, str]] = {
    "letters of an input the other way round": (
        WRITE, '"j: n", "k: n"], dtype: float32, text: comb', '"k: n", "j: n"], dtype: float32, text: comb',
        "shape-mismatch", "C[j, k]",
    ),
    "letters of an output the other way round": (
        WEIGHTS, '"j: n", "k: n"], dtype: float32, text: "source', '"k: n", "j: n"], dtype: float32, text: "source',
        "shape-mismatch", "C[j, k]",
    ),
    "a letter that no formula uses": (
        WEIGHTS, '"j: n", "k: n"], dtype: float32, text: "source', '"j: n", "i: n"], dtype: float32, text: "source',
        "shape-mismatch", "C[j, k]",
    ),
    "a view that is longer": (WEIGHTS, 'tensor: "hc_${sub}_base", axes: [M], text: "owned',
                              'tensor: "hc_${sub}_base", axes: [M + 1], text: "owned', "shape-mismatch", "[24]"),
    "a view of nothing": (WEIGHTS, 'tensor: "hc_${sub}_scale", axes: [3], text: "one',
                          'tensor: "hc_${sub}_scales", axes: [3], text: "one', "unknown-reference", ""),
    "evidence from nowhere": (EVIDENCE, "source: report", "source: rapport", "unknown-reference", ""),
    "a policy of no place": (POLICIES, "places: [layers]", "places: [layer]", "unknown-reference", ""),
    "a policy of no component": (
        POLICIES, "components: [stream_weights_for_attention,", "components: [stream_weight_for_attention,",
        "unknown-reference", "",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy.make(tmp_path_factory.mktemp("axes"))


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_sizes_do_not_show_is_found(copy: Copy, name: str) -> None:
    file, old, new, code, expected = FAULTS[name]
    path: Path = copy.root / file
    before = path.read_text("utf-8")
    try:
        copy.edit(file, old, new)
        accounts = accounting.count(resolver.resolve(loader.load(copy.root, SPEC.removeprefix("spec/"))))
        found = [f for f in static.run(accounts)[0].findings if f.code == code and f.where.file == file]
    finally:
        path.write_text(before, "utf-8")
    assert found, f"{name}: nothing was found"
    assert all(expected in f.expected for f in found)
