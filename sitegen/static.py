# The static level: everything that can be said without running the model.
"""Check references, formulas, TeX, prose, pins and the published table of a resolved model."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sitegen import accounting, axes, claims, expr, formula, pins, references, schema
from sitegen.accounting import Accounts
from sitegen.configuration import field_findings
from sitegen.diagnostics import Finding, SpecInvalid, nearest
from sitegen.figures import figure_findings
from sitegen.formula.symboltex import SymbolTex
from sitegen.gotchas import gotcha_findings
from sitegen.loader import Located
from sitegen.probe.result import LevelResult
from sitegen.prosenumbers import Figures, unbound
from sitegen.quoting import quote
from sitegen.relations import relation_findings
from sitegen.render.text import Link, Quote, parse_prose, walk
from sitegen.resolver import Axis, Model
from sitegen.statements import SENTENCES, component_statements


@dataclass(frozen=True)
class Pinned:
    """All pins of a model with their states."""

    states: dict[tuple[str, str], pins.PinState]
    lock: pins.Lock


def model_pins(model: Model) -> list[pins.Pin]:
    """The pins of all components, in browsing order."""
    found = []
    for id in model.order():
        located = model.components[id]
        for number, code in enumerate(located.component.code):
            found.append(
                pins.Pin(
                    component=id,
                    id=code.id,
                    path=code.path,
                    symbol=code.symbol,
                    fragment=code.fragment,
                    where=located.at("code", number, "fragment" if code.fragment else "symbol"),
                )
            )
    return found


def run(accounts: Accounts) -> tuple[LevelResult, Pinned]:
    """Check everything static; findings name component and statement."""
    model = accounts.model
    result = LevelResult("static")
    pinned = check_pins(model, result)
    for finding in table_findings(accounts, result):
        result.fail(finding)
    figures = Figures(accounts)
    for id, located in model.components.items():
        for finding in component_findings(accounts, id, located):
            result.fail(finding.within(id))
        for finding in number_findings(figures, id, located):
            result.fail(finding.within(id))
        for number, row in enumerate(located.component.parameters):
            for finding in row_findings(accounts, id, number, row):
                result.fail(finding)
            result.hold(id, f"row:{row.id}", "equals the published table" if model.sources.table else "evaluates")
        result.hold(id, "account")
        for step in located.component.steps:
            result.hold(id, f"step:{step.id}", "parses and renders")
        for number, figure in enumerate(located.component.figures):
            for finding in figure_findings(model, id, number):
                result.fail(finding)
            result.hold(id, f"figure:{figure.id}", f"every bar has its value in {figure.record or 'the configuration'}")
    used = {name for located in model.components.values() for name in cited(located.component)}
    used |= {name for policy in model.sources.policies.values() for name in policy.evidence}
    used |= set(model.sources.claims.cited())
    for name in model.sources.evidence:
        if name not in used:
            where = model.sources.evidence_document.locate(("evidence", name))
            hint = "cite it under evidence or cites of a component, or remove it"
            result.fail(Finding("evidence-unused", f"no component cites the evidence entry {name!r}", where, hint=hint))
    for finding in (*symbol_findings(model), *field_findings(model)):
        result.fail(finding)
    for name in model.sources.sources.sources:
        for finding in source_findings(model, name):
            result.fail(finding)
    found = (*family_findings(model), *size_findings(model), *relation_findings(model))
    for finding in (*found, *references.reference_findings(model), *gotcha_findings(accounts, figures)):
        result.fail(finding)
    for name, policy in model.sources.policies.items():
        result_of = policy_finding(accounts, name, policy)
        if result_of is not None:
            result.fail(result_of)
    for finding in (*claims.derive(accounts).findings, *claim_number_findings(figures)):
        result.fail(finding)
    return result, pinned


def check_pins(model: Model, result: LevelResult) -> Pinned:
    try:
        lock = pins.read_lock(model.sources.folder / pins.FILE_NAME, f"spec/{model.name}/{pins.FILE_NAME}")
    except SpecInvalid as error:
        for finding in error.findings:
            result.fail(finding)
        lock = pins.Lock()
    states, findings = pins.check_all(model_pins(model), lock, pins.FolderReader(model.sources.root))
    for finding in findings:
        # The pins name their statement as a person would, `pin ID`; reports and pages speak of `pin:ID`.
        result.fail(replace(finding, statement=finding.statement.replace("pin ", "pin:", 1)))
    for state in states:
        if not state.code:
            result.hold(state.pin.component, f"pin:{state.pin.id}", "the pinned text is unchanged")
    return Pinned({(s.pin.component, s.pin.id): s for s in states}, lock)


def cited(component: schema.Component) -> Iterator[str]:
    yield from component.evidence
    for claim in (component.purpose, *component.explanation, *component.numerics):
        yield from claim.cites
    yield from component.reason.cites


def family_findings(model: Model) -> Iterator[Finding]:
    """Statements that the family page shows and that do not exist."""
    family, document = model.sources.family, model.sources.family_document
    if family is None or document is None:
        return
    for number, section in enumerate(family.sections):
        for i, name in enumerate(section.show):
            where = document.locate(("sections", number, "show", i))
            component, hash_, statement = name.partition("#")
            if name.startswith("evidence:"):
                kind, target, known = "evidence entry", name[9:], list(model.sources.evidence)
            elif component not in model.components or not hash_:
                kind, target, known = "component", component, list(model.components)
            else:
                kind, target = f"statement of {component}", statement
                known = [s.id for s in component_statements(model, component)]
            if target not in known:
                hint = nearest(target, known)
                yield Finding("unknown-reference", f"the family page shows no {kind} {target!r}", where, hint=hint)


def size_findings(model: Model) -> Iterator[Finding]:
    """Sizes of a small configuration that are equal: axes of that size could change places unseen."""
    used: set[str] = set()
    for located in model.components.values():
        for port in (*located.component.inputs, *located.component.outputs):
            for axis in port.axes:
                used |= expr.parse(Axis.parse(axis).size).names
    for number, configuration in enumerate(model.sources.model.configurations):
        where = model.sources.model_document.locate(("configurations", number, "id"))
        try:
            values = model.symbols({**model.config, **configuration.set})
        except SpecInvalid as error:
            yield from error.findings
            continue
        sizes: dict[int, str] = {}
        named = {
            **{n: v for n, v in values.items() if n in used},
            "B": configuration.batch,
            "T": configuration.positions,
        }
        for name, value in named.items():
            if not isinstance(value, int):
                continue
            if value in sizes:
                message = (
                    f"{sizes[value]} and {name} have the same size in {configuration.id!r}: their axes could be swapped"
                )
                yield Finding(
                    "config-invalid", message, where, expected="sizes that differ pairwise", actual=str(value)
                )
            sizes.setdefault(value, name)


def symbol_findings(model: Model) -> Iterator[Finding]:
    from sitegen.render.math import tex_findings

    for name, symbol in model.sources.symbols.items():
        yield from tex_findings(symbol.tex, model.sources.symbols_document.locate(("symbols", name, "tex")))


def source_findings(model: Model, name: str) -> Iterator[Finding]:
    source = model.sources.sources.sources[name]
    if source.repository is not None and (source.revision is None or source.path is None):
        where = model.sources.sources_document.locate(("sources", name))
        message = f"the source {name!r} floats: a repository needs a full revision and a path"
        yield Finding("schema-invalid", message, where, hint="links to a branch show other lines tomorrow")


def policy_finding(accounts: Accounts, name: str, policy: schema.Policy) -> Finding | None:
    where = accounts.model.sources.policies_document.locate(("policies", name))
    try:
        value = accounts.policy(policy)
    except SpecInvalid as error:
        return error.findings[0]
    if value < 0:
        hint = "a term subtracts what no other term counts; say what is in and what is out"
        message = f"the policy {name!r} comes to a negative figure"
        return Finding("count-mismatch", message, where, "parameters counted once", f"{value:,} from the rows", hint)
    if policy.published is not None and policy.published != value:
        return Finding(
            "count-mismatch",
            f"the policy {name!r} does not come to the published figure",
            where,
            expected=f"{policy.published:,} published",
            actual=f"{value:,} from the rows",
        )
    return None


def row_findings(accounts: Accounts, id: str, number: int, row: schema.Row) -> Iterator[Finding]:
    """The count expression against the row's own shape, in every instance."""
    located = accounts.model.components[id]
    for instance in accounts.instances[id]:
        own = instance.rows[number]
        if own.count <= 0:
            yield Finding(
                "count-mismatch",
                "a row owns no parameters",
                located.at("parameters", number, "count"),
                actual=f"{row.count} = {own.count}",
                component=id,
                statement=f"row:{row.id}",
            )
            return
        if own.count != own.elements:
            scales = {n: math.prod(t.shape) for n, t in accounts.table.items() if t.is_scale}
            yield Finding(
                "count-mismatch",
                f"the count of {row.id} is not the product of its axes",
                located.at("parameters", number, "count"),
                expected=f"{own.elements:,} from the axes [{', '.join(row.axes)}]"
                + (f" × {len(own.tensors)} tensors" if len(own.tensors) > 1 else ""),
                actual=f"{row.count} = {own.count:,}",
                hint=accounting.scale_words(own.count - own.elements, own.tensors, scales),
                component=id,
                statement=f"row:{row.id}",
            )
            return


