"""Specs that nobody trusts: every text field, in each of the ways a text can do harm, is a finding or plain text."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, get_args

import pytest
from project_copy import ROOT
from pydantic import BaseModel
from toy_project import NAME, Toy, load_data, toy_component, write_everything, write_toy

from sitegen import claimspec, pipeline, schema, verifier
from sitegen.diagnostics import SpecInvalid
from sitegen.render.settings import Settings

PAYLOAD = """'"><xss onxss=1 href="javascript:xss()">{{ 7*7*7*7 }}{% raw %}${7*7*7*7}</xss><!-- ]]>"""
FILES = (
    "model.yml", "config.yml", "symbols.yml", "sources.yml", "evidence.yml", "policies.yml", "components/c0.yml",
    "gotchas-all.yml", "claims.yml", "family.yml",
)  # fmt: skip
NOUNS = (
    schema.ConfigFile,
    schema.ModelFile,
    schema.SymbolsFile,
    schema.SourcesFile,
    schema.EvidenceFile,
    schema.PoliciesFile,
    schema.Component,
    schema.GotchasFile,
    claimspec.ClaimsFile,
    schema.FamilyFile,
)


#: Of the checkout, ignored by git: fonts cut to the same letters are cut once.
CACHE = ROOT / ".sitegen" / "cache"


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], str]]:
    """(path, text) of every text in nested data."""
    if isinstance(value, str):
        yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from leaves(inner, (*path, key))


def text_fields(noun: type[BaseModel], found: set[str], seen: set[type]) -> None:
    """Names of all fields of a noun, and of the nouns that it holds, that take text."""
    if noun in seen:
        return
    seen.add(noun)

    def walk(annotation: Any, name: str) -> None:
        if annotation is str:
            found.add(name)
        elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
            text_fields(annotation, found, seen)
        elif getattr(annotation, "__origin__", None) is not dict:
            for part in get_args(annotation):
                walk(part, name)
        else:
            walk(get_args(annotation)[1], name)

    for name, info in noun.model_fields.items():
        walk(info.annotation, info.alias or name)


