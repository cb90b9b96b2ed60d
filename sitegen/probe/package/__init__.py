# A model that an installed package ships, behind the same functions as a harness module of the project.
"""Packages as implementations under test."""

from sitegen.probe.package.harness import PackageHarness, open_package
from sitegen.probe.package.installation import installed_state

__all__ = ["PackageHarness", "installed_state", "open_package"]
