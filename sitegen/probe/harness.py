# The one door to the code under documentation: a module that the model's spec names, with five
# functions in plain values (see reference_impl/harness.py for the contract).
"""Import the harness of a model, or say why it cannot run here."""

from __future__ import annotations

import importlib
import importlib.util
import py_compile
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from sitegen import facts
from sitegen.diagnostics import SitegenError
from sitegen.loader import Sources

FUNCTIONS = ("tensors", "build", "record", "operation", "has_operation", "check_kernel", "Edit")

#: What code that is broken raises: a finding about the implementation, never an error of this program.
FAULTS = (
    ValueError, TypeError, KeyError, RuntimeError, IndexError, AttributeError, AssertionError, NameError,
    ArithmeticError,
)  # fmt: skip


class CannotRun(Exception):
    """A level cannot run here; the text is the reason, and the statement is `not run`."""


def harness(sources: Sources) -> ModuleType:
    """The implementation's harness module, or what stands in for one where the implementation is a package.

    Raises `CannotRun` when a package is missing, `SpecInvalid` when it is not the pinned one, `SitegenError` when
    the module is not a harness.
    """
    name = sources.model.implementation.harness
    if name is None:
        from sitegen.probe.package import open_package

        return open_package(sources)  # type: ignore[return-value]
    root = str(sources.root)
    if root not in sys.path:
        sys.path.insert(0, root)
    where = sources.model_document.locate(("implementation", "harness"))
    keyed_by_content(path for path in facts.code_files(sources) if path.suffix == ".py")
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if missing and not name.startswith(missing):
            raise CannotRun(f"the package {missing!r} is not installed: pip install -e '.[verify]'") from None
        raise SitegenError(f"the harness module {name!r} does not exist", where=where) from None
    except (ImportError, SyntaxError) as error:
        raise SitegenError(f"the harness module {name!r} cannot be imported: {error}", where=where) from None
    lacking = [f for f in FUNCTIONS if not hasattr(module, f)]
    if lacking:
        raise SitegenError(f"the harness module {name!r} lacks {', '.join(lacking)}", where=where)
    return module


def keyed_by_content(paths: Iterable[Path]) -> None:
    """Compile modules so that Python checks their bytecode against the source's content, not its time and size.

    Otherwise an edit of the same length within a second runs the code as it was before.  Folders that cannot be
    written are left alone.
    """
    for path in paths:
        cached = Path(importlib.util.cache_from_source(str(path)))
        try:
            with cached.open("rb") as stream:
                hashed = stream.read(8)[4:8] == b"\x03\0\0\0"
        except OSError:
            hashed = False
        if not hashed:
            try:
                py_compile.compile(str(path), quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
            except (OSError, ValueError, RecursionError):
                continue
