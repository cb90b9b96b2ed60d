# What a Python file defines: functions, classes and constants, with their line ranges.
"""Symbols of a Python file by qualified name: `Class.method`, `function.inner`, `CONSTANT`."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


class Unparsable(Exception):
    """The text is not Python for this interpreter."""


@dataclass(frozen=True)
class Definition:
    """One definition; `lines` are by "\\n" and include decorators, `ordinal` counts equal names from 1."""

    symbol: str
    lines: tuple[int, int]
    ordinal: int

    @property
    def name(self) -> str:
        return self.symbol.rpartition(".")[2]


def definitions(text: str, line_of: Sequence[int] = ()) -> tuple[Definition, ...]:
    """All definitions in file order.

    Functions and classes at any depth (also inside `if`, `with`, `try` and under decorators), and
    names assigned at module or class level.  A name that is defined several times appears several times.

    Args:
        text: the file, with "\\n" for every newline of the compiler.
        line_of: line by "\\n" of each compiler line, where they differ.

    Raises:
        Unparsable: with the reason and line.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in someone's string is not ours to report
            tree = ast.parse(text)
        rows = text.split("\n")
        found = list(_walk(tree.body, "", rows, in_function=False))
    except SyntaxError as error:
        place = f" (line {line_of[error.lineno - 1] if line_of else error.lineno})" if error.lineno else ""
        raise Unparsable(f"{error.msg}{place}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise Unparsable(str(error) or type(error).__name__) from None
    counts: dict[str, int] = {}
    result = []
    for symbol, (first, last) in sorted(found, key=lambda entry: entry[1]):
        counts[symbol] = counts.get(symbol, 0) + 1
        if line_of:
            first, last = line_of[first - 1], line_of[last - 1]
        result.append(Definition(symbol, (first, last), counts[symbol]))
    return tuple(result)


def _walk(
    body: Sequence[ast.stmt], prefix: str, rows: Sequence[str], *, in_function: bool
) -> Iterator[tuple[str, tuple[int, int]]]:
    for node in body:
        last = node.end_lineno or node.lineno
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            symbol = prefix + node.name
            yield symbol, (_first_line(node, rows), last)
            yield from _walk(node.body, symbol + ".", rows, in_function=not isinstance(node, ast.ClassDef))
            continue
        if isinstance(node, ast.Assign | ast.AnnAssign) and not in_function:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in _names(targets):
                yield prefix + name, (node.lineno, last)
        for block in ("body", "orelse", "finalbody"):
            yield from _walk(getattr(node, block, ()), prefix, rows, in_function=in_function)
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            yield from _walk(part.body, prefix, rows, in_function=in_function)


def _names(targets: Sequence[ast.expr]) -> Iterator[str]:
    for target in targets:
        if isinstance(target, ast.Name):
            yield target.id
        elif isinstance(target, ast.Tuple | ast.List):
            yield from _names(target.elts)


def _first_line(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, rows: Sequence[str]) -> int:
    if not node.decorator_list:
        return node.lineno
    line = node.decorator_list[0].lineno
    while line > 1 and not rows[line - 1].lstrip(" \t\f").startswith("@"):
        line -= 1  # a decorator in parentheses: its expression starts below the "@"
    return line


def named(found: Sequence[Definition], symbol: str) -> tuple[Definition, ...]:
    """The definitions that `symbol` names; `name#2` means the second one of that name."""
    name, _, ordinal = symbol.replace(".<locals>", "").partition("#")
    same = tuple(definition for definition in found if definition.symbol == name)
    if ordinal:
        return tuple(d for d in same if ordinal.isascii() and ordinal.isdigit() and d.ordinal == int(ordinal))
    return same
