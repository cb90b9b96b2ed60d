# Labelled source edits: pins drawn from real files, and what a maintainer might do to the pinned code.
#
# Written with `ast` and `tokenize` alone and not with sitegen's own lexer, so that a fault of that lexer
# cannot hide in the labels.
"""Pins and edits for the pin benchmark, generated from a seed."""

from __future__ import annotations

import ast
import io
import random
import re
import textwrap
import tokenize
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pins_cases import Case, Edited, Lines, drawn, functions, one_line


@dataclass(frozen=True)
class EditClass:
    """`must_alarm`: the documented statement may have stopped being true, so a person must look again."""

    name: str
    must_alarm: bool
    kinds: frozenset[str]
    meaning: str
    apply: Callable[[Case, random.Random], Edited | None]


# --- edits ---------------------------------------------------------------------------------------------------

NEW_FUNCTION = ["def _added_above(value):", "    # a function that no page speaks of", "    return value + 1", "", ""]


def _shift(lines: Lines, by: int) -> Lines:
    return lines[0] + by, lines[1] + by


@lru_cache(maxsize=512)
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def _parses(text: str) -> bool:
    try:
        _parsed(text)
    except SyntaxError:
        return False
    return True


def _edited(rows: Sequence[str], lines: Lines | None) -> Edited | None:
    text = "\n".join(rows)
    return Edited(text, lines) if _parses(text) else None


def _top_statement(case: Case) -> ast.stmt:
    line = case.definition[0]
    return next(s for s in _parsed(case.text).body if _start(s) <= line <= (s.end_lineno or s.lineno))


def _start(node: ast.stmt) -> int:
    return min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])


def _indent(row: str) -> str:
    return row[: len(row) - len(row.lstrip())]


def move(case: Case, rng: random.Random) -> Edited | None:
    """New code above, or the definition taken to the end of the file."""
    rows = case.rows
    top = _top_statement(case)
    first, last = _start(top), top.end_lineno or top.lineno
    if rng.random() < 0.5:
        return _edited([*rows[: first - 1], *NEW_FUNCTION, *rows[first - 1 :]], _shift(case.lines, len(NEW_FUNCTION)))
    block = rows[first - 1 : last]
    rest = rows[: first - 1] + rows[last:]
    while rest and not rest[-1].strip():
        rest.pop()
    moved = [*rest, "", "", "_MARK = 1", "", "", *block, ""]
    return _edited(moved, _shift(case.lines, len(rest) + 5 - (first - 1)))


def comment(case: Case, rng: random.Random) -> Edited | None:
    rows, line = case.rows, case.target[0]
    if rng.random() < 0.5 and line > case.lines[0]:
        rows.insert(line - 1, _indent(rows[line - 1]) + "# the next line is explained on the page")
        return _edited(rows, (case.lines[0], case.lines[1] + 1))
    rows[line - 1] += "  # explained on the page"
    return _edited(rows, case.lines)


def wrap(case: Case, rng: random.Random) -> Edited | None:
    """The target's expression over several lines, as a formatter would do it."""
    rows, line = case.rows, case.target[0]
    row = rows[line - 1]
    pad = _indent(row)
    statement = ast.parse(row.strip()).body[0] if not row.strip().startswith("return") else None
    value = statement.value if statement is not None else ast.parse(row.strip()[6:].strip(), mode="eval").body  # type: ignore[attr-defined]
    shift = 0 if statement is not None else len(row.strip()) - len(row.strip()[6:].strip())
    start, end = len(pad) + shift + value.col_offset, len(pad) + shift + value.end_col_offset
    if isinstance(value, ast.Call) and value.args and not value.keywords and row[end - 1] == ")":
        texts = [ast.get_source_segment(row[start:end], a) for a in _recall(row[start:end])]
        generator = isinstance(value.args[0], ast.GeneratorExp)
        if all(texts) and not generator:
            opening = row[:end].index("(", start + _callee_length(row[start:end]))
            new = [row[: opening + 1], *(f"{pad}    {text}," for text in texts), f"{pad}){row[end:]}"]
            return _same_tree(case, rows, line, new)
    if row[start - 1] == "(" or isinstance(value, ast.Tuple):
        return None
    return _same_tree(case, rows, line, [row[:start] + "(", f"{pad}    {row[start:end]}", f"{pad}){row[end:]}"])


