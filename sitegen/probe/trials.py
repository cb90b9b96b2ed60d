# Statements that need a run of their own: what the implementation refuses, how large a model of another
# configuration is, and how an error depends on settings and weights.
"""Check properties by building and running other models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sitegen import schema
from sitegen.diagnostics import Finding, SpecInvalid
from sitegen.loader import Located
from sitegen.probe import properties
from sitegen.probe.formulas import Case, run_steps
from sitegen.probe.result import LevelResult
from sitegen.probe.tolerance import difference
from sitegen.probe.values import Records, ValuePath, environment
from sitegen.resolver import Model

if TYPE_CHECKING:
    from sitegen.probe.cpu import Session

KINDS = ("error", "size", "sweep")


def check(
    model: Model,
    located: Located,
    number: int,
    prop: schema.Property,
    session: Session,
    harness: Any,
    result: LevelResult,
) -> None:
    """Decide one such property."""
    statement = f"property:{prop.id}"
    if not hasattr(harness, "trial"):
        result.skipped[located.component.id, statement] = "the harness runs no trials"
        return
    about = {"component": located.component.id, "statement": statement}
    match prop.kind:
        case "error":
            found, detail = refusal(located, number, prop, session, harness, about)
        case "size":
            found, detail = size(model, located, number, prop, harness, about)
        case _:
            found, detail = sweep(model, located, number, prop, session, harness, about)
    for finding in found:
        result.fail(finding)
    result.hold(located.component.id, statement, detail)


def settings(session: Session, trial: schema.Trial) -> dict[str, Any]:
    return dict(trial.config) if trial.default else {**session.config, **trial.config}


def refusal(
    located: Located, number: int, prop: schema.Property, session: Session, harness: Any, about: dict[str, str]
) -> tuple[list[Finding], str]:
    """The trial must raise the stated exception."""
    trial = prop.trial
    assert trial is not None and prop.raises is not None
    where = located.at("properties", number, "raises")
    expected = f"{prop.raises}" + (f" that says {prop.says!r}" if prop.says else "")
    try:
        harness.trial(
            settings(session, trial), seed=3, first=trial.initialise, options=trial.options, given=trial.given
        )
    except Exception as error:  # whatever a package raises: that is what is checked
        names = [kind.__name__ for kind in type(error).__mro__]
        text = str(error)
        shown = f"{type(error).__name__}: {(text.strip().splitlines() or [''])[0][:160]}"
        if prop.raises in names and (prop.says or "") in text:
            return [], f"raises {shown}"
        message = "the trial is refused in another way than stated"
        return [Finding("property-mismatch", message, where, expected, shown, **about)], ""
    message = "the trial runs although the spec says that it is refused"
    return [Finding("control-holds", message, where, expected, "a run without an exception", **about)], ""


def size(
    model: Model, located: Located, number: int, prop: schema.Property, harness: Any, about: dict[str, str]
) -> tuple[list[Finding], str]:
    """The model of the trial has the stated number of parameters."""
    trial = prop.trial
    assert trial is not None and prop.parameters is not None
    where = located.at("properties", number, "parameters")
    config = dict(trial.config) if trial.default else {**model.config, **trial.config}
    try:
        seen = harness.size(config)
    except Exception as error:  # a configuration that the package refuses
        text = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:160]}"
        expected = f"a model of {prop.parameters:,} parameters"
        return [Finding("config-invalid", "the implementation refuses the trial", where, expected, text, **about)], ""
    if seen != prop.parameters:
        expected, actual = f"{seen:,} in the implementation", f"{prop.parameters:,} in the spec"
        return [Finding("count-mismatch", "the model has another size", where, expected, actual, **about)], ""
    return [], f"{seen:,} parameters"


def sweep(
    model: Model,
    located: Located,
    number: int,
    prop: schema.Property,
    session: Session,
    harness: Any,
    about: dict[str, str],
) -> tuple[list[Finding], str]:
    """The relation's error at every point, each within the factor of what is stated."""
    found, seen = [], []
    for i, point in enumerate(prop.points):
        where = located.at("properties", number, "points", i, "error")
        try:
            error = point_error(model, located, number, prop, point, session, harness)
        except SpecInvalid as fault:
            return [f.within(**about) for f in fault.findings], ""
        except Exception as fault:  # whatever a package raises for these settings
            text = f"{type(fault).__name__}: {(str(fault).strip().splitlines() or [''])[0][:160]}"
            message = f"the point {point.label!r} does not run"
            found.append(Finding("config-invalid", message, where, f"an error of {point.error:g}", text, **about))
            continue
        seen.append(f"{point.label}: {error:.1e}")
        if not point.error / prop.factor <= error <= point.error * prop.factor:
            message = f"the error is of another size at {point.label!r}"
            expected = f"{point.error:g}, within a factor of {prop.factor:g}"
            found.append(Finding("property-mismatch", message, where, expected, f"{error:.3g} in the run", **about))
    return found, "; ".join(seen)


def point_error(
    model: Model,
    located: Located,
    number: int,
    prop: schema.Property,
    point: schema.Point,
    session: Session,
    harness: Any,
) -> float:
    """Largest difference of the two sides over all places, relative to the largest value of the right one."""
    from sitegen.probe.cpu import small_module

    binding = located.component.values
    assert binding is not None and prop.holds is not None
    config = settings(session, point.trial)
    operations = {ValuePath.parse(text.rpartition(":")[2], binding).operation for text in binding.bind.values()}
    seen = Records.of(harness.trial(
        config, seed=session.configuration.seed, first=point.trial.initialise, options=point.trial.options,
        batch=session.configuration.batch, positions=session.configuration.positions, operations=operations,
    ))  # fmt: skip
    worst = 0.0
    where = located.at("properties", number, "holds")
    for occurrence in model.occurrences[located.component.id]:
        place = small_module(occurrence, session.configuration)
        if place is None:
            continue
        kept = {n: p for n, p in binding.bind.items() if "@" not in p}
        values = environment(binding.model_copy(update={"bind": kept}), seen, place[0])
        symbols = model.symbols(config, occurrence.place, place[1])
        numbers = {n: v for n, v in values.items() if hasattr(v, "dim")}
        case = Case(point.label, numbers, symbols)
        env = {**run_steps(model.steps[located.component.id], case), **numbers}
        sides = properties.evaluated(prop.holds, env, symbols, where)
        scale = float(sides[1].abs().max())
        worst = max(worst, difference(*sides, 0.0).error / scale)
    return worst
