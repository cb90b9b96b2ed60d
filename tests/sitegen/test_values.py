"""Values of a run under formula names: paths, parts of complex values, allowances beside masked entries, relations."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from sitegen import schema
from sitegen.diagnostics import NOWHERE, SpecInvalid
from sitegen.probe.formulas import Case
from sitegen.probe.properties import check_relation, sides
from sitegen.probe.tolerance import allowance, by_type, difference
from sitegen.probe.values import Records, ValuePath

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("rotate#2.x", ValuePath("rotate", 2, "x")),
        ("kv_concat@decode.compressed", ValuePath("kv_concat@decode", 0, "compressed")),
        ("rotate#1.freqs_cis.real", ValuePath("rotate", 1, "freqs_cis", "real")),
        ("rotate.freqs_cis.imag", ValuePath("rotate", 0, "freqs_cis", "imag")),
    ],
)
def test_a_value_path_names_operation_call_field_and_part(text: str, path: ValuePath) -> None:
    assert ValuePath.parse(text) == path


@pytest.mark.parametrize("text", ["freqs_cis", "rotate#x.freqs_cis", "rotate.freqs_cis.angle", ".real"])
def test_a_path_that_names_no_value_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no value path"):
        ValuePath.parse(text)


def test_a_complex_value_is_read_by_its_parts() -> None:
    binding = schema.Binding(operation="rotate", bind={})
    records = Records({("layer", "rotate", 0): {"freqs_cis": torch.tensor([3 + 4j])}})
    for text, value in (("freqs_cis.real", 3.0), ("freqs_cis.imag", 4.0)):
        assert records.get("layer", ValuePath.parse(text, binding)).tolist() == [value]


def test_an_entry_of_infinity_allows_the_others_nothing() -> None:
    masked = torch.tensor([1.0, -math.inf], dtype=torch.float64)
    wrong = torch.tensor([2.0, -math.inf], dtype=torch.float64)
    allowed = by_type("float64", masked)
    assert difference(masked.clone(), masked, allowed).within
    assert not difference(wrong, masked, allowed).within
    assert not difference(wrong, masked, allowance(schema.Tolerance(kind="bf16"), masked, "bfloat16")).within


def test_a_symbol_stands_for_one_value_only() -> None:
    assert schema.Symbol(tex="\\infty", meaning="infinity", infinite=True).infinite
    with pytest.raises(ValueError, match="at most one"):
        schema.Symbol(tex="n", meaning="both", value=1, infinite=True)


@pytest.mark.parametrize(
    ("text", "relation"),
    [
        ("y[f] = sum(i = 1..n: x[i])", "="),
        ("where(f <= n, y[f], 0) <= max(e = 1..n: x[e])", "<="),
        ("where(f <= n and g >= 1, y[f, g], 0) = 0", "="),
        ("sum(i = 1..n: x[i]) >= 0", ">="),
    ],
)
def test_a_relation_stands_outside_brackets(text: str, relation: str) -> None:
    found = sides(text, {"x", "y", "n"}, NOWHERE)
    assert found.relation == relation


@pytest.mark.parametrize("text", ["sum(i = 1..n: x[i])", "y[f] = x[f] = 0", "y[f]"])
def test_a_text_without_one_relation_is_refused(text: str) -> None:
    with pytest.raises(SpecInvalid, match="no relation"):
        sides(text, {"x", "y", "n"}, NOWHERE)


def half(**stated: object) -> list[str]:
    """Codes of the findings of `y = x/2`, which holds in the configuration `exact` alone."""
    given = {"id": "half", "text": "t", "holds": "y[f] = x[f]/2", "tolerance": schema.Tolerance(kind="exact"), **stated}
    prop = schema.Property.model_validate(given)
    located = SimpleNamespace(component=SimpleNamespace(id="part"), at=lambda *path: NOWHERE)
    x = torch.tensor([1.0, 2.0])
    cases = [Case("exact, place, regime model", {"x": x, "y": x / 2}, {})]
    cases += [
        Case(f"rounded, {rest}regime {name}", {"x": x, "y": x}, {})
        for rest, name in (("place, ", "model"), ("", "tiny"))
    ]
    verdict = check_relation(located, 0, prop, (), cases)  # type: ignore[arg-type]
    return [f.code for f in verdict.findings]


def test_a_property_is_stated_for_configurations_and_regimes() -> None:
    assert half(configurations=["exact"]) == []
    assert half() == half(configurations=["rounded"]) == half(regimes=["tiny"]) == ["property-mismatch"]
    assert half(configurations=["exact"], regimes=["tiny"]) == half(configurations=["exac"]) == ["unknown-reference"]
