"""Watches a model at work: every operation call with its module's path, named inputs and output, replaceable at will.

    calls = []
    with recording(model, lambda call: calls.append(call)):
        model(ids, 0)

An observer may return a value, which then takes the place of the operation's output.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from torch import nn

from .backend import Op, Ops


@dataclasses.dataclass(frozen=True)
class Call:
    """One operation call."""

    path: str  # of the module, "" for the model itself; the checkpoint's names
    op: str  # field of Ops
    occurrence: int  # how many calls of this op this module made before, since the count was last cleared
    inputs: dict[str, Any]  # by parameter name, defaults included
    output: Any = None  # a tensor or a NamedTuple of tensors; None before the call


Observer = Callable[[Call], Any]


@contextlib.contextmanager
def recording(model: nn.Module, after: Observer, before: Observer | None = None) -> Iterator[Counter]:
    """While open, `after` sees every call of the model's operations, and may return another output than None.

    `before`, when given, sees it without output and may return other inputs. Gives the occurrence counts; clear them
    between forward passes.
    """
    counts: Counter = Counter()
    replaced = []
    for path, module in model.named_modules():
        ops = module.__dict__.get("ops")
        if isinstance(ops, Ops):
            replaced.append((module, ops))
            module.ops = WatchedOps(ops, path, counts, after, before)
    try:
        yield counts
    finally:
        for module, ops in replaced:
            module.ops = ops


class WatchedOps:
    """The same operations as `ops`, each reporting under `path`; an operation is wrapped when first called."""

    def __init__(self, ops: Ops, path: str, counts: Counter, after: Observer, before: Observer | None) -> None:
        self._ops, self._path, self._counts, self._after, self._before = ops, path, counts, after, before

    def __getattr__(self, name: str) -> Op:
        op = getattr(self._ops, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            bound = signature_of(op).bind(*args, **kwargs)
            bound.apply_defaults()
            seen = Call(self._path, name, self._counts[self._path, name], dict(bound.arguments))
            self._counts[self._path, name] += 1
            inputs = self._before(seen) if self._before else None
            if inputs is not None:
                seen = dataclasses.replace(seen, inputs=inputs)
                bound.arguments.update(inputs)
            output = op(*bound.args, **bound.kwargs)
            other = self._after(dataclasses.replace(seen, output=output))
            return output if other is None else other

        setattr(self, name, call)
        return call


@functools.cache
def signature_of(op: Op) -> inspect.Signature:
    return inspect.signature(op)
