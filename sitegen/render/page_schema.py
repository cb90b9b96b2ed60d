# The form of the pages' JSON, published beside them so that readers can hold us to it.
"""JSON Schema of the machine-readable twins of pages."""

from __future__ import annotations

import json
from typing import Any

from sitegen.render.view import WORDS

#: Where it stands below the site's root.
FILE = "assets/sitegen/page.schema.json"

TEXT: dict[str, Any] = {"type": "string"}
COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
FLAG: dict[str, Any] = {"type": "boolean"}
LINES: dict[str, Any] = {"type": "array", "items": {"type": "integer", "minimum": 1}, "minItems": 2, "maxItems": 2}
STATE: dict[str, Any] = {"enum": sorted(WORDS)}


def _or_null(form: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [form, {"type": "null"}]}


def _list(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


def _object(**fields: dict[str, Any]) -> dict[str, Any]:
    """An object with exactly these fields."""
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def _page(name: str, **fields: dict[str, Any]) -> dict[str, Any]:
    return _object(schema={"const": 1}, page={"const": name}, model=TEXT, title=TEXT, **fields)


def _optional(form: dict[str, Any], **fields: dict[str, Any]) -> dict[str, Any]:
    """The same object with fields that only some pages have."""
    return {**form, "properties": {**form["properties"], **fields}}


_PORTS = _list(_object(name=TEXT, axes=_list(_object(axis=TEXT, size=TEXT, name=TEXT)), dtype=TEXT, text=TEXT))
_SIDES = {"module": _or_null(COUNT), "table": _or_null(COUNT)}
_CONNECTIONS = _list(
    _object(**{"from": _or_null(TEXT), "to": _or_null(TEXT), "values": _list(_object(name=TEXT, shape=TEXT))})
)
_FIGURES = _list(
    _object(
        title=TEXT,
        source=TEXT,
        panels=_list(
            _object(
                title=TEXT,
                unit=TEXT,
                bars=_list(_object(title=TEXT, role=TEXT, value=_or_null({"type": "number"}), missing=_or_null(TEXT))),
            )
        ),
    )
)
_ROW = _object(
    id=TEXT, tensor=TEXT, slice=_or_null(TEXT), expression=TEXT, calculation=TEXT, count=COUNT, **_SIDES
)  # fmt: skip
_ACCOUNT = _object(
    per_instance=COUNT,
    instances=COUNT,
    total=COUNT,
    rows=_list(_ROW),
    parts=_list(_object(component=TEXT, per_instance=COUNT, **_SIDES)),
)
_VERDICT = _object(id=TEXT, state=STATE, level=TEXT, expected=TEXT, actual=TEXT, detail=TEXT)
_EVIDENCE = _object(
    id=TEXT,
    kind={"enum": ["direct", "derived", "external"]},
    claim=TEXT,
    source=TEXT,
    repository=_or_null(TEXT),
    revision=_or_null(TEXT),
    path=_or_null(TEXT),
    lines=_or_null(LINES),
    section=_or_null(TEXT),
)
_SYMBOL = _object(tex=TEXT, meaning=TEXT, value=_or_null({"type": "number"}), code=_or_null(TEXT))
_COMPONENT_ROW = _object(
    component=TEXT,
    title=TEXT,
    kind=TEXT,
    parts=_list(TEXT),
    instances=COUNT,
    parameters=COUNT,
    statements=COUNT,
    executed=COUNT,
)
_PLACE_FIELDS = {
    "place": TEXT,
    "parent": _or_null(TEXT),
    "repeat": COUNT,
    "instances": COUNT,
    "layers": _list(COUNT),
    "module": TEXT,
}

_ROUNDING = {"enum": ["exact", "nearest", "truncated"]}
_STEP = {
    "id": TEXT,
    "text": TEXT,
    "expression": TEXT,
    "value": {"type": "integer"},
    "unit": TEXT,
    "state": _or_null(STATE),
}

#: Page kind -> the form of its JSON.
PAGES: dict[str, dict[str, Any]] = {
    "component": _optional(
        _page(
            "component",
            component=TEXT,
            place=_or_null(TEXT),
            kind={"enum": ["learned", "computed", "cache", "fixed"]},
            purpose=TEXT,
            reason=_object(given=FLAG, text=TEXT, section=_or_null(TEXT)),
            statements=COUNT,
            executed=COUNT,
            formulas=_list(_object(id=TEXT, text=TEXT, expr=TEXT, tex=TEXT)),
            symbols={"type": "object", "additionalProperties": _SYMBOL},
            inputs=_PORTS,
            outputs=_PORTS,
            parameters=_or_null(_ACCOUNT),
            places=_list(_object(place=TEXT, instances=COUNT, modules=_list(TEXT))),
            verdicts=_list(_VERDICT),
            cases=_list(
                _object(
                    id=TEXT,
                    text=TEXT,
                    call=TEXT,
                    arguments={"type": "object"},
                    gives={"type": "object"},
                    instead=_or_null(TEXT),
                )
            ),
            explanation=_list(TEXT),
            code=_list(_object(id=TEXT, path=TEXT, symbol=TEXT, lines=_or_null(LINES), state=TEXT)),
            evidence=_list(_EVIDENCE),
        ),
        connections=_CONNECTIONS,
        figures=_FIGURES,
        gotchas=_list(_object(point=COUNT, title=TEXT, text=TEXT)),
    ),
    "model": _page(
        "model",
        purpose=TEXT,
        components=COUNT,
        statements=COUNT,
        executed=COUNT,
        states={"type": "object", "propertyNames": STATE, "additionalProperties": COUNT},
        policies=_list(_object(name=TEXT, title=TEXT, scope=TEXT, count=COUNT)),
    ),
    "components": _page("components", components=_list(_COMPONENT_ROW)),
    "places": _page("places", places=_list(_object(title=TEXT, **_PLACE_FIELDS))),
    "place": _page("place", components=_list(_COMPONENT_ROW), **_PLACE_FIELDS),
    "configuration": _page(
        "configuration",
        traced=FLAG,
        fields=_list(
            _object(
                name=TEXT,
                value={},
                meaning=TEXT,
                symbols=_list(TEXT),
                components=_list(TEXT),
                modules=_list(TEXT),
                operations=_list(TEXT),
                unread=_or_null(TEXT),
            )
        ),
    ),
    "symbols": _page(
        "symbols",
        symbols=_list(
            _object(
                name=TEXT,
                tex=TEXT,
                meaning=TEXT,
                values=_list({"type": "number"}),
                fields=_list(TEXT),
                upstream=_or_null(TEXT),
                report=_or_null(TEXT),
                components=_list(TEXT),
            )
        ),
    ),
    "tensors": _page(
        "tensors",
        tensors=_list(
            _object(
                pattern=TEXT,
                shape=_list(COUNT),
                stored_shape=_list(COUNT),
                dtype=TEXT,
                scale=FLAG,
                layers=_list(COUNT),
                tensors=COUNT,
                elements=COUNT,
                owners=_list(_object(component=TEXT, row=TEXT, slice=_or_null(TEXT))),
            )
        ),
    ),
    "claims": _page(
        "claims",
        claims=_list(
            _object(
                id=TEXT,
                title=TEXT,
                text=TEXT,
                published=TEXT,
                unit=TEXT,
                cites=_list(TEXT),
                state=STATE,
                derived=_or_null(TEXT),
                rounding=_ROUNDING,
                rounded=_or_null(TEXT),
                agrees=_or_null(FLAG),
                over=_or_null(TEXT),
                equals=_or_null(TEXT),
                steps=_list(_object(by=_list(TEXT), cites=_list(TEXT), **_STEP)),
                underived=_or_null(TEXT),
            )
        ),
    ),
    "numbers": _page(
        "numbers",
        figures=_list(
            _object(
                id=TEXT,
                published=TEXT,
                unit=TEXT,
                text=TEXT,
                cites=_list(TEXT),
                state=STATE,
                value=_or_null({"type": "integer"}),
                total=_or_null(TEXT),
                rounding=_ROUNDING,
                rounded=_or_null(TEXT),
                agrees=_or_null(FLAG),
                unexplained=_or_null(TEXT),
            )
        ),
        ledgers=_list(
            _object(
                id=TEXT,
                title=TEXT,
                text=TEXT,
                state=STATE,
                lines=_list(_object(total=FLAG, by=_list(TEXT), **_STEP)),
            )
        ),
    ),
    "gotchas": _page(
        "gotchas",
        gotchas=_list(
            _object(
                point=COUNT,
                chapter=TEXT,
                title=TEXT,
                text=TEXT,
                state=STATE,
                components=_list(TEXT),
                unexecuted=_or_null(TEXT),
                checks=_list(
                    _object(
                        statement=TEXT,
                        text=TEXT,
                        formula=_or_null(TEXT),
                        input=TEXT,
                        state=STATE,
                        seen=TEXT,
                        least=_or_null({"type": "number"}),
                    )
                ),
            )
        ),
    ),
    "source": _page("source", path=TEXT, lines=COUNT, cited=_list(_object(lines=LINES, by=_list(TEXT)))),
}

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A page of a model specification",
    "description": "The field `page` says which of these forms the rest has.",
    "oneOf": list(PAGES.values()),
}


def schema_file() -> bytes:
    """The schema as it is published."""
    return (json.dumps(SCHEMA, indent=1) + "\n").encode()