def with_value(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    copy = json.loads(json.dumps(data))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return copy


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    return write_everything(tmp_path_factory.mktemp("hostile"))


def fields_of_the_toy(root: Path) -> list[tuple[str, tuple[Any, ...]]]:
    found = []
    for name in FILES:
        data = load_data(root / f"spec/{NAME}/{name}")
        found += [(name, path) for path, _ in leaves(data)]
    return found


class Reader(HTMLParser):
    """Collects what a browser would act on."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]


def harmful(html: str) -> list[str]:
    reader = Reader()
    reader.feed(html)
    found = [tag for tag in reader.tags if tag in ("xss", "script", "iframe", "object", "base")]
    found += [
        f"{n}={v}" for n, v in reader.attributes if n.startswith("on") or v.strip().lower().startswith("javascript:")
    ]
    return found


def build(root: Path) -> tuple[list[str], str]:
    """-> codes of errors, and all HTML of all pages."""
    try:
        built = pipeline.build(root, Settings(cache=CACHE), [NAME])
    except SpecInvalid as error:
        return [f.code for f in error.findings], ""
    pages = [page.html() for page in built.pages] + [page.markdown() for page in built.pages]
    return [f.code for f in built.findings if f.severity == "error"], "\n".join(pages)


def test_every_text_field_of_the_schema_is_tried(whole: Toy) -> None:
    """A new field of the schema must be used in the toy, so that it is tried below."""
    wanted: set[str] = set()
    for noun in NOUNS:
        text_fields(noun, wanted, {schema.Package})  # instead of a harness; tried in test_package_harness.py
    used: set[str] = set()
    for name in FILES:
        for path, _ in leaves(load_data(whole.root / f"spec/{NAME}/{name}")):
            used |= {str(part) for part in path if not isinstance(part, int)}
    assert sorted(wanted - used) == []


def test_every_field_with_html_scripts_and_templates_is_a_finding_or_plain_text(whole: Toy) -> None:
    """One field at a time, all of them: nothing of the payload becomes an element or an attribute of a page."""
    fields = fields_of_the_toy(whole.root)
    assert len(fields) > 100
    shown = 0
    for name, path in fields:
        file = whole.root / f"spec/{NAME}/{name}"
        kept = file.read_bytes()
        try:
            data = with_value(load_data(file), path, PAYLOAD)
            file.write_text(json.dumps(data), "utf-8")
            start = time.process_time()
            verifier.check(whole.root, NAME)
            assert time.process_time() - start < 1, (name, path)
            codes, html = build(whole.root)
        finally:
            file.write_bytes(kept)
        assert not harmful(html), (name, path, harmful(html))
        assert html or codes, (name, path)
        if html and PAYLOAD[3:7] in html.replace("&lt;", "<"):
            shown += 1
            assert "{{ 7*7*7*7 }}" in html, "a template is shown as it was written"
            assert "2401" not in html and "2,401" not in html, "and not worked out"
    assert shown > 10, "many fields are prose, and prose shows what it was given"


@pytest.mark.parametrize(
    "character", ["\x07", "\x1b", "\x00", "\u202e", "\u200f", "\u2066", "\ufeff", "\u200b", "\U000e0041"]
)
def test_an_invisible_character_in_any_field_is_refused(character: str, whole: Toy) -> None:
    fields = fields_of_the_toy(whole.root)
    for name, path in fields[:: 7 if character != "\u202e" else 1]:
        file = whole.root / f"spec/{NAME}/{name}"
        kept = file.read_bytes()
        data = load_data(file)
        try:
            changed = with_value(data, path, f"a{character}b")
            file.write_text(json.dumps(changed, ensure_ascii=False), "utf-8")
            report = verifier.check(whole.root, NAME)
        finally:
            file.write_bytes(kept)
        found = [f for f in report.findings if f.code == "unsafe-text"]
        assert found and f"U+{ord(character):04X}" in found[0].text(), (name, path)


def test_the_search_can_find_harm() -> None:
    assert harmful("<p><xss></p>") and harmful("<a href=' JavaScript:x'>") and harmful("<p onclick=x>")
    assert not harmful("<p>&lt;xss onxss=1&gt;</p>")


DEEP = "[" * 5_000 + "]" * 5_000
BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x]", *(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 8)}]" for i in range(1, 20))]
)

SYMBOLS = f"spec/{NAME}/symbols.yml"
MERGED = BOMB.replace("[x,", "[{y: 1},").replace("a19: &a19 [", "z: {<<: [")

#: name -> file, content, code
BOMBS = {
    "aliases": (SYMBOLS, BOMB, "yaml-invalid"),
    "merged aliases": (SYMBOLS, MERGED, "yaml-invalid"),
    "deep nesting": (SYMBOLS, f"symbols: {DEEP}\n", "yaml-invalid"),
    "deep blocks": (SYMBOLS, "\n".join("  " * i + "a:" for i in range(900)), "yaml-invalid"),
    "deep JSON": ("config.json", DEEP * 10, "config-invalid"),
    "a huge integer": (SYMBOLS, f"symbols: {{d: {{tex: d, meaning: m, value: {'9' * 100_000}}}}}\n", "yaml-invalid"),
    "a huge integer in JSON": ("config.json", f'{{"dim": {"9" * 4_000}}}', "config-invalid"),
    "a longer one": ("config.json", f'{{"dim": {"9" * 100_000}}}', "config-invalid"),
    "a huge text": (SYMBOLS, f"symbols: {{d: {{tex: d, meaning: {'m' * 1_900_000}}}}}\n", "schema-invalid"),
    "a huge file": (SYMBOLS, "# " + "x" * 3_000_000, "yaml-invalid"),
    "150,000 keys": (SYMBOLS, "{" + ", ".join(f"a{i}: 1" for i in range(150_000)) + "}", "yaml-invalid"),
    "a direction mark in JSON": ("config.json", '{"dim": 8, "note": "a\\u202eb"}', "unsafe-text"),
    "half a character in JSON": ("config.json", '{"dim": 8, "note": "\\ud800"}', "unsafe-text"),
    "a table of another form": ("table.json", '[{"name_pattern": 7}]', "config-invalid"),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_a_finding_within_a_second(name: str, tmp_path: Path) -> None:
    file, content, code = BOMBS[name]
    toy = write_everything(tmp_path)
    (toy.root / file).write_text(content, "utf-8")
    start = time.process_time()
    report = verifier.check(toy.root, NAME)
    assert time.process_time() - start < 1
    assert code in {f.code for f in report.findings} and report.exit_code == 1
    assert all(len(f.text()) < 2_000 for f in report.findings)


def escapes(root: Path, outside: Path) -> Iterator[tuple[str, str, str, str]]:
    """name, file, old, new: ways out of the project."""
    (root / "link.json").symlink_to(outside)
    (root / "links").symlink_to(outside.parent)
    model, component = f"spec/{NAME}/model.yml", f"spec/{NAME}/components/c0.yml"
    paths = ("../outside.json", "/etc/hostname", "~/x.json", "a/../../outside.json", "link.json", "links/outside.json")
    for number, path in enumerate(paths):
        yield f"config {number}", model, "config: config.json", f"config: '{path}'"
        yield f"table {number}", model, "path: table.json", f"path: '{path}'"
        yield f"code {number}", component, "path: code/model.py", f"path: '{path}'"
        yield f"implementation {number}", model, "sources: [code]", f"sources: ['{path}']"


def test_no_path_leaves_the_project(tmp_path: Path) -> None:
    toy = write_everything(tmp_path / "project")
    outside = tmp_path / "outside.json"
    outside.write_text('{"secret": "hunter2"}', "utf-8")
    for name, file, old, new in escapes(toy.root, outside):
        path = toy.root / file
        kept = path.read_text("utf-8")
        assert old in kept
        path.write_text(kept.replace(old, new), "utf-8")
        codes, html = build(toy.root)
        path.write_text(kept, "utf-8")
        assert "path-outside" in codes, (name, codes)
        assert "hunter2" not in html
    secret = tmp_path / "secret.yml"
    secret.write_text("password: hunter2\n", "utf-8")
    for name in ("components/link.yml", "idle.yml"):
        link = toy.root / f"spec/{NAME}/{name}"
        link.symlink_to(secret)
        try:
            built = pipeline.build(toy.root, Settings(cache=CACHE), [NAME])
            files = dict(built.site.files)
        except SpecInvalid:
            files = {}
        link.unlink()
        assert not any(b"hunter2" in data for data in files.values()), "what a link leads to is not published"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    toy = write_toy(tmp_path, [toy_component("c")], config={})
    os.mkfifo(tmp_path / f"spec/{NAME}/components/pipe.yml")
    assert [f for f in toy.findings() if "not a regular file" in f.message]


PROSE = ("title", "text", "meaning", "claim", "scope", "purpose", "origin", "reason", "section", "code")


def test_a_built_site_with_hostile_prose_everywhere_shows_it_and_runs_none(tmp_path: Path) -> None:
    """Through Markdown, the theme and the search index, in all prose fields at once."""
    from public_pages import built

    toy = write_everything(tmp_path)
    for name in FILES:
        file = toy.root / f"spec/{NAME}/{name}"
        data = load_data(file)
        for path, _ in leaves(data):
            if path[-1] in PROSE and not (path[-1] == "code" and isinstance(path[-2], int)):
                data = with_value(data, path, PAYLOAD)
        file.write_text(json.dumps(data), "utf-8")
    site, _ = built(toy)
    pages = list((site / NAME).rglob("*.html"))
    assert len(pages) > 5
    seen = 0
    for page in pages:
        reader = Reader()
        reader.feed(page.read_text("utf-8"))
        assert "xss" not in reader.tags, page
        assert not [a for a in reader.attributes if a[0] == "onxss" or "javascript:xss" in a[1].lower()[:20]], page
        seen += "{{ 7*7*7*7 }}" in page.read_text("utf-8")
    assert seen > 5
    index = json.loads((site / "search/search_index.json").read_text("utf-8"))["docs"]
    assert not [d for d in index if "<xss" in d["text"] or "<xss" in d["title"]], "the search shows its entries as HTML"


#: name -> file, old, new, code shown on the page
BREAKS = {
    "a field of another type": ("model.yml", "schema: 1", "schema: one", "schema-invalid"),
    "no YAML": ("symbols.yml", "symbols:", "symbols: [", "yaml-invalid"),
    "a formula that cannot be rendered": (
        "components/c0.yml",
        'tex: "y = 2 x"',
        "tex: 'y = 2 \\nope{x}'",
        "tex-invalid",
    ),
    "no model any more": ("model.yml", None, "", "config-invalid"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_served_site_survives_a_broken_spec(name: str, tmp_path: Path) -> None:
    """As `mkdocs serve` builds again and again: whole, broken with the finding on a page, and whole again."""
    from public_pages import built

    file, old, new, code = BREAKS[name]
    toy = write_everything(tmp_path)
    path = toy.root / f"spec/{NAME}/{file}"
    kept = path.read_text("utf-8")
    page = toy.root / "site" / NAME / "components/mix/index.html"
    built(toy)
    assert page.is_file()
    if old is None:
        path.unlink()
    else:
        assert old in kept
        path.write_text(kept.replace(old, new, 1), "utf-8")
    site, warnings = built(toy)
    assert [w for w in warnings if code in w], warnings
    if code != "tex-invalid" or (site / "findings/index.html").is_file():
        assert code in (site / "findings/index.html").read_text("utf-8")
    assert (site / "index.html").is_file()
    path.write_text(kept, "utf-8")
    built(toy)
    assert page.is_file() and not (toy.root / "site/findings/index.html").exists()


def test_a_served_site_keeps_pages_that_say_the_same_and_rebuilds_the_others(tmp_path: Path) -> None:
    """What is kept is what a fresh build gives: the edited page and the search have the new words, no other changes."""
    from public_pages import built

    toy = write_everything(tmp_path)
    spec = toy.root / f"spec/{NAME}/components/c0.yml"
    first = served(built, toy)
    before = {path: path.read_text("utf-8") for path in (first / NAME).rglob("index.html")}
    kept = len(SERVED_PAGES)
    spec.write_text(spec.read_text("utf-8").replace("Doubles.", "Doubles ostentatiously."), "utf-8")
    second = served(built, toy)
    after = {path: path.read_text("utf-8") for path in (second / NAME).rglob("index.html")}
    changed = {path.relative_to(second).as_posix() for path in after if after[path] != before[path]}
    assert f"{NAME}/components/mix/index.html" in changed and f"{NAME}/components/other/index.html" not in changed
    assert len(SERVED_PAGES) > kept, "pages were kept in the second build"
    assert "ostentatiously" in (second / "search/search_index.json").read_text("utf-8")
    fresh, _ = built(toy)
    assert after == {path: path.read_text("utf-8") for path in (fresh / NAME).rglob("index.html")}


SERVED_PAGES: list[str] = []


def served(built: Any, toy: Toy) -> Path:
    """A build as `mkdocs serve` makes it: the plugin lives on between builds and starts up once."""
    from sitegen.plugin import _KEPT, SitegenPlugin

    start, context = SitegenPlugin.on_startup, SitegenPlugin.on_page_context

    def on_startup(self: SitegenPlugin, *, command: Any, dirty: bool) -> None:
        del command
        if not self.served:
            start(self, command="serve", dirty=dirty)

    def on_page_context(self: SitegenPlugin, given: Any, *, page: Any, config: Any, nav: Any) -> Any:
        if page.meta.get("template") == _KEPT:
            SERVED_PAGES.append(page.file.src_uri)
        return context(self, given, page=page, config=config, nav=nav)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SitegenPlugin, "on_startup", on_startup)
        patch.setattr(SitegenPlugin, "on_page_context", on_page_context)
        return built(toy)[0]
