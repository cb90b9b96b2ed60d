# The gate as a mutant meets it: everything that can be shared is made once (the recorded runs, the
# tensors of the released configuration, compiled kernels), and the first finding ends a trial.
"""Try mutants against the static, meta and cpu checks."""

from __future__ import annotations

import dataclasses
import json
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from sitegen import accounting, facts, loader, resolver, static
from sitegen.accounting import Accounts
from sitegen.diagnostics import Finding, SpecInvalid
from sitegen.probe import cpu, meta
from sitegen.probe.harness import harness
from sitegen.probe.result import LevelResult
from sitegen.selftest.forks import Broken, Failed, in_fork
from sitegen.selftest.mutant import Mutant
from sitegen.selftest.reimport import Compiled
from sitegen.selftest.scratch import Scratch

#: Seconds after which a run with changed code is taken to hang.
TIMEOUT = 180.0
#: How many runs with edits are kept; one may take some hundred megabytes.
RUNS = 6


class Found(Exception):
    """Ends a level at its first error."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding


class FirstFinding(LevelResult):
    """A level's result that stops at the first error."""

    def fail(self, finding: Finding) -> None:
        super().fail(finding)
        if finding.severity == "error":
            raise Found(finding)


@dataclass(frozen=True)
class Verdict:
    """What the gate says to a mutant.

    Attributes:
        by: code of the first finding; empty when there is none.
        note: component, statement and message of the finding, or how the run ended.
        fault: an error inside sitegen: neither caught nor passed.
    """

    by: str = ""
    note: str = ""
    fault: bool = False

    @classmethod
    def of(cls, finding: Finding) -> Verdict:
        subject = " ".join(part for part in (finding.component, finding.statement) if part)
        return cls(finding.code, f"{subject}: {finding.message}" if subject else finding.message)


