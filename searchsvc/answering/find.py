"""Ranked sections -> the front door of a large vault: which notes, and where in them.

Three replies: the best notes with their regions; a list to refine by, when too many notes match equally
well; or the hubs of the vault as entry points, when nothing matches.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from searchsvc.answering.lines import address, clip, notice_lines, one_line
from searchsvc.answering.render import POOL_SHOWN
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
_MAX_LINE = 120
"""Tokens that a line may take of any budget, so that a larger one shows more lines, not longer ones."""
_ROUNDED = 50
"""Budgets are advised in steps of so many tokens."""


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


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a reply says when there is room for all of it."""

    head: Callable[[int], list[str]]
    """Told how many lines are shown."""
    lines: Sequence[str]
    foot: str


def render_find(
    query: str,
    ranking: Ranking,
    regions: Sequence[Region],
    hubs: Sequence[NoteCard],
    budget: int,
    *,
    cap: int = 20_000,
) -> Answer:
    """Write the reply in the mode that fits what was found; ``hubs`` are only looked at when nothing was.

    Lines that do not fit are offered by a larger ``max_tokens``, if ``cap``, the most that the server gives,
    allows.
    """
    if not regions or not ranking.relevant:
        return _no_match(query, ranking, regions, hubs, budget, cap)
    best = regions[0].hits[0].score
    equal = [region for region in regions if region.hits[0].score >= _EQUALLY_GOOD * best]
    if len(equal) > _AMBIGUOUS_NOTES:
        return _ambiguous(query, ranking, equal, budget, cap)
    return _normal(ranking, regions, budget, cap)


def _normal(ranking: Ranking, regions: Sequence[Region], budget: int, cap: int) -> Answer:
    shown = list[Hit | None]()
    for region in regions[:MAX_NOTES]:
        floor = _REGION_SHARE * region.hits[0].score
        shown += [None, *(hit for hit in region.hits[:_MAX_REGIONS] if hit.score >= floor)]
    is_all = ranking.total < POOL_SHOWN
    among = (
        f"{len(regions)} notes"
        if is_all
        else f"the {len(regions)} notes of the {ranking.total} best sections"
    )
    foot = 'Read one: semantic_search(query, path="<its id>", detail="full", max_tokens=<twice its tokens>).'
    if len(regions) > MAX_NOTES or not is_all:
        foot += ' Others: semantic_search(query, detail="list").'

    def plan(budget: int) -> _Plan:
        cards = iter(regions)
        lines = [
            _note_line(next(cards).card, budget) if hit is None else f"  {address(hit, _limit(budget))}"
            for hit in shown
        ]
        return _Plan(
            lambda count: [f"{shown[:count].count(None)} of {among}, best first", *_notices(ranking, budget)],
            lines,
            foot,
        )

    text, count = _fit(plan, budget, cap)
    kept = tuple((hit, "list") for hit in shown[:count] if hit is not None)
    return Answer(text=text, cost=cost(text), ranking=ranking, shown=kept)


def _ambiguous(query: str, ranking: Ranking, equal: Sequence[Region], budget: int, cap: int) -> Answer:
    folders = Counter(region.card.path.rpartition("/")[0] or "." for region in equal)
    tags = Counter(tag for region in equal for tag in region.card.tags)
    # Where the last section that was looked at matches as well, there may be more.
    is_all = ranking.total < POOL_SHOWN or ranking.hits[-1].score < _EQUALLY_GOOD * ranking.hits[0].score
    number = f"{len(equal)}" if is_all else f"at least {len(equal)}"

    def plan(budget: int) -> _Plan:
        head = [
            f"Ambiguous: {number} notes match {_asked(query, budget)} equally well",
            *_notices(ranking, budget),
            *(
                clip(one_line(f"{name}: {_counts(counter)}"), budget // _PART)
                for name, counter in (("folders", folders), ("tags", tags))
                if counter
            ),
        ]
        lines = [_note_line(region.card, budget) for region in equal[:_MAX_LISTED]]
        foot = "Refine: add a word, or semantic_search with path=<folder> or tags=[<tag>]."
        return _Plan(lambda _: head, lines, foot)

    text, count = _fit(plan, budget, cap)
    kept = tuple((region.hits[0], "list") for region in equal[:count])
    return Answer(text=text, cost=cost(text), ranking=ranking, shown=kept)


def _no_match(
    query: str,
    ranking: Ranking,
    regions: Sequence[Region],
    hubs: Sequence[NoteCard],
    budget: int,
    cap: int,
) -> Answer:
    def plan(budget: int) -> _Plan:
        weak = [f"weak: {address(region.hits[0], _limit(budget))}" for region in regions[:_MAX_WEAK]]
        entries = [
            f"{'hub' if card.linked_from else 'note'}: {_note_line(card, budget)}" for card in hubs[:MAX_HUBS]
        ]
        hint = "Hubs are the most linked notes. " if hubs and hubs[0].linked_from else ""
        return _Plan(
            lambda _: [f"No match for {_asked(query, budget)}", *_notices(ranking, budget)],
            weak + entries,
            f"{hint}Try other words, or grep for an exact string.",
        )

    text, _ = _fit(plan, budget, cap)
    return Answer(text=text, cost=cost(text), ranking=ranking)


def _fit(plan: Callable[[int], _Plan], budget: int, cap: int) -> tuple[str, int]:
    """Join as many lines as fit between head and foot, with the call that shows the others; return how many.

    When the head alone is too long its last lines are left out, with the foot.
    """
    body = plan(budget)

    def parts(count: int, body: _Plan = body, needed: int = 0) -> list[str]:
        more = len(body.lines) - count
        plural = "" if more == 1 else "s"
        way = f": same call with max_tokens={needed}" if budget < needed <= cap else " than fit"
        rest = [f"{more} line{plural} more{way}."] if more else []
        return [*body.head(count), *body.lines[:count], *rest, body.foot]

    count, needed = len(body.lines), 0
    if cost("\n".join(parts(count))) > budget:
        whole = plan(cap)
        needed = -(-cost("\n".join(parts(count, whole))) // _ROUNDED) * _ROUNDED
        while count and cost("\n".join(parts(count, needed=needed))) > budget:
            count -= 1
    kept = parts(count, needed=needed)
    while len(kept) > 1 and cost("\n".join(kept)) > budget:
        kept.pop()
    return "\n".join(kept), count


def _notices(ranking: Ranking, budget: int) -> list[str]:
    return notice_lines(ranking.notices, budget // _PART)


def _asked(query: str, budget: int) -> str:
    return clip(one_line(json.dumps(query, ensure_ascii=False)), budget // _PART)


def _limit(budget: int) -> int:
    return min(budget // _PART, _MAX_LINE)


def _note_line(card: NoteCard, budget: int) -> str:
    parts = [card.location]
    if card.title and card.title.casefold() not in card.path.casefold():
        parts.append(card.title)
    if card.tags:
        parts.append(" ".join(f"#{tag}" for tag in card.tags[:_MAX_TAGS]))
    if card.linked_from:
        parts.append(f"linked from {card.linked_from}")
    return clip(one_line(" · ".join(parts)), _limit(budget))


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in counter.most_common(_MAX_COUNTED))
