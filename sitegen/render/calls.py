# A worked case as the line of code that it is.
"""Calls with literal arguments, as text."""

from __future__ import annotations

from sitegen import schema


def call(case: schema.WorkedCase) -> str:
    """The call as it would be written in code."""
    return f"{case.call}({', '.join(f'{name}={literal(value)}' for name, value in case.arguments.items())})"


def literal(value: object) -> str:
    """An argument or a result as plain text."""
    if isinstance(value, dict):
        if value.keys() == {"symbol"}:
            return str(value["symbol"])
        if "zeros" in value:
            return f"zeros({literal(value['zeros'])})"
        return literal(value.get("values"))
    if isinstance(value, list):
        return f"[{', '.join(literal(v) for v in value)}]"
    return str(value)
