"""`python -m reference_impl.kernels.check`: every kernel against its definition, on the host or on a GPU.

Prints one line per case and ends with exit code 1 if any twin misses its tolerance. On CUDA it also times the cases of
the released widths: median microseconds of a call inside a CUDA graph, and the bytes that the operation must move.
Needs torch and tilelang, nothing else.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import importlib
import json
import multiprocessing
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tilelang
import torch
from torch import Tensor

from .cases import Case, draw, edge_cases, released_cases
from .comparison import EXACT, as_tuple, compare
from .released import released_programs
from .targets import HOST, is_host, target_key

HOST_TOKENS = (3,)
CUDA_TOKENS = (1, 64, 1000, 4096)
GRAPH_CALLS = 20  # calls a graph, so that its launch does not count
REPLAYS = 11


@dataclasses.dataclass(frozen=True)
class Row:
    """One case's outcome, as a line and in the JSON."""

    op: str
    case: str
    passed: bool
    error: float | None  # largest absolute difference from the definition
    worst: float | None  # largest error over its tolerance
    unequal: int | None  # values that differ from the definition in the inputs' own type
    values: int
    microseconds: float | None
    bytes: int
    timing: str | None  # "graph" (warm L2), or "calls" where the call cannot be captured
    message: str | None = None

    def line(self) -> str:
        if self.message is not None:
            return f"MISS {self.op:18} {self.case:34} {self.message}"
        text = (
            f"{'ok  ' if self.passed else 'MISS'} {self.op:18} {self.case:34} error {self.error:.2e} "
            f"({self.worst:.3f} of tolerance), {self.unequal} of {self.values} values differ"
        )
        if self.microseconds is not None:
            text += f", {self.microseconds:.1f} us, {self.bytes / self.microseconds / 1e6:.3f} TB/s"
        return text


def twin(op: str) -> Callable[..., Any]:
    return getattr(importlib.import_module(f".{op}", __package__), op)


def moved_bytes(case: Case, args: tuple[Tensor, ...], results: tuple[Tensor, ...]) -> int:
    """-> bytes that the operation must read and write: each argument and result once, of rows only the listed ones."""
    sizes = [t.numel() * t.element_size() for t in (*args, *results)]
    if case.op == "sparse_attention":
        kv, slots = args[1], args[2]
        listed = int((slots >= 0).sum())
        sizes[1] = listed * kv.shape[-1] * kv.element_size()
    return sum(sizes)


def median_microseconds(call: Callable[[], Any]) -> tuple[float, str]:
    """-> GPU time of one call, and how it was taken."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            for _ in range(GRAPH_CALLS):
                call()
        run, timing = graph.replay, "graph"
    except Exception:  # whatever keeps a launch from being captured; its time is then that of plain calls
        torch.cuda.synchronize()

        def run() -> None:
            for _ in range(GRAPH_CALLS):
                call()

        timing = "calls"
    times = []
    for _ in range(REPLAYS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / GRAPH_CALLS)
    return statistics.median(times[1:]), timing


def check_case(case: Case, target: Any, timed: bool) -> Row:
    device = "cpu" if is_host(target_key(target)) else "cuda"
    args, constants = draw(case, device)
    function = twin(case.op)
    try:
        results = function(*args, **constants, target=target)
        comparison = compare(case.op, args, constants, results)
        microseconds, timing = None, None
        if timed:
            microseconds, timing = median_microseconds(lambda: function(*args, **constants, target=target))
    except Exception as error:  # one kernel that does not compile or launch must not hide the others' outcome
        message = f"{type(error).__name__}: {str(error).strip().splitlines()[-1] if str(error).strip() else ''}"
        return Row(case.op, case.label, False, None, None, None, 0, None, 0, None, message)
    return Row(
        op=case.op, case=case.label, passed=comparison.passed, error=comparison.error, worst=comparison.worst,
        unequal=comparison.unequal, values=comparison.values, microseconds=microseconds,
        bytes=moved_bytes(case, args, as_tuple(results)), timing=timing,
    )  # fmt: skip


def cuda_target() -> dict[str, str]:
    """-> the target of the first GPU, with the accelerated instruction set where the architecture has one."""
    major, minor = torch.cuda.get_device_capability()
    return {"kind": "cuda", "arch": f"sm_{major}{minor}" + ("a" if major >= 9 else "")}


def compile_released(name: str, key: str) -> tuple[str, float]:
    """-> the program's name and the seconds its compilation took; the kernel stays in TileLang's cache on disk."""
    tilelang.set_log_level("ERROR")
    start = time.perf_counter()
    released_programs(key)[name].compiled(key)
    return name, time.perf_counter() - start


def check_edges(op: str, target: Any) -> list[Row]:
    """-> the rows of one operation's small cases."""
    tilelang.set_log_level("ERROR")
    return [check_case(case, target, timed=False) for case in edge_cases() if case.op == op]


