# From the book to what one component's page shows, canonical or in one of its places.
"""Build the view of a component."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

from markupsafe import Markup

from sitegen import formula, schema
from sitegen.render import accounts, excerpts, gotchas_page, math, paths, places, status
from sitegen.render.book import Verdict
from sitegen.render.calls import call, literal
from sitegen.render.checks import KINDS, fixed_words, sweep_points
from sitegen.render.context import used
from sitegen.render.page import slug
from sitegen.render.pictured import PicturedPage
from sitegen.render.view import (
    AccountView,
    CaseView,
    CheckView,
    CodePlace,
    ComponentView,
    CountView,
    ExcerptView,
    FormulaView,
    GotchaNote,
    Link,
    PlaceRow,
    PortView,
    Sentence,
    ViewRow,
)
from sitegen.resolver import part_id

#: Statements that have a place of their own on the page.
_ELSEWHERE = frozenset(
    ("purpose", "why", "in", "out", "dtype", "row", "account", "numeric", "explanation", "pin", "citation", "evidence")
) | {"place", "case", "figure"}

class ComponentViews(PicturedPage):
    """Makes the view of one page, section by section."""

    def sentence(self, statement: str, words: str, by: list[str], cites: list[str]) -> Sentence:
        carriers = [self.statement_link(name) for name in by]
        carriers += [
            Link(id, f"#ev-{slug(id)}", self.model.sources.evidence[id].claim.strip())
            for id in cites
            if id in self.model.sources.evidence
        ]
        return Sentence(self.prose.html(words), self.mark(statement), tuple(carriers), status.anchor(statement))

    def formulas(self) -> tuple[FormulaView, ...]:
        views = []
        for step, parsed in zip(self.component.steps, self.model.steps[self.id], strict=True):
            marked, plain = self.tex(step, parsed)
            where = self.model.components[self.id].at("steps")
            html = math.block_formula(marked, plain, self.marks, where=where)
            statement = f"step:{step.id}"
            views.append(
                FormulaView(step.id, Markup(html), self.prose.html(step.text), self.mark(statement), step.main)
            )
        return tuple(views)

    def tex(self, step: schema.Step, parsed: formula.Step) -> tuple[str, str]:
        """The formula's TeX with marked letters, and as an author would write it."""
        if step.tex:
            plain = step.tex.strip()
            return math.mark_letters(plain, self.symbols.letters, self.marks), plain
        plain = formula.to_tex(parsed, self.symbols.tex)
        return formula.to_tex(parsed, self.symbols.tex, wrap=self.marks.wrap), plain

    def ports(self, ports: list[schema.Port], direction: str) -> tuple[PortView, ...]:
        letters = {row.name: row.html for row in self.symbols.table()}
        taken = {port.name for port in self.component.inputs}
        return tuple(
            PortView(
                port.name,
                letters.get(port.name, Markup("")),
                tuple(self.symbols.axis(axis, self.values) for axis in port.axes),
                port.dtype,
                self.prose.html(port.text),
                self.mark(f"{direction}:{port.name}"),
                self.mark(f"dtype:{port.name}"),
                self.link(port.component) if port.component else None,
                f"{direction}-{slug(port.name)}",
                f"dtype-{slug(port.name)}" if direction == "in" or port.name not in taken else "",
            )
            for port in ports
        )

    def account_view(self) -> AccountView | None:
        if self.account is None:
            return None
        return accounts.account_view(
            self.component,
            self.account,
            self.scope(),
            self.prose.html,
            self.link,
            self.occurrence,
        )

    def counts(self) -> tuple[CountView, ...]:
        place = self.place.id if self.place else None
        if self.component.views:
            views = (accounts.view_counts(self.book, v.tensor, place, self.link) for v in self.component.views)
            return tuple(count for counts in views for count in counts)
        if self.account is None:
            return ()

        def part(id: str) -> Verdict | None:
            return next((verdict for verdict in self.book.of(id, place) if verdict.id == "account"), None)

        return accounts.count_views(self.account, self.by_id, part, self.link)

    def scope(self) -> Markup:
        """What the policy counts that this component belongs to, here or anywhere."""
        names = [name for name in self.book.policies_of.get(self.id, ()) if self._counts_here(name)]
        if not names:
            return Markup("No policy counts this component.")
        policy = self.model.sources.policies[names[0]]
        shown = Markup("Counted under {}: ").format(self._policy(names[0])) + self.prose.html(policy.scope)
        if names[1:]:
            others = Markup(", ").join(self._policy(name) for name in names[1:])
            shown += Markup(" Also counted under {}.").format(others)
        return shown

    def _counts_here(self, name: str) -> bool:
        if self.place is None:
            return True
        chain = {place.id for place in self.place.chain}
        terms = self.model.sources.policies[name].terms
        return any(term.places is None or chain & set(term.places) for term in terms)

    def _policy(self, name: str) -> Markup:
        policy, total = self.model.sources.policies[name], self.book.policies.get(name)
        href = self.addresses.href(self.path, paths.model_page(self.model.name), f"policy-{slug(name)}")
        figure = f" ({total:,} in all)" if total is not None else ""
        return Markup('<a href="{}">{}</a>{}').format(href, policy.title.strip(), figure)

    def views(self) -> tuple[ViewRow, ...]:
        return tuple(
            ViewRow(
                view.tensor,
                tuple(self.symbols.axis(axis, self.values) for axis in view.axes),
                self.prose.html(view.text),
                tuple((o.slice, self.link(o.component)) for o in accounts.owners(self.model, view.tensor)),
            )
            for view in self.component.views
        )

    def checks(self) -> tuple[CheckView, ...]:
        """Every statement that has no table of its own on the page, with what was seen."""
        properties = {f"property:{p.id}": p for p in self.component.properties}
        texts = {f"step:{s.id}": s.text for s in self.component.steps}
        buffers = {f"row:{r.id}" for r in self.component.parameters if r.role == "buffer"}
        measured = {f"measurement:{m.id}": m.text for m in self.component.measurements}
        views = []
        for verdict in self.verdicts:
            if verdict.id in properties:
                prop = properties[verdict.id]
                kind, html = KINDS[prop.kind], self.prose.html(prop.text)
            elif verdict.kind == "step":
                kind = "formula"
                text = self.prose.html(texts.get(verdict.id, verdict.name))
                html = Markup('<a href="#{}">{}</a>').format(status.anchor(verdict.id), text)
            elif verdict.id in measured:
                kind, html = "on a GPU", self.prose.html(measured[verdict.id])
            elif verdict.kind in _ELSEWHERE and verdict.id not in buffers:
                continue
            else:
                kind, html = fixed_words(self.component, verdict)
            anchor = "" if verdict.kind == "step" else status.anchor(verdict.id)
            expected, actual, detail = verdict.expected, verdict.actual, verdict.detail
            mark = status.mark(verdict)
            points = sweep_points(properties.get(verdict.id), detail)
            detail = "" if points else detail
            view = CheckView(verdict.id, kind, html, mark, verdict.level, expected, actual, detail, anchor, points)
            views.append(view)
        return tuple(views)

    def cases(self) -> tuple[CaseView, ...]:
        by_id = {verdict.id: verdict for verdict in self.verdicts}
        found = []
        for case in self.component.cases:
            statement = f"case:{case.id}"
            wrong = self.prose.html(case.instead.text) if case.instead else None
            results = tuple((key, literal(value)) for key, value in case.gives.items())
            detail = by_id[statement].detail if case.instead and statement in by_id else ""
            found.append(
                CaseView(
                    status.anchor(statement), self.prose.html(case.text), call(case), results, self.mark(statement),
                    wrong, detail,
                )
            )  # fmt: skip
        return tuple(found)

    def place_rows(self) -> tuple[PlaceRow, ...]:
        here = self.place.id if self.place else ""
        return tuple(
            PlaceRow(
                Link(
                    places.chain_title(o.place),
                    self.addresses.href(self.path, paths.place_page(self.model.name, o.place.id, self.id)),
                ),
                o.instances,
                account.total if (account := self.book.account(self.id, o.place.id)) else 0,
                o.place.id == here,
                self.mark(f"place:{o.place.id}"),
                status.anchor(f"place:{o.place.id}"),
                o.place.chain[0].title,
            )
            for o in self.model.occurrences[self.id]
        )

    def code_places(self) -> tuple[CodePlace | None, tuple[CodePlace, ...]]:
        """Where the expression stands: ours, checked, and upstream's, cited."""
        expression = self.component.expression
        ours: CodePlace | None = None
        upstream: list[CodePlace] = []
        pin = (expression.pin or "") if expression else next((c.id for c in self.component.code if c.main), "")
        state = self.codes.get(pin)
        if state is not None:
            lines = excerpts.lines_text(*state.lines) if state.lines else "?"
            href = f"#{self.pins.get(pin, f'code-{slug(pin)}')}"
            ours = CodePlace(f"{state.path}:{lines}", href, self.mark(f"pin:{pin}"), state.symbol)
        if expression and expression.source and expression.lines:
            upstream.append(self.citation("expression", expression.source, expression.lines))
        said = (expression.source, expression.lines) if expression else None
        for number, citation in enumerate(self.component.upstream):
            if (citation.source, citation.lines) == said and not citation.text:
                continue  # the expression's own lines, shown above
            upstream.append(self.citation(str(number), citation.source, citation.lines, citation.text or ""))
        return ours, tuple(upstream)

    def citation(self, name: str, source: str, lines: list[int], text: str = "") -> CodePlace:
        statement = f"citation:{name}"
        return self.sources.code_place(source, lines, self.mark(statement), text, status.anchor(statement))

    def tensors(self) -> tuple[str, ...]:
        """Names of the tensors that the component owns (parts of), in this place or everywhere."""
        if not self.component.parameters:
            return ()
        occurrences = [self.occurrence] if self.occurrence else self.model.occurrences[self.id]
        names = dict.fromkeys(row.tensor for row in self.component.parameters)
        return tuple(
            f"{module}.{name}" if module else name for o in occurrences for module in o.modules for name in names
        )

    def view(self) -> ComponentView:
        component, model = self.component, self.model
        ours, upstream = self.code_places()
        occurrences = model.occurrences[self.id]
        crumbs = (
            places.crumbs(model, self.path, self.addresses, self.occurrence)
            if self.occurrence
            else places.canonical_crumbs(model, self.path, self.addresses, self.id)
        )
        before, after = places.neighbours(self.shop.order, self.id)
        parents = model.parents[self.id]
        up = self.link(parents[0]) if parents else self.up()
        account = self.account_view()
        reason = component.reason
        section = f"Report section {reason.section}" if reason.section else ""
        return ComponentView(
            id=self.id,
            model=model.name,
            title=component.title.strip(),
            kind=component.kind,
            times=account.instances if account else sum(o.instances for o in occurrences),
            crumbs=crumbs,
            expression=component.expression.code.strip() if component.expression else "",
            ours=ours,
            upstream=upstream,
            status=status.status(self.verdicts, self.book.runs),
            purpose=self.sentence("purpose", component.purpose.text, component.purpose.by, component.purpose.cites),
            why=(self.sentence("why", reason.text, reason.by, reason.cites),),
            why_section=section,
            why_given=reason.given,
            formulas=self.formulas(),
            symbols=self.symbols.table(),
            inputs=self.ports(component.inputs, "in"),
            outputs=self.ports(component.outputs, "out"),
            account=account,
            views=self.views(),
            numerics=tuple(self.sentence(f"numeric:{n.id}", n.text, n.by, n.cites) for n in component.numerics),
            counts=self.counts(),
            checks=self.checks(),
            cases=self.cases(),
            explanation=tuple(
                self.sentence(f"explanation:{number}", claim.text, claim.by, claim.cites)
                for number, claim in enumerate(component.explanation, 1)
            ),
            gotchas=self.gotchas(),
            excerpts=self.excerpts(),
            evidence=self.sources.evidence_views(self.evidence),
            parts=tuple(self.link(part_id(part)) for part in component.parts),
            used_by=tuple(self.link(id) for id in dict.fromkeys([*self.shop.users[self.id], *parents])),
            uses=tuple(self.link(id) for id in used(component) if id in model.components),
            places=self.place_rows(),
            previous=self.link(before) if before else None,
            next=self.link(after) if after else None,
            parent=up,
            canonical=Link(
                f"{component.title.strip()} in all places",
                self.addresses.href(self.path, paths.component_page(model.name, self.id)),
            )
            if self.occurrence
            else None,
            links=self.links(),
            cite=self.cite(),
            place_title=places.chain_title(self.place) if self.place else "",
            tensors=self.tensors(),
            figures=self.figures,
            flow=self.flow,
        )

    def gotchas(self) -> tuple[GotchaNote, ...]:
        """What ports get wrong here; each leads to its point on the page of gotchas."""
        page = paths.gotchas_page(self.model.name)
        notes = []
        for gotcha in self.shop.gotchas.get(self.id, ()):
            href = self.addresses.href(self.path, page, gotchas_page.anchor(gotcha))
            words = gotchas_page.prose_of(self.shop, gotcha.components[0], self.path).html(gotcha.text)
            carriers = tuple(self.statement_link(name) for name in gotcha.by)
            sentence = Sentence(words, gotchas_page.gotcha_mark(self.shop, gotcha), carriers)
            notes.append(GotchaNote(Link(gotcha.title.strip(), href), sentence))
        return tuple(notes)

    def excerpts(self) -> tuple[ExcerptView, ...]:
        """The pinned code; each excerpt leads to its lines in the whole file."""
        views = excerpts.excerpt_views(
            self.groups, self.component.code, self.codes, self.by_id, self.symbols.identifiers, self.shop.highlighter
        )
        lines = {group.anchor: group.first for group in self.groups}
        return tuple(
            replace(view, href=self.addresses.href(self.path, self.source(view.path), f"L{lines[view.anchor]}"))
            if view.anchor in lines
            else view
            for view in views
        )

    def source(self, path: str) -> str:
        return paths.source_page(self.model.name, path)

    def up(self) -> Link:
        if self.place is not None:
            goal = paths.place_page(self.model.name, self.place.id)
            return Link(self.place.title, self.addresses.href(self.path, goal))
        return Link(
            self.model.sources.model.title.strip(), self.addresses.href(self.path, paths.model_page(self.model.name))
        )

    def links(self) -> tuple[Link, ...]:
        located, settings = self.model.components[self.id], self.shop.settings
        found = [
            Link("This page as JSON", self.addresses.href(self.path, paths.twin(self.path))),
            Link(
                "Its spec (YAML)",
                self.addresses.href(self.path, paths.spec_file(self.model.name, located.document.file)),
            ),
        ]
        if settings.edit_url:
            line = located.at("id").line
            address = f"{settings.edit_url.rstrip('/')}/{located.document.file}"
            found.append(Link("Edit", address + (f"#L{line}" if line else "")))
        if settings.issue_url:
            found.append(Link("Report a problem", f"{settings.issue_url}?title={quote(self.id)}"))
        return tuple(found)

    def cite(self) -> str:
        settings, title = self.shop.settings, self.component.title.strip()
        where = f" in {places.chain_title(self.place)}" if self.place else ""
        address = settings.site_url.rstrip("/") + "/" + self.path.removesuffix("index.md") if settings.site_url else ""
        parts = [
            f"“{title}”{where}, {self.model.sources.model.title.strip()}",
            settings.site_name,
            f"revision {self.book.revision[:12]}" if self.book.revision else "",
            self.book.date,
            address,
        ]
        return ", ".join(part for part in parts if part) + "."
