"""The harness of toy projects: its tensors are listed in the configuration, or are those of a small torch module."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from sitegen.probe.census import Counted
from sitegen.probe.modules import module_tensors

#: Name -> a function that builds a torch module from the configuration; tests add theirs.
MODULES: dict[str, Callable[[Mapping[str, Any]], Any]] = {}


@dataclasses.dataclass
class Edit:
    """Toys are not run."""


def tensors(config: Mapping[str, Any]) -> tuple[list[Counted], list[str]]:
    """`config["tensors"]`: [name, shape, dtype] with sizes as numbers or names of fields; or `config["module"]`."""
    if "module" in config:
        module = MODULES[config["module"]](config)
        return module_tensors(module), [name for name, _ in module.named_modules()]
    found = []
    for name, shape, dtype in config["tensors"]:
        sizes = tuple(eval(str(n), {"__builtins__": {}}, dict(config)) for n in shape)  # noqa: S307 - a toy's own sizes
        found.append(Counted(name, sizes, dtype, is_scale=name.endswith(".scale")))
    return found, sorted({"", *(t.name.rpartition(".")[0] for t in found)})


def build(*_: Any, **__: Any) -> Any:
    raise NotImplementedError("toys are not run")


record = operation = build


def has_operation(name: str) -> bool:
    del name
    return False


def check_kernel(name: str, target: str) -> list[dict[str, Any]]:
    raise KeyError((name, target))
