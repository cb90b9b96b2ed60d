# Where pages live: every path follows from ids, never from titles, so that links outlive a rename.
"""Paths of a model's pages."""

from __future__ import annotations


def model_page(model: str) -> str:
    """The entry of a model: its tree of components and places."""
    return f"{model}/index.md"


def components_page(model: str) -> str:
    """The table of all components."""
    return f"{model}/components/index.md"


def places_page(model: str) -> str:
    """The tree of all places."""
    return f"{model}/layers/index.md"


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
