"""Imports point down: the floors of sitegen, lowest first, and what each room must never bring in."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

#: Lowest first; a module may import its own floor and those below.  `x/` is a package.
FLOORS = (
    ("diagnostics",),
    ("yamlfile", "expr", "formula/", "pins/"),
    ("schema/", "claimspec"),
    ("loader",),
    ("resolver",),
    ("accounting", "configuration", "figures", "relations", "statements", "report", "probe/result"),
    ("tensorindex", "quoting", "rounding"),
    ("facts", "comparison", "revisions", "render/", "selftest/record", "axes", "references", "quantities", "claims")
    + ("derived",),
    ("probe/",),
    ("prosenumbers",),
    ("gotchas",),
    ("static",),
    ("verifier", "selftest/"),
    ("bookmaker",),
    ("pipeline",),
    ("outputs/", "explain/", "doctor"),
    ("cli", "plugin"),
    ("__main__",),
)


def floor(module: str) -> int:
    """The floor of `sitegen.x.y`; the most exact entry counts."""
    name = module.removeprefix("sitegen.").replace(".", "/")
    found = [
        (len(entry), number)
        for number, entries in enumerate(FLOORS)
        for entry in entries
        if name == entry.rstrip("/") or (entry.endswith("/") and name.startswith(entry))
    ]
    assert found, f"{module} stands on no floor: add it to FLOORS"
    return max(found)[1]


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted((ROOT / "sitegen").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name != "sitegen":
            yield name, path


def imports(path: Path) -> Iterator[str]:
    """Modules that a file imports, inside functions too; names of sitegen in full."""
    known = {name for name, _ in modules()}
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in known else node.module


@pytest.mark.parametrize("name, path", modules(), ids=lambda value: value if isinstance(value, str) else "")
def test_imports_point_down(name: str, path: Path) -> None:
    above = [other for other in imports(path) if other.startswith("sitegen.") and floor(other) > floor(name)]
    assert not above, f"{name} imports from above: {above}"


def test_the_implementation_never_imports_the_generator() -> None:
    for path in (ROOT / "reference_impl").rglob("*.py"):
        assert not [other for other in imports(path) if other.partition(".")[0] == "sitegen"], path


def test_only_the_probe_and_its_callers_reach_for_torch_and_only_the_plugin_for_mkdocs() -> None:
    for name, path in modules():
        found = {other.partition(".")[0] for other in imports(path)}
        if "torch" in found:
            rooms = ("sitegen.probe", "sitegen.formula", "sitegen.verifier", "sitegen.doctor")
            assert name.startswith(rooms)
        if "mkdocs" in found:
            assert name == "sitegen.plugin"


def test_the_test_can_fail() -> None:
    """The floor of the command line is above that of the loader, so an import the other way would be named."""
    assert floor("sitegen.cli") > floor("sitegen.loader") > floor("sitegen.diagnostics")
    assert floor("sitegen.probe.result") < floor("sitegen.facts") < floor("sitegen.probe.cpu")
