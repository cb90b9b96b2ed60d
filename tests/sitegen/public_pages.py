"""P09 to P12: what becomes of formulas, excerpts, links and titles on a built page."""

from __future__ import annotations

import json
import logging
import re
from html import unescape
from pathlib import Path

import pytest
from click.testing import CliRunner
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort
from public_counts import found, row
from toy_project import NAME, Toy, toy_component, write_toy

from sitegen.cli import main
from sitegen.diagnostics import Location
from sitegen.render import math
from sitegen.render.math import Letter, SymbolMarks

MKDOCS = """
site_name: toy
theme: {name: material, font: false}
repo_url: https://example.org/owner/repo
edit_uri: edit/main/docs/
plugins: [search, sitegen]
markdown_extensions: [attr_list, tables, pymdownx.superfences]
validation: {links: {anchors: warn, unrecognized_links: warn, absolute_links: warn}}
"""


def built(toy: Toy, pages: dict[str, str] | None = None, **changes: object) -> tuple[Path, list[str]]:
    """Build the toy's site with the plugin; -> its folder, and the warnings that would fail a strict build."""
    for name, text in {"mkdocs.yml": MKDOCS, "docs/index.md": "# Home\n", **(pages or {})}.items():
        (toy.root / name).parent.mkdir(parents=True, exist_ok=True)
        (toy.root / name).write_text(text, "utf-8")
    warnings: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            warnings.append(record.getMessage())

    handler = Handler(logging.WARNING)
    logging.getLogger("mkdocs").addHandler(handler)
    try:
        config = load_config(str(toy.root / "mkdocs.yml"), site_dir=str(toy.root / "site"), **changes)
        config.plugins.run_event("startup", command="build", dirty=False)
        build(config)
        config.plugins.run_event("shutdown")
    finally:
        logging.getLogger("mkdocs").removeHandler(handler)
    return toy.root / "site", warnings


def page(site: Path, id: str) -> str:
    return (site / NAME / "components" / id / "index.html").read_text("utf-8")


def text_of(html: str) -> str:
    html = re.sub(r"<(script|style|annotation)\b.*?</\1>", "", html, flags=re.S)
    return unescape(re.sub(r"<[^>]+>", "", html))


# --- P09 ---------------------------------------------------------------------------------------------

FORMULA = r"a<b \quad a_*b_* \quad x \& y"
CODE = 'def f():\n    """\n    ```\n    usage\n    ```\n    """\n'


def p09_texts_arrive_unchanged(folder: Path) -> None:
    more = f"""
explanation:
- {{text: 'returns Tensor<T> and costs $5 or $6', cites: [a]}}
- {{text: 'As in ${FORMULA}$.', cites: [a]}}
steps:
- {{id: s, expr: 'y = x', text: Copies., tex: '{FORMULA}', main: true}}
code:
- {{id: f, path: code/f.py, symbol: f}}
"""
    letters = "{x: {tex: x, meaning: m}, y: {tex: y, meaning: m}}"
    toy = write_toy(folder, [toy_component("c", more=more)], config={}, symbols=letters, files={"code/f.py": CODE})
    CliRunner().invoke(main, ["--root", str(folder), "repin", "--write"])
    site, _ = built(toy)
    html = page(site, "c")
    copies = {unescape(a) for a in re.findall(r"<annotation[^>]*>(.*?)</annotation>", html, re.S)}
    assert FORMULA in copies, copies
    assert "a<b" in text_of(html).replace(" ", ""), "also in a sentence"
    assert "&amp;lt;" not in html and "&amp;amp;" not in html
    assert "returns Tensor<T> and costs $5 or $6" in text_of(html)
    blocks = [text_of(b) for b in re.findall(r"<pre\b.*?</pre>", html, re.S)]
    assert [b for b in blocks if b.strip("\n") == CODE.strip("\n")], blocks


# --- P10 ---------------------------------------------------------------------------------------------

TEX = {
    r"u_{\htmlClass{vl-stream-k}{k}} = 2\,\sigma(m)": "htmlClass",
    r"\href{javascript:alert(1)}{k}": "href",
    r"\includegraphics{https://example.org/x.png}": "includegraphics",
    r"\Sinkhorn(x)": "Sinkhorn",
    "a % b": "%",
    r"\text{kv_source}": "kv_source",
    r"\color{red} k": "color",
}


