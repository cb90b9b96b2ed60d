# Statements that are no formula of the code but must hold of its values: identities, bounds, controls
# that must fail, and edits whose effect is seen or not seen.
"""Check a component's properties."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sitegen import formula, schema
from sitegen.diagnostics import Finding, Location, SpecInvalid
from sitegen.loader import Located
from sitegen.probe.formulas import Case, at, run_steps
from sitegen.probe.tolerance import allowance, difference, dtype_name
from sitegen.probe.values import Records, ValuePath, module_of, split_path

_RELATION = re.compile(r"(<=|>=|(?<![<>=!])=(?!=))")


@dataclass(frozen=True)
class Sides:
    """A relation as two formulas over the same free indices."""

    left: formula.Step
    right: formula.Step
    relation: str


def sides(text: str, names: set[str], where: Location) -> Sides:
    """Parse `left = right`, `left <= right` or `left >= right`, perhaps with `for a = 1..n`; raises `SpecInvalid`."""
    relation_text, loop, bounds = text.partition(" for ")
    parts = outer(_RELATION.split(relation_text))
    if len(parts) != 3:
        raise SpecInvalid(
            [Finding("expression-invalid", f"{text!r} is no relation", where, hint="write left = right, <= or >=")]
        )
    left, relation, right = (part.strip() for part in parts)
    suffix = loop + bounds
    probe = formula.parse(f"sidesum = ({left}) + ({right})", where=where)
    free = sorted(formula.names(probe).scalars - names)
    target = f"[{','.join(free)}]" if free else ""
    return Sides(
        formula.parse(f"leftside{target} = ({left}) + 0*({right}){suffix}", where=where),
        formula.parse(f"rightside{target} = ({right}) + 0*({left}){suffix}", where=where),
        relation,
    )


def outer(parts: Sequence[str]) -> list[str]:
    """Texts and relations in turn, joined again where one stands in brackets, as in `sum(i = 1..n: x[i])`."""
    found = [parts[0]]
    for relation, text in zip(parts[1::2], parts[2::2], strict=True):
        left = found[-1]
        if sum(map(left.count, "([")) > sum(map(left.count, ")]")):
            found[-1] = left + relation + text
        else:
            found += [relation, text]
    return found


def evaluated(
    text: str, env: Mapping[str, Any], symbols: Mapping[str, int | float], where: Location
) -> tuple[Any, Any]:
    """Both sides of a relation as tensors; raises `SpecInvalid`."""
    both = sides(text, set(env) | set(symbols), where)
    left = formula.evaluate(both.left, env, symbols)["leftside"]
    return left, formula.evaluate(both.right, env, symbols)["rightside"]


@dataclass(frozen=True)
class Verdict:
    """A property's outcome: worst error over all samples, findings, and the sample of that error."""

    error: float
    samples: int
    findings: tuple[Finding, ...] = ()
    label: str = ""


def stated_for(prop: schema.Property, case: Case) -> bool:
    """Whether a property speaks of a case: of its regime, and of its configuration."""
    regime = prop.regimes is None or any(case.label.endswith(f" {r}") for r in prop.regimes)
    return regime and (prop.configurations is None or any(case.label.startswith(f"{c},") for c in prop.configurations))


