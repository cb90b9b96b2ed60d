# Typesets a formula as a paper would: fractions, roots, sums with their index below, an index that a
# reduction binds anew gets a prime, and the rounds of a `repeat` stand beside a brace.
"""TeX of a parsed formula."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sitegen.formula.names import target_ranges
from sitegen.formula.precedence import ADD, AND, COMPARE, MULTIPLY, NEGATE, NOT, OR, POWER
from sitegen.formula.symboltex import SymbolTex, number_tex
from sitegen.formula.syntax import (
    Assign,
    BinOp,
    Call,
    Compare,
    Expr,
    Item,
    Logic,
    Name,
    Neg,
    Node,
    Not,
    Num,
    Range,
    Reduce,
    Repeat,
    Statement,
    Step,
    walk,
)

ATOM = 100
#: A sum or a maximum: it takes in every factor that follows, so it may only stand last in a product.
PREFIX = MULTIPLY + 1

#: Receives the name of a symbol and the TeX of its letter, returns the TeX to write instead.
Wrap = Callable[[str, str], str]

#: How functions are written in front of their arguments; the others have a notation of their own.
FUNCTION_TEX: dict[str, str] = {
    "log": r"\log",
    "log2": r"\log_{2}",
    "sigmoid": r"\sigma",
    "softplus": r"\operatorname{softplus}",
    "silu": r"\operatorname{SiLU}",
    "relu": r"\operatorname{ReLU}",
    "gelu": r"\operatorname{GELU}",
    "tanh": r"\tanh",
    "sin": r"\sin",
    "cos": r"\cos",
    "exp": r"\exp",
    "sign": r"\operatorname{sgn}",
    "round": r"\operatorname{round}",
    "max": r"\max",
    "min": r"\min",
    "clamp": r"\operatorname{clamp}",
    "delta": r"\delta",
}

REDUCTION_TEX: dict[str, str] = {
    "sum": r"\sum",
    "prod": r"\prod",
    "max": r"\max",
    "min": r"\min",
    "mean": r"\operatorname*{mean}",
}

_RELATIONS = {"==": "=", "!=": r"\ne", "<=": r"\le", ">=": r"\ge", "<": "<", ">": ">"}
_FENCES = {"abs": ("|", "|"), "floor": (r"\lfloor", r"\rfloor"), "ceil": (r"\lceil", r"\rceil")}
_TALL = re.compile(r"\\(frac|sum|prod|begin|left|sqrt|operatorname\*|max_|min_)")


def to_tex(
    step: Step,
    symbols_tex: Mapping[str, str | SymbolTex],
    *,
    functions: Mapping[str, str] | None = None,
    wrap: Wrap | None = None,
) -> str:
    r"""The TeX of a step: one equation, or an aligned block of several.

    Args:
        symbols_tex: TeX by name; a name without one gets `SymbolTex.default` (`eps_norm` as \epsilon_{\mathrm{norm}}).
        functions: TeX that replaces entries of FUNCTION_TEX.
        wrap: called for every symbol, tensor and index with its name and the TeX of its letter, to mark the letter
            (`lambda name, tex: r"{\color[HTML]{000001}" + tex + "}"`); scripts are not part of the letter.
    """
    symbols = {name: tex if isinstance(tex, SymbolTex) else SymbolTex.of(tex) for name, tex in symbols_tex.items()}
    writer = _Writer(symbols, {**FUNCTION_TEX, **(functions or {})}, wrap or (lambda name, tex: tex))
    writer.letters = {writer.symbol(node.name).letter for node in walk(step) if isinstance(node, (Name, Item))}
    return writer.block(step.statements)


@dataclass
class _Writer:
    symbols: dict[str, SymbolTex]
    functions: dict[str, str]
    wrap: Wrap
    letters: set[str] = field(default_factory=set)
    assigned: set[str] = field(default_factory=set)
    #: indices in scope, with the number of primes that tell apart those bound anew
    primes: dict[str, int] = field(default_factory=dict)
    #: inside a sub- or superscript: no fractions, no space
    small: bool = False

    # -- statements --------------------------------------------------------------------------------

    def block(self, statements: Sequence[Statement]) -> str:
        groups: list[list[str] | str] = []
        for statement in statements:
            if isinstance(statement, Repeat):
                groups.append(self.repeat(statement))
            else:
                if not groups or isinstance(groups[-1], str):
                    groups.append([])
                groups[-1].append(self.statement(statement))
        if len(groups) == 1 and isinstance(groups[0], list) and len(groups[0]) == 1:
            return groups[0][0].replace("&", "", 1)
        blocks = [group if isinstance(group, str) else _aligned(group) for group in groups]
        return blocks[0] if len(blocks) == 1 else r"\begin{array}{l}" + r" \\ ".join(blocks) + r"\end{array}"

    def repeat(self, statement: Repeat) -> str:
        count = self.write(statement.count, ADD)
        body = self.block(statement.body)
        if not body.startswith(r"\begin"):
            body = r"\begin{aligned}" + body + r"\end{aligned}"
        return rf"\left.{body}\right\}}\;{count}\text{{ times}}"

    def statement(self, statement: Assign) -> str:
        bound = target_ranges(statement)
        self.primes = {entry.name: 0 for entry in bound}
        left = self.item(statement.name, statement.axes)
        again = statement.name in self.assigned or any(
            isinstance(node, (Name, Item)) and node.name == statement.name for node in walk(statement.value)
        )
        self.assigned.add(statement.name)
        bounds = "".join(
            rf",\quad {self.letter(entry.name)}={self.write(entry.low, ADD)},\dots,{self.write(entry.high, ADD)}"
            for entry in statement.ranges
            if entry.low is not None and entry.high is not None
        )
        value = self.write(statement.value, ADD)
        self.primes = {}
        sign = r"\leftarrow" if again else "="
        return f"{left} &{sign} {value}{bounds}"

    # -- symbols -----------------------------------------------------------------------------------

    def symbol(self, name: str) -> SymbolTex:
        return self.symbols.get(name) or SymbolTex.default(name)

    def letter(self, name: str, indices: str = "", exponent: str = "") -> str:
        """A symbol with its own scripts, its indices and an exponent; an exponent needs the superscript free."""
        symbol = self.symbol(name)
        primes = "'" * self.primes.get(name, 0)
        brackets = f"[{indices}]" if indices and symbol.brackets else ""
        sub = ",".join(part for part in (symbol.sub, "" if symbol.brackets else indices) if part)
        sup = symbol.sup + primes
        raised = sup if set(sup) <= {"'"} else f"^{{{sup}}}"
        if exponent:
            raised = f"^{{{exponent}}}"
        return self.wrap(name, symbol.letter) + raised + (f"_{{{sub}}}" if sub else "") + brackets

    def item(self, name: str, indices: Sequence[Expr], exponent: str = "") -> str:
        return self.letter(name, self.index_list(indices), exponent)

    def index_list(self, indices: Sequence[Expr]) -> str:
        parts = [self.in_script(index) for index in indices]
        close = all(isinstance(index, Name) and len(self.symbol(index.name).letter) == 1 for index in indices)
        return ("" if close else ",").join(parts)

    def in_script(self, node: Expr) -> str:
        before, self.small = self.small, True
        try:
            return self.write(node, OR)
        finally:
            self.small = before

    # -- expressions -------------------------------------------------------------------------------

    def write(self, node: Expr, least: int) -> str:
        """The TeX of a node, in brackets if its outermost operator binds less than `least`."""
        text, binding = self.node(node)
        return text if binding >= least else _bracket(text)

    def node(self, node: Node) -> tuple[str, int]:
        if isinstance(node, Num):
            text = number_tex(node.value)
            return text, (MULTIPLY if "cdot" in text else POWER if "^" in text else ATOM)
        if isinstance(node, Name):
            return self.letter(node.name), ATOM
        if isinstance(node, Item):
            return self.item(node.name, node.indices), ATOM
        if isinstance(node, Neg):
            return "-" + self.write(node.operand, MULTIPLY), ADD
        if isinstance(node, BinOp):
            return self.operation(node)
        if isinstance(node, Reduce):
            return self.reduction(node)
        if isinstance(node, Call):
            return self.call(node)
        if isinstance(node, Compare):
            left, right = self.write(node.left, ADD), self.write(node.right, ADD)
            return rf"{left} {_RELATIONS[node.op]} {right}", COMPARE
        if isinstance(node, Logic):
            binding = AND if node.op == "and" else OR
            return rf"{self.write(node.left, binding)} \text{{ {node.op} }} {self.write(node.right, binding)}", binding
        if isinstance(node, Not):
            return r"\lnot " + self.write(node.operand, COMPARE + 1), NOT
        raise TypeError(f"no TeX for {type(node).__name__}")

    def operation(self, node: BinOp) -> tuple[str, int]:
        if node.op in "+-":
            space = "" if self.small else " "
            right = self.write(node.right, ADD if node.op == "+" and not _signed(node.right) else ADD + 1)
            return f"{self.write(node.left, ADD)}{space}{node.op}{space}{right}", ADD
        if node.op == "**":
            return self.power(node)
        if node.op == "/":
            if self.small:
                return f"{self.write(node.left, MULTIPLY)}/{self.write(node.right, POWER)}", MULTIPLY
            return rf"\frac{{{self.write(node.left, OR)}}}{{{self.write(node.right, OR)}}}", NEGATE
        if node.op == "//":
            inside = f"{self.write(node.left, MULTIPLY)}/{self.write(node.right, POWER)}"
            return rf"\left\lfloor {inside}\right\rfloor", ATOM
        if node.op == "%":
            return rf"{self.write(node.left, MULTIPLY)} \bmod {self.write(node.right, POWER)}", MULTIPLY
        return self.product(node), MULTIPLY

    def product(self, node: BinOp) -> str:
        factors: list[Expr] = []
        rest: Expr = node
        while isinstance(rest, BinOp) and rest.op == "*":
            factors.insert(0, rest.right)
            rest = rest.left
        factors.insert(0, rest)
        parts: list[str] = []
        for place, factor in enumerate(factors):
            last = place == len(factors) - 1
            text, binding = self.node(factor)
            least = MULTIPLY if place == 0 else MULTIPLY + 1
            if binding < least or (binding == PREFIX and not last) or (isinstance(factor, BinOp) and factor.op == "%"):
                text = _bracket(text)
            if not parts:
                parts.append(text)
                continue
            number_follows = text[:1].isdigit()
            space = r"\cdot " if number_follows else "" if self.small or text.startswith(("(", r"\left(")) else r"\,"
            parts.append(space + text)
        return "".join(parts)

    def power(self, node: BinOp) -> tuple[str, int]:
        exponent = self.in_script(node.right)
        base = node.left
        if isinstance(base, (Name, Item)):
            symbol = self.symbol(base.name)
            if not symbol.sup and not self.primes.get(base.name) and not (symbol.brackets and isinstance(base, Item)):
                indices = self.index_list(base.indices) if isinstance(base, Item) else ""
                return self.letter(base.name, indices, exponent), POWER
        text, binding = self.node(base)
        fenced = isinstance(base, Call) and base.function in _FENCES
        plain = binding >= ATOM and (fenced or isinstance(base, Num))
        return f"{text if plain else _bracket(text)}^{{{exponent}}}", POWER

    def reduction(self, node: Reduce) -> tuple[str, int]:
        operator = REDUCTION_TEX[node.kind]
        bounds = [
            (self.write(entry.low, ADD), self.write(entry.high, ADD)) if entry.low and entry.high else None
            for entry in node.ranges
        ]
        outer = self.primes
        self.primes = dict(outer)
        for entry in node.ranges:
            if entry.name in outer:
                self.primes[entry.name] = outer[entry.name] + 1
            else:
                self.primes[entry.name] = 0
        try:
            head = self.reduction_head(operator, node.kind, node.ranges, bounds)
            if node.kind == "mean":
                return f"{head}{_bracket(self.write(node.body, OR))}", PREFIX
            return f"{head} {self.write(node.body, MULTIPLY)}", PREFIX
        finally:
            self.primes = outer

    def reduction_head(self, operator: str, kind: str, ranges: Sequence[Range], bounds: Sequence) -> str:
        letters = [self.letter(entry.name) for entry in ranges]
        if not any(bounds):
            return f"{operator}_{{{','.join(letters)}}}"
        heads = []
        for letter, bound in zip(letters, bounds, strict=True):
            if bound is None:
                heads.append(letter if kind not in ("sum", "prod") else f"{operator}_{{{letter}}}")
            elif kind in ("sum", "prod"):
                heads.append(f"{operator}_{{{letter}={bound[0]}}}^{{{bound[1]}}}")
            else:
                heads.append(rf"{bound[0]}\le {letter}\le {bound[1]}")
        return "".join(heads) if kind in ("sum", "prod") else f"{operator}_{{{','.join(heads)}}}"

    def call(self, node: Call) -> tuple[str, int]:
        kind = node.function
        if kind in _FENCES:
            left, right = _FENCES[kind]
            return rf"\left{left} {self.write(node.args[0], OR)}\right{right}", ATOM
        if kind == "sqrt":
            return rf"\sqrt{{{self.write(node.args[0], OR)}}}", ATOM
        if kind == "exp" and "e" not in self.letters and self.fits_exponent(node.args[0]):
            return f"e^{{{self.in_script(node.args[0])}}}", POWER
        if kind == "where" and not self.small:
            return self.cases(node), ATOM
        if kind == "delta":
            return f"{self.functions['delta']}_{{{self.index_list(node.args)}}}", ATOM
        name = self.functions.get(kind, rf"\operatorname{{{kind}}}")
        arguments = r",\,".join(self.write(argument, OR) for argument in node.args)
        return f"{name}{_bracket(arguments)}", ATOM

    def fits_exponent(self, node: Expr) -> bool:
        tall = any(
            (isinstance(part, BinOp) and part.op in ("/", "//"))
            or (isinstance(part, Reduce) and part.kind not in ("max", "min"))
            or (isinstance(part, Call) and part.function in ("where", "sqrt", "exp"))
            for part in walk(node)
        )
        return not tall and sum(1 for _ in walk(node)) <= 16

    def cases(self, node: Call) -> str:
        rows: list[str] = []
        rest: Expr = node
        while isinstance(rest, Call) and rest.function == "where":
            rows.append(rf"{self.write(rest.args[1], ADD)} & \text{{if }} {self.write(rest.args[0], OR)}")
            rest = rest.args[2]
        rows.append(rf"{self.write(rest, ADD)} & \text{{otherwise}}")
        return r"\begin{cases}" + r" \\ ".join(rows) + r"\end{cases}"


def _aligned(rows: Sequence[str]) -> str:
    return r"\begin{aligned}" + r" \\ ".join(rows) + r"\end{aligned}"


def _signed(node: Expr) -> bool:
    """Whether the TeX of a node begins with a minus sign, which may not follow another operator."""
    while isinstance(node, BinOp) and node.op != "**":
        if node.op in ("/", "//"):
            return False
        node = node.left
    return isinstance(node, Neg)


def _bracket(text: str) -> str:
    return rf"\left({text}\right)" if _TALL.search(text) else f"({text})"
