"""`python benchmarks/seam.py`: the seam on a GPU beside a copy of the same bytes, plain PyTorch and what PyPI offers.

Correctness comes first; then every form on cold data (its buffers, weights too, rotated through 200 MB) and on warm
data, as the median of CUDA graph replays. What cannot run is skipped with its reason. Bytes are read from the hardware
counters where the host allows it. The JSON is written anew after every row, so that a stopped run keeps its results.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import datetime
import io
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from seam_rivals import Rival, copy_kernel, rival_error, rivals
from seam_timing import launches, median_microseconds, sets_for

from reference_impl.kernels.check import cuda_target
from reference_impl.kernels.seam import hc_seam
from reference_impl.kernels.seam_check import SeamInputs, agreement, draw
from reference_impl.kernels.sinkhorn_gpu import hc_split_sinkhorn

WIDTH, STREAMS = 5120, 4
TOKENS = (1, 16, 64, 512, 4096, 32768)
CHECKED = (1, 13, 64, 137, 4097)
COUNTED = (4096, 32768)  # tokens at which bytes are counted
CONSTANTS = {"n": STREAMS, "iters": 20, "hc_eps": 1e-6, "norm_eps": 1e-20}
WEIGHT_BYTES = 24 * STREAMS * WIDTH * 4 + 2 * WIDTH
SPLIT_BYTES = 2 * 24 * 4


def token_bytes(tokens: int) -> int:
    """Bytes of the single-pass form: (2n+2) d values of 2 bytes and 48 coefficients of 4."""
    return tokens * ((2 * STREAMS + 2) * WIDTH * 2 + SPLIT_BYTES)


@dataclasses.dataclass
class Report:
    """The rows so far; each is printed and written at once."""

    path: Path | None
    head: dict[str, Any]
    rows: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    def add(self, **row: Any) -> None:
        self.rows.append({key: value for key, value in row.items() if value is not None})
        text = " ".join(
            f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()
        )
        print(text, flush=True)
        self.save()

    def save(self) -> None:
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps({**self.head, "rows": self.rows}, indent=1) + "\n")

    def copy_time(self, tokens: int, cold: bool) -> float | None:
        for row in self.rows:
            if row["name"] == "copy" and row["T"] == tokens and row["cold"] == cold:
                return row["us"]
        return None


def copy_rows(report: Report, cold: bool) -> None:
    """The yardstick: as many bytes read and written as the single-pass form needs, by the faster of two copies."""
    copies = {"memory copy": lambda source, to: to.copy_(source)}
    try:
        copies["kernel"] = copy_kernel()
    except ImportError as error:
        print(f"copy by a kernel: not run: {error}")
    for tokens in TOKENS:
        half = token_bytes(tokens) // 2 // 16 * 16
        sets = sets_for(2 * half, cold)
        source = torch.empty(sets, half // 4, dtype=torch.int32, device="cuda").random_()
        to = torch.empty_like(source)
        us = min(
            median_microseconds(lambda i, copy=copy, to=to, source=source: copy(source[i], to[i]), sets)
            for copy in copies.values()
        )
        report.add(name="copy", T=tokens, us=us, cold=cold, percent_of_copy=100.0, launches=1, gbs=2 * half / us / 1e3)
        if cold and tokens == max(TOKENS):
            report.head["copy_gbs"] = round(2 * half / us / 1e3)


def seam_row(
    report: Report, name: str, run: Callable[[SeamInputs], Any], tokens: int, cold: bool, **found: Any
) -> None:
    sets = sets_for(token_bytes(tokens) + WEIGHT_BYTES, cold)
    inputs = [draw(tokens, WIDTH, seed=i, device="cuda") for i in range(sets)]
    us = median_microseconds(lambda i: run(inputs[i]), sets)
    copy = report.copy_time(tokens, cold)
    report.add(
        name=name, T=tokens, us=us, cold=cold, percent_of_copy=100 * copy / us if copy else None,
        times_copy=us / copy if copy else None, launches=launches(lambda i: run(inputs[0])) if cold else None, **found,
    )  # fmt: skip
    torch.cuda.empty_cache()


def split_row(report: Report, name: str, run: Callable[..., Any], tokens: int, cold: bool, **found: Any) -> None:
    sets = min(200, sets_for(tokens * SPLIT_BYTES, cold)) if cold else 1
    mixes = torch.randn(sets, tokens, 24, device="cuda")
    scale, base = torch.rand(sets, 3, device="cuda") + 0.5, torch.randn(sets, 24, device="cuda")
    us = median_microseconds(lambda i: run(mixes[i], scale[i], base[i]), sets)
    report.add(name=name, T=tokens, us=us, cold=cold, **found)


def ours(target: Any) -> Callable[[SeamInputs], Any]:
    return lambda inputs: hc_seam(*inputs, **CONSTANTS, target=target)


def ours_split(target: Any) -> Callable[..., Any]:
    constants = {"n": STREAMS, "iters": CONSTANTS["iters"], "eps": CONSTANTS["hc_eps"]}
    return lambda mixes, scale, base: hc_split_sinkhorn(mixes, scale, base, **constants, target=target)


def split_error(target: Any, tokens: int) -> float:
    from reference_impl import ops
    from reference_impl.kernels.seam_check import relative

    mixes, scale, base = (torch.randn(*shape, device="cuda") for shape in ((tokens, 24), (3,), (24,)))
    got = ours_split(target)(mixes, scale, base)
    exact = ops.hc_split_sinkhorn(
        mixes.double(), scale.double(), base.double(), n=STREAMS, iters=CONSTANTS["iters"], eps=CONSTANTS["hc_eps"]
    )
    return max(relative(own, wide) for own, wide in zip(got, exact, strict=True))


def checked(target: Any) -> dict[int, dict[str, float]]:
    """-> errors of the seam by tokens. SystemExit if one is out of bounds: a wrong kernel is not timed."""
    found = {}
    for tokens in sorted({*CHECKED, *TOKENS}):
        inputs = draw(tokens, WIDTH, seed=tokens, device="cuda")
        agreed = agreement(inputs, ours(target)(inputs), **CONSTANTS)
        print(f"agreement T {tokens}: {agreed}", flush=True)
        if not agreed.passed:
            raise SystemExit(f"benchmarks/seam.py: the seam is wrong for {tokens} tokens: {agreed}")
        found[tokens] = {
            "coefficient_error": agreed.coefficient_error, "ulp_flips": agreed.stream_flips,
            "stream_ulps": agreed.stream_ulps, "normed_ulps": agreed.normed_ulps,
        }  # fmt: skip
        torch.cuda.empty_cache()
    return found


def counted_bytes(tokens: int) -> dict[str, float] | str:
    """-> bytes that a seam moved through device memory by the hardware counters, or why they cannot be read."""
    if shutil.which("ncu") is None:
        return "ncu is not installed"
    metrics = "dram__bytes_read.sum,dram__bytes_write.sum"
    command = [
        "ncu", "--clock-control", "none", "--csv", "--print-units", "base", "-k", "regex:seam", "--launch-skip", "2",
        "--launch-count", "1", "--metrics", metrics, sys.executable, __file__, "--once", str(tokens),
    ]  # fmt: skip
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=90)
    except subprocess.TimeoutExpired:
        return "ncu took more than 90 s"
    lines = [line for line in run.stdout.splitlines() if line.startswith('"')]
    values = {row["Metric Name"]: row["Metric Value"] for row in csv.DictReader(io.StringIO("\n".join(lines)))}
    if len(values) < 2:
        return f"ncu read no counters: {(run.stdout + run.stderr).strip().splitlines()[-1:]}"
    read, written = (float(values[name].replace(",", "")) for name in metrics.split(","))
    return {
        "read": read, "written": written, "bound": token_bytes(tokens) + WEIGHT_BYTES,
        "of_bound": (read + written) / (token_bytes(tokens) + WEIGHT_BYTES),
    }  # fmt: skip


def rival_rows(report: Report, rival: Rival, seconds: float) -> None:
    """A rival's rows, until its share of the time is used up."""
    start = time.monotonic()
    for tokens in TOKENS:
        if rival.reason is None and time.monotonic() - start > seconds:
            rival = dataclasses.replace(rival, reason=f"its {seconds:.0f} s were used up before {tokens} tokens")
        if rival.reason is not None:
            report.add(name=rival.name, T=tokens, skipped=rival.reason)
            continue
        try:
            error = rival_error(rival, draw(min(tokens, 1024), WIDTH, device="cuda"), CONSTANTS)
            seam_row(report, rival.name, rival.seam, tokens, cold=True, coefficient_error=error)
            if rival.split is not None:
                split_row(report, f"{rival.name}-sinkhorn", rival.split, tokens, cold=True)
        except Exception as error:  # one that fails is named with its error, the others still run
            torch.cuda.synchronize()
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            report.add(name=rival.name, T=tokens, skipped=reason)
        torch.cuda.empty_cache()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="where the record goes")
    parser.add_argument("--rival-seconds", type=float, default=60, help="time for each rival")
    parser.add_argument("--once", type=int, metavar="T", help="run the seam three times and end, for a profiler")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("benchmarks/seam.py: not run: torch sees no CUDA device")
        return 3
    target = cuda_target()
    if options.once:
        inputs = draw(options.once, WIDTH, device="cuda")
        for _ in range(3):
            ours(target)(inputs)
        torch.cuda.synchronize()
        return 0
    torch.backends.cuda.matmul.allow_tf32 = False
    head = {
        "device": torch.cuda.get_device_name(), "date": datetime.date.today().isoformat(), "copy_gbs": None,
        "torch": torch.__version__, "width": WIDTH, "streams": STREAMS, "dram_bytes": {},
    }  # fmt: skip
    report = Report(options.json, head)
    found = checked(target)
    for cold in (True, False):
        copy_rows(report, cold)
        for tokens in TOKENS:
            seam_row(report, "ours", ours(target), tokens, cold, **found[tokens])
        for tokens in TOKENS:
            error = split_error(target, tokens) if cold else None
            split_row(report, "ours-sinkhorn", ours_split(target), tokens, cold, coefficient_error=error)
    for rival in rivals(CONSTANTS):
        rival_rows(report, rival, options.rival_seconds)
    torch.cuda.empty_cache()
    for tokens in COUNTED:
        head["dram_bytes"][str(tokens)] = counted_bytes(tokens)
        print(f"dram bytes T {tokens}: {head['dram_bytes'][str(tokens)]}", flush=True)
        report.save()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
