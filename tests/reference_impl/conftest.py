"""What the tests of the reference implementation share: one thread, seeded numbers, the recorded fixtures."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes more than a few seconds; leave out with -m 'not slow'")


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def normal(request: pytest.FixtureRequest):
    """`normal(2, 3)`: standard normal float32 numbers, seeded by the test's own name."""
    generator = torch.Generator().manual_seed(sum(map(ord, request.node.name)))
    return lambda *shape, dtype=torch.float32: torch.randn(shape, generator=generator, dtype=dtype)


@pytest.fixture(scope="session")
def recorded_folder() -> Path:
    """The recorded numbers: beside the tests, beside the checkout, or where REFERENCE_FIXTURES points."""
    places = [Path(__file__).with_name("fixtures"), ROOT.parent / "shared" / "fixtures"]
    if "REFERENCE_FIXTURES" in os.environ:
        places.insert(0, Path(os.environ["REFERENCE_FIXTURES"]))
    for place in places:
        if (place / "tiny_config.json").is_file():
            return place
    pytest.skip("the recorded fixtures are not here: set REFERENCE_FIXTURES to their folder")
