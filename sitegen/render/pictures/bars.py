# Bar figures: one small picture per panel, each bar with its number, and the bound as a line through all of them.
"""Draw the panels of a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from sitegen.figures import Measured, MeasuredFigure, MeasuredPanel
from sitegen.render.page import slug
from sitegen.render.pictures.svg import number, tag, text_width, wrapped
from sitegen.render.prose import PageProse

#: Of a panel, in pixels of a wide screen: it fits a phone without scrolling.
WIDTH, STEP, BAR, MARGIN = 340.0, 36.0, 11.0, 2.0
#: Room for the number behind the longest bar.
NUMBER = 118.0
#: A bar more than so many times the next longest is cut short, and drawn so.
CUT = 4.0


@dataclass(frozen=True)
class FigureView:
    """A figure with its panels, and the words below it."""

    id: str
    title: str
    text: Markup
    panels: tuple[MeasuredPanel, ...]
    source: str

    @property
    def notes(self) -> str:
        """How to read the bars, as far as these need it, and where their lengths come from."""
        found = []
        if any(bound(panel) for panel in self.panels):
            found.append("The line is the bound; × says how many times the bound a bar is.")
        if any(cut for panel in self.panels for _, cut in drawn_lengths(panel)):
            found.append("A bar with a break is cut short.")
        return " ".join([*found, self.source])


def figure_view(measured: MeasuredFigure, prose: PageProse) -> FigureView:
    """The view of a figure; its texts quote numbers as those of its component do."""
    panels = tuple(
        replace(panel, bars=tuple(replace(bar, title=prose.plain(bar.title)) for bar in panel.bars))
        for panel in measured.panels
    )
    told = ", ".join(part for part in (measured.device, measured.date) if part)
    source = f"Recorded in {measured.record}{f' ({told})' if told else ''}." if measured.record else ""
    figure = measured.figure
    return FigureView(f"figure-{slug(figure.id)}", figure.title.strip(), prose.html(figure.text), panels, source)


def bound(panel: MeasuredPanel) -> float | None:
    """The panel's bound, if it has one."""
    return next((bar.value for bar in panel.bars if bar.role == "bound"), None)


def value_text(bar: Measured, panel: MeasuredPanel) -> str:
    """A bar's length in words: the number, its unit, and how many times the bound it is."""
    if bar.value is None:
        return f"not run: {bar.missing}" if bar.missing else "not run"
    shown = f"{bar.value:,.0f}" if bar.value >= 100 else f"{bar.value:,.1f}"
    limit = bound(panel)
    times = f", × {bar.value / limit:,.2f}" if limit and bar.role != "bound" else ""
    return f"{shown} {panel.unit}{times}"


def heading(panel: MeasuredPanel) -> str:
    """A panel's title with the value of `each` that it stands for."""
    return f"{panel.title}, {panel.where}" if panel.where else panel.title


def panel_words(panel: MeasuredPanel) -> str:
    """All that a panel shows, for those who do not see it."""
    told = [
        f"{bar.title}: {value_text(bar, panel)}" + (" (the bound)" if bar.role == "bound" else "") for bar in panel.bars
    ]
    return f"{heading(panel)}. " + "; ".join(told) + "."


def drawn_lengths(panel: MeasuredPanel) -> list[tuple[float, bool]]:
    """How long each bar is drawn, and whether it is cut short."""
    return lengths([bar.value for bar in panel.bars], WIDTH - NUMBER - 2 * MARGIN)


def lengths(values: Sequence[float | None], room: float) -> list[tuple[float, bool]]:
    """How long each bar is drawn, and whether it is cut short; bars that are not cut share one scale."""
    known = sorted({value for value in values if value})
    cut = len(known) > 1 and known[-1] > CUT * known[-2]
    longest = (known[-2] * 1.25 if cut else known[-1]) if known else 1.0
    return [(0.0 if not v else room * min(v / longest, 1.0), bool(v and v > longest)) for v in values]


def panel_svg(panel: MeasuredPanel) -> Markup:
    """A panel's picture."""
    parts = []
    drawn = drawn_lengths(panel)
    limit = next((length for bar, (length, _) in zip(panel.bars, drawn, strict=True) if bar.role == "bound"), None)
    for k, (bar, (length, cut)) in enumerate(zip(panel.bars, drawn, strict=True)):
        y = MARGIN + STEP * k
        parts.append(
            tag("text", wrapped(bar.title, 12, WIDTH - 2 * MARGIN, 1)[0], x=MARGIN, y=y + 11, class_="ms-soft")
        )
        if bar.value is not None:
            style = f"ms-length ms-length--{bar.role}" if bar.role else "ms-length"
            parts.append(tag("rect", x=MARGIN, y=y + 16, width=max(length, 1.0), height=BAR, class_=style))
            if limit:
                parts.append(tag("path", d=f"M{number(MARGIN + limit)} {number(y + 13)}v17", class_="ms-limit"))
        if cut:
            at = MARGIN + length - 18
            parts.append(tag("path", d=f"M{number(at)} {number(y + 29)}l6-15m5 0-6 15", class_="ms-cut"))
        shown, x, _ = number_place(bar, panel, length)
        parts.append(tag("text", shown, x=x, y=y + 26, class_="ms-small ms-halo"))
    height = STEP * len(panel.bars) + MARGIN
    style = f"--ms-w:{number(WIDTH)};--ms-h:{number(height)}"
    return Markup('<svg class="ms-svg" viewBox="0 0 {} {}" style="{}" role="img" aria-label="{}">{}</svg>').format(
        number(WIDTH), number(height), style, panel_words(panel), Markup("").join(parts)
    )


def number_place(bar: Measured, panel: MeasuredPanel, length: float) -> tuple[str, float, float]:
    """The number behind a bar, where it begins and where it ends."""
    x = MARGIN + (length + 6 if bar.value is not None else 0)
    shown = value_text(bar, panel)
    if bar.value is None:
        shown = wrapped(shown, 11, WIDTH - x, 1)[0]
    return shown, x, x + text_width(shown, 11)
