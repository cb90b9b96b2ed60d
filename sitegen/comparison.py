# Two models beside one another, or one model at two revisions: which components are new, gone or other,
# and in what.  Components correspond by id or by an explicit map, never by likeness.
"""Compare two counted models component by component."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sitegen import accounting, expr, formula, pins, schema
from sitegen.accounting import Accounts
from sitegen.diagnostics import Finding, SpecInvalid, nearest
from sitegen.resolver import Axis, integer_fields

#: Aspects in the order in which they are shown.
ASPECTS = (
    "kind", "formula", "inputs", "outputs", "parameters", "per instance", "instances", "total", "constants",
    "properties", "cited",
)  # fmt: skip

#: Aspects that say where a statement comes from rather than what it is: not compared between two models.
SOURCES = ("cited",)


@dataclass(frozen=True)
class Change:
    """One aspect of a component in both models, as text; several lines where it has several parts."""

    aspect: str
    before: str
    after: str


@dataclass(frozen=True)
class Pair:
    """A component of both models that correspond, and in what they differ."""

    before: str
    after: str
    title: str
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True)
class Value:
    """A symbol, policy or figure of both models; None where a model has none of that name."""

    name: str
    title: str
    before: int | float | None
    after: int | float | None

    @property
    def differs(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True)
class Comparison:
    """Everything that two models differ in."""

    before: Accounts = field(repr=False)
    after: Accounts = field(repr=False)
    names: tuple[str, str]  # how both are called: models, or revisions
    pairs: tuple[Pair, ...]
    new: tuple[str, ...]
    gone: tuple[str, ...]
    symbols: tuple[Value, ...]
    policies: tuple[Value, ...]
    figures: tuple[Value, ...]
    mapping: schema.ModelMap

    @property
    def changed(self) -> tuple[Pair, ...]:
        return tuple(pair for pair in self.pairs if pair.changes)

    @property
    def same(self) -> tuple[Pair, ...]:
        return tuple(pair for pair in self.pairs if not pair.changes)

    @property
    def differs(self) -> bool:
        values = (*self.symbols, *self.policies, *self.figures)
        return bool(self.new or self.gone or self.changed or any(v.differs for v in values))


def compare(before: Accounts, after: Accounts, names: tuple[str, str] = ("", "")) -> Comparison:
    """Compare two models; raises `SpecInvalid` when their map names what does not exist."""
    revisions = before.model.name == after.model.name
    mapping = schema.ModelMap() if revisions else model_map(before, after)
    pairs, new, gone = correspond(before, after, mapping)
    found = []
    for a, b in pairs:
        changes = tuple(changes_of(before, a, after, b, mapping, sources=revisions))
        found.append(Pair(a, b, after.model.component(b).title.strip(), changes))
    return Comparison(
        before, after,
        names if all(names) else (before.model.name, after.model.name),
        tuple(found), new, gone,
        tuple(symbols(before, after, mapping, everything=revisions)),
        tuple(policies(before, after, mapping)),
        tuple(figures(before, after, mapping)),
        mapping,
    )  # fmt: skip


# --- which component is which ----------------------------------------------------------------------


def model_map(before: Accounts, after: Accounts) -> schema.ModelMap:
    """The map from one model to the other, turned round where the other one has it; checked."""
    name_a, name_b = before.model.name, after.model.name
    own = before.model.sources.maps.get(name_b)
    if own is not None:
        check_map(before, after, own, before, name_b, turned=False)
        return own
    other = after.model.sources.maps.get(name_a)
    if other is None:
        return schema.ModelMap()
    check_map(after, before, other, after, name_a, turned=True)
    return other.model_copy(
        update={
            "components": {b: a for a, b in other.components.items()},
            "symbols": {b: a for a, b in other.symbols.items()},
            "policies": {b: a for a, b in other.policies.items()},
            "figures": [f.model_copy(update={"before": f.after, "after": f.before}) for f in other.figures],
        }
    )


def check_map(
    first: Accounts, second: Accounts, mapping: schema.ModelMap, owner: Accounts, key: str, *, turned: bool
) -> None:
    """Raises `SpecInvalid` for names that one of the models does not have, and for two that share a counterpart."""
    del turned
    document = owner.model.sources.maps_document
    assert document is not None
    found: list[Finding] = []
    kinds: tuple[tuple[str, Mapping[str, str], Iterable[str], Iterable[str]], ...] = (
        ("components", mapping.components, first.model.components, second.model.components),
        ("symbols", mapping.symbols, first.model.sources.symbols, second.model.sources.symbols),
        ("policies", mapping.policies, first.model.sources.policies, second.model.sources.policies),
    )
    for kind, names, known_a, known_b in kinds:
        seen: dict[str, str] = {}
        for a, b in names.items():
            where = document.locate(("maps", key, kind, a))
            for name, known, model in ((a, known_a, first), (b, known_b, second)):
                if name not in known:
                    message = f"{model.model.name} has no {kind[:-1].replace('policie', 'policy')} {name!r}"
                    found.append(Finding("unknown-reference", message, where, hint=nearest(name, known)))
            if b in seen:
                message = f"two names of the map have the same counterpart {b!r}"
                found.append(Finding("schema-invalid", message, where, "one counterpart each", f"{seen[b]} and {a}"))
            seen[b] = a
    for number, name in enumerate(mapping.apart):
        if name not in first.model.components or name not in second.model.components:
            where = document.locate(("maps", key, "apart", number))
            message = f"{name!r} is not an id of both models, so there is nothing to keep apart"
            found.append(Finding("unknown-reference", message, where))
    if found:
        raise SpecInvalid(found)


def correspond(
    before: Accounts, after: Accounts, mapping: schema.ModelMap
) -> tuple[list[tuple[str, str]], tuple[str, ...], tuple[str, ...]]:
    """Pairs in the order of the second model, ids that only it has, and ids that only the first has."""
    forth = dict(mapping.components)
    taken = set(forth.values())
    for id in before.model.components:
        if id not in forth and id in after.model.components and id not in taken and id not in mapping.apart:
            forth[id] = id
    back = {b: a for a, b in forth.items()}
    pairs = [(back[id], id) for id in after.model.order() if id in back]
    new = tuple(id for id in after.model.order() if id not in back)
    gone = tuple(id for id in before.model.order() if id not in forth)
    return pairs, new, gone


# --- what a component says -------------------------------------------------------------------------


def changes_of(
    before: Accounts, a: str, after: Accounts, b: str, mapping: schema.ModelMap, *, sources: bool
) -> Iterator[Change]:
    """Aspects in which two components differ."""
    first, second = aspects(before, a), aspects(after, b)
    for name in ASPECTS:
        if name in SOURCES and not sources:
            continue
        left, right = first[name], second[name]
        if name == "formula":
            if normal(before, a, mapping.symbols) == normal(after, b, {}):
                continue
        elif name == "properties" and not sources:
            continue  # what is checked of one model need not be of the other
        elif name in ("inputs", "outputs") and not sources:
            left, right = ports(before, a, name, names=False), ports(after, b, name, names=False)
            if sorted(left.splitlines()) == sorted(right.splitlines()):
                continue
            left, right = first[name], second[name]
        elif left == right:
            continue
        yield Change(name, left, right)


def aspects(accounts: Accounts, id: str) -> dict[str, str]:
    """Everything that a component states, by aspect, as text."""
    component = accounts.model.component(id)
    each = accounts.per_instance(id)
    return {
        "kind": component.kind,
        "formula": "\n".join(formula.to_source(step) for step in accounts.model.steps[id]),
        "inputs": ports(accounts, id, "inputs"),
        "outputs": ports(accounts, id, "outputs"),
        "parameters": "\n".join(rows(accounts, id)),
        "per instance": " or ".join(f"{n:,}" for n in each) or "0",
        "instances": f"{accounts.num_instances(id):,}",
        "total": f"{accounts.total(id):,}",
        "constants": "\n".join(f"{n} = {v}" for x in component.numerics for n, v in sorted(x.constant.items())),
        "properties": "\n".join(f"{p.id}: {p.model_dump_json(exclude_defaults=True)}" for p in component.properties),
        "cited": "\n".join(cited(accounts, id)),
    }  # fmt: skip


def ports(accounts: Accounts, id: str, direction: str, *, names: bool = True) -> str:
    """Inputs or outputs of a component with their sizes, one a line."""
    lines = []
    for port in getattr(accounts.model.component(id), direction):
        sizes = f"{shape(accounts, id, port.axes)} {port.dtype}"
        lines.append(f"{port.name} {sizes}" if names else sizes)
    return "\n".join(lines)


def shape(accounts: Accounts, id: str, axes: list[str]) -> str:
    """Axes with their sizes where the configuration fixes them: `[B, T, 4, 4096]`."""
    first = accounts.instances[id][0]
    symbols = accounts.model.symbols(place=first.occurrence.place, layer=first.layer)
    known = {n: v for n, v in symbols.items() if type(v) is int}
    sizes = []
    for axis in axes:
        size = Axis.parse(axis).size
        names = expr.parse(size).names
        sizes.append(f"{expr.evaluate(size, known):,}" if names <= known.keys() else size)
    return f"[{', '.join(sizes)}]"


def rows(accounts: Accounts, id: str) -> Iterator[str]:
    """Accounting rows with shape and count, as they are in the first instance."""
    for row in accounts.instances[id][0].rows:
        note = "" if row.row.role == "parameter" else ", a buffer"
        yield f"{row.row.id}: {list(row.shape)} = {row.count:,} {row.row.dtype}{note}"


def cited(accounts: Accounts, id: str) -> Iterator[str]:
    """Where the component's statements come from: pinned code by digest, upstream lines, evidence."""
    model = accounts.model
    component, sources = model.component(id), model.sources
    lock = recorded_pins(sources.folder / pins.FILE_NAME)
    for code in component.code:
        record = lock.pins.get((id, code.id))
        digest = pins.text_digest(record.text)[:16] if record is not None else "not recorded"
        yield f"code {code.path} {code.symbol} {digest}"
    for citation in component.upstream:
        source = sources.sources.sources[citation.source]
        yield f"upstream {citation.source} {source.revision or source.sha256 or ''} {citation.lines}"
    for name in dict.fromkeys(component.evidence):
        entry = sources.evidence[name]
        yield f"evidence {name}: {entry.claim} ({entry.source} {entry.lines or entry.section or ''})"


