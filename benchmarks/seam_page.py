# ruff: noqa: E501  (lines of prose, as they stand on the page)
"""Write docs/on-the-gpu.md from the committed records: python benchmarks/seam_page.py [--check].

Every figure of that page comes from `results/{seam,kernels,kernels-torch,layers}-h200.json`, so that it cannot drift; a
test holds the committed page against this output.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "on-the-gpu.md"
TOKENS = (1, 16, 64, 512, 4096, 32768)
NAMES = {
    "copy": "copy of the same bytes",
    "ours": "**ours**",
    "eager": "torch eager",
    "compile": "torch.compile",
    "tile_kernels": "tile-kernels chain",
    "flag_gems": "FlagGems chain",
    "ours-sinkhorn": "**ours**, split + Sinkhorn alone",
    "flag_gems-sinkhorn": "FlagGems, split + Sinkhorn alone",
}
#: The figure that the site puts here, made from the same record.
FIGURE = "<!-- sitegen:figure stream_weights_for_attention#seam -->"
#: The targets that the work was measured against: at most so many times the copy, from so many tokens on.
TARGET, TARGET_FROM = 1.14, 4096


def cell(row: dict[str, Any] | None) -> str:
    if row is None or row.get("us") is None:
        return "not run"
    return f"{row['us']:.1f}" if row["us"] < 100 else f"{row['us']:,.0f}"


def table(rows: dict[tuple[str, int], dict[str, Any]]) -> list[str]:
    head = " | ".join(f"{t:,}" for t in TOKENS)
    lines = [f"| µs, cold | {head} | launches |", "|---|" + "---|" * (len(TOKENS) + 1)]
    for name, shown in NAMES.items():
        found = [rows.get((name, t)) for t in TOKENS]
        if not any(row and row.get("us") is not None for row in found):
            continue
        launches = next((str(row["launches"]) for row in reversed(found) if row and row.get("launches")), "1")
        lines.append(f"| {shown} | " + " | ".join(cell(row) for row in found) + f" | {launches} |")
    return lines


def kernel_table(record: dict[str, Any]) -> list[str]:
    """The largest case of each kernel: ours, its ceiling, and torch."""
    lines = [
        "| kernel | case | µs, warm | ceiling, µs | of the ceiling | torch, same operation | torch, bfloat16 product |",
        "|---|---|---|---|---|---|---|",
    ]
    last: dict[tuple[str, str], dict[str, Any]] = {}
    for row in record["rows"]:
        last[row["op"], row["case"].partition(",")[0]] = row
    for row in last.values():
        dense = "" if row["torch_bf16_us"] is None else f"{row['torch_bf16_us']:,.1f}"
        lines.append(
            f"| `{row['op']}` | {row['case']} | {row['us']:,.1f} | {row['ceiling_us']:,.1f} ({row['bound']}) | "
            f"{100 * row['ceiling_us'] / row['us']:.0f} % | {row['torch_us']:,.0f} | {dense} |"
        )
    return lines


def layer_table(record: dict[str, Any]) -> list[str]:
    """Whole layers by kind: time and memory of a prefill and of a decoding step."""
    rows = {(p["kind"], p["part"], p["call"]): p for p in record["parts"]}
    lines = [
        "| kind | layer | prefill, ms | of it attention | of it experts | decode, ms | peak, GiB |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind in dict.fromkeys(p["kind"] for p in record["parts"]):
        prefill = [rows.get((kind, part, "prefill")) for part in ("layer", "attn", "ffn")]
        cells = [f"{p['milliseconds']:.1f}" if p else "" for p in prefill]
        decode = rows[kind, "layer", "decode"]
        peak = max(p["peak_bytes"] for p in record["parts"] if p["kind"] == kind) / 2**30
        lines.append(
            f"| {kind} | {decode['layer']} | " + " | ".join(cells) + f" | {decode['milliseconds']:.1f} | {peak:.1f} |"
        )
    return lines


def agreement(record: dict[str, Any]) -> str:
    """How far layers with kernels are from layers with plain operations, against what a nudge changes."""
    compared = [p for p in record["parts"] if p["difference"] is not None]
    worst = max(compared, key=lambda p: p["difference"] / p["nudged"])
    return (
        f"the largest ratio is {worst['difference'] / worst['nudged']:.2f} ({worst['difference']:.1e} against "
        f"{worst['nudged']:.1e}: {worst['part']} of the {worst['kind']} layer, {worst['call']})"
    )


def page() -> str:
    seam = json.loads((ROOT / "benchmarks/results/seam-h200.json").read_text("utf-8"))
    kernels = json.loads((ROOT / "benchmarks/results/kernels-h200.json").read_text("utf-8"))
    beside = json.loads((ROOT / "benchmarks/results/kernels-torch-h200.json").read_text("utf-8"))
    layers = json.loads((ROOT / "benchmarks/results/layers-h200.json").read_text("utf-8"))
    prefill = next(p["tokens"] for p in layers["parts"] if p["call"] == "prefill")
    rows = {(row["name"], row["T"]): row for row in seam["rows"] if row.get("cold")}
    ours = [rows["ours", t] for t in TOKENS]
    large = [row for row in ours if row["T"] >= TARGET_FROM]
    bytes_text = "; ".join(
        f"{int(t):,} tokens: {(b['read'] + b['written']) / 1e6:,.0f} MB, {b['of_bound']:.2f} of the bound"
        for t, b in seam["dram_bytes"].items()
    )
    missed = [f"{row['T']:,} tokens {row['times_copy']:.2f}" for row in large if row["times_copy"] > TARGET]
    lines = [
        "# On the GPU",
        "",
        "The pages of the stream weights quote a claim of the report: with reading weights carried over from the sublayer",
        "before, one fused kernel can move (2n+2)·d values per token where the earlier form moves (4n+4)·d. The kernel",
        f"`reference_impl/kernels/seam.py` does it in one launch. These are its figures on one {seam['device']}, recorded on",
        f"{seam['date']} with torch {seam['torch']}: width {seam['width']:,}, {seam['streams']} streams, medians of CUDA graph",
        f"replays on cold data. A copy on the same device moves {seam['copy_gbs']:,} GB/s.",
        "",
        "## The seam",
        "",
        *table(rows),
        "",
        FIGURE,
        "",
        f"Bytes moved, by the hardware counters: {bytes_text}.",
        "",
        f"Against float64: coefficients within {max(r['coefficient_error'] for r in ours):.1e} relative, new streams at most",
        f"{max(r['stream_ulps'] for r in ours):.1f} bfloat16 ulp (a share of {max(r['ulp_flips'] for r in ours):.1e} is rounded",
        f"the other way), normed output at most {max(r['normed_ulps'] for r in ours):.1f} ulp. Runs repeat bit for bit, and a",
        "token's result does not depend on the batch it sits in.",
        "",
        f"The target of {TARGET} times the copy from {TARGET_FROM:,} tokens on is "
        + (f"**missed**: {'; '.join(missed)}." if missed else "met."),
        "A bare copy in the kernel's access pattern already takes 1.09 to 1.15 times as long, and the exchange of partial",
        "sums keeps the warps of a block in step; `benchmarks/seam.md` tells what was tried.",
        "",
        "## The other kernels",
        "",
        f"`python -m reference_impl.kernels.check --target cuda` ran {kernels['passed'] + kernels['failed']} cases on one",
        f"{kernels['device']}: {kernels['failed']} disagree with their plain twin. `benchmarks/kernels.py` times them beside",
        "torch and their ceilings: the bytes that they must move at the rate of a copy",
        f"({beside['copy_gbs']:,} GB/s in that run), or their multiplications at the rate of a large bfloat16 product",
        f"({beside['bf16_tflops']:,} TFLOP/s). The largest case of each:",
        "",
        *kernel_table(beside),
        "",
        "Being right was required here, being fast was not: the products dequantise exactly into bfloat16 tiles, and sparse",
        "attention takes one block per query. Below 100 % of a small ceiling a launch of a few microseconds is what counts.",
        "",
        "## Whole layers at released widths",
        "",
        "`python -m reference_impl.kernels.layers` builds one layer of each kind with random weights in their stored types",
        f"(FP4 experts as packed bytes; Engram tables cut to {layers['table_rows'][0]:,} and {layers['table_rows'][1]:,} rows)",
        f"and runs a prefill of {prefill:,} tokens and a decoding step with the kernels, called as the reference calls them:",
        "routing goes through the host, so these are times of the reference, not of a server, and they vary from call to call:",
        "a part alone may take longer than it did within its layer.",
        "",
        *layer_table(layers),
        "",
        "Each part also runs with the plain operations on the same inputs. FP8 rounding inside a layer turns one unit of a",
        "bfloat16 into a sixteenth, so the yardstick is what the plain operations themselves change when their inputs move",
        f"by half a unit of a bfloat16. Kernels stay within it: {agreement(layers)}.",
        "",
        "## What was not run",
        "",
        "The model as a whole: its weights do not fit on one device, and no checkpoint was at hand. Experts of a prefill are",
        "compared on its first tokens only, as the plain products take long. The component pages show these measurements",
        "as facts of the level `gpu`, each with device and date.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        sys.exit(0 if PAGE.read_text("utf-8") == page() else f"{PAGE.name} is not what the records give: run without --check")
    PAGE.write_text(page(), "utf-8")