class _Known:
    """A harness that lists the tensors of a configuration once."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.seen: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name)

    def tensors(self, config: dict[str, Any]) -> Any:
        key = json.dumps(config, sort_keys=True)
        if key not in self.seen:
            self.seen[key] = self.module.tensors(config)
        return self.seen[key]


def _quiet(message: str) -> None:
    del message


class Gate:
    """A project's checks, warm: `findings` says whether they pass as things are, `try_` what a mutant meets."""

    def __init__(self, scratch: Scratch, name: str, progress: Callable[[str], None] = _quiet) -> None:
        self.scratch, self.name, self.progress = scratch, name, progress
        self.accounts = self.read()
        self.findings: list[Finding] = []
        self.sessions: list[cpu.Session] = []
        self.kernels: dict[str, cpu.KernelRun] = {}

    def read(self) -> Accounts:
        return accounting.count(resolver.resolve(loader.load(self.scratch.root, self.name)))

    @property
    def sources(self) -> loader.Sources:
        return self.accounts.model.sources

    def warm(self, kernels: Path) -> None:
        """Run everything once as it is; `findings` are then the errors of the unchanged project.

        Raises `CannotRun` when a package is missing. `kernels` is where compiled ones are kept.
        """
        model = self.accounts.model
        self.progress("static")
        result, _ = static.run(self.accounts)
        self.findings = [f for f in result.findings if f.severity == "error"]
        os.environ.setdefault("TILELANG_CACHE_DIR", str(kernels / facts.code_digest(model.sources)))
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # a fork has no use for the threads of its parent
        self.harness = _Known(harness(model.sources))
        self.compiled = Compiled(model.sources)
        level = meta.run(self.accounts, self.harness, self.progress)  # type: ignore[arg-type]
        ran = LevelResult("cpu")
        self.sessions = self.start(self.accounts, self.harness, ran)
        for session in self.sessions:
            remember(session)
        for id in model.order():
            self.progress(id)
            cpu.check_component(model, id, self.sessions, self.harness, ran, self.kernels)  # type: ignore[arg-type]
        self.findings += [f for f in (*level.findings, *ran.findings) if f.severity == "error"]

    def move(self, scratch: Scratch) -> None:
        """Go on in another copy of the same project, as a worker does."""
        self.scratch = scratch
        self.accounts = self.read()
        self.compiled = Compiled(self.sources)

    def start(self, accounts: Accounts, module: Any, result: LevelResult) -> list[cpu.Session]:
        model = accounts.model
        operations = cpu.wanted_operations(model, list(model.components))
        found = []
        for number, configuration in enumerate(model.sources.model.configurations):
            session = cpu.start(model, number, configuration, module, operations, result)
            if session is not None:
                found.append(session)
        return found

    def try_(self, mutant: Mutant) -> tuple[Verdict, str]:
        """The verdict on a mutant and its diff; the scratch copy is as before afterwards."""
        with self.scratch.changed(mutant) as diff:
            if mutant.side == "code":
                return self.code(mutant), diff
            try:
                return self.spec(mutant), diff
            except Found as found:
                return Verdict.of(found.finding), diff
            except RecursionError as error:
                return Verdict(note=f"{type(error).__name__}: {error}", fault=True), diff

    # --- specs and configuration, in process -------------------------------------------------------

    def spec(self, mutant: Mutant) -> Verdict:
        """Cheapest first: the changed components alone, then their values in the runs, then the whole static level."""
        try:
            accounts = self.read()
        except SpecInvalid as error:
            return Verdict.of(error.findings[0])
        model, changed = accounts.model, self.changed(accounts)
        if changed is None:
            first_error(static.run(accounts)[0].findings)
            if mutant.side == "config":
                return self.config(accounts)
        ids = model.order() if changed is None else changed
        for id in changed or ():
            first_error(f.within(id) for f in static.component_findings(accounts, id, model.components[id]))
            for number, row in enumerate(model.component(id).parameters):
                first_error(static.row_findings(accounts, id, number, row))
        result = FirstFinding("cpu")
        for id in ids:
            cpu.check_component(model, id, self.sessions, self.harness, result, self.kernels)  # type: ignore[arg-type]
        if changed is not None:
            first_error(static.run(accounts)[0].findings)
        if changed is None or any(self.differ(accounts, id, "parameters") for id in changed):
            first_error(meta.run(accounts, self.harness, _quiet).findings)  # type: ignore[arg-type]
        return Verdict()

    def config(self, accounts: Accounts) -> Verdict:
        """Another configuration is another model: it is built and run again, in a fork that may be ended."""

        def work() -> list[str]:
            try:
                result = FirstFinding("cpu")
                sessions = self.start(accounts, self.harness, result)
                for id in accounts.model.order():
                    cpu.check_component(accounts.model, id, sessions, self.harness, result, dict(self.kernels))  # type: ignore[arg-type]
                first_error(meta.run(accounts, self.harness, _quiet).findings)  # type: ignore[arg-type]
            except Found as found:
                return list(dataclasses.astuple(Verdict.of(found.finding))[:2])
            return ["", ""]

        return forked(work)

    def changed(self, accounts: Accounts) -> list[str] | None:
        """Components that the mutant states otherwise; None when it concerns all of them."""
        old, new = self.sources, accounts.model.sources
        if old.symbols != new.symbols or old.config != new.config or old.model != new.model:
            return None
        return [id for id in accounts.model.order() if self.differ(accounts, id)]

    def differ(self, accounts: Accounts, id: str, field: str = "") -> bool:
        old, new = self.sources.components.get(id), accounts.model.sources.components[id]
        if old is None:
            return True
        if field:
            return getattr(old.component, field) != getattr(new.component, field)
        return old.component != new.component

    # --- code, in a fork ----------------------------------------------------------------------------

    def code(self, mutant: Mutant) -> Verdict:
        """First what runs, stopping at the first finding; only then whether a pin notices the text."""
        verdict = forked(lambda: self.run_code(mutant))
        if verdict.by or verdict.fault:
            return verdict
        for finding in static.run(self.accounts)[0].findings:
            if finding.severity == "error":
                return Verdict.of(finding)
        return verdict

    def run_code(self, mutant: Mutant) -> list[str]:
        """In the fork: the components that pin the function, then the other ones; -> code and note of the finding."""
        module = self.compiled.fresh(self.sources, mutant.file)
        model, result = self.accounts.model, FirstFinding("cpu")
        name = mutant.symbol.rpartition(".")[2]
        near = [id for id in model.order() if id in mutant.components or operation(model, id) == name]
        far = [id for id in model.order() if id not in near]
        try:
            sessions = self.start(self.accounts, module, result)
            for id in (*near, *far):  # kernels as they were: compiling them again is the slowest part, and comes last
                cpu.check_component(model, id, sessions, module, result, dict(self.kernels))
            kernels: dict[str, cpu.KernelRun] = {}
            for id in (*near, *far):
                values = model.component(id).values
                if values is not None and values.kernel:
                    cpu.kernel(model.components[id], module, result, kernels)
            first_error(meta.run(self.accounts, module, _quiet).findings)
        except Found as found:
            return list(dataclasses.astuple(Verdict.of(found.finding))[:2])
        return ["", ""]


def forked(work: Callable[[], list[str]]) -> Verdict:
    """The verdict of a fork; one that dies or hangs is a configuration that does not run."""
    try:
        by, note = in_fork(work, TIMEOUT)
        return Verdict(by, note)
    except Broken as error:
        return Verdict("config-invalid", str(error))
    except Failed as error:
        return Verdict(note=str(error), fault=True)


def first_error(findings: Iterable[Finding]) -> None:
    for finding in findings:
        if finding.severity == "error":
            raise Found(finding)


def operation(model: resolver.Model, id: str) -> str:
    values = model.component(id).values
    return values.operation if values is not None else ""


def remember(session: cpu.Session) -> None:
    """Runs of the unchanged implementation are made once for each set of edits, as long as memory for a few lasts."""
    record, seen = session.record, OrderedDict()

    def remembered(edits: Iterable[Any] = ()) -> Any:
        key = tuple(edits)
        if key in seen:
            seen.move_to_end(key)
        else:
            if len(seen) >= RUNS:
                seen.popitem(last=False)
            seen[key] = record(list(key))
        return seen[key]

    session.record = remembered
