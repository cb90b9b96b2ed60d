# Reads formulas: a Pratt parser over the tokens.  Nothing is ever evaluated here, and the size of the
# tree is bounded while it grows, so that no text takes long or exhausts the stack.
"""Parser of the formula language: text in, Step out, or one finding that says where and why."""

from __future__ import annotations

import math

from sitegen.diagnostics import NOWHERE, Location, SpecInvalid, nearest
from sitegen.formula.functions import FUNCTIONS, KEYWORDS, REDUCTIONS
from sitegen.formula.precedence import AND, BINDING, COMPARE, NEGATE, NOT, OR
from sitegen.formula.syntax import (
    CONDITIONS,
    MAX_DEPTH,
    MAX_NODES,
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
    children,
)
from sitegen.formula.tokens import Token, tokenize


def parse(text: str, *, where: Location = NOWHERE) -> Step:
    """The statements of a formula in index notation.

    Args:
        text: statements `u[k] = expression` separated by `;` or newlines; indices count from 1.
        where: the place of the first character of `text`, for findings.

    Returns:
        The syntax tree; `to_source` writes it back.

    Raises:
        SpecInvalid: with one finding (`expression-invalid`, or `unknown-symbol` for a function that is not
            in the fixed list).
    """
    step = Step((), text, where)
    return Step(_Parser(step).statements_to_end(), text, where)


