# How long everything takes: checking, verifying, building the site, and seeing an edit while it is served.
"""Times the tool on this repository, beside a plain MkDocs + Material build of the same pages.

    python benchmarks/site_speed.py                      # everything, some minutes
    python benchmarks/site_speed.py --only check,serve   # some of: check verify build serve pages

Works on a copy of the repository without any cache.  A cold build starts from nothing; the rebuild is timed from
the change of a spec's file until `mkdocs serve` gives both the page and a search index with the new words.  Time per
page is that of builds of the first 100, 300 and 620 pages.  Plain builds take the tree of `sitegen render`, which has
the same pages as Markdown, without this project's plugin.

Exit code 1 if a figure misses its bound.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import platform
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "site-speed.json"
SIZES = (100, 300, 620)
PARTS = ("check", "verify", "build", "serve", "pages")
#: Figure -> its bound, in seconds or bytes.
BOUNDS = {"check": 3.0, "verify": 120.0, "cold_build": 40.0, "rebuild_in_serve": 8.0, "search_index_bytes": 5_000_000}
#: Time per page at the largest size may be at most this times that at the smallest.
GROWTH = 1.15
SERVE_TIMEOUT = 300.0


@dataclass
class Figures:
    """What was measured: figure -> value, and per size the time per page of both builds."""

    values: dict[str, float] = field(default_factory=dict)
    per_page: list[dict[str, float]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def missed(self) -> list[str]:
        """Figures that are over their bounds, in words."""
        found = [
            f"{name}: {self.values[name]:,.2f} is over {bound:,.0f}"
            for name, bound in BOUNDS.items()
            if name in self.values and self.values[name] > bound
        ]
        if len(self.per_page) > 1:
            first, last = self.per_page[0], self.per_page[-1]
            if last["milliseconds"] > GROWTH * first["milliseconds"]:
                found.append(
                    f"time per page grows: {first['milliseconds']:.1f} ms at {first['pages']:.0f} pages, "
                    f"{last['milliseconds']:.1f} ms at {last['pages']:.0f}"
                )
        return found + self.problems


def say(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def copy_of_repository(target: Path) -> Path:
    """All tracked and new files, without caches and ignored ones."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.decode()
    for name in filter(None, listed.split("\0")):
        source = ROOT / name
        if source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)
    return target


def environment(root: Path) -> dict[str, str]:
    """The copy's own code first; no notices of other packages in the output."""
    paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "NO_MKDOCS_2_WARNING": "1"}


def timed(command: Sequence[str], root: Path) -> tuple[float, int, str]:
    """Seconds, exit code and the end of the output of a command."""
    start = time.perf_counter()
    done = subprocess.run(command, cwd=root, env=environment(root), capture_output=True, text=True)
    seconds = time.perf_counter() - start
    return seconds, done.returncode, (done.stdout + done.stderr)[-2000:]


def measure_commands(root: Path, parts: Sequence[str], figures: Figures) -> None:
    if "check" in parts:
        say("sitegen check, three times")
        runs = [timed([sys.executable, "-m", "sitegen", "check"], root) for _ in range(3)]
        figures.values["check"] = statistics.median(seconds for seconds, _, _ in runs)
        note_failure(figures, "sitegen check", runs[-1])
    if "verify" in parts:
        say("sitegen verify --force")
        run = timed([sys.executable, "-m", "sitegen", "verify", "--force"], root)
        figures.values["verify"] = run[0]
        note_failure(figures, "sitegen verify --force", run)


def note_failure(figures: Figures, name: str, run: tuple[float, int, str]) -> None:
    if run[1] != 0:
        figures.problems.append(f"{name} ended with {run[1]}: {run[2].strip()[-300:]}")


def measure_builds(root: Path, scratch: Path, figures: Figures) -> None:
    say("a cold site build")
    shutil.rmtree(root / ".sitegen", ignore_errors=True)
    site = scratch / "cold"
    run = timed([sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(site)], root)
    figures.values["cold_build"] = run[0]
    note_failure(figures, "mkdocs build", run)
    say("the same with caches")
    run = timed([sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(scratch / "warm")], root)
    figures.values["warm_build"] = run[0]
    index = site / "search" / "search_index.json"
    if index.is_file():
        figures.values["search_index_bytes"] = index.stat().st_size
        figures.values["pages"] = sum(1 for _ in site.rglob("index.html"))
        figures.values["site_bytes"] = sum(p.stat().st_size for p in site.rglob("*") if p.is_file())
    say("a plain build of the same pages")
    tree = plain_tree(root, scratch, figures)
    if tree is not None:
        command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(scratch / "plain")]
        run = timed(command, tree)
        figures.values["plain_build"] = run[0]
        note_failure(figures, "the plain build", run)


def plain_tree(root: Path, scratch: Path, figures: Figures) -> Path | None:
    """The tree of `sitegen render`; made once."""
    tree = scratch / "tree"
    if not tree.exists():
        run = timed([sys.executable, "-m", "sitegen", "render", "--out", str(tree)], root)
        note_failure(figures, "sitegen render", run)
    return tree if tree.exists() else None


