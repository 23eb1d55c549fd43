"""Ranked sections -> one text that fits its budget.

Every section gets a lean line first. What budget is left buys text: of the best section first, then
where it is worth most. Value is the square of a section's score relative to the best, a window is worth
most of the whole, and the upgrade with the most value per token is bought first.

Text of notes is quoted between lines of ours, and those begin with a mark that no quoted line begins
with: whatever a note holds, it cannot pose as another section or as a remark of ours.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from searchsvc.answering.lines import address
from searchsvc.answering.window import TermsOf, Window, best_window
from searchsvc.items import Hit
from searchsvc.tokens import cost

Detail = Literal["auto", "list", "snippet", "full"]

_SNIPPET_TOKENS = 80
_MIN_WINDOW = 20
"""Tokens below which a piece of text is no evidence."""
_WINDOW_TOKENS = 100
_WINDOW_VALUE = 0.75
_LINES_SHARE = 0.3
"""Share of the budget that one-line references may take before text, so that small budgets buy some."""
_PART_TOKENS = 14
"""What it costs at most to say which part a window is."""
_MARK = "==="
_LIKE_OURS = re.compile("(?:^|[\r\v\f\x1c-\x1e\x85\u2028\u2029])[^\\S\n]*(={3,})[^\\S\n]", re.MULTILINE)
"""A quoted line that begins as ours do, for any reader's idea of a line."""


@dataclass(frozen=True, slots=True)
class Packed:
    """The body of a reply."""

    text: str
    shown: tuple[tuple[Hit, str], ...]
    """Each hit in the text with how it is shown: ``full``, ``window`` or ``list``."""
    cut: int
    """Tokens of text that the shown hits have and the reply has not."""


@dataclass(frozen=True, slots=True)
class _Shape:
    name: str
    text: str
    price: int
    worth: float


@dataclass(slots=True)
class _Item:
    hit: Hit
    head: str
    """The line of ours before its text."""
    value: float
    """What its whole text is worth, 1 for the best section, 0 for a copy of another one shown."""
    rendered: str
    price: int
    shape: str = "list"
    worth: float = 0.0
    """Value of what is shown so far."""
    shapes: list[_Shape] = field(default_factory=list)
    """Longer forms that it may take, the better one first."""


def mark_for(texts: Iterable[str]) -> str:
    """Return how lines of ours begin in a reply that quotes these texts: as no line of theirs does."""
    taken = {len(run) for text in texts for run in _LIKE_OURS.findall(text)}
    mark = _MARK
    while len(mark) in taken:
        mark += "="
    return mark


def pack(
    hits: Sequence[Hit],
    weights: Mapping[str, float],
    terms_of: TermsOf,
    *,
    budget: int,
    detail: Detail = "auto",
    first_number: int = 1,
    mark: str = _MARK,
) -> Packed:
    """Choose how to show each section; ``budget`` is for the body alone.

    ``weights`` has the IDF of each term of the question, ``terms_of`` splits a line into terms, ``mark``
    is what ``mark_for`` returns. Sections that do not fit even as a line are left to the next page; the
    first one always gets its line, cut if need be.
    """
    items = _items(hits, first_number, budget, "" if detail == "list" else f"{mark} ")
    taken, spare = list[_Item](), budget
    for share in (_LINES_SHARE, 1.0) if detail != "list" else (1.0,):
        fresh = _fitting(items[len(taken) :], min(int(budget * share), spare), at_least=0 if taken else 1)
        taken += fresh
        spare -= sum(item.price for item in fresh)
        if detail != "list":
            spare = _buy_text(fresh, weights, terms_of, spare, detail)
    cut = sum(item.hit.cost for item in taken if item.shape != "full" and item.value)
    shown = tuple((item.hit, item.shape) for item in taken)
    return Packed("\n".join(item.rendered for item in taken), shown, cut)


