"""Scripted policies that show text piece by piece, and how soon the evidence of a question is among it.

A policy is given an ``Asked`` and yields replies, as tools would give them. Every character of a reply is
paid in tokens: text, headers, paths, line numbers. Evidence is counted in units: one line that is not
blank, or, where only pages or whole documents are known, one of those, shown once half of its lines are.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from pathlib import Path

from benchmark.errors import BenchmarkError
from benchmark.study.questions import Evidence, Question
from searchsvc.items import PAGE_MARK, Note
from searchsvc.reading.note import read_note
from searchsvc.tokens import cost

BUDGETS = (1_000, 2_000, 4_000, 8_000, 16_000)
"""Tokens at which recall is measured."""
MAIN = BUDGETS.index(4_000)
"""The budget that variants are chosen by and that the tables by kind show."""
CAP = 64_000
"""Tokens after which a policy is stopped: what it has not shown by then, it does not find."""
_LINE_END = 0.25
"""What the end of a line weighs when the cost of a reply is shared out among its lines."""

Place = tuple[str, int]
"""A path, and a line from 1."""


@dataclass(frozen=True, slots=True)
class Asked:
    """All that a policy knows of a question."""

    text: str
    paths: tuple[str, ...]
    """The notes that it may be answered from, in order of paths."""
    is_narrowed: bool = False
    """Whether these are fewer than all, since the question is asked of documents."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a reply."""

    text: str
    place: Place | None = None
    """Where the line stands; none for headers and other words of a tool."""


Reply = Sequence[Row]
Policy = Callable[[Asked], Iterator[Reply]]


@dataclass(frozen=True, slots=True)
class Corpus:
    """The notes of a folder, parsed, by path in order."""

    notes: dict[str, Note]

    def asked(self, question: Question) -> Asked:
        """Return what a policy may know; ``BenchmarkError`` when a document is not there."""
        if question.scope == "corpus":
            return Asked(question.question, tuple(self.notes))
        missing = [path for path in question.documents if path not in self.notes]
        if missing or not question.documents:
            raise BenchmarkError(f"question {question.id}: no document {', '.join(missing) or 'given'}")
        return Asked(question.question, tuple(sorted(question.documents)), is_narrowed=True)

    def rows(self, path: str, first: int, last: int) -> list[Row]:
        """Return the lines of a range, as they stand."""
        lines = self.notes[path].lines[first - 1 : last]
        return [Row(text, (path, number)) for number, text in enumerate(lines, first)]

    def read(self, path: str, first: int = 1, last: int = 0) -> list[Row]:
        """Return the reply of a tool that reads lines: one line that says which, then the lines.

        Without ``last`` the whole file. Lines have no numbers, which is the cheapest way to show them.
        """
        size = len(self.notes[path].lines)
        is_whole = first == 1 and last in (0, size)
        head = path if is_whole else f"{path} L{first}-{last or size}"
        return [Row(head), *self.rows(path, first, last or size)]


