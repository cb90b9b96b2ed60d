# The MkDocs plugin: options in, generated pages out.  Everything that matters happens in pipeline.py.
"""A thin adapter of the render stage for MkDocs and ProperDocs."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, Literal

from jinja2 import ChoiceLoader, DictLoader, Environment
from mkdocs.config import config_options as c
from mkdocs.config.base import Config
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import BasePlugin, get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page as MkDocsPage

from sitegen import pipeline
from sitegen.diagnostics import Finding, SitegenError, SpecInvalid
from sitegen.loader import find_root
from sitegen.outputs.tree import address
from sitegen.render.links import dead_links, read_site
from sitegen.render.settings import Settings
from sitegen.render.tree import nav_config

log = get_plugin_logger("sitegen")

_HELD = "ms-held-"
_KEPT = "ms-kept.html"
_PLACE = re.compile(rf"<!-- {_HELD}([0-9a-f]{{24}}) -->")


class SitegenConfig(Config):
    """Options under `plugins: - sitegen:` in mkdocs.yml."""

    models = c.ListOfItems(c.Type(str), default=[])


class SitegenPlugin(BasePlugin[SitegenConfig]):
    """Adds the pages of the project's models to the site."""

    served = False

    def __init__(self) -> None:
        super().__init__()
        self.keys: dict[str, str] = {}  # page -> digest of what it is made from
        self.kept: dict[str, tuple[str, str]] = {}  # page -> that digest, and the page as it was built

    def on_startup(self, *, command: Literal["build", "gh-deploy", "serve"], dirty: bool) -> None:
        del dirty
        self.served = command == "serve"
        self.kept.clear()

    def on_config(self, config: MkDocsConfig) -> MkDocsConfig:
        try:
            self.root = find_root(Path(config.config_file_path).parent)
        except SitegenError as error:
            raise PluginError(str(error)) from None
        config.watch.append(str(self.root / "spec"))
        return config

    def on_files(self, files: Files, config: MkDocsConfig) -> Files:
        settings = Settings(
            site_name=config.site_name,
            directory_urls=config.use_directory_urls,
            site_url=config.site_url or "",
            edit_url=address(config.repo_url, "edit/main/"),
            issue_url=address(config.repo_url, "issues/new"),
            cache=self.root / ".sitegen" / "cache",
        )
        try:
            built = pipeline.build(self.root, settings, self.config.models)
        except SpecInvalid as error:  # a formula that cannot be rendered
            return self.broken(files, config, error.findings)
        except SitegenError as error:  # no model at all, or two pages with one address
            finding = Finding("config-invalid", error.message, error.where, hint=error.hint)
            return self.broken(files, config, [finding])
        self.report(built.findings)
        self.insert = built.site.insert
        self.pages = {page.path: page for page in built.pages}
        self.held: dict[str, tuple[str, bool]] = {}
        for page in built.pages:
            file = File.generated(config, page.path, content=page.markdown(self.hold))
            if page.source:
                file.edit_uri = page.source
            files.append(file)
        for path, data in built.site.files.items():
            files.append(File.generated(config, path, content=data))
        if built.broken:
            files.append(File.generated(config, "findings.md", content=findings_page(built.findings)))
        config.nav = [
            *(config.nav or []),
            *nav_config(built.site.nav),
            *([{"Findings": "findings.md"}] if built.broken else []),
        ]
        around = [config.nav, [(page.path, page.title) for page in built.pages]]
        self.neighbours = hashlib.sha256(json.dumps(around, default=str).encode()).hexdigest()
        config.extra_css = [*(s for s in config.extra_css if s not in built.site.styles), *built.site.styles]
        scripts = [s for s in config.extra_javascript if str(s) not in built.site.scripts]
        config.extra_javascript = [*scripts, *built.site.scripts]
        return files

    def broken(self, files: Files, config: MkDocsConfig, findings: Sequence[Finding]) -> Files:
        """The hand-written pages and one that says what is wrong: who serves the site mends the spec and goes on."""
        self.report(findings)
        self.insert = lambda path, text: text
        files.append(File.generated(config, "findings.md", content=findings_page(findings)))
        config.nav = [*(config.nav or []), {"Findings": "findings.md"}]
        return files

    def on_page_markdown(self, markdown: str, *, page: MkDocsPage, config: MkDocsConfig, files: Files) -> str:
        del config, files
        return markdown if page.file.generated_by else self.insert(page.file.src_uri, markdown)

    def hold(self, html: str, searchable: bool) -> str:
        """A place-holder for a block: parsing its HTML as Markdown would take longer than all the rest."""
        key = hashlib.sha256(html.encode()).hexdigest()[:24]
        self.held[key] = (f'<div class="ms-block">\n{html.strip()}\n</div>', searchable)
        return f"<!-- {_HELD}{key} -->"

    def fill(self, html: str, searchable: bool) -> str:
        """The text with held blocks of one kind in their places."""

        def block(match: re.Match[str]) -> str:
            text, own = self.held[match[1]]
            return text if own == searchable else match[0]

        return _PLACE.sub(block, html)

    def on_env(self, env: Environment, *, config: MkDocsConfig, files: Files) -> Environment:
        del config, files
        env.loader = ChoiceLoader([loader for loader in (env.loader, DictLoader({_KEPT: "{{ kept }}"})) if loader])
        return env

    def on_page_content(self, html: str, *, page: MkDocsPage, config: MkDocsConfig, files: Files) -> str:
        del config, files
        if not page.file.generated_by or not getattr(self, "held", None):
            return html
        # While the site is served, a page that says the same among the same neighbours keeps what was built.
        text = f"{self.neighbours}\0{page.title}\0{html}"
        self.keys[page.file.src_uri] = hashlib.sha256(text.encode()).hexdigest()
        if self.served and self.kept.get(page.file.src_uri, ("", ""))[0] == self.keys[page.file.src_uri]:
            page.meta["template"] = _KEPT
        return self.fill(html, True)

    def on_page_context(self, context: dict[str, Any], *, page: MkDocsPage, config: MkDocsConfig, nav: Any) -> Any:
        del config, nav
        if page.meta.get("template") == _KEPT:
            context["kept"] = self.kept[page.file.src_uri][1]
        return context

    def on_post_page(self, output: str, *, page: MkDocsPage, config: MkDocsConfig) -> str:
        del config
        if not page.file.generated_by or not getattr(self, "held", None):
            return output
        whole = self.fill(output, False)
        if self.served:
            self.kept[page.file.src_uri] = (self.keys[page.file.src_uri], whole)
        return whole

    def on_post_build(self, *, config: MkDocsConfig) -> None:
        """Markdown twins; then links that the builder does not follow: in HTML blocks, to folders, to anchors."""
        for page in getattr(self, "pages", {}).values():
            if text := page.plain():
                path = Path(config.site_dir) / page.path
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, "utf-8")
        if not self.served:
            for dead in dead_links(*read_site(Path(config.site_dir))):
                log.warning("dead link in %s", dead)

    def report(self, findings: Any) -> None:
        """Findings become log lines; errors and warnings fail a strict build."""
        for finding in findings:
            (log.info if finding.severity == "notice" else log.warning)(finding.text())


def findings_page(findings: Any) -> str:
    """A page that shows what is wrong with a spec while the site is served."""
    shown: list[Finding] = list(findings)
    rows = "\n".join(f"<pre>{escape(finding.text())}</pre>" for finding in shown)
    return f"# Findings\n\nA spec cannot be read; its pages are missing until it is mended.\n\n<div>\n{rows}\n</div>\n"
