# Exact integer expressions for parameter counts and sizes: never `eval`, never a float.
"""Count expressions such as `(2 + n) * n * d`: parse, evaluate, list names, show with values."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from sitegen.diagnostics import NOWHERE, Finding, Location, SpecInvalid, nearest

MAX_LENGTH = 400
MAX_DEPTH = 32
MAX_BITS = 256  # far above any count; bounds 9**9**9 before it is computed
_FUNCTIONS = {"ceil_div": 2, "min": 2, "max": 2}
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
}  # fmt: skip
_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "//": 2, "%": 2, "**": 4}


@dataclass(frozen=True)
class Expression:
    """A parsed count expression; `text` is the source, `tree` its checked syntax tree."""

    text: str
    tree: ast.expr

    @cached_property
    def names(self) -> frozenset[str]:
        """Symbols that the expression reads."""
        return frozenset(n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name) and n.id not in _FUNCTIONS)

    def value(self, symbols: Mapping[str, int]) -> int:
        """The exact value; raises `ValueError` with the reason."""
        return _value(self.tree, symbols)

    def shown(self, symbols: Mapping[str, int]) -> str:
        """The expression with values in place of symbols, as in `20,480 × 24`."""
        return _shown(self.tree, symbols, 0)


def parse(text: str | int, where: Location = NOWHERE) -> Expression:
    """Parse a count expression; raises `SpecInvalid` (`expression-invalid`)."""
    try:
        return _parse(str(text))
    except ValueError as error:
        raise SpecInvalid([Finding("expression-invalid", f"{error}", where, actual=str(text)[:80])]) from None


def evaluate(text: str | int, symbols: Mapping[str, int], where: Location = NOWHERE) -> int:
    """Parse and evaluate; raises `SpecInvalid` (`expression-invalid`, `unknown-symbol`)."""
    expression = parse(text, where)
    unknown = sorted(expression.names - symbols.keys())
    if unknown:
        raise SpecInvalid(
            Finding(
                "unknown-symbol", f"unknown symbol {name!r} in {str(text)[:80]!r}", where, hint=nearest(name, symbols)
            )
            for name in unknown
        )
    try:
        return expression.value(symbols)
    except ValueError as error:
        raise SpecInvalid([Finding("expression-invalid", f"{error}", where, actual=str(text)[:80])]) from None


@lru_cache(maxsize=4096)
def _parse(text: str) -> Expression:
    if len(text) > MAX_LENGTH:
        raise ValueError(f"the expression has {len(text):,} characters; at most {MAX_LENGTH} are read")
    if "^" in text:
        raise ValueError("'^' is not a power here: write '**'")
    depth = deepest = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    if deepest > MAX_DEPTH:
        raise ValueError(f"parentheses nested deeper than {MAX_DEPTH}")
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text.strip()).readline))
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, tokenize.TokenError, ValueError, MemoryError, RecursionError):
        raise ValueError("not an expression of integers, symbols, + - * // % ** and parentheses") from None
    for token in tokens:
        if token.type == tokenize.NUMBER and not token.string.isdigit():
            raise ValueError(f"counts are exact integers: {token.string!r} is not one")
        if token.type == tokenize.COMMENT:
            raise ValueError("'#' starts a comment; a count expression has none")
    _check(tree, 0)
    return Expression(text.strip(), tree)


def _check(node: ast.AST, depth: int) -> None:
    if depth > MAX_DEPTH * 4:
        raise ValueError("the expression is nested too deeply")
    match node:
        case ast.Constant(value=value) if type(value) is int:
            return
        case ast.Name():
            return
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            _check(operand, depth + 1)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            _check(left, depth + 1)
            _check(right, depth + 1)
        case ast.BinOp(op=ast.Div()):
            raise ValueError("'/' gives fractions: write '//' or ceil_div(a, b)")
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            if len(args) != _FUNCTIONS[name]:
                raise ValueError(f"{name} takes {_FUNCTIONS[name]} arguments, not {len(args)}")
            for argument in args:
                _check(argument, depth + 1)
        case ast.Call(func=ast.Name(id=name)):
            raise ValueError(f"unknown function {name!r}: {nearest(name, _FUNCTIONS)}")
        case ast.Constant(value=bool()):
            raise ValueError("True and False are not numbers")
        case ast.Constant(value=str()):
            raise ValueError("text is not a number")
        case _:
            raise ValueError(f"{type(node).__name__} is not allowed in a count expression")


def _value(node: ast.expr, symbols: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=value):
            result = int(value)  # type: ignore[arg-type]
        case ast.Name(id=name):
            result = symbols[name]
            if type(result) is not int:
                raise ValueError(f"{name} = {result!r} is not an integer")
        case ast.UnaryOp(operand=operand):
            result = -_value(operand, symbols)
        case ast.Call(func=ast.Name(id=name), args=[left, right]):
            a, b = _value(left, symbols), _value(right, symbols)
            if name == "ceil_div":
                if b == 0:
                    raise ValueError("division by zero")
                result = -(-a // b)
            else:
                result = min(a, b) if name == "min" else max(a, b)
        case ast.BinOp(left=left, op=op, right=right):
            result = _operate(_OPERATORS[type(op)], _value(left, symbols), _value(right, symbols))
        case _:  # pragma: no cover - `_check` admits nothing else
            raise AssertionError(node)
    if result.bit_length() > MAX_BITS:
        raise ValueError(f"the value has more than {MAX_BITS} bits")
    return result


def _operate(operator: str, a: int, b: int) -> int:
    if operator in ("//", "%") and b == 0:
        raise ValueError("division by zero")
    if operator == "**":
        if b < 0:
            raise ValueError("a negative power is not an integer")
        if abs(a) > 1 and a.bit_length() * b > 2 * MAX_BITS:
            raise ValueError(f"a power with more than {MAX_BITS} bits")
        return a**b if abs(a) > 1 else (a if b % 2 else a * a) if b else 1
    return {"+": a + b, "-": a - b, "*": a * b, "//": a // b if b else 0, "%": a % b if b else 0}[operator]


def _shown(node: ast.expr, symbols: Mapping[str, int], outer: int) -> str:
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            operator = _OPERATORS[type(op)]
            level = _PRECEDENCE[operator]
            a, b = _shown(left, symbols, level), _shown(right, symbols, level + 1)
            if operator == "**":
                text = f"{a}^{b}" if not b.isdigit() else a + b.translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
            else:
                text = f"{a} { {'*': '×', '-': '−'}.get(operator, operator) } {b}"
            return f"({text})" if level < outer else text
        case ast.Call(func=ast.Name(id=name), args=args):
            return f"{name}({', '.join(_shown(a, symbols, 0) for a in args)})"
        case _:
            return f"{_value(node, symbols):,}".replace("-", "−")
