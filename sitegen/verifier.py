# The whole check of one model: static always, then the levels asked for, then every statement gets the
# state that its checks give it.
"""Verify a model: run levels, gather states and findings into a Report."""

from __future__ import annotations

import datetime
import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sitegen import accounting, facts, loader, resolver, schema, static
from sitegen.accounting import Accounts
from sitegen.diagnostics import Finding, SitegenError, SpecInvalid, nearest
from sitegen.pins.lock import replace_file
from sitegen.probe.harness import CannotRun, harness
from sitegen.probe.package import installed_state
from sitegen.probe.result import FieldReads, LevelResult
from sitegen.report import EXECUTED, LEVELS, LevelRun, Outcome, Report
from sitegen.statements import CITATIONS, SENTENCES, Statement, statements

DEFAULT_LEVELS = ("static", "meta", "cpu")
#: Which level speaks for a statement that several decided: an execution before a look at a checkpoint's headers.
PRECEDENCE = ("gpu", "cpu", "meta", "checkpoint", "static")
PACKAGES = ("torch", "tilelang")


@dataclass
class Checked:
    """A verified model with everything that pages need."""

    accounts: Accounts
    report: Report
    pinned: static.Pinned
    counts: dict[tuple[str, str], int]
    fields: dict[str, FieldReads] = field(default_factory=dict)  # of the configuration, as last traced


def _quiet(message: str) -> None:
    del message


def check(root: Path, name: str) -> Report:
    """The static level, with the other levels' states from committed facts."""
    found = inspect(root, name)
    return found.report if isinstance(found, Checked) else found


def inspect(root: Path, name: str) -> Checked | Report:
    """Like `check`, with accounts and pins; a report alone when the spec cannot be resolved."""
    try:
        accounts = accounting.count(resolver.resolve(loader.load(root, name)))
    except SpecInvalid as error:
        return Report(name, findings=error.findings)
    result, pinned = static.run(accounts)
    report = Report(name, findings=list(result.findings), runs={"static": LevelRun("static", True)})
    results = {"static": result}
    sources = accounts.model.sources
    counts: dict[tuple[str, str], int] = {}
    fields: dict[str, FieldReads] = {}
    stale: dict[tuple[str, str], str] = {}
    for level in facts.LEVELS:
        known, findings = facts.read(sources, level)
        report.findings += findings
        if known is None:
            reason = findings[0].message if findings else f"no {level} facts: run sitegen verify --write"
            report.runs[level] = LevelRun(level, False, reason=reason)
            continue
        versions = ", ".join(f"{k} {v}" for k, v in known.versions.items())
        report.runs[level] = LevelRun(level, True, known.device, versions, known.date)
        counts |= known.counts
        fields |= known.fields
        results[level] = from_facts(known, stale)
    report.outcomes = outcomes(accounts, results, report, stale)
    return Checked(accounts, report, pinned, counts, fields)


def from_facts(known: facts.Facts, stale: dict[tuple[str, str], str]) -> LevelResult:
    """Facts as if the level had just run; stale ones are kept apart."""
    result = LevelResult(known.level, device=known.device)
    for key, fact in known.statements.items():
        if fact.stale:
            stale[key] = known.level
        elif fact.state == "passed":
            result.passed[key] = fact.detail
        elif fact.state == "not_run":
            result.skipped[key] = fact.detail
        else:
            result.findings.append(
                Finding(
                    "facts-stale",
                    f"failed in the run of {known.date}: {fact.detail}",
                    component=key[0],
                    statement=key[1],
                )
            )
    return result


def verify(
    root: Path,
    name: str,
    *,
    levels: Sequence[str] = (),
    components: Sequence[str] = (),
    write: bool = False,
    force: bool = False,
    require: Sequence[str] = (),
    checkpoint: Path | None = None,
    progress: Callable[[str], None] = _quiet,
) -> Report:
    """Run the implementation and compare; facts are written only when everything was checked.

    A `checkpoint` folder asks for the level of that name besides the others.
    """
    for level in (*levels, *require):
        if level not in LEVELS:
            raise SitegenError(f"no level {level!r}", hint=nearest(level, LEVELS))
    if checkpoint is not None:
        require = (*require, "checkpoint")
    wanted = tuple(dict.fromkeys(("static", *(levels or DEFAULT_LEVELS), *require)))
    progress("static: reading specs")
    try:
        accounts = accounting.count(resolver.resolve(loader.load(root, name)))
    except SpecInvalid as error:
        return Report(name, findings=error.findings, required=(*levels, *require))
    model = accounts.model
    for id in components:
        if id not in model.components:
            raise SitegenError(f"no component {id!r} in {name}", hint=nearest(id, model.components))
    key = cache_key(accounts, wanted, components, checkpoint)
    cache = root / ".sitegen" / "runs" / f"{name}.json"
    if not force and not write:
        cached = read_cache(cache, key, name)
        if cached is not None:
            cached.required = (*levels, *require)
            return cached
    result, _ = static.run(accounts)
    results = {"static": result}
    report = Report(name, findings=list(result.findings), required=(*levels, *require))
    report.runs["static"] = LevelRun("static", True)
    today = datetime.date.today().isoformat()
    for level in wanted[1:]:
        try:
            run = run_level(accounts, level, list(components) or list(model.components), progress, checkpoint)
        except CannotRun as error:
            report.runs[level] = LevelRun(level, False, reason=str(error))
            continue
        except SpecInvalid as error:  # the installed package is not the pinned one
            report.findings += [f for f in error.findings if f not in report.findings]
            report.runs[level] = LevelRun(level, False, reason=error.findings[0].message)
            continue
        run.versions = {**versions(model.sources.model.implementation.package), **run.versions}
        results[level] = run
        report.findings += run.findings
        shown = ", ".join(f"{k} {v}" for k, v in run.versions.items())
        report.runs[level] = LevelRun(level, True, run.device, shown, today)
    stale: dict[tuple[str, str], str] = {}
    if "gpu" not in wanted:
        accept_gpu_facts(model.sources, results, report, stale)
    report.outcomes = outcomes(accounts, results, report, stale, set(components))
    broken = bool(report.errors)
    if write and not components:
        for level, run in results.items():
            if level in wanted and level in facts.LEVELS and not broken:
                facts.write(model.sources, run, today)
    elif not components:
        report.findings += drift(accounts, results, wanted)
    if not broken:
        write_cache(cache, key, report)
    return report