def p10_no_formula_is_silently_wrong(folder: Path) -> None:
    marks = SymbolMarks()
    tex = r"u_{k} = 2\,\sigma(m)"
    html = math.block_formula(math.mark_letters(tex, [Letter("k", "k")], marks), tex, marks)
    assert '<mrow class="ms-sym" data-sym="k"><mi>k</mi></mrow>' in html, "letters are marked for highlighting"
    assert "merror" not in html and "cc0000" not in html and "red" not in html
    for number, (text, says) in enumerate(TEX.items()):
        symbol = f"{{x: {{tex: '{text}', meaning: m}}}}"
        toy = write_toy(folder / str(number), [toy_component("c", [row("w", "[2]", "2")])], config={}, symbols=symbol)
        finding = found(toy.findings(), "tex-invalid", says)
        assert finding.where.file == "spec/toy/symbols.yml" and finding.where.column
    letters = "{x: {tex: x, meaning: m}, y: {tex: y, meaning: m}}"
    for tex in (r"y = 2 \Double(x)", r"y = 2 \text{kv_source}"):
        step = f"\nsteps:\n- {{id: s, expr: 'y = 2*x', text: Doubles., tex: '{tex}'}}\n"
        toy = write_toy(folder / "step", [toy_component("c", more=step)], config={}, symbols=letters)
        finding = found(toy.findings(), "tex-invalid", "")
        assert (finding.component, finding.statement) == ("c", "step:s")
    assert math.tex_findings("k", Location("x")) == []


# --- P11 ---------------------------------------------------------------------------------------------

LINKS = '# Links\n\n[a](missing.md#x) [b](../nope) [c](index.md#nope) <a href="../missing/">d</a>\n'


def p11_dead_links_fail_the_build(folder: Path) -> None:
    for directories in (True, False):
        toy = write_toy(folder / str(directories), [toy_component("c")], config={})
        site, warnings = built(toy, {"docs/links.md": LINKS}, use_directory_urls=directories)
        for target in ("missing.md", "../nope", "#nope", "../missing/"):
            assert [w for w in warnings if target in w], (target, warnings)
        assert site.is_dir()
    toy = write_toy(folder / "right", [toy_component("c")], config={})
    site, warnings = built(toy)
    assert not warnings, "pages that the plugin makes have no dead link, and all stand in the navigation"
    assert "https://example.org/owner/repo/edit/main/spec/toy/components/c0.yml" in page(site, "c")
    assert "docs/toy" not in page(site, "c")
    with pytest.raises(Abort):
        built(Toy(folder / "True"), {"docs/links.md": '# Links\n\n<a href="../missing/">d</a>\n'}, strict=True)


# --- P12 ---------------------------------------------------------------------------------------------

TITLES = {"comb": "流组合", "size": "Größe Σ", "comb2": "$C_{jk}$ comb"}


def p12_addresses_come_from_ids(folder: Path) -> None:
    components = [toy_component(id, title=f"'{title}'") for id, title in TITLES.items()]
    site, warnings = built(write_toy(folder / "titles", components, config={}))
    assert not warnings
    index = json.loads((site / "search/search_index.json").read_text("utf-8"))["docs"]
    for id, title in TITLES.items():
        html = page(site, id)
        shown = title.replace("$C_{jk}$", "C_{jk}")
        heading = re.search(r"<h1[^>]*>(.*?)</h1>", html, re.S)
        assert heading and title.split()[-1] in text_of(heading.group(1)), html[:200]
        assert not re.search(r'id="_\d+"', html)
        assert [
            d
            for d in index
            if d["location"] == f"{NAME}/components/{id}/" and shown.split()[-1] in unescape(d["title"])
        ]
    renamed = [text.replace("流组合", "组合") for text in components]
    again, _ = built(write_toy(folder / "renamed", renamed[::-1], config={}))
    anchors = [set(re.findall(r'\bid="([^"]+)"', page(s, "comb"))) for s in (site, again)]
    assert anchors[0] == anchors[1], "a new title and another order change no address"
    for bad in ("sub/../x", "a b", "Comb", "/x", "x/", "..", "größe", "a\\b"):
        text = toy_component("comb").replace("id: comb", f"id: '{bad}'")
        toy = write_toy(folder / "bad", [text, toy_component("other")], config={}, parts=["other"])
        assert found(toy.findings(), "schema-invalid", "id").where.file.endswith("c0.yml"), bad


PAGES = {
    "P09": p09_texts_arrive_unchanged,
    "P10": p10_no_formula_is_silently_wrong,
    "P11": p11_dead_links_fail_the_build,
    "P12": p12_addresses_come_from_ids,
}
