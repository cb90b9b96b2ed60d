"""Watching a model: every call with its path, replaced outputs, and nothing left behind. And the sets of operations."""

from __future__ import annotations

import dataclasses
import inspect
import sys

import pytest
import torch
from tiny_models import prompt, tiny_model

from reference_impl import ops
from reference_impl.backend import TORCH, TWINS, Ops, tilelang_ops
from reference_impl.recording import recording


def test_every_call_of_a_forward_pass_is_seen_under_its_module() -> None:
    model = tiny_model(quantise=True)
    calls = []
    with recording(model, lambda call: calls.append(call)):
        expected = model(prompt(9), 0).logits
    seen = {(call.path, call.op) for call in calls}
    assert ("layers.4.attn.indexer", "candidate_mask") in seen
    assert ("layers.0.ffn.shared_experts.w2", "fp8_gemm") in seen
    assert ("", "sample") in seen
    paths = {path for path, _ in model.named_modules()}
    assert {call.path for call in calls} <= paths
    assert [call.occurrence for call in calls if (call.path, call.op) == ("layers.3", "hc_write")] == [0, 1]
    head = next(call for call in calls if call.path == "head")
    assert set(head.inputs) == {"x", "weight"} and torch.equal(head.output, expected)


def test_an_observer_replaces_outputs_and_inputs() -> None:
    model = tiny_model()
    ids = prompt(9)
    plain = model(ids, 0).logits
    with recording(model, lambda call: call.output * 2 if call.path == "head" else None):
        assert torch.equal(model(ids, 0).logits, plain * 2)

    def double_input(call):
        return call.inputs | {"x": call.inputs["x"] * 2} if call.path == "head" else None

    with recording(model, lambda call: None, double_input):
        assert torch.allclose(model(ids, 0).logits, plain * 2)


def test_the_model_is_as_before_even_after_an_error() -> None:
    model = tiny_model()
    ids = prompt(9)
    plain = model(ids, 0).logits

    def fail(call):
        raise RuntimeError("observer")

    with pytest.raises(RuntimeError, match="observer"), recording(model, fail):
        model(ids, 0)
    assert all(module.ops is TORCH for module in model.modules() if "ops" in module.__dict__)
    assert torch.equal(model(ids, 0).logits, plain)


def test_the_torch_set_is_the_operations_of_the_same_name() -> None:
    for field in dataclasses.fields(Ops):
        assert getattr(TORCH, field.name) is getattr(ops, field.name)
    assert set(TWINS) <= {field.name for field in dataclasses.fields(Ops)}
    assert set(ops.__all__) == {name for name in ops.__all__ if hasattr(ops, name)}


def test_every_operation_has_shapes_in_its_docstring_and_no_hidden_constants() -> None:
    """No default for an argument that the configuration decides: only absent tensors and sampling noise have one."""
    for field in dataclasses.fields(Ops):
        op = getattr(TORCH, field.name)
        assert op.__doc__ and "->" in op.__doc__, f"{field.name} has no shapes"
        defaults = {p.name for p in inspect.signature(op).parameters.values() if p.default is not p.empty}
        assert defaults <= {"bias", "generator"}, f"{field.name} has defaults for {defaults}"


def test_importing_the_model_brings_no_tilelang_and_no_site_generator() -> None:
    import subprocess

    from conftest import ROOT

    code = "import sys, reference_impl.model; print([m for m in ('tilelang', 'sitegen') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    code = code.replace("reference_impl.model", "sitegen, reference_impl.model")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['sitegen']", "the check above could not fail"


def test_without_tilelang_the_twins_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tilelang", None)
    for name in [name for name in sys.modules if name.startswith("reference_impl.kernels")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match=r"needs the package `tilelang`; install tilelang==0.1.15"):
        tilelang_ops("c")