def spread(function: Callable[..., Any], work: list[Any], constant: Any, jobs: int) -> Iterator[Any]:
    """-> function(item, constant) for each item, in order; in `jobs` processes, as compiling is most of the time."""
    if jobs <= 1:
        yield from (function(item, constant) for item in work)
        return
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(jobs, mp_context=spawn) as pool:
        yield from pool.map(function, work, [constant] * len(work))


def versions(target: Any) -> dict[str, Any]:
    device = platform.processor() or platform.machine()
    if not is_host(target_key(target)):
        device = torch.cuda.get_device_name()
    return {
        "target": target, "device": device, "python": platform.python_version(),
        "torch": torch.__version__, "tilelang": tilelang.__version__,
    }  # fmt: skip


def arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m reference_impl.kernels.check", description=__doc__)
    parser.add_argument("--target", choices=("c", "cuda"), required=True, help="c: this machine's C++ compiler")
    parser.add_argument("--op", action="append", help="only this operation (repeatable)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there too")
    jobs = max(1, min(16, (os.cpu_count() or 2) - 2))
    parser.add_argument("--jobs", type=int, default=jobs, help=f"processes that compile (here {jobs})")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    options = arguments(argv)
    tilelang.set_log_level("ERROR")
    if options.target == "cuda" and not torch.cuda.is_available():
        print("kernels.check: --target cuda, but torch sees no GPU; use --target c here", file=sys.stderr)
        return 3
    target = HOST if options.target == "c" else cuda_target()
    timed = options.target == "cuda"
    names = list(EXACT)
    if options.op:
        unknown = sorted(set(options.op) - set(names))
        if unknown:
            print(f"kernels.check: no operation {', '.join(unknown)}; known: {', '.join(names)}", file=sys.stderr)
            return 2
        names = [name for name in names if name in options.op]
    rows = []
    for edges in spread(check_edges, names, target, options.jobs):
        for row in edges:
            print(row.line(), flush=True)
        rows += edges
    compile_seconds = {}
    if timed:
        key = target_key(target)
        programs = [name for name in released_programs(key) if name.split()[0] in names]
        compile_seconds = dict(spread(compile_released, programs, key, options.jobs))
        print(f"compiled {len(programs)} kernels of the released widths, {sum(compile_seconds.values()):.0f} s of work")
    for case in released_cases(CUDA_TOKENS if timed else HOST_TOKENS):
        if case.op in names:
            rows.append(check_case(case, target, timed))
            print(rows[-1].line(), flush=True)
    missed = sum(not row.passed for row in rows)
    if options.json:
        report = {
            "schema": 1, **versions(target), "passed": len(rows) - missed, "failed": missed,
            "compile_seconds": compile_seconds, "cases": [dataclasses.asdict(row) for row in rows],
        }  # fmt: skip
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    print(f"{len(rows)} cases, {missed} missed")
    return 1 if missed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
