# Small configurations on the CPU: shapes unify, formulas give the captured values and their mutants do
# not, properties hold, kernels agree with their twins.
"""The cpu level."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

from sitegen import facts, schema
from sitegen.diagnostics import Finding, SitegenError, SpecInvalid
from sitegen.loader import Located
from sitegen.probe import fields, formulas, properties, regimes, trials, worked
from sitegen.probe.formulas import Case
from sitegen.probe.harness import FAULTS
from sitegen.probe.package import stored
from sitegen.probe.result import LevelResult
from sitegen.probe.tolerance import dtype_name
from sitegen.probe.values import Records, ValuePath, environment, module_of, small_module, unify
from sitegen.resolver import Model, Occurrence

#: Number types as specs write them.
DTYPES = {
    "float32": "float32", "fp32": "float32", "bfloat16": "bfloat16", "bf16": "bfloat16", "float64": "float64",
    "int64": "int64", "bool": "bool",
}  # fmt: skip


@dataclass
class Session:
    """One small model with its recorded run."""

    configuration: schema.Configuration
    config: dict[str, Any]
    net: Any
    records: Records
    record: Callable[[Iterable[Any]], Records]


@dataclass
class Seen:
    """Everything captured for one component."""

    cases: list[Case] = field(default_factory=list)  # from runs, all configurations and places
    sharp: list[Case] = field(default_factory=list)  # exact, where one makes the call: first place and all regimes


def wanted_operations(model: Model, ids: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for id in ids:
        component = model.component(id)
        if component.values is None:
            continue
        found.add(component.values.operation)
        paths = [path.rpartition(":")[2] for path in component.values.bind.values()]
        for prop in component.properties:
            paths += properties.unused_names(prop)
        for text in paths:
            try:
                found.add(ValuePath.parse(text.rpartition(":")[2], component.values).operation)
            except ValueError:
                continue  # reported where it is read
    return found


def run(model: Model, ids: list[str], harness: ModuleType, progress: Callable[[str], None]) -> LevelResult:
    """Run both small configurations and check the components `ids`."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the models are tiny: more threads only wait for one another
    try:
        return run_small(model, ids, harness, progress)
    finally:
        torch.set_num_threads(threads)


def run_small(model: Model, ids: list[str], harness: ModuleType, progress: Callable[[str], None]) -> LevelResult:
    result = LevelResult("cpu", device="cpu")
    # Compiled kernels are kept in the project, never in the user's home, apart for each state of the code.
    cache = model.sources.root / ".sitegen" / "tilelang" / facts.code_digest(model.sources)
    os.environ.setdefault("TILELANG_CACHE_DIR", str(cache))
    kernels: dict[str, KernelRun] = {}
    sessions = []
    for number, configuration in enumerate(model.sources.model.configurations):
        progress(f"cpu: running {configuration.id}")
        session = start(model, number, configuration, harness, wanted_operations(model, ids), result)
        if session is not None:
            sessions.append(session)
    if not sessions:
        return result
    if set(ids) == set(model.components):
        progress("cpu: tracing the configuration")
        fields.run(model, harness, result)
    for id in ids:
        progress(f"cpu: {id}")
        check_component(model, id, sessions, harness, result, kernels)
    progress("cpu: names in a checkpoint")
    stored.check(model, ids, harness, sessions[0].config, result)
    return result


