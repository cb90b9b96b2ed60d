"""A project of a few lines, for cases that need no more: components, a configuration, and a list of tensors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sitegen import accounting, loader, resolver, static, verifier
from sitegen.diagnostics import Finding, SpecInvalid
from sitegen.report import Report

NAME = "toy"
REVISION = "2cba9e42aa026125f3ed06c6d98c1db82f7ca027"

#: A component around its rows: `toy_component("emb", "- {id: w, …}")`.
COMPONENT = """
id: {id}
title: {title}
kind: learned
purpose: {{text: A part., cites: [a]}}
reason: {{given: false, text: None., cites: [a]}}
"""


def toy_component(id: str, rows: Sequence[str] = (), *, title: str = "Part", more: str = "") -> str:
    """The YAML of a component; `rows` are flow mappings of accounting rows, `more` other top-level keys."""
    text = COMPONENT.format(id=id, title=title)
    if rows:
        text += "parameters:\n" + "".join(f"- {row}\n" for row in rows)
    return text + more


@dataclass(frozen=True)
class Toy:
    """A written toy project."""

    root: Path

    def findings(self) -> list[Finding]:
        """What the stages up to static say, pins aside."""
        try:
            return static.run(self.accounts())[0].findings
        except SpecInvalid as error:
            return error.findings

    def accounts(self) -> accounting.Accounts:
        return accounting.count(resolver.resolve(loader.load(self.root, NAME)))

    def verify(self, *levels: str, **options: Any) -> Report:
        return verifier.verify(self.root, NAME, levels=levels, force=True, **options)

    def codes(self) -> list[str]:
        return [finding.code for finding in self.findings()]


def write_toy(
    root: Path,
    components: Sequence[str],
    *,
    config: Mapping[str, Any],
    symbols: str = "{}",
    parts: Sequence[str] | None = None,
    places: str = "",
    small: Mapping[str, Any] | None = None,
    policies: str = "policies: {all: {title: All, scope: All of it., terms: [{places: [model]}]}}\n",
    table: Sequence[Mapping[str, Any]] = (),
    sources: str = "",
    documented: str = '["*"]',
    files: Mapping[str, str | bytes] | None = None,
) -> Toy:
    """Write the project; `parts` are the components of the one place `model` (all of `components` by default)."""
    ids = [line.partition(": ")[2] for text in components for line in text.splitlines() if line.startswith("id: ")]
    model = f"""
schema: 1
name: {NAME}
title: Toy
purpose: A toy.
config: config.json
implementation: {{harness: toy_harness, sources: [code]}}
documented: {documented}
configurations: [{{id: small, set: {json.dumps(dict(small or {}))}}}]
places:
- {{id: model, title: Model, path: "", parts: [{", ".join(ids if parts is None else parts)}]}}
{places}
"""
    if table:
        model += "table: {path: table.json, origin: made up}\n"
    written: dict[str, str | bytes] = {
        "mkdocs.yml": "site_name: toy\n",
        "config.json": json.dumps(dict(config)),
        "table.json": json.dumps(list(table)),
        "code/model.py": "def call():\n    return 1\n",
        f"spec/{NAME}/model.yml": model,
        f"spec/{NAME}/symbols.yml": f"symbols: {symbols}\n",
        f"spec/{NAME}/sources.yml": 'sources:\n  paper: {title: A paper, url: "https://example.org"}\n' + sources,
        f"spec/{NAME}/evidence.yml": "evidence: {a: {kind: external, claim: A., source: paper}}\n",
        f"spec/{NAME}/policies.yml": policies,
        **{f"spec/{NAME}/components/c{number}.yml": text for number, text in enumerate(components)},
        **(files or {}),
    }
    for name, content in written.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return Toy(root)
