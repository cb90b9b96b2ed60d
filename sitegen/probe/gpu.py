# On a CUDA device: the kernels of the components, at edge shapes and at released widths, against their
# plain twins, with time and bytes.  Elsewhere the level is not run, and its committed facts are shown.
"""The gpu level."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import ModuleType

from sitegen import facts
from sitegen.diagnostics import Finding
from sitegen.loader import Located
from sitegen.probe.result import LevelResult
from sitegen.resolver import Model


def run(model: Model, ids: list[str], harness: ModuleType, progress: Callable[[str], None]) -> LevelResult:
    """Compare every kernel that a component names with its plain twin on the device."""
    import torch

    properties = torch.cuda.get_device_properties(0)
    result = LevelResult("gpu", device=torch.cuda.get_device_name(0))
    cache = model.sources.root / ".sitegen" / "tilelang" / facts.code_digest(model.sources)
    os.environ.setdefault("TILELANG_CACHE_DIR", str(cache))
    done: dict[str, list[dict]] = {}
    for id in ids:
        component = model.component(id)
        measure(model.components[id], harness, result, progress)
        if component.values is None or not component.values.kernel:
            continue
        operation = component.values.operation
        if operation not in done:
            progress(f"gpu: {operation}")
            done[operation] = harness.check_kernel(operation, "cuda")
        where = model.components[id].at("values", "kernel")
        for row in done[operation]:
            if not row["passed"]:
                result.fail(
                    Finding(
                        "kernel-mismatch",
                        f"the kernel disagrees with its plain twin on the device ({row['case']})",
                        where,
                        expected="within the rounding bound",
                        actual=f"largest difference {row['error']} {row.get('message') or ''}".strip(),
                        hint="the plain operation is the definition",
                        component=id,
                        statement="kernel-gpu",
                    )
                )
        result.hold(id, "kernel-gpu", summary(done[operation]))
    result.versions = {"cuda": str(torch.version.cuda), "memory": f"{properties.total_memory // 2**30} GiB"}
    return result


def measure(located: Located, harness: ModuleType, result: LevelResult, progress: Callable[[str], None]) -> None:
    """Run the component's measurements: each must agree with the plain operations, and says what it took."""
    for number, measurement in enumerate(located.component.measurements):
        about = {"component": located.component.id, "statement": f"measurement:{measurement.id}"}
        progress(f"gpu: {located.component.id}, {measurement.id}")
        try:
            seen = harness.measure(measurement.run, measurement.arguments)
        except KeyError as error:
            where = located.at("measurements", number, "run")
            message = f"the implementation has no measurement {error.args[0]!r}"
            result.fail(Finding("unknown-reference", message, where, **about))
            continue
        if seen["passed"]:
            result.hold(*about.values(), seen["detail"])
        else:
            result.fail(
                Finding(
                    "kernel-mismatch",
                    "the kernels disagree with the plain operations on the device",
                    located.at("measurements", number, "run"),
                    expected=seen["expected"],
                    actual=seen["actual"],
                    hint="the plain operations are the definition",
                    **about,
                )
            )


def summary(rows: list[dict]) -> str:
    """What a page says: how many cases, and time and bandwidth of the largest released one."""
    timed = [row for row in rows if row.get("microseconds")]
    text = f"{len(rows)} cases"
    if timed:
        largest = timed[-1]
        rate = largest["bytes"] / largest["microseconds"] / 1e6
        text += f"; {largest['case']}: {largest['microseconds']:.1f} µs, {rate:.2f} TB/s of its inputs and results"
    return text
