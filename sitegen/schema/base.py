# What all nouns of a spec are made of: checked texts, names, counts and ranges.
"""Types of the values that authors write."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

_ID = r"^[a-z0-9][a-z0-9_.-]*(/[a-z0-9][a-z0-9_.-]*)*$"
Id = Annotated[str, StringConstraints(pattern=_ID, max_length=120)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*'*$", max_length=40)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=20_000)]
Line = Annotated[str, StringConstraints(min_length=1, max_length=400, pattern=r"^[^\n]*\n?$")]
Count = Annotated[int | str, Field(description="an exact integer expression over symbols")]
Mark = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]{1,2}$")]
AxisText = Annotated[str, BeforeValidator(lambda v: str(v) if type(v) is int else v)]
Lines = Annotated[list[int], Field(description="first and last line, from 1, both cited")]


def _revision(value: str) -> str:
    if len(value) != 40 or any(c not in "0123456789abcdef" for c in value):
        raise ValueError(f"a revision is a full commit id of 40 hex digits, not {value!r}")
    return value


Revision = Annotated[str, AfterValidator(_revision)]
MAX_LAYERS = 10_000


def _layers(value: str) -> str:
    first, last = (int(number) for number in value.split("-"))
    if not first <= last < MAX_LAYERS:
        raise ValueError(f"layers are first-last, from 0, below {MAX_LAYERS:,}, not {value!r}")
    return value


LayerRange = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,9}-[0-9]{1,9}$"), AfterValidator(_layers)]
LayerList = Annotated[list[Annotated[int, Field(ge=0, lt=MAX_LAYERS)]], Field(max_length=MAX_LAYERS)]


class Strict(BaseModel):
    """Base of all spec nouns: unknown fields are refused, values are frozen, types are not coerced."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=False)


Dotted = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
_Size = Annotated[int, Field(ge=0, lt=2**53)]
