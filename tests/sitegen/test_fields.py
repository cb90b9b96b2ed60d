"""The fields of the configuration: what must be said of them, and whom their values reach."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from test_spec_stages import FILES, accounts, project

from sitegen import configuration, facts, loader, resolver
from sitegen.diagnostics import SpecInvalid
from sitegen.probe import fields
from sitegen.probe.result import FieldReads, LevelResult

ROOT = Path(__file__).resolve().parents[2]
FLAGSHIP = "deepseek-v4.1-flash"
TOY = "fields: {" + ", ".join(
    f'{name}: {{meaning: "A {name}."}}' for name in json.loads(FILES["config.json"])
) + "}\n"  # fmt: skip


def toy(folder: Path, text: str = TOY) -> resolver.Model:
    project(folder)
    (folder / "spec/toy/config.yml").write_text(text, "utf-8")
    return accounts(folder).model


def test_every_field_of_the_released_configuration_has_a_meaning() -> None:
    model = resolver.resolve(loader.load(ROOT, FLAGSHIP))
    assert len(model.config) == 64 and list(model.sources.fields) == list(model.config)
    assert not list(configuration.field_findings(model))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("dim: {meaning: \"A dim.\"}, ", ""), "the config field 'dim' has no meaning"),
        (("dim: {", "dimm: {"), "no config field 'dimm'"),
        (('dim: {meaning: "A dim."', 'dim: {meaning: "A dim.", unread: "Why.", by: [mixx]'), "no component 'mixx'"),
    ],
)  # fmt: skip
def test_meanings_that_are_missing_or_speak_of_nothing_are_findings(
    tmp_path: Path, change: tuple[str, str], told: str
) -> None:
    assert change[0] in TOY
    found = list(configuration.field_findings(toy(tmp_path, TOY.replace(*change))))
    assert told in [f.message for f in found] and {f.code for f in found} == {"unknown-reference"}
    assert all(f.where.file == "spec/toy/config.yml" and f.where.line for f in found)


def test_components_stand_only_with_a_reason_why_no_module_reads_a_field(tmp_path: Path) -> None:
    with pytest.raises(SpecInvalid, match="`by` stands with `unread` alone"):
        toy(tmp_path, TOY.replace('"A dim."', '"A dim.", by: [mix]'))


@pytest.mark.parametrize(
    ("symbol", "names"),
    [("n", ("hc_mult",)), ("M", ("hc_mult",)), ("B", ()), ("eps_hc", ("hc_eps",)), ("V", ("vocab_size",))],
)
def test_a_symbol_carries_fields_alone_or_in_an_expression(symbol: str, names: tuple[str, ...]) -> None:
    model = resolver.resolve(loader.load(ROOT, FLAGSHIP))
    assert configuration.fields_of_symbol(model, symbol) == names
    for name in names:
        assert symbol in configuration.symbols_of_field(model, name)


# --- who reads a field ------------------------------------------------------------------------------


class Read(NamedTuple):
    field: str
    module: str
    tensor: str = ""
    operation: str = ""


class Harness:
    """A harness that gives made-up reads."""

    def __init__(self, reads: list[Read], refused: dict[str, str] | None = None) -> None:
        self.reads, self.refused = reads, refused or {}

    def config_reads(self, config: object, **run: object) -> tuple[list[Read], dict[str, str]]:
        assert set(run) == {"dtype", "batch", "positions", "seed"}
        return self.reads, self.refused


def small(model: resolver.Model) -> resolver.Model:
    configurations = [model.sources.model.configurations[0].model_copy(update={"layers": {"pair/each": 2}})]
    noun = model.sources.model.model_copy(update={"configurations": configurations})
    return replace(model, sources=replace(model.sources, model=noun))


@pytest.mark.parametrize(
    ("reads", "components"),
    [
        ([Read("dim", "layers.2", tensor="layers.2.base")], ("mix/weights",)),
        ([Read("dim", "layers.2.experts.1", tensor="layers.2.experts.1.w")], ("mix/experts",)),
        ([Read("dim", "layers.2", tensor="layers.2.table")], ("table",)),
        # of a component and its parts in one module the component; a tensor there already says more
        ([Read("dim", "layers.2")], ("mix/weights", "table")),
        ([Read("dim", "layers.2"), Read("dim", "layers.2", tensor="layers.2.base")], ("mix/weights",)),
        ([Read("dim", "layers.2.experts.0.inner")], ("mix/experts",)),
        # other layers are left out beside the one that stands for their place; alone they count as that one
        ([Read("dim", "layers.1", tensor="layers.1.base"), Read("dim", "layers.2", tensor="layers.2.table")],
         ("table",)),
        ([Read("dim", "layers.1", tensor="layers.1.base")], ("mix/weights",)),
        ([Read("dim", "elsewhere")], ()),
    ],
)
def test_reads_go_to_the_innermost_component(tmp_path: Path, reads: list[Read], components: tuple[str, ...]) -> None:
    result = LevelResult("cpu")
    fields.run(small(toy(tmp_path)), Harness(reads), result)  # type: ignore[arg-type]
    assert result.fields["dim"].components == components
    assert result.fields["num_streams"] == FieldReads()


@pytest.mark.parametrize(
    ("text", "reads", "told"),
    [
        ('"A dim."', [], "no module reads the config field 'dim'"),
        ('"A dim.", unread: "Why."', [Read("dim", "layers.2")], "the config field 'dim' is said to be unread"),
        ('"A dim.", unread: "Why."', [], ""),
        ('"A dim."', [Read("dim", "layers.2")], ""),
    ],
)
def test_an_unread_field_needs_a_reason_and_a_read_one_none(
    tmp_path: Path, text: str, reads: list[Read], told: str
) -> None:
    result = LevelResult("cpu")
    harness = Harness(reads, {"dim": "config: dim = 9 will not do"})
    fields.run(small(toy(tmp_path, TOY.replace('"A dim."', text))), harness, result)  # type: ignore[arg-type]
    found = [f for f in result.findings if "'dim'" in f.message]
    assert [f.message.startswith(told) for f in found] == ([True] if told else [])
    if told.startswith("no module"):
        assert found[0].actual == "config: dim = 9 will not do" and found[0].where.file == "spec/toy/config.yml"


def test_traced_fields_are_kept_as_facts_until_the_spec_moves(tmp_path: Path) -> None:
    model = toy(tmp_path)
    reads = FieldReads(("mix",), ("layers.*",), ("route",), "")
    result = LevelResult("cpu", device="cpu", fields={"dim": reads})
    result.hold("mix", "account", "held")
    assert facts.write(model.sources, result, "2026-12-01")
    known, findings = facts.read(model.sources, "cpu")
    assert known is not None and known.fields == {"dim": reads} and not findings
    spec = tmp_path / "spec/toy/components/mix.yml"
    spec.write_text(spec.read_text("utf-8").replace("tensor: table,", "tensor: tables,"), "utf-8")
    known, findings = facts.read(loader.load(tmp_path, "toy"), "cpu")
    assert known is not None and known.fields == {} and [f.code for f in findings] == ["facts-stale"]
