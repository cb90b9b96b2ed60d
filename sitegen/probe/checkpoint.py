# A checkpoint folder against the implementation: names, shapes, number types and element counts, read from
# the headers of its safetensors shards alone.  A header is someone else's text and is read with suspicion.
"""The checkpoint level."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from sitegen import accounting
from sitegen.accounting import Accounts
from sitegen.diagnostics import NOWHERE, Finding, Location, SitegenError, SpecInvalid
from sitegen.probe import census
from sitegen.probe.census import Counted
from sitegen.probe.result import LevelResult

INDEX = "model.safetensors.index.json"
#: Limit of the format itself, so that a forged length costs nothing.
MAX_HEADER = 100_000_000
#: A folder of another model differs in everything; past this many kinds of difference only their number is told.
MAX_FINDINGS = 60

#: Bits of one element, by the format's names.
BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32, "I64": 64, "U64": 64, "F64": 64, "C64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip
_PACKED = re.compile(r"(?P<container>\w+)\s*\(packed E(?P<exponent>\d)M(?P<mantissa>\d)\)")
_HINT = "fetch the file again; a shard is 8 bytes of length, a JSON header, and the data it describes"


@dataclass(frozen=True)
class Stored:
    """A tensor as a header states it: stored shape and the format's type name."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    file: str


