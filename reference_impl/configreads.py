"""Follows every configuration value from the field where it is read to the tensors and operations it reaches.

Numbers read from the configuration carry the names of their fields, through arithmetic too; a tensor whose shape
carries a name depends on that field, and so does an operation that receives such a number.  Texts and lists of layers
cannot carry names into comparisons: for them it is seen which module reads the field.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from torch import Tensor, nn

from .config import ConfigError, ModelArgs
from .layers import Build
from .recording import Call, recording


class ConfigRead(NamedTuple):
    """One place that a field's value reaches: a module, and in it a tensor or an operation, or nothing more."""

    field: str
    module: str
    tensor: str = ""  # full name
    operation: str = ""


class TracedInt(int):
    """A whole number that knows the fields it was made from."""

    fields: frozenset[str] = frozenset()


class TracedFloat(float):
    """A number that knows the fields it was made from."""

    fields: frozenset[str] = frozenset()


def traced(value: Any, fields: frozenset[str]) -> Any:
    """The value with the names of its fields; numbers and tuples of numbers only, others as they are."""
    if isinstance(value, bool) or not fields:
        return value
    if isinstance(value, tuple):
        return tuple(traced(item, fields) for item in value)
    kind = TracedInt if isinstance(value, int) else TracedFloat if isinstance(value, float) else None
    if kind is None:
        return value
    result = kind(value)
    result.fields = fields | fields_of(value)
    return result


def fields_of(value: Any) -> frozenset[str]:
    """The fields that a value, or any part of it, was made from."""
    if isinstance(value, TracedInt | TracedFloat):
        return value.fields
    if isinstance(value, tuple | list):
        return frozenset().union(*map(fields_of, value))
    return frozenset()


def _passing_on(name: str, reflected: bool) -> Callable[[Any, Any], Any]:
    plain = getattr(operator, name)

    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, int | float):
            return NotImplemented
        a, b = _bare(self), _bare(other)
        return traced(plain(b, a) if reflected else plain(a, b), fields_of(self) | fields_of(other))

    return method


def _bare(value: int | float) -> int | float:
    return int(value) if isinstance(value, TracedInt) else float(value) if isinstance(value, TracedFloat) else value


for _kind in (TracedInt, TracedFloat):
    for _name in ("add", "sub", "mul", "floordiv", "truediv", "mod", "pow"):
        setattr(_kind, f"__{_name}__", _passing_on(_name, reflected=False))
        setattr(_kind, f"__r{_name}__", _passing_on(_name, reflected=True))
    _kind.__neg__ = lambda self: traced(-_bare(self), self.fields)


class WatchedArgs(ModelArgs):
    """A configuration that notes which module reads which field, and gives numbers that carry their field's name."""

    def __getattribute__(self, name: str) -> Any:
        value = object.__getattribute__(self, name)
        watch = _watching[-1] if _watching else None
        if watch is None or name not in ModelArgs.__dataclass_fields__:
            return value
        watch.reads.append((name, reading_module()))
        return traced(value, frozenset((name,)))


class Watching:
    """What is noted while a model is built and run."""

    def __init__(self) -> None:
        self.reads: list[tuple[str, nn.Module | None]] = []
        self.parameters: list[tuple[frozenset[str], Tensor]] = []
        self.calls: list[tuple[frozenset[str], nn.Module | None, str]] = []  # of plain functions of `ops`


_watching: list[Watching] = []


def reading_module() -> nn.Module | None:
    """The innermost module at work, in its constructor or its call; None outside of modules."""
    frame = sys._getframe(2)
    while frame is not None:
        names = frame.f_code.co_varnames
        if frame.f_code.co_argcount and names[0] == "self":
            owner = frame.f_locals.get("self")
            if isinstance(owner, nn.Module):
                return owner
            if isinstance(owner, ModelArgs) and frame.f_code.co_name.startswith(("check", "_check")):
                return None  # a check compares the field, it does not use it
        frame = frame.f_back
    return None


@contextlib.contextmanager
def watching() -> Iterator[Watching]:
    """While open, reads of watched configurations and the sizes of parameters and caches are noted."""
    watch = Watching()
    kept = Build.parameter, Build.cache
    functions = direct_functions()

    def calling(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if fields := fields_of((*args, *kwargs.values())):
                watch.calls.append((fields, reading_module(), function.__name__))
            return function(*args, **kwargs)

        return call

    def noting(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def method(self: Build, *shape: int, **kwargs: Any) -> Tensor:
            tensor = make(self, *map(int, shape), **kwargs)
            watch.parameters.append((fields_of(shape), tensor))
            return tensor

        return method

    Build.parameter, Build.cache = noting(kept[0]), noting(kept[1])
    for module, name, function in functions:
        setattr(module, name, calling(function))
    _watching.append(watch)
    try:
        yield watch
    finally:
        _watching.remove(watch)
        for module, name, function in functions:
            setattr(module, name, function)
        Build.parameter, Build.cache = kept


def direct_functions() -> list[tuple[Any, str, Callable[..., Any]]]:
    """Functions of `ops` that modules of this package call by name, not through their `ops` attribute."""
    package = __name__.rpartition(".")[0]
    found = []
    for module_name, module in list(sys.modules.items()):
        inside = module_name.startswith(f"{package}.") and not module_name.startswith(f"{package}.ops")
        for name, value in list(vars(module).items()) if inside else ():
            if inspect.isfunction(value) and value.__module__.startswith(f"{package}.ops"):
                found.append((module, name, value))
    return found


def config_reads(
    config: Mapping[str, Any], build: Callable[[ModelArgs], nn.Module], run: Callable[[nn.Module], Any]
) -> list[ConfigRead]:
    """Build and run a model on a watched configuration; -> every place that a field reaches, each once.

    `build` makes the model of the arguments, `run` calls it in all its phases.
    """
    found: dict[ConfigRead, None] = {}
    with watching() as watch:
        args = WatchedArgs.from_dict(dict(config))
        watch.reads.clear()
        watch.calls.clear()
        model = build(args)
        paths = {module: path for path, module in model.named_modules()}

        def after(call: Call) -> None:
            for value in call.inputs.values():
                for name in fields_of(value):
                    found[ConfigRead(name, call.path, operation=call.op)] = None

        with recording(model, after):
            run(model)
    for fields, module, name in watch.calls:
        if module in paths:
            found.update(dict.fromkeys(ConfigRead(field, paths[module], operation=name) for field in fields))
    names = {id(tensor): name for name, tensor in model.named_parameters()}
    for fields, tensor in watch.parameters:
        name = names.get(id(tensor), "")
        for field in fields if name else ():
            found[ConfigRead(field, name.rpartition(".")[0], tensor=name)] = None
    for field, module in watch.reads:
        if module in paths:
            found[ConfigRead(field, paths[module])] = None
    return sorted(found)


def refusal(config: Mapping[str, Any], field: str) -> str:
    """What the configuration's own check says to another value of a field; "" when it accepts one."""
    said = ""
    for other in other_values(config[field]):
        try:
            ModelArgs.from_dict({**config, field: other})
        except ConfigError as error:
            said = said or str(error)
        else:
            return ""
    return said


def other_values(value: Any) -> list[Any]:
    """Values of the same type that differ from one."""
    match value:
        case bool():
            return [not value]
        case int() | float():
            return [value + 1, value * 2]
        case str():
            return [value + "x"]
        case None:
            return [1, 1.5]
    return []
