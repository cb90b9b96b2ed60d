# One build of the project's own site, one server and one browser for all tests of this folder.
"""Fixtures: the built site, where it is served, and Chromium."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import serving  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly from the repository as a reader would build it."""
    folder = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="session")
def address(built: Path) -> Iterator[str]:
    """Where a plain file server on this machine serves the site."""
    with serving.serve(built) as base:
        yield base


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Headless Chromium; skipped, and counted so, where it or its driver is not installed."""
    missing = ""
    if serving.chromium() is None:
        missing = "no Chromium on this machine (Debian: apt-get install chromium)"
    elif importlib.util.find_spec("playwright") is None:
        missing = "no browser driver (pip install playwright)"
    if missing and os.environ.get("CI"):
        pytest.fail(f"{missing}: CI must not skip what a reader sees")
    if missing:
        pytest.skip(missing)
    with serving.browser() as opened:
        yield opened