def recorded_pins(path: Path) -> pins.Lock:
    """The pins of a file, read once for each state of it."""
    state = path.stat() if path.is_file() else None
    return _read_pins(path, state.st_mtime_ns if state else 0, state.st_size if state else 0)


@functools.lru_cache(maxsize=4)
def _read_pins(path: Path, time: int, size: int) -> pins.Lock:
    del time, size  # part of the key
    return pins.read_lock(path)


def normal(accounts: Accounts, id: str, letters: Mapping[str, str]) -> str:
    """The formulas of a component in normal form, with another model's letters."""
    texts = []
    for step in accounts.model.steps[id]:
        text = re.sub(
            r"[A-Za-z][A-Za-z0-9_]*'*", lambda m: letters.get(m.group(), m.group()), formula.to_source(step)
        )
        texts.append(formula.normal_form(formula.parse(text)))
    return "\n".join(texts)


# --- sizes of the models ---------------------------------------------------------------------------


def symbols(before: Accounts, after: Accounts, mapping: schema.ModelMap, *, everything: bool) -> Iterator[Value]:
    """Sizes and constants: letters that the map names and letters with the same field of the configuration."""
    left, right = before.model.symbols(), after.model.symbols()
    meanings = after.model.sources.symbols
    if everything:
        for name in dict.fromkeys((*left, *right)):
            symbol = meanings.get(name) or before.model.sources.symbols[name]
            yield Value(name, symbol.meaning.strip(), left.get(name), right.get(name))
        return
    names = dict(mapping.symbols)
    for name, symbol in before.model.sources.symbols.items():
        other = meanings.get(name)
        if name not in names and other is not None and symbol.meaning == other.meaning:
            names[name] = name
    for name, other_name in names.items():
        if name in left or other_name in right:
            yield Value(name, meanings[other_name].meaning.strip(), left.get(name), right.get(other_name))


