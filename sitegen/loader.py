# Path to text to typed values: a model's folder under spec/ becomes a `Sources`, everything as
# authored, each value with its place.  Nothing is resolved or computed here.
"""Read a model's spec folder; every fault of every file is reported at once."""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from sitegen import claimspec, schema, yamlfile
from sitegen.diagnostics import Finding, Location, SitegenError, SpecInvalid, nearest, ordered
from sitegen.yamlfile import Document

_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
MAX_JSON_BYTES = 50_000_000
MAX_FAULTS = 40  # told of one noun; each looks for the nearest name
MAX_INT_BITS = 64
_Typed = TypeVar("_Typed", bound=BaseModel)


@dataclass(frozen=True)
class Located:
    """A component with the document it came from and its path in there."""

    component: schema.Component
    document: Document
    path: tuple[str | int, ...]
    shared: bool = False

    def at(self, *path: str | int) -> Location:
        """The place of a value of the component, or of the component itself."""
        return self.document.locate((*self.path, *path))


@dataclass(frozen=True)
class Chapter:
    """A file of mistakes that ports make."""

    file: schema.GotchasFile
    document: Document


@dataclass(frozen=True)
class Sources:
    """A model's spec as authored."""

    root: Path
    folder: Path
    model: schema.ModelFile
    model_document: Document
    symbols: dict[str, schema.Symbol]
    symbols_document: Document
    sources: schema.SourcesFile
    sources_document: Document
    evidence: dict[str, schema.Evidence]
    evidence_document: Document
    policies: dict[str, schema.Policy]
    policies_document: Document
    components: dict[str, Located]
    config: dict[str, Any]
    table: list[dict[str, Any]] = field(repr=False, default_factory=list)
    records: dict[str, dict[str, Any]] = field(repr=False, default_factory=dict)
    files: tuple[str, ...] = ()
    maps: dict[str, schema.ModelMap] = field(default_factory=dict)
    maps_document: Document | None = None
    family: schema.FamilyFile | None = None
    family_document: Document | None = None
    fields: dict[str, schema.ConfigField] = field(default_factory=dict)
    fields_document: Document | None = None
    claims: claimspec.ClaimsFile = field(default_factory=claimspec.ClaimsFile)
    claims_document: Document | None = None
    gotchas: tuple[Chapter, ...] = ()

    @property
    def name(self) -> str:
        return self.model.name


def find_root(start: Path | None = None) -> Path:
    """The project: the nearest folder upwards that holds `spec/` and `mkdocs.yml`."""
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / "spec").is_dir() and (folder / "mkdocs.yml").is_file():
            return folder
    raise SitegenError(
        f"no project here: {here} and the folders above have no spec/ beside a mkdocs.yml",
        hint="run sitegen inside a project, or start one with `sitegen new`",
    )


def model_names(root: Path) -> list[str]:
    """Models of a project: the folders under spec/ that hold a model.yml."""
    return sorted(path.parent.name for path in (root / "spec").glob("*/model.yml"))


def choose(root: Path, wanted: tuple[str, ...] = ()) -> list[str]:
    """The named models, or all of them; `SitegenError` when one does not exist."""
    names = model_names(root)
    if not names:
        raise SitegenError(f"{root / 'spec'} holds no model (no */model.yml)", hint="start one with `sitegen new`")
    for name in wanted:
        if name not in names:
            raise SitegenError(f"no model {name!r} under spec/", hint=nearest(name, names))
    return list(wanted) or names


def inside(root: Path, relative: str) -> Path | None:
    """`root/relative`, or None when it leaves the project, also through links."""
    if not relative or "\0" in relative or relative.startswith(("/", "~")) or "\\" in relative:
        return None
    path = (root / relative).resolve()
    return path if path.is_relative_to(root.resolve()) else None


