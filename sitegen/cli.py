# The command line: arguments in, exit codes out.  Results go to stdout, log and progress to stderr;
# everything heavy is imported inside the verb that needs it.
"""The `sitegen` command."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from sitegen import __version__
from sitegen.diagnostics import CODES, SitegenError, SpecInvalid, nearest, ordered

INTERNAL_ERROR = 70
FORMATS = ("text", "json", "github", "junit", "sarif")


class _Group(click.Group):
    """Turns errors that a user can cause into exit code 2, and bugs into 70 with a short text."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.ClickException, click.Abort, SystemExit):
            raise
        except SitegenError as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(2)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)
        except Exception as error:
            if ctx.params.get("debug"):
                traceback.print_exc()
            click.echo(
                f"internal error: {type(error).__name__}: {error}\n"
                "  hint: this is a bug of sitegen; run again as `sitegen --debug …` and report the traceback",
                err=True,
            )
            ctx.exit(INTERNAL_ERROR)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sitegen")
@click.option("--debug", is_flag=True, help="Show the traceback of an internal error.")
@click.option("--root", type=click.Path(path_type=Path, file_okay=False), help="The project's folder.")
@click.pass_context
def main(ctx: click.Context, debug: bool, root: Path | None) -> None:
    """Model-specification documentation whose every statement is executed."""
    del debug
    ctx.obj = root


def _root(ctx: click.Context) -> Path:
    from sitegen.loader import find_root

    return find_root(ctx.obj)


def _models(ctx: click.Context, names: tuple[str, ...]) -> list[str]:
    from sitegen.loader import choose

    return choose(_root(ctx), names)


_model = click.option("--model", "models", multiple=True, metavar="NAME", help="A model (default: all).")
_format = click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
_two = click.option("--format", "form", type=click.Choice(("text", "json")), default="text", show_default=True)


def _progress() -> Callable[[str], None]:
    """One line that overwrites itself on a terminal; nothing elsewhere."""
    shown = sys.stderr.isatty()

    def show(message: str) -> None:
        if shown:
            click.echo(f"\r\x1b[K{message[:100]}", nl=False, err=True)

    return show


def _finish(ctx: click.Context, reports: list[Any], form: str) -> None:
    from sitegen.outputs import write_reports

    if sys.stderr.isatty():
        click.echo("\r\x1b[K", nl=False, err=True)
    click.echo(write_reports(reports, form), nl=False)
    codes = [report.exit_code for report in reports]
    ctx.exit(1 if 1 in codes else max(codes, default=0))


@main.command()
@_model
@_format
@click.pass_context
def check(ctx: click.Context, models: tuple[str, ...], form: str) -> None:
    """The static level: specs, references, formulas, pins, the published table. Needs no torch."""
    from sitegen import verifier

    root = _root(ctx)
    _finish(ctx, [verifier.check(root, name) for name in _models(ctx, models)], form)


@main.command()
@_model
@_format
@click.option("--level", "levels", multiple=True, metavar="L", help="Levels to run (default: static, meta, cpu).")
@click.option("--component", "components", multiple=True, metavar="ID", help="Check these components only.")
@click.option("--write", is_flag=True, help="Write facts when everything holds.")
@click.option("--force", is_flag=True, help="Run even if nothing changed since the last run here.")
@click.option("--require", default="", metavar="L,…", help="Levels that must run: exit 3 if one cannot.")
@click.option(
    "--checkpoint", type=click.Path(path_type=Path), metavar="DIR", help="Compare the headers of this folder's shards."
)
@click.pass_context
def verify(
    ctx: click.Context,
    models: tuple[str, ...],
    form: str,
    levels: tuple[str, ...],
    components: tuple[str, ...],
    write: bool,
    force: bool,
    require: str,
    checkpoint: Path | None,
) -> None:
    """Run the implementation and compare it with every statement."""
    from sitegen import verifier

    root = _root(ctx)
    if checkpoint is not None and len(_models(ctx, models)) > 1:
        raise SitegenError("a checkpoint is of one model", hint="name it with --model")
    asked = tuple(part.strip() for part in require.split(",") if part.strip())
    reports = [
        verifier.verify(
            root,
            name,
            levels=levels,
            components=components,
            write=write,
            force=force,
            require=asked,
            checkpoint=checkpoint,
            progress=_progress(),
        )
        for name in _with_components(root, _models(ctx, models), components)
    ]
    _finish(ctx, reports, form)


