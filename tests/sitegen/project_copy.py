"""A copy of this project that a test may break: specs, implementation and the builder's configuration."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MODEL = "deepseek-v4.1-flash"
SPEC = f"spec/{MODEL}"


@dataclass(frozen=True)
class Copy:
    """A scratch project; `edit` changes one text that must occur exactly once (or `times`)."""

    root: Path

    @classmethod
    def make(cls, folder: Path) -> Copy:
        keep = shutil.ignore_patterns("__pycache__", "*.pyc")
        for name in ("spec", "reference_impl", "benchmarks/results"):
            shutil.copytree(ROOT / name, folder / name, ignore=keep)
        shutil.copy(ROOT / "mkdocs.yml", folder / "mkdocs.yml")
        return cls(folder)

    def edit(self, file: str, old: str, new: str, times: int = 1) -> None:
        path = self.root / file
        text = path.read_text("utf-8")
        assert text.count(old) >= 1, f"{old!r} does not occur in {file}"
        path.write_text(text.replace(old, new, times), "utf-8")

    def run(self, *arguments: str) -> tuple[int, Any]:
        """Run the command line in the copy's own implementation; -> exit code, parsed JSON or text."""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(self.root), str(ROOT)))}
        if arguments[0] in ("check", "verify") and "--model" not in arguments:
            arguments = (arguments[0], "--model", MODEL, *arguments[1:])  # JSON of one model is one object
        command = [sys.executable, "-m", "sitegen", "--root", str(self.root), *arguments]
        done = subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert "Traceback" not in done.stderr, done.stderr
        try:
            return done.returncode, json.loads(done.stdout)
        except ValueError:
            return done.returncode, done.stdout + done.stderr
