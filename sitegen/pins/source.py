# Text files as git counts them: bytes become lines at "\n", and nowhere else.
#
# Every line number that sitegen prints, links or compares comes from here.  `str.splitlines` is
# never used: it also splits at form feeds, NEL and U+2028, where git, GitHub and editors do not.
"""Source files: reading them safely, and splitting them into lines the way git does."""

from __future__ import annotations

import codecs
import io
import os
import stat
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Protocol

from sitegen.pins.definitions import Definition, Unparsable, definitions
from sitegen.pins.tokens import Lexed, lex

#: Larger files are refused: no source that a page cites comes near it.
MAX_BYTES = 16 * 1024 * 1024
#: How many neighbouring files are searched for code that left its own file.
MAX_NEIGHBOURS = 300

PYTHON_SUFFIXES = frozenset({".py", ".pyi"})


class SourceRefused(Exception):
    """A file cannot be read as text; `code` is a finding code, `missing` tells absence from damage."""

    def __init__(self, code: str, message: str, *, missing: bool = False) -> None:
        self.code, self.message, self.missing = code, message, missing
        super().__init__(message)


class RangeInvalid(ValueError):
    """A line range that can name no lines; `past_end` when only the file is too short for it."""

    def __init__(self, message: str, *, past_end: bool = False) -> None:
        self.past_end = past_end
        super().__init__(message)


def line_range(value: object) -> tuple[int, int]:
    """A range as authored (`[first, last]`), checked as far as that is possible without the file.

    Raises:
        RangeInvalid: with the reason in words.
    """
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise RangeInvalid(f"a range needs a first and a last line, as in [3, 7]; got {value!r}")
    first, last = value
    for number in (first, last):
        if isinstance(number, bool) or not isinstance(number, int):
            raise RangeInvalid(f"a line number is a whole number; got {number!r}")
    if first < 1 or last < 1:
        raise RangeInvalid(f"lines count from 1; got [{first}, {last}]")
    if last < first:
        raise RangeInvalid(f"range is reversed: [{first}, {last}]")
    return first, last


@dataclass(frozen=True)
class SourceText:
    """One file: `lines` are its lines without their ends; line n is `lines[n - 1]`."""

    path: str
    text: str

    @classmethod
    def from_bytes(cls, path: str, data: bytes) -> SourceText:
        """Decodes UTF-8 (a BOM is not text), or what a Python file declares.

        Raises:
            SourceRefused: when the bytes are not text in that encoding.
        """
        if len(data) > MAX_BYTES:
            raise SourceRefused("pin-gone", f"{path} has {len(data)} bytes, more than {MAX_BYTES}: not read as source")
        encoding = "utf-8-sig"
        if PurePosixPath(path).suffix in PYTHON_SUFFIXES:
            try:
                encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
                codecs.lookup(encoding)
            except (SyntaxError, LookupError) as error:
                if _is_utf8(data):
                    raise SourceRefused("pin-gone", f"{path} declares no usable encoding: {error}") from None
        try:
            text = data.decode(encoding)
        except (UnicodeDecodeError, LookupError) as error:
            start = getattr(error, "start", 0)
            line = data.count(b"\n", 0, start) + 1
            named = encoding.removesuffix("-sig")
            raise SourceRefused("pin-gone", f"{path} is not {named} text (byte {start}, line {line})") from None
        if "\0" in text:
            line = text.count("\n", 0, text.index("\0")) + 1
            raise SourceRefused("pin-gone", f"{path} holds a NUL byte (line {line}): not text")
        return cls(path, text)

    @cached_property
    def lines(self) -> tuple[str, ...]:
        pieces = self.text.split("\n")
        if pieces[-1] == "":
            pieces.pop()
        return tuple(piece[:-1] if piece.endswith("\r") else piece for piece in pieces)

    @property
    def count(self) -> int:
        """Number of lines; the same with and without a final newline."""
        return len(self.lines)

    @property
    def is_python(self) -> bool:
        return PurePosixPath(self.path).suffix in PYTHON_SUFFIXES

    def excerpt(self, lines: tuple[int, int]) -> tuple[str, ...]:
        """The lines first..last, both included; never clamped.

        Raises:
            RangeInvalid: when the file is shorter.
        """
        first, last = line_range(lines)
        if last > self.count:
            noun = "line" if self.count == 1 else "lines"
            raise RangeInvalid(f"line {last} is past the end (file has {self.count} {noun})", past_end=True)
        return self.lines[first - 1 : last]

    @cached_property
    def _compiler_view(self) -> tuple[str, tuple[int, ...]]:
        """The text with the compiler's newlines, and the line (by "\\n") of each compiler line.

        Python's compiler also ends a line at a lone "\\r"; its positions are mapped back.
        """
        if "\r" not in self.text.replace("\r\n", ""):
            return self.text.replace("\r\n", "\n"), ()
        pieces, starts, line = [], [1], 1
        index, text = 0, self.text
        while index < len(text):
            character = text[index]
            if character == "\r":
                if text[index + 1 : index + 2] == "\n":
                    index += 1
                    line += 1
                pieces.append("\n")
                starts.append(line)
            elif character == "\n":
                line += 1
                pieces.append("\n")
                starts.append(line)
            else:
                pieces.append(character)
            index += 1
        return "".join(pieces), tuple(starts)

    @cached_property
    def lexed(self) -> Lexed:
        """The file's tokens, with lines by "\\n"."""
        text, starts = self._compiler_view
        return lex(text, PurePosixPath(self.path).suffix, starts)

    @cached_property
    def definitions(self) -> tuple[Definition, ...]:
        """What a Python file defines, in file order; empty for other files.

        Raises:
            SourceRefused: when the file does not parse.
        """
        if not self.is_python:
            return ()
        text, starts = self._compiler_view
        try:
            return definitions(text, starts)
        except Unparsable as error:
            raise SourceRefused("pin-gone", f"{self.path} does not parse as Python: {error}") from None


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


