# Where pages live: every path follows from ids, never from titles, so that links outlive a rename.
"""Paths of a model's pages."""

from __future__ import annotations


def model_page(model: str) -> str:
    """The entry of a model: its tree of components and places."""
    return f"{model}/index.md"


def family_page(model: str) -> str:
    """The model as a module of a library, on one page."""
    return f"{model}/family/index.md"


def comparison_page(before: str, after: str) -> str:
    """What changed from one model to another."""
    return f"{after}/changes-from/{before}/index.md"


def components_page(model: str) -> str:
    """The table of all components."""
    return f"{model}/components/index.md"


def places_page(model: str) -> str:
    """The tree of all places."""
    return f"{model}/layers/index.md"


def configuration_page(model: str) -> str:
    """The table of all fields of the configuration."""
    return f"{model}/configuration/index.md"


def claims_page(model: str) -> str:
    """Headline claims with their derivations."""
    return f"{model}/claims/index.md"


def numbers_page(model: str) -> str:
    """Published figures, reconciled."""
    return f"{model}/numbers/index.md"


def tensors_page(model: str) -> str:
    """The index of all tensors by name."""
    return f"{model}/tensors/index.md"


def symbols_page(model: str) -> str:
    """The glossary of symbols."""
    return f"{model}/symbols/index.md"


def gotchas_page(model: str) -> str:
    """What ports get wrong."""
    return f"{model}/gotchas/index.md"


def sources_page(model: str) -> str:
    """The list of the files that pages cite."""
    return f"{model}/source/index.md"


def source_page(model: str, path: str) -> str:
    """A file of the implementation; pages begin with letters or digits, so `__init__.py` is found under `init__.py`."""
    safe = "/".join(part.lstrip("_.") or "x" for part in path.split("/"))
    return f"{model}/source/{safe}/index.md"


def tensors_file(model: str) -> str:
    """All tensor patterns as CSV."""
    return f"{model}/tensors/tensors.csv"


def accounting_file(model: str) -> str:
    """All accounting rows as CSV."""
    return f"{model}/components/accounting.csv"


def component_page(model: str, component: str) -> str:
    """The canonical page of a component: all places, totals over the model."""
    return f"{model}/components/{component}/index.md"


def place_page(model: str, place: str, component: str | None = None) -> str:
    """The page of a component in one place, or of the place itself."""
    return f"{model}/layers/{place}/index.md" if component is None else f"{model}/layers/{place}/{component}/index.md"


def twin(path: str) -> str:
    """The JSON beside a page."""
    return path.removesuffix("index.md") + "page.json"


def spec_file(model: str, file: str) -> str:
    """Where a spec file of the repository (`spec/<model>/components/x.yml`) is served."""
    return f"{model}/spec/{file.removeprefix(f'spec/{model}/')}"
