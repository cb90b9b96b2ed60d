"""From report, accounts and pins to what pages show: no state is ever shown better than it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_render_site import model

from sitegen import accounting, loader, resolver
from sitegen.bookmaker import table_counts
from sitegen.pins import Acknowledgement, Pin, PinState, Record
from sitegen.probe.result import record_count, recorded_count
from sitegen.render import gather
from sitegen.report import LevelRun, Outcome, Report

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("state", "level", "shown"),
    [
        ("passed", "static", "verified"),
        ("passed", "checkpoint", "verified"),
        ("passed", "meta", "executed"),
        ("passed", "cpu", "executed"),
        ("passed", "gpu", "executed"),
        ("failed", "cpu", "failed"),
        ("not_run", "gpu", "not-run"),
        ("stale", "cpu", "stale"),
        ("cited", "static", "cited"),
    ],
)
def test_what_an_outcome_is_called_on_a_page(state: str, level: str, shown: str) -> None:
    assert gather.state(Outcome("c", "s", state, level)) == shown  # type: ignore[arg-type]


def test_runs_are_in_order_with_their_figures_and_reasons() -> None:
    report = Report("m")
    report.runs = {
        "gpu": LevelRun("gpu", False, reason="no CUDA device"),
        "static": LevelRun("static", True, date="2026-11-30"),
        "cpu": LevelRun("cpu", True, "x86-64", "torch 2.13.0", "2026-11-30"),
    }
    report.outcomes = [
        Outcome("c", "pin:a", "passed", "static"),
        Outcome("c", "step:a", "passed", "cpu"),
        Outcome("c", "step:b", "failed", "cpu", "1", "2", "sharp"),
        Outcome("c", "kernel", "not_run", "gpu", detail="no CUDA device"),
    ]
    shown = [(r.level, r.summary, r.state, r.reason) for r in gather.runs(report)]
    assert shown == [
        ("static", "1 passed", "verified", ""),
        ("cpu", "1 passed, 1 failed", "failed", ""),
        ("gpu", "1 not run", "not-run", "no CUDA device"),
    ]
    (verdicts,) = gather.verdicts(report.outcomes).values()
    assert [(v.id, v.state, v.detail) for v in verdicts][2:] == [
        ("step:b", "failed", "sharp"),
        ("kernel", "not-run", "no CUDA device"),
    ]


def test_accounts_of_the_model_and_of_each_place(tmp_path: Path) -> None:
    counted = accounting.count(model(tmp_path))
    sides = {("mix", "offsets"): 16, ("mix/weights", "matrix"): 256}
    found = gather.accounts(counted, sides, {("mix/weights", "matrix"): 255})
    assert set(found) == {("norm", ""), ("norm", "layers")} | {
        (id, place) for id in ("mix", "mix/weights") for place in ("", "blocks")
    }
    mix = found["mix", ""]
    assert (mix.per_instance, mix.instances, mix.total, mix.own, mix.note) == (272, 4, 1088, 64, "")
    assert [(r.row, r.calculation, r.count, r.module, r.table) for r in mix.rows] == [
        ("offsets", "4 × 4", 16, 16, None)
    ]
    assert [(p.component, p.calculation, p.count, p.module, p.table) for p in mix.parts] == [
        ("mix/weights", "4 × 64", 256, 256, 255)
    ]
    assert found["norm", ""].per_instance == 0


def test_a_place_whose_instances_differ_has_a_count_of_its_own() -> None:
    counts: dict[tuple[str, str], int | None] = {}
    for place, seen in (("layers", 384), ("more", 384), ("drafts", 128)):
        record_count(counts, "gate", "bias", place, seen)
    assert counts == {("gate", "bias"): 384, ("gate", "bias@drafts"): 128}
    found = [recorded_count(counts, "gate", "bias", place) for place in ("layers", "more", "drafts")]
    assert found == [384, 384, 128]
    assert recorded_count(counts, "gate", "other", "layers") is None


def test_every_account_of_the_flagship_shows_the_table_s_count_of_the_same_instance() -> None:
    """Drafters have fewer experts: their places are not held against the first layer, nor it against them."""
    counted = accounting.count(resolver.resolve(loader.load(ROOT, "deepseek-v4.1-flash")))
    found = gather.accounts(counted, {}, table_counts(counted))
    assert {found["moe/gate/scores", place].rows[0].count for place in ("window", "dspark/blocks")} == {1966080, 655360}
    for key, account in found.items():
        for side in (*account.rows, *account.parts):
            assert side.table == side.count, (key, side)


@pytest.mark.parametrize("kind", ["unchanged", "changed", "gone"])
def test_pins_carry_what_happened_and_why_it_was_accepted(kind: str) -> None:
    pin = Pin("c", "main", "a.py", "f")
    lines = None if kind == "gone" else (2, 3)
    told = Acknowledgement("2026-11-30", "only a rename", "changed")
    record = Record("a.py", "b", "f", 1, 1, (2, 3), (2, 3), ("x",), ("x",), "d", "d", "d", "d", acknowledged=told)
    state = PinState(
        pin, kind, "" if kind == "unchanged" else f"pin-{kind}", lines, ("x",), "it moved", recorded=record
    )
    code = gather.codes([state], lambda path: "a\nb\nc\n")["c", "main"]
    assert code.lines == lines and code.kind == kind and code.text == "a\nb\nc\n"
    assert code.message == ("" if kind == "unchanged" else "it moved")
    assert code.acknowledged == "Read again on 2026-11-30 after it was changed: only a rename"
    assert gather.codes([state], lambda path: "")["c", "main"].lines is None
