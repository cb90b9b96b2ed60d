"""P17 to P19: kernels without a GPU, caches, and an orientation that a plausible check gets wrong."""

from __future__ import annotations

import importlib.util
import linecache
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from project_copy import ROOT
from public_counts import row
from toy_project import toy_component, write_toy

from sitegen import verifier
from sitegen.probe import cpu
from sitegen.probe.harness import keyed_by_content
from sitegen.probe.result import LevelResult

torch = pytest.importorskip("torch")

# --- P17 ---------------------------------------------------------------------------------------------


def p17_a_kernel_that_did_not_run_is_not_verified(folder: Path) -> None:
    more = "\nvalues: {operation: mix, bind: {}, kernel: true}\n"
    toy = write_toy(
        folder, [toy_component("c", [row("w", "[2]", "2")], more=more)], config={"tensors": [["w", [2], "F32"]]}
    )
    located = toy.accounts().model.components["c"]

    def state(check_kernel: Any) -> tuple[str, str]:
        result = LevelResult("cpu")
        cpu.kernel(located, SimpleNamespace(check_kernel=check_kernel), result, {})
        key = ("c", "kernel")
        if key in result.passed:
            return "passed", result.passed[key]
        return ("not run", result.skipped[key]) if key in result.skipped else ("failed", result.findings[0].text())

    def raising(error: Exception) -> Any:
        def check(name: str, target: str) -> list[dict[str, Any]]:
            raise error

        return check

    good = {"case": "8 rows", "error": 1e-7, "passed": True, "microseconds": None, "bytes": None, "message": ""}
    assert state(lambda name, target: [good]) == ("passed", "target c, 1 cases, largest difference 1e-07")
    assert state(raising(ImportError("no module tilelang"))) == (
        "not run",
        "TileLang cannot be imported: no module tilelang",
    )
    assert state(lambda name, target: [{**good, "passed": False, "error": 0.5}])[0] == "failed"
    assert state(raising(KeyError("mix")))[0] == "failed", "a kernel that the spec claims and nobody wrote"
    pytest.importorskip("tilelang")
    from public_kernels import reduce_on_fragments

    said, reason = state(lambda name, target: [reduce_on_fragments()])
    assert said == "not run" and reason.startswith("the host compiler failed"), reason
    report = toy.verify("meta")
    kernels = {o.statement: o for o in report.outcomes if o.statement.startswith("kernel")}
    assert {o.state for o in kernels.values()} == {"not_run"} and all(o.detail for o in kernels.values())
    assert report.exit_code == 0
    if not torch.cuda.is_available():
        required = toy.verify("meta", require=["gpu"])
        assert required.exit_code == 3 and "no CUDA device" in required.runs["gpu"].reason
    script = "import sys, sitegen.cli, sitegen.verifier; print(sorted({'tilelang', 'torch'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"


# --- P18 ---------------------------------------------------------------------------------------------


def load(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def p18_caches_are_keyed_by_content(folder: Path) -> None:
    pytest.importorskip("tilelang")
    from public_kernels import BODY

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILELANG_CACHE_DIR", str(folder / "cache"))
        patch.setenv("HOME", str(folder / "home"))
        source = folder / "kernel_source.py"
        source.write_text(BODY, "utf-8")
        keyed_by_content([source])
        x, y = torch.zeros(8), torch.empty(8)
        seen = []
        for module, eps in ((load(source, "before"), 1e-6), (load(source, "before"), 1e-2)):
            module.build(eps)(x, y)
            seen.append(float(y[0]))
        stamp = source.stat().st_mtime
        source.write_text(BODY.replace("x[i] + eps", "x[i] - eps"), "utf-8")
        os.utime(source, (stamp, stamp))
        linecache.clearcache()  # a new process remembers no source
        load(source, "after").build(1e-2)(x, y)
        seen.append(float(y[0]))
        assert seen == pytest.approx([1e-6, 1e-2, -1e-2], rel=1e-5)
        assert any((folder / "cache").rglob("*")) and not any((folder / "home").rglob("*.so"))
    toy = write_toy(
        folder / "toy", [toy_component("c", [row("w", "[2]", "2")])], config={"tensors": [["w", [2], "F32"]]}
    )
    assert not verifier.verify(toy.root, "toy", levels=["meta"]).cached
    assert verifier.verify(toy.root, "toy", levels=["meta"]).cached
    code = toy.root / "code/model.py"
    stamp = code.stat().st_mtime
    code.write_text(code.read_text("utf-8").replace("return 1", "return 2"), "utf-8")
    os.utime(code, (stamp, stamp))
    assert not verifier.verify(toy.root, "toy", levels=["meta"]).cached, "same name, size and time, another content"


# --- P19 ---------------------------------------------------------------------------------------------


def p19_the_combination_runs_over_its_first_index(folder: Path) -> None:
    """Stream means are kept by the wrong orientation: only the columns are normalised last."""
    del folder
    from reference_impl.ops import hc_combination, hc_write

    n, width, tokens = 4, 16, 64
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(tokens, n, width, generator=generator)
    nothing = torch.zeros(tokens, width)

    def orientations(deviation: float) -> tuple[Any, Any, Any]:
        mixes = deviation * torch.randn(tokens, 2 * n + n * n, generator=generator)
        combination = hc_combination(mixes, torch.ones(3), torch.zeros(2 * n + n * n), n=n, iters=20, eps=1e-6)
        return hc_write(x, nothing, torch.zeros(tokens, n), combination), combination @ x, combination

    def mean_kept(out: Any) -> float:
        return float((out.mean(1) - x.mean(1)).abs().max())

    right, wrong, combination = orientations(3.0)
    assert torch.allclose(right, (combination.unsqueeze(-1) * x.unsqueeze(-2)).sum(1), atol=1e-5)
    assert float((right - wrong).abs().max()) > 2, "on sharp logits the two differ by units"
    assert mean_kept(wrong) < 1e-5 and mean_kept(right) > 1e-3, "the identity prefers the wrong orientation"
    assert float((combination.sum(-2) - 1).abs().max()) < 1e-5 < 1e-3 < float((combination.sum(-1) - 1).abs().max())
    right, wrong, _ = orientations(0.02)
    assert mean_kept(right) < 1e-5 and mean_kept(wrong) < 1e-5, "on mild logits the identity is blind"


RUNS = {
    "P17": p17_a_kernel_that_did_not_run_is_not_verified,
    "P18": p18_caches_are_keyed_by_content,
    "P19": p19_the_combination_runs_over_its_first_index,
}
