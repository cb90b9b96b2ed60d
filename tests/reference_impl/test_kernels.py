"""Every twin equals its definition on the host target, and says so when it does not."""

from __future__ import annotations

import importlib

import pytest
import torch
from kernel_cache import kernel_cache  # noqa: F401

from reference_impl import ops
from reference_impl.backend import TWINS

pytest.importorskip("tilelang", reason="the twins need the package tilelang")

from reference_impl.kernels import check  # noqa: E402
from reference_impl.kernels.cases import TOKENS, draw, edge_cases, released_cases  # noqa: E402
from reference_impl.kernels.comparison import EXACT, as_tuple, compare  # noqa: E402
from reference_impl.kernels.targets import to_storage  # noqa: E402

CASES = [*edge_cases(), *released_cases((3,))]


def twin(op: str):
    return getattr(importlib.import_module(f"reference_impl.kernels.{op}"), op)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_twin_equals_its_definition_on_the_host(case):
    args, constants = draw(case, "cpu")
    outcome = compare(case.op, args, constants, twin(case.op)(*args, **constants, target="c"))
    assert outcome.passed, f"{case}: error {outcome.error:.3e}, {outcome.worst:.3f} times the tolerance"


def test_every_twin_of_the_back_end_has_cases_and_every_edge():
    assert set(TWINS) == set(EXACT) == {case.op for case in CASES}
    for op in TWINS:
        counts = {int(case.label.split()[0]) for case in edge_cases() if case.op == op and case.label[0].isdigit()}
        assert set(TOKENS) <= counts, f"{op}: no case with {set(TOKENS) - counts} tokens"


@pytest.mark.parametrize("op", TWINS)
def test_a_wrong_twin_is_caught(op):
    """The definition's own results, off by one part in 64 at one place: the comparison must not pass."""
    case = next(case for case in CASES if case.op == op and case.label.startswith("3 "))
    args, constants = draw(case, "cpu")
    right = getattr(ops, op)(*args, **constants)
    assert compare(op, args, constants, right).passed
    for position in range(len(as_tuple(right))):
        wrong = [result.clone() for result in as_tuple(right)]
        flat = wrong[position].view(-1)
        if wrong[position].element_size() == 1:  # a code or a scale: the next one
            flat.view(torch.uint8)[0] ^= 1
        else:
            flat[flat.abs().argmax()] *= 1 + 2**-6
        assert not compare(op, args, constants, tuple(wrong)).passed, f"{op}: result {position}"


@pytest.mark.parametrize("op", ["fp8_round", "fp4_e8m0_round", "fp4_e4m3_round"])
def test_a_lost_sign_of_zero_is_caught(op):
    x = -torch.zeros(1, 32, dtype=torch.bfloat16)
    constants = dict(group=16)
    assert compare(op, (x,), constants, twin(op)(x, **constants, target="c")).passed
    assert not compare(op, (x,), constants, torch.zeros_like(x)).passed


def test_a_transposed_combination_is_caught():
    case = next(case for case in CASES if str(case) == "hc_write 3 tokens, d 96")
    (streams, output, writing, combination), constants = draw(case, "cpu")
    wrong = twin("hc_write")(streams, output, writing, combination.mT.contiguous(), target="c")
    assert not compare("hc_write", (streams, output, writing, combination), constants, wrong).passed


def test_twins_take_any_leading_axes_and_views(normal):
    streams = normal(4, 2, 3, 64, dtype=torch.bfloat16).transpose(0, 1)  # [2, 4 streams... ] as a view
    streams = streams.permute(0, 2, 1, 3)[..., :48]  # [2, 3, 4, 48], not contiguous
    reading = torch.rand(4, 3, 2).permute(2, 1, 0)
    assert not streams.is_contiguous() and not reading.is_contiguous()
    assert torch.equal(twin("hc_read")(streams, reading, target="c"), ops.hc_read(streams, reading))
    x = normal(5, 3, 64, dtype=torch.bfloat16).transpose(0, 1)
    codes, scale = twin("fp8_quantise")(x, group=32, target="c")
    expected = ops.fp8_quantise(x, group=32)
    assert codes.shape == (3, 5, 64) and scale.shape == (3, 5, 2)
    assert torch.equal(codes.view(torch.uint8), expected.codes.view(torch.uint8))
    assert torch.equal(scale.view(torch.uint8), expected.scale.view(torch.uint8))


def test_no_tokens_launch_nothing(monkeypatch):
    """With no token there is nothing to compile either: a compiler that refuses to work is not called."""
    for name in (
        "engram_gate", "hc_read", "hc_split_sinkhorn", "hc_write", "rounding", "scaled_product", "sparse_attention",
    ):  # fmt: skip
        module = importlib.import_module(f"reference_impl.kernels.{name}")
        monkeypatch.setattr(module, "compile_program", lambda *_: pytest.fail("compiled for no token"))
        for attribute in ("compiled", "compiled_quantise", "compiled_round"):
            if hasattr(module, attribute):
                getattr(module, attribute).cache_clear()
    for case in edge_cases():
        if case.label.startswith("0 "):
            args, constants = draw(case, "cpu")
            results = as_tuple(twin(case.op)(*args, **constants, target="c"))
            assert [r.shape for r in results] == [r.shape for r in as_tuple(getattr(ops, case.op)(*args, **constants))]


def arguments(op: str, label: str = "3 "):
    args, constants = draw(next(case for case in CASES if case.op == op and case.label.startswith(label)), "cpu")
    return list(args), constants


