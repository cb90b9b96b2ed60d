# The plain tree: what `sitegen render` writes, for builders that load no plugin.
"""Write the rendered pages to a folder."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from sitegen import pipeline
from sitegen.diagnostics import Finding, Location, SitegenError
from sitegen.pins.lock import exclusive, replace_file, sweep
from sitegen.render.settings import Settings
from sitegen.render.tree import tree_config, tree_files

MARK = ".sitegen-tree"
WHOLE, UNFINISHED = b"made by sitegen render\n", b"sitegen render did not finish\n"


def write_tree(root: Path, out: Path, models: Sequence[str]) -> list[Finding]:
    """Render into `out` (a folder made by this command, or a new one); returns the findings.

    Files are replaced one by one, each in a single step, while no other run writes here; what a killed run leaves is
    marked as unfinished, and the next run says so and finishes it.
    """
    out = out.resolve()
    if out.exists() and not (out / MARK).exists() and any(out.iterdir()):
        raise SitegenError(f"{out} holds files that sitegen did not write", hint="name an empty or a new folder")
    if root.resolve().is_relative_to(out):
        raise SitegenError(f"{out} holds the project", hint="name a folder of its own")
    config = yaml.load((root / "mkdocs.yml").read_text("utf-8"), Loader=_Lenient)
    settings = Settings(
        site_name=config.get("site_name", "Model specifications"),
        directory_urls=config.get("use_directory_urls", True),
        site_url=config.get("site_url") or "",
        edit_url=address(config.get("repo_url"), "edit/main/"),
        issue_url=address(config.get("repo_url"), "issues/new"),
        markdown_twins=False,  # a Markdown file in the tree is a page to the builder
        cache=root / ".sitegen" / "cache",
    )
    built = pipeline.build(root, settings, models)
    docs_dir = root / config.get("docs_dir", "docs")
    docs = {p.relative_to(docs_dir).as_posix(): p.read_bytes() for p in sorted(docs_dir.rglob("*")) if p.is_file()}
    made = yaml.safe_dump(tree_config(config, built.site), sort_keys=False, allow_unicode=True)
    files = {f"docs/{path}": data for path, data in tree_files(built.site, docs).items()}
    left = update(out, {**files, "mkdocs.yml": made.encode()})
    return [*left, *built.findings]


def update(out: Path, files: Mapping[str, bytes]) -> list[Finding]:
    """Make a folder hold these files and no others; a warning when the run before did not finish."""
    with exclusive(out):
        mark, found = out / MARK, []
        if mark.is_file() and mark.read_bytes() == UNFINISHED:
            message = "the tree was left unfinished: some of its pages were older than others"
            found = [Finding("facts-stale", message, Location(out.name), hint="it is whole now", severity="warning")]
        replace_file(mark, UNFINISHED)
        for path in sorted(out.rglob("*"), reverse=True):  # files before their folders
            if path.is_dir() and not path.is_symlink():
                with contextlib.suppress(OSError):
                    path.rmdir()  # only an empty one goes
            elif path != mark and path.relative_to(out).as_posix() not in files:
                path.unlink()
        for name, data in files.items():
            target = out / name
            if target.is_symlink() or not target.is_file() or target.read_bytes() != data:
                replace_file(target, data, sync=False)
        sweep(out, MARK)
        replace_file(mark, WHOLE)
    return found


def address(repository: str | None, path: str) -> str:
    """An address in the project's repository, where the configuration names one."""
    return f"{repository.rstrip('/')}/{path}" if repository else ""


class _Lenient(yaml.SafeLoader):
    """A builder's configuration may hold tags of its own; they are kept as text."""


def _as_text(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> str:
    del loader, node
    return suffix


_Lenient.add_multi_constructor("", _as_text)