def _recall(text: str) -> list[ast.expr]:
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    return call.args


def _callee_length(text: str) -> int:
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    return call.func.end_col_offset or 0


def _same_tree(case: Case, rows: list[str], line: int, new: list[str]) -> Edited | None:
    text = "\n".join([*rows[: line - 1], *new, *rows[line:]])
    if not _parses(text) or ast.dump(_parsed(text)) != ast.dump(_parsed(case.text)):
        return None
    return Edited(text, (case.lines[0], case.lines[1] + len(new) - 1))


def rename(case: Case, rng: random.Random) -> Edited | None:
    """The function under another name, wherever the file's code uses it (strings and comments stay)."""
    old = case.symbol.rpartition(".")[2]
    if re.search(rf"\b{old}_renamed\b", case.text) or old.startswith("__"):
        return None
    rows = case.rows
    names = [t.start for t in _tokens(case.text) if t.type == tokenize.NAME and t.string == old]
    for line, column in reversed(names):
        row = rows[line - 1]
        rows[line - 1] = f"{row[:column]}{old}_renamed{row[column + len(old) :]}"
    return _edited(rows, case.lines)


@lru_cache(maxsize=256)
def _tokens(text: str) -> tuple[tokenize.TokenInfo, ...]:
    return tuple(tokenize.generate_tokens(io.StringIO(text).readline))


def semantic(case: Case, rng: random.Random) -> Edited | None:
    """Another result, with one line more."""
    rows, line = case.rows, case.target[0]
    row = rows[line - 1]
    changed = _scaled(row, "factor")
    if changed is None:
        return None
    rows[line - 1 : line] = [f"{_indent(row)}factor = 1.01", changed]
    return _edited(rows, (case.lines[0], case.lines[1] + 1))


def semantic_same_lines(case: Case, rng: random.Random) -> Edited | None:
    """Another result, on as many lines."""
    rows, line = case.rows, case.target[0]
    changed = mutated(rows[line - 1], rng)
    if changed is None:
        return None
    rows[line - 1] = changed
    return _edited(rows, case.lines)


def _scaled(row: str, factor: str) -> str | None:
    match = re.match(r"(\s*(?:return\b|[^=]*?[^=!<>]=(?!=)))\s*(.+)$", row)
    return f"{match[1]} ({match[2]}) * {factor}" if match else None


def mutated(row: str, rng: random.Random) -> str | None:
    """One line that computes something else: an operator, constant, argument order or sign is changed."""
    options: list[str] = []
    swaps = {"+": "-", "-": "+", "*": "+", "/": "*", "//": "+", "==": "!=", "<": "<=", ">": ">="}
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(row.strip() + "\n").readline))
    except (tokenize.TokenError, IndentationError):
        return None
    pad = _indent(row)
    for token in tokens:
        (_, start), (_, end) = token.start, token.end
        if token.type == tokenize.OP and token.string in swaps:
            options.append(pad + row.strip()[:start] + swaps[token.string] + row.strip()[end:])
        if token.type == tokenize.NUMBER and token.string.isdigit():
            options.append(pad + row.strip()[:start] + str(int(token.string) + 1) + row.strip()[end:])
    match = re.search(r"\(([A-Za-z_][\w.]*), ([A-Za-z_][\w.]*)\)", row)
    if match and match[1] != match[2]:
        options.append(row[: match.start()] + f"({match[2]}, {match[1]})" + row[match.end() :])
    scaled = _scaled(row, "1.01")
    options += [scaled] if scaled else []
    before = _tree(row)
    options = [option for option in options if _tree(option) not in (None, before)]
    return rng.choice(options) if options else None


