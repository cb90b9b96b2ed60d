# A model as a module of a library: one page arranged from the statements of its components.  Nothing is
# written for it but the order; every sentence, formula and figure is that of a component's page.
"""Views of the family page."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from sitegen import schema
from sitegen.render import math, paths, status
from sitegen.render.checks import KINDS, fixed_words, sweep_points
from sitegen.render.component_view import ComponentViews
from sitegen.render.context import Workshop
from sitegen.render.page import slug
from sitegen.render.view import CheckView, Link, Mark, Sentence
from sitegen.resolver import Place


@dataclass(frozen=True)
class Item:
    """One thing that a section shows: a sentence, a formula, a check, a value, or a citation."""

    kind: str
    link: Link | None = None
    sentence: Sentence | None = None
    formula: Markup = Markup("")
    text: Markup = Markup("")
    check: CheckView | None = None
    mark: Mark | None = None
    name: Markup = Markup("")
    shape: str = ""
    dtype: str = ""


@dataclass(frozen=True)
class ModuleRow:
    """A module of the tree: its last name, class, parameters of one instance, and the component that it is."""

    depth: int
    name: str
    kind: str
    count: int | None
    link: Link | None
    mark: Mark | None
    places: str = ""


@dataclass(frozen=True)
class NameRow:
    """One tensor under its three names."""

    link: Link
    row: str
    tensor: str
    stored: tuple[str, ...]
    mark: Mark


@dataclass(frozen=True)
class BufferRow:
    link: Link
    tensor: str
    shape: str
    dtype: str
    text: Markup
    mark: Mark


@dataclass(frozen=True)
class CountRow:
    title: str
    count: int
    scope: Markup


@dataclass(frozen=True)
class SectionView:
    title: str
    anchor: str
    table: str
    items: tuple[Item, ...]


@dataclass(frozen=True)
class FamilyView:
    """Everything on a family page."""

    title: str
    model: Link
    purpose: Markup
    package: schema.Package | None
    executed: int
    total: int
    mark: Mark
    sections: tuple[SectionView, ...]
    modules: tuple[ModuleRow, ...]
    names: tuple[NameRow, ...]
    buffers: tuple[BufferRow, ...]
    counts: tuple[CountRow, ...]


class Excerpt(ComponentViews):
    """A component's statements as they are shown on another page: references lead to its own page."""

    def __init__(self, workshop: Workshop, component: str, path: str) -> None:
        super().__init__(workshop, component)
        self.path = path

    def statement_link(self, name: str) -> Link:
        component, _, statement = name.rpartition("#")
        other = self.link(component or self.id, status.anchor(statement))
        label = super().statement_link(name).text
        return Link(label, other.href, name)

    def _source_anchor(self, target: str):
        anchor = super()._source_anchor(target)
        return anchor and type(anchor)(self.link(self.id, f"ev-{slug(target)}").href, anchor.title)

    def _code_anchor(self, target: str):
        anchor = super()._code_anchor(target)
        return anchor and type(anchor)(self.link(self.id, anchor.href[1:]).href, anchor.title, anchor.mark)

    # --- items ---------------------------------------------------------------------------------------

    def items(self, statement: str) -> list[Item]:
        """What the family page shows of a statement; of the whole component, its purpose and main formulas."""
        component = self.component
        if not statement:
            steps = [s for s in component.steps if s.main] or component.steps[:1]
            found = [Item("head", self.link(self.id)), self.words("purpose", component.purpose)]
            return [*found, *(self.step(s) for s in steps)]
        kind, _, name = statement.partition(":")
        match kind:
            case "purpose":
                return [self.words(statement, component.purpose)]
            case "explanation":
                return [self.words(statement, component.explanation[int(name) - 1])]
            case "numeric":
                numeric = next(n for n in component.numerics if n.id == name)
                return [self.words(statement, numeric)]
            case "step":
                return [self.step(next(s for s in component.steps if s.id == name))]
            case "in" | "out":
                return [self.value(kind, name)]
        return [self.check(statement)]

    def words(self, statement: str, claim: schema.Claim | schema.Numeric) -> Item:
        sentence = self.sentence(statement, claim.text, claim.by, claim.cites)
        carriers = tuple(c for c in sentence.carriers if not c.href.startswith("#ev-"))
        link = self.link(self.id, status.anchor(statement))
        return Item("sentence", link, Sentence(sentence.html, sentence.mark, carriers))

    def step(self, step: schema.Step) -> Item:
        number = self.component.steps.index(step)
        marked, plain = self.tex(step, self.model.steps[self.id][number])
        where = self.model.components[self.id].at("steps")
        html = Markup(math.block_formula(marked, plain, self.marks, where=where))
        link = self.link(self.id, status.anchor(f"step:{step.id}"))
        return Item("formula", link, formula=html, text=self.prose.html(step.text), mark=self.mark(f"step:{step.id}"))

    def value(self, direction: str, name: str) -> Item:
        ports = self.component.inputs if direction == "in" else self.component.outputs
        port = next(p for p in ports if p.name == name)
        letters = {row.name: row.html for row in self.symbols.table()}
        sizes = [self.symbols.axis(axis, self.values) for axis in port.axes]
        shape = ", ".join(f"{a.size} {a.name}".strip() for a in sizes)
        statement = f"{direction}:{name}"
        link, text = self.link(self.id, status.anchor(statement)), self.prose.html(port.text)
        letter, mark = letters.get(name, Markup.escape(name)), self.mark(statement)
        return Item("value", link, text=text, mark=mark, name=letter, shape=f"[{shape}]", dtype=port.dtype)

    def check(self, statement: str) -> Item:
        verdict = self.by_id.get(statement)
        prop = next((p for p in self.component.properties if f"property:{p.id}" == statement), None)
        link = self.link(self.id, status.anchor(statement))
        if verdict is None:
            return Item("check", link, text=Markup.escape(statement), mark=status.mark(None))
        if prop is not None:
            kind, html = KINDS[prop.kind], self.prose.html(prop.text)
        else:
            kind, html = fixed_words(self.component, verdict)
        points = sweep_points(prop, verdict.detail)
        mark = status.mark(verdict)
        detail = "" if points else verdict.detail
        expected, actual = verdict.expected, verdict.actual
        view = CheckView(statement, kind, html, mark, verdict.level, expected, actual, detail, "", points)
        return Item("check", link, check=view, mark=mark)


