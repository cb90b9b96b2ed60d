# Numbers of a model by name, outside of any component: policies, rows, totals, the published table.  Each knows
# the statements that it stands on.
"""Evaluate expressions with references in braces, such as `{policy:all} - {row:head:matrix}`."""

from __future__ import annotations

import ast
import fnmatch
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sitegen import expr
from sitegen.accounting import Accounts, Instance, TableTensor
from sitegen.diagnostics import Finding, Location, SpecInvalid, nearest
from sitegen.quoting import FIGURES, quotable, quote

#: A statement of a component: its id, and the statement's.
Carrier = tuple[str, str]

#: What can be counted in the published table, as `{table:WHAT}` or `{table:WHAT:PATTERN OF NAMES}`.
COUNTED = {
    "tensors": "tensors, scales left out",
    "elements": "elements, scales left out",
    "stored": "elements as they are stored, several packed in one counting once, scales left out",
    "packed": "elements of tensors that are stored packed",
    "stored_packed": "elements of these tensors as they are stored",
    "scales": "elements of scales",
}

_REFERENCE = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Quantity:
    """An exact value with the calculation behind it.

    Attributes:
        value: the integer.
        shown: the calculation with values, `551,880,835,184 + 196,613,849,600`.
        carriers: statements of components that the value stands on.
        plain: whether it does nothing but calculate with earlier steps and literal numbers.
        table: whether the published table, which is compared and not run, gives some of it.
    """

    value: int
    shown: str
    carriers: tuple[Carrier, ...] = ()
    plain: bool = False
    table: bool = False


class Quantities:
    """The numbers of a model by name; each reference is looked up once."""

    def __init__(self, accounts: Accounts) -> None:
        self.accounts = accounts
        self._symbols: dict[str | None, dict[str, int]] = {}
        self._references: dict[str, tuple[int, tuple[Carrier, ...]]] = {}

    def symbols(self, of: str | None, where: Location) -> dict[str, int]:
        """Integers that an expression can name: symbols and config fields, or what a component's prose can quote."""
        if of not in self._symbols:
            model = self.accounts.model
            if of is None:
                names = {name: value for name, value in model.config.items() if type(value) is int}
                names |= {name: value for name, value in model.symbols().items() if type(value) is int}
            elif of in model.components:
                names = quotable(self.accounts, of)
            else:
                raise _unknown(f"no component {of!r}", where, of, model.components)
            self._symbols[of] = names
        return self._symbols[of]

    def reference(self, text: str, where: Location) -> tuple[int, tuple[Carrier, ...]]:
        """A reference's value and the statements that it stands on; raises `SpecInvalid`."""
        if text not in self._references:
            self._references[text] = _reference(self.accounts, text, where)
        return self._references[text]

    def names(self, text: str | int) -> frozenset[str]:
        """The symbols and steps that an expression names outside of references."""
        return expr.parse(_REFERENCE.sub("1", str(text))).names

    def quantity(
        self, text: str | int, steps: Mapping[str, int], symbols: Mapping[str, int], where: Location
    ) -> Quantity:
        """The value of an expression over earlier steps, symbols and references; raises `SpecInvalid`.

        References: `policy:NAME`, `term:POLICY:NUMBER` (one term, from 0), `row:COMPONENT:ROW`, `own:`,
        `per_instance:`, `instances:` and `total:COMPONENT`, `table:WHAT` (see `COUNTED`), `FIELD[0]`.
        A division must be exact.
        """
        values: dict[str, int] = {}
        carriers: dict[Carrier, None] = {}

        def named(match: re.Match[str]) -> str:
            value, stands_on = self.reference(match.group(1).strip(), where)
            name = f"ref_{len(values)}"
            values[name] = value
            carriers.update(dict.fromkeys(stands_on))
            return name

        written = _REFERENCE.sub(named, str(text))
        if "{" in written or "}" in written:
            message = "a reference stands in one pair of braces, as in {policy:all}"
            raise SpecInvalid([Finding("expression-invalid", message, where, actual=str(text)[:80])])
        names = {**symbols, **steps, **values}
        value = expr.evaluate(written, names, where)
        parsed = expr.parse(written)
        _exact_divisions(parsed, names, where)
        plain = not values and not (parsed.names - steps.keys())
        table = any(name.strip().startswith("table:") for name in _REFERENCE.findall(str(text)))
        return Quantity(value, parsed.shown(names), tuple(carriers), plain, table)