def _with_components(root: Path, names: list[str], components: tuple[str, ...]) -> list[str]:
    """Of several models those that have the components that are asked for; all, where none has them."""
    from sitegen import loader

    if not components or len(names) == 1:
        return names
    kept = []
    for name in names:
        try:
            if set(components) <= loader.load(root, name).components.keys():
                kept.append(name)
        except SpecInvalid:  # its findings are those of the verification
            kept.append(name)
    return kept or names


@main.command()
@_model
@_two
@click.option("--policy", "policies", multiple=True, metavar="P", help="Only these policies.")
@click.pass_context
def count(ctx: click.Context, models: tuple[str, ...], form: str, policies: tuple[str, ...]) -> None:
    """Parameters by policy and component."""
    from sitegen.outputs.counts import count_model, counts_text

    root, results = _root(ctx), []
    for name in _models(ctx, models):
        try:
            results.append(count_model(root, name, policies))
        except SpecInvalid as error:
            for finding in ordered(error.findings):
                click.echo(finding.text(), err=True)
            ctx.exit(1)
    if form == "json":
        click.echo(json.dumps(results[0] if len(results) == 1 else results, indent=2))
    else:
        click.echo("\n\n".join(counts_text(result) for result in results))


@main.command()
@_model
@click.option("--write", is_flag=True, help="Repair pins that only moved or were reformatted.")
@click.option("--ack", metavar="COMPONENT", default="", help="Acknowledge changed pins of a component.")
@click.option("--reason", default="", help="What was read again, and why it still holds; shown on the page.")
@click.pass_context
def repin(ctx: click.Context, models: tuple[str, ...], write: bool, ack: str, reason: str) -> None:
    """Compare pins with the code; repair what only moved, show the rest."""
    import datetime

    from sitegen import loader, pins, resolver, static

    root, failed = _root(ctx), False
    for name in _models(ctx, models):
        try:
            model = resolver.resolve(loader.load(root, name))
        except SpecInvalid as error:
            for finding in ordered(error.findings):
                click.echo(finding.text())
            failed = True
            continue
        if ack and ack not in model.components:
            if len(_models(ctx, models)) > 1:
                continue
            raise SitegenError(f"no component {ack!r} in {name}", hint=nearest(ack, model.components))
        if ack and not model.component(ack).code and len(_models(ctx, models)) > 1:
            continue  # another model has pins under this id
        try:
            result = pins.repin_file(
                model.sources.folder / pins.FILE_NAME,
                static.model_pins(model),
                pins.FolderReader(root),
                root=root,
                write=write,
                ack=ack,
                reason=reason,
                today=datetime.date.today().isoformat(),
            )
        except ValueError as error:
            raise SitegenError(str(error)) from None
        for line in result.lines():
            click.echo(line)
        for finding in ordered(result.findings()):
            click.echo(finding.text())
        failed = failed or bool(result.findings())
    ctx.exit(1 if failed else 0)


@main.command()
@_model
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="The folder to write.")
@click.pass_context
def render(ctx: click.Context, models: tuple[str, ...], out: Path) -> None:
    """Write the pages as a plain Markdown tree with a builder's configuration."""
    from sitegen.outputs.tree import write_tree

    root = _root(ctx)
    findings = write_tree(root, out, _models(ctx, models))
    for finding in findings:
        click.echo(finding.text(), err=True)
    ctx.exit(1 if any(f.severity == "error" for f in findings) else 0)


@main.command()
@click.argument("names", nargs=-1, required=True, metavar="A B")
@_model
@_two
@click.pass_context
def diff(ctx: click.Context, names: tuple[str, ...], models: tuple[str, ...], form: str) -> None:
    """Compare two models, or with --model one model at two revisions (REV1 REV2, or REV1..REV2).

    Exit code 0 when they state the same, 1 when they differ, 2 when one cannot be read.
    """
    import tempfile

    from sitegen import comparison, revisions
    from sitegen.outputs import differences

    root = _root(ctx)
    if len(names) == 1 and ".." in names[0]:
        names = tuple(names[0].split("..", 1))
    if len(names) != 2 or not all(names):
        hint = "sitegen diff MODEL MODEL, or sitegen diff --model MODEL REV1 REV2"
        raise SitegenError("diff compares two", hint=hint)
    try:
        if not models:
            first, second = _models(ctx, names)
            found = comparison.compare(comparison.load(root, first), comparison.load(root, second))
        elif len(models) > 1:
            raise SitegenError("diff compares one model at two revisions", hint="give --model once")
        else:
            read = []
            with tempfile.TemporaryDirectory() as folder:
                for number, name in enumerate(names):
                    place = Path(folder) / str(number)
                    place.mkdir()
                    revisions.extract(root, revisions.revision_of(root, name), models[0], place)
                    read.append(comparison.load(place, models[0]))
                found = comparison.compare(*read, names)
    except SpecInvalid as error:
        for finding in ordered(error.findings):
            click.echo(finding.text(), err=True)
        ctx.exit(2)
    if form == "json":
        click.echo(json.dumps(differences.to_json(found), indent=2))
    else:
        click.echo(differences.text(found), nl=False)
    ctx.exit(1 if found.differs else 0)


