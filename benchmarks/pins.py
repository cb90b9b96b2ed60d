# A labelled benchmark of pins: who alarms without cause, who stays silent, who ends up on the wrong lines.
"""Compares sitegen's pins with snippetdrift, docpin and linecite on labelled edits of real sources.

    python benchmarks/pins.py --seed 0 --write

For each pin and each class of edit: the tool pins the code, the code is edited, the tool repairs what it
repairs by itself, and is then asked whether anything is wrong.

- false alarm: it still calls for a person, though the cited code does the same as before;
- miss: it is silent, though a person must look again;
- wrong re-anchor: it is silent and stands on lines that are not the cited code (a miss may be one too);
- laundered: after the command that clears alarms was given unread, it is silent on the wrong lines.

Exit code 1 if sitegen has any of these, or cannot pin a case.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

from pins_cases import Case, Edited  # noqa: E402
from pins_edits import EDITS, EditClass, draw  # noqa: E402
from pins_tools import Sitegen, Tool, Verdict, all_tools, code_path  # noqa: E402

RESULT = ROOT / "benchmarks" / "results" / "pins.json"
LEAST_PINS = 40


@dataclass
class Score:
    """One tool on one class of edit."""

    cases: int = 0
    false_alarms: list[str] = field(default_factory=list)
    misses: list[str] = field(default_factory=list)
    wrong_anchors: list[str] = field(default_factory=list)
    laundered: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)

    def to_json(self) -> dict[str, object]:
        return {
            "cases": self.cases,
            "false_alarms": len(self.false_alarms),
            "misses": len(self.misses),
            "wrong_anchors": len(self.wrong_anchors),
            "laundered": len(self.laundered),
            "kinds": dict(sorted(self.kinds.items())),
        }


@cache
def edits_of(edit: EditClass, cases: tuple[Case, ...], seed: int) -> dict[str, tuple[Case, Edited]]:
    """The edited file of each case to which the class applies."""
    result = {}
    for case in cases:
        if edit.name == "context" and not case.fragment:
            continue
        edited = edit.apply(case, random.Random(f"{seed}/{edit.name}/{case.name}"))
        if edited is None:  # `draw` tried it with another draw of the same kinds
            edited = edit.apply(case, random.Random(0))
        if edited is not None:
            result[case.name] = case, edited
    return result


def score(tool: Tool, edit: EditClass, cases: tuple[Case, ...], seed: int) -> Score:
    """Runs one tool over one class, in a folder of its own."""
    edited = edits_of(edit, cases, seed)
    chosen = [case for case, _ in edited.values()]
    result = Score()
    with tempfile.TemporaryDirectory(prefix="pins-") as name:
        folder = Path(name)
        for case in chosen:
            _put(folder, case, case.text)
        unable = tool.record(folder, chosen)
        for case, change in edited.values():
            _put(folder, case, change.text)
        before = tool.check(folder, chosen) if isinstance(tool, Sitegen) else Verdict()
        tool.repair(folder, chosen)
        verdict = tool.check(folder, chosen)
        judged = [case for case in chosen if case.name not in unable]
        result.cases = len(judged)
        for case in judged:
            truth = edited[case.name][1].lines
            if before.kinds:
                result.kinds[before.kinds[case.name]] += 1
            if case.name in verdict.alarms:
                if not edit.must_alarm:
                    result.false_alarms.append(case.name)
                continue
            if edit.must_alarm:
                result.misses.append(case.name)
            at = verdict.lines.get(case.name)
            if at is not None and at != truth:
                result.wrong_anchors.append(case.name)
        if tool.accepts:
            tool.accept(folder, chosen)
            after = tool.check(folder, chosen)
            for case in judged:
                at = after.lines.get(case.name)
                if case.name not in after.alarms and at is not None and at != edited[case.name][1].lines:
                    result.laundered.append(case.name)
    return result


def _put(folder: Path, case: Case, text: str) -> None:
    path = folder / code_path(case)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")


def run(seed: int, count: int, folders: Sequence[str], root: Path = ROOT, tools: Sequence[Tool] | None = None) -> dict:
    """The whole benchmark as JSON."""
    rng = random.Random(f"pins/{seed}")
    cases = tuple(draw(root, folders, count, rng))
    corpus = hashlib.sha256("".join(f"{c.origin}\0{c.text}\0" for c in cases).encode()).hexdigest()
    report: dict = {
        "schema": 1,
        "seed": seed,
        "pins": len(cases),
        "whole_symbols": sum(not c.fragment for c in cases),
        "files": len({c.origin for c in cases}),
        "corpus": list(folders),
        "corpus_digest": corpus,
        "python": platform.python_version(),
        "classes": {e.name: {"must_alarm": e.must_alarm, "meaning": e.meaning} for e in EDITS},
        "tools": {},
        "not_run": {},
    }
    for tool in tools if tools is not None else all_tools():
        reason = tool.missing()
        if reason:
            report["not_run"][tool.name] = reason
            continue
        started = time.perf_counter()
        scores = {edit.name: score(tool, edit, cases, seed) for edit in EDITS}
        if not any(one.cases for one in scores.values()):
            report["not_run"][tool.name] = f"{tool.package} {tool.version} could pin none of the cases"
            continue
        told = sum(scores[e.name].kinds[kind] for e in EDITS for kind in e.kinds)
        total = Score()
        for one in scores.values():
            total.cases += one.cases
            for part in ("false_alarms", "misses", "wrong_anchors", "laundered"):
                getattr(total, part).extend(getattr(one, part))
        report["tools"][tool.name] = {
            "version": tool.version,
            "seconds": round(time.perf_counter() - started, 1),
            "accepts": tool.accepts,
            "total": {k: v for k, v in total.to_json().items() if k != "kinds"},
            "told_apart": told,
            "classes": {name: one.to_json() for name, one in scores.items()},
            "failures": {
                part: sorted(f"{name}/{c}" for name, one in scores.items() for c in getattr(one, part))
                for part in ("false_alarms", "misses", "wrong_anchors", "laundered")
            }
            if isinstance(tool, Sitegen)
            else {},
        }
    return report


def table(report: dict) -> str:
    """The figures as text: a row for each class, false alarms (F) or misses (M) of each tool, and the totals."""
    tools = list(report["tools"])
    width = max(len(name) for name in report["classes"]) + 2
    rows = [
        f"{report['pins']} pins ({report['whole_symbols']} whole symbols) from {report['files']} files, "
        f"seed {report['seed']}; F false alarms or M misses of the cases a tool could pin",
        "",
        " " * width + "  " + "".join(f"{name:>18}" for name in tools),
    ]
    for name, about in report["classes"].items():
        letter, part = ("M", "misses") if about["must_alarm"] else ("F", "false_alarms")
        cells = (f"{c[part]}/{c['cases']}" for c in (report["tools"][t]["classes"][name] for t in tools))
        rows.append(f"{name:<{width}}{letter} " + "".join(f"{cell:>18}" for cell in cells))
    rows.append("")
    for part in ("false_alarms", "misses", "wrong_anchors", "laundered"):
        cells = []
        for tool in tools:
            known = report["tools"][tool]
            says_lines = tool != "docpin (symbol)" or part in ("false_alarms", "misses")
            can = part != "laundered" or known["accepts"]
            cells.append(str(known["total"][part]) if says_lines and can else "-")
        rows.append(f"{part.replace('_', ' '):<{width}}  " + "".join(f"{cell:>18}" for cell in cells))
    ours = report["tools"].get("sitegen")
    if ours:
        rows += ["", f"sitegen told {ours['told_apart']} of {ours['total']['cases']} edits apart by their kind"]
    rows += [f"not run: {name}: {reason}" for name, reason in report["not_run"].items()]
    return "\n".join(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="pins and edits follow from it")
    parser.add_argument("--pins", type=int, default=48, help=f"how many, at least {LEAST_PINS}")
    parser.add_argument("--corpus", nargs="+", default=["reference_impl", "sitegen"], help="folders of Python sources")
    parser.add_argument("--only", choices=["sitegen"], help="leave the other tools out")
    parser.add_argument("--write", action="store_true", help=f"write {RESULT.relative_to(ROOT)}")
    options = parser.parse_args(arguments)
    if options.pins < LEAST_PINS:
        parser.error(f"--pins must be at least {LEAST_PINS}")
    report = run(options.seed, options.pins, options.corpus, tools=[Sitegen()] if options.only else None)
    if report["pins"] < LEAST_PINS:
        print(f"only {report['pins']} pins could be drawn from {options.corpus}", file=sys.stderr)
        return 2
    print(table(report))
    if options.write:
        RESULT.parent.mkdir(parents=True, exist_ok=True)
        RESULT.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    ours = report["tools"]["sitegen"]
    expected = sum(report["pins"] - (report["whole_symbols"] if e.name == "context" else 0) for e in EDITS)
    faults = [f"{part}: {', '.join(names)}" for part, names in ours["failures"].items() if names]
    if ours["total"]["cases"] != expected:
        faults.append(f"only {ours['total']['cases']} of {expected} cases were judged")
    for fault in faults:
        print(f"sitegen fails: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
