# The copy of the project that mutants change; the project itself is never written.
"""A scratch copy of a project."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sitegen.diagnostics import SitegenError
from sitegen.loader import Sources
from sitegen.selftest.mutant import Mutant


@dataclass(frozen=True)
class Scratch:
    """What a verification reads of a project, copied below `root`."""

    root: Path

    def text(self, file: str) -> str:
        return (self.root / file).read_bytes().decode("utf-8")

    @contextlib.contextmanager
    def changed(self, mutant: Mutant) -> Iterator[str]:
        """While open, the mutant's file has its wrong form; gives the diff."""
        path = self.root / mutant.file
        before = path.read_bytes()
        text = before.decode("utf-8")
        path.write_bytes(mutant.applied(text).encode("utf-8"))
        try:
            yield mutant.diff(text)
        finally:
            path.write_bytes(before)


@contextlib.contextmanager
def copied(sources: Sources) -> Iterator[Scratch]:
    """A scratch copy of the model's spec, configuration, table and implementation."""
    keep = shutil.ignore_patterns("__pycache__", "*.pyc", "facts")
    with tempfile.TemporaryDirectory(prefix="sitegen-selftest-") as folder:
        root = Path(folder).resolve()
        files = ["mkdocs.yml", sources.model.config, *([sources.model.table.path] if sources.model.table else [])]
        folders = [f"spec/{sources.name}", *sources.model.implementation.sources]
        try:
            for name in folders:
                if (sources.root / name).is_dir():
                    shutil.copytree(sources.root / name, root / name, ignore=keep, dirs_exist_ok=True)
                else:
                    files.append(name)
            for name in files:
                if not (root / name).exists():
                    (root / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(sources.root / name, root / name)
        except OSError as error:
            raise SitegenError(f"the project cannot be copied: {error}") from None
        yield Scratch(root)
