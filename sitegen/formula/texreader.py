# Reads hand-written TeX into atoms with scripts.  It is no TeX engine: braces, scripts, fractions and
# styled letters are understood, layout is skipped.
"""Atoms of a TeX formula: letters, commands, numbers, words and groups, each with its scripts."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sitegen.formula.syntax import MAX_DEPTH

_TOKEN = re.compile(
    r"\\[A-Za-z]+\*?|\\.|[0-9]+(?:(?:\{,\}|\\,)[0-9]{3})*(?:\.[0-9]+)?|'+|[A-Za-z]|[{}_^\[\]&]|\S", re.DOTALL
)
FRACTIONS = (r"\frac", r"\tfrac", r"\dfrac")
WORDS = (r"\text", r"\textrm", r"\mathrm", r"\operatorname", r"\operatorname*", r"\mbox")
STYLED = (
    r"\mathbf", r"\boldsymbol", r"\mathcal", r"\mathsf", r"\mathbb", r"\mathit", r"\mathfrak",
    r"\hat", r"\bar", r"\tilde", r"\vec", r"\dot", r"\ddot", r"\widehat", r"\widetilde", r"\overline", r"\check",
)  # fmt: skip


@dataclass(frozen=True)
class Atom:
    """A letter, command, number, word or group, with its scripts."""

    base: str
    inside: tuple[Atom, ...] = ()
    sub: tuple[Atom, ...] = ()
    sup: tuple[Atom, ...] = ()
    primes: int = 0


def base(atom: Atom) -> str:
    """The text of an atom without its scripts."""
    return flat((Atom(atom.base, atom.inside),))


def flat(atoms: tuple[Atom, ...]) -> str:
    """The text of atoms without their scripts."""
    return "".join(atom.base if atom.base != "{}" else "{" + flat(atom.inside) + "}" for atom in atoms)


def read_tex(tex: str) -> tuple[Atom, ...]:
    """The atoms of a TeX, in writing order; broken TeX is read as far as it goes."""
    tokens = [match.group() for match in _TOKEN.finditer(tex)]
    atoms, _ = _sequence(tokens, 0, "", 0)
    return tuple(atoms)


def _sequence(tokens: list[str], at: int, stop: str, depth: int) -> tuple[list[Atom], int]:
    atoms: list[Atom] = []
    while at < len(tokens) and tokens[at] != stop:
        token = tokens[at]
        if token in ("_", "^"):
            script, at = _argument(tokens, at + 1, depth + 1)
            base = atoms.pop() if atoms else Atom("")
            sub, sup, primes = base.sub, base.sup, base.primes
            if token == "_":
                sub += script
            else:
                is_prime = bool(script) and all(atom.base == r"\prime" for atom in script)
                primes, sup = (primes + len(script), sup) if is_prime else (primes, sup + script)
            atoms.append(Atom(base.base, base.inside, sub, sup, primes))
        elif token[0] == "'":
            base = atoms.pop() if atoms else Atom("")
            atoms.append(Atom(base.base, base.inside, base.sub, base.sup, base.primes + len(token)))
            at += 1
        else:
            atom, at = _atom(tokens, at, depth)
            if atom is not None:
                atoms.append(atom)
    return atoms, at


def _atom(tokens: list[str], at: int, depth: int) -> tuple[Atom | None, int]:
    token = tokens[at]
    if token == "{":
        return _group(tokens, at, depth)
    if token in FRACTIONS:
        above, at = _argument(tokens, at + 1, depth + 1)
        below, at = _argument(tokens, at, depth + 1)
        return Atom(token, (Atom("{}", above), Atom("{}", below))), at
    if token == r"\color":
        at += 1
        if at < len(tokens) and tokens[at] == "[":
            at = tokens.index("]", at) + 1 if "]" in tokens[at:] else len(tokens)
        _, at = _argument(tokens, at, depth)
        return None, at
    if token in (r"\begin", r"\end"):
        _, after = _argument(tokens, at + 1, depth)
        if token == r"\begin" and "".join(tokens[at + 1 : after]) == "{array}":
            _, after = _argument(tokens, after, depth)
        return None, after
    if token in WORDS or token in STYLED:
        start = at + 1
        content, at = _argument(tokens, start, depth + 1)
        raw = "".join(tokens[start:at])
        base = token + (raw if raw.startswith("{") else f"{{{raw}}}")
        return Atom(base, content), at
    return Atom(token), at + 1


def _group(tokens: list[str], at: int, depth: int) -> tuple[Atom, int]:
    if depth > MAX_DEPTH:  # deeper nesting is no formula: take the rest as it stands
        return Atom("{}"), len(tokens)
    inside, at = _sequence(tokens, at + 1, "}", depth + 1)
    return Atom("{}", tuple(inside)), at + 1


def _argument(tokens: list[str], at: int, depth: int) -> tuple[tuple[Atom, ...], int]:
    """The argument of a command: a group, or the next token, of which TeX takes a single digit."""
    if at >= len(tokens):
        return (), at
    if depth > MAX_DEPTH:
        return (), len(tokens)
    if tokens[at] == "{":
        group, at = _group(tokens, at, depth)
        return group.inside, at
    if tokens[at][0].isdigit() and len(tokens[at]) > 1:
        first, tokens[at] = tokens[at][0], tokens[at][1:]
        return (Atom(first),), at
    if tokens[at] in ("}", "_", "^"):
        return (), at
    atom, at = _atom(tokens, at, depth + 1)
    return (() if atom is None else (atom,)), at
