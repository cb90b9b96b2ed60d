# The plain tree: what `sitegen render` writes, for builders that load no plugin.
"""Write the rendered pages to a folder."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import yaml

from sitegen import pipeline
from sitegen.diagnostics import Finding, SitegenError
from sitegen.pins.lock import replace_file
from sitegen.render.settings import Settings
from sitegen.render.tree import tree_config, tree_files

MARK = ".sitegen-tree"


def write_tree(root: Path, out: Path, models: Sequence[str]) -> list[Finding]:
    """Render into `out` (a folder made by this command, or a new one); returns the findings.

    The tree is written beside `out` and takes its place in one rename, so that a run that is killed leaves
    the old tree or the new one.
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
        cache=root / ".sitegen" / "cache",
    )
    built = pipeline.build(root, settings, models)
    docs_dir = root / config.get("docs_dir", "docs")
    docs = {p.relative_to(docs_dir).as_posix(): p.read_bytes() for p in sorted(docs_dir.rglob("*")) if p.is_file()}
    fresh = out.with_name(out.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    for path, data in tree_files(built.site, docs).items():
        target = fresh / "docs" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    made = yaml.safe_dump(tree_config(config, built.site), sort_keys=False, allow_unicode=True)
    replace_file(fresh / "mkdocs.yml", made.encode())
    (fresh / MARK).write_text("made by sitegen render\n", "utf-8")
    old = out.with_name(out.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    if out.exists():
        out.rename(old)
    fresh.rename(out)
    shutil.rmtree(old, ignore_errors=True)
    return list(built.findings)


def address(repository: str | None, path: str) -> str:
    """An address in the project's repository, where the configuration names one."""
    return f"{repository.rstrip('/')}/{path}" if repository else ""


class _Lenient(yaml.SafeLoader):
    """A builder's configuration may hold tags of its own; they are kept as text."""


def _as_text(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> str:
    del loader, node
    return suffix


_Lenient.add_multi_constructor("", _as_text)