def start(
    model: Model,
    number: int,
    configuration: schema.Configuration,
    harness: ModuleType,
    operations: set[str],
    result: LevelResult,
) -> Session | None:
    """Build and run one configuration; a refusal of the implementation is a finding."""
    where = model.sources.model_document.locate(("configurations", number, "set"))
    for name in configuration.set:
        if name not in model.config:
            result.fail(Finding("config-invalid", f"the configuration has no field {name!r}", where))
            return None
    config = {**model.config, **configuration.set}
    run_of = {"batch": configuration.batch, "positions": configuration.positions, "seed": configuration.seed}
    try:
        net = harness.build(config, dtype=configuration.dtype, seed=configuration.seed)

        def record(edits: Iterable[Any] = ()) -> Records:
            return Records.of(harness.record(net, **run_of, operations=operations, edits=edits))

        return Session(configuration, config, net, record(), record)
    except FAULTS as error:
        text = str(error).strip().splitlines()[0] if str(error).strip() else ""
        message = f"the small configuration {configuration.id!r} does not run: {type(error).__name__}"
        hint = "the implementation may be broken: its shapes do not fit the configuration"
        sizes = ", ".join(f"{k}={v}" for k, v in configuration.set.items() if type(v) is int)[:160]
        values = {"expected": f"a run of {sizes}", "actual": text, "hint": hint}
        for id in model.order():  # no value of any component could be seen
            if model.component(id).values is not None:
                result.fail(Finding("config-invalid", message, where, component=id, statement="values", **values))
        return None


def applies(binding: schema.Binding, occurrence: Occurrence, session: Session) -> bool:
    """Whether the values are to be seen in this place (or one around it) of this configuration."""
    here = binding.places is None or not {p.id for p in occurrence.place.chain}.isdisjoint(binding.places)
    return here and (binding.configurations is None or session.configuration.id in binding.configurations)


def check_component(
    model: Model,
    id: str,
    sessions: list[Session],
    harness: ModuleType,
    result: LevelResult,
    kernels: dict[str, KernelRun],
) -> None:
    """All checks of one component that a run can decide."""
    located, seen = model.components[id], Seen()
    component = located.component
    worked.check(model, located, harness, result)
    if component.values is None:
        return
    binding = component.values
    if not harness.has_operation(binding.operation):
        where = located.at("values", "operation")
        message = f"the implementation has no operation {binding.operation!r}"
        result.fail(Finding("unknown-reference", message, where, component=id, statement="values"))
        return
    for session in sessions:
        for occurrence in model.occurrences[id]:
            if applies(binding, occurrence, session):
                capture(model, located, occurrence, session, seen, harness, result)
    if not seen.cases:
        return
    check_formulas(model, located, seen, result)
    for number, prop in enumerate(component.properties):
        if prop.kind in trials.KINDS:
            trials.check(model, located, number, prop, sessions[0], harness, result)
            continue
        if prop.kind == "causal":
            verdict = causal(model, located, number, prop, sessions, harness)
        else:
            cases = [*seen.cases, *seen.sharp]
            verdict = properties.check_relation(located, number, prop, model.steps[id], cases)
        for finding in verdict.findings:
            result.fail(finding)
        word = "largest change" if prop.kind == "causal" else "error" if prop.kind == "control" else "largest error"
        detail = f"{word} {verdict.error:.2g} over {verdict.samples} samples"
        seen_in = f" ({verdict.label})" if verdict.label and prop.kind in ("control", "causal") else ""
        result.hold(id, f"property:{prop.id}", detail + seen_in)
    if binding.kernel:
        kernel(located, harness, result, kernels)