def family_view(workshop: Workshop) -> FamilyView:
    """The family page of a model that has a family.yml."""
    model, book = workshop.model, workshop.book
    family = model.sources.family
    assert family is not None
    path = paths.family_page(model.name)
    excerpts = {id: Excerpt(workshop, id, path) for id in workshop.order}
    verdicts = [verdict for id in model.components for verdict in book.of(id)]
    summary = status.status(verdicts, ())
    plain = next(iter(excerpts.values())).prose
    href = workshop.settings.addresses.href(path, paths.model_page(model.name))
    return FamilyView(
        family.title.strip(),
        Link(model.sources.model.title.strip(), href),
        plain.html(model.sources.model.purpose),
        model.sources.model.implementation.package,
        summary.executed,
        len(verdicts),
        summary.headmark,
        tuple(section_view(excerpts, section, workshop) for section in family.sections),
        tuple(modules(workshop, excerpts)),
        tuple(names(excerpts)),
        tuple(buffers(excerpts)),
        tuple(
            CountRow(policy.title.strip(), book.policies[name], plain.html(policy.scope))
            for name, policy in model.sources.policies.items()
            if name in book.policies
        ),
    )


def section_view(excerpts: dict[str, Excerpt], section: schema.Section, workshop: Workshop) -> SectionView:
    items: list[Item] = []
    for name in section.show:
        if name.startswith("evidence:"):
            items.append(citation(workshop, name[9:]))
            continue
        component, _, statement = name.partition("#")
        if component in excerpts:  # one that does not exist is a finding of the static level
            items += excerpts[component].items(statement)
    return SectionView(section.title.strip(), section.id, section.table or "", tuple(items))