WRONG = {  # what is wrong: operation, position of the argument, what is done to it, what the message says
    "mixes of another number of streams": (
        "hc_split_sinkhorn", 0, lambda m: m[:, :15], "mixes has shape (3, 15), expected (3, 24)",
    ),
    "two scales": ("hc_split_sinkhorn", 1, lambda s: s[:2], "scale has shape (2,), expected (3,)"),
    "bfloat16 mixes": (
        "hc_split_sinkhorn", 0, lambda m: m.bfloat16(), "mixes is torch.bfloat16, expected torch.float32",
    ),
    "reading weights of other tokens": (
        "hc_read", 1, lambda r: r[:2], "reading has shape (2, 4), expected (3, 4)",
    ),
    "float64 streams": (
        "hc_read", 0, lambda x: x.double(), "use reference_impl.ops.hc_read, which takes any type",
    ),
    "combination of two axes": (
        "hc_write", 3, lambda c: c[..., 0], "combination has shape (3, 4), expected (3, 4, 4)",
    ),
    "output of another type": (
        "hc_write", 1, lambda y: y.float(), "output is torch.float32, expected torch.bfloat16",
    ),
    "features that do not divide": (
        "fp8_round", 0, lambda x: x[:, :80], "features is 80, not a multiple of 32; pad it to 96",
    ),
    "features of FP4": (
        "fp4_e4m3_round", 0, lambda x: x[:, :20], "features is 20, not a multiple of 16; pad it to 32",
    ),
    "codes as bfloat16": (
        "fp8_gemm", 0, lambda x: x.bfloat16(), "x is torch.bfloat16, expected torch.float8_e4m3fn",
    ),
    "too few weight scales": (
        "fp8_gemm", 3, lambda s: s[:1], "weight_scale has shape (1, 3), expected (3, 3)",
    ),
    "an unpacked weight": (
        "fp4_gemm", 2, lambda w: w.repeat(1, 2), "weight has shape (80, 96), expected (80, 48)",
    ),
    "slots of another query count": (
        "sparse_attention", 2, lambda s: s[:, :2], "slots has shape (1, 2, 20), expected (1, 3, 20)",
    ),
    "slots as int64": (
        "sparse_attention", 2, lambda s: s.long(), "slots is torch.int64, expected torch.int32",
    ),
    "rows of another width": (
        "sparse_attention", 1, lambda c: c[..., :16], "kv has shape (1, 40, 16), expected (1, 40, 32)",
    ),
    "gains of one stream": (
        "engram_gate", 2, lambda w: w[:1], "query_weight has shape (1, 96), expected (4, 96)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("op, position, spoil, text", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_argument_is_named_with_both_values(op, position, spoil, text):
    args, constants = arguments(op)
    args[position] = spoil(args[position])
    with pytest.raises(ValueError) as caught:
        twin(op)(*args, **constants, target="c")
    assert str(caught.value).startswith(f"{op}: ")
    assert text in str(caught.value)


def test_a_tensor_on_the_wrong_device_is_named():
    args, constants = arguments("hc_read")
    with pytest.raises(ValueError, match="streams is on cpu, target cuda runs on cuda; move it, or pass another"):
        twin("hc_read")(*args, **constants, target="cuda")


def test_a_negative_attention_scale_is_refused():
    args, _ = arguments("sparse_attention")
    with pytest.raises(ValueError, match="scale is -1.0, expected a positive number"):
        twin("sparse_attention")(*args, scale=-1.0, target="c")


def test_no_sinkhorn_round_at_all_is_refused():
    args, constants = arguments("hc_split_sinkhorn")
    with pytest.raises(ValueError, match="iters is 0, expected at least 1"):
        twin("hc_split_sinkhorn")(*args, **constants | dict(iters=0), target="c")


def test_check_prints_a_line_a_case_and_fails_on_a_miss(capsys, tmp_path, monkeypatch):
    report = tmp_path / "report.json"
    assert check.main(["--target", "c", "--op", "hc_read", "--jobs", "1", "--json", str(report)]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "TileLang" not in line]
    assert len(lines) == 9 and lines[0].startswith("ok   hc_read") and lines[-1] == "8 cases, 0 missed"
    assert '"failed": 0' in report.read_text() and '"op": "hc_read"' in report.read_text()

    monkeypatch.setattr(check, "twin", lambda op: lambda *args, target: ops.hc_read(*args) * 1.01)
    assert check.main(["--target", "c", "--op", "hc_read", "--jobs", "1"]) == 1
    assert "MISS hc_read            3 tokens, d 96" in capsys.readouterr().out


@pytest.mark.parametrize(
    "argv, code, text",
    [
        (["--target", "c", "--op", "hc_reed"], 2, "no operation hc_reed; known: hc_split_sinkhorn, hc_read"),
        pytest.param(
            ["--target", "cuda"], 3, "torch sees no GPU; use --target c here",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU"),
        ),
    ],
)  # fmt: skip
def test_check_says_what_it_cannot_do(argv, code, text, capsys):
    assert check.main(argv) == code
    assert text in capsys.readouterr().err


def test_kernels_get_contiguous_tensors_at_whole_vectors(normal):
    """A slice that starts two bytes into its storage is copied; what is fine already is passed on."""
    x = normal(65, dtype=torch.float32)
    key = "cuda"
    assert to_storage(x[:64], key).data_ptr() == x.data_ptr()
    for view in (x[1:], normal(8, 8).T, normal(17, dtype=torch.bfloat16)[1:]):
        stored = to_storage(view, key)
        assert stored.data_ptr() % 16 == 0 and stored.is_contiguous() and torch.equal(stored, view)
    assert to_storage(x.to(torch.float8_e4m3fn), key).dtype == torch.uint8
    assert to_storage(x.bfloat16(), "c").dtype == torch.float32
