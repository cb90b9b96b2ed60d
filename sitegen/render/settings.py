# What the site builder decides: addresses, links to the repository, where caches may be kept.
"""Settings of the render stage."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sitegen.render.page import Addresses


@dataclass(frozen=True)
class Settings:
    """Where the site stands and what its pages may link to; empty addresses leave links out."""

    site_name: str = "Model specifications"
    directory_urls: bool = True
    site_url: str = ""
    edit_url: str = ""  # prefix of a file's address for editing, such as https://host/owner/repo/edit/main/
    issue_url: str = ""  # address for a new report
    markdown_twins: bool = True  # whether the builder can write `index.md` beside a page
    cache: Path | None = None  # .sitegen/cache of the project

    @property
    def addresses(self) -> Addresses:
        return Addresses(self.directory_urls)
