"""A small project to mutate: two operations, two components, every kind of statement that a spec can make."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MODEL = "scaled"

OPS = '''"""Two operations."""

import torch

LIMIT = 2.5


def scaled(x, gain, shift, *, eps):
    """[..., d] x [d] x [d] -> [..., d]: g x / sqrt(mean(x^2) + eps) + s."""
    root = torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    return gain * (x * root) + shift


def capped(x, start: int):
    """[..., d] -> [..., d - start]: all from `start` on, at most LIMIT."""
    kept = x[..., start:]
    top = torch.full_like(kept, LIMIT)
    return torch.where(kept > LIMIT, top, kept)
'''

HARNESS = '''"""The harness of the small model."""

import inspect
from typing import Any, NamedTuple

import torch

from . import ops

OPERATIONS = ("scaled", "capped")


class TensorFact(NamedTuple):
    name: str
    shape: tuple
    dtype: str
    is_scale: bool


class Seen(NamedTuple):
    module: str
    operation: str
    occurrence: int
    values: dict


class Edit(NamedTuple):
    module: str
    operation: str
    occurrence: int
    field: str
    add: float
    scale: float


def tensors(config):
    return [TensorFact("both", (2 * config["dim"],), "F32", False)], [""]


def build(config, *, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    both = torch.randn(2 * config["dim"], generator=generator, dtype=torch.float64)
    both = both.float() if dtype == "model" else both
    return {"both": both, "dim": config["dim"], "eps": config["eps"], "start": config["start"]}


def record(net, *, batch, positions, seed, operations, edits=()):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(batch, positions, net["dim"], generator=generator, dtype=torch.float64).to(net["both"].dtype)
    gain, shift = net["both"][: net["dim"]], net["both"][net["dim"] :]
    y = ops.scaled(x, gain, shift, eps=net["eps"])
    seen = [Seen("", "scaled", 0, {"x": x, "gain": gain, "shift": shift, "eps": net["eps"], "result": y})]
    for edit in edits:
        y = y * edit.scale + edit.add
    z = ops.capped(y, net["start"])
    seen.append(Seen("", "capped", 0, {"x": y, "start": net["start"], "result": z}))
    return [s for s in seen if s.operation in operations]


def operation(name):
    op = getattr(ops, name)

    def call(**inputs):
        return {"result": op(**inputs)}

    call.__signature__ = inspect.signature(op)
    return call


def has_operation(name):
    return name in OPERATIONS


def evaluate(name: str, arguments: dict) -> dict:
    call = {n: torch.tensor(v, dtype=torch.float64) if isinstance(v, list) else v for n, v in arguments.items()}
    return {"result": getattr(ops, name)(**call)}


def check_kernel(name: str, target: str) -> Any:
    raise KeyError(name)
'''

FILES = {
    "mkdocs.yml": "site_name: Scaled\n",
    "scaled_model/__init__.py": "",
    "scaled_model/ops.py": OPS,
    "scaled_model/harness.py": HARNESS,
    "scaled_model/config.json": '{"dim": 12, "eps": 0.001, "start": 1}\n',
    f"spec/{MODEL}/tensors.json": json.dumps(
        [
            {
                "name_pattern": "both",
                "layers": [],
                "instances": 1,
                "shape": [24],
                "stored_shape": [24],
                "dtype": "F32",
                "is_scale": False,
            }
        ]
    ),
    f"spec/{MODEL}/model.yml": f"""\
schema: 1
name: {MODEL}
title: A small model
purpose: Scales and caps.
config: scaled_model/config.json
implementation: {{harness: scaled_model.harness, sources: [scaled_model]}}
table: {{path: spec/{MODEL}/tensors.json, origin: Written by hand.}}
configurations:
- {{id: small, dtype: float64, batch: 2, positions: 3, seed: 4, set: {{dim: 7}}}}
- {{id: small-model, dtype: model, batch: 3, positions: 2, seed: 5, set: {{dim: 8}}}}
places:
- {{id: model, title: Model, path: "", parts: [scale, cap]}}
""",
    f"spec/{MODEL}/symbols.yml": """\
symbols:
  B: {tex: B, meaning: batch}
  T: {tex: T, meaning: positions}
  d: {tex: d, meaning: width, field: dim}
  D: {tex: D, meaning: width of what is capped, value: dim - start}
  eps: {tex: '\\epsilon', meaning: guard, field: eps}
  f: {tex: f, meaning: feature}
  x: {tex: x, meaning: input}
  g: {tex: g, meaning: gain}
  s: {tex: s, meaning: shift}
  y: {tex: y, meaning: scaled values}
  z: {tex: z, meaning: capped values}