@main.command()
@_model
@_two
@click.option("--budget", type=click.FloatRange(min=0), metavar="SECONDS", help="Try an even sample for so long.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the sample.")
@click.option("--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes; a few GB each.")
@click.option("--component", "components", multiple=True, metavar="ID", help="Mutants that concern these components.")
@click.option("--write", is_flag=True, help="Record the score of a full run beside the spec.")
@click.pass_context
def selftest(
    ctx: click.Context,
    models: tuple[str, ...],
    form: str,
    budget: float | None,
    seed: int,
    jobs: int,
    components: tuple[str, ...],
    write: bool,
) -> None:
    """Mutate specs and code in a scratch copy; say how many mutants the checks catch."""
    import datetime

    from sitegen import loader
    from sitegen.probe.harness import CannotRun
    from sitegen.selftest.record import write_record
    from sitegen.selftest.report import write_scores
    from sitegen.selftest.run import selftest as run

    if write and (budget is not None or components):
        raise click.UsageError("--write records a full run: leave out --budget and --component")
    root, scores = _root(ctx), []
    for name in _models(ctx, models):
        try:
            with _bar() as bar:
                score = run(
                    root,
                    name,
                    budget=budget,
                    seed=seed,
                    jobs=jobs,
                    components=components,
                    bar=bar,
                    progress=_progress(),
                )
        except CannotRun as error:
            click.echo(f"error: the self-test of {name} cannot run here: {error}", err=True)
            ctx.exit(3)
        scores.append(score)
        if write and score.trials:
            write_record(loader.load(root, name), score.to_json(), datetime.date.today().isoformat())
    click.echo(write_scores(scores, form), nl=False)
    codes = [score.exit_code for score in scores]
    ctx.exit(1 if 1 in codes else max(codes, default=0))


@contextlib.contextmanager
def _bar() -> Iterator[Callable[[Any, int], Any] | None]:
    """Wraps a sequence into a progress bar on stderr where that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    with contextlib.ExitStack() as stack:

        def wrap(items: Any, length: int) -> Any:
            click.echo("\r\x1b[K", nl=False, err=True)
            bar = click.progressbar(items, length=length, label="mutants", show_pos=True, file=sys.stderr)
            return stack.enter_context(bar)

        yield wrap


@main.command()
@click.argument("code", required=False)
@click.pass_context
def explain(ctx: click.Context, code: str | None) -> None:
    """Say what a finding code means and what to do."""
    from sitegen.explain import explanation

    if code is None:
        for name, text in CODES.items():
            click.echo(f"{name:26} {text}")
        return
    if code not in CODES:
        click.echo(f"no finding code {code!r}: {nearest(code, CODES)}", err=True)
        ctx.exit(2)
    click.echo(explanation(code))


@main.command()
@click.pass_context
def doctor(ctx: click.Context) -> None:
    """What can run here, and what is missing."""
    from sitegen.doctor import examine

    del ctx
    for line in examine():
        click.echo(line)


@main.command()
@click.argument(
    "noun",
    default="component",
    type=click.Choice(
        ["model", "symbols", "config", "sources", "evidence", "policies", "claims", "gotchas", "component", "map"]
        + ["family"]
    ),
)
def schema(noun: str) -> None:
    """Print the JSON Schema of a spec file, for editors."""
    from sitegen import claimspec
    from sitegen import schema as nouns

    kinds = {
        "model": nouns.ModelFile,
        "symbols": nouns.SymbolsFile,
        "sources": nouns.SourcesFile,
        "evidence": nouns.EvidenceFile,
        "policies": nouns.PoliciesFile,
        "config": nouns.ConfigFile,
        "claims": claimspec.ClaimsFile,
        "gotchas": nouns.GotchasFile,
        "component": nouns.Component,
        "map": nouns.MapFile,
        "family": nouns.FamilyFile,
    }
    click.echo(json.dumps(kinds[noun].model_json_schema(), indent=2))
