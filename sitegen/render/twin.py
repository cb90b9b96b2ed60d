# The machine-readable twin of a page: the same facts as data, with the state of every statement.
"""JSON of a component page."""

from __future__ import annotations

from typing import Any

from sitegen.render.component_view import ComponentViews
from sitegen.render.gotchas_page import prose_of
from sitegen.render.pictures.bars import heading
from sitegen.render.view import AxisView

#: The version of all pages' JSON; `page_schema.py` describes it.
SCHEMA = 1


def component_json(views: ComponentViews) -> dict[str, Any]:
    """A component (in a place, or everywhere) as plain data, in the order of its page."""
    component, model, prose = views.component, views.model, views.prose
    account = views.account
    executed = sum(verdict.state == "executed" for verdict in views.verdicts)
    evidence = model.sources.evidence
    sources = model.sources.sources.sources
    result: dict[str, Any] = {
        "schema": SCHEMA,
        "page": "component",
        "model": model.name,
        "component": views.id,
        "place": views.place.id if views.place else None,
        "title": component.title.strip(),
        "kind": component.kind,
        "purpose": prose.plain(component.purpose.text),
        "reason": {
            "given": component.reason.given,
            "text": prose.plain(component.reason.text),
            "section": component.reason.section,
        },
        "statements": len(views.verdicts),
        "executed": executed,
        "formulas": [
            {
                "id": step.id,
                "text": prose.plain(step.text),
                "expr": step.expr.strip(),
                "tex": views.tex(step, parsed)[1],
            }
            for step, parsed in zip(component.steps, model.steps[views.id], strict=True)
        ],
        "symbols": {
            name: {
                "tex": views.symbols.tex[name],
                "meaning": views.symbols.meaning.get(name, ""),
                "value": views.symbols.values.get(name),
                "code": views.symbols.code.get(name),
            }
            for name in views.symbols.names
        },
        "inputs": [_port(views, port) for port in component.inputs],
        "outputs": [_port(views, port) for port in component.outputs],
        "parameters": None,
        "places": [
            {"place": o.place.id, "instances": o.instances, "modules": list(o.modules)}
            for o in model.occurrences[views.id]
        ],
        "verdicts": [
            {
                "id": v.id,
                "state": v.state,
                "level": v.level,
                "expected": v.expected,
                "actual": v.actual,
                "detail": v.detail,
            }
            for v in views.verdicts
        ],
        "cases": [
            {
                "id": case.id,
                "text": prose.plain(case.text),
                "call": case.call,
                "arguments": case.arguments,
                "gives": case.gives,
                "instead": prose.plain(case.instead.text) if case.instead else None,
            }
            for case in component.cases
        ],
        "explanation": [prose.plain(claim.text) for claim in component.explanation],
        "code": [
            {
                "id": name,
                "path": state.path,
                "symbol": state.symbol,
                "lines": list(state.lines) if state.lines else None,
                "state": state.kind,
            }
            for name, state in views.codes.items()
        ],
        "evidence": [
            {
                "id": id,
                "kind": evidence[id].kind,
                "claim": evidence[id].claim.strip(),
                "source": evidence[id].source,
                "repository": sources[evidence[id].source].repository,
                "revision": sources[evidence[id].source].revision,
                "path": sources[evidence[id].source].path,
                "lines": evidence[id].lines,
                "section": evidence[id].section,
            }
            for id in views.evidence
        ],
    }
    if account is not None:
        authored = {row.id: row for row in component.parameters}
        result["parameters"] = {
            "per_instance": account.per_instance,
            "instances": account.instances,
            "total": account.total,
            "rows": [
                {
                    "id": row.row,
                    "tensor": authored[row.row].tensor,
                    "slice": authored[row.row].slice,
                    "expression": str(authored[row.row].count),
                    "calculation": row.calculation,
                    "count": row.count,
                    "module": row.module,
                    "table": row.table,
                }
                for row in account.rows
            ],
            "parts": [
                {"component": part.component, "per_instance": part.count, "module": part.module, "table": part.table}
                for part in account.parts
            ],
        }
    if views.flow is not None:
        result["connections"] = [
            {
                "from": edge.source,
                "to": edge.target,
                "values": [{"name": n, "shape": s} for n, s in zip(edge.names, edge.shapes, strict=True)],
            }
            for edge in views.flow.edges
        ]
    if gotchas := views.shop.gotchas.get(views.id):
        result["gotchas"] = [
            {
                "point": gotcha.point,
                "title": gotcha.title.strip(),
                "text": prose_of(views.shop, gotcha.components[0], views.path).plain(gotcha.text),
            }
            for gotcha in gotchas
        ]
    if views.figures:
        result["figures"] = [
            {
                "title": figure.title,
                "source": figure.source,
                "panels": [
                    {
                        "title": heading(panel),
                        "unit": panel.unit,
                        "bars": [
                            {"title": bar.title, "role": bar.role, "value": bar.value, "missing": bar.missing}
                            for bar in panel.bars
                        ],
                    }
                    for panel in figure.panels
                ],
            }
            for figure, _ in views.figures
        ]
    return result


def _port(views: ComponentViews, port: Any) -> dict[str, Any]:
    axes: list[AxisView] = [views.symbols.axis(axis, views.values) for axis in port.axes]
    return {
        "name": port.name,
        "axes": [
            {"axis": axis, "size": view.size.replace(",", ""), "name": view.name}
            for axis, view in zip(port.axes, axes, strict=True)
        ],
        "dtype": port.dtype,
        "text": views.prose.plain(port.text),
    }