def capture(
    model: Model,
    located: Located,
    occurrence: Occurrence,
    session: Session,
    seen: Seen,
    harness: ModuleType,
    result: LevelResult,
) -> None:
    """Values of one place: shapes, number types, a case for the formulas, and the regimes."""
    component, binding = located.component, located.component.values
    assert binding is not None
    found = small_module(occurrence, session.configuration)
    if found is None:
        return
    place_module, layer = found
    module = module_of(place_module, binding.module)
    where = located.at("values")
    try:
        values = environment(binding, session.records, place_module)
    except (LookupError, ValueError) as error:
        text = f"{str(error).strip(chr(34))} ({session.configuration.id}, place {occurrence.place.id})"
        result.fail(Finding("unknown-reference", text, where, component=component.id, statement="values"))
        return
    symbols = model.symbols(session.config, occurrence.place, layer)
    clean = ports(located, occurrence, session, values, symbols, result)
    if clean:
        result.hold(component.id, f"place:{occurrence.place.id}", "shapes seen in a run of this place")
    numbers = {n: v for n, v in values.items() if hasattr(v, "dim")}
    label = f"{session.configuration.id}, {occurrence.place.id}, regime model"
    symbols = {**symbols, "B": session.configuration.batch, "T": session.configuration.positions}
    case = Case(label, numbers, symbols)
    seen.cases.append(case)
    first = not any(c.label.startswith(session.configuration.id) for c in seen.sharp)
    if first and drives(binding, session.configuration, model.sources.model.configurations):
        seen.sharp.append(case)
        if binding.vary:
            operation = driven(harness, session.net, module, binding.operation)
            captured = session.records.calls[module, binding.operation, binding.occurrence]
            try:
                for sample in regimes.samples(binding, captured, operation, session.configuration.seed):
                    seen.sharp.append(formulas.sample_case(sample, symbols, session.configuration.id))
            except (KeyError, RuntimeError, ValueError, TypeError) as error:
                message = f"the operation {binding.operation} cannot be driven: {type(error).__name__}: {error}"
                result.fail(
                    Finding("unknown-reference", message, located.at("values", "vary"), component=component.id,
                            statement="values")
                )  # fmt: skip


def driven(harness: ModuleType, net: Any, module: str, operation: str) -> Callable[..., Any]:
    """The operation as a function of its inputs; a package's is that of a module of the built model."""
    of_module = getattr(harness, "module_operation", None)
    return of_module(net, module, operation) if of_module else harness.operation(operation)


def drives(
    binding: schema.Binding, configuration: schema.Configuration, configurations: Sequence[schema.Configuration]
) -> bool:
    """Whether the regimes start from this configuration: an exact one, or any where no exact one makes the call."""
    made = [c for c in configurations if binding.configurations is None or c.id in binding.configurations]
    return configuration.dtype == "float64" or all(c.dtype != "float64" for c in made)


def ports(
    located: Located,
    occurrence: Occurrence,
    session: Session,
    values: dict[str, Any],
    symbols: dict[str, int | float],
    result: LevelResult,
) -> bool:
    """Shapes and number types of the ports that the binding names."""
    component, free, clean = located.component, {}, True
    integers = {n: v for n, v in symbols.items() if isinstance(v, int)}
    run = {"B": session.configuration.batch, "T": session.configuration.positions}
    for direction, path, list_ in (("in", "inputs", component.inputs), ("out", "outputs", component.outputs)):
        for number, port in enumerate(list_):
            value = values.get(port.name)
            if value is None or not hasattr(value, "shape"):
                result.skipped[component.id, f"{direction}:{port.name}"] = "no value of a run is bound to it"
                continue
            where = located.at(path, number, "axes")
            try:
                finding = unify(port.axes, tuple(value.shape), integers, free, where, run)
            except SpecInvalid as error:
                finding = error.findings[0]
            if finding is not None:
                clean = False
                result.fail(finding.within(component.id, f"{direction}:{port.name}"))
            else:
                detail = f"{list(value.shape)} in {session.configuration.id}"
                result.hold(component.id, f"{direction}:{port.name}", detail)
            if session.configuration.dtype == "model":
                number_type(located, path, number, port, dtype_name(value), result)
    return clean


def number_type(located: Located, path: str, number: int, port: schema.Port, actual: str, result: LevelResult) -> None:
    expected = DTYPES.get(port.dtype, port.dtype)
    if expected == actual:
        result.hold(located.component.id, f"dtype:{port.name}", f"{actual} in the run")
    else:
        result.fail(
            Finding(
                "dtype-mismatch",
                f"the number type of {port.name} is not the one seen in the run",
                located.at(path, number, "dtype"),
                expected=f"{port.dtype} in the spec",
                actual=f"{actual} in the run",
                component=located.component.id,
                statement=f"dtype:{port.name}",
            )
        )


