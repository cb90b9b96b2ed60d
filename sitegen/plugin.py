# The MkDocs plugin: options in, generated pages out.  Everything that matters happens in pipeline.py.
"""A thin adapter of the render stage for MkDocs and ProperDocs."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, Literal

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


class SitegenConfig(Config):
    """Options under `plugins: - sitegen:` in mkdocs.yml."""

    models = c.ListOfItems(c.Type(str), default=[])


class SitegenPlugin(BasePlugin[SitegenConfig]):
    """Adds the pages of the project's models to the site."""

    served = False

    def on_startup(self, *, command: Literal["build", "gh-deploy", "serve"], dirty: bool) -> None:
        del dirty
        self.served = command == "serve"

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
        for page in built.pages:
            file = File.generated(config, page.path, content=page.markdown())
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
