# Wrong forms of a model's spec files and of its configuration: every number, axis, count, slice, step,
# pin, policy and id that a check has to notice. What is only cited (lines of other people's files, the
# words of a sentence) and what sets up a run (sizes of small configurations) states nothing to check.
"""Mutants of specs, made from the authored text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from sitegen import formula, pins
from sitegen.loader import Located
from sitegen.resolver import Model
from sitegen.selftest import expressions
from sitegen.selftest.mutant import Draft, Edit, Mutant, named
from sitegen.selftest.yamltext import Path, Span, dropped, replaced, spans

#: A wrong number type that a reader could have meant.
_OTHER_TYPE = {"bfloat16": "float32", "float32": "bfloat16", "F32": "BF16", "BF16": "F32"}
#: How far a tolerance may be off unseen, and the factor by which a control must be able to fail at most.
LOOSE, MARGIN = 20, 10_000

_CALL = re.compile(r"#(\d+)")


def spec_mutants(model: Model) -> list[Mutant]:
    """All mutants of all spec files and of the configuration, in the order of the files."""
    sources = model.sources
    by_file: dict[str, dict[Path, list[str]]] = {}
    for id in model.order():
        located = sources.components[id]
        by_file.setdefault(located.document.file, {}).setdefault(located.path, []).append(id)
    found: list[Mutant] = []
    for file, roots in sorted(by_file.items()):
        found += _of_file(model, file, lambda page, roots=roots: _component_file(model, page, roots))
    for document, make in (
        (sources.model_document, _model_file),
        (sources.symbols_document, _symbols_file),
        (sources.sources_document, _sources_file),
        (sources.evidence_document, _evidence_file),
        (sources.policies_document, _policies_file),
    ):
        found += _of_file(model, document.file, make)
    if sources.claims_document is not None:
        found += _of_file(model, sources.claims_document.file, _claims_file)
    text = _text(model, sources.model.config)
    page = _Page(text, spans(text))
    found += named(_config(page), {sources.model.config: text}, sources.model.config, "config")
    return found


class _Page:
    """A text with its spans; drafts are made from paths."""

    def __init__(self, text: str, found: dict[Path, Span]) -> None:
        self.text, self.spans = text, found

    def under(self, root: Path) -> Iterator[tuple[Path, Span]]:
        """Spans below a path, with the paths counted from there."""
        for path, span in self.spans.items():
            if path[: len(root)] == root:
                yield path[len(root) :], span

    def items(self, path: Path) -> list[Span] | None:
        """The items of a sequence, when all are written out there."""
        found, number = [], 0
        while (*path, number) in self.spans:
            found.append(self.spans[*path, number])
            number += 1
        return found

    def place(self, root: Path, path: Path, head: str = "") -> str:
        """A path in words: list items by id or name where they have one."""
        words = [head] if head else []
        here = root
        for part in path:
            here = (*here, part)
            word = str(part)
            if isinstance(part, int):
                word = next((self.spans[*here, n].value for n in ("id", "name") if (*here, n) in self.spans), word)
            words.append(word)
        return ".".join(word for word in words if word != "<key>")


def _text(model: Model, file: str) -> str:
    return (model.sources.root / file).read_bytes().decode("utf-8")


def _of_file(model: Model, file: str, make: Callable[[_Page], Iterator[Draft]]) -> list[Mutant]:
    text = _text(model, file)
    if text.startswith("\ufeff"):
        return []  # positions would be those of the text without it
    return named(make(_Page(text, spans(text))), {file: text}, file, "spec")


# --- component files ---------------------------------------------------------------------------------


def _component_file(model: Model, page: _Page, roots: dict[Path, list[str]]) -> Iterator[Draft]:
    everyone = tuple(id for ids in roots.values() for id in ids)
    for path, span in page.under(("variants",)):
        if span.inline and "set" in path:
            for value, what in _call_numbers(span.value):
                place = page.place(("variants",), path, "variants")
                yield Draft("number", place, what, (replaced(page.text, span, value),), everyone)
    for root, ids in roots.items():
        located = model.components[ids[0]]
        head = page.spans[*root, "id"].value if (*root, "id") in page.spans else ids[0]
        for path, span in page.under(root):
            place = page.place(root, path, head)
            for kind, edits, what, excuse in _of_component(model, page, root, path, span, located):
                yield Draft(kind, place, what, tuple(edits), tuple(ids), excuse=excuse)


_Change = tuple[str, list[Edit], str, str]


def _of_component(model: Model, page: _Page, root: Path, path: Path, span: Span, located: Located) -> Iterator[_Change]:
    """Changes of one value of a component."""

    def put(kind: str, value: str, what: str, raw: bool = False) -> _Change:
        return kind, [replaced(page.text, span, value, raw)], what, ""

    match path:
        case ("inputs" | "outputs" | "parameters" | "views", int(), "axes") if span.kind == "sequence":
            yield from _axes(page, root, path, span)
        case ("inputs" | "outputs" | "parameters" | "views", int(), "axes", int()) if span.inline:
            letter, colon, size = span.value.rpartition(":")
            yield put("shape", f"{letter}{colon}{size} + 1", f"the axis {span.value} is one longer")
        case ("inputs" | "outputs" | "parameters", int(), "dtype") if span.inline:
            other = _OTHER_TYPE.get(span.value, "BF16" if span.value.isupper() else "float32")
            yield put("number-type", other, f"{span.value} becomes {other}")
        case ("parameters", int(), "count") | ("parameters", int(), "each", str()) if span.inline:
            for value, what in expressions.count_forms(span.value):
                yield put("count", value, what)
        case ("parameters", int(), "slice") if span.inline and "${" not in span.value:
            for value, what in expressions.slice_forms(span.value):
                yield put("slice", value, what)
        case ("steps", int(number), "expr") if span.kind == "scalar" and "${" not in span.value:
            yield from _step(model, page, span, located, number)
        case ("values", "occurrence") if span.inline and span.value.isdigit():
            yield put("number", str(int(span.value) + 1), "another call of the operation", raw=True)
        case ("values", "bind", str()) if span.inline:
            for value, what in _call_numbers(span.value):
                yield put("number", value, what)
        case ("numerics", int(), "constant", str()) if span.inline:
            yield put("number", _one_per_cent(span.value), f"{span.value} is one per cent larger")
        case ("cases", int(), "gives", *_) if span.inline and span.style is None:
            if span.value in ("true", "false"):
                other = "false" if span.value == "true" else "true"
                yield put("number", other, f"{span.value} becomes {other}", raw=True)
            elif re.fullmatch(r"-?\d+(\.\d+)?([eE][-+]?\d+)?", span.value):
                other = _one_per_cent(span.value)
                yield put("number", other, f"{span.value} becomes {other}", raw=True)
        case ("properties", int(number), *rest):
            yield from _property(span, rest, located, number, put)
        case ("code", int(number), "symbol" | "fragment" as field) if span.kind == "scalar":
            yield from _pin(model, page, span, located, number, field)
        case (*_, "evidence" | "cites" | "by" | "uses", int()) if span.inline:
            yield put("reference", span.value + "-x", f"{span.value} is misspelt")
        case ("parts", int()) | ("parts", int(), "id") | (*_, "source" | "component") if span.inline:
            yield put("reference", span.value + "-x", f"{span.value} is misspelt")


def _axes(page: _Page, root: Path, path: Path, span: Span) -> Iterator[_Change]:
    items = page.items((*root, *path)) or []
    for number, (first, second) in enumerate(zip(items, items[1:], strict=False)):
        if first.value != second.value:
            edits = [replaced(page.text, first, second.value), replaced(page.text, second, first.value)]
            yield "axis-order", edits, f"axes {number + 1} and {number + 2} change places", ""
    if items:
        edit = dropped(page.text, span, items, len(items) - 1)
        if edit is not None:
            yield "shape", [edit], f"the axis {items[-1].value} is missing", ""


def _step(model: Model, page: _Page, span: Span, located: Located, number: int) -> Iterator[_Change]:
    """The step's own mutants; one that the spec excuses under `indistinct` keeps the reason."""
    step = model.steps[located.component.id][number]
    excused = located.component.steps[number].indistinct
    constants = [n for n, s in model.sources.symbols.items() if s.field is not None]
    for mutant in formula.mutants(step, constants=constants):
        excuse = excused.get(mutant.id) or excused.get(mutant.kind) or ""
        edit = replaced(page.text, span, formula.to_source(mutant.step))
        yield f"step-{mutant.kind}", [edit], mutant.description, excuse


