# Pins on real code, drawn at random: whole functions, and statements quoted from them.
"""The cases of the pin benchmark."""

from __future__ import annotations

import ast
import random
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

Lines = tuple[int, int]


@dataclass(frozen=True)
class Case:
    """A pin on one file: `lines` are cited; `fragment` is empty when the whole symbol is cited.

    `target` is a one-line statement within the cited lines, the one that edits change.
    """

    name: str
    origin: str
    text: str
    symbol: str
    definition: Lines
    lines: Lines
    fragment: str
    target: Lines

    @property
    def rows(self) -> list[str]:
        return self.text.split("\n")


@dataclass(frozen=True)
class Edited:
    """The file after an edit; `lines` is where the cited code (changed or not) stands now, None if nowhere."""

    text: str
    lines: Lines | None


def drawn(
    root: Path, folders: Sequence[str], count: int, rng: random.Random, fits: Callable[[Case], bool]
) -> list[Case]:
    """Pins on functions of the Python files below `folders`: a third cite whole symbols, the others fragments.

    Only pins that `fits` accepts are drawn.
    """
    options: list[tuple[str, str, str, ast.AST]] = []
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if not text.isascii():
                text = text.encode("ascii", "replace").decode()  # columns of `ast` are bytes; keep them equal
            try:
                tree = ast.parse(text)
            except SyntaxError:
                continue
            found = list(functions(tree.body, ""))
            names = [symbol for symbol, _ in found]
            options += [
                (path.relative_to(root).as_posix(), text, symbol, node)
                for symbol, node in found
                if names.count(symbol) == 1 and _is_plain(node)
            ]
    rng.shuffle(options)
    cases: list[Case] = []
    for origin, text, symbol, node in options:
        if len(cases) == count:
            break
        case = _case(f"p{len(cases):03d}", origin, text, symbol, node, whole=len(cases) % 3 == 0, rng=rng)
        if case is not None and fits(case):
            cases.append(case)
    return cases


def functions(body: Sequence[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.AST]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from functions(node.body, f"{prefix}{node.name}.")


def _is_plain(node: ast.AST) -> bool:
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    awkward = (ast.Yield, ast.YieldFrom, ast.Await, ast.Nonlocal, ast.Global)
    long_enough = 6 <= (node.end_lineno or 0) - node.lineno <= 80 and len(node.body) >= 4
    return long_enough and not any(isinstance(part, awkward) for part in ast.walk(node))


def _case(
    name: str, origin: str, text: str, symbol: str, node: ast.AST, *, whole: bool, rng: random.Random
) -> Case | None:
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    rows = text.split("\n")
    first = min([d.lineno for d in node.decorator_list] + [node.lineno])
    definition = first, node.end_lineno or node.lineno
    simple = [s for s in node.body if isinstance(s, ast.Assign | ast.Return | ast.AugAssign) and one_line(s, rows)]
    if len(simple) < 2:
        return None
    statement = rng.choice(simple)
    target = statement.lineno, statement.lineno
    if whole:
        return Case(name, origin, text, symbol, definition, definition, "", target)
    index = node.body.index(statement)
    size = rng.choice((1, 1, 2, 3))
    run = node.body[max(0, index - size + 1) : index + 1]
    while run and not _quotable(run[0], rows):
        run = run[1:]
    if not run or not all(_quotable(s, rows) for s in run):
        return None
    lines = run[0].lineno, run[-1].end_lineno or run[-1].lineno
    quoted = rows[lines[0] - 1 : lines[1]]
    inside = [row.strip() for row in rows[definition[0] - 1 : definition[1]]]
    if any(
        "".join(row.split()) in "".join(other.split())
        for row in (quoted[0], quoted[-1])
        for other in [o for i, o in enumerate(inside) if not lines[0] <= definition[0] + i <= lines[1]]
    ):
        return None  # a tool that quotes single lines could not tell it apart
    if len(quoted) > 1 and len({row.strip() for row in quoted}) < len(quoted):
        return None
    if any(len(row.strip()) < 8 for row in (quoted[0], quoted[-1])):
        return None
    return Case(name, origin, text, symbol, definition, lines, textwrap.dedent("\n".join(quoted)), target)


def one_line(node: ast.stmt, rows: Sequence[str]) -> bool:
    row = rows[node.lineno - 1]
    return (
        node.lineno == node.end_lineno
        and node.value is not None  # type: ignore[attr-defined]
        and row.strip() == row[node.col_offset : node.end_col_offset]
        and not re.search(r"['\"`#\\]", row)
        and len(row) < 100
    )


def _quotable(node: ast.stmt, rows: Sequence[str]) -> bool:
    lines = rows[node.lineno - 1 : node.end_lineno]
    simple = isinstance(node, ast.Assign | ast.AugAssign | ast.Return | ast.Expr | ast.AnnAssign | ast.Assert)
    return simple and not any(re.search(r"['\"`#\\]", row) for row in lines)
