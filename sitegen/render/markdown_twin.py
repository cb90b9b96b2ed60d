# Pages as plain Markdown, for readers that take no HTML: made from the same data as the JSON.
"""Markdown twins of pages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any


def page_markdown(data: dict[str, Any]) -> str:
    """A page's data as Markdown; the first line is its title."""
    lines = [f"# {_line(data['title'])}", ""]
    lines += _BODIES[data["page"]](data)
    lines += ["", "The same as data: [page.json](page.json)"]
    return "\n".join(lines).rstrip() + "\n"


def _line(text: object) -> str:
    return " ".join(str(text).split())


def _cell(value: object) -> str:
    return _line("–" if value in (None, "", [], ()) else value).replace("|", "\\|")


def _code(text: object) -> str:
    return f"`{_line(text)}`" if text not in (None, "") else "–"


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else _cell(value)


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    body = [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *body, ""] if body else []


def _section(title: str, lines: list[str]) -> list[str]:
    return [f"## {title}", "", *lines, ""] if lines else []


def _component(data: dict[str, Any]) -> list[str]:
    where = f", in the place `{data['place']}`" if data["place"] else ""
    reason = data["reason"]
    section = f" (report section {reason['section']})" if reason["section"] else ""
    formulas: list[str] = []
    for step in data["formulas"]:
        formulas += [f"{step['text']}:", "", f"    {_line(step['expr'])}", "", f"$$ {_line(step['tex'])} $$", ""]
    symbols = [(_code(n), s["meaning"], s["value"], _code(s["code"])) for n, s in data["symbols"].items()]
    ports = [
        (
            kind,
            _code(p["name"]),
            ", ".join(f"{a['size']} {a['name']}".strip() for a in p["axes"]),
            p["dtype"],
            p["text"],
        )
        for kind in ("inputs", "outputs")
        for p in data[kind]
    ]
    return [
        f"`{data['component']}`, {data['kind']}{where}",
        "",
        data["purpose"],
        "",
        f"{data['executed']:,} of {data['statements']:,} statements executed.",
        "",
        *_section("Why it exists", [reason["text"] + section]),
        *_section("Formula", formulas),
        *_section("Symbols", _table(("Symbol", "Meaning", "Value", "In code"), symbols)),
        *_section("Inputs and outputs", _table(("", "Name", "Axes", "Type", "Meaning"), ports)),
        *_section("Parameters", _parameters(data["parameters"])),
        *_section(
            "Statements",
            _table(
                ("Statement", "State", "Level", "Detail"),
                [(_code(v["id"]), v["state"], v["level"], v["detail"]) for v in data["verdicts"]],
            ),
        ),
        *_section("Explanation", [f"- {_line(text)}" for text in data["explanation"]]),
        *_section(
            "What a port gets wrong",
            [f"- Point {g['point']}, {_line(g['title'])}: {_line(g['text'])}" for g in data.get("gotchas", ())],
        ),
        *_section("Worked cases", [f"- {_line(case['text'])} `{case['call']}`" for case in data["cases"]]),
        *_section(
            "Code",
            [
                f"- `{c['path']}`"
                + (f", lines {c['lines'][0]}–{c['lines'][1]}" if c["lines"] else "")
                + (f", `{c['symbol']}`" if c["symbol"] else "")
                + f": {c['state']}"
                for c in data["code"]
            ],
        ),
        *_section("Sources", [f"- {e['kind']}: {_line(e['claim'])} ({_source(e)})" for e in data["evidence"]]),
        *_section(
            "Places",
            _table(("Place", "Instances"), [(_code(p["place"]), _number(p["instances"])) for p in data["places"]]),
        ),
    ]


def _source(entry: dict[str, Any]) -> str:
    parts = [entry["repository"] or entry["source"], entry["revision"], entry["path"]]
    if entry["lines"]:
        parts.append(f"lines {entry['lines'][0]}–{entry['lines'][1]}")
    if entry["section"]:
        parts.append(f"section {entry['section']}")
    return ", ".join(part for part in parts if part)


def _parameters(account: dict[str, Any] | None) -> list[str]:
    if account is None:
        return []
    rows = [
        (_code(r["tensor"] + (r["slice"] or "")), _code(r["expression"]), _number(r["count"])) for r in account["rows"]
    ]
    rows += [(f"part {_code(p['component'])}", "", _number(p["per_instance"])) for p in account["parts"]]
    per, times, total = account["per_instance"], account["instances"], account["total"]
    return [
        f"{per:,} in an instance, {times:,} instances, {total:,} in all.",
        "",
        *_table(("Tensor", "Expression", "Count"), rows),
    ]


def _component_rows(rows: list[dict[str, Any]]) -> list[str]:
    head = ("Component", "Kind", "Instances", "Parameters", "Executed")
    return _table(
        head,
        [
            (
                f"{_line(r['title'])} `{r['component']}`",
                r["kind"],
                _number(r["instances"]),
                _number(r["parameters"]),
                f"{r['executed']:,} of {r['statements']:,}",
            )
            for r in rows
        ],
    )


def _model(data: dict[str, Any]) -> list[str]:
    policies = [(p["title"], _number(p["count"]), p["scope"]) for p in data["policies"]]
    return [
        data["purpose"],
        "",
        f"{data['components']:,} components; {data['executed']:,} of {data['statements']:,} statements executed.",
        "",
        *_section("What is counted", _table(("Policy", "Parameters", "Scope"), policies)),
    ]