def _property(
    span: Span, rest: list[str | int], located: Located, number: int, put: Callable[..., _Change]
) -> Iterator[_Change]:
    if not span.inline:
        return
    prop = located.component.properties[number]
    match rest:
        case ["holds"] if "${" not in span.value:
            for value, what in expressions.relation_forms(span.value, prop.kind):
                yield put("relation", value, what)
        case ["tolerance", "value"] if prop.tolerance is not None and prop.tolerance.value:
            for value in (prop.tolerance.value * LOOSE, prop.tolerance.value / LOOSE):
                yield put("number", f"{value:.6g}", f"a tolerance of {value:.6g}", raw=True)
        case ["margin"] if prop.margin:
            value = prop.margin * MARGIN
            yield put("number", f"{value:.6g}", f"a control that fails by {value:.6g}", raw=True)
        case ["edit", "add"] if prop.edit is not None and prop.edit.scale == 1.0:
            yield put("number", "0.0", "an edit that changes nothing", raw=True)
        case ["edit", "value"] | ["moves" | "still", int()]:
            for value, what in _call_numbers(span.value):
                yield put("number", value, what)


def _pin(model: Model, page: _Page, span: Span, located: Located, number: int, field: str) -> Iterator[_Change]:
    code = located.component.code[number]
    if "${" in span.value:
        return
    if field == "fragment":
        word = re.search(r"[A-Za-z_]\w*", span.value)
        if word is not None:
            value = span.value[: word.end()] + "_x" + span.value[word.end() :]
            yield "pin", [replaced(page.text, span, value)], f"the fragment has another word for {word[0]}", ""
        return
    yield "pin", [replaced(page.text, span, span.value + "_x")], f"the symbol {span.value} is misspelt", ""
    try:
        symbols = list(pins.symbol_digests(pins.FolderReader(model.sources.root), code.path))
    except pins.SourceRefused:
        return
    if span.value in symbols and len(symbols) > 1:
        other = symbols[(symbols.index(span.value) + 1) % len(symbols)]
        if "#" not in other:
            yield "pin", [replaced(page.text, span, other)], f"the pin names {other} for {span.value}", ""