def check_formulas(model: Model, located: Located, seen: Seen, result: LevelResult) -> None:
    component, steps = located.component, model.steps[located.component.id]
    if not steps:
        return
    for finding in formulas.mismatches(located, steps, [*seen.cases, *seen.sharp]):
        result.fail(finding)
    if any(f.component == component.id and f.code == "formula-mismatch" for f in result.findings):
        for step in component.steps:
            if not any(f.component == component.id and f.statement == f"step:{step.id}" for f in result.findings):
                result.skipped[component.id, f"step:{step.id}"] = "another step of the component disagrees"
        return
    cases = seen.sharp or seen.cases
    constants = [n for n, s in model.sources.symbols.items() if s.field is not None]
    caught = dict.fromkeys(range(len(steps)), 0)
    tried = dict.fromkeys(range(len(steps)), 0)
    for number, _, finding in formulas.indistinct(located, steps, cases, constants):
        tried[number] += 1
        if finding is None:
            caught[number] += 1
        else:
            result.fail(finding)
    for number, step in enumerate(component.steps):
        detail = f"{len(seen.cases) + len(seen.sharp)} samples; {caught[number]} of {tried[number]} mutants told apart"
        result.hold(component.id, f"step:{step.id}", detail)


def causal(
    model: Model, located: Located, number: int, prop: schema.Property, sessions: list[Session], harness: ModuleType
) -> properties.Verdict:
    """Check a causal property in the first place of the first exact configuration."""
    binding = located.component.values
    assert binding is not None
    exact = sorted(sessions, key=lambda s: s.configuration.dtype != "float64")
    for session in exact:
        for occurrence in model.occurrences[located.component.id]:
            found = small_module(occurrence, session.configuration)
            if found is not None and applies(binding, occurrence, session):
                module = module_of(found[0], prop.module)
                verdict = properties.check_causal(
                    located, number, prop, module, session.record, session.records, harness.Edit
                )
                return replace(verdict, label=f"{session.configuration.id}, {occurrence.place.id}")
    raise SitegenError(f"no small configuration has a place of {located.component.id!r}")


def kernel(located: Located, harness: ModuleType, result: LevelResult, kernels: dict[str, KernelRun]) -> None:
    """Compare the TileLang twin on the host with its plain definition; an operation is run once."""
    component = located.component
    assert component.values is not None
    operation = component.values.operation
    about = {"component": component.id, "statement": "kernel"}
    where = located.at("values", "kernel")
    if operation not in kernels:
        kernels[operation] = run_kernel(operation, harness)
    done = kernels[operation]
    if done.reason:
        if done.missing:
            result.fail(Finding("unknown-reference", done.reason, where, **about))
        else:
            result.skipped[component.id, "kernel"] = done.reason
        return
    for row in done.rows:
        if not row["passed"]:
            result.fail(
                Finding(
                    "kernel-mismatch",
                    f"the kernel disagrees with its plain twin ({row['case']})",
                    where,
                    expected="within the rounding bound",
                    actual=f"largest difference {row['error']}",
                    hint="the plain operation is the definition",
                    **about,
                )
            )
    worst = max((row["error"] or 0.0 for row in done.rows), default=0.0)
    result.hold(component.id, "kernel", f"target c, {len(done.rows)} cases, largest difference {worst:.2g}")


@dataclass(frozen=True)
class KernelRun:
    """The cases of one kernel, or why there are none (`missing`: the spec names one that does not exist)."""

    rows: tuple[dict[str, Any], ...] = ()
    reason: str = ""
    missing: bool = False


def run_kernel(operation: str, harness: ModuleType) -> KernelRun:
    if not any(shutil.which(name) for name in ("c++", "g++", "clang++")):
        return KernelRun(reason="no C++ compiler is here")
    try:
        return KernelRun(tuple(harness.check_kernel(operation, "c")))
    except KeyError:
        return KernelRun(reason=f"{operation} has no kernel", missing=True)
    except ImportError as error:
        return KernelRun(reason=f"TileLang cannot be imported: {error}".splitlines()[0][:200])
    except (RuntimeError, OSError) as error:
        return KernelRun(reason=f"the host compiler failed: {str(error).splitlines()[0]}"[:200])
