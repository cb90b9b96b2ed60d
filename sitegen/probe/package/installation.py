# Which package is installed, compared with the one that the spec pins: by version, and by the bytes of
# the files that hold the model.
"""Find an installed package and hold it against its pin; nothing of it is imported here."""

from __future__ import annotations

import hashlib
import importlib.metadata
from collections.abc import Iterator
from pathlib import Path

from sitegen.diagnostics import Finding, SpecInvalid
from sitegen.loader import Sources
from sitegen.probe.harness import CannotRun
from sitegen.schema import Package


def distribution(package: Package) -> importlib.metadata.Distribution:
    """The installed distribution; raises `CannotRun` when there is none."""
    try:
        return importlib.metadata.distribution(package.name)
    except importlib.metadata.PackageNotFoundError:
        wanted = f"{package.name}=={package.version}"
        raise CannotRun(f"the package {package.name!r} is not installed: pip install {wanted!r}") from None


def require(sources: Sources, package: Package) -> None:
    """Raises `CannotRun` when the package is missing, `SpecInvalid` when it is not the one that is pinned."""
    found = list(mismatches(sources, package))
    if found:
        raise SpecInvalid(found)


def mismatches(sources: Sources, package: Package) -> Iterator[Finding]:
    """What differs between the installed package and the pin."""
    installed = distribution(package)
    here = ("implementation", "package")
    hint = f"pip install '{package.name}=={package.version}', or document the other one: pin it, then verify --write"
    if installed.version != package.version:
        yield Finding(
            "package-mismatch",
            f"another version of {package.name} is installed",
            sources.model_document.locate((*here, "version")),
            expected=f"{package.version}, pinned",
            actual=f"{installed.version}, installed",
            hint=hint,
        )
        return
    for file, pinned in package.digests.items():
        actual = file_digest(installed, file)
        if actual != pinned:
            yield Finding(
                "package-mismatch",
                f"{file} of {package.name} {package.version} is not the file that is pinned",
                sources.model_document.locate((*here, "digests", file)),
                expected=f"sha256 {pinned[:16]}…, pinned",
                actual=f"sha256 {actual[:16]}…, installed" if actual else "no such file in the package",
                hint="install the package anew; if the file is meant to differ, pin its digest",
            )


def file_digest(installed: importlib.metadata.Distribution, file: str) -> str:
    """SHA-256 of a file of the distribution, or an empty text when it has none of that name."""
    try:
        content = Path(str(installed.locate_file(file))).read_bytes()
    except OSError:
        return ""
    return hashlib.sha256(content).hexdigest()


def installed_state(package: Package) -> str:
    """The installed version and digests in one text, for keys of caches; empty when it is missing."""
    try:
        installed = distribution(package)
    except CannotRun:
        return ""
    return " ".join([installed.version, *(file_digest(installed, file) for file in package.digests)])
