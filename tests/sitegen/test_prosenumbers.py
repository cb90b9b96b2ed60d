"""Figures that prose writes out: which are found, which are let alone, and what quotes may name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sitegen import accounting, loader, resolver, static
from sitegen.diagnostics import SpecInvalid
from sitegen.prosenumbers import Figures, Known, unbound
from sitegen.quoting import quote

ROOT = Path(__file__).resolve().parents[2]
KNOWN = Known({16: ("rope_factor",), 40: ("L",), 5120: ("d",), 491520: ("row:w",)}, {1e-6: ("eps",), 10.0: ("cap",)})


@pytest.mark.parametrize(
    "text, found",
    [
        ("A row of 5120 values.", ["5120"]),
        ("A row of 5,120 values, and 491,520 in all.", ["5,120", "491,520"]),
        ("5120", ["5120"]),
        ("Each of 40 layers (40), 40; 40.", ["40"] * 4),
        ("a 40 × 16 table, 40/16, 4-16 and 16-fold", ["40", "16", "40", "16", "16", "16"]),
        ("The guard is 1e-6, or 0.000001, or 1.0E-06.", ["1e-6", "0.000001", "1.0E-06"]),
        ("clamped to 10.0", ["10.0"]),
        ("*some 5120 of them*", ["5120"]),
        ("[5120 values](component:norm) and [16](code:pin)", ["5120", "16"]),
        ("{5120} and {4*4} and {(491520)}", ["{5120}", "{4*4}", "{(491520)}"]),
        ("layers 2, 8 and 14 of 40", ["40"]),
        ("The 16\nof them", ["16"]),
    ],
)
def test_figures_that_are_written_out_are_found(text: str, found: list[str]) -> None:
    assert [number.text for number in unbound(text, KNOWN)] == found


@pytest.mark.parametrize(
    "text",
    [
        "A row of {d} values, {row:w} in all, {d // 2 + 16} and {list[16]}.",
        "`5120` and ``a 5120``",
        "$5120 x$",
        "ten, 10 and 4 are words; 5121 and 51,20 are no figures",
        "in layer 40, layers 16-40, Layers 16, 20 and 40, layers 16 to 40",
        "section 16, sections 2.4.1 and 16, table 40, lines 16-40, step 40",
        "[5120 of them](source:report) and [5120](https://example.org/5120)",
        "bfloat16, E4M3, V4.16, x40, 40B, 16th, 16-bit, 16 bits, 2^16, 10**40, 2.4.16, 16 %, 40%",
        "10 is no float, and 16.0 no integer",
    ],
)
def test_other_numbers_are_let_alone(text: str) -> None:
    assert not list(unbound(text, KNOWN)), text


def test_a_number_is_found_where_it_stands_and_told_its_names() -> None:
    (number,) = unbound("It has 491,520 of them.", KNOWN)
    assert (number.start, number.value, number.names) == (7, 491520, ("row:w",))
    assert "{row:w}" in number.hint


# --- in the flagship's spec ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def counted() -> accounting.Accounts:
    return accounting.count(resolver.resolve(loader.load(ROOT, "deepseek-v4.1-flash")))


PROJECTION = "stream_weights_for_attention/mix_projection"


@pytest.mark.parametrize(
    "text, name",
    [
        ("Streams are 5120 wide.", "d"),
        ("It owns 491,520 values.", "row:projection"),
        ("There are 129,280 ids.", "V"),
        ("The table of the head has 661,913,600 values: 661913600.", "total:token_embedding"),
        ("It stands in 43 places.", "instances"),
        ("The guard is 1e-20.", "eps_norm"),
        ("The clamp is 10.0.", "swiglu_limit"),
    ],
)
def test_the_static_level_reports_them_with_their_place(counted: accounting.Accounts, text: str, name: str) -> None:
    located = counted.model.components[PROJECTION]
    component = located.component
    claim = component.explanation[0].model_copy(update={"text": text})
    changed = replace(located, component=component.model_copy(update={"explanation": [claim]}))
    findings = list(static.number_findings(Figures(counted), PROJECTION, changed))
    assert findings and {f.code for f in findings} == {"number-unbound"}
    assert "{" + name + "}" in findings[0].expected, findings[0].text()
    assert findings[0].statement == "explanation:1" and findings[0].where.line


def test_the_specs_quote_all_their_figures(counted: accounting.Accounts) -> None:
    figures = Figures(counted)
    for id, located in counted.model.components.items():
        assert not list(static.number_findings(figures, id, located))


@pytest.mark.parametrize(
    "text, value",
    [
        ("d", "5,120"),
        ("row:projection", "491,520"),
        ("row:head:table", "661,913,600"),
        ("total:head", "661,913,600"),
        ("instances:attention_norm", "43"),
        ("engram_num_embeddings[1]", "384,016,682"),
        ("hc_eps", "1e-06"),
        ("swiglu_limit", "10"),
    ],
)
def test_what_can_be_quoted(counted: accounting.Accounts, text: str, value: str) -> None:
    assert quote(counted, PROJECTION, text)[0] == value


@pytest.mark.parametrize("name", ["stream_weights"])
def test_a_policy_can_be_quoted(counted: accounting.Accounts, name: str) -> None:
    policy = counted.model.sources.policies[name]
    assert quote(counted, PROJECTION, f"policy:{name}")[0] == f"{counted.policy(policy):,}"


@pytest.mark.parametrize(
    "text",
    ["row:nothing", "row:head:nothing", "row:nothing:table", "total:nothing", "size:head", "policy:nothing",
     "dim[0]", "engram_num_embeddings[2]", "nothing[0]", "nothing"],
)  # fmt: skip
def test_quotes_of_nothing_are_findings(counted: accounting.Accounts, text: str) -> None:
    with pytest.raises(SpecInvalid) as caught:
        quote(counted, PROJECTION, text)
    assert caught.value.findings[0].code in ("unknown-reference", "unknown-symbol", "expression-invalid")