def _tree(row: str) -> str | None:
    try:
        return ast.dump(ast.parse("def f():\n " + row.strip()))
    except SyntaxError:
        return None


def delete(case: Case, rng: random.Random) -> Edited | None:
    """The cited lines are gone."""
    rows = case.rows
    first, last = case.lines
    text = "\n".join(rows[: first - 1] + rows[last:])
    if not _parses(text):
        text = "\n".join([*rows[: first - 1], _indent(rows[first - 1]) + "pass", *rows[last:]])
    return Edited(text, None) if _parses(text) else None


def split(case: Case, rng: random.Random) -> Edited | None:
    """The cited statements (of a whole symbol: its second half) become a function of their own."""
    rows = case.rows
    first, last = case.lines
    if not case.fragment:
        node = next(node for symbol, node in functions(_parsed(case.text).body, "") if symbol == case.symbol)
        assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        first, last = _start(node.body[len(node.body) // 2]), node.end_lineno or node.lineno
    name = f"_part_of_{case.symbol.rpartition('.')[2].strip('_')}"
    pad = _indent(rows[first - 1])
    part = [("    " + row.removeprefix(pad)) if row.strip() else row for row in rows[first - 1 : last]]
    caller = [*rows[: first - 1], f"{pad}return {name}(locals())", *rows[last:]]
    kept = None if case.fragment else (case.definition[0], first)  # a whole symbol is still there, and shorter
    return _edited([*caller, "", "", f"def {name}(values):", *part, ""], kept)


def duplicate(case: Case, rng: random.Random) -> Edited | None:
    """A second copy under the same name, as a bad merge leaves it."""
    rows, top = case.rows, _top_statement(case)
    first, last = _start(top), top.end_lineno or top.lineno
    return _edited([*rows[:last], "", "", *rows[first - 1 : last], *rows[last:]], None)


def crlf(case: Case, rng: random.Random) -> Edited | None:
    return Edited(case.text.replace("\n", "\r\n"), case.lines)


def decorator(case: Case, rng: random.Random) -> Edited | None:
    """A decorator on the cited function, which may change what it does."""
    rows, line = case.rows, case.definition[0]
    rows.insert(line - 1, _indent(rows[line - 1]) + "@functools.lru_cache(maxsize=None)")
    first = case.lines[0] + (1 if case.fragment else 0)
    return _edited(rows, (first, case.lines[1] + 1))


def tabs(case: Case, rng: random.Random) -> Edited | None:
    """Tabs for four blanks in the whole file, strings left alone."""
    rows = case.rows
    for token in _tokens(case.text):
        if token.type == tokenize.STRING and token.start[0] != token.end[0]:
            for line in range(token.start[0], token.end[0]):
                rows[line] = "\0" + rows[line]
    done = []
    for row in rows:
        if row.startswith("\0"):
            done.append(row[1:])
        else:
            width = len(_indent(row))
            done.append("\t" * (width // 4) + " " * (width % 4) + row.lstrip(" "))
    return _edited(done, case.lines)


def elsewhere(case: Case, rng: random.Random) -> Edited | None:
    """Another definition of the file computes something else."""
    rows = case.rows
    first, last = case.definition
    lines = [
        s.lineno
        for s in ast.walk(_parsed(case.text))
        if isinstance(s, ast.Assign | ast.Return)
        and not first <= s.lineno <= last
        and s.value is not None
        and one_line(s, rows)
    ]
    rng.shuffle(lines)
    for line in lines:
        changed = mutated(rows[line - 1], rng)
        if changed is not None:
            return _edited([*rows[: line - 1], changed, *rows[line:]], case.lines)
    return None


def context(case: Case, rng: random.Random) -> Edited | None:
    """A statement of the cited symbol changes, outside the cited lines."""
    rows = case.rows
    first, last = case.definition
    lines = [
        s.lineno
        for s in ast.walk(_parsed(case.text))
        if isinstance(s, ast.Assign | ast.Return | ast.AugAssign)
        and first <= s.lineno <= last
        and not case.lines[0] <= s.lineno <= case.lines[1]
        and s.value is not None
        and one_line(s, rows)
    ]
    rng.shuffle(lines)
    for line in lines:
        changed = mutated(rows[line - 1], rng)
        if changed is not None:
            return _edited([*rows[: line - 1], changed, *rows[line:]], case.lines)
    return None


def moved_and_changed(case: Case, rng: random.Random) -> Edited | None:
    changed = semantic_same_lines(case, rng)
    if changed is None:
        return None
    top = _start(_top_statement(case))
    rows = changed.text.split("\n")
    return _edited([*rows[: top - 1], *NEW_FUNCTION, *rows[top - 1 :]], _shift(case.lines, len(NEW_FUNCTION)))


def decoy(case: Case, rng: random.Random) -> Edited | None:
    """The code changes, and its old form stays in the file as another function (where the pin must not go)."""
    changed = semantic_same_lines(case, rng)
    if changed is None:
        return None
    top = _start(_top_statement(case))
    first, last = case.definition
    copy = textwrap.dedent("\n".join(case.rows[first - 1 : last])).split("\n")
    old = case.symbol.rpartition(".")[2]
    copy = [re.sub(rf"\bdef {old}\b", f"def {old}_before", row) for row in copy]
    rows = changed.text.split("\n")
    return _edited([*rows[: top - 1], *copy, "", "", *rows[top - 1 :]], _shift(case.lines, len(copy) + 2))


def _kinds(*names: str) -> frozenset[str]:
    return frozenset(names)


EDITS: tuple[EditClass, ...] = (
    EditClass("move", False, _kinds("moved"), "new code above, or taken to the file's end", move),
    EditClass("comment", False, _kinds("comment-only"), "a comment added in the cited lines", comment),
    EditClass("wrap", False, _kinds("reformatted"), "an expression laid out over several lines", wrap),
    EditClass("rename", True, _kinds("renamed"), "the function under another name", rename),
    EditClass("semantic", True, _kinds("changed"), "another result, one line more", semantic),
    EditClass("semantic-same-lines", True, _kinds("changed"), "another result, as many lines", semantic_same_lines),
    EditClass("delete", True, _kinds("gone"), "the cited lines deleted", delete),
    EditClass("split", True, _kinds("ambiguous"), "cited statements moved into a new function", split),
    EditClass("duplicate", True, _kinds("ambiguous"), "a second copy under the same name", duplicate),
    EditClass("crlf", False, _kinds("unchanged"), "line ends turned into CRLF", crlf),
    EditClass("decorator", True, _kinds("changed"), "a decorator put on the function", decorator),
    EditClass("tabs", False, _kinds("reformatted"), "indentation by tabs", tabs),
    EditClass("elsewhere", False, _kinds("unchanged"), "another definition changed", elsewhere),
    EditClass("context", True, _kinds("changed"), "the symbol changed beside the cited lines", context),
    EditClass("move+semantic", True, _kinds("changed"), "moved, and another result", moved_and_changed),
    EditClass("decoy", True, _kinds("changed"), "changed, with the old code kept elsewhere", decoy),
)


def draw(root: Path, folders: Sequence[str], count: int, rng: random.Random) -> list[Case]:
    """Pins on the Python files below `folders` to which every class of edit applies."""
    return drawn(root, folders, count, rng, lambda case: all(_applies(edit, case) for edit in EDITS))


def _applies(edit: EditClass, case: Case) -> bool:
    return edit.name == "context" and not case.fragment or edit.apply(case, random.Random(0)) is not None