# --- while serving ---------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return str(answer.read().decode("utf-8"))


def until(holds: Callable[[], bool], seconds: float, server: subprocess.Popen[bytes]) -> float:
    """Seconds until something holds; raises `TimeoutError`, or `RuntimeError` when the server ends."""
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        if server.poll() is not None:
            raise RuntimeError(f"the server ended with {server.returncode}")
        with contextlib.suppress(OSError, urllib.error.URLError):
            if holds():
                return time.perf_counter() - start
        time.sleep(0.05)
    raise TimeoutError(f"not within {seconds:.0f} s")


@contextlib.contextmanager
def served(root: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "mkdocs", "serve", "--quiet", "--dev-addr", f"127.0.0.1:{port}"]
    server = subprocess.Popen(
        command, cwd=root, env=environment(root), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield server
    finally:
        server.send_signal(signal.SIGINT)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def edited_component(root: Path) -> tuple[Path, str, str]:
    """A spec file with one component, the component's id and the model's name."""
    import yaml

    for path in sorted((root / "spec").glob("*/components/**/*.yml")):
        data = yaml.safe_load(path.read_text("utf-8"))
        entries = data.get("components", [data]) if isinstance(data, dict) else []
        for entry in entries:
            text = entry.get("purpose", {}).get("text", "")
            if text and "$" not in str(entry.get("id")) and "id: " + entry["id"] in path.read_text("utf-8"):
                return path, entry["id"], path.relative_to(root / "spec").parts[0]
    raise RuntimeError("no component to edit")


def measure_serve(root: Path, figures: Figures) -> None:
    """From the change of one spec's file to the page and the whole search index."""
    path, id, model = edited_component(root)
    text, port = path.read_text("utf-8"), free_port()
    base = f"http://127.0.0.1:{port}"
    page, index = f"{base}/{model}/components/{id}/", f"{base}/search/search_index.json"
    say(f"mkdocs serve, and three edits of {id}")
    times = []
    try:
        with served(root, port) as server:
            until(lambda: "<article" in read(page), SERVE_TIMEOUT, server)
            for number in range(3):
                word = f"Edited{number}times"
                changed = with_word(text, id, word)
                time.sleep(1.0)  # the builder watches again
                path.write_text(changed, "utf-8")
                seen = lambda word=word: word in read(page) and complete(read(index), word)  # noqa: E731
                times.append(until(seen, SERVE_TIMEOUT, server))
    except (TimeoutError, RuntimeError) as error:
        figures.problems.append(f"mkdocs serve: {error}")
    finally:
        path.write_text(text, "utf-8")
    if times:
        figures.values["rebuild_in_serve"] = statistics.median(times)
        figures.values["rebuild_in_serve_slowest"] = max(times)


def with_word(text: str, id: str, word: str) -> str:
    """The spec with a word in front of the title of one component."""
    at = text.index(f"id: {id}")
    title = text.index("title: ", at) + len("title: ")
    return text[:title] + f"{word} " + text[title:].lstrip("\"'") if text[title] not in "\"'" else (
        text[: title + 1] + f"{word} " + text[title + 1 :]
    )


def complete(index: str, word: str) -> bool:
    """Whether a search index is whole and holds a word."""
    try:
        docs = json.loads(index)["docs"]
    except (ValueError, KeyError):
        return False
    return len(docs) > 1 and any(word in entry["title"] for entry in docs)


# --- time per page ----------------------------------------------------------------------------------


def measure_pages(root: Path, scratch: Path, figures: Figures) -> None:
    tree = plain_tree(root, scratch, figures)
    for size in SIZES:
        say(f"{size} pages, with the plugin and plain")
        ours = child("ours", root, root, size, scratch / f"ours{size}")
        plain = child("plain", tree, root, size, scratch / f"plain{size}") if tree is not None else None
        if ours is None or ours["pages"] < size:
            made = "none" if ours is None else f"{ours['pages']:.0f}"
            figures.problems.append(f"no {size} pages to build: {made} were made")
            if ours is None:
                continue
        row = {"pages": ours["pages"], "milliseconds": 1000 * ours["seconds"] / ours["pages"]}
        if plain is not None and plain["pages"]:
            row["plain_pages"] = plain["pages"]
            row["plain_milliseconds"] = 1000 * plain["seconds"] / plain["pages"]
        figures.per_page.append(row)
        if ours["pages"] < size:
            return


def child(kind: str, project: Path, root: Path, size: int, out: Path) -> dict[str, float] | None:
    """Build some pages in a process of its own; None when it fails."""
    command = [sys.executable, str(Path(__file__).resolve()), "--child", kind, str(project), str(size), str(out)]
    done = subprocess.run(command, cwd=project, env=environment(root), capture_output=True, text=True)
    if done.returncode != 0:
        say(done.stderr[-1000:])
        return None
    return dict(json.loads(done.stdout.splitlines()[-1]))


def build_some(kind: str, project: Path, size: int, out: Path) -> dict[str, float]:
    """In the child: the first `size` generated pages, timed from reading the configuration to the built site."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    if kind == "ours":
        limit_plugin(size)
    start = time.perf_counter()
    config = load_config(config_file=str(project / "mkdocs.yml"), site_dir=str(out))
    if kind == "plain":
        limit_tree(config, size)
    config.plugins.run_event("startup", command="build", dirty=False)
    build(config)
    seconds = time.perf_counter() - start
    models = {path.name for path in (project / "spec").iterdir()} if (project / "spec").is_dir() else None
    made = [p.relative_to(out).parts for p in out.rglob("index.html")]
    hand = {path.stem for path in Path(config.docs_dir).glob("*.md")}
    pages = [parts for parts in made if (parts[0] in models if models is not None else parts[0] not in hand)]
    return {"seconds": seconds, "pages": float(sum(1 for parts in pages if len(parts) > 1))}


def limit_plugin(size: int) -> None:
    """Let the render stage make the first pages only, and list no others in the navigation."""
    from sitegen.render import site

    make_pages, make_nav = site.model_pages, site.model_nav
    kept: set[str] = set()

    def model_pages(workshop: Any) -> Iterator[Any]:
        for page in itertools.islice(make_pages(workshop), max(0, size - len(kept))):
            kept.add(page.path)
            yield page

    def thinned(item: Any) -> Any:
        items = tuple(other for inner in item.items if (other := thinned(inner)) is not None)
        if item.items:
            return site.NavItem(item.title, item.path, items) if items else None
        return item if item.path in kept else None

    def model_nav(workshop: Any) -> Any:
        return thinned(make_nav(workshop)) or site.NavItem("Empty")

    site.model_pages, site.model_nav = model_pages, model_nav


def limit_tree(config: Any, size: int) -> None:
    """Take the first generated pages of the tree only, in the order of its navigation."""
    docs = Path(config.docs_dir)

    def listed(items: Any) -> Iterator[str]:
        for item in items:
            for value in item.values() if isinstance(item, dict) else [item]:
                yield from listed(value) if isinstance(value, list) else [value]

    generated = [path for path in listed(config.nav) if "/" in path]
    kept = set(generated[:size])

    def thinned(items: Any) -> list[Any]:
        found: list[Any] = []
        for item in items:
            title, value = next(iter(item.items()))
            if isinstance(value, list):
                inner = thinned(value)
                found += [{title: inner}] if inner else []
            elif "/" not in value or value in kept:
                found.append(item)
        return found

    config.nav = thinned(config.nav)
    config.exclude_docs = excluded(sorted(set(generated) - kept))
    assert docs.is_dir()


def excluded(paths: Sequence[str]) -> Any:
    import pathspec

    return pathspec.GitIgnoreSpec.from_lines(f"/{path}" for path in paths)


# --- report -----------------------------------------------------------------------------------------


def table(figures: Figures) -> str:
    lines = []
    for name, value in figures.values.items():
        bound = f"  (at most {BOUNDS[name]:,.0f})" if name in BOUNDS else ""
        shown = f"{value:,.0f}" if name.endswith("bytes") or name == "pages" else f"{value:.2f} s"
        lines.append(f"{name:28}{shown:>16}{bound}")
    for row in figures.per_page:
        plain = f", plain {row['plain_milliseconds']:.1f} ms" if "plain_milliseconds" in row else ""
        lines.append(f"{row['pages']:.0f} pages: {row['milliseconds']:.1f} ms per page{plain}")
    return "\n".join(lines)


def machine() -> dict[str, Any]:
    import mkdocs

    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "python": platform.python_version(),
        "mkdocs": mkdocs.__version__,
        "processors": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load_before": load,
        "date": time.strftime("%Y-%m-%d"),
    }


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        kind, project, size, out = sys.argv[2:6]
        print(json.dumps(build_some(kind, Path(project), int(size), Path(out))))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help=f"comma-separated: {', '.join(PARTS)}")
    parser.add_argument("--output", type=Path, default=RESULT)
    chosen = parser.parse_args()
    parts = [part for part in chosen.only.split(",") if part]
    unknown = sorted(set(parts) - set(PARTS))
    if unknown:
        parser.error(f"no part {unknown[0]!r}; known ones: {', '.join(PARTS)}")
    figures, about = Figures(), machine()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        root = copy_of_repository(scratch / "project")
        measure_commands(root, parts, figures)
        if "build" in parts:
            measure_builds(root, scratch, figures)
        if "serve" in parts:
            measure_serve(root, figures)
        if "pages" in parts:
            measure_pages(root, scratch, figures)
    print(table(figures))
    for problem in figures.missed():
        print(f"MISSED {problem}")
    report = {**about, "seconds": figures.values, "per_page": figures.per_page, "missed": figures.missed()}
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    return 1 if figures.missed() else 0


if __name__ == "__main__":
    sys.exit(main())
