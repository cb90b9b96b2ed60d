# A model as it was at a commit of this repository, read from git's objects: nothing is checked out.
"""Load a model's spec at a revision."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

from sitegen.diagnostics import SitegenError


def revision_of(root: Path, name: str) -> str:
    """The full commit id of a revision; raises `SitegenError` when there is none."""
    done = git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if done.returncode:
        raise SitegenError(f"no revision {name!r} of this repository", hint="name a commit, a branch or a tag")
    return done.stdout.decode().strip()


def extract(root: Path, revision: str, model: str, folder: Path) -> None:
    """Write the files of a commit into an empty folder: a spec may name files outside its own.

    Raises `SitegenError` when the model is not there at that commit.
    """
    here = git(root, "cat-file", "-e", f"{revision}:spec/{model}/model.yml")
    if here.returncode or not archive(root, revision, folder):
        raise SitegenError(f"the revision {revision[:12]} has no model {model!r}", hint=f"it has no spec/{model}")


def archive(root: Path, revision: str, folder: Path) -> bool:
    """Write all files of a commit below a folder; False when git refuses."""
    done = git(root, "archive", "--format=tar", revision)
    if done.returncode:
        return False
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tar:
        tar.extractall(folder, filter="data")
    return True


def git(root: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=False, timeout=60)
    except FileNotFoundError:
        raise SitegenError("git is not installed, and revisions are read from it") from None
