# What was observed, kept on disk: one JSON file per level, sealed, stamped with digests of what it was
# made from.  Facts feed the pages, so that a site builds without torch or GPU; they never let a
# verification skip.
"""Facts files: write them atomically, read them with suspicion, and know when they are stale."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sitegen.diagnostics import Finding, Location
from sitegen.loader import Sources, read_bytes
from sitegen.pins.lock import exclusive, replace_file, sweep
from sitegen.probe.result import FieldReads, LevelResult
from sitegen.yamlfile import unsafe_characters

LEVELS = ("meta", "cpu", "gpu")
MAX_BYTES = 100_000_000
STATES = ("passed", "failed", "not_run")


@dataclass(frozen=True)
class Fact:
    """One statement as a run saw it."""

    state: str  # passed, failed, not_run
    detail: str
    stale: bool


@dataclass(frozen=True)
class Facts:
    """One level's facts."""

    level: str
    device: str
    versions: dict[str, str]
    date: str
    statements: dict[tuple[str, str], Fact]
    counts: dict[tuple[str, str], int]
    stale: tuple[str, ...]  # components of which the facts are older than spec or code
    seam: dict[str, Any] | None = None
    fields: dict[str, FieldReads] = field(default_factory=dict)  # of the configuration; none where they are stale


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:32]


def code_files(sources: Sources) -> list[Path]:
    """Files of the implementation, in a fixed order."""
    found: list[Path] = []
    for name in sources.model.implementation.sources:
        path = sources.root / name
        found += (
            [path] if path.is_file() else [p for p in path.rglob("*") if p.suffix in (".py", ".json", ".cu", ".cuh")]
        )
    root = sources.root.resolve()
    return sorted(p for p in found if "__pycache__" not in p.parts and p.resolve().is_relative_to(root))


def code_digest(sources: Sources) -> str:
    """Digest of the implementation: of its text, or of what pins an installed package and says how it is run."""
    package = sources.model.implementation.package
    if package is not None:
        return digest(package.model_dump(mode="json"))
    total = hashlib.sha256()
    for path in code_files(sources):
        total.update(path.relative_to(sources.root).as_posix().encode() + b"\0")
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:32]


def component_digest(sources: Sources, id: str, level: str) -> str:
    """Digest of all that a component's statements are made from on the spec's side.

    On a GPU only kernels run, at sizes of the configuration: prose and formulas do not enter.
    """
    model = sources.model
    if level == "gpu":
        values = sources.components[id].component.values
        measured = [[m.id, m.run, m.arguments] for m in sources.components[id].component.measurements]
        return digest([values.operation if values else None, bool(values and values.kernel), measured, sources.config])
    return digest(
        [
            sources.components[id].component.model_dump(mode="json", exclude_defaults=True, exclude={"figures"}),
            {n: s.model_dump(mode="json") for n, s in sources.symbols.items()},
            [p.model_dump(mode="json", exclude_defaults=True, exclude={"title", "text"}) for p in model.places],
            [c.model_dump(mode="json", exclude_defaults=True) for c in model.configurations],
            sources.config,
        ]
    )


def to_json(sources: Sources, result: LevelResult, date: str) -> dict[str, Any]:
    """The file's content, sealed."""
    components: dict[str, Any] = {}
    for id in sources.components:
        statements = {s: {"state": "passed", "detail": d} for (c, s), d in result.passed.items() if c == id}
        statements |= {s: {"state": "not_run", "detail": d} for (c, s), d in result.skipped.items() if c == id}
        for finding in result.findings:
            if finding.component == id:
                statements[finding.statement] = {"state": "failed", "detail": finding.message}
        if statements:
            components[id] = {
                "digest": component_digest(sources, id, result.level),
                "statements": dict(sorted(statements.items())),
                "counts": {r: n for (c, r), n in result.counts.items() if c == id},
            }
    body = {
        "schema": 1,
        "model": sources.name,
        "level": result.level,
        "code": code_digest(sources),
        "device": result.device,
        "versions": dict(sorted(result.versions.items())),
        "date": date,
        "components": components,
    }
    if result.fields:
        body["fields"] = {"digest": fields_digest(sources), "reads": {n: asdict(r) for n, r in result.fields.items()}}
    return {**body, "seal": digest(body)}


def fields_digest(sources: Sources) -> str:
    """Digest of all from which it follows which components a field of the configuration reaches."""
    model = sources.model
    return digest(
        [
            {
                id: c.component.model_dump(mode="json", include={"parameters", "values", "code", "cases", "parts"})
                for id, c in sources.components.items()
            },
            [p.model_dump(mode="json") for p in model.places],
            [c.model_dump(mode="json") for c in model.configurations],
            sources.config,
        ]
    )


def without_noise(data: dict[str, Any]) -> Any:
    """The content that matters when two files are compared: verdicts and digests, not dates or error figures."""
    components = {
        id: {
            "digest": c["digest"],
            "counts": c["counts"],
            "states": {s: v["state"] for s, v in c["statements"].items()},
        }
        for id, c in data["components"].items()
    }
    kept = {key: data.get(key) for key in ("code", "versions", "device", "fields")}
    return {**json.loads(json.dumps(kept)), "components": components}