def read_corpus(folder: Path, paths: Iterable[str]) -> Corpus:
    """Read and parse notes; ``paths`` are those that the index has, so that all policies see the same."""
    return Corpus({path: read_note(path, (folder / path).read_bytes()) for path in sorted(paths)})


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of evidence that counts once."""

    places: frozenset[Place]
    needed: int
    """How many of its lines must be shown."""


def evidence_units(question: Question, corpus: Corpus) -> list[Unit]:
    """Return what has to be shown for a question; ``BenchmarkError`` when it stands nowhere."""
    units: dict[frozenset[Place], Unit] = {}
    for piece in question.evidence:
        if piece.path not in corpus.notes:
            raise BenchmarkError(f"question {question.id}: no note {piece.path!r} for its evidence")
        for places, needed in _places(piece, corpus.notes[piece.path]):
            if places:
                units[frozenset(places)] = Unit(frozenset(places), needed)
    if question.is_answerable and not units:
        raise BenchmarkError(f"question {question.id} has an answer but no evidence in the notes")
    return list(units.values())


def _places(piece: Evidence, note: Note) -> Iterator[tuple[list[Place], int]]:
    if piece.line_start:
        for number in range(piece.line_start, min(piece.line_end, len(note.lines)) + 1):
            if note.lines[number - 1].strip():
                yield [(note.path, number)], 1
        return
    groups: dict[int, list[Place]] = {page: [] for page in piece.pages} or {0: []}
    page = 0
    for number, line in enumerate(note.lines, 1):
        mark = PAGE_MARK.fullmatch(line.strip())
        if mark:
            page = int(mark.group(1)) if piece.pages else 0
        elif line.strip() and page in groups and number >= note.body_start:
            groups[page].append((note.path, number))
    for places in groups.values():
        yield places, math.ceil(len(places) / 2)


@dataclass(frozen=True, slots=True)
class Trace:
    """What one policy paid for one question, and what it showed for it."""

    units: int
    """Pieces of evidence there are."""
    recall: tuple[float, ...]
    """Share of the pieces shown within each budget; 0 for a question without evidence."""
    first: int | None
    """Tokens to the first piece; none when it is never shown."""
    last: int | None
    """Tokens to all pieces; none when some are never shown."""
    spent: tuple[int, ...]
    """Tokens paid at each budget; less than the budget when the policy had no more to show."""
    calls_first: int
    """Calls up to the first piece, or in all."""
    calls: int
    """Calls up to the last piece, or in all."""


@dataclass(slots=True)
class _Search:
    """Units still looked for."""

    units: Sequence[Unit]
    found: list[int] = field(default_factory=list)
    _left: list[int] = field(default_factory=list)
    _holders: dict[Place, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._left = [unit.needed for unit in self.units]
        for number, unit in enumerate(self.units):
            for place in unit.places:
                self._holders.setdefault(place, []).append(number)

    @property
    def is_over(self) -> bool:
        return len(self.found) == len(self.units)

    def see(self, place: Place, paid: int) -> None:
        """Take note of a line; one shown before changes nothing."""
        for number in self._holders.pop(place, ()):
            self._left[number] -= 1
            if self._left[number] == 0:
                self.found.append(paid)


def trace(replies: Iterable[Reply], units: Sequence[Unit]) -> Trace:
    """Pay for replies until all evidence is shown and the largest budget spent, or ``CAP`` is reached."""
    search, spent, calls, calls_first, calls_last = _Search(units), 0, 0, 0, 0
    for reply in replies:
        if not reply:
            continue
        calls += 1
        before, had_all = len(search.found), search.is_over
        for row, paid in zip(reply, _paid(reply), strict=True):
            if row.place and spent + paid <= CAP:
                search.see(row.place, spent + paid)
        spent += cost("\n".join(row.text for row in reply))
        if not before and search.found:
            calls_first = calls
        if search.is_over and not had_all:
            calls_last = calls
        if spent >= (BUDGETS[-1] if search.is_over else CAP):
            break
    found, all_found = search.found, bool(units) and search.is_over
    return Trace(
        units=len(units),
        recall=tuple(sum(at <= budget for at in found) / max(len(units), 1) for budget in BUDGETS),
        first=found[0] if found else None,
        last=found[-1] if all_found else None,
        spent=tuple(min(spent, budget) for budget in BUDGETS),
        calls_first=calls_first or calls,
        calls=calls_last or calls,
    )


def _paid(reply: Reply) -> list[int]:
    """Return the tokens of a reply up to and with each row.

    The cost of a text is rounded up, so that of its lines would add up to more. The cost of the whole is
    shared out instead.
    """
    shares = list(accumulate(_line_cost(row.text) + _LINE_END for row in reply))
    total = cost("\n".join(row.text for row in reply))
    return [math.ceil(total * share / shares[-1]) for share in shares]


@lru_cache(1 << 17)
def _line_cost(line: str) -> int:
    return cost(line)
