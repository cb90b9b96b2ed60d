"""Compares single operations with recorded cases: roundings, products, rotary, slots, candidates, attention, hashing,
router, images; and the stream weights with the recorded Sinkhorn cases."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from .. import ops
from ..config import ModelArgs
from .folder import FixtureError, Recorded
from .verdicts import EXACT, Line, Tolerance, compare, missing

Result = tuple[str, Tensor, Tolerance]  # recorded name, computed value, tolerance

PRODUCT_FLOAT32 = Tolerance("1e-5 of max", relative=1e-5)
PRODUCT_BF16 = Tolerance("bf16, rare single steps", steps=1, differing=0.01)
ATTENTION_BF16 = Tolerance("8e-3", absolute=8e-3)
ATTENTION_FLOAT32 = Tolerance("5e-6", absolute=5e-6)
ROTATION = Tolerance("1e-6", absolute=1e-6)  # a few float32 roundings of numbers of about 1
TABLE_FLOAT64 = Tolerance("1e-12 of max", relative=1e-12)
SCORE_FLOAT64 = Tolerance("1e-8", absolute=1e-8)  # torch's softplus is the identity above 20: 2e-9 off
SINKHORN_FLOAT32 = Tolerance("1e-6", absolute=1e-6)
SINKHORN_FLOAT64 = Tolerance("1e-12", absolute=1e-12)
CPU = torch.device("cpu")


def compare_set(
    run: str, recorded: Recorded, results: Callable[[Recorded], Iterator[Result]], inputs: str
) -> list[Line]:
    """-> a line for each recorded tensor that is not an input (regular expression), a miss for one without result."""
    lines, done, last = [], set(), "the start"
    try:
        for name, actual, tolerance in results(recorded):
            lines.append(compare(run, name, actual, recorded[name], tolerance))
            done.add(name)
            last = name
    except (RuntimeError, IndexError) as error:
        reason = str(error).splitlines()[0]
        raise FixtureError(
            f"{recorded.file.name}: the tensors after {last} do not fit one another: {reason}"
        ) from error
    for name in recorded.tensors:
        if name not in done and not re.fullmatch(inputs, name):
            lines.append(missing(run, name, "recorded, but no operation gives it"))
    return lines


def compare_primitives(recorded: Recorded) -> list[Line]:
    inputs = (
        r"quant\..*\.x|gemm\..*\.(x|w8|w8_scale|w4|w4_scale)|rotary\..*\.(x|x_heads)|real_rope\..*\.positions"
        r"|candidates\..*\.scores|sparse_attn\..*\.(q|kv|sink|slots)|gate\.z|image_plan\.sizes|image_patches\.pixels"
        r"|real_engram\.(ids|masked\.mask|decode\.ids)"
    )
    return compare_set("primitives", recorded, primitive_results, inputs)


def compare_sinkhorn(recorded: Recorded) -> list[Line]:
    return compare_set("sinkhorn", recorded, sinkhorn_results, r".*\.(mixes|scale|base)")


def primitive_results(recorded: Recorded) -> Iterator[Result]:
    yield from roundings(recorded)
    yield from products(recorded)
    yield from rotations(recorded)
    yield from slot_lists(recorded)
    yield from candidates(recorded)
    yield from attentions(recorded)
    yield from hashes(recorded)
    yield from router(recorded)
    yield from images(recorded)


def cases(recorded: Recorded, pattern: str) -> list[str]:
    """-> what the group of the pattern matches, in recorded order without repetition."""
    return list(dict.fromkeys(m[1] for name in recorded.tensors if (m := re.fullmatch(pattern, name))))


def roundings(recorded: Recorded) -> Iterator[Result]:
    for case in cases(recorded, r"(quant\..*)\.x"):
        x = recorded[f"{case}.x"]
        forms = {
            "fp8": (ops.fp8_quantise, ops.fp8_round, ops.FP8_GROUP, "q"),
            "fp4_e8m0": (ops.fp4_e8m0_quantise, ops.fp4_e8m0_round, ops.FP4_GROUP, "packed"),
            "fp4_e4m3": (ops.fp4_e4m3_quantise, ops.fp4_e4m3_round, ops.KV_FP4_GROUP, "packed"),
        }
        for form, (quantise, roundtrip, group, codes) in forms.items():
            quantised = quantise(x, group=group)
            yield f"{case}.{form}_{codes}", quantised.codes, EXACT
            yield f"{case}.{form}_scale", quantised.scale, EXACT
            yield f"{case}.{form}_roundtrip", roundtrip(x, group=group), EXACT

    for case in cases(recorded, r"(quant\.block128_plain)\.q"):
        # The kernel's other form, which the model never calls: one group of 128, scale not rounded to a power of two.
        x = recorded["quant.kv_like_4x128.x"].float()
        scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-4) * (1 / 448)
        yield f"{case}.scale", scale, EXACT
        yield f"{case}.q", (x / scale).clamp(-448, 448).to(torch.float8_e4m3fn), EXACT


def products(recorded: Recorded) -> Iterator[Result]:
    for case in cases(recorded, r"(gemm\..*)\.x"):
        x = ops.fp8_quantise(recorded[f"{case}.x"], group=ops.FP8_GROUP)
        for bits, product in ((8, ops.fp8_gemm), (4, ops.fp4_gemm)):
            weight = recorded[f"{case}.w{bits}"], recorded[f"{case}.w{bits}_scale"]
            yield f"{case}.y{bits}_f32", product(*x, *weight, out_dtype=torch.float32), PRODUCT_FLOAT32
            yield f"{case}.y{bits}_bf16", product(*x, *weight, out_dtype=torch.bfloat16), PRODUCT_BF16


def rotations(recorded: Recorded) -> Iterator[Result]:
    for case in cases(recorded, r"(rotary\..*)\.cos"):
        given = recorded.parameters(f"{case}.cos")
        theta = ops.rotary_frequencies(
            rotated=given["rotated_features"], base=given["base"], original_length=given["original_length"],
            factor=given["factor"], beta_fast=given["beta_fast"], beta_slow=given["beta_slow"],
            dtype=torch.float32, device=CPU,
        )  # fmt: skip
        table = ops.rotary_table(theta, torch.arange(len(recorded[f"{case}.cos"])))
        yield f"{case}.cos", table.real, ROTATION
        yield f"{case}.sin", table.imag, ROTATION
        for form in ("x", "x_heads"):
            x = recorded[f"{case}.{form}"]
            yield f"{case}.{form}_forward", ops.rotate(x, table), ROTATION
            yield f"{case}.{form}_inverse", ops.rotate_back(x, table), ROTATION
        x = recorded[f"{case}.x_heads"].to(torch.bfloat16)
        yield f"{case}.x_heads_bf16_forward", ops.rotate(x, table), PRODUCT_BF16
    args = ModelArgs.from_json()
    for case in cases(recorded, r"real_rope\.(.*)\.positions"):
        yield from real_tables(recorded, args, case)


def real_tables(recorded: Recorded, args: ModelArgs, case: str) -> Iterator[Result]:
    """The tables of the released configuration at some positions, up to a million.

    There a phase is a float32 product, so another last bit in one frequency moves cosines by up to the recorded
    distance between the float32 and the exact table.
    """
    compressed = case == "compressed_layers"
    positions = recorded[f"real_rope.{case}.positions"]

    def theta(dtype: torch.dtype) -> Tensor:
        return ops.rotary_frequencies(
            rotated=args.rope_head_dim, base=args.compress_rope_theta if compressed else args.rope_theta,
            original_length=args.original_seq_len if compressed else 0, factor=args.rope_factor,
            beta_fast=args.beta_fast, beta_slow=args.beta_slow, dtype=dtype, device=CPU,
        )  # fmt: skip

    yield f"real_rope.{case}.inv_freq_f64", theta(torch.float64), TABLE_FLOAT64
    errors = recorded.statistics.get(f"rope_phase_error_{case}", {})
    largest = max(errors.values(), default=0.0)
    table = ops.rotary_table(theta(torch.float32), positions)
    tolerance = Tolerance(f"{largest:.0e}, float32 phases", absolute=max(largest, ROTATION.absolute))
    yield f"real_rope.{case}.cos", table.real, tolerance
    yield f"real_rope.{case}.sin", table.imag, tolerance


def slot_lists(recorded: Recorded) -> Iterator[Result]:
    for name in recorded.tensors:
        if match := re.fullmatch(r"window_slots\.w(\d+)\.len(\d+)\.start(\d+)", name):
            window, length, start = map(int, match.groups())
            yield name, ops.window_slots(window=window, length=length, start=start, device=CPU), EXACT
        if match := re.fullmatch(r"draft_slots\.w(\d+)\.block(\d+)\.start(\d+)", name):
            window, block, start = map(int, match.groups())
            yield name, ops.draft_slots(window=window, block=block, start=start, device=CPU), EXACT


def candidates(recorded: Recorded) -> Iterator[Result]:
    for case in cases(recorded, r"(candidates\..*)\.scores"):
        scores, given = recorded[f"{case}.scores"], recorded.parameters(f"{case}.mask")
        queries = torch.arange(1, scores.shape[1] + 1)
        visible = queries if given["visible"] == "t+1" else torch.full_like(queries, given["visible"])
        mask = ops.candidate_mask(scores, visible, block_size=given["block_size"], topk_blocks=given["blocks"])
        yield f"{case}.mask", mask, EXACT


def attentions(recorded: Recorded) -> Iterator[Result]:
    for case in cases(recorded, r"(sparse_attn\..*)\.q"):
        q, kv, slots, sink = (recorded[f"{case}.{name}"] for name in ("q", "kv", "slots", "sink"))
        scale = q.shape[-1] ** -0.5
        rounded = ops.sparse_attention(q, kv, slots, sink, scale=scale)
        yield f"{case}.out_bf16", rounded, ATTENTION_BF16
        yield f"{case}.out_f64", rounded, ATTENTION_BF16
        wide = ops.sparse_attention(q.float(), kv.float(), slots, sink, scale=scale)
        yield f"{case}.out_f64", wide, ATTENTION_FLOAT32


def hashes(recorded: Recorded) -> Iterator[Result]:
    if recorded.get("real_engram.ids") is None:
        return
    args = ModelArgs.from_json()
    primes = torch.tensor(args.engram_primes())
    offsets = primes.flatten(1).cumsum(-1) - primes.flatten(1)
    count, distance = args.engram_max_ngram_size, args.engram_max_ngram_size - 1
    multipliers = torch.tensor([
        ops.hash_multipliers(layer=layer, count=count, compressed_vocab=args.engram_compressed_vocab_size)
        for layer in args.engram_layer_ids
    ])  # fmt: skip
    yield "real_engram.primes", primes, EXACT
    yield "real_engram.offsets", offsets, EXACT
    yield "real_engram.multipliers", multipliers, EXACT

    def rows(history: Tensor, length: int, pad: int) -> Tensor:
        grams = ops.look_back(history, length=length, distance=distance, pad=pad)
        return ops.ngram_rows(grams, multipliers, primes, offsets)

    ids = recorded["real_engram.ids"]
    for pad in cases(recorded, r"real_engram\.pad(\d+)\.rows"):
        yield f"real_engram.pad{pad}.rows", rows(ids, ids.shape[1], int(pad)), EXACT
    masked = torch.where(recorded["real_engram.masked.mask"], ids, ops.DEAD)
    yield "real_engram.masked.rows", rows(masked, ids.shape[1], args.engram_pad_id), EXACT
    history = torch.cat((masked, recorded["real_engram.decode.ids"]), dim=1)
    decoded = [rows(history[:, : end + 1], 1, args.engram_pad_id) for end in range(ids.shape[1], history.shape[1])]
    yield "real_engram.decode.rows", torch.cat(decoded, dim=1), EXACT


def router(recorded: Recorded) -> Iterator[Result]:
    if recorded.get("gate.z") is not None:
        z = recorded["gate.z"]
        yield "gate.score", ops.expert_scores(z, temperature=1.0), ROTATION
        yield "gate.score_f64", ops.expert_scores(z.double(), temperature=1.0), SCORE_FLOAT64


def images(recorded: Recorded) -> Iterator[Result]:
    args = ModelArgs.from_json()
    if recorded.get("image_plan.sizes") is not None:
        plans = [
            ops.image_grid(
                width=width, height=height, patch=args.vision_patch_size, ratio=args.vision_downsample_ratio,
                min_pixels=args.vision_min_pixels, max_positions=args.vision_max_n_token,
            )
            for width, height in recorded["image_plan.sizes"].tolist()
        ]  # fmt: skip
        lengths = [len(ops.span_types(rows=plan.rows, columns=plan.columns)) for plan in plans]
        yield "image_plan.plan", torch.tensor(plans), EXACT
        yield "image_plan.positions", torch.tensor(lengths), EXACT
    for rows, columns in (map(int, case.split("x")) for case in cases(recorded, r"image_plan\.types_(\d+x\d+)")):
        types = torch.tensor(ops.span_types(rows=rows, columns=columns))
        yield f"image_plan.types_{rows}x{columns}", types, EXACT
    if recorded.get("image_patches.pixels") is not None:
        expected = recorded["image_patches.patches"]
        patches = ops.patch_order(recorded["image_patches.pixels"], patch=expected.shape[-1])
        yield "image_patches.patches", patches.to(expected.dtype), EXACT


def sinkhorn_results(recorded: Recorded) -> Iterator[Result]:
    for case in cases(recorded, r"(.*)\.comb"):
        given = recorded.parameters(f"{case}.comb")
        mixes, scale, base = (recorded[name] for name in sinkhorn_inputs(recorded, case))
        for suffix, wide in (("", torch.float32), ("_f64", torch.float64)):
            weights = ops.hc_split_sinkhorn(
                mixes.to(wide), scale.to(wide), base.to(wide),
                n=given["hc_mult"], iters=given["sinkhorn_iters"], eps=given["eps"],
            )  # fmt: skip
            tolerance = SINKHORN_FLOAT64 if suffix else SINKHORN_FLOAT32
            for name, value in zip(("pre", "post", "comb"), weights, strict=True):
                if f"{case}.{name}{suffix}" in recorded.tensors:
                    yield f"{case}.{name}{suffix}", value, tolerance
                rounded = f"{case}.{name}{suffix}_rounded"
                if rounded in recorded.tensors:
                    yield rounded, value.float(), SINKHORN_FLOAT32  # the record is a float64 value kept as float32


def sinkhorn_inputs(recorded: Recorded, case: str) -> tuple[str, str, str]:
    """Cases that differ in their scale only share their mix numbers, under the name without the last parts."""
    parts = case.split(".")
    for end in range(len(parts), 0, -1):
        mixes = ".".join(parts[:end]) + ".mixes"
        if mixes in recorded.tensors:
            return mixes, f"{case}.scale", f"{case}.base"
    raise FixtureError(f"{recorded.file.name}: no tensor {case}.mixes, nor one under a shorter name")
