# The template environment: automatic escaping, no undefined names, a handful of filters.
"""Jinja2 templates of the pages."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sitegen.render.page import slug
from sitegen.render.view import WORDS


def thousands(number: int) -> str:
    """An integer as a reader sees it: `491,520`."""
    return f"{number:,}"


def word(state: str) -> str:
    """The word shown for a state."""
    return WORDS[state]


@cache
def environment() -> Environment:
    """The one environment; templates live in the package, and every variable is escaped."""
    env = Environment(
        loader=PackageLoader("sitegen", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    env.filters.update(thousands=thousands, slug=slug, word=word)
    return env


def fill(name: str, **values: Any) -> Markup:
    """A template's output with its values filled in."""
    return Markup(environment().get_template(name).render(**values).strip())