def table_findings(accounts: Accounts, result: LevelResult) -> Iterator[Finding]:
    """Rows against the published tensor table: names, shapes, tiling, number types."""
    if not accounts.model.sources.table:
        return
    table = accounts.table
    shapes = {name: t.shape for name, t in table.items() if not t.is_scale}
    yield from accounting.ownership_findings(accounts, shapes, "the published table")
    for id, instances in accounts.instances.items():
        located = accounts.model.components[id]
        yield from axes.view_findings(accounts, id, table)
        for instance in instances:
            for number, row in enumerate(instance.rows):
                for name in row.tensors[:1]:
                    tensor = table.get(name)
                    if tensor is None:
                        continue
                    if row.box is None and math.prod(tensor.shape) != math.prod(row.shape):
                        yield Finding(
                            "count-mismatch",
                            f"the row does not count the elements of {name}",
                            located.at("parameters", number, "count"),
                            expected=f"{math.prod(tensor.shape):,} in the published table {list(tensor.shape)}",
                            actual=f"{row.row.count} = {row.count:,}",
                            component=id,
                            statement=f"row:{row.row.id}",
                        )
                    elif row.box is None and tuple(tensor.shape) != row.shape:
                        yield Finding(
                            "shape-mismatch",
                            f"the row's axes are not those of {name}",
                            located.at("parameters", number, "axes"),
                            expected=f"{list(tensor.shape)} in the published table",
                            actual=f"{list(row.shape)} from [{', '.join(row.row.axes)}]",
                            component=id,
                            statement=f"row:{row.row.id}",
                        )
                    if tensor.dtype != row.row.dtype:
                        yield Finding(
                            "dtype-mismatch",
                            f"{name} is stored in another number type",
                            located.at("parameters", number, "dtype"),
                            expected=f"{tensor.dtype} in the published table",
                            actual=row.row.dtype,
                            component=id,
                            statement=f"row:{row.row.id}",
                        )


