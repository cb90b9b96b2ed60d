"""The kernels on a GPU beside torch and their ceilings: python benchmarks/kernels.py [--json FILE].

For each operation with a twin at the released widths: its time, the time of the plain operation in torch, for products
also of torch's own product of the dequantised weight in bfloat16, and the ceiling: whichever is longer of its bytes at
the rate of a copy, and its multiplications at the rate of a large bfloat16 product, both measured in the same run.
Agreement is checked before anything is timed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from reference_impl import ops
from reference_impl.kernels import check
from reference_impl.kernels.cases import Case, draw, released_cases
from reference_impl.kernels.comparison import as_tuple, compare
from reference_impl.kernels.layers import copy_rate
from reference_impl.ops.rounding import FP4_GROUP, e2m1_unpack

TOKENS = (1, 64, 4096)
SLOW_CALLS = 3  # a plain operation of many launches is not captured into a graph


def bf16_product_rate(size: int = 8192) -> float:
    """-> multiplications and additions a second of a large bfloat16 product in torch."""
    a = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
    microseconds, _ = check.median_microseconds(lambda: a @ a)
    return 2 * size**3 / microseconds * 1e6


def eager_microseconds(call: Callable[[], Any]) -> float:
    call()
    torch.cuda.synchronize()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(SLOW_CALLS):
        call()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) * 1e3 / SLOW_CALLS


def operations(case: Case, args: tuple[Tensor, ...]) -> int:
    """-> multiplications and additions of a case; 0 where bytes are the bound."""
    if case.op in ("fp8_gemm", "fp4_gemm"):
        x, weight = args[0], args[2]
        return 2 * x.shape[0] * x.shape[-1] * weight.shape[0]
    if case.op == "sparse_attention":
        q, slots = args[0], args[2]
        return 4 * int((slots >= 0).sum()) * q.shape[-2] * q.shape[-1]
    return 0


def dense(case: Case, args: tuple[Tensor, ...]) -> Callable[[], Tensor] | None:
    """torch's product of the same values in bfloat16, the weight dequantised beforehand."""
    if case.op not in ("fp8_gemm", "fp4_gemm"):
        return None
    x, _, weight, scale = args[:4]
    if case.op == "fp8_gemm":
        wide = ops.fp8_dequantise(weight, scale, out_dtype=torch.bfloat16)
    else:
        wide = (e2m1_unpack(weight) * scale.float().repeat_interleave(FP4_GROUP, dim=-1)).bfloat16()
    rows = x.to(torch.bfloat16)
    return lambda: F.linear(rows, wide)


def measured(case: Case, target: Any, copied: float, multiplied: float) -> dict[str, Any]:
    args, constants = draw(case, "cuda")
    twin, plain = check.twin(case.op), getattr(ops, case.op)
    results = twin(*args, **constants, target=target)
    comparison = compare(case.op, args, constants, results)
    microseconds, _ = check.median_microseconds(lambda: twin(*args, **constants, target=target))
    moved, work = check.moved_bytes(case, args, as_tuple(results)), operations(case, args)
    other = dense(case, args)
    return {
        "op": case.op, "case": case.label, "agrees": comparison.passed, "error": comparison.error, "us": microseconds,
        "bytes": moved, "operations": work,
        "ceiling_us": max(moved / copied, work / multiplied) * 1e6,
        "bound": "bytes" if moved / copied >= work / multiplied else "products",
        "torch_us": eager_microseconds(lambda: plain(*args, **constants)),
        "torch_bf16_us": check.median_microseconds(other)[0] if other else None,
    }  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(argv)
    if not torch.cuda.is_available():
        print("benchmarks/kernels.py: skipped, torch sees no GPU", file=sys.stderr)
        return 3
    target, copied, multiplied = check.cuda_target(), copy_rate(), bf16_product_rate()
    rows = []
    for case in released_cases(TOKENS):
        row = measured(case, target, copied, multiplied)
        rows.append(row)
        rival = "" if row["torch_bf16_us"] is None else f", bf16 product {row['torch_bf16_us']:.1f}"
        print(
            f"{'ok  ' if row['agrees'] else 'MISS'} {row['op']:18} {row['case']:36} {row['us']:9.1f} us, "
            f"{100 * row['ceiling_us'] / row['us']:5.1f} % of its {row['bound']} bound, "
            f"torch {row['torch_us']:.1f}{rival}",
            flush=True,
        )
    missed = sum(not row["agrees"] for row in rows)
    if options.json:
        record = {
            "schema": 1, **check.versions(target), "date": time.strftime("%Y-%m-%d"), "copy_gbs": round(copied / 1e9),
            "bf16_tflops": round(multiplied / 1e12), "rows": rows,
        }  # fmt: skip
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    print(f"{len(rows)} cases, {missed} disagree")
    print(f"a copy moves {copied / 1e9:,.0f} GB/s, a large product does {multiplied / 1e12:,.0f} TFLOP/s")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
