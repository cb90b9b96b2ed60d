"""Which configuration the regimes start from."""

from __future__ import annotations

import pytest

from sitegen import schema
from sitegen.probe.cpu import drives


def configuration(id: str, dtype: str) -> schema.Configuration:
    return schema.Configuration.model_validate({"id": id, "set": {}, "dtype": dtype})


EXACT, QUANTISED = configuration("exact", "float64"), configuration("quantised", "model")


@pytest.mark.parametrize(
    ("only", "start", "driven"),
    [
        (None, EXACT, True),
        (None, QUANTISED, False),  # its inputs are rounded already: the exact one is there
        (["exact"], EXACT, True),
        (["quantised"], QUANTISED, True),  # a call that only the quantised model makes
        (["exact", "quantised"], QUANTISED, False),
    ],
)
def test_regimes_start_from_an_exact_configuration_where_one_makes_the_call(
    only: list[str] | None, start: schema.Configuration, driven: bool
) -> None:
    binding = schema.Binding.model_validate({"operation": "round", "bind": {"y": "result"}, "configurations": only})
    assert drives(binding, start, [EXACT, QUANTISED]) is driven