def policies(before: Accounts, after: Accounts, mapping: schema.ModelMap) -> Iterator[Value]:
    """What is counted together, for policies that correspond."""
    first, second = before.model.sources.policies, after.model.sources.policies
    names = {**{n: n for n in first if n in second and before.model.name == after.model.name}, **mapping.policies}
    for a, b in names.items():
        yield Value(a, second[b].title.strip(), before.policy(first[a]), after.policy(second[b]))


def figures(before: Accounts, after: Accounts, mapping: schema.ModelMap) -> Iterator[Value]:
    """Figures of the map, each side from its own symbols and configuration."""

    def known(accounts: Accounts) -> dict[str, Any]:
        model = accounts.model
        numbers = {n: v for n, v in model.symbols().items() if type(v) is int}
        return {**integer_fields(model.config, lists=True), **numbers, **{f"in_{p}": q for p, q in places(accounts)}}

    for figure in mapping.figures:
        left, right = expr.evaluate(figure.before, known(before)), expr.evaluate(figure.after, known(after))
        yield Value(figure.title.strip(), (figure.text or "").strip(), left, right)


def places(accounts: Accounts) -> Iterator[tuple[str, int]]:
    """Places by a name that an expression may use, with how often each occurs."""
    for id, place in accounts.model.places.items():
        yield re.sub(r"[^A-Za-z0-9]", "_", id), place.multiplicity if place.row.path else len(place.layers)


def load(root: Any, name: str) -> Accounts:
    """A counted model; raises `SpecInvalid`."""
    from sitegen import loader, resolver

    return accounting.count(resolver.resolve(loader.load(root, name)))
