"""The lexer against the standard one, and the normal form against the syntax tree, on real sources."""

from __future__ import annotations

import ast
import io
import json
import subprocess
import sys
import sysconfig
import tokenize
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitegen.pins import MemoryReader, SourceRefused, SourceText, function_digest, symbol_digests
from sitegen.pins.normal import normal_form
from sitegen.pins.tokens import Token, digest, lex

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Path(sysconfig.get_path("stdlib"))
#: Modules with every kind of token: f-strings, encodings, deep nesting, old style and new.
MODULES = (
    "ast.py argparse.py ctypes/util.py dataclasses.py decimal.py difflib.py enum.py functools.py inspect.py "
    "pdb.py pickletools.py tarfile.py typing.py traceback.py asyncio/base_events.py unittest/mock.py"
).split()
KINDS = {
    tokenize.NAME: "name", tokenize.OP: "op", tokenize.NUMBER: "number", tokenize.STRING: "string",
    tokenize.COMMENT: "comment",
}  # fmt: skip


def read(name: str) -> SourceText:
    path = ROOT / name if name.startswith("sitegen") else LIBRARY / name
    return SourceText.from_bytes(name, path.read_bytes())


def own_sources() -> list[str]:
    return [p.relative_to(ROOT).as_posix() for p in sorted((ROOT / "sitegen/pins").glob("*.py"))]


@pytest.mark.parametrize("name", [*MODULES, *own_sources()])
def test_the_lexer_agrees_with_the_standard_one(name: str) -> None:
    """Same tokens on the same lines, and the same changes of indentation."""
    source = read(name)
    expected: list[tuple[str, str, int]] = []
    changes: list[int | None] = []
    pending, depth, start = 0, 0, (0, 0)
    rows = source.text.split("\n")
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        kind = KINDS.get(token.type, tokenize.tok_name[token.type])
        if kind == "FSTRING_START":  # from 3.12 on, a formatted string is several tokens
            start = token.start if depth == 0 else start
            depth += 1
        elif kind == "FSTRING_END":
            depth -= 1
            if depth == 0:
                kind, text = "string", _between(rows, start, token.end)
                expected.append((kind, text, start[0]))
        elif depth == 0 and kind in KINDS.values():
            expected.append((kind, token.string, token.start[0]))
        if kind == "INDENT":
            pending += 1
        elif kind == "DEDENT":
            pending -= 1
        elif kind == "NEWLINE":
            changes.append(None)
        elif kind not in ("NL", "comment", "ENCODING") and changes and changes[-1] is None:
            changes[-1], pending = pending, 0
    tokens = source.lexed.tokens
    assert [(t.kind, t.text, t.line) for t in tokens if t.kind not in ("newline", "comment")] == [
        e for e in expected if e[0] != "comment"
    ]
    assert [(t.text, t.line) for t in tokens if t.kind == "comment"] == [e[1:] for e in expected if e[0] == "comment"]
    assert [int(t.text) for t in tokens if t.kind == "newline"][:-1] == changes[:-1]


