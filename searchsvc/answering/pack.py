"""Ranked sections -> one text that fits its budget.

Every section gets a lean line first. What budget is left buys text where it is worth most: value is
the square of a section's score relative to the best, a window is worth most of the whole, and the
upgrade with the most value per token is bought first.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from searchsvc.answering.window import Window, best_window
from searchsvc.errors import QueryError
from searchsvc.items import Hit
from searchsvc.tokens import cost

Detail = Literal["auto", "list", "snippet", "full"]
TermsOf = Callable[[str], list[str]]

_SNIPPET_TOKENS = 80
_WINDOW_TOKENS = 100
_WINDOW_VALUE = 0.75
_LINES_SHARE = 0.3
"""Share of the budget that one-line references may take, so that small budgets still buy text."""
_PART_TOKENS = 14
"""What the line that names the part of a window costs at most."""


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
    number: int
    value: float
    """What its whole text is worth, 1 for the best section."""
    rendered: str
    price: int
    shape: str = "list"
    worth: float = 0.0
    """Value of what is shown so far."""
    shapes: list[_Shape] = field(default_factory=list)


def pack(
    hits: Sequence[Hit],
    weights: Mapping[str, float],
    terms_of: TermsOf,
    *,
    budget: int,
    detail: Detail = "auto",
    first_number: int = 1,
) -> Packed:
    """Choose how to show each section; ``budget`` is for the body alone.

    ``weights`` has the IDF of each term of the question, ``terms_of`` splits a line into terms. Sections
    that do not fit even as a line are left to the next page. Raises ``QueryError`` when the budget is too
    small for a single line.
    """
    items = _lines(hits, first_number, budget, share=1.0 if detail == "list" else _LINES_SHARE)
    if hits and not items:
        raise QueryError(f"max_tokens leaves {budget} tokens for results, too few for one line; ask for more")
    spare = budget - sum(item.price for item in items)
    if detail != "list":
        for item in items:
            widest = spare // 2 if item is items[0] else _WINDOW_TOKENS
            limits = {"snippet": _SNIPPET_TOKENS, "full": spare, "auto": max(widest, _WINDOW_TOKENS)}
            item.shapes = _shapes(item, weights, terms_of, spare, limits[detail], detail)
        buy = _buy_by_value if detail == "auto" else _buy_in_order
        buy(items, spare)
    cut = sum(item.hit.cost for item in items if item.shape != "full")
    shown = tuple((item.hit, item.shape) for item in items)
    return Packed("\n".join(item.rendered for item in items), shown, cut)


def _lines(hits: Sequence[Hit], first_number: int, budget: int, *, share: float) -> list[_Item]:
    """Return an item for each section that fits at least as a line; equal texts are shown once."""
    best = max((hit.score for hit in hits), default=0.0) or 1.0
    items: list[_Item] = []
    spent, seen = 0, dict[str, int]()
    for number, hit in enumerate(hits, first_number):
        line = f"{number}. {address(hit)}"
        first = seen.setdefault(hit.text.strip(), number)
        if first != number:
            line += f" · same text as {first}"
        price = cost(line) + 1
        if spent + price > (budget * share if items else budget):
            break
        spent += price
        value = max(hit.score / best, 0.0) ** 2 if first == number else 0.0
        items.append(_Item(hit, number, value, line, price))
    return items


def _shapes(
    item: _Item, weights: Mapping[str, float], terms_of: TermsOf, spare: int, limit: int, detail: Detail
) -> list[_Shape]:
    """Return the longer forms a section may take within the spare budget."""
    if not item.value:
        return []
    hit, text = item.hit, item.hit.text.rstrip()
    head = f"=== {item.number}. {address(hit)} ==="
    shapes = []
    whole = f"{head}\n{text}"
    price = cost(whole) + 1
    if price - item.price <= spare and (detail != "snippet" or price <= _SNIPPET_TOKENS):
        shapes.append(_Shape("full", whole, price, item.value))
    room = min(limit, spare + item.price - cost(head) - _PART_TOKENS)
    if hit.cost > limit or not shapes:
        window = best_window(text.split("\n"), hit.section.line_start, weights, terms_of, room)
        if room > 0 and window.text:
            part = _render_window(head, window)
            shapes.append(_Shape("window", part, cost(part) + 1, item.value * _WINDOW_VALUE))
    return shapes


def _buy_by_value(items: Sequence[_Item], spare: int) -> None:
    """Show the best section, then buy the upgrade with the most value per token until nothing fits."""
    for shape in items[0].shapes if items else []:
        if shape.price - items[0].price <= spare:
            spare -= shape.price - items[0].price
            _show(items[0], shape)
            break
    while True:
        offers = [
            ((shape.worth - item.worth) / max(shape.price - item.price, 1), -item.number, item, shape)
            for item in items
            for shape in item.shapes
            if shape.worth > item.worth and shape.price - item.price <= spare
        ]
        if not offers:
            return
        _, _, item, shape = max(offers, key=lambda offer: offer[:2])
        spare -= shape.price - item.price
        _show(item, shape)


def _buy_in_order(items: Sequence[_Item], spare: int) -> None:
    """Show the sections one after the other, each as long as it still fits."""
    for item in items:
        for shape in item.shapes:
            if shape.price - item.price <= spare:
                spare -= shape.price - item.price
                _show(item, shape)
                break


def _show(item: _Item, shape: _Shape) -> None:
    item.shape, item.rendered, item.price, item.worth = shape.name, shape.text, shape.price, shape.worth


def _render_window(head: str, window: Window) -> str:
    lines = f"L{window.line_start}-{window.line_end}"
    part = f"part of line {window.line_start}" if window.is_cut_inside_line else f"only {lines}"
    return f"{head}\n[{part}]\n{window.text}"


def address(hit: Hit) -> str:
    """Return what a list says of a hit: id, lines, cost, why."""
    section = hit.section
    twins = [f"same text: {', '.join(hit.twins)}"] if hit.twins else []
    parts = [hit.id, f"L{section.line_start}-{section.line_end}", f"{hit.cost} tok", *hit.why, *twins]
    return " · ".join(parts)
