"""Where the tests of the kernels keep what they compile: an ignored folder of the checkout, so that only the first run
compiles. A test file that imports the fixture uses it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / ".tilelang"


@pytest.fixture(autouse=True, scope="module")
def kernel_cache():
    """TileLang reads its cache folder from the environment whenever it compiles."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILELANG_CACHE_DIR", str(FOLDER))
        yield
