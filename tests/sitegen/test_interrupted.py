"""Runs that are killed at any moment, and two at once: each file is old or new, and the next run says what is stale."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from toy_project import NAME, Toy, toy_component, write_toy

from sitegen import facts, verifier
from sitegen.cli import main
from sitegen.outputs.tree import MARK, WHOLE, write_tree

pytest.importorskip("torch")

ROW = '{id: w, tensor: w, axes: ["2", "4"], count: "2*4", dtype: F32, text: w}'
PIN = "\ncode:\n- {id: p, path: code/model.py, symbol: call}\n"
#: What Python reports before it does it: every step at which a file can change.
STEPS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod")


def forked(action: Callable[[], object], root: Path, at: int) -> bool:
    """Run in a child of this process that kills itself before its step number `at` below `root`; -> was it killed?"""
    child = os.fork()
    if child == 0:
        seen = 0

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal seen
            if event not in STEPS or not isinstance(arguments[0], str | bytes):
                return
            writes = event != "open" or bool(int(arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
            if writes and os.fsdecode(arguments[0]).startswith(str(root)):
                seen += 1
                if seen == at:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        try:
            action()
        except BaseException:
            os._exit(3)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0, "an interrupted run before it must not break this one"
    return False


def contents(folder: Path) -> dict[str, bytes]:
    """Visible files; what a killed run leaves beside them begins with a point."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            found[path.relative_to(folder).as_posix()] = path.read_bytes()
    return found


def restore(folder: Path, files: dict[str, bytes]) -> None:
    for name in contents(folder).keys() - files.keys():
        (folder / name).unlink()
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def every_step(
    action: Callable[[], object], folder: Path, root: Path, old: dict[str, bytes], stride: int = 1
) -> Iterator[dict[str, bytes]]:
    """Kill the action before its steps in turn; yields what stands in `folder` after each, the whole run last."""
    at = 1 - stride
    while True:
        at += stride
        restore(folder, old)
        killed = forked(action, root, at)
        yield contents(folder)
        if not killed:
            break
    assert at > 3, "the action has steps at which it can be killed"


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    """A project with facts and pins that were right before its code was edited."""
    config = {"tensors": [["w", [2, 4], "F32"]]}
    files = {"docs/index.md": "# Home\n", "mkdocs.yml": "site_name: toy\nnav: [{Home: index.md}]\n"}
    toy = write_toy(tmp_path / "toy", [toy_component("c", [ROW], more=PIN)], config=config, files=files)
    assert CliRunner().invoke(main, ["--root", str(toy.root), "repin", "--write"]).exit_code == 0
    assert toy.verify("meta", write=True).exit_code == 0
    assert not [f for f in verifier.check(toy.root, NAME).findings if f.code == "facts-stale"]
    return toy


def test_verify_write_leaves_old_or_new_facts(toy: Toy) -> None:
    folder = toy.root / f"spec/{NAME}/facts"
    old = contents(folder)
    code = toy.root / "code/model.py"
    code.write_text(code.read_text("utf-8") + "\n\ndef more():\n    return 2\n", "utf-8")
    seen = list(every_step(lambda: toy.verify("meta", write=True), folder, toy.root, old))
    new = seen[-1]
    assert new != old and seen[0] == old
    for state in seen:
        assert state in (old, new)
        restore(folder, state)
        findings = verifier.check(toy.root, NAME).findings
        assert [f.code for f in findings if f.code.startswith("facts")] == (["facts-stale"] if state == old else [])
    assert not list(folder.glob(".*")), "the run that finished swept up what the killed ones left"


def test_repin_write_leaves_an_old_or_new_record(toy: Toy) -> None:
    folder = toy.root / f"spec/{NAME}"
    old = contents(folder)
    code = toy.root / "code/model.py"
    code.write_text("# a line more\n" + code.read_text("utf-8"), "utf-8")
    arguments = ["--root", str(toy.root), "repin", "--write"]
    seen = list(every_step(lambda: CliRunner().invoke(main, arguments), folder, toy.root, old))
    new = seen[-1]
    assert new["pins.json"] != old["pins.json"]
    for state in seen:
        assert {n: c for n, c in state.items() if n != "pins.json"} == {
            n: c for n, c in old.items() if n != "pins.json"
        }
        assert state["pins.json"] in (old["pins.json"], new["pins.json"])
        restore(folder, state)
        moved = [f for f in verifier.check(toy.root, NAME).findings if f.code.startswith("pin")]
        assert [f.code for f in moved] == (["pin-moved"] if state["pins.json"] == old["pins.json"] else [])


def test_render_leaves_each_file_old_or_new_and_says_that_it_was_stopped(toy: Toy, tmp_path: Path) -> None:
    out = tmp_path / "tree"
    render = lambda: write_tree(toy.root, out, [NAME])  # noqa: E731
    render()
    old = contents(out)
    component = toy.root / f"spec/{NAME}/components/c0.yml"
    component.write_text(component.read_text("utf-8").replace("title: Part", "title: Another part"), "utf-8")
    seen = list(every_step(render, out, out, old, stride=7))
    new = seen[-1]
    assert new != old and any(state not in (old, new) for state in seen), "some were stopped half way"
    for state in seen:
        assert all(content in (old.get(name), new.get(name)) for name, content in state.items())
    restore(out, old)
    assert forked(render, out, 6)
    assert [f for f in render() if "left unfinished" in f.message]
    assert contents(out) == new and (out / MARK).read_bytes() == WHOLE
    assert not [f for f in render() if "left unfinished" in f.message]


def test_two_runs_at_once_do_not_corrupt_each_other(toy: Toy, tmp_path: Path) -> None:
    out = tmp_path / "tree"
    write_tree(toy.root, out, [NAME])
    whole = contents(out)
    code = toy.root / "code/model.py"

    def together(*actions: Callable[[], object]) -> None:
        children = []
        for action in actions:
            child = os.fork()
            if child == 0:
                try:
                    action()
                except BaseException:
                    os._exit(3)
                os._exit(0)
            children.append(child)
        assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * len(children)

    for number in range(3):
        code.write_text(f"def call():\n    return 1\n\n\ndef n{number}():\n    return 1\n", "utf-8")
        (out / "docs/index.md").write_text("older", "utf-8")
        together(*[lambda: toy.verify("meta", write=True)] * 2, *[lambda: write_tree(toy.root, out, [NAME])] * 2)
        known, findings = facts.read(toy.accounts().model.sources, "meta")
        assert known is not None and not findings
    write_tree(toy.root, out, [NAME])
    assert contents(out).keys() == whole.keys()


def test_the_killer_kills() -> None:
    """A plain write is caught half way by the same means, so the tests above can fail."""
    folder = Path(os.environ.get("TMPDIR", "/tmp")) / f"killer-{os.getpid()}"
    folder.mkdir()
    try:
        target = folder / "facts.json"
        target.write_text("old", "utf-8")

        def careless() -> None:
            target.write_text("", "utf-8")  # truncated first
            target.write_text("new", "utf-8")

        assert forked(careless, folder, 2)
        assert target.read_text("utf-8") == ""
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