class _Parser:
    def __init__(self, step: Step) -> None:
        self.step = step
        self.tokens = tokenize(step)
        self.next = 0
        self.depth = 0
        self.nodes = 0
        self.heights: dict[int, int] = {}
        self.alive: list[Node] = []  # ids in `heights` stay valid as long as the nodes live

    # -- tokens ------------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        return self.tokens[self.next]

    def take(self) -> Token:
        token = self.token
        self.next = min(self.next + 1, len(self.tokens) - 1)
        return token

    def accept(self, kind: str) -> bool:
        if self.token.kind != kind:
            return False
        self.take()
        return True

    def expect(self, kind: str, after: str) -> Token:
        if self.token.kind != kind:
            raise self.wrong(f"expected {kind!r} {after}")
        return self.take()

    def wrong(self, message: str, token: Token | None = None, hint: str = "", code: str = "") -> SpecInvalid:
        token = token or self.token
        shown = "the end of the formula" if token.kind == "end" else repr(token.text)
        shown = "the end of the line" if token.kind == "newline" else shown
        return self.step.fault(
            code or "expression-invalid",
            message,
            token.at,
            actual=f"{shown} at character {token.at + 1} of {self._excerpt(token.at)}",
            hint=hint,
        )

    def _excerpt(self, at: int) -> str:
        text = self.step.text
        start, end = max(0, at - 24), min(len(text), at + 24)
        shown = " ".join(text[start:end].split())
        return f"`{'…' if start else ''}{shown}{'…' if end < len(text) else ''}`"

    def made(self, node):
        """Registers a node: bounds the size and the height of the tree while it grows."""
        self.nodes += 1
        height = 1 + max((self.heights.get(id(child), 0) for child in children(node)), default=0)
        self.heights[id(node)] = height
        self.alive.append(node)
        if self.nodes > MAX_NODES:
            raise self.wrong("the formula has too many parts", hint=f"at most {MAX_NODES:,}; split it into steps")
        if height > MAX_DEPTH:
            raise self.too_deep()
        return node

    def too_deep(self) -> SpecInvalid:
        return self.wrong(
            "the formula is nested too deeply", hint=f"at most {MAX_DEPTH} levels; name a part in its own statement"
        )

    # -- statements --------------------------------------------------------------------------------

    def statements_to_end(self) -> tuple[Statement, ...]:
        statements = self.statements(("end",))
        if self.token.kind != "end":
            raise self.wrong("the formula goes on after its end")
        if not statements:
            raise self.wrong("the formula is empty", hint="write a statement such as y[d] = 2*x[d]")
        return statements

    def statements(self, stops: tuple[str, ...], separators: tuple[str, ...] = (";", "newline")) -> tuple:
        found: list[Statement] = []
        while True:
            while self.token.kind in separators:
                self.take()
            if self.token.kind in stops:
                return tuple(found)
            found.append(self.statement())
            if self.token.kind in stops:
                return tuple(found)
            if self.token.kind not in separators:
                raise self.wrong(
                    "a statement goes on where it should end", hint=self._missing_operator() or "separate with ;"
                )

    def statement(self) -> Statement:
        start = self.token
        if start.kind != "name":
            raise self.wrong("expected a statement", hint="a statement reads name[indices] = expression")
        if start.text == "repeat":
            return self.repeat()
        name = self.name("a tensor")
        axes = self.bracketed() if self.accept("[") else ()
        for axis in axes:
            self._check_axis(axis)
        if self.token.kind != "=":
            hint = "write = to assign" if self.token.kind == "==" else "a statement reads name[indices] = expression"
            raise self.wrong("expected '=' after the left side", hint=hint)
        self.take()
        value = self.number("the right side")
        ranges: tuple[Range, ...] = ()
        if self.token.kind == "name" and self.token.text == "for":
            self.take()
            ranges = self.ranges()
        if len({axis.name for axis in axes if isinstance(axis, Name)}) < sum(isinstance(a, Name) for a in axes):
            raise self.wrong(
                "an index is written twice on the left side",
                start,
                hint="use two indices and delta(j, k) on the right side for a diagonal",
            )
        used = {node for axis in axes for node in _names_in(axis)}
        for entry in ranges:
            if entry.name not in used:
                raise self.step.fault(
                    "expression-invalid", f"the index {entry.name} is bounded but not used on the left side", entry.at
                )
        return self.made(Assign(name.text, axes, value, ranges, at=start.at))

    def repeat(self) -> Repeat:
        start = self.take()
        self.expect("(", "after repeat")
        count = self.number("the number of rounds")
        self.expect(")", "after the number of rounds")
        self.expect(":", "after repeat(…)")
        self.deeper()
        if self.accept("{"):
            body = self.statements(("}",))
            self.expect("}", "at the end of the repeated statements")
        else:
            body = self.statements(("newline", "end", "}"), (";",))
        self.depth -= 1
        if not body:
            raise self.wrong("nothing is repeated", start, hint="write repeat(19): statement; statement")
        return self.made(Repeat(count, body, at=start.at))

    def _check_axis(self, axis: Expr) -> None:
        if isinstance(axis, (Num, Name)):
            return
        if isinstance(axis, (Neg, BinOp)):
            for child in children(axis):
                self._check_axis(child)
            return
        raise self.step.fault(
            "expression-invalid",
            "an index on the left side may only be made of indices, symbols and numbers",
            axis.at,
            hint="write it as m[4 + k], or move the rest to the right side",
        )

    # -- expressions -------------------------------------------------------------------------------

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.too_deep()

    def number(self, role: str, binding: int = 0) -> Expr:
        start = self.token
        node = self.expression(binding)
        return self.as_number(node, role, start)

    def as_number(self, node: Expr, role: str, token: Token) -> Expr:
        if isinstance(node, CONDITIONS):
            raise self.wrong(f"{role} must be a number, not a condition", token, hint="write where(condition, 1, 0)")
        return node

    def as_condition(self, node: Expr, role: str, token: Token) -> Expr:
        if not isinstance(node, CONDITIONS):
            raise self.wrong(f"{role} must be a condition", token, hint="compare with <=, <, >=, >, == or !=")
        return node

    def expression(self, binding: int = 0) -> Expr:
        self.deeper()
        left_token = self.token
        left = self.prefix()
        while True:
            operator = self.token
            key = operator.text if operator.kind == "name" else operator.kind
            power = BINDING.get(key, 0)
            if power <= binding:
                break
            self.take()
            right_token = self.token
            right = self.expression(NEGATE if key == "**" else power)
            left = self.combine(key, power, operator, (left, left_token), (right, right_token))
        self.depth -= 1
        return left

    def combine(self, key: str, power: int, operator: Token, left: tuple, right: tuple) -> Expr:
        if power in (OR, AND):
            self.as_condition(*_roles(left, f"the left side of {key}"))
            self.as_condition(*_roles(right, f"the right side of {key}"))
            return self.made(Logic(key, left[0], right[0], at=operator.at))
        if power == COMPARE and isinstance(left[0], Compare) and left[1].kind != "(":
            raise self.wrong("comparisons cannot be chained", operator, hint="write a <= b and b <= c")
        self.as_number(*_roles(left, f"the left side of {key}"))
        self.as_number(*_roles(right, f"the right side of {key}"))
        kind = Compare if power == COMPARE else BinOp
        return self.made(kind(key, left[0], right[0], at=operator.at))

    def prefix(self) -> Expr:
        token = self.token
        if token.kind == "-":
            self.take()
            return self.made(Neg(self.number("the operand of -", NEGATE), at=token.at))
        if token.kind == "name" and token.text == "not":
            self.take()
            inner = self.token
            operand = self.as_condition(self.expression(NOT), "the operand of not", inner)
            return self.made(Not(operand, at=token.at))
        if token.kind == "(":
            self.take()
            inside = self.expression()
            self.expect(")", "to close the bracket opened before")
            return inside
        if token.kind == "number":
            return self.literal(self.take())
        if token.kind == "name":
            name = self.name("a name")
            if self.accept("("):
                return self.call(name)
            if self.accept("["):
                return self.made(Item(name.text, self.bracketed(), at=name.at))
            return self.made(Name(name.text, at=name.at))
        hint = "a number, a name or a bracket may stand here"
        if token.kind == "+":
            hint = "leave out the sign +"
        raise self.wrong("expected a value", hint=hint)

    def literal(self, token: Token) -> Num:
        if len(token.text) > 40:
            raise self.wrong("the number has too many digits", token, hint="at most 40 characters")
        if token.text.isdigit():
            if len(token.text) > 1 and token.text[0] == "0":
                raise self.wrong("a whole number cannot begin with 0", token)
            return self.made(Num(int(token.text), at=token.at))
        value = float(token.text)
        if not math.isfinite(value):
            raise self.wrong("the number is too large", token)
        if value == 0.0 and token.text.lower().partition("e")[0].strip("0."):
            raise self.wrong("the number is too small to be told from zero", token)
        return self.made(Num(value, at=token.at))

    def name(self, role: str) -> Token:
        token = self.expect("name", f"for {role}")
        if token.text in KEYWORDS:
            raise self.wrong(f"{token.text!r} is a word of the language, not a name", token)
        return token

    def bracketed(self) -> tuple[Expr, ...]:
        indices = [self.number("an index")]
        while self.accept(","):
            indices.append(self.number("an index"))
        self.expect("]", "after the indices")
        return tuple(indices)

    def call(self, name: Token) -> Expr:
        kind = name.text
        if kind in REDUCTIONS and self._has_colon():
            ranges = self.ranges()
            self.expect(":", "after the indices")
            body = self.number("what is reduced")
            self.expect(")", f"to close {kind}(")
            return self.made(Reduce(kind, ranges, body, at=name.at))
        function = FUNCTIONS.get(kind)
        if function is None:
            if kind in REDUCTIONS:
                raise self.wrong(f"{kind} needs an index", name, hint=f"write {kind}(j: expression)")
            hint = nearest(kind, [*FUNCTIONS, *REDUCTIONS])
            raise self.wrong(f"there is no function {kind!r}", name, hint=hint, code="unknown-symbol")
        args: list[Expr] = []
        while not self.accept(")"):
            if args:
                self.expect(",", f"between the arguments of {kind}")
            start = self.token
            node = self.expression()
            if kind == "where" and not args:
                args.append(self.as_condition(node, "the first argument of where", start))
            else:
                args.append(self.as_number(node, f"an argument of {kind}", start))
        if not function.least <= len(args) <= function.most:
            wanted = str(function.least) if function.least == function.most else f"{function.least}-{function.most}"
            hint = f"write {kind}(j: …) to reduce" if kind in REDUCTIONS else f"{kind}: {function.meaning}"
            raise self.wrong(f"{kind} takes {wanted} arguments, not {len(args)}", name, hint=hint)
        return self.made(Call(kind, tuple(args), at=name.at))

    def _has_colon(self) -> bool:
        """Whether a colon stands inside the bracket just opened, at its own level."""
        level = 0
        for token in self.tokens[self.next :]:
            if token.kind in ("(", "["):
                level += 1
            elif token.kind in (")", "]"):
                level -= 1
            if level < 0 or token.kind == "end":
                return False
            if token.kind == ":" and level == 0:
                return True
        return False

    def ranges(self) -> tuple[Range, ...]:
        found: list[Range] = []
        while True:
            name = self.name("an index")
            low = high = None
            if self.accept("="):
                low = self.number("the first value of the index")
                self.expect("..", "between the first and the last value of an index")
                high = self.number("the last value of the index")
            if name.text in {entry.name for entry in found}:
                raise self.wrong(f"the index {name.text} is written twice", name)
            found.append(self.made(Range(name.text, low, high, at=name.at)))
            if not self.accept(","):
                return tuple(found)

    def _missing_operator(self) -> str:
        before = self.tokens[self.next - 1]
        token = self.token
        if before.kind in ("number", "name", ")", "]") and token.kind in ("name", "number", "("):
            return f"an operator is missing between {before.text!r} and {token.text!r}: write * for a product"
        return ""


def _roles(side: tuple[Expr, Token], role: str) -> tuple[Expr, str, Token]:
    return side[0], role, side[1]


def _names_in(axis: Expr) -> set[str]:
    if isinstance(axis, Name):
        return {axis.name}
    return {name for child in children(axis) for name in _names_in(child)}
