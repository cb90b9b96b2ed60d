# Algorithms are no formulas: what they do is shown on literal inputs, run each time, beside what a wrong
# version would do.
"""Check a component's worked cases."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from sitegen import expr, schema
from sitegen.diagnostics import Finding, SpecInvalid
from sitegen.loader import Located
from sitegen.probe.result import LevelResult
from sitegen.resolver import Model

_KEY = re.compile(r"(?P<field>[A-Za-z_]\w*)(?P<attribute>\.shape|\.dtype)?(?P<indices>(?:\[-?\d*(?::-?\d*)?\])*)\Z")
_INDEX = re.compile(r"\[(-?\d*)(:(-?\d*))?\]")


def check(model: Model, located: Located, harness: ModuleType, result: LevelResult) -> None:
    """Run every worked case of the component and its wrong version."""
    for number, case in enumerate(located.component.cases):
        about = {"component": located.component.id, "statement": f"case:{case.id}"}
        where = located.at("cases", number, "gives")
        try:
            symbols = {n: v for n, v in model.symbols().items() if isinstance(v, int)}
            arguments = {n: literal(v, symbols, where) for n, v in case.arguments.items()}
            got = harness.evaluate(case.call, arguments)
            wrong = instead(case, arguments, symbols, harness, where)
        except SpecInvalid as error:
            for finding in error.findings:
                result.fail(finding.within(**about))
            continue
        except (KeyError, TypeError, ValueError, RuntimeError, IndexError, AttributeError) as error:
            text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            message = f"the worked case cannot be run: {case.call}: {type(error).__name__}"
            call = located.at("cases", number, "call")
            result.fail(Finding("unknown-reference", message, call, actual=text, **about))
            continue
        if compare(case, got, where, about, result):
            if wrong is None:
                result.hold(*about.values(), "the call gives the stated result")
            else:
                told_apart(case, wrong, located.at("cases", number, "instead"), about, result)


def literal(value: Any, symbols: Mapping[str, int], where: Any) -> Any:
    """An argument with `{symbol: expression}` replaced by its value, and `-inf` in tensors; raises `SpecInvalid`."""
    if isinstance(value, dict) and value.keys() == {"symbol"}:
        return expr.evaluate(str(value["symbol"]), symbols, where)
    if isinstance(value, dict) and "values" in value:
        return {**value, "values": infinite(value["values"])}
    return value


def infinite(value: Any) -> Any:
    """Nested values with the texts `inf` and `-inf` as numbers: YAML 1.2 as specs write it has no word for them."""
    if isinstance(value, list):
        return [infinite(part) for part in value]
    return {"inf": math.inf, "-inf": -math.inf}.get(value, value) if isinstance(value, str) else value


def instead(
    case: schema.WorkedCase, arguments: Mapping[str, Any], symbols: Mapping[str, int], harness: ModuleType, where: Any
) -> Mapping[str, Any] | None:
    """What the wrong version gives, by the keys of the case; None without one."""
    other = case.instead
    if other is None:
        return None
    if other.gives:
        return dict(other.gives)
    if other.call and other.arguments:
        changed = {n: literal(v, symbols, where) for n, v in other.arguments.items()}
    else:
        changed = {**arguments, **{n: literal(v, symbols, where) for n, v in other.arguments.items()}}
    results = harness.evaluate(other.call or case.call, changed)
    return {key: plain(pick(results, key)) for key in case.gives}


def pick(results: Mapping[str, Any], key: str) -> Any:
    """The part of the results that a key names; raises `ValueError`."""
    match = _KEY.match(key.strip())
    if match is None:
        raise ValueError(f"{key!r} names no result: write result, result[0][2:4] or codes.shape")
    if match["field"] not in results:
        raise ValueError(f"there is no result {match['field']!r}; there are {', '.join(results)}")
    value = results[match["field"]]
    if match["attribute"]:
        value = getattr(value, match["attribute"][1:])
    for start, colon, stop in _INDEX.findall(match["indices"]):
        value = value[slice(int(start) if start else None, int(stop) if stop else None)] if colon else value[int(start)]
    return value


def plain(value: Any) -> Any:
    """Tensors, tuples and sizes as lists and numbers, number types as text."""
    if hasattr(value, "tolist"):
        return plain((value.float() if "float8" in str(value.dtype) else value).tolist())
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value if isinstance(value, (int, float, str, bool)) or value is None else str(value).removeprefix("torch.")


def compare(
    case: schema.WorkedCase, got: Mapping[str, Any], where: Any, about: dict[str, str], result: LevelResult
) -> bool:
    """Report the first result that is not the stated one; whether there is none."""
    for key, stated in case.gives.items():
        try:
            seen = plain(pick(got, key))
        except (ValueError, IndexError, TypeError) as error:
            result.fail(Finding("unknown-reference", f"the worked case has no result {key}: {error}", where, **about))
            return False
        gap = distance(stated, seen)
        if not gap <= case.tolerance:
            size = "" if math.isinf(gap) else f" (off by {gap:.3g})"
            result.fail(
                Finding(
                    "property-mismatch",
                    f"the worked case {case.id!r} gives another {key}{size}",
                    where,
                    expected=f"{shown(stated)} in the spec",
                    actual=f"{shown(seen)} from {case.call}",
                    hint="work the case out by hand: either the spec or the code is wrong",
                    **about,
                )
            )
            return False
    return True


def told_apart(
    case: schema.WorkedCase, wrong: Mapping[str, Any], where: Any, about: dict[str, str], result: LevelResult
) -> None:
    """The wrong version must give something else, by more than the tolerance."""
    gaps = {key: distance(case.gives.get(key), value) for key, value in wrong.items()}
    worst = max(gaps, key=lambda key: gaps[key])
    if gaps[worst] <= case.tolerance:
        result.fail(
            Finding(
                "control-holds",
                f"the wrong version of the worked case {case.id!r} gives the same result",
                where,
                expected="another result",
                actual=shown(wrong[worst]),
                hint="choose arguments that tell the versions apart",
                **about,
            )
        )
        return
    size = "" if math.isinf(gaps[worst]) else f" by {gaps[worst]:.3g}"
    result.hold(*about.values(), f"the wrong version gives {worst} = {shown(wrong[worst])}; it differs{size}")


def distance(stated: Any, seen: Any) -> float:
    """Largest difference of numbers in the same places; infinite where form, texts or kinds differ."""
    if isinstance(stated, list) or isinstance(seen, list):
        if not (isinstance(stated, list) and isinstance(seen, list)) or len(stated) != len(seen):
            return math.inf
        return max((distance(a, b) for a, b in zip(stated, seen, strict=True)), default=0.0)
    if isinstance(stated, str) and isinstance(seen, float):
        stated = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}.get(stated, stated)
    if isinstance(stated, bool) or isinstance(seen, bool) or not (_number(stated) and _number(seen)):
        return 0.0 if type(stated) is type(seen) and stated == seen else math.inf
    if stated == seen or (math.isnan(stated) and math.isnan(seen)):
        return 0.0
    gap = abs(stated - seen)
    return math.inf if math.isnan(gap) else float(gap)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float))


def shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 160 else f"{text[:150]}… ({len(text):,} characters)"
