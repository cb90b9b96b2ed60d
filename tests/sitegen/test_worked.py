"""Worked cases: literal calls of the implementation, and wrong versions that must differ."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sitegen import schema
from sitegen.diagnostics import NOWHERE
from sitegen.probe import worked
from sitegen.probe.result import LevelResult


def doubled(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """A harness with two functions: `twice` and `thrice` of a list."""
    if name not in ("twice", "thrice"):
        raise KeyError(name)
    factor = 2 if name == "twice" else 3
    return {"result": [factor * x for x in arguments["x"]], "shape": (len(arguments["x"]),)}


HARNESS = SimpleNamespace(evaluate=doubled)


def run(**case: Any) -> LevelResult:
    given = schema.WorkedCase.model_validate({"id": "c", "text": "t", "call": "twice", "with": {"x": [1, 2]}, **case})
    component = SimpleNamespace(id="part", cases=[given])
    located = SimpleNamespace(component=component, at=lambda *path: NOWHERE)
    model = SimpleNamespace(symbols=lambda: {"n": 4})
    result = LevelResult("cpu")
    worked.check(model, located, HARNESS, result)  # type: ignore[arg-type]
    return result


@pytest.mark.parametrize(
    "case",
    [
        {"gives": {"result": [2, 4]}},
        {"gives": {"result[1]": 4, "result[0:1]": [2], "shape": [2]}},
        {"gives": {"result": [2.0, 4.05]}, "tolerance": 0.1},
        {"gives": {"result[-1]": 4}},
        {"gives": {"result": [2, 4]}, "instead": {"text": "thrice", "call": "thrice"}},
        {"gives": {"result": [2, 4]}, "instead": {"text": "other input", "with": {"x": [1, 3]}}},
        {"gives": {"result": [2, 4]}, "instead": {"text": "sum", "gives": {"result": [3, 3]}}},
    ],
)
def test_a_case_that_holds(case: dict[str, Any]) -> None:
    result = run(**case)
    assert not result.findings
    assert ("part", "case:c") in result.passed


@pytest.mark.parametrize(
    ("case", "code", "expected", "actual"),
    [
        ({"gives": {"result": [2, 5]}}, "property-mismatch", "[2, 5]", "[2, 4]"),
        ({"gives": {"result": [2]}}, "property-mismatch", "[2]", "[2, 4]"),
        ({"gives": {"result": [True, 4]}}, "property-mismatch", "[True, 4]", "[2, 4]"),
        ({"gives": {"result": [2.0, 4.2]}, "tolerance": 0.1}, "property-mismatch", "4.2", "4"),
        ({"gives": {"other": 1}}, "unknown-reference", "", ""),
        ({"gives": {"result[9]": 1}}, "unknown-reference", "", ""),
        ({"call": "half", "gives": {"result": 1}}, "unknown-reference", "", "half"),
        ({"gives": {"result": [2, 4]}, "instead": {"text": "the same", "call": "twice"}}, "control-holds", "", "[2, 4]"),
        (
            {"gives": {"result": [2, 4]}, "instead": {"text": "the same", "gives": {"result": [2, 4]}}},
            "control-holds",
            "another result",
            "[2, 4]",
        ),
    ],
)
def test_a_case_that_fails_is_a_finding_with_both_values(
    case: dict[str, Any], code: str, expected: str, actual: str
) -> None:
    result = run(**case)
    (finding,) = result.findings
    assert finding.code == code
    assert (finding.component, finding.statement) == ("part", "case:c")
    assert expected in finding.expected
    assert actual in finding.actual


def test_symbols_stand_for_their_released_values() -> None:
    assert worked.literal({"symbol": "2*n"}, {"n": 4}, NOWHERE) == 8
    assert worked.literal([1, 2], {}, NOWHERE) == [1, 2]
    assert worked.literal({"values": [[1, "-inf"]]}, {}, NOWHERE) == {"values": [[1, float("-inf")]]}
    assert worked.literal(["-inf"], {}, NOWHERE) == ["-inf"]  # a list of texts stays one


@pytest.mark.parametrize(
    ("stated", "seen", "gap"),
    [(1, 1.5, 0.5), ("-inf", float("-inf"), 0.0), ("inf", 3.0, float("inf")), ([1], [[1]], float("inf")), (None, 0, float("inf"))],
)  # fmt: skip
def test_distance(stated: Any, seen: Any, gap: float) -> None:
    assert worked.distance(stated, seen) == gap