def component_findings(accounts: Accounts, id: str, located: Located) -> Iterator[Finding]:
    """Formulas, TeX, prose and carriers of one component."""
    model = accounts.model
    yield from formula_findings(model, located)
    yield from axes.letter_findings(located, model.steps[id])
    for number, numeric in enumerate(located.component.numerics):
        yield from numeric_findings(model, located, number, numeric)
    for path, text in texts(located.component):
        yield from prose_findings(accounts, id, located, path, text)
    for statement in component_statements(model, id):
        if statement.kind not in SENTENCES:
            continue
        for owner, name in statement.carriers:
            known = [s.id for s in component_statements(model, owner)] if owner in model.components else []
            if name not in known or name == statement.id:
                yield Finding(
                    "unknown-reference",
                    f"no statement {name!r} of {owner} carries this sentence",
                    statement.where,
                    hint=nearest(name, known),
                    statement=statement.id,
                )
        for name in statement.cites:
            if name not in model.sources.evidence:
                hint = nearest(name, model.sources.evidence)
                yield Finding(
                    "unknown-reference",
                    f"no evidence entry {name!r}",
                    statement.where,
                    hint=hint,
                    statement=statement.id,
                )


def formula_findings(model: Model, located: Located) -> Iterator[Finding]:
    from sitegen.render.math import tex_findings

    component = located.component
    tensors: dict[str, int | None] = dict.fromkeys(component.values.bind if component.values else (), None)
    tensors.update(dict.fromkeys((p.name for p in (*component.inputs, *component.outputs)), None))
    # A letter that only names an axis (j, k, B, T) has no value: a formula may use it as an index, not as a number.
    valued = {n for n, s in model.sources.symbols.items() if s.value is not None or s.field is not None}
    valued |= {n for n, s in model.sources.symbols.items() if s.by_layer or s.infinite}
    letters = {n: SymbolTex.of(s.tex) for n, s in model.sources.symbols.items()}
    for number, (step, parsed) in enumerate(zip(component.steps, model.steps[component.id], strict=True)):
        statement = f"step:{step.id}"
        for finding in formula.check(parsed, tensors=tensors, symbols=valued | {n for n in tensors}):
            yield finding.within(component.id, statement)
        unnamed = {*formula.names(parsed).outputs, *formula.names(parsed).inputs} - model.sources.symbols.keys()
        for name in sorted(unnamed):
            yield Finding(
                "unknown-symbol",
                f"{name!r} has no entry in symbols.yml, so its meaning and letter are unknown",
                located.at("steps", number, "expr"),
                hint=nearest(name, model.sources.symbols),
                statement=statement,
            )
        where = located.at("steps", number, "tex" if step.tex else "expr")
        if step.tex:
            yield from (f.within(component.id, statement) for f in tex_findings(step.tex, where))
            try:
                found = formula.tex_findings(parsed, step.tex, letters, where=where)
            except SpecInvalid as error:
                found = error.findings
            yield from (f.within(component.id, statement) for f in found)
        else:
            yield from (f.within(component.id, statement) for f in tex_findings(formula.to_tex(parsed, letters), where))
        tensors.update(dict.fromkeys(formula.names(parsed).outputs, None))


