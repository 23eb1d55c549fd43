"""Ranked sections -> the front door of a large vault: which notes, and where in them.

Three replies: the best notes with their regions; a list to refine by, when too many notes match equally
well; or the hubs of the vault as entry points, when nothing matches.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from searchsvc.answering.lines import address, clip, notice_lines, one_line
from searchsvc.items import Answer, Hit, Ranking
from searchsvc.tokens import cost

MAX_NOTES = 12
_AMBIGUOUS_NOTES = 20
_EQUALLY_GOOD = 0.9
_MAX_REGIONS = 3
_REGION_SHARE = 0.5
_MAX_LISTED = 60
MAX_HUBS = 10
_MAX_WEAK = 2
_MAX_TAGS = 4
_MAX_COUNTED = 8
_PART = 5
"""No line takes more than this part of the budget, nor do all notices together."""


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
    """Write the reply in the mode that fits what was found; ``hubs`` are only looked at when nothing was."""
    notices = notice_lines(ranking.notices, budget // _PART)
    asked = clip(one_line(json.dumps(query, ensure_ascii=False)), budget // _PART)
    if not regions or not ranking.relevant:
        return _no_match(asked, ranking, regions, hubs, notices, budget)
    best = regions[0].hits[0].score
    equal = [region for region in regions if region.hits[0].score >= _EQUALLY_GOOD * best]
    if len(equal) > _AMBIGUOUS_NOTES:
        return _ambiguous(asked, ranking, equal, notices, budget)
    return _normal(ranking, regions, notices, budget)


def _normal(ranking: Ranking, regions: Sequence[Region], notices: list[str], budget: int) -> Answer:
    lines, shown = list[str](), list[Hit | None]()
    for region in regions[:MAX_NOTES]:
        floor = _REGION_SHARE * region.hits[0].score
        hits = [hit for hit in region.hits[:_MAX_REGIONS] if hit.score >= floor]
        lines += [_note_line(region.card, budget), *(f"  {address(hit, budget // _PART)}" for hit in hits)]
        shown += [None, *hits]

    def head(count: int) -> list[str]:
        return [f"{shown[:count].count(None)} of {len(regions)} notes, best first", *notices]

    foot = 'Read one: semantic_search(query, path="<its id>", detail="full", max_tokens=<twice its tokens>).'
    text, count = _fit(head, lines, foot, budget)
    kept = tuple((hit, "list") for hit in shown[:count] if hit is not None)
    return Answer(text=text, cost=cost(text), ranking=ranking, shown=kept)


def _ambiguous(
    asked: str, ranking: Ranking, equal: Sequence[Region], notices: list[str], budget: int
) -> Answer:
    folders = Counter(region.card.path.rpartition("/")[0] or "." for region in equal)
    tags = Counter(tag for region in equal for tag in region.card.tags)
    head = [f"Ambiguous: {len(equal)} notes match {asked} equally well", *notices]
    head += [
        clip(one_line(f"{name}: {_counts(counter)}"), budget // _PART)
        for name, counter in (("folders", folders), ("tags", tags))
        if counter
    ]
    lines = [_note_line(region.card, budget) for region in equal[:_MAX_LISTED]]
    foot = "Refine: add a word, or semantic_search with path=<folder> or tags=[<tag>]."
    text, count = _fit(lambda _: head, lines, foot, budget)
    kept = tuple((region.hits[0], "list") for region in equal[:count])
    return Answer(text=text, cost=cost(text), ranking=ranking, shown=kept)


def _no_match(
    asked: str,
    ranking: Ranking,
    regions: Sequence[Region],
    hubs: Sequence[NoteCard],
    notices: list[str],
    budget: int,
) -> Answer:
    weak = [f"weak: {address(region.hits[0], budget // _PART)}" for region in regions[:_MAX_WEAK]]
    entries = [f"hub: {_note_line(card, budget)}" for card in hubs[:MAX_HUBS]]
    hint = "Hubs are the most linked notes. " if entries else ""
    foot = f"{hint}Try other words, or grep for an exact string."
    text, _ = _fit(lambda _: [f"No match for {asked}", *notices], weak + entries, foot, budget)
    return Answer(text=text, cost=cost(text), ranking=ranking)


def _fit(head: Callable[[int], list[str]], lines: Sequence[str], foot: str, budget: int) -> tuple[str, int]:
    """Join as many lines as fit between head and foot; ``head`` is told how many.

    When the head alone is too long its last lines are left out, with the foot.
    """
    count = len(lines)
    while count and cost("\n".join([*head(count), *lines[:count], foot])) > budget:
        count -= 1
    parts = [*head(count), *lines[:count], foot]
    while len(parts) > 1 and cost("\n".join(parts)) > budget:
        parts.pop()
    return "\n".join(parts), count


def _note_line(card: NoteCard, budget: int) -> str:
    parts = [card.location]
    if card.title and card.title.casefold() not in card.path.casefold():
        parts.append(card.title)
    if card.tags:
        parts.append(" ".join(f"#{tag}" for tag in card.tags[:_MAX_TAGS]))
    if card.linked_from:
        parts.append(f"linked from {card.linked_from}")
    return clip(one_line(" · ".join(parts)), budget // _PART)


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in counter.most_common(_MAX_COUNTED))
