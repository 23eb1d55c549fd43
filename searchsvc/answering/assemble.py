"""Chosen passages of documents -> one reply: in order, each line once, with the call for what was cut."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from searchsvc.answering.lines import ELLIPSIS, clip, one_line
from searchsvc.answering.pack import mark_for
from searchsvc.answering.passage import Gallery, Manner, Source, blocks_cost, lines_cost, show_lines
from searchsvc.items import Picture, Reply
from searchsvc.tokens import cost

LABEL = " quoted data"
"""What stands after the first header: the text below is a note's, whatever it says."""
_BEFORE_REST = 20
"""What is said before the call for the rest costs at most."""
_REST_TOKENS = _BEFORE_REST + 6
"""That, and what longer numbers of lines may add to the call."""
_REST_SHARE = 0.55
"""Of the budget that the call for the rest may take, so that it is whole and yet some text is shown."""
_MIN_TEXT = 15
"""Tokens below which a passage is left to the next call."""
_MIN_NOTE, _MAX_NOTE = 10, 90
_MAX_NOTES = 20


@dataclass(frozen=True, slots=True)
class Continuation:
    """How a caller gets what did not fit."""

    call: Callable[[list[Any]], str] | None
    """Writes the call that returns the given selectors; none when selectors alone would not do."""
    resume: Callable[[int, int], str] | None = None
    """Writes how to go on from a line of a passage, given by its number; none when there is always a call."""


@dataclass(frozen=True, slots=True)
class Passage:
    """Lines of a document that somebody asked for."""

    source: Source
    name: str
    """Id of the document."""
    first: int
    last: int
    label: str = ""
    """``section …``; empty for lines and whole documents."""
    manner: Manner = Manner()
    is_whole: bool = False

    @property
    def selector(self) -> Any:
        """What selects it in another call."""
        location = self.source.location
        return location if self.is_whole else {"doc": location, "lines": [self.first, self.last]}


def without_overlaps(passages: Iterable[Passage]) -> tuple[list[Passage], list[str]]:
    """Take out lines that an earlier passage holds; return one notice for each passage that lost any."""
    covered: dict[str, list[Passage]] = {}
    kept, notices = list[Passage](), list[str]()
    for passage in passages:
        before = covered.setdefault(passage.source.location, [])
        pieces = [passage]
        others = [other for other in before if passage.first <= other.last and other.first <= passage.last]
        for other in others:
            pieces = [piece for whole in pieces for piece in _outside(whole, other)]
        if others:
            shared = ", ".join(
                f"L{max(other.first, passage.first)}–{min(other.last, passage.last)}" for other in others
            )
            called = ", ".join(dict.fromkeys(map(_called, others)))
            notices.append(
                f"{passage.name}: {_called(passage)} overlaps {called}; "
                f"{shared} are returned once, with the earlier one"
            )
        # What is shown of it counts from now on, so that no line is told of twice.
        before += [replace(piece, label=passage.label) for piece in pieces]
        kept += pieces
    return kept, notices


def _outside(passage: Passage, other: Passage) -> list[Passage]:
    """Return what of a passage lies before and after another one."""
    if other.last < passage.first or other.first > passage.last:
        return [passage]
    pieces = []
    if passage.first < other.first:
        pieces.append(replace(passage, last=other.first - 1, is_whole=False))
    if passage.last > other.last:
        pieces.append(replace(passage, first=other.last + 1, is_whole=False))
    return pieces


def _called(passage: Passage) -> str:
    lines = f"L{passage.first}–{passage.last}"
    return f"{passage.label} ({lines})" if passage.label else lines