""",
    f"spec/{MODEL}/sources.yml": "sources:\n  paper: {title: A paper, url: 'https://example.org/paper'}\n",
    f"spec/{MODEL}/evidence.yml": """\
evidence:
  shown: {kind: direct, claim: The paper scales and caps., source: paper, section: '1'}
""",
    f"spec/{MODEL}/policies.yml": """\
policies:
  all:
    title: All parameters, and half of them again
    scope: Counts both tensors, 24 values, and half of each.
    terms: [{components: [scale]}, {places: [model], share: [1, 2]}]
    published: 36
""",
    f"spec/{MODEL}/claims.yml": """\
claims:
- id: size
  title: 24 values
  text: Gain and shift.
  published: {text: "24", number: "24", rounding: exact, cites: [shown]}
  equals: "{table:elements}"
  steps: [{id: values, text: both, value: "{row:scale:gain} + {row:scale:shift}", by: ["scale#account"]}]
""",
    f"spec/{MODEL}/components/both.yml": """\
components:
- id: scale
  title: Scale
  kind: learned
  purpose: {text: Divides by the root mean square., by: ["step:scale"]}
  inputs:
  - {name: x, axes: [B, T, d], dtype: float32, text: input}
  - {name: g, axes: [d], dtype: float32, text: gain}
  - {name: s, axes: [d], dtype: float32, text: shift}
  outputs: [{name: y, axes: [B, T, d], dtype: float32, text: result}]
  parameters:
  - {id: gain, tensor: both, slice: "[0:d]", axes: [d], count: d, dtype: F32, text: the gain}
  - {id: shift, tensor: both, slice: "[d:2*d]", axes: [d], count: 2*d - d, dtype: F32, text: the shift}
  values: {operation: scaled, bind: {x: x, g: gain, s: shift, y: result}, vary: [x]}
  steps: [{id: scale, expr: "y[f] = g[f]*x[f]/sqrt(mean(f: x[f]**2) + eps) + s[f]", text: the scaled values, main: true}]
  numerics: [{id: guard, text: "The guard is `1e-3`.", by: ["step:scale"], constant: {eps: "1e-3"}}]
  properties:
  - {id: size, kind: bound, text: The mean square is at most one., holds: "mean(f: ((y[f] - s[f])/g[f])**2) <= 1", tolerance: {kind: fp64}}
  - {id: changes, kind: control, text: It changes its input., holds: "y[f] = x[f]", regimes: [ordinary], margin: 0.01}
  reason: {given: true, text: The paper says so., cites: [shown]}
  code: [{id: operation, path: scaled_model/ops.py, symbol: scaled, main: true}]
  evidence: [shown]
- id: cap
  title: Cap
  kind: computed
  purpose: {text: Cuts off large values., by: ["case:cut"]}
  inputs: [{name: y, axes: [B, T, d], dtype: float32, text: scaled values, component: scale}]
  outputs: [{name: z, axes: [B, T, D], dtype: float32, text: capped values}]
  values: {operation: capped, bind: {y: x, z: result}, vary: [y]}
  steps: [{id: cap, expr: "z[f] = min(y[f + d - D], 2.5) for f = 1..D", text: at most the limit, main: true}]
  cases:
  - {id: cut, text: The first value is left out and a large one is cut., call: capped, with: {x: [1.0, 2.0, 9.0], start: {symbol: d - D}}, gives: {result: [2.0, 2.5]}}
  reason: {given: true, text: The paper says so., cites: [shown]}
  code: [{id: operation, path: scaled_model/ops.py, symbol: capped, fragment: "top = torch.full_like(kept, LIMIT)", main: true}]
  evidence: [shown]
""",
}


@dataclass(frozen=True)
class Project:
    """The small project in a folder; `edit` changes one text that must occur exactly once."""

    root: Path

    @classmethod
    def make(cls, folder: Path, *edits: tuple[str, str, str]) -> Project:
        """A fresh project whose pins are recorded; each edit is (file, old, new)."""
        project = cls(folder)
        for file, text in FILES.items():
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        for edit in edits:
            project.edit(*edit)
        code, said = project.run("repin", "--write")
        assert code == 0, said
        return project

    def edit(self, file: str, old: str, new: str) -> None:
        path = self.root / file
        text = path.read_text("utf-8")
        assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times in {file}"
        path.write_text(text.replace(old, new), "utf-8")

    def run(self, *arguments: str) -> tuple[int, Any]:
        """The command line in a process of its own; -> exit code, parsed JSON or text."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "sitegen", "--root", str(self.root), *arguments]
        done = subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert "Traceback" not in done.stderr, done.stderr
        try:
            return done.returncode, json.loads(done.stdout)
        except ValueError:
            return done.returncode, done.stdout + done.stderr