def path_of(sources: Sources, level: str) -> Path:
    return sources.folder / "facts" / f"{level}.json"


def write(sources: Sources, result: LevelResult, date: str) -> bool:
    """Write a level's facts unless only date or noise differ; True when the file changed."""
    data = to_json(sources, result, date)
    path = path_of(sources, result.level)
    with exclusive(path.parent):
        sweep(path.parent, path.name)
        old, _ = raw(sources, result.level)
        if old is not None and without_noise(old) == without_noise(data):
            return False
        replace_file(path, (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode())
    return True


def raw(sources: Sources, level: str) -> tuple[dict[str, Any] | None, Finding | None]:
    """A facts file that passes its checks, or what is wrong with it; (None, None) when there is none."""
    path = path_of(sources, level)
    where = Location(path.relative_to(sources.root).as_posix(), 1, 1)
    hint = f"make it anew: sitegen verify --level {level} --write"

    def invalid(problem: str) -> tuple[None, Finding]:
        return None, Finding("facts-invalid", f"the facts file {problem}", where, hint=hint)

    try:
        text = read_bytes(path, MAX_BYTES).decode("utf-8")
    except FileNotFoundError:
        return None, None
    except (OSError, UnicodeDecodeError) as error:
        return invalid(f"cannot be read ({type(error).__name__})")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return invalid("is not JSON: it was cut off or edited")
    if not isinstance(data, dict) or data.get("schema") != 1:
        return invalid("has another form than this version reads")
    seal = data.pop("seal", None)
    if seal != digest(data):
        return invalid("was changed after it was written (its seal does not fit)")
    problem = form_problem(data)
    if problem:
        return invalid(f"has {problem}")
    if data.get("model") != sources.name or data.get("level") != level:
        return invalid(f"speaks of {data.get('model')} at level {data.get('level')}")
    return data, None


def form_problem(data: dict[str, Any]) -> str:
    """What a sealed file lacks to be facts; a seal can be made again by anyone, so it proves no form."""
    for key in ("model", "level", "code", "device", "date"):
        if not isinstance(data.get(key), str) or unsafe_characters(data[key]):
            return f"no text under {key!r}"
    if not _texts(data.get("versions")):
        return "no versions"
    components = data.get("components")
    if not isinstance(components, dict):
        return "no components"
    for id, entry in components.items():
        if not isinstance(entry, dict) or not isinstance(entry.get("digest"), str):
            return f"no digest of {id[:80]!r}"
        statements, counts = entry.get("statements"), entry.get("counts")
        if not isinstance(statements, dict) or not all(
            _texts(fact) and fact.keys() >= {"state", "detail"} and fact["state"] in STATES
            for fact in statements.values()
        ):
            return f"a statement of {id[:80]!r} without state and detail"
        if not isinstance(counts, dict) or not all(type(n) is int and n >= 0 for n in counts.values()):
            return f"a count of {id[:80]!r} that is none"
    return ""


def _texts(value: Any) -> bool:
    """Whether this is an object of texts that a page can show."""
    return isinstance(value, dict) and all(isinstance(v, str) and not unsafe_characters(v) for v in value.values())


def read(sources: Sources, level: str) -> tuple[Facts | None, list[Finding]]:
    """A level's facts, with `facts-stale` and `facts-invalid` findings."""
    data, finding = raw(sources, level)
    if data is None:
        return None, [finding] if finding else []
    stale_code = data["code"] != code_digest(sources)
    statements, counts, stale = {}, {}, []
    for id, entry in data["components"].items():
        old = stale_code or id not in sources.components or entry["digest"] != component_digest(sources, id, level)
        if old:
            stale.append(id)
        for name, fact in entry["statements"].items():
            statements[id, name] = Fact(fact["state"], fact["detail"], old)
        for name, number in entry["counts"].items():
            counts[id, name] = number
    traced = data.get("fields")
    fields_stale = traced is not None and (stale_code or traced["digest"] != fields_digest(sources))
    reads = {}
    for name, entry in (traced["reads"] if traced else {}).items():
        if fields_stale:
            break
        reads[name] = FieldReads(**{k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()})
    findings = []
    if stale or fields_stale:
        where = Location(path_of(sources, level).relative_to(sources.root).as_posix(), 1, 1)
        what = "the implementation" if stale_code else f"the spec of {names(stale)}" if stale else "the configuration"
        findings.append(
            Finding(
                "facts-stale",
                f"the {level} facts are older than {what}",
                where,
                expected=f"facts made from what is here ({len(stale)} components concerned)",
                actual=f"facts of {data['date']}",
                hint=f"run sitegen verify --write{' on a machine with a GPU' if level == 'gpu' else ''}",
                severity="warning",
            )
        )
    facts = Facts(level, data["device"], data["versions"], data["date"], statements, counts, tuple(stale), None, reads)
    return facts, findings


def names(ids: Iterable[str]) -> str:
    listed = list(ids)
    return ", ".join(listed[:3]) + (f" and {len(listed) - 3} more" if len(listed) > 3 else "")