def _reference(accounts: Accounts, text: str, where: Location) -> tuple[int, tuple[Carrier, ...]]:
    model = accounts.model
    kind, colon, name = text.partition(":")
    if kind == "table" and colon:
        return _table(accounts, name, where), ()
    if kind == "term" and colon:
        policy_name, _, number = name.rpartition(":")
        policy = model.sources.policies.get(policy_name)
        if policy is None:
            raise _unknown(f"no policy {policy_name!r}", where, policy_name, model.sources.policies)
        if not number.isdigit() or int(number) >= len(policy.terms):
            message = f"the policy {policy_name!r} has no term {number}: it has {len(policy.terms)}, counted from 0"
            raise SpecInvalid([Finding("unknown-reference", message, where)])
        term = policy.terms[int(number)]
        value = accounts.policy(policy.model_copy(update={"terms": [term]}))
        return value, _rows(accounts.term_instances(term))
    kinds = ("policy", "row", *FIGURES)
    if colon and kind not in kinds:
        raise _unknown(f"nothing is quoted as {kind}:", where, kind, (*kinds, "term", "table"))
    if kind == "row" and ":" not in name:
        message = "outside a component a row is named with its component, as in {row:head:matrix}"
        raise SpecInvalid([Finding("unknown-reference", message, where, actual="{" + text + "}")])
    shown, _ = quote(accounts, next(iter(model.components)), text, where)
    try:
        value = int(shown.replace(",", ""))
    except ValueError:
        message = "the value is not an integer"
        raise SpecInvalid([Finding("expression-invalid", message, where, actual=f"{text} = {shown}")]) from None
    return value, _carriers(accounts, kind if colon else "", name)


def _carriers(accounts: Accounts, kind: str, name: str) -> tuple[Carrier, ...]:
    model = accounts.model
    if kind == "policy":
        terms = model.sources.policies[name].terms
        return _rows(instance for term in terms for instance in accounts.term_instances(term))
    if kind == "row":
        component, _, row = name.rpartition(":")
        return ((component, f"row:{row}"),)
    if kind == "instances":
        return tuple((name, f"place:{occurrence.place.id}") for occurrence in model.occurrences[name])
    if kind in FIGURES:
        return _rows(
            instance
            for id, instances in accounts.instances.items()
            for instance in instances
            if name in (id, *instance.occurrence.parents)
        )
    return ()


def _rows(instances: Iterable[Instance]) -> tuple[Carrier, ...]:
    found = ((i.occurrence.component, f"row:{row.row.id}") for i in instances for row in i.counted)
    return tuple(dict.fromkeys(found))


def _table(accounts: Accounts, text: str, where: Location) -> int:
    what, colon, pattern = text.partition(":")
    if what not in COUNTED:
        raise _unknown(f"nothing is counted in the table as {what!r}", where, what, COUNTED)
    if not accounts.table:
        raise SpecInvalid([Finding("unknown-reference", "the model has no published table", where)])
    chosen = [t for t in accounts.table.values() if not colon or fnmatch.fnmatchcase(t.name, pattern)]
    if not chosen:
        raise _unknown(f"no tensor of the table is named {pattern!r}", where, pattern, accounts.table)
    return sum(_counted(what, tensor) for tensor in chosen)


def _counted(what: str, tensor: TableTensor) -> int:
    if tensor.is_scale or what == "scales":
        return math.prod(tensor.shape) if what == "scales" and tensor.is_scale else 0
    packed = tensor.stored != tensor.shape
    match what:
        case "tensors":
            return 1
        case "stored":
            return math.prod(tensor.stored)
        case "packed":
            return math.prod(tensor.shape) if packed else 0
        case "stored_packed":
            return math.prod(tensor.stored) if packed else 0
    return math.prod(tensor.shape)


def _exact_divisions(parsed: expr.Expression, names: Mapping[str, int], where: Location) -> None:
    for node in ast.walk(parsed.tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
            top = expr.Expression("", node.left).value(names)
            bottom = expr.Expression("", node.right).value(names)
            if top % bottom:
                message = "a division in a derivation leaves a remainder"
                raise SpecInvalid([Finding("expression-invalid", message, where, actual=f"{top:,} // {bottom:,}")])


def _unknown(message: str, where: Location, name: str, known: Iterable[str]) -> SpecInvalid:
    return SpecInvalid([Finding("unknown-reference", message, where, hint=nearest(name, known))])
