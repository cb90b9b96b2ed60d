"""P01 to P05, P20 and P21: parameter counts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import toy_harness
from test_checkpoint_level import INDEX, write_folder
from toy_project import Toy, toy_component, write_toy

from sitegen.diagnostics import Finding
from sitegen.outputs.counts import count_model
from sitegen.probe.checkpoint import read_folder

torch = pytest.importorskip("torch")


def found(findings: list[Finding], code: str, words: str) -> Finding:
    """The one finding with this code and these words."""
    hits = [f for f in findings if f.code == code and words in f.text()]
    assert hits, [f.text() for f in findings]
    return hits[0]


def symbols(**fields: str) -> str:
    """Symbols that are fields of the configuration, by letter."""
    return "{" + ", ".join(f"{k}: {{tex: {k[0]}, meaning: m, field: {v}}}" for k, v in fields.items()) + "}"


def row(tensor: str, axes: str, count: str, dtype: str = "F32", more: str = "") -> str:
    return f'{{id: w, tensor: "{tensor}", axes: {axes}, count: "{count}", dtype: {dtype}, text: w{more}}}'


# --- P01 ---------------------------------------------------------------------------------------------


def tied(config: Mapping[str, Any]) -> Any:
    class Tiny(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.emb = torch.nn.Embedding(config["vocab"], config["dim"])
            self.head = torch.nn.Linear(config["dim"], config["vocab"], bias=False)
            self.head.weight = self.emb.weight

    return Tiny()


def p01_tied_head_counted_once(folder: Path) -> None:
    toy_harness.MODULES["tied"] = tied
    config = {"module": "tied", "vocab": 1000, "dim": 64}
    small = {"vocab": 7, "dim": 5}
    emb = toy_component("emb", [row("emb.weight", "[V, d]", "V*d")])
    letters = symbols(V="vocab", d="dim")
    twice = write_toy(
        folder / "twice", [emb, toy_component("head", [row("head.weight", "[V, d]", "V*d")])],
        config=config, small=small, symbols=letters,
    )  # fmt: skip
    report = twice.verify("meta")
    finding = found(report.findings, "count-mismatch", "head.weight is emb.weight")
    assert finding.component == "head" and report.exit_code == 1
    assert "64,000" in finding.expected and "128,000" in finding.actual
    view = "\nviews:\n- {tensor: head.weight, axes: [V, d], text: the embedding itself}\n"
    policies = """
policies:
  all: {title: All, scope: Everything once., terms: [{places: [model]}], published: 64000}
  body: {title: Body, scope: "Without embedding and head, which are one tensor.", terms: [{places: [model]}, {components: [emb], sign: -1}], published: 0}