class SourceReader(Protocol):
    """Hands out the files of one repository."""

    def read(self, path: str) -> SourceText:
        """The file, or SourceRefused."""

    def neighbours(self, path: str) -> Iterator[str]:
        """Other files of the same kind where code of `path` may have gone."""


class MemoryReader:
    """A repository that is a mapping of path to bytes; for tests and for other revisions."""

    def __init__(self, files: Mapping[str, bytes | str]) -> None:
        self._files = {path: data.encode() if isinstance(data, str) else data for path, data in files.items()}
        self._texts: dict[str, SourceText] = {}

    def read(self, path: str) -> SourceText:
        if path not in self._texts:
            check_relative(path)
            if path not in self._files:
                raise SourceRefused("pin-gone", f"{path} does not exist", missing=True)
            self._texts[path] = SourceText.from_bytes(path, self._files[path])
        return self._texts[path]

    def neighbours(self, path: str) -> Iterator[str]:
        suffix = PurePosixPath(path).suffix
        yield from sorted(p for p in self._files if p != path and PurePosixPath(p).suffix == suffix)


class FolderReader:
    """A repository on disk; each file is read once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._real_root = os.path.realpath(root)
        self._texts: dict[str, SourceText | SourceRefused] = {}

    def read(self, path: str) -> SourceText:
        if path not in self._texts:
            try:
                self._texts[path] = SourceText.from_bytes(path, self._bytes(path))
            except SourceRefused as refusal:
                self._texts[path] = refusal
        found = self._texts[path]
        if isinstance(found, SourceRefused):
            raise found
        return found

    def _bytes(self, path: str) -> bytes:
        check_relative(path)
        real = os.path.realpath(os.path.join(self._real_root, path))
        if os.path.commonpath([real, self._real_root]) != self._real_root:
            raise SourceRefused("path-outside", f"{path} leads out of the repository through a link")
        try:
            status = os.stat(real)
            if not stat.S_ISREG(status.st_mode):
                kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
                raise SourceRefused("pin-gone", f"{path} is {kind}")
            if status.st_size > MAX_BYTES:
                raise SourceRefused(
                    "pin-gone", f"{path} has {status.st_size} bytes, more than {MAX_BYTES}: not read as source"
                )
            with open(real, "rb") as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            raise SourceRefused("pin-gone", f"{path} does not exist", missing=True) from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise SourceRefused("pin-gone", f"{path} cannot be read: {reason}") from None

    def neighbours(self, path: str) -> Iterator[str]:
        suffix = PurePosixPath(path).suffix
        top = PurePosixPath(path).parts[0] if len(PurePosixPath(path).parts) > 1 else ""
        found = 0
        for folder, folders, names in os.walk(os.path.join(self._real_root, top)):
            folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in SKIPPED_FOLDERS)
            for name in sorted(names):
                if not name.endswith(suffix) or found >= MAX_NEIGHBOURS:
                    continue
                relative = os.path.relpath(os.path.join(folder, name), self._real_root).replace(os.sep, "/")
                if relative != path:
                    found += 1
                    yield relative


#: Folders that hold no source of the repository itself.
SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages", "build", "dist", "site"})


def check_relative(path: str) -> None:
    """Refuses a path that could name a place outside the repository, before any file is touched.

    Raises:
        SourceRefused: with code `path-outside`, or `pin-gone` when it is no path at all.
    """
    if not path or any(ord(character) < 32 for character in path):
        raise SourceRefused("pin-gone", f"{path!r} is not a path")
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or "\\" in path or path[1:2] == ":" or path.startswith("~"):
        raise SourceRefused("path-outside", f"{path} is not a path below the repository (written with /, without ..)")
    if str(pure) != path or path == ".":
        raise SourceRefused("pin-gone", f"{path} is not written in its shortest form: {pure}")
