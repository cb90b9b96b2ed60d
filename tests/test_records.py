"""Pages made from benchmark records say what the records say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_gpu_page_is_what_the_records_give() -> None:
    done = subprocess.run(
        [sys.executable, "benchmarks/seam_page.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
