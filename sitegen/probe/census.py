# The tensors that an implementation says it has, taken with suspicion: whatever its constructor raises and
# whatever form its answer has becomes a finding with the place in its own code.
"""Ask a harness for its tensors: names, shapes, types, which are buffers, and which are one and the same."""

from __future__ import annotations

import math
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from sitegen.diagnostics import Finding, Location, SpecInvalid
from sitegen.resolver import Model


@dataclass(frozen=True)
class Counted:
    """One tensor of a built model: `shared_with` names the tensor that it is, `is_buffer` one that is not learned."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    is_scale: bool = False
    is_buffer: bool = False
    shared_with: str = ""

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Census:
    """All tensors by name, and the module paths."""

    tensors: dict[str, Counted]
    modules: frozenset[str]
    classes: Mapping[str, str] = field(default_factory=dict)  # of modules, where the harness tells them

    @property
    def parameters(self) -> dict[str, Counted]:
        """What counts as a parameter, each tensor once: no scale, no buffer, no second name."""
        return {n: t for n, t in self.tensors.items() if not (t.is_scale or t.is_buffer or t.shared_with)}


def take(model: Model, harness: ModuleType, config: Mapping[str, Any], where: Location | None = None) -> Census:
    """The census of a configuration.

    Raises `SpecInvalid` (`config-invalid`) when the implementation cannot be built or its answer has no such form.
    """
    where = where or model.sources.model_document.locate(("config",))
    try:
        facts, modules = harness.tensors(config)
        tensors = [
            Counted(
                str(fact.name),
                tuple(int(n) for n in fact.shape),
                str(fact.dtype),
                bool(fact.is_scale),
                bool(getattr(fact, "is_buffer", False)),
                str(getattr(fact, "shared_with", "")),
            )
            for fact in facts
        ]
    except Exception as error:  # the code under documentation may raise anything, and all of it is a finding
        raise SpecInvalid([refusal(error, model.sources.root, where)]) from None
    found = {tensor.name: tensor for tensor in tensors}
    if len(found) != len(tensors):
        message = "the implementation names a tensor twice"
        twice = next(t.name for t in tensors if found[t.name] is not t)
        raise SpecInvalid([Finding("config-invalid", message, where, actual=twice)])
    classes = {str(path): str(kind) for path, kind in modules.items()} if isinstance(modules, Mapping) else {}
    return Census(found, frozenset(modules), classes)


def refusal(error: Exception, root: Path, where: Location) -> Finding:
    """What the implementation raised, with the line of its own code that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "site-packages" not in f.filename and Path(f.filename).resolve() != Path(__file__)]
    place = ""
    if own:
        path = Path(own[-1].filename).resolve()
        inside = path.is_relative_to(root.resolve())
        place = f" at {path.relative_to(root.resolve()).as_posix() if inside else path.name}:{own[-1].lineno}"
    text = (str(error).strip().splitlines() or [""])[0][:300]
    message, hint = f"the implementation refuses the configuration{place}", "mend the field, or the implementation"
    if "meta tensor" in str(error) or "meta device" in str(error):
        message = f"this model cannot be built without real tensors{place}"
        hint = (
            "let its constructor compute with plain numbers, or let the harness build a small configuration on the CPU"
        )
    elif "uninitialized parameter" in str(error):
        message, hint = f"a parameter has no shape yet{place}", "give the layer its sizes: a lazy one cannot be counted"
    return Finding("config-invalid", message, where, actual=f"{type(error).__name__}: {text}", hint=hint)
