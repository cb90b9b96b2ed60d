# The symbols of a page: which letters it uses, how they are typeset, what they mean and what they are
# called in the code; one name ties formula, table, axes and excerpt together.
"""Symbol tables and marked letters of a component."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from markupsafe import Markup

from sitegen import formula, schema
from sitegen.render import math
from sitegen.render.math import Letter
from sitegen.render.view import AxisView, SymbolView
from sitegen.resolver import Axis, Model


def number_text(value: int | float) -> str:
    """A number as a reader sees it: thousands separated, small ones as `1e-6`."""
    if isinstance(value, int):
        return f"{value:,}"
    if value == float("inf"):
        return "∞"
    if value and (abs(value) < 1e-3 or abs(value) >= 1e15):
        mantissa, exponent = f"{value:.12e}".split("e")
        return f"{float(mantissa):g}e{int(exponent)}"
    return f"{value:,.12g}"


@dataclass(frozen=True)
class Symbols:
    """The letters of one component: those of its formulas and of the axes of what goes in and out."""

    names: tuple[str, ...]
    tex: Mapping[str, str]
    meaning: Mapping[str, str]
    values: Mapping[str, int | float]
    code: Mapping[str, str]
    bound: Mapping[str, str]  # symbol -> argument or result of the operation that the formulas speak of

    @property
    def letters(self) -> list[Letter]:
        """For marking hand-written TeX."""
        return [Letter(name, self.tex[name]) for name in self.names]

    @property
    def identifiers(self) -> dict[str, str]:
        """Identifier in the code -> symbol, for marking excerpts; one that could mean two symbols is left out."""
        claimed = Counter(self.code.values())
        found = {name: name for name in self.names}
        found |= {identifier: name for name, identifier in self.code.items() if claimed[identifier] == 1}
        return found | {identifier: name for name, identifier in self.bound.items()}

    def table(self) -> tuple[SymbolView, ...]:
        """Rows of the symbol table."""
        return tuple(
            SymbolView(
                name,
                Markup(math.inline_formula(self.tex[name])),
                Markup.escape(self.meaning.get(name, "")),
                number_text(self.values[name]) if name in self.values else "",
                self.code.get(name, ""),
            )
            for name in self.names
        )

    def axis(self, text: str, sizes: Mapping[str, int | float]) -> AxisView:
        """One axis as `4 streams`: its size where the configuration fixes it, else its letter."""
        axis = Axis.parse(text)
        size = _size(axis.size, sizes)
        name = self.meaning.get(axis.letter, "")
        symbol = axis.letter if axis.letter in self.names else ""
        shown = f"{size:,}" if size is not None else axis.size
        # `min(T, w)` has no value and no name: it is said once.
        return AxisView(shown, _short(name) or (axis.letter if axis.letter != shown else ""), symbol)


def axis_sizes(axes: Iterable[str], sizes: Mapping[str, int | float]) -> tuple[str, ...]:
    """Axes as sizes where the configuration fixes them, else as letters."""
    found = []
    for text in axes:
        axis = Axis.parse(text)
        size = _size(axis.size, sizes)
        found.append(axis.size if size is None else f"{size:,}")
    return tuple(found)


def _size(text: str, sizes: Mapping[str, int | float]) -> int | None:
    from sitegen import expr

    parsed = expr.parse(text)
    if any(not isinstance(sizes.get(name), int) for name in parsed.names):
        return None
    return parsed.value({name: int(sizes[name]) for name in parsed.names})


def _short(meaning: str) -> str:
    # "streams: copies of the residual" and "streams (copies …)" are both called "streams" on an axis.
    for stop in (":", "(", ",", ";"):
        meaning = meaning.split(stop, 1)[0]
    return meaning.strip()


def used_names(component: schema.Component, steps: Iterable[formula.Step]) -> tuple[str, ...]:
    """Names in the order of the page: what goes in and out, what formulas use, then axes."""
    found: dict[str, None] = {}
    for step in steps:
        names = formula.names(step)
        for name in (*names.outputs, *names.inputs, *sorted(names.scalars), *sorted(names.indices)):
            found[name] = None
    for shaped in (*component.outputs, *component.inputs, *component.parameters, *component.views):
        for text in shaped.axes:
            letter = Axis.parse(text).letter
            if letter.replace("_", "a").rstrip("'").isalnum() and not letter.isdigit():
                found[letter] = None
    return tuple(found)


def symbols_of(model: Model, component: schema.Component, values: Mapping[str, int | float]) -> Symbols:
    """The symbols of a component; a name without an entry in symbols.yml is typeset as it is written."""
    table = model.sources.symbols
    ports = {port.name: port for port in (*component.inputs, *component.outputs)}
    names = used_names(component, model.steps[component.id])
    meaning = {name: table[name].meaning.strip() for name in names if name in table}
    for name in names:
        if name in ports:
            meaning[name] = ports[name].text.strip()
    code = {name: table[name].upstream or "" for name in names if name in table and table[name].upstream}
    bound = {  # the two parts of a complex value have one name in the code
        name: field.removesuffix(".real").removesuffix(".imag").rsplit(".", 1)[-1]
        for name, field in (component.values.bind if component.values else {}).items()
    }
    bound = {name: field for name, field in bound.items() if name in names and field != "output"}
    code |= bound
    return Symbols(
        names,
        {name: table[name].tex.strip() if name in table else plain_tex(name) for name in names},
        meaning,
        {name: value for name, value in values.items() if name in names},
        {name: code[name] for name in names if code.get(name)},
        bound,
    )


def plain_tex(name: str) -> str:
    """TeX of a name that has none of its own, as generated formulas write it."""
    default = formula.SymbolTex.default(name)
    return default.letter + (f"_{{{default.sub}}}" if default.sub else "") + default.sup
