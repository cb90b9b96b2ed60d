# A figure that is written out goes stale in silence: it is found here and sent to its name.
"""Numbers in prose that equal a known figure and are not quoted by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sitegen import expr
from sitegen.accounting import Accounts
from sitegen.diagnostics import SpecInvalid
from sitegen.quoting import figures_of, quotable
from sitegen.render.text import Emphasis, Link, Quote, Span, Text, parse_prose

#: Smaller integers are words of the language; they equal some field of the configuration by accident.
SMALLEST = 11
#: From here on the rows and totals of other components count too; below, they would be met by accident.
SMALLEST_ELSEWHERE = 100_000

# Letters, digits and marks around a number make it part of a name (`float32`, `V4.1`, `2.4.1`) or an exponent.
_NUMBER = re.compile(
    r"(?<![\w.,^#§])(?<!\*\*)"
    r"(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?([eE][-+]?\d+)?"
    r"(?![\w]|[.,]\d|\s?%|[- ]bits?\b)"
)
# What counts from a list of numbers in prose: `layers 2, 8 and 14`, `layers 20-39`, `sections 2.4.1 to 2.4.3`.
_LABELS = re.compile(
    r"\b(?:layer|section|table|figure|equation|appendix|line|page|step|version)s?[ \n]+"
    r"\d[\d.]*(?:(?:\s*(?:,|-|–|—|\bto\b|\band\b|\bor\b)\s*)+\d[\d.]*)*",
    re.I,
)


@dataclass(frozen=True)
class Unbound:
    """A number as it is written, where in the text it begins, and the names that it could be quoted by."""

    text: str
    start: int
    value: int | float
    names: tuple[str, ...]

    @property
    def hint(self) -> str:
        quotes = " or ".join("{" + name + "}" for name in self.names[:3])
        return f"write {quotes}; a number that is equal by accident stands between backticks"


@dataclass(frozen=True)
class Known:
    """Figures by value, with the names that quote them; a float that is whole (`10.0`) is not the integer."""

    integers: Mapping[int, tuple[str, ...]]
    floats: Mapping[float, tuple[str, ...]] = field(default_factory=dict)


@dataclass
class Figures:
    """The figures of a model: for each component the values that its prose can quote, with their names."""

    accounts: Accounts
    _elsewhere: dict[int, dict[str, None]] = field(default_factory=dict)
    _known: dict[str, Known] = field(default_factory=dict)

    def __post_init__(self) -> None:
        model = self.accounts.model
        for name, policy in model.sources.policies.items():
            try:
                self._add(self.accounts.policy(policy), f"policy:{name}")
            except SpecInvalid:
                continue  # a finding of its own
        for id, instances in self.accounts.instances.items():
            for name, value in figures_of(self.accounts, id).items():
                self._add(value, f"{name}:{id}")
            for row in instances[0].rows:
                self._add(row.count, f"row:{id}:{row.row.id}")

    def _add(self, value: int, name: str) -> None:
        if value >= SMALLEST_ELSEWHERE:
            self._elsewhere.setdefault(value, {})[name] = None

    def of(self, id: str) -> Known:
        """The figures as one component's prose would quote them: its own names first."""
        if id not in self._known:
            self._known[id] = self._collect(id)
        return self._known[id]

    def anywhere(self) -> Known:
        """The figures that texts outside of components would quote: those too large to be met by accident."""
        return Known({value: tuple(names) for value, names in self._elsewhere.items()})

    def _collect(self, id: str) -> Known:
        model = self.accounts.model
        first = self.accounts.instances[id][0]
        integers: dict[int, dict[str, None]] = {}
        floats: dict[float, dict[str, None]] = {}

        def add(value: int | float, name: str) -> None:
            if isinstance(value, float):
                floats.setdefault(value, {})[name] = None
            elif value >= SMALLEST:
                integers.setdefault(value, {})[name] = None

        for name, value in quotable(self.accounts, id).items():
            add(value, name)
        for row in first.rows:
            add(row.count, f"row:{row.row.id}")
        symbols = model.symbols(place=first.occurrence.place, layer=first.layer)
        for name, number in {**symbols, **model.config}.items():
            if isinstance(number, float):
                add(number, name)
        for symbol in model.sources.symbols.values():
            if symbol.by_layer is not None:
                for place, value in enumerate(model.config.get(symbol.by_layer.values, ())):
                    add(value, f"{symbol.by_layer.values}[{place}]")
        for value, names in self._elsewhere.items():
            for name in names:
                if not name.endswith(f":{id}") and not name.startswith(f"row:{id}:"):
                    add(value, name)
        return Known({v: tuple(n) for v, n in integers.items()}, {v: tuple(n) for v, n in floats.items()})


def unbound(text: str, known: Known) -> Iterator[Unbound]:
    """The numbers of a text that equal a figure and are not quoted by name.

    Integers count from `SMALLEST` on; numbers with a point or an exponent count when they equal a figure
    that is a float.  Out of account are code, formulas, what is quoted, link texts of citations and addresses,
    numbers that are part of a name, number types (`32-bit`), percentages, and numbers of layers, sections and
    the like.  A quote of a literal (`{5120}`) names nothing, and is taken as the number that it is.
    """
    yield from _unbound(parse_prose(text), known)


def _unbound(spans: Sequence[Span], known: Known) -> Iterator[Unbound]:
    for span in spans:
        match span:
            case Text():
                yield from _in_text(span, known)
            case Quote(expr=quoted, start=start):
                value = _literal(quoted)
                if value in known.integers:
                    yield Unbound("{" + quoted + "}", start, value, known.integers[value])
            case Emphasis(spans=inner):
                yield from _unbound(inner, known)
            case Link(spans=inner, kind=kind) if kind in ("component", "code"):
                yield from _unbound(inner, known)


def _in_text(span: Text, known: Known) -> Iterator[Unbound]:
    labels = [match.span() for match in _LABELS.finditer(span.text)]
    for match in _NUMBER.finditer(span.text):
        if any(start <= match.start() < end for start, end in labels):
            continue
        whole, point, exponent = match.groups()
        value: int | float
        if point or exponent:
            value = float(match.group().replace(",", ""))
            names = known.floats.get(value)
        else:
            value = int(whole.replace(",", ""))
            names = known.integers.get(value)
        if names:
            yield Unbound(match.group(), span.start + match.start(), value, names)


def _literal(quoted: str) -> int:
    """The value of a quote without any name in it; 0 for every other quote."""
    if ":" in quoted or "[" in quoted:
        return 0
    try:
        parsed = expr.parse(quoted)
        return 0 if parsed.names else parsed.value({})
    except SpecInvalid:
        return 0
