# A score as people and programs read it.
"""Print scores."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sitegen.diagnostics import ordered
from sitegen.selftest.score import Counts, Score, Trial


def write_scores(scores: Sequence[Score], form: str) -> str:
    """All scores as text or JSON; with several models a list of objects."""
    if form == "json":
        data = [score.to_json() for score in scores]
        return json.dumps(data[0] if len(data) == 1 else data, indent=2, ensure_ascii=False) + "\n"
    return "\n".join(score_text(score) for score in scores)


def score_text(score: Score) -> str:
    """Survivors with their diffs, then the score by kind, by component and overall."""
    lines: list[str] = []
    for finding in ordered(score.findings):
        lines.append(finding.text())
    if not score.made:
        lines.append(f"{score.model}: no mutant was tried")
        return "\n".join(lines) + "\n"
    for trial in score.trials:
        if trial.outcome == "survived":
            lines += _shown("survived", trial)
    for trial in score.trials:
        if trial.only_by_pin:
            lines += _shown("caught only by a pin", trial)
    lines += _table("kind", score.kinds)
    lines += ["", *_table("component", {name or "(the model)": c for name, c in score.components.items()}), ""]
    if len(score.trials) < score.made:
        lines.append(f"{score.model}: {len(score.trials):,} of {score.made:,} mutants tried, seed {score.seed}")
    lines.append(f"{score.model}: {score.counts.text()}; {score.seconds:.0f} s")
    return "\n".join(lines) + "\n"


def _shown(word: str, trial: Trial) -> list[str]:
    m = trial.mutant
    head = f"{m.file}:{m.line}: {word}: {m.what}" + (f"  ({m.component})" if m.component else "")
    lines = [head, f"  mutant: {m.id}"]
    if trial.note and trial.outcome == "survived":
        lines.append(f"  {trial.note}")
    return [*lines, *(f"  {line}" for line in trial.diff.rstrip().splitlines()), ""]


def _table(title: str, rows: dict[str, Counts]) -> list[str]:
    width = max(len(name) for name in (title, *rows))
    lines = [f"{title:{width}}  caught  by a pin  survived  equivalent"]
    for name, c in rows.items():
        lines.append(f"{name:{width}}  {c.executed:6,}  {c.only_by_pin:8,}  {c.survived:8,}  {c.equivalent:10,}")
    return lines
