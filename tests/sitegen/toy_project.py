"""A project of a few lines, for cases that need no more: components, a configuration, and a list of tensors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sitegen import accounting, loader, resolver, static, verifier, yamlfile
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


def load_data(file: Path) -> Any:
    """What a YAML file holds, as sitegen reads it."""
    return yamlfile.load(file.read_bytes(), file.name).data


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
        f"spec/{NAME}/evidence.yml": "evidence: {a: {kind: external, claim: A., source: paper, section: '1'}}\n",
        f"spec/{NAME}/policies.yml": policies,
        **{f"spec/{NAME}/components/c{number}.yml": text for number, text in enumerate(components)},
        **(files or {}),
    }
    for name, content in written.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return Toy(root)


# --- a project in which every field of the schema is used ----------------------------------------------

EVERYTHING = """
expression: {code: x, pin: p, source: file, lines: [1, 2]}
inputs: [{name: x, axes: [B, T, d], dtype: float32, text: In., component: mix}]
outputs: [{name: y, axes: [B, T, "2*d"], dtype: float32, text: Out.}]
views: [{tensor: w, axes: [d], text: A view.}]
values: {operation: mix, occurrence: 0, module: "", bind: {x: a, y: result}, vary: [x], kernel: true, places: [model],
  parameters: [x], flat: [y], configurations: [small]}
module: {path: mix, class: Mix}
steps: [{id: s, expr: "y = 2*x", text: Doubles., tex: "y = 2 x", main: true, indistinct: {m: r}}]
numerics: [{id: n, text: A number., by: ["step:s"], dtype: {x: float32}, constant: {eps: "1e-6"}}]
properties:
- {id: p, text: Holds., kind: identity, holds: "y = 2*x", regimes: [model],
   tolerance: {kind: fp32, value: 1.0, reason: r}}
- {id: q, text: Moves., kind: causal, edit: {value: "mix#0.result", add: 1.0},
   moves: ["mix#1.result"], still: ["mix#2.a"], module: "", configurations: [small]}
- {id: r, text: Refused., kind: error, raises: ValueError, says: no,
   trial: {config: {dim: 3}, options: {mode: plain}, given: ids, initialise: [{names: ["*.w"], below: dim}]}}
- id: t
  text: Swept.
  kind: sweep
  holds: "y = 2*x"
  points: [{label: one, trial: {}, error: 1.0}, {label: ten, trial: {}, error: 2.0}]
explanation: [{text: "Of {d} and `code`, $x$ and [x](code:p).", by: ["row:w"], cites: [a]}]
code: [{id: p, path: code/model.py, symbol: call, fragment: return 1, text: Code., main: true}]
upstream: [{source: file, lines: [1, 2], text: Lines.}]
evidence: [a]
uses: [other]
cases:
- {id: c, text: A case., call: ops.call, with: {x: [1.0, 2.0], n: {d: d}}, gives: {"result[0]": 1.0},
   instead: {text: Another., call: ops.other, with: {x: 1}, gives: {result: 2}}}
measurements: [{id: m, text: Measured., run: layer, with: {kind: window}}]
figures:
- id: f
  title: A figure
  text: Bars.
  record: record.json
  each: {T: [1, 2]}
  panels:
  - title: Panel
    unit: ms
    rows: {tokens: 1, kind: window}
    value: time
    bars: [{title: Bound, role: bound, count: "T*d"}, {title: Seen, row: {name: a}}, {title: Sum, at: ["a/{T}/b"]}]
"""
MEANINGS = "fields: {dim: {meaning: Width.}, eps: {meaning: Small., unread: No., by: [mix]}}\n"
RELATIONS = """kinds: {k: {title: Kind, mark: k}}
relations:
- {id: owns, title: Owners, mark: o, owns: has tables, owners: ids, within: more, components: [other]}
- {id: lends, title: Sources, mark: s, owns: lends, uses: reads, source_of: ids, users: ids, within: more}
"""
GOTCHAS = """title: Chapter
gotchas:
- {point: 1, title: A mistake, text: "Of {d}.", components: [mix], by: ["mix#case:c"]}
- {point: 2, title: Another, text: Not run., components: [other], unexecuted: No way.}
"""
CLAIMS = """claims:
- id: size
  title: Its size
  text: Published.
  published: {text: 256B, number: "256", unit: values, size: "1", cites: [a]}
  steps:
  - {id: rows, text: Rows., value: "2*d*d", unit: values, of: mix, by: ["mix#row:w"], cites: [a]}
  - {id: sum, text: Twice., value: "2*rows"}
  over: rows
  equals: "4*d*d"
