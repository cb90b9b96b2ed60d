"""Figures from records: a length is found by name or is a finding, what was not run says why, and words say it all."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from project_copy import MODEL, ROOT, SPEC, Copy
from test_render_site import FILES, book

from sitegen import figures, loader, pipeline, resolver
from sitegen.diagnostics import SitegenError, SpecInvalid
from sitegen.figures import Measured, MeasuredPanel
from sitegen.render.pictures.bars import (
    WIDTH,
    drawn_lengths,
    figure_view,
    lengths,
    number_place,
    panel_svg,
    panel_words,
)
from sitegen.render.prose import PageProse
from sitegen.render.settings import Settings
from sitegen.render.site import render

RECORD: dict[str, Any] = {
    "device": "Device X",
    "date": "2026-12-01",
    "bytes": {"8": {"read": 100, "written": 300.5}},
    "rows": [
        {"name": "copy", "T": 8, "us": 10.0, "cold": True},
        {"name": "copy", "T": 8, "us": 9.0, "cold": False},
        {"name": "ours", "T": 8, "us": 14.0, "cold": True},
        {"name": "slow", "T": 8, "us": 900.0, "cold": True},
        {"name": "other", "T": 8, "skipped": "no time was left"},
        {"name": "broken", "T": 8, "us": None, "cold": True},
        {"name": "twice", "T": 8, "us": 1.0, "cold": True},
        {"name": "twice", "T": 8, "us": 2.0, "cold": True},
    ],
}
FIGURE = """
figures:
- id: speed
  title: Speed
  text: "Streams: {{n}}."
  record: {record}
  each: {{T: [8]}}
  panels:
  - title: Bytes
    unit: kB
    scale: 0.001
    bars:
    - {{title: "least, (n)d values", count: n*d*T, role: bound}}
    - {{title: counted, at: ["bytes/{{T}}/read", "bytes/{{T}}/written"], role: subject}}
  - title: Time
    unit: µs
    rows: {{cold: true}}
    value: us
    bars:
    - {{title: copy, row: {{name: copy}}, role: bound}}
    - {{title: "ours <b>", row: {{name: ours}}, role: subject}}
    - {{title: slow, row: {{name: slow}}}}
    - {{title: other, row: {{name: other}}}}