def _call_numbers(text: str) -> Iterator[tuple[str, str]]:
    """Another call of an operation: `op#1.field` and, where the text is only a number, that number."""
    if text.isdigit():
        other = str(int(text) - 1 if int(text) else 1)
        yield other, f"{text} becomes {other}"
    for match in _CALL.finditer(text):
        other = str(int(match[1]) - 1 if int(match[1]) else 1)
        yield text[: match.start(1)] + other + text[match.end(1) :], f"call {match[1]} becomes call {other}"


def _one_per_cent(text: str) -> str:
    if text.lstrip("-").isdigit():
        return str(int(text) + 1)
    try:
        return repr(float(text) * 1.01 or 0.01)
    except ValueError:
        return text + "-x"


# --- the other files ---------------------------------------------------------------------------------


def _model_file(page: _Page) -> Iterator[Draft]:
    for path, span in page.under(("places",)):
        if not span.inline:
            continue
        place = page.place(("places",), path, "places")

        def put(kind: str, value: str, what: str, raw: bool = False, span: Span = span, place: str = place) -> Draft:
            return Draft(kind, place, what, (replaced(page.text, span, value, raw),))

        match path[1:]:
            case ("repeat" | "first",) | ("layers", int()) if span.value.isdigit():
                yield put("number", str(int(span.value) + 1), f"{span.value} becomes {int(span.value) + 1}", raw=True)
            case ("layers",) if "-" in span.value:
                first, _, last = span.value.partition("-")
                yield put("number", f"{first}-{int(last) - 1}", "the last layer is missing")
            case ("symbols", str()):
                for value, what in expressions.count_forms(span.value):
                    yield put("count", value, what)
            case ("parent",) | ("parts", int()) | ("parts", int(), "id"):
                yield put("reference", span.value + "-x", f"{span.value} is misspelt")


def _symbols_file(page: _Page) -> Iterator[Draft]:
    for path, span in page.under(("symbols",)):
        if not span.inline:
            continue
        place = page.place(("symbols",), path, "symbols")
        if path[1:] == ("value",):
            for value, what in expressions.count_forms(span.value):
                yield Draft("count", place, what, (replaced(page.text, span, value),))
        elif path[1:] in (("field",), ("by_layer", "layers"), ("by_layer", "values")):
            yield Draft(
                "reference", place, f"{span.value} is misspelt", (replaced(page.text, span, span.value + "_x"),)
            )


def _keys(page: _Page, root: str) -> Iterator[Draft]:
    for path, span in page.under((root,)):
        if span.kind == "key" and len(path) == 2:
            edit = Edit(span.start, span.end, span.value + "-x")
            yield Draft("reference", f"{root}.{span.value}", f"the id {span.value} is misspelt", (edit,))


def _sources_file(page: _Page) -> Iterator[Draft]:
    yield from _keys(page, "sources")


