"""Ordinals -> hits with addresses, reasons and, on request, every channel's rank and score."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from searchsvc.index.catalog import Catalog, NoteRow, SectionRow
from searchsvc.items import Channel, ChannelScore, Hit
from searchsvc.ranking.corpus import Corpus
from searchsvc.ranking.evidence import membership
from searchsvc.ranking.fuse import Fused
from searchsvc.ranking.lexical import TermMatch
from searchsvc.ranking.titles import places_said

_MAX_WORDS = 4
_MAX_PLACES = 2
_MEANING_STANDING = 1.0
"""From where on meaning is a reason beside others."""


@dataclass(frozen=True, slots=True)
class Row:
    """A ranked section with its rows from the catalog."""

    ordinal: int
    root: str
    location: str
    """The note as a caller names it."""
    note: NoteRow
    section: SectionRow

    @property
    def id(self) -> str:
        """The address of the section."""
        return f"{self.location}#{self.section.section.slug}"


def fetch(corpus: Corpus, roots: Sequence[tuple[str, Catalog]], ordinals: Sequence[int]) -> dict[int, Row]:
    """Read the catalog rows of sections, by ordinal; ``roots`` are in the order of the corpus."""
    rows: dict[int, Row] = {}
    places = {ordinal: corpus.place(ordinal) for ordinal in ordinals}
    for number, (name, catalog) in enumerate(roots):
        mine = {ordinal: place for ordinal, (root, place) in places.items() if root == number}
        numbers = corpus.frames[number].table["id"][list(mine.values())].tolist()
        ids = dict(zip(mine, numbers, strict=True))
        sections = catalog.sections(numbers)
        notes = catalog.notes({section.note for section in sections.values()})
        for ordinal, section_id in ids.items():
            section = sections[section_id]
            note = notes[section.note]
            rows[ordinal] = Row(ordinal, name, locate(roots, name, note.path), note, section)
    return rows


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
    words: Mapping[str, str],
    *,
    copies: Sequence[tuple[Sequence[str], Sequence[str]]],
    explain: bool = False,
) -> tuple[Hit, ...]:
    """Build the hits of sections; ``words`` maps terms to the words of the question.

    ``copies`` holds for each row the addresses of sections with the same text, and with nearly the same.
    """
    held = membership(fused.lexical, [row.ordinal for row in rows]).T.tolist()
    matches = fused.lexical.matches
    hits = []
    for number, (row, score) in enumerate(zip(rows, scores, strict=True)):
        found = list(compress(matches, held[number]))
        found.sort(key=lambda match: -match.idf)
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
                why=_reasons(corpus, ordinal, fused, found, words),
                channels=_channels(ordinal, fused) if explain else {},
                terms={m.term: round(fused.lexical.of_term(m, ordinal), 4) for m in found} if explain else {},
            )
        )
    return tuple(hits)


def _reasons(
    corpus: Corpus, ordinal: int, fused: Fused, found: Sequence[TermMatch], words: Mapping[str, str]
) -> tuple[str, ...]:
    """Say what matched: words of the question, the parts they stand in, links, meaning."""
    said = list(dict.fromkeys(words.get(match.term, match.term).lower() for match in found))
    reasons = [", ".join(said[:_MAX_WORDS])] if said else []
    places = places_said(corpus, found, ordinal)[:_MAX_PLACES]
    if fused.lexical.links[ordinal] > 0:
        places.append("links")
    standing = float(fused.vector.standing[ordinal]) if fused.vector is not None else 0.0
    if standing >= _MEANING_STANDING or (standing > 0 and not reasons and not places):
        places.append("meaning")
    return (*reasons, "+".join(places)) if places else tuple(reasons)


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