def check_relation(
    located: Located, number: int, prop: schema.Property, steps: Sequence[formula.Step], cases: Sequence[Case]
) -> Verdict:
    """Check an identity, bound or control over the cases."""
    where = located.at("properties", number, "holds")
    assert prop.holds is not None
    chosen = [c for c in cases if stated_for(prop, c)]
    about = {"component": located.component.id, "statement": f"property:{prop.id}"}
    if not chosen:
        wanted = ", ".join((*(prop.regimes or ()), *(prop.configurations or ())))
        return Verdict(0, 0, (Finding("unknown-reference", f"no values of {wanted}", where, **about),))
    worst, worst_case, findings = 0.0, chosen[0], []
    shown = allowed_there = None
    for case in chosen:
        try:
            env = {**run_steps(steps, case), **case.values}
            env = {n: v for n, v in env.items() if n not in ("leftside", "rightside")}
            both = sides(prop.holds, set(env) | set(case.symbols), where)
            left = formula.evaluate(both.left, env, case.symbols)["leftside"]
            right = formula.evaluate(both.right, env, case.symbols)["rightside"]
        except SpecInvalid as error:
            return Verdict(0, 0, tuple(f.within(**about) for f in error.findings))
        if both.relation == "<=":
            left, right = (left - right).clamp(min=0), right * 0
        elif both.relation == ">=":
            left, right = (right - left).clamp(min=0), right * 0
        dtype = next((dtype_name(v) for v in case.values.values() if hasattr(v, "dtype") and v.is_floating_point()), "")
        tolerance = prop.tolerance or schema.Tolerance(kind="exact")
        allowed = allowance(tolerance, right, dtype)
        found = difference(left, right, allowed)
        if prop.kind == "control":  # what rounding alone explains is no failure of a control
            rounding = allowance(schema.Tolerance(kind="fp64"), right, dtype)
            found = found if found.error > rounding else difference(right, right, 0.0)
        if shown is None or found.error > worst:
            worst, worst_case, shown, allowed_there = found.error, case, found, allowed
        if prop.kind != "control" and not found.within and not findings:
            findings.append(
                Finding(
                    "property-mismatch",
                    f"the property does not hold ({case.label}): {prop.holds}",
                    where,
                    expected=f"within {allowed:.3g}",
                    actual=f"{found.actual:.6g} against {found.expected:.6g}{at(found)}; {found.shown()}",
                    hint="state the property as the code has it, or mend the code; do not widen the tolerance",
                    **about,
                )
            )
    if prop.kind == "control" and worst < (prop.margin or 0):
        findings.append(
            Finding(
                "control-holds",
                f"the control holds although it must fail: {prop.holds}",
                where,
                expected=f"an error of at least {prop.margin:g}",
                actual=f"{worst:.3g} at most, over {len(chosen)} samples",
                hint="a control that cannot fail proves nothing: drive inputs that tell the forms apart",
                **about,
            )
        )
    loose = prop.tolerance is not None and prop.tolerance.kind == "measured" and not findings and allowed_there
    if loose and prop.kind != "control" and prop.tolerance is not None and prop.tolerance.value > 10 * worst:
        findings.append(
            Finding(
                "tolerance-loose",
                "the tolerance is more than ten times the largest error seen",
                located.at("properties", number, "tolerance", "value"),
                expected=f"at most {10 * worst:.3g} (largest error {worst:.3g}, {worst_case.label})",
                actual=f"{prop.tolerance.value:g}",
                **about,
            )
        )
    return Verdict(worst, len(chosen), tuple(findings), worst_case.label)


def check_causal(
    located: Located,
    number: int,
    prop: schema.Property,
    module: str,
    record: Callable[[Sequence[Any]], Records],
    plain: Records,
    make_edit: Callable[..., Any],
) -> Verdict:
    """Edit one value of a run; `moves` must change, `still` must be equal bit for bit."""
    import torch

    about = {"component": located.component.id, "statement": f"property:{prop.id}"}
    assert prop.edit is not None
    findings: list[Finding] = []

    def fault(code: str, message: str, *path: str | int, **values: str) -> None:
        findings.append(Finding(code, message, located.at("properties", number, *path), **values, **about))

    try:
        edit = ValuePath.parse(prop.edit.value)
        place = module_of(module, prop.edit.module)
        plain.get(place, edit)
    except (ValueError, LookupError) as error:
        fault("unknown-reference", str(error).strip('"'), "edit", "value")
        return Verdict(0, 0, tuple(findings))
    changed = record([make_edit(place, edit.operation, edit.occurrence, edit.field, prop.edit.add, prop.edit.scale)])
    largest = 0.0
    for kind, paths in (("moves", prop.moves), ("still", prop.still)):
        for i, text in enumerate(paths):
            try:
                where, value = split_path(text, module)
                path = ValuePath.parse(value)
                before = plain.get(where, path)
                after = changed.get(where, path)
            except (ValueError, LookupError) as error:
                fault("unknown-reference", str(error).strip('"'), kind, i)
                continue
            gap = float((after.double() - before.double()).abs().max())
            if kind == "moves":
                largest = max(largest, gap)
            if (gap == 0.0) == (kind == "moves") or (kind == "still" and not torch.equal(before, after)):
                fault(
                    "property-mismatch",
                    f"after an edit of {prop.edit.value}, {text} {'stays' if kind == 'moves' else 'changes'}",
                    kind,
                    i,
                    expected="a change" if kind == "moves" else "no change, bit for bit",
                    actual=f"largest change {gap:.3g}",
                )
    return Verdict(largest, len(prop.moves) + len(prop.still), tuple(findings))


def unused_names(prop: schema.Property) -> Iterator[str]:
    """Value paths that a causal property reads."""
    if prop.edit is not None:
        yield prop.edit.value
    for text in (*prop.moves, *prop.still):
        yield text.rpartition(":")[2]
