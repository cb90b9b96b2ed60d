"""Pins into other repositories: cited without a copy, checked against a checkout or an unpacked archive."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from sitegen.pins import Lock, UpstreamPin, check_upstream, parse_lock, with_upstream

OLD = "import torch\n\n\ndef mix(x, w):\n    m = x @ w\n    m = m.float()\n    return m\n"
NEW = "import os\n" + OLD
REPOSITORY = "owner/model"
DIGEST = hashlib.sha256("".join(OLD.splitlines(keepends=True)[4:7]).encode()).hexdigest()


def git(folder: Path, *arguments: str) -> str:
    settings = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", str(folder), *settings, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A git repository with two revisions; the second one is checked out, and then edited."""
    folder = tmp_path_factory.mktemp("checkout")
    git(folder, "init", "-q", ".")
    revisions = []
    for text in (OLD, NEW):
        (folder / "inference").mkdir(exist_ok=True)
        (folder / "inference/model.py").write_text(text)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", "revision")
        revisions.append(git(folder, "rev-parse", "HEAD"))
    (folder / "inference/model.py").write_text("an edit that is no revision\n")
    return folder, revisions[0], revisions[1]


def pin(
    revision: str, lines: tuple[int, int] = (5, 7), digest: str = "", path: str = "inference/model.py"
) -> UpstreamPin:
    return UpstreamPin("mixes", "hc-mixes", REPOSITORY, revision, path, lines, digest)


def test_without_a_copy_a_pin_is_cited(tmp_path: Path) -> None:
    for copies in ({}, {REPOSITORY: tmp_path / "absent"}, {"owner/other": tmp_path}):
        [state] = check_upstream([pin("a" * 40)], Lock(), copies)
        assert (state.kind, state.finding) == ("cited", None)


def test_a_checkout_is_read_at_the_pinned_revision(checkout: tuple[Path, str, str]) -> None:
    folder, old, new = checkout
    copies = {REPOSITORY: folder}
    [state] = check_upstream([pin(old)], Lock(), copies)
    assert state.kind == "new"
    lock = with_upstream(Lock(), [state], write=True)
    assert lock.upstream["mixes", "hc-mixes"].digest == DIGEST
    assert parse_lock(lock.to_text().encode(), "x") == lock
    assert "float" not in lock.to_text(), "upstream's text is not kept"
    assert check_upstream([pin(old)], lock, copies)[0].kind == "verified"
    [moved] = check_upstream([pin(new)], lock, copies)
    assert (moved.kind, moved.finding.code if moved.finding else "") == ("moved", "pin-moved")
    assert moved.message == f"inference/model.py:5-7 at {old} moved to 6-8 at {new}"
    assert with_upstream(lock, [moved], write=True, ack="mixes").upstream == lock.upstream
    assert check_upstream([pin(new, (6, 8))], lock, copies)[0].kind == "verified"
    [unknown] = check_upstream([pin("b" * 40)], lock, copies)
    assert unknown.kind == "cited" and "does not hold revision" in unknown.message


def test_another_range_is_taken_only_when_acknowledged(checkout: tuple[Path, str, str]) -> None:
    folder, old, _ = checkout
    copies = {REPOSITORY: folder}
    lock = with_upstream(Lock(), check_upstream([pin(old)], Lock(), copies), write=True)
    edited = UpstreamPin("mixes", "hc-mixes", REPOSITORY, old, "inference/model.py", (1, 2))
    [state] = check_upstream([edited], lock, copies)
    assert state.kind == "moved", "the recorded lines stand elsewhere than the spec says"
    [wrong] = check_upstream([pin(old, (1, 3), "0" * 64)], lock, copies)
    assert wrong.kind == "changed" and wrong.message.startswith("text of hc-mixes (inference/model.py:1-3) not found")
    assert with_upstream(lock, [wrong], write=True).upstream == lock.upstream
    assert with_upstream(lock, [wrong], ack="mixes").upstream["mixes", "hc-mixes"].lines == (1, 3)


@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [
        (OLD, "verified", ""),
        (OLD.replace("\n", "\r\n"), "verified", ""),
        (NEW, "moved", "pin-moved"),
        (NEW + OLD, "ambiguous", "pin-ambiguous"),
        (OLD.replace("float", "half"), "changed", "pin-changed"),
        ("x = 1\n", "gone", "pin-gone"),
        (None, "gone", "pin-gone"),
    ],
)
def test_an_archive_is_checked_by_the_digest_in_the_spec(
    tmp_path: Path, text: str | None, kind: str, code: str
) -> None:
    (tmp_path / "inference").mkdir()
    if text is not None:
        (tmp_path / "inference/model.py").write_bytes(text.encode())
    [state] = check_upstream([pin("a" * 40, digest=DIGEST)], Lock(), {REPOSITORY: tmp_path})
    assert (state.kind, state.finding.code if state.finding else "") == (kind, code)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (dict(revision="main"), "schema-invalid"),
        (dict(revision="2cba9e4"), "schema-invalid"),
        (dict(lines=(3, 2)), "schema-invalid"),
        (dict(lines=(0, 2)), "schema-invalid"),
        (dict(path="../x.py"), "path-outside"),
        (dict(path="/etc/passwd"), "path-outside"),
    ],
)
def test_a_malformed_upstream_pin_is_a_finding_even_without_a_copy(change: dict, code: str) -> None:
    [state] = check_upstream([replace(pin("a" * 40), **change)], Lock(), {})
    assert state.kind == "invalid" and state.finding is not None and state.finding.code == code


def test_records_stay_while_no_copy_is_at_hand(tmp_path: Path) -> None:
    (tmp_path / "inference").mkdir()
    (tmp_path / "inference/model.py").write_text(OLD)
    lock = with_upstream(Lock(), check_upstream([pin("a" * 40)], Lock(), {REPOSITORY: tmp_path}), write=True)
    assert with_upstream(lock, check_upstream([pin("a" * 40)], lock, {}), write=True) == lock
    assert with_upstream(lock, [], write=True).upstream == {}