def _items(hits: Sequence[Hit], first_number: int, budget: int, prefix: str) -> list[_Item]:
    """Return each section as one line; equal texts are shown once."""
    best = max((hit.score for hit in hits), default=0.0)
    items: list[_Item] = []
    seen: dict[str, int] = {}
    for number, hit in enumerate(hits, first_number):
        start = f"{prefix}{number}. "
        first = seen.setdefault(hit.text.strip(), number)
        end = "" if first == number else f" · same text as {first}"
        line = start + address(hit, None if items else budget - cost(start) - cost(end) - 1) + end
        value = _relative(hit.score, best) ** 2 if first == number else 0.0
        items.append(_Item(hit, line, value, line, cost(line) + 1))
    return items


def _fitting(items: Sequence[_Item], budget: int, *, at_least: int) -> list[_Item]:
    """Return the first items whose lines fit."""
    fitting = list(items[:at_least])
    spent = sum(item.price for item in fitting)
    for item in items[at_least:]:
        spent += item.price
        if spent > budget:
            break
        fitting.append(item)
    return fitting


def _buy_text(
    items: Sequence[_Item], weights: Mapping[str, float], terms_of: TermsOf, spare: int, detail: Detail
) -> int:
    """Show what text of the sections the spare budget buys; return what is left of it."""
    for place, item in enumerate(items):
        widest = _WINDOW_TOKENS if place else max(spare // 2, _WINDOW_TOKENS)
        limits = {"snippet": _SNIPPET_TOKENS, "full": spare, "auto": widest}
        item.shapes = _shapes(item, weights, terms_of, spare, limits[detail], detail)
    if detail != "auto":
        return _buy_in_order(items, spare)
    return _buy_by_value(items, _buy_in_order(items[:1], spare))


def _relative(score: float, best: float) -> float:
    """Return a score as a share of the best; cosines may be negative, and then tell nothing."""
    return max(score / best, 0.0) if best > 0 else 1.0


def _shapes(
    item: _Item, weights: Mapping[str, float], terms_of: TermsOf, spare: int, limit: int, detail: Detail
) -> list[_Shape]:
    """Return the longer forms a section may take within the spare budget."""
    if not item.value:
        return []
    hit, text = item.hit, item.hit.text.rstrip("\n")
    shapes = []
    whole = f"{item.head}\n{text}"
    price = cost(whole) + 1
    if price - item.price <= spare and (detail != "snippet" or price <= _SNIPPET_TOKENS):
        shapes.append(_Shape("full", whole, price, item.value))
    room = min(limit, spare - _PART_TOKENS)
    if room >= _MIN_WINDOW and (hit.cost > limit or not shapes):
        window = best_window(text.split("\n"), hit.section.line_start, weights, terms_of, room)
        if window.text:
            part = f"{item.head} · {_part(window)}\n{window.text}"
            shapes.append(_Shape("window", part, cost(part) + 1, item.value * _WINDOW_VALUE))
    return shapes


def _part(window: Window) -> str:
    if window.is_cut_inside_line:
        return f"part of line {window.line_start}"
    return f"only L{window.line_start}-{window.line_end}"


def _buy_by_value(items: Sequence[_Item], spare: int) -> int:
    """Buy the upgrade with the most value per token until nothing fits; return what is left."""
    while True:
        offers = [
            ((shape.worth - item.worth) / max(shape.price - item.price, 1), -place, item, shape)
            for place, item in enumerate(items)
            for shape in item.shapes
            if shape.worth > item.worth and shape.price - item.price <= spare
        ]
        if not offers:
            return spare
        _, _, item, shape = max(offers, key=lambda offer: offer[:2])
        spare -= _show(item, shape)


def _buy_in_order(items: Sequence[_Item], spare: int) -> int:
    """Show the sections one after the other, each as long as it still fits; return what is left."""
    for item in items:
        for shape in item.shapes:
            if shape.price - item.price <= spare:
                spare -= _show(item, shape)
                break
    return spare


def _show(item: _Item, shape: _Shape) -> int:
    """Show a section in a longer form; return what that costs more."""
    more = shape.price - item.price
    item.shape, item.rendered, item.price, item.worth = shape.name, shape.text, shape.price, shape.worth
    return more
