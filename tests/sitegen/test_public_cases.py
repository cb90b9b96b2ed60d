"""The 21 faults that users of such tools met in public, each with its right outcome; the cases are in public_*.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from public_counts import COUNTS
from public_pages import PAGES
from public_runs import RUNS
from public_texts import TEXTS

CASES: dict[str, Callable[[Path], None]] = {**COUNTS, **TEXTS, **PAGES, **RUNS}


@pytest.mark.parametrize("case", sorted(CASES))
def test_public_case(case: str, tmp_path: Path) -> None:
    CASES[case](tmp_path)


def test_all_are_here() -> None:
    assert sorted(CASES) == [f"P{number:02}" for number in range(1, 22)]
