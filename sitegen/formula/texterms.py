# Reads hand-written TeX just far enough to see which symbols and numbers it shows.  It is no TeX engine:
# braces, scripts, fractions and styled letters are understood, layout is skipped.  A letter that belongs
# to no symbol is reported as itself, so a forgotten or invented symbol cannot hide.
"""Symbols and constants of hand-written TeX, and how they differ from those of the executed step."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction

from sitegen.diagnostics import Finding, Location
from sitegen.formula.names import names, terms
from sitegen.formula.source import number
from sitegen.formula.symboltex import GREEK, SymbolTex
from sitegen.formula.syntax import N, Range, Step, children, with_children
from sitegen.formula.tex import FUNCTION_TEX
from sitegen.formula.texreader import FRACTIONS, STYLED, WORDS, Atom, base, read_tex

_BIG = (r"\sum", r"\prod", r"\max", r"\min", r"\operatorname*")
_LETTERS = frozenset(f"\\{name}" for name in GREEK)


#: What a term is part of: a value, an index, or the bounds of one.
VALUE, INDEX, BOUND = "value", "index", "bound"


@dataclass(frozen=True)
class TexTerms:
    """What a TeX shows.

    Attributes:
        symbols: names of the symbols that occur.
        constants: the numbers that occur outside of indices; `10^{-6}` is one number.
        index_constants: the numbers inside indices.
        unknown: letters that belong to no symbol.
        bound_symbols: names that occur only in the bounds of a sum, where a formula need not have them.
        bound_constants: the same for numbers, and the 1 above a fraction line.
        readings: how a number such as `2.5 \\cdot 10^{-7}` would read as several.
    """

    symbols: frozenset[str]
    constants: frozenset[Fraction]
    index_constants: frozenset[Fraction]
    unknown: frozenset[str]
    bound_symbols: frozenset[str] = frozenset()
    bound_constants: frozenset[Fraction] = frozenset()
    readings: Mapping[Fraction, frozenset[tuple[Fraction, ...]]] = field(default_factory=dict)


def tex_terms(
    tex: str,
    symbols_tex: Mapping[str, str | SymbolTex],
    *,
    indices: Collection[str] = (),
    functions: Collection[str] = (),
) -> TexTerms:
    """The symbols and constants of hand-written TeX.

    Args:
        symbols_tex: TeX by name, of every symbol that may occur.
        indices: names of indices; only these may carry primes that their TeX has not (`k'` for k).
        functions: names of functions whose letter is no symbol here (`sigmoid` for \\sigma, `exp` for e).
    """
    symbols = {name: tex if isinstance(tex, SymbolTex) else SymbolTex.of(tex) for name, tex in symbols_tex.items()}
    letters = {FUNCTION_TEX[name] for name in functions if name in FUNCTION_TEX}
    reader = _Collector(symbols, frozenset(indices), letters | ({"e"} if "exp" in functions else set()))
    reader.visit(read_tex(tex), VALUE)
    shown = frozenset(reader.symbols[VALUE] | reader.symbols[INDEX])
    constants = frozenset(reader.constants[VALUE])
    return TexTerms(
        shown,
        constants,
        frozenset(reader.constants[INDEX]),
        frozenset(reader.unknown),
        frozenset(reader.symbols[BOUND]) - shown,
        frozenset(reader.constants[BOUND]) - constants,
        {value: frozenset(readings) for value, readings in reader.readings.items()},
    )


def tex_findings(
    step: Step, tex: str, symbols_tex: Mapping[str, str | SymbolTex], *, where: Location | None = None
) -> list[Finding]:
    """A `tex-differs` finding if a hand-written TeX shows other symbols or constants than its step.

    Bounds of sums, products and indices may be written or left out; everything else must be the same set,
    numbers inside indices and outside each on their own.
    """
    own = terms(step)
    uses = names(step)
    symbols = {name: symbols_tex.get(name) or SymbolTex.default(name) for name in sorted(own.symbols)}
    symbols |= {name: value for name, value in symbols_tex.items() if name not in symbols}
    shown = tex_terms(tex, symbols, indices=uses.indices, functions=uses.functions)

    required = terms(_without_bounds(step))
    constants = _exactly(own.constants)
    indices = _exactly(own.index_constants)
    found, too_many = _compared(shown.constants, shown.readings, constants)
    in_indices, too_many_in_indices = _compared(shown.index_constants, shown.readings, indices)
    lacking = sorted(required.symbols - shown.symbols - shown.bound_symbols)
    lacking += _plainly(_exactly(required.constants) - found - shown.bound_constants)
    lacking += [f"{text} in an index" for text in _plainly(_exactly(required.index_constants) - in_indices)]
    extra = [*sorted(shown.symbols - own.symbols), *sorted(shown.unknown)]
    extra += _plainly(too_many)
    extra += [f"{text} in an index" for text in _plainly(too_many_in_indices)]
    if not lacking and not extra:
        return []
    parts = [f"lacks {', '.join(lacking)}"] if lacking else []
    parts += [f"has {', '.join(extra)}, which the step has not"] if extra else []
    return [
        Finding(
            "tex-differs",
            f"the hand-written TeX {' and '.join(parts)}",
            where or step.where,
            expected=_listed(own.symbols, constants, indices),
            actual=_listed(shown.symbols | shown.unknown, found, in_indices),
            hint="use the symbols and constants of expr, or leave tex out: it is then made from expr",
        )
    ]


def _compared(
    shown: Collection[Fraction],
    readings: Mapping[Fraction, Collection[tuple[Fraction, ...]]],
    own: Collection[Fraction],
) -> tuple[set[Fraction], set[Fraction]]:
    """The numbers that a TeX may be said to show, and those of them that the step has in no reading."""
    found: set[Fraction] = set()
    extra: set[Fraction] = set()
    for value in shown:
        fitting = [reading for reading in [(value,), *readings.get(value, ())] if set(reading) <= set(own)]
        found.update(*fitting or [(value,)])
        if not fitting:
            extra.add(value)
    return found, extra


def exact(value: int | float) -> Fraction:
    """The number that was written, without binary rounding: 1e-6 is one millionth."""
    return Fraction(Decimal(repr(value)))


def _exactly(values: Collection[int | float]) -> set[Fraction]:
    return {exact(value) for value in values}


def _plainly(values: Collection[Fraction]) -> list[str]:
    return [str(v.numerator) if v.denominator == 1 else number(float(v)) for v in sorted(values)]


def _listed(symbols: Collection[str], constants: Collection[Fraction], index_constants: Collection[Fraction]) -> str:
    text = ", ".join([*sorted(symbols), *_plainly(constants)])
    return text + (f" and in indices {', '.join(_plainly(index_constants))}" if index_constants else "")


def _without_bounds(node: N) -> N:
    """The same tree with every bound of an index left out."""
    if isinstance(node, Range):
        return replace(node, low=None, high=None)
    return with_children(node, [_without_bounds(child) for child in children(node)])


@dataclass(frozen=True)
class _Known:
    """How a symbol reads: atoms before its last letter, that letter, and its own scripts."""

    name: str
    before: tuple[Atom, ...]
    letter: str
    sub: tuple[Atom, ...]
    sup: tuple[Atom, ...]
    primes: int

    @classmethod
    def of(cls, name: str, symbol: SymbolTex) -> _Known:
        letters = read_tex(symbol.letter) or (Atom(""),)
        primes = len(symbol.sup) if set(symbol.sup) == {"'"} else 0
        sup = () if primes else read_tex(symbol.sup)
        return cls(name, letters[:-1], base(letters[-1]), read_tex(symbol.sub), sup, primes)

    def matches(self, atoms: tuple[Atom, ...], at: int, any_primes: bool) -> bool:
        last = at + len(self.before)
        if last >= len(atoms) or atoms[at:last] != self.before or base(atoms[last]) != self.letter:
            return False
        atom = atoms[last]
        own = atom.sub[: len(self.sub)] == self.sub and atom.sup[: len(self.sup)] == self.sup
        return own and (atom.primes == self.primes or (any_primes and not self.primes))

    @property
    def length(self) -> int:
        """How much of the TeX it accounts for; the longest match wins."""
        return len(self.before) + len(self.sub) + len(self.sup) + self.primes


class _Collector:
    """Walks atoms; what it meets in values, indices and bounds is kept apart."""

    def __init__(self, symbols: Mapping[str, SymbolTex], indices: frozenset[str], functions: set[str]) -> None:
        self.indices, self.functions = indices, functions
        self.known = sorted((_Known.of(*entry) for entry in symbols.items()), key=lambda known: -known.length)
        self.symbols: dict[str, set[str]] = {VALUE: set(), INDEX: set(), BOUND: set()}
        self.constants: dict[str, set[Fraction]] = {VALUE: set(), INDEX: set(), BOUND: set()}
        self.unknown: set[str] = set()
        self.readings: dict[Fraction, set[tuple[Fraction, ...]]] = {}

    def visit(self, atoms: tuple[Atom, ...], part_of: str) -> None:
        at = brackets = 0
        while at < len(atoms):
            brackets = max(0, brackets + (atoms[at].base == "[") - (atoms[at].base == "]"))
            here = INDEX if brackets and part_of == VALUE else part_of
            at += self._number(atoms, at, here) or self._symbol(atoms, at, here) or self._other(atoms[at], here)

    def _number(self, atoms: tuple[Atom, ...], at: int, part_of: str) -> int:
        """Reads a number at this place, `2.5 \\cdot 10^{-7}` included; how many atoms it took."""
        first = _value(atoms[at])
        if first is None:
            return 0
        power = _power_of_ten(atoms[at])
        if power is not None:
            self._scientific(None, power, part_of)
            return 1
        if not atoms[at].sup and at + 2 < len(atoms) and atoms[at + 1].base in (r"\cdot", r"\times"):
            power = _power_of_ten(atoms[at + 2])
            if power is not None:
                self._scientific(first, power, part_of)
                return 3
        self.constants[part_of].add(first)
        self._scripts(atoms[at].sub, atoms[at].sup, part_of)
        return 1

    def _scientific(self, mantissa: Fraction | None, power: int, part_of: str) -> None:
        """Notes a number such as 2.5e-7, which a step may also write as a product or a power."""
        ten = Fraction(10) ** power
        whole = ten if mantissa is None else mantissa * ten
        apart = () if mantissa is None else (mantissa,)
        self.constants[part_of].add(whole)
        self.readings.setdefault(whole, set()).update([(*apart, ten), (*apart, Fraction(10), Fraction(abs(power)))])

    def _scripts(self, sub: tuple[Atom, ...], sup: tuple[Atom, ...], part_of: str) -> None:
        self.visit(sub, INDEX if part_of == VALUE else part_of)
        self.visit(sup, part_of)

    def _symbol(self, atoms: tuple[Atom, ...], at: int, part_of: str) -> int:
        """Reads a symbol at this place, then what its scripts hold besides its own."""
        for known in self.known:
            if known.matches(atoms, at, known.name in self.indices):
                atom = atoms[at + len(known.before)]
                self.symbols[part_of].add(known.name)
                self._scripts(atom.sub[len(known.sub) :], atom.sup[len(known.sup) :], part_of)
                return len(known.before) + 1
        return 0

    def _other(self, atom: Atom, part_of: str) -> int:
        base = atom.base
        if base in FRACTIONS:
            above, below = atom.inside
            unit = [part.base for part in above.inside] == ["1"]
            self.visit(above.inside, BOUND if unit else part_of)
            self.visit(below.inside, part_of)
        elif base == "{}":
            self.visit(atom.inside, part_of)
        elif base.startswith(WORDS) and "{" in base:
            if base.startswith(r"\text"):
                self.visit(tuple(part for part in atom.inside if _value(part) is not None), part_of)
        elif base.startswith(STYLED) and "{" in base:
            self.unknown.add(base + "'" * atom.primes)
        elif base not in self.functions and (base in _LETTERS or re.fullmatch("[A-Za-z]", base)):
            self.unknown.add(base + "'" * atom.primes)
        if base.startswith(_BIG):
            for part in _split(atom.sub):
                index, bounds = _index_and_bounds(part)
                self.visit(index, part_of)
                self.visit(bounds, BOUND)
            self.visit(atom.sup, BOUND)
        elif base == r"\log":
            self.visit(atom.sup, part_of)  # the base of a logarithm belongs to the function
        else:
            self._scripts(atom.sub, atom.sup, part_of)
        return 1


def _value(atom: Atom) -> Fraction | None:
    text = atom.base.replace("{,}", "").replace("\\,", "")
    return Fraction(Decimal(text)) if text[:1].isdigit() and text[:1].isascii() and len(text) <= 60 else None


def _power_of_ten(atom: Atom) -> int | None:
    """The exponent of an atom `10^{-6}`."""
    if atom.base != "10" or not atom.sup or atom.sub:
        return None
    text = "".join(part.base for part in atom.sup)
    return int(text) if re.fullmatch(r"-?[0-9]{1,3}", text) and not any(part.sup for part in atom.sup) else None


def _index_and_bounds(part: tuple[Atom, ...]) -> tuple[tuple[Atom, ...], tuple[Atom, ...]]:
    """What stands below a big operator: `j`, `j = 1`, or `1 \\le j \\le n`."""
    relations = [place for place, atom in enumerate(part) if atom.base in ("=", r"\in", r"\le", r"\leq")]
    if not relations:
        return part, ()
    if len(relations) == 1:
        return part[: relations[0]], part[relations[0] + 1 :]
    first, second = relations[:2]
    return part[first + 1 : second], part[:first] + part[second + 1 :]


def _split(sub: tuple[Atom, ...]) -> Iterator[tuple[Atom, ...]]:
    part: list[Atom] = []
    for atom in sub:
        if atom.base == ",":
            yield tuple(part)
            part = []
        else:
            part.append(atom)
    yield tuple(part)