def _between(rows: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    if start[0] == end[0]:
        return rows[start[0] - 1][start[1] : end[1]]
    middle = rows[start[0] : end[0] - 1]
    return "\n".join([rows[start[0] - 1][start[1] :], *middle, rows[end[0] - 1][: end[1]]])


@pytest.mark.parametrize("name", MODULES)
def test_the_normal_form_keeps_the_syntax_tree(name: str) -> None:
    """Printed as Python again, the normal form has the tree of the original: it hides no change."""
    source = read(name)
    tokens, run = [], []

    def take_strings() -> None:  # formatted strings are printed by their tree, which has its own test below
        if run:
            tree = _parsed("(" + " ".join(t.text for t in run) + ")").body[0].value  # type: ignore[attr-defined]
            if isinstance(tree, ast.JoinedStr):
                tokens.append(run[0]._replace(text=ascii(f"F{ast.dump(tree)}")))
            else:
                tokens.extend(run)
            run.clear()

    for token in source.lexed.tokens:
        if token.kind == "string":
            run.append(token)
        elif token.kind != "comment":
            take_strings()
            tokens.append(token)
    take_strings()
    printed = _printed(normal_form(tokens, lambda expression: expression))

    class Plain(ast.NodeTransformer):
        def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
            return ast.Constant(f"F{ast.dump(node)}")

    assert ast.dump(_parsed(printed)) == ast.dump(Plain().visit(_parsed(source.text)))


def _parsed(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def _printed(code: tuple[Token, ...]) -> str:
    rows, row, depth = [], [], 0
    for token in code:
        if token.kind == "newline":
            rows.append("    " * depth + " ".join(row))
            row, depth = [], depth + int(token.text)
        else:
            row.append(token.text)
    return "\n".join([*rows, "    " * depth + " ".join(row), ""])


def code_digest(text: str) -> str:
    return digest(lex(text, ".py").code_in((1, 99)))


SAME = [
    ("x = f(a, b)", "x = f(\n    a,\n    b,\n)"),
    ("x = (a for a in b)", "x = (\n    (a for a in b)\n)"),
    ("x = ((a, b))", "x = (a, b)"),
    ("x = match(a)", "x = match(\n    a,\n)"),
    ("x = a + b", "x = (\n    a\n    + b\n)"),
    ("x = a + b", "x = a + \\\n    b"),
    ("x += a", "x += (a)"),
    ("return a, b", "return (\n    a,\n    b,\n)"),
    ("x = a, b", "x = (a, b)"),
    ("if a and b:\n    c()", "if (\n    a\n    and b\n):\n    c()"),
    ("if a: b()", "if a:\n    b()"),
    ("if a: b(); c()\nd()", "if a:\n    b()\n    c()\nd()"),
    ("a(); b()", "a()\nb()"),
    ("a();", "a()"),
    ("from m import (a, b,)", "from m import a, b"),
    ("for a in (b or c):\n    d()", "for a in b or c:\n    d()"),
    ("for (i, a) in b:\n    d()", "for i, a in b:\n    d()"),
    ("with (a as b, c as d):\n    e()", "with a as b, c as d:\n    e()"),
    ("(a, b) = c", "a, b = c"),
    ("assert a, (b)", "assert a, b"),
    ("assert (a and b)", "assert a and b"),
    ("x = 'a'", 'x = "a"'),
    ("x = 'a' 'b'", "x = ('a'\n     'b')"),
    ("x = 'a' 'b'", "x = 'ab'"),
    ("x = f'a{b}'", 'x = f"a{b}"'),
    ("x = f'a{b[\"c\"]}'", "x = f\"a{b['c']}\""),
    ("x = f'a{b:>{w}}c'", 'x = f"a{b:>{w}}" "c"'),
    ("x = rf'\\d{b}'", 'x = f"\\\\d{b}"'),
    ("x = 1_000", "x = 1000"),
    ("x = 1E+5", "x = 1e5"),
    ("x = 0XFF", "x = 0xff"),
    ("x = .5 + 1.", "x = 0.5 + 1.0"),
    ("class A():\n    pass", "class A:\n    pass"),
    ("x = [1, 2, ]", "x = [1, 2]"),
    ("x = {1: 2, }", "x = {1: 2}"),
    ("def f(a, b):\n    'Doc.'\n    return a", "def f(\n    a,\n    b,\n):\n\n    # note\n    return a"),
    ("def f():\n    return 1", "def f():\n\t\n\treturn 1"),
]
OTHER = [
    ("x = (a,)", "x = (a)"),
    ("x = a[1,]", "x = a[1]"),
    ("x = f(((a, b)))", "x = f(a, b)"),
    ("x = f((yield))", "x = f(yield_)"),
    ("x = f((a, b))", "x = f(a, b)"),
    ("x = f(b=(1, 2))", "x = f(b=1, 2)"),
    ("x = (a + b) * c", "x = a + b * c"),
    ("x = lambda: (yield)", "x = lambda: yield_"),
    ("x = (lambda a, b: a,)", "x = (lambda a, b: a)"),
    ("assert (a, b)", "assert a, b"),
    ("if a in (b or c):\n    d()", "if a in b or c:\n    d()"),
    ("x = 'a'", "x = b'a'"),
    ("x = 'a', 'b'", "x = 'a' 'b'"),
    ("x = 'a b'", "x = 'a  b'"),
    ("x = f'{a}'", "x = '{a}'"),
    ("x = f'{a!r}'", "x = f'{a!s}'"),
    ("x = f'{a: >3}'", "x = f'{a:>3}'"),
    ("x = f'{{a}}'", "x = f'{a}'"),
    ("x = f'{a = }'", "x = f'{a=}'"),
    ("x = f'{a}b'", "x = f'{a}' b"),
    ("x = 1", "x = 1.0"),
    ("x = 1e5", "x = 1e-5"),
    ("x = 0x1e", "x = 0x1f"),
    ("if a:\n    b()\n    c()", "if a:\n    b()\nc()"),
    ("if t: test(); exit()", "if t: test()\nexit()"),
    ("for a in b:\n    if c:\n        d()\n    e()", "for a in b:\n    if c:\n        d()\n        e()"),
    ("x = a - b", "x = b - a"),
    ("x = a", "x = -a"),
    ("x is not y", "x is y"),
    ("@a\ndef f(): pass", "def f(): pass"),
    ("match a:\n    case (b,):\n        c()", "match a:\n    case (b):\n        c()"),
    ("(x): int = 1", "x: int = 1"),
    ("async def f(): pass", "def f(): pass"),
]


@pytest.mark.parametrize(("left", "right"), SAME)
def test_layout_does_not_enter_a_digest(left: str, right: str) -> None:
    assert code_digest(left) == code_digest(right)


@pytest.mark.parametrize(("left", "right"), OTHER)
def test_meaning_enters_a_digest(left: str, right: str) -> None:
    assert code_digest(left) != code_digest(right)


_ATOMS = st.sampled_from(["a", "b.c", "1", "2.", "'s'", "'s' 't'", "b'u'", "()", "None", "match", "case"])
_WRAPS = (
    "({0})", "(({0}))", "({0},)", "({0}, {1})", "({0}, {1},)", "f({0})", "f({0},)", "f({0}, {1},)", "f(k={0})",
    "a[{0}]", "a[{0},]", "a[{0}, {1},]", "[{0},]", "{{{0},}}", "{{{0}: {1},}}", "{0} + {1}", "-{0}", "{0} ** {1}",
    "{0} in {1}", "not {0}", "lambda a: {0}", "lambda a, b: {0}", "(lambda a=({0}): {1})", "{0} if {1} else a",
    "(yield)", "(yield {0})", "(a := {0})", "({0} for a in {1})", "f({0} for a in {1})", "*{0}", "(*{0}, {1})",
    "({0}).d", "({0})({1})", "{0}, {1}", "await {0}", "match({0},)", "a.case({0})",
)  # fmt: skip
_EXPRESSIONS = st.recursive(
    _ATOMS, lambda inner: st.tuples(st.sampled_from(_WRAPS), inner, inner).map(lambda t: t[0].format(t[1], t[2])),
    max_leaves=6,
)  # fmt: skip
_STATEMENTS = st.sampled_from((
    "{0}", "x = {0}", "x: int = {0}", "({0}): int = {1}", "x += {0}", "x = y = {0}", "{0} = {1}", "{0} = {1} = a",
    "return {0}", "return ({0})", "yield {0}", "if {0}:\n  pass", "if ({0}): pass; a()", "while {0}: a(); b()",
    "if a: {0}\nelse: {1}", "for a in {0}: pass", "for {0} in {1}:\n  pass", "for a in b in ({0}):\n  pass",
    "with {0}: pass", "with ({0}):\n  pass", "with ({0}) as a, {1}:\n  pass", "with ({0} as a, {1}): pass",
    "assert {0}", "assert ({0}), ({1})", "assert ({0}, {1})", "del {0}", "raise a from ({0})", "x = yield ({0})",
    "match {0}:\n  case {1}: pass", "match {0}:\n  case ({1}): a; b", "match ({0},):\n  case _:\n    pass",
    "class A(): a", "class A({0},): pass", "def g(a={0}): pass; a", "lambda: ({0})", "a; ({0}); b",
    "async def h():\n  async for a in ({0}): pass", "async def h():\n  async with ({0}): pass",
    "if a: x = ({0})\nb", "@({0})\ndef g(): pass", "try: {0}\nexcept ({1}): pass\nfinally: a; b",
))  # fmt: skip


@given(statement=_STATEMENTS, first=_EXPRESSIONS, second=_EXPRESSIONS)
def test_the_normal_form_keeps_the_tree_of_generated_statements(statement: str, first: str, second: str) -> None:
    text = "async def f():\n" + "".join(f" {row}\n" for row in statement.format(first, second).split("\n"))
    try:
        tree = ast.dump(_parsed(text))
    except SyntaxError:
        return
    tokens = [token for token in lex(text, ".py").tokens if token.kind != "comment"]
    assert ast.dump(_parsed(_printed(normal_form(tokens, lambda expression: expression)))) == tree


def test_formatted_strings_with_one_normal_form_have_one_tree() -> None:
    """On every formatted string of the modules above."""
    by_form: dict[str, set[str]] = {}
    for name in MODULES:
        for token in read(name).lexed.tokens:
            if token.kind == "string" and "f" in token.text[:2].lower():
                form = " ".join(t.text for t in lex(token.text + " + 0", ".py").code)
                by_form.setdefault(form, set()).add(ast.dump(_parsed(token.text)))
    assert len(by_form) > 300
    assert [form for form, trees in by_form.items() if len(trees) != 1] == []


def test_function_digest_follows_code_and_nothing_else() -> None:
    base = "@jit\ndef f(x):\n    'Doc.'\n    return g(x, 1)  # note\n\n\ndef h(): pass\n"
    same = (
        base.replace("Doc", "Other").replace("note", "n").replace("g(x, 1)", "g(\n  x,\n  1,\n)").replace("pass", "...")
    )
    original = function_digest(MemoryReader({"m.py": base}), "m.py", "f")
    assert function_digest(MemoryReader({"m.py": "import os\n" + same}), "m.py", "f") == original
    for edit in (("@jit\n", "@jit(1)\n"), ("1)", "2)"), ("(x)", "(x, y=0)"), ("return ", "")):
        assert function_digest(MemoryReader({"m.py": base.replace(*edit)}), "m.py", "f") != original


@pytest.mark.parametrize(("text", "says"), [("def g(): pass\n", "known names: g"), ("def f(): pass\n" * 2, "2 times")])
def test_function_digest_wants_one_definition(text: str, says: str) -> None:
    with pytest.raises(SourceRefused, match="defines f") as refusal:
        function_digest(MemoryReader({"m.py": text}), "m.py", "f")
    assert says in str(refusal.value)


def test_symbols_of_every_kind_are_found() -> None:
    text = (
        "LIMIT: int = 1\nA, (B, C) = 1, (2, 3)\nif LIMIT:\n    def cond(): pass\nelse:\n    def cond(): return 1\n"
        "try:\n    import x\nexcept ImportError:\n    x = None\n@tilelang.jit(\n    out_idx=[1],\n)\ndef kernel(n):\n"
        "    local = 1\n    @T.prim_func\n    def main(a: T.Tensor((n,), 'float32')):\n        with T.Kernel(n) as b:\n"
        "            def inner(): pass\n    return main\nclass K:\n    z = 1\n    async def m(self):\n"
        "        class L:\n            q = 2\nwith open('f') as f:\n    w = 1\n"
        "match LIMIT:\n    case 1:\n        v = 1\n"
    )
    found = SourceText("m.py", text).definitions
    assert [(d.symbol, d.ordinal) for d in found] == [
        ("LIMIT", 1), ("A", 1), ("B", 1), ("C", 1), ("cond", 1), ("cond", 2), ("x", 1), ("kernel", 1),
        ("kernel.main", 1), ("kernel.main.inner", 1), ("K", 1), ("K.z", 1), ("K.m", 1), ("K.m.L", 1),
        ("K.m.L.q", 1), ("w", 1), ("v", 1),
    ]  # fmt: skip
    lines = {(d.symbol, d.ordinal): d.lines for d in found}
    assert lines["kernel", 1] == (11, 20) and lines["kernel.main", 1] == (16, 19)


def test_a_decorator_in_brackets_starts_at_its_sign() -> None:
    text = "x = 1\n@(\n    a.b\n)\n@c\ndef f():\n    pass\n"
    assert SourceText("m.py", text).definitions[1].lines == (2, 7)


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_digests_do_not_depend_on_the_python_version(version: str) -> None:
    """Digests are committed. Skipped where no other interpreter is at hand."""
    program = (
        "import json, sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path; from sitegen.pins import FolderReader, symbol_digests\n"
        "reader = FolderReader(Path(sys.argv[1]))\n"
        "print(json.dumps({n: symbol_digests(reader, n) for n in json.loads(sys.argv[2])}))\n"
    )
    names = own_sources()
    interpreter = f"python{version}"
    try:
        subprocess.run([interpreter, "-c", ""], capture_output=True, timeout=60, check=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip(f"no {interpreter} here")
    done = subprocess.run(
        [interpreter, "-c", program, str(ROOT), json.dumps(names)], capture_output=True, timeout=60, check=True
    )
    from sitegen.pins import FolderReader

    reader = FolderReader(ROOT)
    assert json.loads(done.stdout) == {name: symbol_digests(reader, name) for name in names}


def test_pins_bring_in_neither_torch_nor_mkdocs_nor_yaml() -> None:
    program = "import sys, sitegen.pins; print(sorted({'torch', 'mkdocs', 'griffe', 'yaml'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
