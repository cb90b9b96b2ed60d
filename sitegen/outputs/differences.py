# A comparison as text for people and as JSON for programs.
"""What `sitegen diff` prints."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sitegen.comparison import Comparison, Value


def to_json(found: Comparison) -> dict[str, Any]:
    """The comparison as data."""
    before, after = found.before, found.after

    def alone(accounts: Any, id: str) -> dict[str, Any]:
        return {"id": id, "title": accounts.model.component(id).title.strip(), "total": accounts.total(id)}

    return {
        "schema": 1,
        "before": found.names[0],
        "after": found.names[1],
        "differs": found.differs,
        "same": [pair.after for pair in found.same],
        "new": [alone(after, id) for id in found.new],
        "gone": [alone(before, id) for id in found.gone],
        "changed": [asdict(pair) for pair in found.changed],
        "symbols": [asdict(v) for v in found.symbols if v.differs],
        "policies": [asdict(v) for v in found.policies],
        "figures": [asdict(v) for v in found.figures],
    }


def text(found: Comparison) -> str:
    """Three lists, then sizes, then one line that sums up."""
    lines = []
    for title, accounts, ids in (("new", found.after, found.new), ("gone", found.before, found.gone)):
        for id in ids:
            component = accounts.model.component(id)
            lines.append(f"{title:8} {id}: {component.title.strip()}, {accounts.total(id):,} parameters")
    for pair in found.changed:
        lines.append(f"changed  {pair.after}" + (f" (was {pair.before})" if pair.before != pair.after else ""))
        for change in pair.changes:
            lines.append(f"  {change.aspect}")
            lines += [f"    - {line}" for line in change.before.splitlines() or ["nothing"]]
            lines += [f"    + {line}" for line in change.after.splitlines() or ["nothing"]]
    for title, values in (("size", found.symbols), ("counted", found.policies), ("figure", found.figures)):
        for v in values:
            if v.differs:
                lines.append(f"{title:8} {v.name} ({v.title}): {number(v.before)} -> {number(v.after)}")
    if not found.differs:
        lines.append(f"{found.names[0]} and {found.names[1]} state the same: nothing that is cited changed")
    lines.append(
        f"{found.names[0]} -> {found.names[1]}: {len(found.same):,} components the same, "
        f"{len(found.changed):,} changed, {len(found.new):,} new, {len(found.gone):,} gone"
    )
    return "\n".join(lines) + "\n"


def number(value: Any) -> str:
    """A value as people read it."""
    if value is None:
        return "none"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


__all__ = ["Value", "number", "text", "to_json"]
