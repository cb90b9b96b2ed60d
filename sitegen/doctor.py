# What can run on this machine, told without running it.
"""Examine the environment for `sitegen doctor`."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import shutil
from collections.abc import Iterator

#: Package -> what it is for.
PACKAGES = {
    "mkdocs": "builds and serves the site",
    "mkdocs-material": "the look of the site",
    "torch": "levels meta and cpu",
    "tilelang": "kernel statements of the level cpu",
    "transformers": "models that are documented from the package",
    "safetensors": "checkpoints and fixtures",
}


def examine() -> Iterator[str]:
    """One line for each thing that a level needs: present with its version, or missing with what to do."""
    yield f"python {platform.python_version()}"
    for package, purpose in PACKAGES.items():
        try:
            yield f"{package} {importlib.metadata.version(package)}: {purpose}"
        except importlib.metadata.PackageNotFoundError:
            extra = "." if package.startswith("mkdocs") else "'.[verify]'"
            yield f"{package} missing: {purpose}; pip install -e {extra}"
    compiler = next((name for name in ("c++", "g++", "clang++") if shutil.which(name)), None)
    yield f"{compiler}: compiles kernels for the host" if compiler else "C++ compiler missing: kernels are not run"
    yield from gpu()


def gpu() -> Iterator[str]:
    """Whether a CUDA device is here (imports torch)."""
    if importlib.util.find_spec("torch") is None:
        yield "GPU unknown: torch is missing; the level gpu is not run"
        return
    import torch

    if torch.cuda.is_available():
        yield f"GPU {torch.cuda.get_device_name(0)}: level gpu"
    else:
        yield "GPU missing: the level gpu is not run, its facts are shown as they were recorded"