"""  # noqa: E501
    once = write_toy(
        folder / "once", [emb, toy_component("head", more=view)],
        config=config, small=small, symbols=letters, policies=policies,
    )  # fmt: skip
    report = once.verify("meta")
    assert report.exit_code == 0, [f.text() for f in report.findings]
    assert count_model(once.root, "toy")["policies"]["all"]["parameters"] == 64_000
    off_twice = policies.replace(
        "{components: [emb], sign: -1}", "{components: [emb], sign: -1}, {components: [emb], sign: -1}"
    )
    again = write_toy(
        folder / "again", [emb, toy_component("head", more=view)],
        config=config, small=small, symbols=letters, policies=off_twice,
    )  # fmt: skip
    assert "-64,000" in found(again.findings(), "count-mismatch", "comes to a negative figure").actual


# --- P02 ---------------------------------------------------------------------------------------------


def p02_scales_are_not_parameters(folder: Path) -> None:
    def entry(name: str, shape: list[int], dtype: str) -> dict[str, Any]:
        same = {"shape": shape, "stored_shape": shape, "dtype": dtype, "instances": 1, "layers": []}
        return {"name_pattern": name, "is_scale": ".scale" in name, **same}

    def project(name: str, count: str, scale: list[int]) -> Toy:
        tensors = [["kv.weight", ["kv", "dim"], "F8_E4M3"], ["kv.scale", ["-(-kv//128)", "-(-dim//128)"], "F8_E8M0"]]
        return write_toy(
            folder / name,
            [toy_component("latent", [row("kv.weight", "[c, d]", count, "F8_E4M3")])],
            config={"kv": 576, "dim": 5120, "tensors": tensors},
            small={"kv": 60, "dim": 70},
            symbols=symbols(c="kv", d="dim"),
            table=[entry("kv.weight", [576, 5120], "F8_E4M3"), entry("kv.scale", scale, "F8_E8M0")],
        )

    wrong = project("wrong", "c*d + 200", [5, 40])
    for findings in (wrong.findings(), wrong.verify("meta").findings):
        finding = found(findings, "count-mismatch", "200 of them are quantisation scales: scales are not parameters")
        assert "2,949,120" in finding.expected and "2,949,320" in finding.actual
    right = project("right", "c*d", [5, 40])
    assert right.verify("meta").exit_code == 0
    assert count_model(right.root, "toy")["policies"]["all"] == {
        "parameters": 2_949_120, "scales": 200, "stored_elements": 2_949_120,
    }  # fmt: skip
    floor = project("floor", "c*d", [4, 40])
    finding = found(floor.verify("meta").findings, "shape-mismatch", "kv.scale has another shape")
    assert "[5, 40]" in finding.expected and "[4, 40]" in finding.actual and "round up" in finding.hint


# --- P03 ---------------------------------------------------------------------------------------------


def router(as_buffer: bool) -> Any:
    def build(config: Mapping[str, Any]) -> Any:
        class Gate(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.weight = torch.nn.Parameter(torch.zeros(config["experts"], config["dim"]))
                ids = torch.zeros(config["vocab"], config["top"], dtype=torch.int32)
                if as_buffer:
                    self.register_buffer("tid2eid", ids)
                else:  # an integer tensor is not learned, whatever its class
                    self.tid2eid = torch.nn.Parameter(ids, requires_grad=False)
                self.register_buffer("rotary", torch.zeros(9), persistent=False)

        return Gate()

    return build


def p03_buffers_are_not_parameters(folder: Path) -> None:
    for as_buffer in (True, False):
        toy_harness.MODULES["router"] = router(as_buffer)
        for role, code in (("parameter", 1), ("buffer", 0)):
            rows = [
                row("weight", "[E, d]", "E*d"),
                row("tid2eid", "[V, k]", "V*k", "I32", f", role: {role}").replace("id: w", "id: ids"),
            ]
            toy = write_toy(
                folder / f"{role}-{as_buffer}", [toy_component("router", rows)],
                config={"module": "router", "experts": 256, "dim": 4096, "vocab": 129_280, "top": 6},
                small={"experts": 5, "dim": 8, "vocab": 11, "top": 3},
                symbols=symbols(E="experts", d="dim", V="vocab", k="top"),
            )  # fmt: skip
            report = toy.verify("meta")
            assert report.exit_code == code, [f.text() for f in report.findings]
            if role == "parameter":
                found(report.findings, "count-mismatch", "counted as parameter, is a buffer here: tid2eid 775,680")
            else:
                assert toy.accounts().total("router") == 256 * 4096 == 1_048_576
    learned = [row("weight", "[E, d]", "E*d", "F32", ", role: buffer")]
    toy = write_toy(
        folder / "learned", [toy_component("router", learned)], documented="[weight]",
        config={"module": "router", "experts": 4, "dim": 8, "vocab": 11, "top": 3},
        symbols=symbols(E="experts", d="dim"),
    )  # fmt: skip
    found(toy.verify("meta").findings, "count-mismatch", "stated as a buffer, is a parameter here: weight 32")


# --- P04 ---------------------------------------------------------------------------------------------


class Sampled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = torch.nn.Linear(5120, 2304, bias=False)
        self.steps = [t.item() for t in torch.arange(3.0)]


def on_meta(build: Any) -> Any:
    def make(config: Mapping[str, Any]) -> Any:
        with torch.device("meta"):
            return build(config)

    return make


def p04_a_count_needs_real_shapes(folder: Path) -> None:
    toy_harness.MODULES["lazy"] = lambda c: torch.nn.Sequential(torch.nn.LazyLinear(3))
    toy_harness.MODULES["sampled"] = on_meta(lambda c: Sampled())
    toy_harness.MODULES["meta"] = on_meta(lambda c: torch.nn.Sequential(torch.nn.Linear(c["d"], c["f"], bias=False)))
    component = toy_component("c", [row("0.weight", "[f, d]", "f*d")])

    def project(module: str) -> Toy:
        return write_toy(
            folder / module, [component], config={"module": module, "d": 5120, "f": 2304}, small={"d": 6, "f": 10},
            symbols=symbols(d="d", f="f"),
        )  # fmt: skip

    lazy = found(project("lazy").verify("meta").findings, "config-invalid", "a parameter has no shape yet")
    assert "0.weight" in lazy.actual
    sampled = found(project("sampled").verify("meta").findings, "config-invalid", "without real tensors")
    line = Sampled.__init__.__code__.co_firstlineno + 3
    assert f"public_counts.py:{line}" in sampled.message and "small configuration on the CPU" in sampled.hint
    report = project("meta").verify("meta")
    assert report.exit_code == 0 and report.runs["meta"].device == "meta"
    (outcome,) = [o for o in report.outcomes if o.statement == "row:w"]
    assert outcome.detail.startswith("11,796,480 elements")
    empty = write_toy(
        folder / "empty",
        [toy_component("c", [row("w", "[0, 256]", "0*256")])],
        config={"tensors": [["w", [0, 256], "F32"]]},
    )
    found(empty.findings(), "count-mismatch", "a row owns no parameters")
    sharded = torch.nn.Linear(4, 3, bias=False)
    sharded.weight.data = torch.zeros(0)
    sharded.weight.ds_shape = (3, 4)  # what ZeRO-3 leaves
    (weight,) = toy_harness.module_tensors(sharded)
    assert weight.elements == 12


# --- P05 ---------------------------------------------------------------------------------------------


def p05_a_shape_is_no_number_of_elements(folder: Path) -> None:
    def project(name: str, axes: str) -> Toy:
        return write_toy(
            folder / name,
            [toy_component("experts", [row("gate_up", axes, "E*d*2*f")])],
            config={
                "experts": 4,
                "dim": 32,
                "inter": 16,
                "tensors": [["gate_up", ["experts", "2*inter", "dim"], "F32"]],
            },
            small={"dim": 40, "inter": 12},
            symbols=symbols(E="experts", d="dim", f="inter"),
        )

    wrong = project("wrong", '[E, d, "2*f"]')
    assert not wrong.findings(), "at the released sizes both readings give 4,096 elements and the same shape"
    finding = found(wrong.verify("meta").findings, "shape-mismatch", "gate_up")
    assert "[4, 40, 24]" in finding.expected and "[4, 24, 40]" in finding.actual
    assert project("right", '[E, "2*f", d]').verify("meta").exit_code == 0


# --- P20 and P21 -------------------------------------------------------------------------------------


def p20_a_total_says_what_it_counts(folder: Path) -> None:
    groups = {"backbone": 552, "engram": 197, "dspark": 14, "vision": 5}
    components = [toy_component(id, [row(id, f"[{n}]", str(n))]) for id, n in groups.items()]
    config = {"tensors": [[id, [n], "F32"] for id, n in groups.items()]}

    def project(name: str, total: str) -> Toy:
        policies = "policies:\n" + "".join(
            f"  {id}: {{title: {id}, scope: One group., terms: [{{components: [{id}]}}], published: {n}}}\n"
            for id, n in groups.items()
        )
        policies += f"  text: {{title: Text path, scope: Without Engram and draft., terms: [{{components: [backbone]}}], published: {total}}}\n"  # noqa: E501
        return write_toy(folder / name, components, config=config, policies=policies)

    assert not project("right", "552").findings()
    finding = found(project("sum", "768").findings(), "count-mismatch", "'text'")
    assert "768 published" in finding.expected and "552 from the rows" in finding.actual
    assert "schema-invalid" in project("float", "763e9").codes()
    counts = count_model(project("groups", "552").root, "toy")["policies"]
    assert {id: counts[id]["parameters"] for id in groups} == groups and counts["text"]["parameters"] == 552
    weights = write_folder(folder / "weights")
    index = (weights / INDEX).read_text("utf-8")
    (weights / INDEX).write_text(index.replace('"metadata": {}', '"metadata": {"total_parameters": 333312}'), "utf-8")
    declared = found(read_folder(weights)[1], "checkpoint-mismatch", "the declared figure is not used")
    assert "333312" in declared.actual and declared.severity == "warning"


def p21_real_rows_not_the_nominal_vocabulary(folder: Path) -> None:
    rows = [384_006_168, 384_016_682]

    def project(name: str, count: str) -> Toy:
        place = '- {id: layers, title: Layers, layers: [1, 14], repeat: 2, path: "layers.{i}", parts: [engram]}\n'
        letters = "{R: {tex: R, meaning: rows, by_layer: {layers: ids, values: rows}}, "
        letters += "c: {tex: c, meaning: columns, field: columns}}"
        return write_toy(
            folder / name,
            [toy_component("engram", [row("table", "[R, c]", count, "BF16")])],
            config={"ids": [1, 14], "rows": rows, "columns": 256,
                    "tensors": [[f"layers.{i}.table", [n, 256], "BF16"] for i, n in zip((1, 14), rows, strict=True)]},
            symbols=letters, parts=[], places=place,
        )  # fmt: skip

    finding = found(
        project("nominal", "16000000*(4 - 1)*8*c").findings(), "count-mismatch", "not the product of its axes"
    )
    assert "98,305,579,008" in finding.expected and "98,304,000,000" in finding.actual
    right = project("real", "R*c")
    assert not right.findings()
    accounts = right.accounts()
    assert accounts.per_instance("engram") == [98_305_579_008, 98_308_270_592]
    assert accounts.total("engram") == 196_613_849_600
    from reference_impl.ops.hashing import bucket_primes

    primes = bucket_primes(start=16_000_000, layers=2, orders=3, heads=8)
    assert [sum(n for order in layer for n in order) for layer in primes] == rows


COUNTS = {
    "P01": p01_tied_head_counted_once,
    "P02": p02_scales_are_not_parameters,
    "P03": p03_buffers_are_not_parameters,
    "P04": p04_a_count_needs_real_shapes,
    "P05": p05_a_shape_is_no_number_of_elements,
    "P20": p20_a_total_says_what_it_counts,
    "P21": p21_real_rows_not_the_nominal_vocabulary,
}
