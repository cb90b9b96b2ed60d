"""The checkpoint level: headers of sharded folders, whole or damaged, against the implementation's tensors."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from project_copy import MODEL, ROOT
from toy_project import Toy, toy_component, write_toy

from sitegen import accounting, loader, resolver
from sitegen.cli import main
from sitegen.diagnostics import Location, SitegenError
from sitegen.probe import checkpoint
from sitegen.probe.checkpoint import BITS, INDEX, read_folder, read_header, stored_form

Tensors = dict[str, tuple[str, list[int]]]

#: What the implementation has: three layers of two experts in FP4, and one matrix in FP8 with its scales.
WANTED: Tensors = {
    "embed.weight": ("BF16", [12, 8]),
    "proj.weight": ("F8_E4M3", [8, 8]),
    "proj.scale": ("F8_E8M0", [1, 1]),
    **{f"layers.{i}.experts.{e}.weight": ("I8", [6, 4]) for i in range(3) for e in range(2)},
}


def shard(tensors: Tensors, change: Callable[[dict[str, Any]], Any] = lambda header: None, more: bytes = b"") -> bytes:
    """The bytes of a safetensors file of zeros."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, (dtype, shape) in tensors.items():
        size = BITS[dtype] // 8
        for n in shape:
            size *= n
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    change(header)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(end) + more


