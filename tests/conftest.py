"""How many examples a property is tried on: a few hundred, or 20,000 each with HYPOTHESIS_PROFILE=thorough."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Kernels that the tests compile are kept in the checkout, by their source, so that only the first run compiles them.
os.environ.setdefault("TILELANG_CACHE_DIR", str(Path(__file__).resolve().parents[1] / ".tilelang"))

SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]
settings.register_profile("default", max_examples=200, deadline=None, suppress_health_check=SLOW_IS_FINE)
settings.register_profile("thorough", max_examples=20_000, deadline=None, suppress_health_check=SLOW_IS_FINE)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test of a property carries the mark `properties`: `HYPOTHESIS_PROFILE=thorough pytest -m properties`."""
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("properties")