def assemble(
    passages: Sequence[Passage], notes: Sequence[str], then: Continuation, *, budget: int, max_images: int
) -> Reply:
    """Write passages in order, as many as fit, with notes and the call for the rest at the end."""
    texts = ("\n".join(p.source.lines[p.first - 1 : p.last]) for p in passages)
    mark = mark_for(texts)
    galleries: dict[str, Gallery] = {}
    for_rest = min(int(budget * _REST_SHARE), cost(_rest(passages, 0, then, budget // 3)) + _REST_TOKENS)
    reserve = for_rest + _for_notes(passages, notes, budget)
    blocks, rows, spent, images_left = list[str | Picture](), list[dict[str, Any]](), 0, max_images
    pending, number = list[Passage](), 0
    for number, passage in enumerate(passages):
        left = budget - spent - reserve - 2
        limit = min(budget // 3, left - _MIN_TEXT) if number else budget // 3
        label = "" if number else LABEL
        room = left - cost(_head(passage, passage.last, mark, limit) + label)
        least = min(_MIN_TEXT, lines_cost(passage.source, passage.first, passage.last))
        if number and room < least:
            pending = list(passages[number:])
            break
        gallery = galleries.setdefault(passage.source.location, Gallery())
        gallery.left = images_left
        shown = show_lines(
            passage.source, passage.first, passage.last, passage.manner, gallery, max(room, least)
        )
        images_left = gallery.left
        head = _head(passage, shown.line_end, mark, limit) + label
        blocks += [head, *shown.blocks]
        spent += cost(head) + shown.cost + len(shown.blocks) + 1
        rows.append(_row(passage, shown.line_end))
        if shown.line_end < passage.last:
            rest_of_it = replace(passage, first=max(shown.line_end + 1, passage.first), is_whole=False)
            pending = [rest_of_it, *passages[number + 1 :]]
            break
    said = [*notes, *(note for gallery in galleries.values() for note in gallery.notes)]
    # A call that is longer than what was kept for it would be cut, and could not be made.
    rest = _rest(pending, number, then, for_rest - _BEFORE_REST)
    tail = _tail(said, pending, rest, mark, budget - spent - 2)
    blocks = _joined([*blocks, *([tail] if tail else [])])
    return Reply(tuple(blocks), blocks_cost(blocks), tuple(rows), tuple(said), rest)


def _for_notes(passages: Sequence[Passage], notes: Sequence[str], budget: int) -> int:
    """Return the tokens to keep for notes, also for those on pictures that will not be sent."""
    known = sum(min(cost(note), _MAX_NOTE) + 3 for note in notes) + 5 if notes else 0
    later = _MIN_TEXT if any(passage.manner.images == "send" for passage in passages) else 0
    return min(budget // 4, known + later)


def _head(passage: Passage, line_end: int, mark: str, limit: int) -> str:
    """Return the header of a passage shown up to a line, or only the beginning of its first one.

    When it is too long the names are cut, never the lines.
    """
    place = passage.source.location
    name = place if passage.name == place else f"{passage.name} ({place})"
    names = one_line(" · ".join(part for part in (name, passage.label) if part))
    shown = f"–{line_end}" if line_end >= passage.first else ELLIPSIS
    lines = f" · L{passage.first}{shown} {mark}"
    return f"{mark} {clip(names, max(limit - cost(lines) - 3, 4))}{lines}"


def _row(passage: Passage, line_end: int) -> dict[str, Any]:
    return {
        "doc": passage.name,
        "path": passage.source.location,
        "section": passage.label.removeprefix("section "),
        "lines": [passage.first, line_end],
        "tokens": lines_cost(passage.source, passage.first, line_end),
    }


def _rest(pending: Sequence[Passage], number: int, then: Continuation, budget: int) -> str:
    """Return how to get the pending passages, the first of them by number: in one call, or by going on."""
    if not pending:
        return ""
    call = then.call([passage.selector for passage in pending]) if then.call else ""
    if then.resume is not None and (not call or cost(call) > budget):
        return then.resume(number, pending[0].first)
    return call


def _tail(notes: Sequence[str], pending: Sequence[Passage], rest: str, mark: str, budget: int) -> str:
    """Return the call for the rest and the notes in at most ``budget`` tokens; the call comes first."""
    lines: list[str] = []
    if pending:
        left = sum(lines_cost(p.source, p.first, p.last) for p in pending)
        plural = "" if len(pending) == 1 else "s"
        said = f"{mark} Not shown: {len(pending)} passage{plural}, {left} tok. Next: {rest}"
        lines = [clip(said, max(budget, 1))]
    room = budget - cost("\n".join([*lines, f"{mark} Notes:"])) - 3
    told: list[str] = []
    for number, note in enumerate(notes):
        more = [f"- {len(notes) - number} notes more"] if number < len(notes) - 1 else []
        spare = room - cost("\n".join([*told, *more])) - 1
        line = clip(f"- {one_line(note)}", min(_MAX_NOTE, spare))
        if spare < min(_MIN_NOTE, cost(f"- {one_line(note)}")) or number >= _MAX_NOTES:
            rest_of_them = f"- {len(notes) - number} note{'s' if len(notes) - number > 1 else ''} more"
            told += [rest_of_them] if cost("\n".join([*told, rest_of_them])) <= room else []
            break
        told.append(line)
    return "\n".join([*lines, *([f"{mark} Notes:", *told] if told else [])])


def _joined(blocks: Sequence[str | Picture]) -> list[str | Picture]:
    """Put texts that follow each other into one block."""
    joined: list[str | Picture] = []
    for block in blocks:
        if isinstance(block, str) and joined and isinstance(joined[-1], str):
            joined[-1] = f"{joined[-1]}\n{block}"
        else:
            joined.append(block)
    return joined
