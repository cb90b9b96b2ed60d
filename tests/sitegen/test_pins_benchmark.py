"""The labelled benchmark: its committed result, and a few pins of another seed run anew."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import pins as benchmark  # noqa: E402
from pins_edits import EDITS, draw  # noqa: E402
from pins_tools import Sitegen, Tool, Verdict  # noqa: E402

FAULTS = ("false_alarms", "misses", "wrong_anchors", "laundered")
ASKED_FOR = {
    "move", "comment", "wrap", "rename", "semantic", "semantic-same-lines", "delete", "split", "duplicate", "crlf",
    "decorator", "tabs",
}  # fmt: skip


def test_the_committed_result_is_whole_and_clean() -> None:
    result = json.loads(benchmark.RESULT.read_text(encoding="utf-8"))
    assert result["pins"] >= benchmark.LEAST_PINS
    assert set(result["classes"]) >= ASKED_FOR
    ours = result["tools"]["sitegen"]
    assert {part: ours["total"][part] for part in FAULTS} == dict.fromkeys(FAULTS, 0)
    assert all(one["cases"] for one in ours["classes"].values())
    assert {"snippetdrift", "docpin (lines)", "docpin (symbol)", "linecite"} <= {*result["tools"], *result["not_run"]}


@pytest.fixture(scope="module")
def few() -> dict:
    return benchmark.run(seed=11, count=3, folders=["sitegen/pins"], tools=[Sitegen()])


def test_another_seed_gives_no_fault(few: dict) -> None:
    assert few["pins"] == 3
    assert few["tools"]["sitegen"]["failures"] == {part: [] for part in FAULTS}
    assert "misses" in benchmark.table(few)


class Silent(Tool):
    """Never alarms, and believes every pin where it was."""

    name = "silent"

    def record(self, folder, cases):  # noqa: ANN001, ANN201
        return set()

    def check(self, folder, cases):  # noqa: ANN001, ANN201
        return Verdict(set(), {case.name: case.lines for case in cases})


class Nervous(Silent):
    """Alarms at everything."""

    name = "nervous"

    def check(self, folder, cases):  # noqa: ANN001, ANN201
        return Verdict({case.name for case in cases})


def test_the_score_can_be_bad() -> None:
    """A tool that says nothing misses every change and stands wrong after a move; one that always alarms does not."""
    result = benchmark.run(seed=11, count=3, folders=["sitegen/pins"], tools=[Silent(), Nervous()])
    for edit in EDITS:
        silent, nervous = (result["tools"][name]["classes"][edit.name] for name in ("silent", "nervous"))
        assert silent["misses"] == (silent["cases"] if edit.must_alarm else 0)
        assert nervous["false_alarms"] == (0 if edit.must_alarm else nervous["cases"])
        assert nervous["misses"] == 0
    assert result["tools"]["silent"]["classes"]["move"]["wrong_anchors"] == 3


def test_labels_are_true_of_the_edited_files() -> None:
    """Where an edit keeps the code, its label names lines that hold the cited words."""
    cases = draw(ROOT, ["sitegen/pins"], 3, random.Random(5))
    for edit in EDITS:
        if edit.name not in ("move", "crlf", "tabs", "elsewhere", "decorator", "rename"):
            continue
        for case in cases:
            edited = edit.apply(case, random.Random(1))
            assert edited is not None and edited.lines is not None
            first, last = edited.lines
            now = "".join("".join(edited.text.split("\n")[first - 1 : last]).split())
            was = "".join("".join(case.rows[case.lines[0] - 1 : case.lines[1]]).split())
            if edit.name == "decorator":
                now = now.replace("@functools.lru_cache(maxsize=None)", "")
            if edit.name == "rename":
                now = now.replace("_renamed", "")
            assert now == was, (edit.name, case.name)
