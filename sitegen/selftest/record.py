# The score of a full run, kept beside the spec, so that a page can print it and say when it is old.
"""`spec/<model>/selftest.json`: write it, and read it with suspicion."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sitegen import facts
from sitegen.loader import Sources
from sitegen.pins.lock import replace_file

FILE_NAME = "selftest.json"


@dataclass(frozen=True)
class Kind:
    """The figures of one kind of mutants, or of all."""

    name: str
    caught: int
    only_by_pin: int
    survived: int
    equivalent: int

    @property
    def tried(self) -> int:
        return self.caught + self.survived + self.equivalent

    @property
    def executed(self) -> int:
        """Caught by more than a pin."""
        return self.caught - self.only_by_pin


@dataclass(frozen=True)
class SelftestRecord:
    """The last full self-test: its date and figures; `stale` when spec or code changed since."""

    date: str
    seed: int
    total: Kind
    kinds: tuple[Kind, ...]
    stale: bool


def project_digest(sources: Sources) -> str:
    """Digest of what a self-test is made from: specs, configuration, code, and the equivalents."""
    total = hashlib.sha256(facts.code_digest(sources).encode())
    for file in sorted({*sources.files, f"spec/{sources.name}/equivalent.yml"}):
        path = sources.root / file
        total.update(file.encode() + b"\0")
        if path.is_file():
            total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:32]


def write_record(sources: Sources, score: dict[str, Any], date: str) -> Path:
    """Write the record of a full run; `score` is the score's JSON."""
    counts = ("caught", "caught_only_by_pin", "survived", "equivalent")
    body = {
        "schema": 1,
        "model": sources.name,
        "date": date,
        "seed": score["seed"],
        "digest": score["digest"],
        **{name: score[name] for name in counts},
        "kinds": score["kinds"],
        "components": score["components"],
    }
    path = sources.folder / FILE_NAME
    text = json.dumps({**body, "seal": facts.digest(body)}, indent=1, ensure_ascii=False)
    replace_file(path, (text + "\n").encode())
    return path


def read_record(sources: Sources) -> SelftestRecord | None:
    """The record, or None where there is none that can be trusted (an edited one is none)."""
    try:
        data = json.loads((sources.folder / FILE_NAME).read_text("utf-8"))
        seal = data.pop("seal")
        if data["schema"] != 1 or data["model"] != sources.name or seal != facts.digest(data):
            return None
        kinds = tuple(_kind(name, counts) for name, counts in data["kinds"].items())
        total = _kind("all", data)
        return SelftestRecord(data["date"], data["seed"], total, kinds, data["digest"] != project_digest(sources))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _kind(name: str, counts: dict[str, Any]) -> Kind:
    numbers = [counts[key] for key in ("caught", "caught_only_by_pin", "survived", "equivalent")]
    if any(type(number) is not int for number in numbers):
        raise ValueError(f"{name}: counts are whole numbers")
    return Kind(name, *numbers)