def citation(workshop: Workshop, name: str) -> Item:
    """A sentence that only a source carries."""
    entry = workshop.model.sources.evidence.get(name)
    if entry is None:
        return Item("cited", text=Markup.escape(name), mark=Mark("not-run", "no such evidence entry"))
    source = workshop.model.sources.sources.sources[entry.source]
    place = entry.section or ""
    link = Link(f"{source.title.strip()}{', ' + place if place else ''}", source.url or "")
    return Item("cited", link, text=Markup.escape(entry.claim.strip()), mark=Mark("cited"))


# --- tables ----------------------------------------------------------------------------------------


def modules(workshop: Workshop, excerpts: dict[str, Excerpt]) -> list[ModuleRow]:
    """The module tree as the components tell it, one row per path, in the order of the schedule."""
    model, book = workshop.model, workshop.book
    found: dict[str, tuple[str, str, set[str]]] = {}
    for place in model.places.values():
        for id in workshop.order:
            stated = model.component(id).module
            if stated is None or place.id not in [o.place.id for o in model.occurrences[id]]:
                continue
            full = ".".join(part for part in (shown_path(place), stated.path) if part)
            kept = found.setdefault(full, (id, stated.kind, set()))
            kept[2].add(place.id)
    layers = {p.id for p in model.places.values() if "{i}" in p.row.path}
    paths_of = dict.fromkeys(prefix for full in found for prefix in prefixes(full))
    rows = []
    for full in sorted(paths_of, key=lambda name: [list(paths_of).index(p) for p in prefixes(name)]):
        depth, name = len(prefixes(full)) - 1, full.rpartition(".")[2] or "(the model)"
        if full not in found:
            rows.append(ModuleRow(depth, name, "", None, None, None))
            continue
        id, kind, where = found[full]
        account = book.account(id)
        titles = [model.places[p].title for p in model.places if p in where]
        some = ", ".join(titles) if where & layers and where & layers != layers else ""
        holds = any(full in prefixes(other)[:-1] for other in found)
        count = account.per_instance if account and (account.per_instance or not holds) else None
        excerpt = excerpts[id]
        rows.append(ModuleRow(depth, name, kind, count, excerpt.link(id), excerpt.mark("module"), some))
    return rows


def prefixes(path: str) -> list[str]:
    """A module's path with those of all modules around it, outermost first; the model itself is the empty one."""
    parts = path.split(".") if path else []
    return ["", *(".".join(parts[: n + 1]) for n in range(len(parts)))]


def shown_path(place: Place) -> str:
    """A place's module path as readers index it: `model.layers[i]`."""
    return place.row.path.replace(".{i}", "[i]")


def names(excerpts: dict[str, Excerpt]) -> list[NameRow]:
    """Every tensor under its neutral name, its path in the package and its names in a checkpoint."""
    rows = []
    for id, excerpt in excerpts.items():
        component = excerpt.component
        path = shown_path(excerpt.model.occurrences[id][0].place)
        for row in component.parameters:
            if row.stored:
                statement = f"stored:{row.id}"
                tensor = ".".join(part for part in (path, row.tensor) if part) + (row.slice or "")
                link = excerpt.link(id, status.anchor(statement))
                rows.append(NameRow(link, id, tensor, tuple(row.stored), excerpt.mark(statement)))
    return rows


def buffers(excerpts: dict[str, Excerpt]) -> list[BufferRow]:
    rows = []
    for id, excerpt in excerpts.items():
        for buffer in [row for row in excerpt.component.parameters if row.role == "buffer"]:
            sizes = ", ".join(excerpt.symbols.axis(axis, excerpt.values).size for axis in buffer.axes)
            statement = f"row:{buffer.id}"
            link = excerpt.link(id, status.anchor(statement))
            tensor = f"{shown_path(excerpt.model.occurrences[id][0].place)}.{buffer.tensor}"
            text = excerpt.prose.html(buffer.text)
            rows.append(BufferRow(link, tensor, f"[{sizes}]", buffer.dtype, text, excerpt.mark(statement)))
    return rows
