"""Evaluation of formulas: against torch written by hand, over leading axes, and what is refused."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sitegen.diagnostics import Location, SpecInvalid
from sitegen.formula import evaluate, parse

torch = pytest.importorskip("torch", reason="formulas are evaluated with torch")
torch.set_num_threads(1)

B, T, N, D = 2, 7, 4, 12  # batch, positions, streams, width: all different
SYMBOLS = {"n": N, "D": D, "eps": 1e-6, "eps_norm": 1e-20, "iters": 20}


def random(*shape: int, scale: float = 1.0):
    generator = torch.Generator().manual_seed(sum(shape) + len(shape))
    return torch.randn(*shape, generator=generator, dtype=torch.float64) * scale


def run(text: str, env: dict, symbols: dict | None = None, **options):
    return evaluate(parse(text, where=Location("f.yml", 3, 9)), env, SYMBOLS if symbols is None else symbols, **options)


def refused(text: str, env: dict, **options):
    with pytest.raises(SpecInvalid) as caught:
        run(text, env, **options)
    return caught.value.findings[0]


def close(actual, expected):
    torch.testing.assert_close(actual, expected, rtol=1e-13, atol=1e-13)


# -- the formulas of the streams ----------------------------------------------------------------------


def test_mix_projection_of_flattened_streams():
    streams, weight = random(B, T, N, D), random(24, N * D)
    result = run(
        "x[(s - 1)*D + d] = X[s, d]; m[i] = sum(c: W[i, c]*x[c])/sqrt(mean(c: x[c]**2) + eps_norm)",
        {"X": streams, "W": weight},
        shapes={"x": (N * D,)},
    )
    flat = streams.flatten(2)
    assert torch.equal(result["x"], flat)
    close(result["m"], flat @ weight.T / (flat.square().mean(-1, keepdim=True) + 1e-20).sqrt())


def test_writing_weights_read_their_slice():
    mixes, scale, base = random(B, T, 24), random(3), random(24)
    result = run(
        "u[k] = 2*sigmoid(s[2]*m[4 + k] + b[4 + k])", {"m": mixes, "s": scale, "b": base}, shapes={"u": (B, T, N)}
    )
    close(result["u"], 2 * torch.sigmoid(scale[1] * mixes[..., 4:8] + base[4:8]))


def test_stream_combination():
    mixes, scale, base = random(B, T, 24, scale=4.0), random(3), random(24)
    result = run(
        """
        Z[j, k] = s[3]*m[2*n + n*(j - 1) + k] + b[2*n + n*(j - 1) + k] for j = 1..n, k = 1..n
        E[j, k] = exp(Z[j, k] - max(k: Z[j, k]))
        M[j, k] = E[j, k]/sum(k: E[j, k]) + eps
        M[j, k] = M[j, k]/(sum(j: M[j, k]) + eps)
        repeat(iters - 1): M[j, k] = M[j, k]/(sum(k: M[j, k]) + eps); M[j, k] = M[j, k]/(sum(j: M[j, k]) + eps)
        """,
        {"m": mixes, "s": scale, "b": base},
    )
    matrix = (scale[2] * mixes[..., 8:] + base[8:]).unflatten(-1, (N, N)).softmax(-1) + 1e-6
    matrix = matrix / (matrix.sum(-2, keepdim=True) + 1e-6)
    for _ in range(19):
        matrix = matrix / (matrix.sum(-1, keepdim=True) + 1e-6)
        matrix = matrix / (matrix.sum(-2, keepdim=True) + 1e-6)
    assert list(result) == ["Z", "E", "M"]
    close(result["M"], matrix)


def test_stream_write_sums_over_the_source_and_not_over_the_target():
    inputs = {"u": random(B, T, N), "y": random(B, T, D), "C": random(B, T, N, N, scale=3.0), "X": random(B, T, N, D)}
    written = inputs["u"][..., None] * inputs["y"][..., None, :]
    right = run("X'[k, d] = u[k]*y[d] + sum(j: C[j, k]*X[j, d])", inputs)["X'"]
    close(right, written + inputs["C"].transpose(-1, -2) @ inputs["X"])
    wrong = run("X'[k, d] = u[k]*y[d] + sum(j: C[k, j]*X[j, d])", inputs)["X'"]
    close(wrong, written + inputs["C"] @ inputs["X"])
    assert (right - wrong).abs().max() > 1


def test_norm_with_gain_and_identity_weights():
    x, gain = random(B, T, D), random(D)
    normed = run("r = sqrt(mean(d: x[d]**2) + eps_norm); y[d] = g[d]*x[d]/r", {"x": x, "g": gain})
    assert normed["r"].shape == (B, T)
    close(normed["y"], torch.nn.functional.rms_norm(x, (D,), gain, eps=1e-20))
    assert run("p[j] = delta(j, 1) for j = 1..n", {})["p"].tolist() == [1, 0, 0, 0]
    assert torch.equal(run("X[s, d] = x[d] for s = 1..n", {"x": x})["X"], x[:, :, None, :].expand(B, T, N, D))


def test_engram_gate():
    x, key, gain = random(B, T, N, D), random(B, T, N, D), random(N, D)
    result = run(
        """
        t[s] = sum(i: X[s, i]*q[s, i]*k[s, i])
               /(sqrt(mean(i: X[s, i]**2) + eps_norm)*sqrt(mean(i: k[s, i]**2) + eps_norm)*sqrt(D))
        g[s] = sigmoid(sign(t[s])*sqrt(max(abs(t[s]), 1e-6)))
        """,
        {"X": x, "k": key, "q": gain},
    )
    t = (x * gain * key).sum(-1) / (x.square().mean(-1).sqrt() * key.square().mean(-1).sqrt() * D**0.5)
    close(result["g"], torch.sigmoid(t.sign() * t.abs().clamp(min=1e-6).sqrt()))


def test_attention_with_a_sink():
    q, c, sink = random(B, T, 3, D), random(B, 1, 9, D), random(3)
    result = run(
        """
        z[h, i] = sum(d: q[h, d]*c[i, d])/sqrt(D)
        o[h, d] = sum(i: exp(z[h, i])*c[i, d])/(sum(i: exp(z[h, i])) + exp(a[h]))
        """,
        {"q": q, "c": c, "a": sink},
    )
    logits = torch.einsum("bthd,bid->bthi", q, c[:, 0]) / D**0.5
    weights = torch.cat([logits, sink[:, None].expand(B, T, 3, 1)], -1).softmax(-1)[..., :-1]
    close(result["o"], torch.einsum("bthi,bid->bthd", weights, c[:, 0]))


def test_a_table_is_read_at_rows_that_differ_from_token_to_token():
    table, rows = random(11, D), torch.arange(B * T * 5).reshape(B, T, 5) % 11
    assert torch.equal(run("e[i, c] = R[r[i] + 1, c]", {"R": table, "r": rows})["e"], table[rows])
    keys = random(B, 1, 11, D)
    expected = torch.stack([keys[b, 0][rows[b]] for b in range(B)])
    assert torch.equal(run("e[i, c] = K[r[i] + 1, c]", {"K": keys, "r": rows})["e"], expected)


def test_rotation_assigns_pairs():
    x, angle = random(B, T, D), random(T, D // 2)
    result = run(
        """
        y[2*i - 1] = x[2*i - 1]*cos(a[i]) - x[2*i]*sin(a[i])
        y[2*i] = x[2*i - 1]*sin(a[i]) + x[2*i]*cos(a[i])
        """,
        {"x": x, "a": angle},
        shapes={"y": (B, T, D)},
    )
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
    turned = pairs * torch.polar(torch.ones((), dtype=torch.float64), angle)
    close(result["y"], torch.view_as_real(turned).flatten(-2))


# -- rules of the language ----------------------------------------------------------------------------------

X5 = torch.tensor([3.0, -1.0, 0.5, 2.0, -2.5], dtype=torch.float64)
VALUES = [
    ("y = sum(j: x[j])", 2.0),
    ("y = mean(j: x[j])", 0.4),
    ("y = max(j: x[j]) - min(j: x[j])", 5.5),
    ("y = prod(j: x[j])", 7.5),
    ("y = sum(j = 2..4: x[j])", 1.5),
    ("y = sum(j = n - 1..n: j)", 7.0),
    ("y = sum(i, j: x[i]*x[j])", 4.0),
    ("y = sum(i = 1..2, j: 3)", None),  # j has no axis to run over
    ("y = sum(i = 1..2, j = 1..3: 3)", 18.0),
    ("y = prod(i = 1..3: 2)", 8.0),
    ("y = mean(i = 1..3: x[1])", 3.0),
    ("y = sum(j: where(j <= 3, x[j], 0))", 2.5),
    ("y = sum(i, j: delta(i, j)*x[i]*x[j])", 20.5),
    ("y = x[1]/x[2]/2*4", -6.0),
    ("y = 2**3**2 - -2**2", 516.0),
    ("y = 7//2 + -7//2 + -7%4 + 7%4", 3 - 4 + 1 + 3),
    ("y = max(1, 2, x[1]) + min(1, x[2])", 2.0),
    ("y = clamp(x[1], -1, 1) + clamp(x[5], -1, 1)", 0.0),
    ("y = floor(x[3]) + ceil(x[3]) + round(2.5) + round(3.5)", 7.0),
    ("y = where(x[1] > x[2] and not (x[1] == x[2]) or x[1] != 3, 1, 0)", 1.0),
    ("y = sign(x[2]) + abs(x[5]) + relu(x[2]) + relu(x[1])", 4.5),
    ("y = log2(8) + log(exp(2)) + sqrt(16)", 9.0),
    ("y = softplus(100) + softplus(-800)", 100.0),
    ("y = n*D/eps", N * D / 1e-6),
    ("a = 2; repeat(3): a = a*a; y = a", 256.0),
    ("a = 2; repeat(0): a = a*a; y = a", None),  # y is never assigned
    ("a = 1; repeat(2): { repeat(3): { a = a + 1 }; a = a*2 }; y = a", 22.0),
]


@pytest.mark.parametrize(("text", "value"), VALUES, ids=[case[0] for case in VALUES])
def test_values(text, value):
    if value is None:
        with pytest.raises((SpecInvalid, KeyError)):
            assert run(text, {"x": X5})["y"]
        return
    assert float(run(text, {"x": X5})["y"]) == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("sigmoid", torch.sigmoid),
        ("silu", torch.nn.functional.silu),
        ("gelu", torch.nn.functional.gelu),
        ("softplus", lambda x: torch.log1p(torch.exp(x))),
        ("tanh", torch.tanh),
        ("sin", torch.sin),
        ("cos", torch.cos),
        ("exp", torch.exp),
    ],
)
def test_functions(name, function):
    close(run(f"y[j] = {name}(x[j])", {"x": X5})["y"], function(X5))


def test_each_statement_sees_the_one_before_and_inputs_are_left_alone():
    x = X5.clone()
    assert run("x[j] = x[j] + 1; x[j] = 2*x[j]", {"x": x})["x"].tolist() == (2 * (X5 + 1)).tolist()
    assert torch.equal(x, X5)


def test_an_index_hides_a_symbol_inside_its_statement():
    assert run("y[n] = n for n = 1..3", {})["y"].tolist() == [1, 2, 3]


def test_any_type_of_input_is_computed_in_float64():
    for dtype in (torch.bfloat16, torch.float32, torch.int64, torch.bool):
        result = run("y[j] = x[j]/3", {"x": torch.ones(2, dtype=dtype)})["y"]
        assert result.dtype == torch.float64 and result.tolist() == [1 / 3, 1 / 3]


def test_the_shape_of_an_output_does_not_shorten_an_input_of_the_same_name():
    finding = refused("X[s, d] = 2*X[s, d]", {"X": random(B, T, N, D)}, shapes={"X": (B, T, N - 1, D)})
    assert (finding.expected, finding.actual) == ("4 (axis 1 of X)", "3 (axis 1 of X)")


def test_an_output_may_have_more_axes_than_the_input_that_it_replaces():
    assert run("x[j] = delta(j, 2) for j = 1..3", {"x": torch.tensor(5.0)})["x"].tolist() == [0, 1, 0]


def test_zero_tokens():
    assert run("y[k] = sum(d: W[k, d]*x[d]) + max(d: x[d])", {"W": random(3, D), "x": random(0, T, D)})["y"].shape == (
        0,
        T,
        3,
    )


def test_a_shape_states_only_where_indices_run_and_lends_no_value():
    assert "u" in refused("u[k] = u[k]", {}, shapes={"u": (4,)}).message
    assert run("u[k] = m[4 + k]", {"m": torch.arange(24)}, shapes={"u": (B, T, 4)})["u"].tolist() == [4, 5, 6, 7]


# -- large intermediate results ---------------------------------------------------------------------------


def test_sums_of_products_are_contracted():
    # as [tokens, i, c] this would have 64 * 48 * 512 elements
    x, weight = random(64, 512), random(48, 512)
    close(run("m[i] = sum(c: W[i, c]*x[c])", {"x": x, "W": weight}, max_elements=64 * 48)["m"], x @ weight.T)
    y = random(64, 48)
    result = run("t = sum(i, c: W[i, c]*x[c]*y[i])", {"x": x, "W": weight, "y": y}, max_elements=64 * 48)["t"]
    close(result, ((x @ weight.T) * y).sum(-1))


@pytest.mark.parametrize("kind", ["sum", "mean", "max", "min", "prod"])
def test_reductions_work_in_parts_where_they_are_too_large(kind):
    x = random(33, scale=0.5)
    text = f"t = {kind}(i, j, k: tanh(x[i]*x[j] + x[k]))"
    whole = run(text, {"x": x})["t"]
    close(run(text, {"x": x}, max_elements=1200)["t"], whole)


def test_a_result_that_is_too_large_is_refused_before_it_is_made():
    finding = refused("u[i, j, k] = x[i]*x[j]*x[k]", {"x": random(5000)})
    assert finding.code == "expression-invalid" and "too large" in finding.message
    assert (finding.expected, finding.actual) == ("at most 16,777,216 elements", "25,000,000 elements")


# -- findings -------------------------------------------------------------------------------------------------

ENV = {"x": X5, "w": torch.ones(6), "m": torch.ones(24), "a": torch.ones(3, 5), "b": torch.ones(2, 5)}
FAULTS = [
    ("u[k] = m[4 + k]", "expression-invalid", "nothing says where the index k runs", "", "", "for k = 1..n after"),
    ("u[k] = x[k]*w[k]", "shape-mismatch", "two axes of different size", "5 (x)", "6 (w)", "use two indices"),
    ("u = sum(j: x[j]*w[j])", "shape-mismatch", "index j runs over two axes", "5 (x)", "6 (w)", "j = 1..n before"),
    ("u[k] = a[k, 1]*a[1, k]", "shape-mismatch", "index k", "3 (axis 1 of a)", "5 (axis 2 of a)", ""),
    ("u[k] = m[21 + k] for k = 1..n", "shape-mismatch", "do not exist", "1..24 on axis 1 of m", "22..25", ""),
    ("u[k] = x[k] for k = 0..3", "shape-mismatch", "do not exist", "1..5 on axis 1 of x", "0..3", ""),
    ("u = x[6]", "shape-mismatch", "do not exist", "1..5 on axis 1 of x", "6..6", ""),
    ("u[k] = x[k] for k = 3..2", "expression-invalid", "the range of k is empty", "", "3..2", ""),
    ("u[k] = x[x[k]]", "expression-invalid", "not a whole number", "", "", ""),
    ("u[k] = a[k]*b[k]", "shape-mismatch", "leading axes do not agree", "[3]", "[2]", "written as indices"),
    ("repeat(2.5): u = 1", "expression-invalid", "rounds is not a whole number", "whole", "2.5 = 2.5", ""),
    ("repeat(20000): u = 1", "expression-invalid", "out of bounds", "0 to 10,000", "20000 = 20,000", ""),
    ("repeat(9**9**9): u = 1", "expression-invalid", "has no value", "", "", ""),
    ("repeat(1/0): u = 1", "expression-invalid", "has no value", "", "", ""),
    ("u[2*k] = x[k]", "expression-invalid", "size of u is not known", "", "", "state the shape of u"),
    ("v[2*k] = x[k]", "expression-invalid", "only partly assigned", "10 elements", "first one missing is v[1]", ""),
    ("v[2*k] = x[k]; u = v[2]", "expression-invalid", "only partly assigned", "10 elements", "5 elements", ""),
    ("v[6 - k//2] = x[k]", "expression-invalid", "assigned twice", "", "", ""),
    ("v[k] = x[k]", "shape-mismatch", "index k", "5 (x)", "10 (v)", ""),
    ("y = foo + 1", "unknown-symbol", "foo is no symbol", "", "", ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "message", "expected", "actual", "hint"), FAULTS, ids=[f[0] for f in FAULTS])
def test_faults(text, code, message, expected, actual, hint):
    finding = refused(text, ENV, shapes={"v": (10,)})
    assert finding.code == code
    assert message in finding.message
    assert expected in finding.expected and actual in finding.actual and hint in finding.hint
    assert finding.where.file == "f.yml" and finding.where.line == 3


def test_all_unknown_names_are_reported_at_once():
    with pytest.raises(SpecInvalid) as caught:
        run("u[k] = x[k]*foo + bar[k]", ENV)
    assert len(caught.value.findings) == 2


def test_torch_is_imported_only_to_evaluate():
    code = (
        "import sys; from sitegen.formula import *; s = parse('y[j] = 2*x[j]'); to_tex(s, {}); mutants(s);"
        "check(s, tensors={'x': 1}, symbols=()); assert 'torch' not in sys.modules; evaluate(s, {'x': [1.0]}, {});"
        "assert 'torch' in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
