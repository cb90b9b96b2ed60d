# The functions that a harness module of the project would have, for a class of an installed package:
# the spec says in model.yml which class, how to build and fill it, and which functions to watch.
"""A package's model under test."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sitegen.loader import Sources
from sitegen.probe.harness import CannotRun
from sitegen.probe.package import installation
from sitegen.probe.package.initial import fill
from sitegen.probe.package.watching import FORWARD, Edit, Seen, Watch, own_tensors
from sitegen.schema import Fill, Package

#: Number types as tensor tables write them.
STORAGE = {"float32": "F32", "bfloat16": "BF16", "float16": "F16", "float64": "F64", "int64": "I64", "int32": "I32"}


class TensorFact(NamedTuple):
    """One tensor of a built model; a buffer is stored with it and is no parameter."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    is_scale: bool = False
    is_buffer: bool = False


def open_package(sources: Sources) -> PackageHarness:
    """The harness of the package that the model's spec pins.

    Raises `CannotRun` when it (or torch) is missing and `SpecInvalid` (`package-mismatch`) when it is another one.
    """
    package = sources.model.implementation.package
    assert package is not None
    installation.require(sources, package)
    try:
        home = importlib.import_module(package.module)
    except ImportError as error:
        raise CannotRun(f"{package.module} cannot be imported: {str(error).splitlines()[0][:160]}") from None
    return PackageHarness(package, home)


