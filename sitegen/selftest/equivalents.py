# Mutants that are the same model: each one named, with the reason why no check can tell it apart.
"""`spec/<model>/equivalent.yml`: mutants that are explained, not caught."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

from sitegen import yamlfile
from sitegen.diagnostics import Finding, Location, SpecInvalid, nearest
from sitegen.loader import Sources
from sitegen.schema import Line, Strict

FILE_NAME = "equivalent.yml"


class Equivalent(Strict):
    """One mutant, by the id that `sitegen selftest` prints, and why it is the same model."""

    mutant: Line
    reason: Line


class EquivalentFile(Strict):
    equivalent: list[Equivalent]


@dataclass(frozen=True)
class Equivalents:
    """The reasons by mutant id, with the place of each entry."""

    reasons: dict[str, str]
    places: dict[str, Location]

    def stale(self, known: set[str], caught: dict[str, str]) -> list[Finding]:
        """Entries that match no mutant of the project, or one that a check does catch (id -> finding code)."""
        found = []
        for id, where in self.places.items():
            if id not in known:
                same = [other for other in known if other.rpartition(":")[0] == id.rpartition(":")[0]]
                found.append(
                    Finding(
                        "equivalent-stale",
                        f"no mutant has the id {id!r}",
                        where,
                        expected="a mutant of the project as it is",
                        hint="remove the entry: the line that it speaks of changed"
                        + (f"; {nearest(id, same)}" if same else ""),
                    )
                )
            elif id in caught:
                found.append(
                    Finding(
                        "equivalent-stale",
                        f"the mutant is told apart after all: {id}",
                        where,
                        expected="a mutant that no check tells apart",
                        actual=f"caught by {caught[id]}",
                        hint="remove the entry",
                    )
                )
        return found


def read_equivalents(sources: Sources) -> Equivalents:
    """The file's entries, none where there is no file; raises `SpecInvalid`."""
    path = sources.folder / FILE_NAME
    file = path.relative_to(sources.root).as_posix()
    if not path.is_file():
        return Equivalents({}, {})
    document = yamlfile.load(path.read_bytes(), file)
    try:
        entries = EquivalentFile.model_validate(document.data).equivalent
    except ValidationError as error:
        raise SpecInvalid(
            Finding(
                "schema-invalid", fault["msg"], document.locate(tuple(fault["loc"])), hint="- {mutant: ID, reason: …}"
            )
            for fault in error.errors(include_url=False, include_context=False)
        ) from None
    places = {e.mutant.strip(): document.locate(("equivalent", n)) for n, e in enumerate(entries)}
    return Equivalents({e.mutant.strip(): e.reason.strip() for e in entries}, places)
