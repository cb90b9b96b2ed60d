# Finding code: a quoted fragment in a file, a recorded text on other lines, and what looks like it.
"""Searches over lexed sources. Each returns all matches; choosing among several is nobody's business here."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from sitegen.pins.definitions import Definition
from sitegen.pins.pin import Candidate, Lines, Record, trimmed
from sitegen.pins.source import SourceReader, SourceRefused, SourceText
from sitegen.pins.tokens import Token, digest, lex

#: Places less alike than this are not shown as candidates.
LEAST_SIMILARITY = 0.5
MOST_CANDIDATES = 5

#: What a formatter adds and removes: round brackets and commas.
_LOOSE = frozenset("(),")


def whole_file(source: SourceText) -> Lines:
    """The lines of a file; (1, 0) when it has none."""
    return 1, source.count


def fragment_places(source: SourceText, fragment: str, within: Lines) -> list[Lines]:
    """Line ranges inside `within` where the quoted fragment stands.

    Code is compared by tokens as written (layout and comments aside), and so is never found in a comment
    or string. A fragment without code (comments, a docstring) is compared by its lines' text.
    """
    suffix = PurePosixPath(source.path).suffix
    wanted = _solid(lex(fragment, suffix).plain)
    if not wanted:
        return _text_places(source, fragment, within)
    found: list[Lines] = []
    tokens = [t for t in source.lexed.plain if t.kind != "newline" and within[0] <= t.line and t.end <= within[1]]
    for start in _subsequences([t.text for t in wanted], [t.text for t in tokens]):
        first, last = tokens[start].line, tokens[start + len(wanted) - 1].end
        found.append(over_comments(source, (first, last), fragment, within))
    return list(dict.fromkeys(found))


def _solid(tokens: Sequence[Token]) -> list[Token]:
    return [token for token in tokens if token.kind != "newline"]


def _subsequences(wanted: Sequence[str], words: Sequence[str]) -> Iterator[int]:
    if not wanted:
        return
    head, size, wanted = wanted[0], len(wanted), list(wanted)
    for start in range(len(words) - size + 1):
        if words[start] == head and list(words[start : start + size]) == wanted:
            yield start


def _text_places(source: SourceText, fragment: str, within: Lines) -> list[Lines]:
    """Places whose lines read as the fragment does, indentation aside; the outer lines may hold more."""
    rows = [row.strip() for row in fragment.strip("\n").split("\n")]
    while rows and not rows[0]:
        rows.pop(0)
    while rows and not rows[-1]:
        rows.pop()
    if not rows:
        return []
    lines, found = source.lines, []
    for first in range(within[0], within[1] - len(rows) + 2):
        window = [line.strip() for line in lines[first - 1 : first - 1 + len(rows)]]
        if len(rows) == 1:
            fits = rows[0] in window[0]
        else:
            fits = window[0].endswith(rows[0]) and window[1:-1] == rows[1:-1] and window[-1].startswith(rows[-1])
        if fits:
            found.append((first, first + len(rows) - 1))
    return found


def over_comments(source: SourceText, lines: Lines, fragment: str, within: Lines) -> Lines:
    """Extends a match over the comment lines that the fragment quotes before and after its code."""
    first, last = lines
    rows = [row.strip() for row in fragment.split("\n") if row.strip()]
    lead = _edge(rows, source, first - 1, -1)
    trail = _edge(rows[::-1], source, last + 1, +1)
    return max(within[0], first - lead), min(within[1], last + trail)


def _edge(rows: Sequence[str], source: SourceText, line: int, step: int) -> int:
    """How many leading comment rows of the fragment stand on the lines from `line` on, in `step` direction."""
    edge = []
    for row in rows:
        if not row.startswith(("#", "//", "/*", "*")):
            break
        edge.append(row)
    for index, row in enumerate(reversed(edge)):
        number = line + step * index
        if not (1 <= number <= source.count and source.lines[number - 1].strip() == row):
            return 0
    return len(edge)


def fragment_holds(source: SourceText, fragment: str, lines: Lines) -> bool:
    """Whether the fragment still reads the same on these lines, whatever a formatter did to it."""
    if fragment_places(source, fragment, lines):
        return True
    suffix = PurePosixPath(source.path).suffix
    wanted = _loose(lex(fragment, suffix).code)
    return bool(wanted) and next(_subsequences(wanted, _loose(source.lexed.code_in(lines))), None) is not None


def _loose(tokens: Sequence[Token]) -> list[str]:
    """Texts without what a formatter adds: line ends, round brackets and commas."""
    return [t.text for t in tokens if t.kind != "newline" and t.text not in _LOOSE]


def text_places(source: SourceText, text: Sequence[str]) -> list[Lines]:
    """Line ranges that hold exactly this text, trailing blanks aside."""
    lines, size = trimmed(source.lines), len(text)
    wanted = tuple(text)
    if not wanted:
        return []
    return [
        (first + 1, first + size)
        for first in range(len(lines) - size + 1)
        if lines[first] == wanted[0] and lines[first : first + size] == wanted
    ]


def same_text_places(source: SourceText, record: Record) -> list[Lines]:
    """Line ranges that hold the recorded text as what it was: code that is quoted in a string is none."""
    found = text_places(source, record.text)
    if record.code == digest(()):
        return found
    wanted = [t.text for t in _solid(lex("\n".join(record.text), PurePosixPath(source.path).suffix).plain)]
    kept = []
    for lines in found:
        here = [t.text for t in source.lexed.plain if t.kind != "newline" and lines[0] <= t.line <= lines[1]]
        if here == wanted or digest(source.lexed.code_in(lines)) == record.code:
            kept.append(lines)
    return kept


def code_places(source: SourceText, record: Record) -> list[Lines]:
    """Line ranges whose tokens are the recorded ones, in another layout."""
    suffix = PurePosixPath(source.path).suffix
    wanted = _loose(lex("\n".join(record.text), suffix).code)
    code = source.lexed.code
    kept = [i for i, t in enumerate(code) if t.kind != "newline" and t.text not in _LOOSE]
    found = []
    for start in _subsequences(wanted, [code[i].text for i in kept]):
        first, last = kept[start], kept[start + len(wanted) - 1]
        starts, ends = [code[first].line], [code[last].end]
        while first > 0 and code[first - 1].text in _LOOSE:  # brackets at the edges may belong to the text
            first -= 1
            starts.append(code[first].line)
        while last + 1 < len(code) and code[last + 1].text in _LOOSE:
            last += 1
            ends.append(code[last].end)
        for lines in dict.fromkeys((a, b) for a in starts for b in ends):
            if digest(source.lexed.code_in(lines)) == record.code:
                found.append(source.lexed.code_lines(lines))
                break
    return list(dict.fromkeys(found))


def body_digest(source: SourceText, definition: Definition) -> str:
    """Token digest of a definition in which its own name is left out, wherever it stands."""
    return digest(_anonymous(source.lexed.code_in(definition.lines), definition.name))


def _anonymous(tokens: Sequence[Token], name: str) -> Iterator[Token]:
    for token in tokens:
        yield token._replace(text="\0") if token.kind == "name" and token.text == name else token


def same_body(source: SourceText, record: Record) -> list[Definition]:
    """The definitions of a file whose body is the recorded one, whatever their name."""
    size = len(lex("\n".join(record.symbol_text), PurePosixPath(record.path).suffix).code_in((1, 10**9)))
    found = []
    for definition in source.definitions:
        start, stop = source.lexed.code_span(definition.lines)
        if stop - start == size and body_digest(source, definition) == record.body_code:
            found.append(definition)
    return found


def similarity(left: Sequence[str], right: Sequence[str]) -> float:
    """Share of tokens in common and in order, 0 to 1."""
    if not left or not right:
        return 0.0
    return difflib.SequenceMatcher(None, left, right, autojunk=False).ratio()


def _overlap(left: Counter[str], right: Counter[str]) -> float:
    total = left.total() + right.total()
    return 2 * (left & right).total() / total if total else 0.0


def similar_definitions(source: SourceText, wanted: Sequence[Token]) -> list[Candidate]:
    """Definitions of a file that look like the wanted tokens, most similar first."""
    words = [t.text for t in wanted]
    counts = Counter(words)
    rough: list[tuple[float, Definition, list[str]]] = []
    for definition in source.definitions:
        theirs = [t.text for t in source.lexed.code_in(definition.lines)]
        score = _overlap(counts, Counter(theirs))
        if score >= LEAST_SIMILARITY:
            rough.append((score, definition, theirs))
    rough.sort(key=lambda entry: (-entry[0], entry[1].lines))
    found = [
        Candidate(similarity(words, theirs), source.path, d.lines, d.symbol, source.excerpt(d.lines))
        for _, d, theirs in rough[:MOST_CANDIDATES]
    ]
    return ranked(found)


def similar_lines(source: SourceText, record: Record, within: Lines) -> list[Candidate]:
    """Runs of as many lines as were cited that look like them, most similar first."""
    suffix = PurePosixPath(source.path).suffix
    wanted = _solid(lex("\n".join(record.text), suffix).tokens)
    words, size = [t.text for t in wanted], len(record.text)
    counts = Counter(t.text for t in wanted if t.kind != "op")  # punctuation is alike everywhere
    rows: dict[int, list[str]] = {}
    telling: dict[int, list[str]] = {}
    for token in source.lexed.tokens:
        if token.kind != "newline":
            rows.setdefault(token.line, []).append(token.text)
            if token.kind != "op":
                telling.setdefault(token.line, []).append(token.text)
    rough: list[tuple[float, Lines, list[str]]] = []
    window: Counter[str] = Counter()
    for first in range(within[0], max(within[0], within[1] - size + 1) + 1):
        last = min(first + size - 1, within[1])
        if first == within[0]:
            for line in range(first, last + 1):
                window.update(telling.get(line, ()))
        else:
            window.subtract(telling.get(first - 1, ()))
            window.update(telling.get(last, ()))
            window += Counter()
        if not rows.get(first):
            continue
        score = _overlap(counts, window)
        if score >= LEAST_SIMILARITY:
            theirs = [word for line in range(first, last + 1) for word in rows.get(line, ())]
            rough.append((score, (first, last), theirs))
    rough.sort(key=lambda entry: (-entry[0], abs(entry[1][0] - record.lines[0])))
    found = [
        Candidate(similarity(words, theirs), source.path, lines, "", source.excerpt(lines))
        for _, lines, theirs in rough[: 2 * MOST_CANDIDATES]
    ]
    return ranked(_apart(ranked(found)))


def _apart(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Of candidates that share lines, the best one."""
    kept: list[Candidate] = []
    for candidate in candidates:
        if all(candidate.lines[1] < k.lines[0] or candidate.lines[0] > k.lines[1] for k in kept):
            kept.append(candidate)
    return kept


def ranked(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Most similar first, then by place; without those that are hardly alike."""
    kept = [candidate for candidate in dict.fromkeys(candidates) if candidate.similarity >= LEAST_SIMILARITY]
    return sorted(kept, key=lambda c: (-round(c.similarity, 3), c.path, c.lines))[:MOST_CANDIDATES]


def in_other_files(reader: SourceReader, record: Record) -> list[Candidate]:
    """Where the recorded code stands word for word in another file."""
    found: list[Candidate] = []
    for path in reader.neighbours(record.path):
        try:
            other = reader.read(path)
            if record.symbol:
                places = [(d.lines, d.symbol) for d in same_body(other, record)] if other.definitions else []
            else:
                places = [(lines, "") for lines in text_places(other, record.text)]
        except SourceRefused:
            continue
        found += [Candidate(1.0, path, lines, symbol, other.excerpt(lines)) for lines, symbol in places]
        if len(found) >= MOST_CANDIDATES:
            break
    return ranked(found)