def write_folder(folder: Path, tensors: Mapping[str, tuple[str, list[int]]] = WANTED, *, index: bool = True) -> Path:
    """Two shards and an index."""
    folder.mkdir(parents=True, exist_ok=True)
    names = list(tensors)
    weights: dict[str, str] = {}
    for number, part in enumerate((names[::2], names[1::2]), start=1):
        file = f"model-{number:05}-of-00002.safetensors"
        (folder / file).write_bytes(shard({n: tensors[n] for n in part}))
        weights |= dict.fromkeys(part, file)
    if index:
        (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": weights}), "utf-8")
    return folder


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    rows = {
        "embed": ("embed.weight", "[12, 8]", "96", "BF16", ""),
        "proj": ("proj.weight", "[8, 8]", "64", "F8_E4M3", ""),
        "experts": ("layers.{l}.experts.{e}.weight", "[6, 8]", "6*6*8", "I8(packed E2M1)", ", each: {l: 3, e: 2}"),
    }
    components = [
        toy_component(id, [f'{{id: w, tensor: "{t}", axes: {a}, count: {c}, dtype: {d}, text: w{more}}}'])
        for id, (t, a, c, d, more) in rows.items()
    ]
    logical = {n: (8 if d == "I8" else s[-1]) for n, (d, s) in WANTED.items()}
    tensors = [[n, [*s[:-1], logical[n]], "I8(packed E2M1)" if d == "I8" else d] for n, (d, s) in WANTED.items()]
    return write_toy(tmp_path_factory.mktemp("toy"), components, config={"tensors": tensors})


@pytest.mark.parametrize("index", [True, False], ids=["with an index", "without one"])
def test_a_folder_that_agrees_is_read_whole(toy: Toy, tmp_path: Path, index: bool) -> None:
    report = toy.verify("static", checkpoint=write_folder(tmp_path / "weights", index=index))
    assert report.exit_code == 0, [f.text() for f in report.findings]
    rows = {o.component: o for o in report.outcomes if o.statement == "row:w"}
    assert {o.level for o in rows.values()} == {"checkpoint"} and {o.state for o in rows.values()} == {"passed"}
    assert report.runs["checkpoint"].device == f"2 file(s), 9 tensors, {96 + 64 + 6 * 48} elements and 1 scales"
    assert report.to_json()["levels"]["checkpoint"]["passed"] == 3


def test_what_was_executed_stays_executed(toy: Toy, tmp_path: Path) -> None:
    """Headers are no run: with the meta level beside it a row is what the module shows."""
    report = toy.verify("meta", checkpoint=write_folder(tmp_path / "weights"))
    assert report.exit_code == 0, [f.text() for f in report.findings]
    assert {o.level for o in report.outcomes if o.statement == "row:w"} == {"meta"}
    assert report.runs["checkpoint"].ran


def without(name: str) -> Tensors:
    return {n: t for n, t in WANTED.items() if n != name}


EXPERTS = [n for n in WANTED if "experts" in n]

#: name -> the folder's tensors, component of the finding, words of it, expected, actual, tensors concerned
DIFFERENCES: dict[str, tuple[Tensors, str, str, str, str, int]] = {
    "missing": (without("embed.weight"), "embed", "embed.weight is missing", "[12, 8] BF16", "none", 1),
    "missing in every layer": (
        {n: t for n, t in WANTED.items() if n not in EXPERTS},
        "experts",
        "is missing",
        "[6, 4]",
        "none",
        6,
    ),
    "a missing scale": (without("proj.scale"), "", "proj.scale is missing", "[1, 1] F8_E8M0", "none", 1),
    "unexpected": (
        {**WANTED, "lm_head.weight": ("BF16", [12, 8])},
        "",
        "lm_head.weight is unexpected",
        "none",
        "[12, 8] BF16",
        1,
    ),
    "another shape": (
        {**WANTED, "embed.weight": ("BF16", [8, 12])},
        "embed",
        "another shape",
        "[12, 8], 96",
        "[8, 12], 96",
        1,
    ),
    "experts that are not packed": (
        {**WANTED, **dict.fromkeys(EXPERTS, ("I8", [6, 8]))},
        "experts",
        "another shape",
        "[6, 4]",
        "[6, 8]",
        6,
    ),
    "experts in FP8": (
        {**WANTED, **dict.fromkeys(EXPERTS, ("F8_E4M3", [6, 4]))},
        "experts",
        "another number type",
        "I8(packed E2M1)",
        "F8_E4M3",
        6,
    ),
    "another type": ({**WANTED, "embed.weight": ("F32", [12, 8])}, "embed", "another number type", "BF16", "F32", 1),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_difference_is_one_finding_for_all_layers(toy: Toy, tmp_path: Path, name: str) -> None:
    tensors, component, words, expected, actual, concerned = DIFFERENCES[name]
    report = toy.verify("static", checkpoint=write_folder(tmp_path / "weights", tensors))
    assert report.exit_code == 1
    (finding,) = report.findings
    assert finding.code == "checkpoint-mismatch" and finding.component == component and words in finding.message
    assert expected in finding.expected and actual in finding.actual
    assert (f"and {concerned - 1} more like it" in finding.message) == (concerned > 1)
    failed = {o.component for o in report.outcomes if o.statement == "row:w" and o.state == "failed"}
    assert failed == ({component} if component else set())


def test_bytes_of_packed_codes_may_be_signed_or_not(toy: Toy, tmp_path: Path) -> None:
    tensors = {**WANTED, **dict.fromkeys(EXPERTS, ("U8", [6, 4]))}
    assert toy.verify("static", checkpoint=write_folder(tmp_path / "weights", tensors)).exit_code == 0


@pytest.mark.parametrize(
    ("shape", "dtype", "stored", "names"),
    [
        ((6, 8), "BF16", (6, 8), ("BF16",)),
        ((6, 8), "I8(packed E2M1)", (6, 4), ("I8", "U8")),
        ((6, 7), "I8(packed E2M1)", (6, 4), ("I8", "U8")),
        ((8,), "I32 (packed E2M1)", (1,), ("I32",)),
    ],
)
def test_the_stored_form_of_a_tensor(
    shape: tuple[int, ...], dtype: str, stored: tuple[int, ...], names: tuple[str, ...]
) -> None:
    assert stored_form(shape, dtype) == (stored, names)


def test_a_folder_of_another_model_is_told_in_a_bounded_number_of_lines(toy: Toy, tmp_path: Path) -> None:
    letters = "abcdefghij"
    strange: Tensors = {f"{a}{b}.{i}": ("F32", [i + 1]) for a in letters for b in letters for i in range(5)}
    report = toy.verify("static", checkpoint=write_folder(tmp_path / "weights", strange))
    assert len(report.findings) == checkpoint.MAX_FINDINGS + 1
    assert "more kinds of difference" in " ".join(f.message for f in report.findings)


def entry(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda header: header["w"].update(values)


W: Tensors = {"w": ("F32", [2, 3])}
WHOLE = shard(W)

#: name -> bytes of a shard, words of the finding
DAMAGED: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "leaves the file"),
    "seven bytes": (WHOLE[:7], "leaves the file"),
    "cut in the header": (WHOLE[:40], "leaves the file"),
    "cut in the data": (WHOLE[:-1], "cut off"),
    "a byte more": (shard(W, more=b"x"), "longer"),
    "a length of 2**63": ((2**63).to_bytes(8, "little") + WHOLE[8:], "leaves the file"),
    "no JSON": ((9).to_bytes(8, "little") + b"not json!" + bytes(24), "no JSON"),
    "no object": ((2).to_bytes(8, "little") + b"[]", "no JSON object"),
    "not UTF-8": ((2).to_bytes(8, "little") + b"\xff\xfe", "no JSON"),
    "nested 100,000 deep": ((200_000).to_bytes(8, "little") + b"[" * 100_000 + b"]" * 100_000, "no JSON"),
    "a name twice": ((7 + 8 + 1).to_bytes(8, "little") + b'{"w": 1, "w": 2}', "stands twice"),
    "no offsets": (shard(W, lambda h: h["w"].pop("data_offsets")), "has no dtype, shape and data_offsets"),
    "a field more": (shard(W, entry(note="x")), "has no dtype, shape and data_offsets"),
    "a type that does not exist": (shard(W, entry(dtype="F12")), "'F12'"),
    "a type that is no text": (shard(W, entry(dtype=4)), "the format does not have"),
    "a negative size": (shard(W, entry(shape=[-2, -3])), "no list of counts"),
    "a size of true": (shard(W, entry(shape=[True, 6])), "no list of counts"),
    "a size of 2**70": (shard(W, entry(shape=[2**70, 3])), "no list of counts"),
    "another shape than the data": (shard(W, entry(shape=[3, 3])), "need 36"),
    "another type than the data": (shard(W, entry(dtype="BF16")), "need 12"),
    "offsets past the data": (shard(W, entry(data_offsets=[24, 48])), "gap"),
    "reversed offsets": (shard(W, entry(data_offsets=[24, 0])), "need 24"),
    "two tensors on the same bytes": (shard(W, lambda h: h.update(v=dict(h["w"]))), "overlaps"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_or_forged_header_is_a_finding(tmp_path: Path, name: str) -> None:
    content, words = DAMAGED[name]
    (tmp_path / "model.safetensors").write_bytes(content)
    found, findings = read_folder(tmp_path)
    (finding,) = findings
    assert not found and finding.severity == "error" and finding.code == "checkpoint-mismatch"
    assert words in finding.text() and finding.where.file.endswith("model.safetensors")


def test_a_damaged_shard_leaves_no_row_verified(toy: Toy, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "weights")
    path = folder / "model-00002-of-00002.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    report = toy.verify("static", checkpoint=folder)
    assert report.exit_code == 1
    assert not [o for o in report.outcomes if o.statement == "row:w" and o.state == "passed"]


#: name -> change of the index, words of a finding
INDEXES: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "no weight_map": (lambda i: i.pop("weight_map"), "no weight_map"),
    "a file outside": (lambda i: i["weight_map"].update({"embed.weight": "../x.safetensors"}), "no shard beside it"),
    "an absolute file": (lambda i: i["weight_map"].update({"embed.weight": "/etc/hostname"}), "no shard beside it"),
    "a file that is not there": (lambda i: i["weight_map"].update({"embed.weight": "x.safetensors"}), "cannot be read"),
    "a tensor in the other file": (
        lambda i: i["weight_map"].update({"embed.weight": i["weight_map"]["proj.weight"]}), "names another file"
    ),
    "a tensor that no file has": (
        lambda i: i["weight_map"].update({"ghost": i["weight_map"]["proj.weight"]}), "another file for ghost"
    ),
    "a tensor left out": (lambda i: i["weight_map"].pop("embed.weight"), "does not list embed.weight"),
    "a declared size (P20)": (lambda i: i.update(metadata={"total_size": 333_312}), "declared figure is not used"),
}  # fmt: skip


@pytest.mark.parametrize("name", INDEXES)
def test_the_index_is_compared_with_the_headers(tmp_path: Path, name: str) -> None:
    change, words = INDEXES[name]
    folder = write_folder(tmp_path / "weights")
    index = json.loads((folder / INDEX).read_text("utf-8"))
    change(index)
    (folder / INDEX).write_text(json.dumps(index), "utf-8")
    _, findings = read_folder(folder)
    assert [f for f in findings if words in f.message + f.actual], [f.text() for f in findings]


def test_a_shard_that_the_index_does_not_name_is_said_and_not_read(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "weights")
    (folder / "consolidated.safetensors").write_bytes(shard(W))
    found, findings = read_folder(folder)
    assert "w" not in found and [f.severity for f in findings] == ["warning"]


def test_the_folder_must_be_there_and_the_model_named(toy: Toy, tmp_path: Path) -> None:
    for folder in (tmp_path / "none", tmp_path):
        with pytest.raises(SitegenError, match="checkpoint|safetensors"):
            read_folder(folder)
    run = lambda *a: CliRunner().invoke(main, ["--root", str(toy.root), "verify", *a])  # noqa: E731
    assert run("--level", "static", "--checkpoint", str(tmp_path / "none")).exit_code == 2
    done = run("--level", "checkpoint", "--force")
    assert done.exit_code == 3 and "no checkpoint folder was named" in done.output
    done = run("--level", "static", "--checkpoint", str(write_folder(tmp_path / "weights")))
    assert done.exit_code == 0 and "checkpoint checked 3, passed 3" in done.output, done.output


def test_a_cached_run_is_of_the_same_headers(toy: Toy, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "weights")
    verify = lambda: CliRunner().invoke(  # noqa: E731
        main, ["--root", str(toy.root), "verify", "--level", "static", "--checkpoint", str(folder)]
    )
    assert verify().exit_code == 0
    assert "nothing changed" in verify().output
    write_folder(folder, {**WANTED, "embed.weight": ("F32", [12, 8])})
    assert verify().exit_code == 1


def test_the_package_writes_what_is_read(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(2, 3, dtype=torch.bfloat16), "b": torch.zeros(0, 4)}, tmp_path / "m.safetensors")
    found = {t.name: (t.shape, t.dtype) for t in read_header(tmp_path / "m.safetensors", Location("m"))}
    assert found == {"a": ((2, 3), "BF16"), "b": ((0, 4), "F32")}


@pytest.mark.slow
def test_the_released_form_is_read_from_headers_alone(tmp_path: Path) -> None:
    """All tensors of the released configuration in 48 shards that hold no data: 510 GB of holes."""
    harness = pytest.importorskip("reference_impl.harness")
    counted = accounting.count(resolver.resolve(loader.load(ROOT, MODEL)))
    facts, _ = harness.tensors(counted.model.config)
    for number in range(48):
        part = {f.name: stored_form(f.shape, f.dtype) for f in facts[number::48]}
        header, end = {}, 0
        for name, (shape, names) in part.items():
            size = math.prod(shape) * BITS[names[0]] // 8
            header[name] = {"dtype": names[0], "shape": shape, "data_offsets": [end, end + size]}
            end += size
        text = json.dumps(header).encode()
        with (tmp_path / f"model-{number:05}.safetensors").open("wb") as stream:
            stream.write(len(text).to_bytes(8, "little") + text)
            stream.truncate(8 + len(text) + end)
    result = checkpoint.run(counted, harness, tmp_path, lambda message: None)
    assert not result.findings
    assert result.device == "48 file(s), 96,085 tensors, 763,205,315,794 elements and 23,563,015,184 scales"


@given(st.binary(max_size=120), st.booleans())
def test_no_bytes_give_a_traceback(tmp_path_factory: pytest.TempPathFactory, data: bytes, framed: bool) -> None:
    folder = tmp_path_factory.getbasetemp() / "fuzzed"
    folder.mkdir(exist_ok=True)
    content = len(data).to_bytes(8, "little") + data if framed else data
    (folder / "m.safetensors").write_bytes(content)
    found, findings = read_folder(folder)
    assert not found or not findings
