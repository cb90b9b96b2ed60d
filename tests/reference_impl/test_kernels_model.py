"""A tiny quantised model on the twins: every twin meets the model's real arguments and agrees with its definition."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from kernel_cache import kernel_cache  # noqa: F401
from tiny_models import prompt, tiny_model

pytest.importorskip("tilelang", reason="the twins need the package tilelang")

from reference_impl.backend import TORCH, TWINS, tilelang_ops  # noqa: E402
from reference_impl.kernels.comparison import compare  # noqa: E402
from reference_impl.recording import recording  # noqa: E402


def test_a_model_on_the_twins_takes_every_twin_and_each_call_agrees():
    twins = tilelang_ops("c")
    model = tiny_model(quantise=True)
    seen: Counter[str] = Counter()

    def agree(call):
        if call.op in TWINS:
            tensors = tuple(value for value in call.inputs.values() if isinstance(value, torch.Tensor))
            constants = {name: value for name, value in call.inputs.items() if not isinstance(value, torch.Tensor)}
            outcome = compare(call.op, tensors, constants, getattr(twins, call.op)(*tensors, **constants))
            assert outcome.passed, f"{call.path} {call.op}: error {outcome.error:.3e}, {outcome.worst:.2f} of tolerance"
            seen[call.op] += 1

    ids = prompt(13)
    with recording(model, agree), torch.no_grad():
        model(ids[:, :12], 0)
        model(ids[:, 12:], 12)
    assert set(seen) == set(TWINS), f"the model never called {set(TWINS) - set(seen)}"


def test_a_float32_model_on_the_twins_gives_the_logits_of_the_definitions():
    """1e-4 of the largest, as for any float32 run. (With roundings, one flipped step would be amplified downstream.)"""
    ids = prompt(13)
    logits = []
    for ops in (TORCH, tilelang_ops("c")):
        model = tiny_model(ops, quantise=False).float()
        with torch.no_grad():
            model(ids[:, :12], 0)
            logits.append(model(ids[:, 12:], 12).logits)
    expected, got = logits
    assert (got - expected).abs().max() <= 1e-4 * expected.abs().max()