- {id: cited, title: Cited, text: Not derived., published: {text: "d", formula: d, cites: [a]}, underived: No way.}
ledgers:
- id: all
  title: All
  text: Adds up.
  lines:
  - {id: first, text: First., add: d, of: mix, by: ["mix#row:w"]}
  - {id: last, text: Last., total: d}
figures:
- {id: seen, published: {text: "8", number: "8", cites: [a]}, text: Seen., explained: "all#last"}
- {id: odd, published: {text: "9", number: "9", cites: [a]}, text: Odd., unexplained: Nobody knows.}
"""
FAMILY = """title: Family
sections: [{id: parts, title: Parts, table: modules, show: ["mix", "mix#row:w", "evidence:a"]}]
"""
RECORD = {
    "rows": [{"T": t, "name": "a", "tokens": 1, "kind": "window", "time": 2.0} for t in (1, 2)],
    "a": {"1": {"b": 1.0}, "2": {"b": 2.0}},
}

ROW = '{id: w, tensor: w, axes: ["d", "c: 2*d"], slice: "[0:d]", count: "2*d*d", dtype: F32, text: w, each: {e: d}, stored: ["old.w"]}'
SYMBOLS = """{d: {tex: d, meaning: width, field: dim}, eps: {tex: e, meaning: small, field: eps},
B: {tex: B, meaning: batch}, T: {tex: T, meaning: positions}, x: {tex: x, meaning: in, upstream: x_in, report: x},
y: {tex: y, meaning: out}, R: {tex: R, meaning: rows, by_layer: {layers: ids, values: rows}}}"""
SOURCE = f"  file: {{title: A file, repository: a/b, revision: {'0' * 40}, path: x.py, lines: 9, sha256: abc}}\n"
SOURCE += "checkouts: {a/b: copy}\n"
POLICIES = """
policies:
  all: {title: All, scope: "All {d}.", published: 32,
    terms: [{places: [model], components: [mix], layers: 0-3, share: [1, d], sign: 1, text: t}]}
  less: {title: Less, scope: Without., terms: [{places: [model]}, {components: [mix], sign: -1, text: t}], 
    evidence: [a]}
"""
ENTRY = {"name_pattern": "layers.{i}.w", "shape": [8, 16], "stored_shape": [8, 16], "dtype": "F32", "is_scale": False,
         "instances": 2, "layers": [0, 1]}  # fmt: skip


def write_everything(root: Path) -> Toy:
    """A toy that uses every field; its rows do not fit its table, so that later stages have something to say."""
    return write_toy(
        root,
        [toy_component("mix", [ROW], more=EVERYTHING), toy_component("other")],
        config={"dim": 8, "eps": 1e-6, "ids": [0], "rows": [4], "tensors": [["w", ["dim", "2*dim"], "F32"]]},
        symbols=SYMBOLS,
        sources=SOURCE,
        table=[ENTRY],
        policies=POLICIES,
        places='- {id: more, title: Layers, layers: 0-1, repeat: 2, path: "layers.{i}", parts: [], symbols: {d: 3}, '
        "text: T., kind: k}\n"
        "- {id: more/inner, title: Layer, parent: more, parts: []}\n" + RELATIONS,
        files={
            "record.json": json.dumps(RECORD),
            f"spec/{NAME}/config.yml": MEANINGS,
            f"spec/{NAME}/gotchas-all.yml": GOTCHAS,
            f"spec/{NAME}/claims.yml": CLAIMS,
            f"spec/{NAME}/family.yml": FAMILY,
        },
    )
