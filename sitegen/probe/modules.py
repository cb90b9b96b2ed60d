# For harnesses of torch models: the tensors of a module, counted by identity and never by name.
"""List a torch module's tensors: tied ones once, buffers apart, shapes of the whole where it is sharded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sitegen.probe.census import Counted

if TYPE_CHECKING:
    from torch import nn

#: Names as in safetensors headers.
STORAGE = {
    "bfloat16": "BF16", "float16": "F16", "float32": "F32", "float64": "F64", "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2", "float8_e8m0fnu": "F8_E8M0", "int8": "I8", "uint8": "U8", "int16": "I16", "int32": "I32",
    "int64": "I64", "bool": "BOOL", "float4_e2m1fn_x2": "F4",
}  # fmt: skip


def module_tensors(module: nn.Module) -> list[Counted]:
    """Parameters and persistent buffers of a module, on any device.

    A tensor under two names is listed under both, the second with `shared_with`.  Integer and boolean tensors are
    buffers whatever their class: nothing learns them.  Buffers that a state dict leaves out are left out.

    Raises:
        ValueError: for a parameter without a shape yet, or a flattened shard of several.
    """
    first: dict[int, str] = {}
    found = []
    for name, tensor, is_buffer in _named(module):
        owner = first.setdefault(id(tensor), name)
        learned = tensor.is_floating_point() or tensor.is_complex()
        found.append(
            Counted(
                name,
                global_shape(name, tensor),
                STORAGE.get(str(tensor.dtype).removeprefix("torch."), str(tensor.dtype)),
                is_buffer=is_buffer or not learned,
                shared_with="" if owner == name else owner,
            )
        )
    return found


def _named(module: nn.Module) -> Iterator[tuple[str, Any, bool]]:
    for name, parameter in module.named_parameters(remove_duplicate=False):
        yield name, parameter, False
    for path, inner in module.named_modules(remove_duplicate=False):
        for name, buffer in inner.named_buffers(prefix=path, recurse=False, remove_duplicate=False):
            if name.rpartition(".")[2] not in inner._non_persistent_buffers_set:
                yield name, buffer, True


def global_shape(name: str, tensor: Any) -> tuple[int, ...]:
    """The shape of the whole parameter: a DTensor states it, ZeRO-3 keeps it beside an empty tensor."""
    from torch.nn.parameter import is_lazy

    if is_lazy(tensor):
        raise ValueError(f"uninitialized parameter {name}: a lazy layer has no shape before its first call")
    if type(tensor).__name__ == "FlatParameter":
        raise ValueError(f"{name} is a flattened shard of several parameters: count the model before it is sharded")
    return tuple(int(n) for n in getattr(tensor, "ds_shape", tensor.shape))
