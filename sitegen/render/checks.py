# What the checks of a page are called and say, where they have no words of their own in the spec.
"""Words of checks."""

from __future__ import annotations

from markupsafe import Markup

from sitegen import schema
from sitegen.render.book import Verdict

#: What a check without words of its own says.
_CHECKS = {
    "kernel": "The TileLang kernel agrees with its plain twin on the host",
    "kernel-gpu": "The TileLang kernel agrees with its plain twin on a GPU",
}

#: What the kinds of checks are called on a page.
KINDS = {
    "identity": "identity",
    "bound": "bound",
    "control": "negative control",
    "causal": "causal edit",
    "error": "expected error",
    "size": "count",
    "sweep": "sweep",
}


def fixed_words(component: schema.Component, verdict: Verdict) -> tuple[str, Markup]:
    """Kind and words of a check that has no text of its own: they follow from what it is about."""
    match verdict.kind:
        case "module" if component.module is not None:
            path = component.module.path or "the model itself"
            return "class", Markup("<code>{}</code> is a <code>{}</code>").format(path, component.module.kind)
        case "row":
            row = next(row for row in component.parameters if row.id == verdict.name)
            words = Markup("<code>{}</code> [{}] {} is stored and is no parameter: {}")
            return "buffer", words.format(row.tensor, ", ".join(row.axes), row.dtype, row.text)
        case "stored":
            row = next(row for row in component.parameters if row.id == verdict.name)
            return "stored name", stored_words(row.tensor, row.stored)
    return verdict.kind, Markup.escape(_CHECKS.get(verdict.kind, verdict.name))


def stored_words(tensor: str, stored: list[str]) -> Markup:
    names = Markup(", ").join(Markup("<code>{}</code>").format(name) for name in stored)
    return Markup("<code>{}</code> is read from {}").format(tensor, names)


def sweep_points(prop: schema.Property | None, detail: str) -> tuple[tuple[str, str, str], ...]:
    """The points of a sweep with what was seen at each; empty for anything else."""
    if prop is None or not prop.points:
        return ()
    seen = dict(part.rpartition(": ")[::2] for part in detail.split("; ") if ": " in part)
    return tuple((p.label.strip(), f"{p.error:.1e}", seen.get(p.label.strip(), "not run")) for p in prop.points)
