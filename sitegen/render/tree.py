# A site as a plain tree of Markdown and files, which any builder of the MkDocs family can build without
# this project's plugin.
"""The plain tree: pages, hand-written pages, files, and a builder's configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from sitegen.diagnostics import SitegenError
from sitegen.render.site import NavItem, Site


def nav_config(items: Sequence[NavItem]) -> list[Any]:
    """Navigation in the form that builders read from their configuration; themes do not escape titles."""
    return [{escape(item.title): nav_config(item.items) if item.items else item.path} for item in items]


def tree_files(site: Site, docs: Mapping[str, bytes]) -> dict[str, bytes]:
    """Path below the documentation folder -> content; `docs` are the hand-written pages and their files.

    Raises `SitegenError` when a hand-written file stands where a page is made.
    """
    made: dict[str, bytes] = {page.path: page.markdown().encode() for page in site.pages}
    made |= site.files
    clashes = sorted(made.keys() & docs.keys())
    if clashes:
        raise SitegenError(f"docs/{clashes[0]} stands where a page is made", hint="rename the hand-written file")
    for path, data in docs.items():
        made[path] = site.insert(path, data.decode("utf-8")).encode() if path.endswith(".md") else data
    return made


def tree_config(config: Mapping[str, Any], site: Site) -> dict[str, Any]:
    """A builder's configuration for the tree, from the project's own: without the plugin, with navigation."""
    result = {key: value for key, value in config.items() if key not in ("watch", "hooks", "site_dir")}
    plugins = [plugin for plugin in config.get("plugins") or [] if _name(plugin) != "sitegen"]
    if "plugins" in config:
        result["plugins"] = plugins
    result["docs_dir"] = "docs"
    result["nav"] = [*(config.get("nav") or []), *nav_config(site.nav)]
    result["extra_css"] = [*(config.get("extra_css") or []), *site.styles]
    result["extra_javascript"] = [*(config.get("extra_javascript") or []), *site.scripts]
    return result


def _name(plugin: Any) -> str:
    return str(next(iter(plugin))) if isinstance(plugin, Mapping) else str(plugin)