"""
PATH = "spec/toy/record.json"
MIX = "spec/toy/components/mix.yml"


def changed(old: str = "", new: str = "", record: Any = RECORD) -> dict[str, str]:
    text = FIGURE.format(record=PATH)
    assert old in text
    return {
        MIX: FILES[MIX] + text.replace(old, new, 1).lstrip("\n") if old else FILES[MIX] + text,
        PATH: json.dumps(record),
    }


def model(root: Path, files: dict[str, str]) -> resolver.Model:
    for name, text in {**FILES, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return resolver.resolve(loader.load(root, "toy"))


def test_lengths_come_from_the_record_and_from_expressions(tmp_path: Path) -> None:
    found = figures.measure(model(tmp_path, changed()), "mix", 0)
    assert (found.record, found.device, found.date) == (PATH, "Device X", "2026-12-01")
    told = {(panel.title, bar.title): (bar.value, bar.missing) for panel in found.panels for bar in panel.bars}
    assert told == {
        ("Bytes", "least, (n)d values"): (4 * 64 * 8 * 0.001, ""),
        ("Bytes", "counted"): (pytest.approx(0.4005), ""),
        ("Time", "copy"): (10.0, ""),
        ("Time", "ours <b>"): (14.0, ""),
        ("Time", "slow"): (900.0, ""),
        ("Time", "other"): (None, "no time was left"),
    }
    assert {panel.where for panel in found.panels} == {"T = 8"}
    assert not list(figures.figure_findings(model(tmp_path, changed()), "mix", 0))


@pytest.mark.parametrize(
    ("old", "new", "message", "hint"),
    [
        ("name: ours", "name: hours", f"no rows of {PATH} have T=8, cold=True, name=hours", "did you mean 'ours'?"),
        ("name: ours", "name: twice", f"2 rows of {PATH} have T=8, cold=True, name=twice", "did you mean 'twice'?"),
        ("T: [8]", "T: [9]", f"no rows of {PATH} have T=9, cold=True, name=copy", "did you mean 'copy'?"),
        ("cold: true", "cold: 1", f"no rows of {PATH} have T=8, cold=1, name=copy", "did you mean 'copy'?"),
        ("name: ours", "name: broken", f"the row T=8, cold=True, name=broken of {PATH} has no length 'us'", "did you"),
        ("value: us", "value: ms", f"the row T=8, cold=True, name=ours of {PATH} has no length 'ms'", "did you mean"),
        ("{T}}/read", "{T}}/reads".replace("}}", "}"), f"{PATH} holds no 'bytes/8/reads'", "did you mean 'read'?"),
        ("bytes/{T}/read", "device", f"'device' in {PATH} is no length", ""),
        ("n*d*T", "n*e*T", "unknown symbol 'e' in 'n*e*T'", ""),
    ],
)
def test_a_missing_length_is_a_finding(tmp_path: Path, old: str, new: str, message: str, hint: str) -> None:
    old = old.replace("{T}}", "{T}")
    found = list(figures.figure_findings(model(tmp_path, changed(old, new)), "mix", 0))
    messages = {f.message: f for f in found}
    assert message in messages, messages
    assert messages[message].hint.startswith(hint)
    assert messages[message].where.file == MIX and messages[message].where.line
    assert messages[message].statement == "figure:speed"


@pytest.mark.parametrize(
    ("record", "message"),
    [("../record.json", "the path leaves the project"), ("spec/toy/none.json", "spec/toy/none.json cannot be read")],
)
def test_a_record_that_cannot_be_read_is_a_finding(tmp_path: Path, record: str, message: str) -> None:
    with pytest.raises(SpecInvalid, match=message):
        model(tmp_path, changed(f"record: {PATH}", f"record: {record}"))


@pytest.mark.parametrize("bar", ["{title: x}", "{title: x, count: 1, at: [bytes]}"])
def test_a_bar_has_one_length(tmp_path: Path, bar: str) -> None:
    with pytest.raises(SpecInvalid, match="give one of count, row, at"):
        model(tmp_path, changed("{title: slow, row: {name: slow}}", bar))


@pytest.mark.parametrize(
    ("values", "drawn"),
    [
        ([1.0, 2.0, 4.0], [(25, False), (50, False), (100, False)]),
        ([1.0, 2.0, 9.0], [(40, False), (80, False), (100, True)]),
        ([5.0], [(100, False)]),
        ([None, 3.0, 0.0], [(0, False), (100, False), (0, False)]),
        ([], []),
    ],
)
def test_bars_share_a_scale_and_a_far_longer_one_is_cut(
    values: list[float | None], drawn: list[tuple[float, bool]]
) -> None:
    assert lengths(values, 100.0) == drawn


def test_the_picture_draws_and_says_every_bar(tmp_path: Path) -> None:
    measured = figures.measure(model(tmp_path, changed()), "mix", 0)
    view = figure_view(measured, PageProse(lambda expr: ("4", "n"), {}))
    time = view.panels[1]
    svg = panel_svg(time)
    assert "ours &lt;b&gt;" in svg and "<b>" not in svg
    assert svg.count('class="ms-length') == 3 and svg.count("ms-cut") == 1 and svg.count("ms-limit") == 3
    label = unescape(re.search(r'aria-label="([^"]*)"', svg).group(1))  # type: ignore[union-attr]
    assert (
        label
        == panel_words(time)
        == (
            "Time, T = 8. copy: 10.0 µs (the bound); ours <b>: 14.0 µs, × 1.40; slow: 900 µs, × 90.00; "
            "other: not run: no time was left."
        )
    )
    assert "A bar with a break is cut short." in view.notes and "(Device X, 2026-12-01)" in view.notes


def test_figures_stand_on_the_page_and_in_hand_written_ones(tmp_path: Path) -> None:
    site = render([book(tmp_path, **changed())], settings=Settings())
    for path in ("toy/components/mix/index.md", "toy/layers/blocks/mix/index.md"):
        html = next(p for p in site.pages if p.path == path).html()
        assert html.count('id="figure-speed"') == 1 and "Streams: " in html
    data = json.loads(site.files["toy/components/mix/page.json"])["figures"][0]
    assert data["panels"][1]["bars"][1] == {"title": "ours <b>", "role": "subject", "value": 14.0, "missing": ""}
    shown = site.insert("x.md", "<!-- sitegen:figure mix#speed -->\n")
    assert shown.count("<svg") == 2 and "sitegen:" not in shown
    with pytest.raises(SitegenError, match="no figure 'mix#sped'"):
        site.insert("x.md", "<!-- sitegen:figure mix#sped -->\n")


def test_a_figure_of_a_model_that_cannot_be_read_stops_no_build(tmp_path: Path) -> None:
    """Whoever mends a broken spec while the site is served sees its findings, not a traceback."""
    copy = Copy.make(tmp_path)
    copy.edit(f"{SPEC}/model.yml", "schema: 1", "schema: 2")
    built = pipeline.build(copy.root, Settings())
    assert built.broken == (MODEL,) and built.findings
    shown = built.site.insert("x.md", "<!-- sitegen:figure stream_weights_for_attention#seam -->\n")
    assert f"the pages of {MODEL} are not on this site" in shown


def test_a_figure_without_its_record_is_left_out_of_the_page(tmp_path: Path) -> None:
    site = render([book(tmp_path, **changed("name: ours", "name: hours"))])
    html = next(p for p in site.pages if p.path == "toy/components/mix/index.md").html()
    assert "figure-speed" not in html
    assert "incomplete" in site.insert("x.md", "<!-- sitegen:figure mix#speed -->\n")


# --- the model's figures ------------------------------------------------------------------------------


def test_the_seam_is_drawn_from_its_record_and_every_number_fits() -> None:
    flagship = resolver.resolve(loader.load(ROOT, MODEL))
    record = json.loads((ROOT / "benchmarks/results/seam-h200.json").read_text("utf-8"))
    rows = {(row["name"], row["T"]): row for row in record["rows"] if row.get("cold")}
    for id in ("stream_weights_for_attention", "stream_weights_for_feed_forward"):
        found = figures.measure(flagship, id, 0)
        assert [(p.title, p.where) for p in found.panels] == [
            (title, f"T = {T}") for T in ("4,096", "32,768") for title in ("Bytes moved", "Time")
        ]
        for panel in found.panels:
            T = int(panel.where.removeprefix("T = ").replace(",", ""))
            bars = {bar.title: bar for bar in panel.bars}
            if panel.title == "Time":
                assert bars["our kernel in a single pass"].value == rows["ours", T]["us"]
                assert bars["copy of the bytes of a single pass"].value == rows["copy", T]["us"]
            else:
                values = [(bar.value or 0) * 1e6 / (2 * T * 5120) for bar in panel.bars[:3]]
                assert values == [pytest.approx(20), pytest.approx(14), pytest.approx(10)], "(4n+4), (3n+2), (2n+2)"
            assert_fits(panel)


def assert_fits(panel: MeasuredPanel) -> None:
    for bar, (length, _) in zip(panel.bars, drawn_lengths(panel), strict=True):
        assert number_place(bar, panel, length)[2] <= WIDTH, bar.title


def test_a_long_reason_is_shortened_in_the_picture_and_whole_in_words() -> None:
    reason = "it needs a device of a kind that was not there when the others were measured, and so on"
    panel = MeasuredPanel("Time", "µs", "", (Measured("other", "", None, reason),))
    assert_fits(panel)
    assert "…" in panel_svg(panel) and reason in panel_words(panel)