def _places(data: dict[str, Any]) -> list[str]:
    rows = [(f"{_line(p['title'])} `{p['place']}`", p["parent"], _number(p["instances"])) for p in data["places"]]
    return _table(("Place", "Within", "Instances"), rows)


def _place(data: dict[str, Any]) -> list[str]:
    layers = f", layers {', '.join(map(str, data['layers']))}" if data["layers"] else ""
    return [f"`{data['place']}`, {data['instances']:,} instances{layers}", "", *_component_rows(data["components"])]


def _configuration(data: dict[str, Any]) -> list[str]:
    head = ("Field", "Value", "Meaning", "Symbols", "Read by")
    return _table(
        head,
        [
            (
                _code(f["name"]),
                _code(json.dumps(f["value"])),
                f["meaning"],
                ", ".join(map(_code, f["symbols"])),
                f["unread"] or ", ".join(map(_code, f["components"])),
            )
            for f in data["fields"]
        ],
    )


def _symbols(data: dict[str, Any]) -> list[str]:
    head = ("Symbol", "TeX", "Meaning", "Value", "Field", "Upstream", "Report")
    return _table(
        head,
        [
            (
                _code(s["name"]),
                _code(s["tex"]),
                s["meaning"],
                ", ".join(map(str, s["values"])),
                ", ".join(map(_code, s["fields"])),
                _code(s["upstream"]),
                _code(s["report"]),
            )
            for s in data["symbols"]
        ],
    )


def _tensors(data: dict[str, Any]) -> list[str]:
    head = ("Name", "Shape", "Type", "Tensors", "Owner")
    return _table(
        head,
        [
            (
                _code(t["pattern"]),
                " × ".join(map(_number, t["shape"])),
                t["dtype"],
                _number(t["tensors"]),
                ", ".join(_code(o["component"] + (o["slice"] or "")) for o in t["owners"]),
            )
            for t in data["tensors"]
        ],
    )


def _tried(check: dict[str, Any]) -> str:
    return check["text"] + (f" {_code(check['formula'])}" if check["formula"] else "")


def _gotchas(data: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    for g in data["gotchas"]:
        rows = [(_code(c["statement"]), _tried(c), c["input"], c["state"], c["seen"]) for c in g["checks"]]
        concerned = ", ".join(_code(id) for id in g["components"])
        words = [_line(g["text"]), "", f"{g['state']}; concerns {concerned}."]
        words += ["", f"Not executed: {_line(g['unexecuted'])}."] if g["unexecuted"] else []
        table = _table(("Check", "What it tries", "On which input", "State", "What was seen"), rows)
        lines += _section(f"{g['point']}. {_line(g['title'])}", [*words, "", *table])
    return lines


def _source_file(data: dict[str, Any]) -> list[str]:
    rows = [(f"{c['lines'][0]}–{c['lines'][1]}", "; ".join(c["by"])) for c in data["cited"]]
    return [f"{data['lines']:,} lines.", "", *_table(("Lines", "Cited by"), rows)]


def _claims(data: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    for claim in data["claims"]:
        steps = [(s["text"], _code(s["expression"]), _quantity(s), s["state"]) for s in claim["steps"]]
        result = f"Not derived: {claim['underived']}"
        if claim["steps"]:
            over = f", divided by `{claim['over']}`" if claim["over"] else ""
            rounded = f"{claim['rounding']}: {claim['rounded']}"
            result = f"The last step{over}: {claim['derived']} {claim['unit']}; {rounded}."
        body = [f"Published: {claim['published']} ({', '.join(claim['cites'])}). State: {claim['state']}.", ""]
        body += [claim["text"], "", *_table(("Step", "Expression", "Value", "State"), steps), _line(result)]
        lines += _section(_line(claim["title"]), body)
    return lines


def _quantity(step: dict[str, Any]) -> str:
    return f"{step['value']:,} {step['unit']}".strip()


def _numbers(data: dict[str, Any]) -> list[str]:
    head = ("Published", "What it counts", "Exact", "Rounding", "State")
    figures = [
        (
            f["published"],
            f"{f['text']} {f['unexplained'] or ''}",
            _number(f["value"]),
            f"{f['rounding']}: {f['rounded']}" if f["rounded"] else "",
            f["state"] if f["unexplained"] is None else "unexplained",
        )
        for f in data["figures"]
    ]
    lines = _section("Figures seen in public", _table(head, figures))
    for ledger in data["ledgers"]:
        rows = [
            (("= " if x["total"] else "") + x["text"], _code(x["expression"]), _number(x["value"]), x["state"])
            for x in ledger["lines"]
        ]
        table = _table(("Part", "Expression", "Parameters", "State"), rows)
        lines += _section(_line(ledger["title"]), [ledger["text"], "", *table])
    return lines


_BODIES: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "component": _component,
    "model": _model,
    "components": lambda data: _component_rows(data["components"]),
    "places": _places,
    "place": _place,
    "configuration": _configuration,
    "symbols": _symbols,
    "tensors": _tensors,
    "claims": _claims,
    "numbers": _numbers,
    "gotchas": _gotchas,
    "source": _source_file,
}