def stored_form(shape: Iterable[int], dtype: str) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """How a tensor of a logical shape is stored: its shape, and the type names that may stand in a header.

    `I8(packed E2M1)` keeps two 4-bit codes in a byte along the last axis; a byte may be called I8 or U8.
    """
    shape = tuple(shape)
    packed = _PACKED.fullmatch(dtype.strip())
    if packed is None:
        return shape, (dtype,)
    container = packed["container"]
    per = BITS.get(container, 8) // (1 + int(packed["exponent"]) + int(packed["mantissa"]))
    names = ("I8", "U8") if container in ("I8", "U8") else (container,)
    return (*shape[:-1], -(-shape[-1] // max(1, per))), names


# --- reading a folder --------------------------------------------------------------------------------


def digest(folder: Path) -> str:
    """Digest of all headers, file lengths and the index: the inputs of this level."""
    total = hashlib.sha256()
    for path in sorted((*folder.glob("*.safetensors"), *folder.glob(INDEX))):
        try:
            with path.open("rb") as stream:
                size = path.stat().st_size
                total.update(f"{path.name}\0{size}\0".encode())
                length = size if path.name == INDEX else min(size, MAX_HEADER, int.from_bytes(stream.read(8), "little"))
                total.update(stream.read(length))
        except OSError as error:
            total.update(f"{path.name}\0{error.strerror}\0".encode())
    return total.hexdigest()


def read_folder(folder: Path) -> tuple[dict[str, Stored], list[Finding]]:
    """All tensors of a folder by name, and what is wrong with its files.

    Raises `SitegenError` when there is no folder or no shard in it.
    """
    if not folder.is_dir():
        raise SitegenError(f"no checkpoint folder {folder}", hint="--checkpoint names a folder of safetensors shards")
    index, findings = read_index(folder)
    names = sorted(p.name for p in folder.glob("*.safetensors"))
    if not names and index is None:
        raise SitegenError(f"{folder} holds no .safetensors file", hint="--checkpoint names the folder of the shards")
    if index is not None:
        listed = sorted(set(index.values()))
        for name in names:
            if name not in listed:
                message = f"the index does not name the file {name}, so it was not read"
                findings.append(Finding("checkpoint-mismatch", message, place(folder, name), severity="warning"))
        names = listed
    found: dict[str, Stored] = {}
    unread: set[str] = set()
    for name in names:
        try:
            tensors = read_header(folder / name, place(folder, name))
        except _Refused as error:
            unread.add(name)
            findings.append(error.finding)
            continue
        for tensor in tensors:
            twin = found.setdefault(tensor.name, tensor)
            if twin is not tensor:
                findings.append(
                    Finding(
                        "checkpoint-mismatch",
                        f"two files hold the tensor {tensor.name[:200]}",
                        place(folder, name),
                        expected="one file per tensor",
                        actual=f"{twin.file} and {name}",
                    )
                )
    if index is not None:
        findings += index_findings(folder, index, found, unread)
    return found, grouped(findings)


def read_index(folder: Path) -> tuple[dict[str, str] | None, list[Finding]]:
    """Tensor name -> file by the index, None without a usable one; and what is wrong with it."""
    path, where = folder / INDEX, place(folder, INDEX)

    def invalid(problem: str) -> tuple[None, list[Finding]]:
        return None, [Finding("checkpoint-mismatch", f"the index {problem}", where, hint="fetch it again")]

    if not path.exists():
        return None, []
    try:
        data = json.loads(path.read_bytes().decode("utf-8"), object_pairs_hook=_without_repeats)
    except (OSError, ValueError, RecursionError) as error:
        return invalid(f"cannot be read: {str(error)[:120]}")
    table = data.get("weight_map") if isinstance(data, dict) else None
    if not isinstance(table, dict) or not all(isinstance(v, str) for v in table.values()):
        return invalid("has no weight_map from tensor names to files")
    for name in sorted(set(table.values())):
        if not name.endswith(".safetensors") or Path(name).name != name or "\\" in name or "\0" in name:
            return invalid(f"names {name[:120]!r}, which is no shard beside it")
    return table, []


def index_findings(
    folder: Path, index: Mapping[str, str], found: Mapping[str, Stored], unread: set[str]
) -> Iterator[Finding]:
    """The index against the headers: each tensor in the file it names, and the totals it declares."""
    where = place(folder, INDEX)
    for name, file in index.items():
        actual = found[name].file if name in found else "no file"
        if file not in unread and actual != file:
            message = f"the index names another file for {name[:200]} than the one that holds it"
            yield Finding("checkpoint-mismatch", message, where, expected=f"{file} in the index", actual=actual)
    for name, tensor in found.items():
        if name not in index:
            message = f"the index does not list {name[:200]}"
            yield Finding(
                "checkpoint-mismatch", message, where, expected="every tensor of its files", actual=tensor.file
            )
    metadata = json.loads((folder / INDEX).read_text("utf-8")).get("metadata")
    seen = {
        "total_size": sum(math.prod(t.shape) * BITS[t.dtype] // 8 for t in found.values()),
        "total_parameters": sum(math.prod(t.shape) for t in found.values()),
    }
    for key, value in seen.items():
        declared = metadata.get(key) if isinstance(metadata, dict) else None
        if declared is not None and declared != value and not unread:
            yield Finding(
                "checkpoint-mismatch",
                f"the index declares another {key} than its files hold; the declared figure is not used",
                where,
                expected=f"{value:,} from the headers",
                actual=f"{str(declared)[:40]} declared",
                severity="warning",
            )


class _Refused(Exception):
    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def read_header(path: Path, where: Location) -> list[Stored]:
    """The tensors of one shard; raises `_Refused` when header and file do not fit each other."""

    def refuse(problem: str, expected: str = "", actual: str = "") -> _Refused:
        message = f"not a whole safetensors file: {problem}"
        return _Refused(Finding("checkpoint-mismatch", message, where, expected, actual, _HINT))

    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            start = stream.read(8)
            length = int.from_bytes(start, "little")
            if len(start) < 8 or length > size - 8 or length > MAX_HEADER:
                raise refuse("its header leaves the file", f"at most {max(0, size - 8):,} bytes", f"{length:,} bytes")
            content = stream.read(length)
    except OSError as error:
        raise refuse(f"it cannot be read ({error.strerror})") from None
    try:
        header = json.loads(content.decode("utf-8"), object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise refuse(f"its header is no JSON ({str(error)[:120]})") from None
    if not isinstance(header, dict):
        raise refuse("its header is no JSON object")
    header.pop("__metadata__", None)
    tensors, ranges = [], []
    for name, entry in header.items():
        problem = entry_problem(entry)
        if problem:
            raise refuse(f"the tensor {name[:200]!r} {problem}")
        tensors.append(Stored(name, tuple(entry["shape"]), entry["dtype"], path.name))
        ranges.append((*entry["data_offsets"], name))
    end = 0
    for first, last, name in sorted(ranges):
        if first != end:
            raise refuse(
                f"the data of {name[:200]!r} overlaps another tensor or leaves a gap", f"from {end}", f"from {first}"
            )
        end = last
    if end != size - 8 - length:
        raise refuse(
            "the data is cut off or longer than the header says", f"{end:,} bytes", f"{size - 8 - length:,} bytes"
        )
    return tensors


def entry_problem(entry: Any) -> str:
    """What is wrong with a header's entry of a tensor; empty when nothing is."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        return "has no dtype, shape and data_offsets"
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in BITS:
        return f"has the type {str(dtype)[:40]!r}, which the format does not have"
    for what, values in (("shape", shape), ("data_offsets", offsets)):
        if not isinstance(values, list) or any(type(v) is not int or not 0 <= v < 2**63 for v in values):
            return f"has a {what} that is no list of counts"
    if len(shape) > 16 or len(offsets) != 2:
        return "has too many axes or not two offsets"
    bits = math.prod(shape) * BITS[dtype]
    if bits % 8 or offsets[1] - offsets[0] != bits // 8:
        return f"has {offsets[1] - offsets[0]:,} bytes of data, but its shape and type need {-(-bits // 8):,}"
    return ""


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(n for n in names if names.count(n) > 1)[:80]!r} stands twice")
    return result


def place(folder: Path, name: str) -> Location:
    return Location((folder / name).as_posix())


# --- comparing ---------------------------------------------------------------------------------------


def run(accounts: Accounts, harness: ModuleType, folder: Path, progress: Callable[[str], None]) -> LevelResult:
    """Compare a folder with the implementation at the released configuration."""
    model = accounts.model
    result = LevelResult("checkpoint")
    progress("checkpoint: reading headers")
    found, findings = read_folder(folder)
    try:
        facts = census.take(model, harness, model.config).tensors.values()
    except SpecInvalid as error:
        for finding in error.findings:
            result.fail(finding)
        return result
    wrong, differing = set(), []
    owners = accounting.shares(accounts)
    for name, finding in differences(facts, found, place(folder, "")):
        wrong.add(name)
        if name in owners:
            share = owners[name][0]
            finding = replace(finding, where=share.where, component=share.component, statement=f"row:{share.row}")
        differing.append(finding)
    files = len({tensor.file for tensor in found.values()})
    counted, scales = elements(facts, found)
    result.device = f"{files:,} file(s), {len(found):,} tensors, {counted:,} elements"
    result.device += f" and {scales:,} scales" if scales else ""
    for finding in (*findings, *grouped(differing)):
        result.fail(finding)
    unread = any(f.severity == "error" for f in findings)
    for id, instances in accounts.instances.items():
        for number, row in enumerate(model.component(id).parameters):
            names = [n for instance in instances for n in instance.rows[number].tensors]
            if not unread and names and not wrong.intersection(names):
                result.hold(id, f"row:{row.id}", f"the headers of {len(names):,} tensor(s) agree")
    return result


def differences(
    facts: Iterable[Counted], found: Mapping[str, Stored], where: Location
) -> Iterator[tuple[str, Finding]]:
    """(tensor, finding) for each tensor that one side lacks, or that has another shape or number type."""

    def differ(problem: str, expected: str, actual: str) -> Finding:
        return Finding(
            "checkpoint-mismatch", problem, where, f"{expected} in the implementation", f"{actual} in the checkpoint"
        )

    known = {fact.name: fact for fact in facts}
    for name, fact in known.items():
        shape, dtypes = stored_form(fact.shape, fact.dtype)
        tensor = found.get(name)
        if tensor is None and fact.shared_with in found:
            continue  # a tied tensor may be kept under one of its names
        if tensor is None:
            yield name, differ(f"the tensor {name} is missing", f"{list(shape)} {fact.dtype}", "none")
        elif tensor.shape != shape:
            yield (
                name,
                differ(
                    f"the tensor {name} has another shape",
                    f"{list(shape)}, {math.prod(shape):,} elements stored as {fact.dtype},",
                    f"{list(tensor.shape)}, {math.prod(tensor.shape):,} elements stored as {tensor.dtype},",
                ),
            )
        elif tensor.dtype not in dtypes:
            yield name, differ(f"the tensor {name} has another number type", fact.dtype, tensor.dtype)
    for name, tensor in found.items():
        if name not in known:
            yield name, differ(f"the tensor {name[:200]} is unexpected", "none", f"{list(tensor.shape)} {tensor.dtype}")


def elements(facts: Iterable[Counted], found: Mapping[str, Stored]) -> tuple[int, int]:
    """-> logical elements of a folder, and its scales apart; packed codes are counted one by one."""
    known = {fact.name: fact for fact in facts}
    totals = [0, 0]
    for name, tensor in found.items():
        fact = known.get(name)
        fits = fact is not None and stored_form(fact.shape, fact.dtype)[0] == tensor.shape
        totals[fact is not None and fact.is_scale] += math.prod(fact.shape if fits and fact else tensor.shape)
    return totals[0], totals[1]


def grouped(findings: Iterable[Finding]) -> list[Finding]:
    """Layers and experts repeat: a difference is told once, with the number of tensors that it concerns."""
    first: dict[Finding, Finding] = {}
    times: dict[Finding, int] = {}
    for finding in findings:
        key = replace(finding, message=re.sub(r"\d+", "#", finding.message), where=NOWHERE, statement="", component="")
        first.setdefault(key, finding)
        times[key] = times.get(key, 0) + 1
    shown = [
        replace(finding, message=f"{finding.message} (and {times[key] - 1:,} more like it)")
        if times[key] > 1
        else finding
        for key, finding in first.items()
    ]
    if len(shown) > MAX_FINDINGS:
        rest = shown[MAX_FINDINGS:]
        message = f"{len(rest):,} more kinds of difference: the folder is of another model"
        shown = [*shown[:MAX_FINDINGS], Finding("checkpoint-mismatch", message, rest[0].where)]
    return shown