def _evidence_file(page: _Page) -> Iterator[Draft]:
    yield from _keys(page, "evidence")
    for path, span in page.under(("evidence",)):
        if path[1:] == ("source",) and span.inline:
            edit = replaced(page.text, span, span.value + "-x")
            yield Draft("reference", page.place(("evidence",), path, "evidence"), f"{span.value} is misspelt", (edit,))


_FIGURE = re.compile(r"(?<![\w.,{])\d[\d,]*(?![\w,.]*\w)")


def _policies_file(page: _Page) -> Iterator[Draft]:
    for path, span in page.under(("policies",)):
        place = page.place(("policies",), path, "policies")

        def put(value: str, what: str, raw: bool = False, span: Span = span, place: str = place) -> Draft:
            return Draft("policy", place, what, (replaced(page.text, span, value, raw),))

        match path[1:]:
            case ("terms",) | ("terms", int(), "places" | "components") if span.kind == "sequence":
                items = page.items(("policies", *path)) or []
                for number in range(len(items) if len(items) > 1 else 0):
                    edit = dropped(page.text, span, items, number)
                    if edit is not None:
                        what = f"{items[number].value or f'term {number + 1}'} is missing"
                        yield Draft("policy", place, what, (edit,))
            case ("terms", int(), "places" | "components", int()) if span.inline:
                yield put(span.value + "-x", f"{span.value} is misspelt")
            case ("terms", int(), "layers") if span.inline and "-" in span.value:
                first, _, last = span.value.partition("-")
                yield put(f"{first}-{int(last) - 1}", "the last layer is missing")
                yield put(f"{int(first) + 1}-{last}", "the first layer is missing")
            case ("terms", int(), "sign") if span.inline:
                yield put(str(-int(span.value)), "the term has the other sign", raw=True)
            case ("terms", int(), "share", int()) if span.inline:
                for value, what in expressions.count_forms(span.value):
                    yield put(value, what)
            case ("published",) if span.inline:
                yield put(str(int(span.value) + 1), "the published figure is one larger", raw=True)
            case ("title",) | ("scope",) if span.kind == "scalar":
                for match in _FIGURE.finditer(span.value):
                    other = str(int(match[0].replace(",", "")) + 1)
                    value = span.value[: match.start()] + other + span.value[match.end() :]
                    yield put(value, f"{match[0]} becomes {other}")


def _claims_file(page: _Page) -> Iterator[Draft]:
    """What was published, what it is derived from, and what carries it; where rounding leaves room, no more."""
    for root in ("claims", "ledgers", "figures"):
        for path, span in page.under((root,)):
            place = page.place((root,), path, root)

            def put(value: str, what: str, span: Span = span, place: str = place) -> Draft:
                return Draft("claim", place, what, (replaced(page.text, span, value),))

            match path[1:]:
                case ("published", "number") if span.inline and (root, path[0], "unexplained") not in page.spans:
                    head, last = span.value[:-1], span.value[-1]
                    yield put(head + str((int(last) + 1) % 10), "the last digit of the published number is another")
                case ("published", "formula") if span.inline:
                    for value, what in expressions.count_forms(span.value):
                        yield put(value, what)
                case (*_, ("value" | "add" | "total" | "equals")) if span.inline:
                    exact = root == "ledgers" or (root, path[0], "equals") in page.spans
                    if exact or (root, path[0], "published", "formula") in page.spans:
                        yield put(f"{span.value} + 1", "one more")
                    for match in _NAMED.finditer(span.value):
                        misspelt = span.value[: match.end()] + "-x" + span.value[match.end() :]
                        yield put(misspelt, f"{match[0]} is misspelt")
                case (*_, ("by" | "cites"), int()) if span.inline:
                    yield put(span.value + "-x", f"{span.value} is misspelt")
                case ("explained",) if span.inline:
                    yield put(span.value + "-x", f"{span.value} is misspelt")


_NAMED = re.compile(r"(?<=\{)[a-z_]+:[^{}]+(?=\})")


def _config(page: _Page) -> Iterator[Draft]:
    for path, span in page.spans.items():
        if span.kind != "scalar" or span.style is not None:
            continue
        value = span.value
        if value in ("true", "false"):
            other = "false" if value == "true" else "true"
        elif value.lstrip("-").isdigit():
            other = str(int(value) + 1)
        elif value == "null":
            continue
        else:
            other = repr(float(value) * 1.01) if float(value) else "0.01"
        edit = Edit(span.start, span.end, other)
        yield Draft("config", page.place((), path), f"{value} becomes {other}", (edit,))