def numeric_findings(model: Model, located: Located, number: int, numeric: schema.Numeric) -> Iterator[Finding]:
    values = model.symbols()
    for name, text in numeric.constant.items():
        where = located.at("numerics", number, "constant", name)
        statement = f"numeric:{numeric.id}"
        if name not in values:
            yield Finding(
                "unknown-symbol", f"no symbol {name!r}", where, hint=nearest(name, values), statement=statement
            )
            continue
        try:
            stated: float | None = float(text)
        except ValueError:
            stated = None
        if stated != values[name]:
            yield Finding(
                "config-invalid",
                f"the stated value of {name} is not the configuration's",
                where,
                expected=f"{values[name]!r} in {model.sources.model.config}",
                actual=text,
                statement=statement,
            )


def texts(component: schema.Component) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every prose text of a component with its path."""
    yield ("purpose", "text"), component.purpose.text
    yield ("reason", "text"), component.reason.text
    for name in ("inputs", "outputs", "parameters", "steps", "numerics", "properties", "explanation"):
        for number, item in enumerate(getattr(component, name)):
            yield (name, number, "text"), item.text
    for number, measurement in enumerate(component.measurements):
        yield ("measurements", number, "text"), measurement.text
    for number, case in enumerate(component.cases):
        yield ("cases", number, "text"), case.text
        if case.instead:
            yield ("cases", number, "instead", "text"), case.instead.text
    for number, figure in enumerate(component.figures):
        yield ("figures", number, "text"), figure.text
        for k, panel in enumerate(figure.panels):
            for n, bar in enumerate(panel.bars):
                yield ("figures", number, "panels", k, "bars", n, "title"), bar.title
    for number, code in enumerate(component.code):
        if code.text:
            yield ("code", number, "text"), code.text


def prose_findings(
    accounts: Accounts, id: str, located: Located, path: tuple[str | int, ...], text: str
) -> Iterator[Finding]:
    where = located.at(*path)
    component, model = located.component, accounts.model
    for span in walk(parse_prose(text)):
        if isinstance(span, Quote):
            try:
                quote(accounts, id, span.expr, where)
            except SpecInvalid as error:
                yield from error.findings
        elif isinstance(span, Link) and span.kind != "https":
            target = span.target.partition("#")[0]
            known = {
                "component": set(model.components),
                "code": {c.id for c in component.code},
                "source": set(model.sources.evidence),
            }[span.kind]
            if target not in known:
                yield Finding("unknown-reference", f"no {span.kind} {target!r}", where, hint=nearest(target, known))


def number_findings(figures: Figures, id: str, located: Located) -> Iterator[Finding]:
    """Numbers in a component's prose that are written out although they have a name."""
    for path, text in texts(located.component):
        for number in unbound(text, figures.of(id)):
            yield Finding(
                "number-unbound",
                f"{number.text} in prose is a known figure, and is not quoted by name",
                located.at(*path),
                expected=" or ".join("{" + name + "}" for name in number.names[:4]),
                actual=f"{number.text} in {_around(text, number.start)!r}",
                hint=number.hint,
                statement=_sentence(path),
            )


def claim_number_findings(figures: Figures) -> Iterator[Finding]:
    """Numbers in the prose of claims that are written out although they have a name."""
    sources = figures.accounts.model.sources
    if sources.claims_document is None:
        return
    for path, text in sources.claims.texts():
        for number in unbound(text, figures.anywhere()):
            yield Finding(
                "number-unbound",
                f"{number.text} in prose is a known figure, and is not quoted by name",
                sources.claims_document.locate(path),
                expected=" or ".join("{" + name + "}" for name in number.names[:4]),
                actual=f"{number.text} in {_around(text, number.start)!r}",
                hint=number.hint,
            )


def _around(text: str, start: int) -> str:
    """Some words around a place in a text, on one line."""
    return " ".join(text[max(0, start - 24) : start + 24].split())


def _sentence(path: tuple[str | int, ...]) -> str:
    """The statement that a sentence is by itself; texts beside formulas, rows and checks are none."""
    match path:
        case ("purpose", *_):
            return "purpose"
        case ("reason", *_):
            return "why"
        case ("explanation", int(number), *_):
            return f"explanation:{number + 1}"
    return ""
