# The component tree with shares: what each component owns with its parts, as a number, a share and a bar; folds
# need no script.
"""Build the tree of components with their shares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from sitegen.render.pictures.svg import number, tag
from sitegen.render.view import TreeRow


@dataclass(frozen=True)
class ShareNode:
    """A component of the tree: its row, its share of the whole in words, its bar, and its parts."""

    row: TreeRow
    share: str
    bar: Markup
    parts: tuple[ShareNode, ...]

    def walk(self) -> Iterator[ShareNode]:
        """The node and all below it."""
        yield self
        for part in self.parts:
            yield from part.walk()


def share_tree(rows: Sequence[tuple[str, TreeRow]], parent: Mapping[str, str], whole: int) -> tuple[ShareNode, ...]:
    """Components in browsing order as a forest; `parent` names the component around another, `whole` is 100 %."""
    below: dict[str, list[tuple[str, TreeRow]]] = {}
    for id, row in rows:
        below.setdefault(parent.get(id, ""), []).append((id, row))

    def nodes(around: str) -> tuple[ShareNode, ...]:
        return tuple(
            ShareNode(row, share_text(row.total, whole), share_bar(row.total, whole), nodes(id))
            for id, row in below.get(around, ())
        )

    return nodes("")


def share_text(part: int, whole: int) -> str:
    """A share in per cent with two digits that count; nothing for nothing."""
    if not part or not whole:
        return ""
    share = 100 * part / whole
    if share >= 99.95:
        return f"{share:.0f} %" if part == whole else "> 99.9 %"
    return f"{share:.1f} %" if share >= 1 else f"{share:.2g} %" if share >= 0.0001 else "< 0.0001 %"


def share_bar(part: int, whole: int) -> Markup:
    """A bar as long as the share; the number beside it says the same, so it is hidden from screen readers."""
    if not part or not whole:
        return Markup("")
    width = max(0.5, 100 * part / whole)
    return Markup(
        '<svg class="ms-share" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">{}</svg>'
    ).format(tag("rect", width=number(width), height=4))
