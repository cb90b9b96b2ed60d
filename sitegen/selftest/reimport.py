# Importing the implementation again with one file changed: everything that holds the old function
# (re-exports, tables of operations, defaults, compiled kernels) is made anew as well.
"""Import the implementation afresh, in a fork."""

from __future__ import annotations

import importlib.machinery
import linecache
import sys
from importlib.machinery import FileFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from sitegen import facts
from sitegen.loader import Sources
from sitegen.probe.harness import harness


class Compiled:
    """The code objects of the unchanged implementation, so that a fork compiles one file only."""

    def __init__(self, sources: Sources) -> None:
        self.folder = str(sources.root)
        self.codes: dict[str, CodeType] = {}
        for path in facts.code_files(sources):
            if path.suffix == ".py":
                self.codes[str(path)] = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)

    def fresh(self, sources: Sources, changed: str) -> ModuleType:
        """The harness with `changed` (a file relative to the project) read again. Only for a process of its own.

        Raises as an import does: `SitegenError` for a module that cannot be imported.
        """
        codes = {path: code for path, code in self.codes.items() if path != str(sources.root / changed)}
        sys.dont_write_bytecode = True

        class Loader(SourceFileLoader):
            def get_code(self, fullname: str) -> CodeType | None:
                known = codes.get(self.get_filename(fullname))
                return known if known is not None else super().get_code(fullname)

        make = FileFinder.path_hook((Loader, importlib.machinery.SOURCE_SUFFIXES))
        root = self.folder

        def hook(path: str) -> FileFinder:
            if not Path(path).is_relative_to(root):
                raise ImportError
            return make(path)

        top = sources.model.implementation.harness.partition(".")[0]
        for name in [n for n in sys.modules if n == top or n.startswith(top + ".")]:
            del sys.modules[name]
        sys.path_hooks.insert(0, hook)
        sys.path_importer_cache.clear()
        linecache.clearcache()
        sys.path[:] = [root, *(entry for entry in sys.path if entry != root)]
        return harness(sources)