class PackageHarness:
    """Builds, lists, runs and records the model of a package."""

    Edit = Edit

    def __init__(self, package: Package, home: Any) -> None:
        self.package, self.home = package, home
        for name in (package.model, package.config):
            if not hasattr(home, name):
                raise CannotRun(f"{package.module} has no class {name}")

    # --- building ------------------------------------------------------------------------------------

    def configuration(self, config: Mapping[str, Any]) -> Any:
        """The package's configuration object; raises `ValueError` where it refuses or rewrites a field."""
        kind = getattr(self.home, self.package.config)
        try:
            made = kind(**config)
        except Exception as error:
            raise ValueError(f"{self.package.config} refuses the configuration: {first_line(error)}") from None
        plain = kind()  # older names of fields are no parameters, and still attributes
        for name, value in config.items():
            if not hasattr(plain, name):
                raise ValueError(f"{self.package.config} has no field {name!r}")
            actual = getattr(made, name, None)
            if actual != value:
                raise ValueError(f"{self.package.config} reads {name} = {value!r} as {actual!r}")
        return made

    def construct(self, config: Mapping[str, Any], dtype: str) -> Any:
        """An instance of the class, on the device of the context."""
        import torch

        made = self.configuration(config)
        kind = getattr(self.home, self.package.model)
        return kind._from_config(made, dtype=getattr(torch, dtype), **self.package.options)

    def tensors(self, config: Mapping[str, Any]) -> tuple[list[TensorFact], dict[str, str]]:
        """-> all tensors, and module path -> class, of the configuration on the meta device."""
        import torch

        with torch.device("meta"):
            net = self.construct(config, self.package.dtype)
        parameters = dict(net.named_parameters())
        table = [
            TensorFact(name, tuple(value.shape), storage(value), is_buffer=name not in parameters)
            for name, value in net.state_dict(keep_vars=True).items()
        ]
        return table, {name: type(module).__name__ for name, module in net.named_modules()}

    def build(self, config: Mapping[str, Any], *, dtype: str, seed: int, first: Sequence[Fill] = ()) -> Any:
        """A small model on the CPU, filled by the recipe (`first` goes before its rules)."""
        net = self.construct(config, {"model": self.package.dtype, "float64": "float32"}.get(dtype, dtype))
        if dtype == "float64":
            net = net.double()
        fill(net, [*first, *self.package.initialise], config, seed)
        return net.eval()

    def read_stored(self, net: Any, files: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
        """Write a checkpoint of these names, and read it; -> what was read, and names that nothing was read into."""
        import tempfile

        import torch
        from safetensors.torch import save_file

        with tempfile.TemporaryDirectory() as folder:
            net.config.save_pretrained(folder)
            save_file(dict(files), f"{folder}/model.safetensors", metadata={"format": "pt"})
            made, said = type(net).from_pretrained(
                folder, dtype=torch.float32, output_loading_info=True, **self.package.options
            )
        return made.state_dict(), set(said["missing_keys"])

    def trial(
        self, config: Mapping[str, Any], *, seed: int, first: Sequence[Fill] = (), options: Mapping[str, str] = {},  # noqa: B006
        given: str = "ids", batch: int = 2, positions: int = 11, operations: Iterable[str] = (),
    ) -> list[Seen]:  # fmt: skip
        """Build in float32, fill and run once; whatever the package raises comes through."""
        import torch

        made = getattr(self.home, self.package.config)(**config)
        kind = getattr(self.home, self.package.model)
        net = kind._from_config(made, dtype=torch.float32, **{**self.package.options, **options})
        fill(net, [*first, *self.package.initialise], made.to_dict(), seed)
        watch = Watch(net.eval(), self.package, set(operations), [])
        generator = torch.Generator().manual_seed(seed)
        ids = torch.randint(net.config.vocab_size, (batch, positions), generator=generator)
        name = self.package.arguments.get(given, "input_ids")
        value = ids if given == "ids" else net.get_input_embeddings()(ids)
        with torch.no_grad(), watch.watching(self.home):
            net(**{name: value})
        return list(watch.calls.values())

    def size(self, config: Mapping[str, Any]) -> int:
        """Parameters of a model of this configuration, counted on the meta device."""
        import torch

        with torch.device("meta"):
            made = getattr(self.home, self.package.config)(**config)
            net = getattr(self.home, self.package.model)._from_config(made, **self.package.options)
        return sum(parameter.numel() for parameter in net.parameters())

    # --- running -------------------------------------------------------------------------------------

    def record(
        self, net: Any, *, batch: int, positions: int, seed: int, operations: Iterable[str], edits: Iterable[Edit] = ()
    ) -> list[Seen]:
        """A prompt of random ids and one decoding step; -> the calls of `operations`."""
        import torch

        watch = Watch(net, self.package, set(operations), list(edits))
        generator = torch.Generator().manual_seed(seed)
        ids = torch.randint(net.config.vocab_size, (batch, positions + 1), generator=generator)
        name = self.package.arguments.get("ids", "input_ids")
        with torch.no_grad(), exactly(net), watch.watching(self.home):
            output = net(**{name: ids[:, :-1]})
            if self.package.decoding is not None:
                watch.part("decode")
                held = output[self.package.decoding.field]
                net(**{name: ids[:, -1:], self.package.decoding.argument: held})
        return list(watch.calls.values())

    def has_operation(self, name: str) -> bool:
        head = name.partition("@")[0]
        return head == FORWARD or head in self.package.functions

    def module_operation(self, net: Any, path: str, name: str) -> Callable[..., dict[str, Any]]:
        """A module or a function as a function of its inputs; a module's parameters are inputs too."""
        watch = Watch(net, self.package, set(), [])
        if name != FORWARD:
            function = self.package.functions[name]
            original = functools.reduce(getattr, function.path.split("."), self.home)
            parameters = list(function.arguments or inspect.signature(original).parameters)

            def of(**inputs: Any) -> dict[str, Any]:
                return watch.fields(original(**inputs), name)
        else:
            import torch

            module = net.get_submodule(path)
            own = list(own_tensors(module))
            taken = [p for p in inspect.signature(type(module).forward).parameters if p != "self"]
            parameters = [*taken, *own]

            def of(**inputs: Any) -> dict[str, Any]:
                held = {key: inputs[key] for key in own if key in inputs}
                given = {key: value for key, value in inputs.items() if key in taken}
                result = torch.func.functional_call(module, held, (), given)
                return watch.fields(result, type(module).__name__)

        def call(**inputs: Any) -> dict[str, Any]:
            import torch

            with torch.no_grad(), exactly(net):
                return of(**inputs)

        call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter(p, inspect.Parameter.KEYWORD_ONLY) for p in dict.fromkeys(parameters)]
        )
        return call

    def operation(self, name: str) -> Callable[..., dict[str, Any]]:
        raise KeyError(f"{name} needs a module: see module_operation")

    def evaluate(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Worked cases call functions of the project's own; a package's are seen in runs."""
        del arguments
        raise KeyError(name)

    def check_kernel(self, name: str, target: str) -> list[dict[str, Any]]:
        """A package has no twins of ours."""
        raise KeyError(name)


def storage(tensor: Any) -> str:
    name = str(tensor.dtype).removeprefix("torch.")
    return STORAGE.get(name, name)


def first_line(error: BaseException) -> str:
    text = str(error).strip().strip("'\"").splitlines()
    return f"{type(error).__name__}: {text[0][:200] if text else ''}"


def exactly(net: Any) -> contextlib.AbstractContextManager[Any]:
    """For a float64 model: no step of the run falls back to float32, as the code asks for in a few places."""
    import torch

    if next(net.parameters()).dtype != torch.float64:
        return contextlib.nullcontext()
    return wide_mode()


def wide_mode() -> contextlib.AbstractContextManager[Any]:
    """A mode in which a cast to float32 is one to float64."""
    import torch
    from torch.overrides import TorchFunctionMode

    class Wide(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if function is torch.Tensor.float:
                return args[0].double()
            if kwargs.get("dtype") is torch.float32:
                kwargs = {**kwargs, "dtype": torch.float64}
            if function is torch.Tensor.to:
                args = tuple(torch.float64 if a is torch.float32 else a for a in args)
            return function(*args, **kwargs)

    return Wide()
