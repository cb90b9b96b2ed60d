# Sees a model of a package at work without knowing its code: module inputs and outputs by hooks, and
# functions of its module by standing in their place while a run lasts.
"""Record the calls of a run, and edit values on their way."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sitegen.schema import Package

if TYPE_CHECKING:
    from types import ModuleType

    from torch import nn

#: The operation under which a module's own inputs and outputs are seen.
FORWARD = "forward"


class Seen(NamedTuple):
    """One call of a run: in which module, of what, how many came before, and all its values by name."""

    module: str
    operation: str
    occurrence: int
    values: dict[str, Any]


class Edit(NamedTuple):
    """A change to a value of a run: a result is replaced, an argument is changed in place."""

    module: str
    operation: str
    occurrence: int
    field: str
    add: float
    scale: float


class Watch:
    """The calls of one run; `phase` names its part (`decode`), and occurrences count within a part."""

    def __init__(self, net: nn.Module, package: Package, wanted: set[str], edits: Sequence[Edit]) -> None:
        self.net, self.package, self.wanted, self.edits = net, package, wanted, list(edits)
        self.paths = {module: path for path, module in net.named_modules()}
        self.running: list[str] = []
        self.open: list[tuple[tuple[str, str, int], dict[str, Any]]] = []
        self.counts: Counter[tuple[str, str]] = Counter()
        self.calls: dict[tuple[str, str, int], Seen] = {}
        self.phase = ""

    def part(self, phase: str) -> None:
        """What follows belongs to another part of the run."""
        self.phase = phase
        self.counts.clear()

    @contextlib.contextmanager
    def watching(self, home: ModuleType) -> Iterator[Watch]:
        """While open, every call is seen; `home` is the package's module."""
        handles = []
        replaced: list[tuple[Any, str, Any]] = []
        try:
            for module in self.paths:
                handles.append(module.register_forward_pre_hook(self.before, with_kwargs=True, prepend=True))
                handles.append(module.register_forward_hook(self.after, with_kwargs=True))
            for name, function in self.package.functions.items():
                owner, _, last = ("home." + function.path).rpartition(".")
                target = functools.reduce(getattr, owner.split(".")[1:], home)
                original = getattr(target, last)
                names = function.arguments or list(inspect.signature(original).parameters)
                setattr(target, last, self.standing_in(name, original, function.arguments and names))
                replaced.append((target, last, original))
            yield self
        finally:
            for handle in handles:
                handle.remove()
            for target, last, original in replaced:
                setattr(target, last, original)

    # --- modules ---------------------------------------------------------------------------------------

    def before(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        path = self.paths[module]
        self.running.append(path)
        inputs = arguments(forward_signature(type(module)), (module, *args), kwargs)
        inputs.pop("self", None)
        self.open.append(self.begin(path, FORWARD, inputs))

    def after(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> Any:
        del args, kwargs
        self.running.pop()
        key, inputs = self.open.pop()
        return self.end(key, {**own_tensors(module), **inputs}, output, type(module).__name__)

    # --- functions -------------------------------------------------------------------------------------

    def standing_in(self, name: str, original: Callable[..., Any], names: list[str] | None) -> Callable[..., Any]:
        signature = None if names else inspect.signature(original)

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            if signature is not None:
                inputs = arguments(signature, args, kwargs)
            else:
                inputs = {**dict(zip(names or [], args, strict=False)), **kwargs}
            owner = self.paths.get(inputs.get("module")) if is_module(inputs.get("module")) else None
            place = owner if owner is not None else (self.running[-1] if self.running else "")
            key, seen = self.begin(place, name, inputs)
            output = original(*args, **kwargs)
            other = self.end(key, seen, output, name)
            return output if other is None else other

        return call

    # --- both ------------------------------------------------------------------------------------------

    def begin(self, path: str, name: str, inputs: dict[str, Any]) -> tuple[tuple[str, str, int], dict[str, Any]]:
        """Count the call, change arguments that an edit names in place, and keep the inputs as they are now."""
        operation = f"{name}@{self.phase}" if self.phase else name
        key = (path, operation, self.counts[path, operation])
        self.counts[path, operation] += 1
        for edit in self.edits:
            if key == edit[:3] and is_tensor(inputs.get(edit.field)):
                inputs[edit.field].mul_(edit.scale).add_(edit.add)
        return key, kept(inputs) if operation in self.wanted else {}

    def end(self, key: tuple[str, str, int], inputs: dict[str, Any], output: Any, kind: str) -> Any:
        results = self.fields(output, kind)
        changed = False
        for edit in self.edits:
            if key == edit[:3] and edit.field in results:
                results[edit.field] = results[edit.field] * edit.scale + edit.add
                changed = True
        if key[1] in self.wanted:
            self.calls[key] = Seen(*key, {**inputs, **kept(results)})
        return rebuilt(output, results) if changed else None

    def fields(self, output: Any, kind: str) -> dict[str, Any]:
        """Results by name: of a mapping its keys, of a tuple the names that the spec gives, else `result`."""
        if isinstance(output, Mapping):
            return {str(name): value for name, value in output.items() if is_tensor(value)}
        if not isinstance(output, (tuple, list)):
            return {"result": output}
        names = self.package.results.get(kind)
        if names is None:
            return {f"result_{number}": value for number, value in enumerate(output, 1)}
        if len(names) != len(output):
            raise ValueError(f"{kind} gives {len(output)} results, and the spec names {len(names)}")
        return dict(zip(names, output, strict=True))


def rebuilt(output: Any, results: dict[str, Any]) -> Any:
    """An output of the same form with other values."""
    if isinstance(output, Mapping):
        for name, value in results.items():
            output[name] = value
        return output
    return type(output)(results.values()) if isinstance(output, (tuple, list)) else results["result"]


@functools.cache
def forward_signature(kind: type) -> inspect.Signature:
    return inspect.signature(kind.forward)  # type: ignore[attr-defined]


def arguments(signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by parameter name, defaults included; what only `**kwargs` takes keeps its own name."""
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    found: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            found |= value
        elif kind is not inspect.Parameter.VAR_POSITIONAL:
            found[name] = value
    return found


def own_tensors(module: nn.Module) -> dict[str, Any]:
    """The module's own parameters and buffers by name."""
    found = {**dict(module.named_parameters(recurse=False)), **dict(module.named_buffers(recurse=False))}
    return kept(found)


def kept(values: Mapping[str, Any]) -> dict[str, Any]:
    """Copies of tensors, and plain numbers: what later steps of the run cannot change."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if is_tensor(value):
            found[name] = value.detach().clone()
        elif isinstance(value, (bool, int, float)):
            found[name] = value
    return found


def is_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def is_module(value: Any) -> bool:
    from torch import nn

    return isinstance(value, nn.Module)
