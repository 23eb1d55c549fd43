"""Ranked sections -> the front door of a large vault: which notes, and where in them.

Three replies: the best notes with their regions; a list to refine by, when too many notes match equally
well; or the hubs of the vault as entry points, when nothing matches.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from searchsvc.answering.pack import address
from searchsvc.items import Answer, Hit, Ranking
from searchsvc.tokens import cost

MAX_NOTES = 12
_AMBIGUOUS_NOTES = 20
_EQUALLY_GOOD = 0.9
_MAX_REGIONS = 3
_REGION_SHARE = 0.5
_MAX_LISTED = 60
_MAX_HUBS = 10


@dataclass(frozen=True, slots=True)
class NoteCard:
    """What tells a note apart from others."""

    root: str
    path: str
    location: str
    """How a caller names it: its path, or ``root:path``."""
    title: str
    tags: tuple[str, ...] = ()
    linked_from: int = 0
    """How many notes link to it."""


@dataclass(frozen=True, slots=True)
class Region:
    """The hits of one note, best first."""

    card: NoteCard
    hits: tuple[Hit, ...]


def group(hits: Sequence[Hit], card_of: Callable[[Hit], NoteCard]) -> list[Region]:
    """Gather hits by note, in order of each note's best."""
    by_note: dict[tuple[str, str], list[Hit]] = {}
    for hit in hits:
        by_note.setdefault((hit.root, hit.path), []).append(hit)
    return [Region(card_of(found[0]), tuple(found)) for found in by_note.values()]


def render_find(
    query: str, ranking: Ranking, regions: Sequence[Region], hubs: Sequence[NoteCard], budget: int
) -> Answer:
    """Write the reply in the mode that fits what was found."""
    notices = [f"! {notice}" for notice in ranking.notices]
    if not regions or not ranking.relevant:
        return _no_match(query, ranking, regions, hubs, notices, budget)
    best = regions[0].hits[0].score
    equal = [region for region in regions if region.hits[0].score >= _EQUALLY_GOOD * best]
    if len(equal) > _AMBIGUOUS_NOTES:
        return _ambiguous(query, ranking, equal, notices, budget)
    return _normal(ranking, regions, notices, budget)


def _normal(ranking: Ranking, regions: Sequence[Region], notices: list[str], budget: int) -> Answer:
    blocks = []
    shown = []
    for region in regions[:MAX_NOTES]:
        floor = _REGION_SHARE * region.hits[0].score
        hits = [hit for hit in region.hits[:_MAX_REGIONS] if hit.score >= floor]
        blocks.append("\n".join([_note_line(region.card), *(f"  {address(hit)}" for hit in hits)]))
        shown.append(hits)
    head = [f"{{count}} of {len(regions)} notes, best first", *notices]
    foot = 'Read a region: semantic_search(query, path="<note>", detail="full").'
    text, count = _fit(head, blocks, foot, budget)
    kept = tuple((hit, "list") for hits in shown[:count] for hit in hits)
    return Answer(text=text, cost=cost(text), ranking=ranking, shown=kept)


def _ambiguous(
    query: str, ranking: Ranking, equal: Sequence[Region], notices: list[str], budget: int
) -> Answer:
    folders = Counter(region.card.path.rpartition("/")[0] or "." for region in equal)
    tags = Counter(tag for region in equal for tag in region.card.tags)
    head = [
        f"Ambiguous: {len(equal)} notes match {json.dumps(query, ensure_ascii=False)} equally well",
        *notices,
    ]
    head.append(f"folders: {_counts(folders)}")
    if tags:
        head.append(f"tags: {_counts(tags)}")
    lines = [_note_line(region.card) for region in equal[:_MAX_LISTED]]
    foot = "Refine: add a word, or semantic_search with path=<folder> or tags=[<tag>]."
    text, count = _fit(head, lines, foot, budget)
    kept = tuple((region.hits[0], "list") for region in equal[:count])
    return Answer(text=text, cost=cost(text), ranking=ranking, shown=kept)


def _no_match(
    query: str,
    ranking: Ranking,
    regions: Sequence[Region],
    hubs: Sequence[NoteCard],
    notices: list[str],
    budget: int,
) -> Answer:
    head = [f"No match for {json.dumps(query[:200], ensure_ascii=False)}", *notices]
    weak = [f"weak: {address(region.hits[0])}" for region in regions[:2]]
    entries = [f"hub: {_note_line(card)}" for card in hubs[:_MAX_HUBS]]
    foot = "Entry points above are the most linked notes. Try other words, or grep for an exact string."
    text, _ = _fit(
        head, weak + entries, foot if entries else "Try other words, or grep for an exact string.", budget
    )
    return Answer(text=text, cost=cost(text), ranking=ranking)


def _fit(head: Sequence[str], blocks: Sequence[str], foot: str, budget: int) -> tuple[str, int]:
    """Join as many blocks as fit between head and foot; ``{count}`` becomes their number."""

    def build(count: int) -> str:
        first = head[0].replace("{count}", str(count), 1)
        return "\n".join([first, *head[1:], *blocks[:count], foot])

    count = len(blocks)
    while count and cost(build(count)) > budget:
        count -= 1
    text = build(count)
    while cost(text) > budget and "\n" in text:
        text = text.rpartition("\n")[0]
    return text, count


def _note_line(card: NoteCard) -> str:
    parts = [card.location]
    if card.title and card.title.casefold() not in card.path.casefold():
        parts.append(card.title)
    if card.tags:
        parts.append(" ".join(f"#{tag}" for tag in card.tags[:4]))
    if card.linked_from:
        parts.append(f"linked from {card.linked_from}")
    return " · ".join(parts)


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in counter.most_common(8))
