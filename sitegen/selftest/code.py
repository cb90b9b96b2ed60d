# Wrong forms of the implementation: only of functions that some component pins, and of the constants
# that they read, which kernels share with their plain twins.
"""Mutants of the code under documentation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from sitegen import facts, static
from sitegen.resolver import Model
from sitegen.selftest.mutant import Draft, Edit, Mutant, named
from sitegen.selftest.rewrites import rewrites

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_CONSTANT = re.compile(r"[A-Z][A-Z0-9_]*\Z")


@dataclass(frozen=True)
class _Text:
    """A Python file: offsets of nodes in characters."""

    text: str
    starts: tuple[int, ...]
    lines: tuple[bytes, ...]

    @classmethod
    def of(cls, text: str) -> _Text:
        lines = text.split("\n")
        starts, here = [], 0
        for line in lines:
            starts.append(here)
            here += len(line) + 1
        return cls(text, tuple(starts), tuple(line.encode() for line in lines))

    def offset(self, line: int, column: int) -> int:
        return self.starts[line - 1] + len(self.lines[line - 1][:column].decode())

    def edit(self, node: ast.AST, new: str) -> Edit:
        start = self.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]
        end = self.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
        return Edit(start, end, new)


def code_mutants(model: Model) -> list[Mutant]:
    """Mutants of every pinned function, file by file; a file of kernels only through the constants it shares."""
    pinned: dict[str, dict[str, list[str]]] = {}
    inside = {path.resolve() for path in facts.code_files(model.sources)}
    for pin in static.model_pins(model):
        path = model.sources.root / pin.path
        if pin.path.endswith(".py") and pin.symbol and path.resolve() in inside:
            ids = pinned.setdefault(pin.path, {}).setdefault(pin.symbol.partition("#")[0], [])
            if pin.component not in ids:
                ids.append(pin.component)
    found: list[Mutant] = []
    constants: dict[str, dict[str, list[str]]] = {}
    for file, symbols in sorted(pinned.items()):
        text = (model.sources.root / file).read_bytes().decode("utf-8")
        tree = ast.parse(text)
        if _is_kernel(tree):
            continue
        found += named(_of_functions(text, tree, symbols), {file: text}, file, "code")
        for name, ids in _constants_read(tree, symbols).items():
            for home in _homes(model, file, tree, name):
                known = constants.setdefault(home, {}).setdefault(name, [])
                known += [id for id in ids if id not in known]
    for file, names in sorted(constants.items()):
        text = (model.sources.root / file).read_bytes().decode("utf-8")
        found += named(_of_constants(text, names), {file: text}, file, "code")
    return found


def _is_kernel(tree: ast.Module) -> bool:
    """Whether a file is read by TileLang's own compiler, not by Python."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(a.name.partition(".")[0] == "tilelang" for a in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "tilelang":
            return True
    return False


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, _Function | ast.ClassDef]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _Function | ast.ClassDef):
            name = f"{prefix}{node.name}"
            yield name, node
            yield from _functions(node, f"{name}.")


def _chosen(tree: ast.Module, symbols: dict[str, list[str]]) -> Iterator[tuple[str, _Function, list[str]]]:
    """Pinned functions, and the methods of pinned classes."""
    classes = {n for n, node in _functions(tree) if isinstance(node, ast.ClassDef)}
    for name, node in _functions(tree):
        if isinstance(node, ast.ClassDef):
            continue
        ids = symbols.get(name)
        head = name.rpartition(".")[0]
        if ids is None and head in classes:
            ids = symbols.get(head)
        if ids:
            yield name, node, ids


def _of_functions(text: str, tree: ast.Module, symbols: dict[str, list[str]]) -> Iterator[Draft]:
    lines = _Text.of(text)
    original = ast.dump(tree)
    for name, node, ids in _chosen(tree, symbols):
        for rewrite in rewrites(node):
            edits = tuple(lines.edit(n, t) for n, t in zip(rewrite.nodes, rewrite.texts, strict=True))
            draft = Draft(rewrite.kind, name, rewrite.what, edits, tuple(ids), name)
            try:
                changed = ast.parse(Mutant("", "", "code", (), "", 1, "", edits).applied(text))
            except (SyntaxError, ValueError):
                continue
            if ast.dump(changed) != original:
                yield draft


def _constants_read(tree: ast.Module, symbols: dict[str, list[str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for _, node, ids in _chosen(tree, symbols):
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load) and _CONSTANT.match(inner.id):
                known = found.setdefault(inner.id, [])
                known += [id for id in ids if id not in known]
    return found


def _homes(model: Model, file: str, tree: ast.Module, name: str) -> Iterator[str]:
    """The file that defines a constant: this one, or the one that it is imported from."""
    if any(name in _assigned(node) for node in tree.body):
        yield file
        return
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and any(a.name == name for a in node.names):
            parts = file.rsplit("/", 1)[0].split("/") if "/" in file else []
            base = parts[: len(parts) - (node.level - 1)] if node.level else []
            module = "/".join([*base, *(node.module or "").split(".")])
            for candidate in (f"{module}.py", f"{module}/__init__.py"):
                if (model.sources.root / candidate).is_file():
                    yield candidate
                    return


def _assigned(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.Assign):
        return {t.id for t in node.targets if isinstance(t, ast.Name)}
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return {node.target.id}
    return set()


def _of_constants(text: str, names: dict[str, list[str]]) -> Iterator[Draft]:
    lines = _Text.of(text)
    for node in ast.parse(text).body:
        for name in _assigned(node) & names.keys():
            value = getattr(node, "value", None)
            for inner in ast.walk(value) if value is not None else ():
                if not isinstance(inner, ast.Constant) or type(inner.value) not in (int, float):
                    continue
                old = inner.value
                new = old + 1 if type(old) is int else old * 1.01 if old else 0.01
                edits = (lines.edit(inner, repr(new)),)
                yield Draft("code-constant", name, f"{old!r} becomes {new!r}", edits, tuple(names[name]), name)
