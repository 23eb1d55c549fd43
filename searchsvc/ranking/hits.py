"""Ordinals -> hits with addresses, reasons and, on request, every channel's rank and score."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from searchsvc.index.catalog import Catalog, NoteRow, SectionRow
from searchsvc.items import Channel, ChannelScore, Hit
from searchsvc.ranking.corpus import Corpus
from searchsvc.ranking.evidence import membership
from searchsvc.ranking.fuse import Fused
from searchsvc.ranking.reasons import Reasons, Spoken, held_as_such


@dataclass(frozen=True, slots=True)
class Row:
    """A ranked section with its rows from the catalog."""

    ordinal: int
    root: str
    location: str
    """The note as a caller names it."""
    note: NoteRow
    section: SectionRow
    cost_below: int
    """Tokens of the sections below it that its id returns."""

    def text(self) -> str:
        """All that the section says, with its headings and names."""
        names = (self.note.title, self.note.path, *self.section.section.heading_path)
        return "\n".join([*names, self.section.text])

    @property
    def id(self) -> str:
        """The address of the section."""
        return f"{self.location}#{self.section.section.slug}"


def fetch(corpus: Corpus, roots: Sequence[tuple[str, Catalog]], ordinals: Sequence[int]) -> dict[int, Row]:
    """Read the catalog rows of sections, by ordinal; ``roots`` are in the order of the corpus."""
    rows: dict[int, Row] = {}
    places = {ordinal: corpus.place(ordinal) for ordinal in ordinals}
    for number, (name, catalog) in enumerate(roots):
        table = corpus.frames[number].table
        mine = {ordinal: place for ordinal, (root, place) in places.items() if root == number}
        numbers = table["id"][list(mine.values())].tolist()
        ids = dict(zip(mine, numbers, strict=True))
        sections = catalog.sections(numbers)
        notes = catalog.notes({section.note for section in sections.values()})
        for ordinal, section_id in ids.items():
            section = sections[section_id]
            note = notes[section.note]
            below = _cost_below(table, mine[ordinal], section)
            rows[ordinal] = Row(ordinal, name, locate(roots, name, note.path), note, section, below)
    return rows


def _cost_below(table: NDArray[np.void], place: int, row: SectionRow) -> int:
    """Return the tokens of the sections below one, given by its place in the table of its root."""
    most = row.section.read_end - row.section.line_end  # no section is without lines
    if not most:
        return 0
    below = table[place + 1 : place + 1 + most]
    is_below = (below["note"] == row.note) & (below["line_start"] <= row.section.read_end)
    return int(below["cost"][is_below].sum())


def addresses(
    corpus: Corpus, roots: Sequence[tuple[str, Catalog]], ordinals: Sequence[int]
) -> dict[int, tuple[str, str, int]]:
    """Return root, path and line of sections, the order of those that are equally good."""
    found: dict[int, tuple[str, str, int]] = {}
    places = {ordinal: corpus.place(ordinal) for ordinal in ordinals}
    for number, (name, catalog) in enumerate(roots):
        table = corpus.frames[number].table
        mine = {ordinal: place for ordinal, (root, place) in places.items() if root == number}
        notes = table["note"][list(mine.values())].tolist()
        lines = table["line_start"][list(mine.values())].tolist()
        paths = catalog.paths(set(notes))
        for ordinal, note, line in zip(mine, notes, lines, strict=True):
            found[ordinal] = name, paths[note], line
    return found


def locate(roots: Sequence[tuple[str, Catalog]], root: str, path: str) -> str:
    """Return how a caller names a note: with its root where another root holds the same path."""
    if len(roots) == 1:
        return path
    others = (catalog for name, catalog in roots if name != root)
    return f"{root}:{path}" if any(catalog.note_by_path(path) for catalog in others) else path


def make_hits(
    corpus: Corpus,
    rows: Sequence[Row],
    scores: Sequence[float],
    fused: Fused,
    spoken: Spoken,
    *,
    copies: Sequence[tuple[Sequence[str], Sequence[str]]],
    explain: bool = False,
) -> tuple[Hit, ...]:
    """Build the hits of sections; ``spoken`` has the words of the question.

    ``copies`` holds for each row the addresses of sections with the same text, and with nearly the same.
    """
    held = membership(fused.lexical, [row.ordinal for row in rows]).T.tolist()
    matches = fused.lexical.matches
    as_such = held_as_such(corpus, matches, [row.ordinal for row in rows]).T.tolist()
    reasons, hits = Reasons(corpus, fused, spoken), []
    for number, (row, score) in enumerate(zip(rows, scores, strict=True)):
        columns = zip(matches, held[number], as_such[number], strict=True)
        found = [(match, is_itself) for match, is_held, is_itself in columns if is_held]
        found.sort(key=lambda pair: -pair[0].idf)
        ordinal = row.ordinal
        hits.append(
            Hit(
                root=row.root,
                path=row.note.path,
                location=row.location,
                section=row.section.section,
                score=round(score, 4),
                cost=row.section.cost,
                text=row.section.text,
                note_title=row.note.title,
                twins=tuple(copies[number][0]),
                likes=tuple(copies[number][1]),
                cost_below=row.cost_below,
                why=reasons.of(ordinal, found, row.text),
                channels=_channels(ordinal, fused) if explain else {},
                terms={m.term: round(fused.lexical.of_term(m, ordinal), 4) for m, _ in found}
                if explain
                else {},
            )
        )
    return tuple(hits)


def _channels(ordinal: int, fused: Fused) -> dict[Channel, ChannelScore]:
    words = fused.lexical
    channels: dict[Channel, ChannelScore] = {
        "lexical": _standing(words.scores - words.links, ordinal),
        "link": _standing(words.links, ordinal),
    }
    said = ordinal in fused.said
    channels["title"] = ChannelScore(1 if said else 0, 1.0 if said else 0.0)
    if fused.vector is not None:
        channels["vector"] = _standing(fused.vector.cosines, ordinal)
    return channels


def _standing(scores: NDArray[np.float32], ordinal: int) -> ChannelScore:
    score = float(scores[ordinal])
    if not math.isfinite(score) or score == 0:
        return ChannelScore(0, 0.0)
    return ChannelScore(int((scores > scores[ordinal]).sum()) + 1, round(score, 4))