def accept_gpu_facts(
    sources: loader.Sources, results: dict[str, LevelResult], report: Report, stale: dict[tuple[str, str], str]
) -> None:
    """Facts of a GPU hold where none was asked for, as long as their digests match; older ones are stale."""
    known, findings = facts.read(sources, "gpu")
    report.findings += findings
    if known is None:
        report.runs["gpu"] = LevelRun("gpu", False, reason="no GPU was asked for, and no facts of one are recorded")
        return
    shown = ", ".join(f"{k} {v}" for k, v in known.versions.items())
    report.runs["gpu"] = LevelRun("gpu", True, known.device, f"recorded with {shown}", known.date)
    results["gpu"] = from_facts(known, stale)


def run_level(
    accounts: Accounts, level: str, ids: list[str], progress: Callable[[str], None], checkpoint: Path | None = None
) -> LevelResult:
    """Run one level; raises `CannotRun` with the reason."""
    model = accounts.model
    if level == "checkpoint" and checkpoint is None:
        raise CannotRun("no checkpoint folder was named: --checkpoint DIR")
    try:
        import torch
    except ImportError:
        raise CannotRun("torch is not installed: pip install -e '.[verify]'") from None
    module = harness(model.sources)
    if level == "meta":
        from sitegen.probe import meta

        return meta.run(accounts, module, progress)
    if level == "cpu":
        from sitegen.probe import cpu

        return cpu.run(model, ids, module, progress)
    if level == "gpu":
        if not torch.cuda.is_available():
            raise CannotRun("no CUDA device is here")
        from sitegen.probe import gpu

        return gpu.run(model, ids, module, progress)
    if level == "checkpoint" and checkpoint is not None:
        from sitegen.probe import checkpoint as headers

        return headers.run(accounts, module, checkpoint, progress)
    raise CannotRun(f"the level {level} is not implemented for this model")


def drift(accounts: Accounts, results: dict[str, LevelResult], report_levels: Sequence[str]) -> list[Finding]:
    """Committed facts whose verdicts or digests differ from the run that was just made."""
    found = []
    for level, run in results.items():
        if level not in facts.LEVELS or level not in report_levels:
            continue
        data, finding = facts.raw(accounts.model.sources, level)
        if finding is not None:
            found.append(finding)
        elif data is not None and not run.findings:
            _, findings = facts.read(accounts.model.sources, level)
            found += findings
    return found


def versions(package: schema.Package | None = None) -> dict[str, str]:
    """Versions that a run depends on, without importing anything."""
    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in (*PACKAGES, *([package.name] if package is not None else [])):
        try:
            found[name] = importlib.metadata.version(name).partition("+")[0]
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


# --- states -----------------------------------------------------------------------------------------


def outcomes(
    accounts: Accounts,
    results: dict[str, LevelResult],
    report: Report,
    stale: dict[tuple[str, str], str],
    only: set[str] | None = None,
) -> list[Outcome]:
    """Every statement's state: failed beats stale beats passed (at its highest level) beats not run."""
    listed = [s for s in statements(accounts.model) if not only or s.component in only]
    failures = {
        (f.component, f.statement): f for f in reversed(report.findings) if f.component and f.severity == "error"
    }
    for result in results.values():
        for finding in result.findings:
            if finding.component and finding.code == "facts-stale":
                failures[finding.component, finding.statement] = finding
    broken_values = {f.component for f in report.findings if f.statement == "values"}
    decided: dict[tuple[str, str], Outcome] = {}
    sentences = []
    for statement in listed:
        key = (statement.component, statement.id)
        if statement.kind in SENTENCES and not (statement.kind == "numeric" and key in failures):
            sentences.append(statement)
        else:
            decided[key] = decide(statement, results, report, failures, stale, broken_values)
    for statement in sentences:
        decided[statement.component, statement.id] = carried(statement, decided, failures, accounts, results, report)
    return [decided[s.component, s.id] for s in listed]


