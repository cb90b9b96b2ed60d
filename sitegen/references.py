# Ids that the model's own files name: evidence its sources, policies their places, components and evidence.
"""Check references outside of component files."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sitegen.diagnostics import Finding, Location, nearest
from sitegen.resolver import Model


def reference_findings(model: Model) -> Iterator[Finding]:
    """Names in evidence.yml and policies.yml that nothing has; a misspelt term would silently count nothing."""
    sources = model.sources
    for name, entry in sources.evidence.items():
        where = sources.evidence_document.locate(("evidence", name, "source"))
        yield from unknown("source", entry.source, sources.sources.sources, where)
    for name, policy in sources.policies.items():
        at = sources.policies_document.locate
        for number, term in enumerate(policy.terms):
            for field, known in (("places", model.places), ("components", model.components)):
                for place, id in enumerate(getattr(term, field) or ()):
                    where = at(("policies", name, "terms", number, field, place))
                    yield from unknown(field.removesuffix("s"), id, known, where)
        for place, id in enumerate(policy.evidence):
            yield from unknown("evidence entry", id, sources.evidence, at(("policies", name, "evidence", place)))


def unknown(kind: str, name: str, known: Collection[str], where: Location) -> Iterator[Finding]:
    if name not in known:
        yield Finding("unknown-reference", f"no {kind} {name!r}", where, hint=nearest(name, known))