def read_bytes(path: Path, most: int) -> bytes:
    """A regular file's content; `OSError` for a pipe or device, which may have no end, and for a larger one."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "not a regular file")
    if path.stat().st_size > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes")
    return path.read_bytes()


def json_problem(data: Any) -> tuple[str, str] | None:
    """(finding code, what it is) of a value that no page and no count can hold; None when there is none."""
    todo = [data]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            todo += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            todo += value
        elif isinstance(value, str) and (bad := yamlfile.unsafe_characters(value)):
            return "unsafe-text", f"a text with {', '.join(bad[:5])}"
        elif type(value) is int and value.bit_length() > MAX_INT_BITS:
            return "config-invalid", f"an integer of {value.bit_length():,} bits; at most {MAX_INT_BITS} are read"
    return None


def load(root: Path, name: str) -> Sources:
    """Load one model; raises `SpecInvalid` with all findings of all files."""
    return _Loader(root, name).load()


class _Loader:
    def __init__(self, root: Path, name: str) -> None:
        self.root, self.name = root, name
        self.folder = root / "spec" / name
        self.findings: list[Finding] = []
        self.files: list[str] = []

    def relative(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def load(self) -> Sources:
        model, model_document = self.read(self.folder / "model.yml", schema.ModelFile)
        symbols, symbols_document = self.read(self.folder / "symbols.yml", schema.SymbolsFile)
        sources, sources_document = self.read(self.folder / "sources.yml", schema.SourcesFile)
        evidence, evidence_document = self.read(self.folder / "evidence.yml", schema.EvidenceFile)
        policies, policies_document = self.read(self.folder / "policies.yml", schema.PoliciesFile)
        fields, fields_document = None, None
        if (self.folder / "config.yml").exists():
            fields, fields_document = self.read(self.folder / "config.yml", schema.ConfigFile)
        claims, claims_document = None, None
        if (self.folder / "claims.yml").exists():
            claims, claims_document = self.read(self.folder / "claims.yml", claimspec.ClaimsFile)
        components = self.components()
        maps, maps_document = None, None
        if (self.folder / "map.yml").exists():
            maps, maps_document = self.read(self.folder / "map.yml", schema.MapFile)
        family, family_document = None, None
        if (self.folder / "family.yml").exists():
            family, family_document = self.read(self.folder / "family.yml", schema.FamilyFile)
        gotchas = self.gotchas()
        records = self.records(components)
        config: dict[str, Any] = {}
        table: list[dict[str, Any]] = []
        if model is not None and model_document is not None:
            if model.name != self.name:
                self.findings.append(
                    Finding(
                        "schema-invalid",
                        "the model's name is not its folder's name",
                        model_document.locate(("name",)),
                        expected=self.name,
                        actual=model.name,
                    )
                )
            for number, name in enumerate(model.implementation.sources):
                if inside(self.root, name) is None:
                    where = model_document.locate(("implementation", "sources", number))
                    self.findings.append(Finding("path-outside", "the path leaves the project", where, actual=name))
            config = self.json(model.config, model_document.locate(("config",)), dict) or {}
            if model.table:
                table = self.table(model.table.path, model_document.locate(("table", "path")))
        if self.findings or None in (model, symbols, sources, evidence, policies):
            raise SpecInvalid(ordered(self.findings))
        assert model and symbols and sources and evidence and policies
        assert model_document and symbols_document and sources_document and evidence_document and policies_document
        return Sources(
            root=self.root,
            folder=self.folder,
            model=model,
            model_document=model_document,
            symbols=symbols.symbols,
            symbols_document=symbols_document,
            sources=sources,
            sources_document=sources_document,
            evidence=evidence.evidence,
            evidence_document=evidence_document,
            policies=policies.policies,
            policies_document=policies_document,
            components=components,
            config=config,
            table=table,
            records=records,
            files=tuple(self.files),
            maps=maps.maps if maps is not None else {},
            maps_document=maps_document,
            family=family,
            family_document=family_document,
            fields=fields.fields if fields else {},
            fields_document=fields_document,
            claims=claims or claimspec.ClaimsFile(),
            claims_document=claims_document,
            gotchas=gotchas,
        )

    def document(self, path: Path) -> Document | None:
        file = self.relative(path)
        if not path.resolve().is_relative_to(self.root.resolve()):
            self.findings.append(Finding("path-outside", "the file is a link out of the project", Location(file)))
            return None
        try:
            content = read_bytes(path, yamlfile.MAX_BYTES)
        except OSError as error:
            self.findings.append(
                Finding("yaml-invalid", f"cannot be read: {error.strerror}", Location(file), hint="every model has it")
            )
            return None
        self.files.append(file)
        try:
            return yamlfile.load(content, file)
        except SpecInvalid as error:
            self.findings.extend(error.findings)
            return None

    def read(self, path: Path, noun: type[_Typed]) -> tuple[_Typed | None, Document | None]:
        document = self.document(path)
        if document is None:
            return None, None
        return self.typed(document, document.data, (), noun), document

    def typed(self, document: Document, data: Any, path: tuple[str | int, ...], noun: type[_Typed]) -> _Typed | None:
        try:
            return noun.model_validate(data)
        except ValidationError as error:
            faults = error.errors(include_url=False, include_context=False)
            if len(faults) > MAX_FAULTS:
                message = f"{len(faults) - MAX_FAULTS:,} more fields of this file are wrong"
                self.findings.append(Finding("schema-invalid", message, document.locate(path)))
            for fault in faults[:MAX_FAULTS]:
                where = tuple(
                    p for p in fault["loc"] if not (isinstance(p, str) and p.startswith(("constrained", "function-")))
                )
                self.findings.append(_schema_finding(document, (*path, *where), fault, noun))
            return None

    def json(self, relative: str, where: Location, kind: type) -> Any:
        path = inside(self.root, relative)
        if path is None:
            self.findings.append(
                Finding(
                    "path-outside",
                    "the path leaves the project",
                    where,
                    actual=relative,
                    hint="give a path below the project's folder",
                )
            )
            return None
        try:
            data = json.loads(read_bytes(path, MAX_JSON_BYTES).decode("utf-8"))
        except OSError as error:
            self.findings.append(Finding("config-invalid", f"{relative} cannot be read: {error.strerror}", where))
            return None
        except (ValueError, RecursionError) as error:
            self.findings.append(Finding("config-invalid", f"{relative} is not JSON: {error}", where))
            return None
        self.files.append(relative)
        problem = json_problem(data)
        if problem is not None:
            code, what = problem
            self.findings.append(Finding(code, f"{relative} holds {what}", where))
            return None
        if not isinstance(data, kind):
            self.findings.append(
                Finding(
                    "config-invalid",
                    f"{relative} has the wrong form",
                    where,
                    expected=kind.__name__,
                    actual=type(data).__name__,
                )
            )
            return None
        return data

    def table(self, relative: str, where: Location) -> list[dict[str, Any]]:
        """The published table; every entry that has another form is named by its number."""
        entries = self.json(relative, where, list) or []
        for number, entry in enumerate(entries, start=1):
            try:
                schema.TableEntry.model_validate(entry)
            except ValidationError as error:
                fault = error.errors(include_url=False, include_context=False)[0]
                field = ".".join(str(part) for part in fault["loc"]) or "the entry"
                message = f"entry {number} of {relative} has another form: {field}: {fault['msg']}"
                self.findings.append(Finding("config-invalid", message, where, actual=repr(fault.get("input"))[:80]))
        return entries

    def components(self) -> dict[str, Located]:
        found: dict[str, Located] = {}
        lower: dict[str, str] = {}
        for path in sorted((self.folder / "components").rglob("*.yml")):
            document = self.document(path)
            if document is None:
                continue
            for located in self.component_file(document):
                component = located.component
                twin = found.get(component.id)
                if twin is not None:
                    self.findings.append(
                        Finding(
                            "schema-invalid",
                            f"the component id {component.id!r} is used twice",
                            located.at("id"),
                            expected="one component per id",
                            actual=f"{twin.at('id')} and {located.at('id')}",
                        )
                    )
                elif component.id.lower() in lower:
                    self.findings.append(
                        Finding(
                            "schema-invalid",
                            "two ids differ only in case",
                            located.at("id"),
                            expected=lower[component.id.lower()],
                            actual=component.id,
                        )
                    )
                found.setdefault(component.id, located)
                lower.setdefault(component.id.lower(), component.id)
        return found

    def gotchas(self) -> tuple[Chapter, ...]:
        """The chapters of mistakes, by their first points."""
        found = []
        for path in sorted(self.folder.glob("gotchas*.yml")):
            file, document = self.read(path, schema.GotchasFile)
            if file is not None and document is not None:
                found.append(Chapter(file, document))
        return tuple(sorted(found, key=lambda chapter: min((g.point for g in chapter.file.gotchas), default=0)))

    def records(self, components: dict[str, Located]) -> dict[str, dict[str, Any]]:
        """The records that figures are made of, each read once."""
        found: dict[str, dict[str, Any] | None] = {}
        for located in components.values():
            for number, figure in enumerate(located.component.figures):
                if figure.record is not None and figure.record not in found:
                    found[figure.record] = self.json(figure.record, located.at("figures", number, "record"), dict)
        return {path: record for path, record in found.items() if record is not None}

    def component_file(self, document: Document) -> Iterator[Located]:
        data = document.data
        if isinstance(data, dict) and "components" in data:
            extra = {k: v for k, v in data.items() if k != "components"}
            head = self.typed(document, extra, (), schema.ComponentFile)
            if head is None:
                return
            items = data["components"]
            if not isinstance(items, list):
                self.findings.append(
                    Finding("schema-invalid", "components must be a list", document.locate(("components",)))
                )
                return
            for number, item in enumerate(items):
                yield from self.variants(document, item, ("components", number), head.variants)
        else:
            yield from self.variants(document, data, (), [])

    def variants(
        self, document: Document, data: Any, path: tuple[str | int, ...], variants: list[schema.Variant]
    ) -> Iterator[Located]:
        for variant in variants or [None]:
            item = data
            if variant is not None:
                item = self.substitute(document, data, path, variant.set)
            component = self.typed(document, item, path, schema.Component)
            if component is not None:
                yield Located(component, document, path, shared=variant is not None)

    def substitute(self, document: Document, value: Any, path: tuple[str | int, ...], names: dict[str, str]) -> Any:
        if isinstance(value, dict):
            return {k: self.substitute(document, v, (*path, k), names) for k, v in value.items()}
        if isinstance(value, list):
            return [self.substitute(document, v, (*path, i), names) for i, v in enumerate(value)]
        if not isinstance(value, str) or "${" not in value:
            return value

        def replace(match: re.Match[str]) -> str:
            name = match.group(1)
            if name not in names:
                self.findings.append(
                    Finding(
                        "unknown-reference",
                        f"no variant value ${{{name}}}",
                        document.locate(path),
                        hint=nearest(name, names),
                    )
                )
            return names.get(name, "")

        text = _PLACEHOLDER.sub(replace, value)
        return int(text) if _PLACEHOLDER.fullmatch(value.strip()) and text.isdigit() else text


def _schema_finding(document: Document, path: tuple[str | int, ...], fault: Any, noun: type[BaseModel]) -> Finding:
    where = document.locate(path)
    names = ".".join(str(p) for p in path) or "the file"
    message, hint = fault["msg"].removeprefix("Value error, "), ""
    if fault["type"] == "extra_forbidden":
        message = f"unknown field {path[-1]!r}" if path else "unknown field"
        hint = nearest(str(path[-1]), _fields(noun, path))
    elif fault["type"] == "missing":
        message = f"the field {path[-1]!r} is missing"
    else:
        message = f"{names}: {message[0].lower()}{message[1:]}"
    value = fault.get("input")
    actual = f"{type(value).__name__} {value!r}"[:80] if not isinstance(value, dict | list) else type(value).__name__
    if isinstance(value, str) and fault["type"] in ("int_type", "float_type", "bool_type"):
        hint = "this is text; write the number without quotes"
    return Finding(
        "schema-invalid", message, where, actual=actual, hint=hint or "`sitegen schema` prints the form of every file"
    )


def _fields(noun: type[BaseModel], path: tuple[str | int, ...]) -> set[str]:
    """All field names of the noun and of what it holds: candidates for 'did you mean'."""
    names: set[str] = set()
    todo: list[Any] = [noun]
    seen: set[Any] = set()
    while todo:
        kind = todo.pop()
        if kind in seen:
            continue
        seen.add(kind)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            for name, info in kind.model_fields.items():
                names.add(info.alias or name)
                todo.append(info.annotation)
        else:
            todo.extend(a for a in getattr(kind, "__args__", ()) if not isinstance(a, str))
    return names