def decide(
    statement: Statement,
    results: dict[str, LevelResult],
    report: Report,
    failures: dict[tuple[str, str], Finding],
    stale: dict[tuple[str, str], str],
    broken_values: set[str],
) -> Outcome:
    key = (statement.component, statement.id)
    level = level_of(statement)
    if key in failures:
        f = failures[key]
        failed_at = next((n for n, r in results.items() if any(x is f for x in r.findings)), level)
        return Outcome(*key, "failed", failed_at, f.expected, f.actual, f.message)
    if statement.kind in CITATIONS:
        return Outcome(*key, "cited", "static")
    if key in stale:
        return Outcome(*key, "stale", stale[key], detail="the facts are older than the code or the spec")
    for name in PRECEDENCE:
        if name in results and key in results[name].passed and not (name == "static" and level != "static"):
            return Outcome(*key, "passed", name, detail=results[name].passed[key])
    for name in PRECEDENCE:
        if name in results and key in results[name].skipped:
            return Outcome(*key, "not_run", name, detail=results[name].skipped[key])
    if statement.component in broken_values:
        return Outcome(*key, "not_run", level, detail="the values of the run could not be read")
    run = report.runs.get(level)
    reason = run.reason if run is not None and not run.ran else "no check of this run speaks of it"
    return Outcome(*key, "not_run", level, detail=reason or "not asked for")


def level_of(statement: Statement) -> str:
    """The level that a statement needs at least."""
    if statement.kind in ("row", "account", "place", "module"):
        return "meta"
    if statement.kind in ("kernel-gpu", "measurement"):
        return "gpu"
    if statement.kind in ("in", "out", "dtype", "step", "property", "case", "kernel", "stored"):
        return "cpu"
    return "static"


def carried(
    statement: Statement,
    decided: dict[tuple[str, str], Outcome],
    failures: dict[tuple[str, str], Finding],
    accounts: Accounts,
    results: dict[str, LevelResult],
    report: Report,
) -> Outcome:
    """A sentence stands as its carriers stand; without any it is cited."""
    key = (statement.component, statement.id)
    if key in failures:
        f = failures[key]
        return Outcome(*key, "failed", "static", f.expected, f.actual, f.message)
    found = [decided[c] for c in statement.carriers if c in decided]
    if not found:
        return Outcome(*key, "cited", "static")
    for state in ("failed", "stale", "not_run"):
        for outcome in found:
            if outcome.state == state:
                detail = f"carried by {outcome.statement}, which is {state.replace('_', ' ')}"
                return Outcome(*key, outcome.state, outcome.level, outcome.expected, outcome.actual, detail)
    passed = [o for o in found if o.state == "passed"]
    if not passed:
        return Outcome(*key, "cited", "static")
    best = max(passed, key=lambda o: (o.level in EXECUTED, LEVELS.index(o.level)))
    return Outcome(*key, "passed", best.level, detail="carried by " + ", ".join(o.statement for o in found))


# --- the local cache of runs -------------------------------------------------------------------------


def cache_key(
    accounts: Accounts, levels: Sequence[str], components: Sequence[str], checkpoint: Path | None = None
) -> str:
    """Digest of everything that a run depends on: specs, code, pins, facts, headers, versions, and this tool."""
    sources = accounts.model.sources
    package = sources.model.implementation.package
    state = installed_state(package) if package is not None else ""
    total = hashlib.sha256(json.dumps([levels, list(components), versions(), state]).encode())
    if checkpoint is not None:
        from sitegen.probe.checkpoint import digest

        total.update(f"{checkpoint}\0{digest(checkpoint)}".encode())
    tool = sorted(Path(__file__).parent.rglob("*.py"))
    inputs = [sources.root / f for f in sources.files] + facts.code_files(sources)
    inputs += [sources.folder / "pins.json", *(facts.path_of(sources, level) for level in facts.LEVELS)]
    for path in (*tool, *inputs):
        total.update(path.name.encode() + b"\0")
        if path.is_file():
            total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def write_cache(path: Path, key: str, report: Report) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    body = {
        "key": key,
        "outcomes": [asdict(o) for o in report.outcomes],
        "findings": [f.to_json() for f in report.findings],
        "runs": {n: asdict(r) for n, r in report.runs.items()},
    }
    replace_file(path, json.dumps(body).encode())


def read_cache(path: Path, key: str, name: str) -> Report | None:
    """The report of a run with the same inputs, or None."""
    from sitegen.diagnostics import Location

    try:
        body = json.loads(path.read_text("utf-8"))
        if body["key"] != key:
            return None
        findings = []
        for entry in body["findings"]:
            where = Location(entry.pop("file"), entry.pop("line"), entry.pop("column"))
            findings.append(Finding(where=where, **entry))
        return Report(
            name,
            [Outcome(**o) for o in body["outcomes"]],
            findings,
            {n: LevelRun(**r) for n, r in body["runs"].items()},
            cached=True,
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
