"""The best part of a section that is too long for the budget."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from searchsvc.tokens import cost

_FENCE = re.compile(r" {0,3}(?:> ?)*(`{3,}|~{3,})(.*)$")
_LINE_END_COST = 0.3
_ELLIPSIS = "…"


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive lines of a section, verbatim but for repaired fences and a cut inside a line."""

    text: str
    line_start: int
    line_end: int
    is_cut_inside_line: bool = False


def best_window(
    lines: Sequence[str],
    first_line: int,
    weights: Mapping[str, float],
    terms_of: Callable[[str], list[str]],
    budget: int,
) -> Window:
    """Return the lines that hold the most of the question and cost at most ``budget`` tokens.

    ``weights`` has the IDF of each term of the question. The line that holds most of it is taken first,
    then its neighbours, the richer side first, as long as they fit.
    """
    gains = [_gain(line, weights, terms_of) for line in lines]
    costs = [cost(line) + _LINE_END_COST for line in lines]
    seed = max(
        range(len(lines)), key=lambda i: (gains[i] + 0.5 * _around(gains, i), bool(lines[i].strip()), -i)
    )
    if costs[seed] > budget:
        text = _cut_line(lines[seed], weights, terms_of, budget)
        return Window(text, first_line + seed, first_line + seed, is_cut_inside_line=True)
    start = stop = seed
    spent = costs[seed]
    while True:
        above = start > 0 and spent + costs[start - 1] <= budget
        below = stop < len(lines) - 1 and spent + costs[stop + 1] <= budget
        if not above and not below:
            break
        if above and (not below or sum(gains[:start]) > sum(gains[stop + 1 :])):
            start -= 1
            spent += costs[start]
        else:
            stop += 1
            spent += costs[stop]
    start, stop = _trim(lines, start, stop)
    text = with_fences(lines, start, stop)
    if cost(text) > budget and start < stop:
        return best_window(lines[start : stop + 1], first_line + start, weights, terms_of, int(budget * 0.8))
    return Window(text, first_line + start, first_line + stop)


def with_fences(lines: Sequence[str], start: int, stop: int) -> str:
    """Return lines ``start`` to ``stop`` (0-based, inclusive), code fences opened and closed again."""
    before, after = open_fence(lines[:start]), open_fence(lines[: stop + 1])
    parts = list(lines[start : stop + 1])
    if before and not (parts and _closes(parts[0], before)):
        parts.insert(0, before)
    if after:
        parts.append(_FENCE.match(after).group(1))  # type: ignore[union-attr]
    return "\n".join(parts)


def open_fence(lines: Sequence[str]) -> str:
    """Return the opening line of the code block that is still open after these lines, or nothing."""
    opening = ""
    for line in lines:
        if opening:
            if _closes(line, opening):
                opening = ""
        elif (match := _FENCE.match(line)) and not (match.group(1)[0] == "`" and "`" in match.group(2)):
            opening = line
    return opening


def _closes(line: str, opening: str) -> bool:
    match, mark = _FENCE.match(line), _FENCE.match(opening).group(1)  # type: ignore[union-attr]
    return bool(match) and match.group(1).startswith(mark) and not match.group(2).strip()  # type: ignore[union-attr]


def _gain(line: str, weights: Mapping[str, float], terms_of: Callable[[str], list[str]]) -> float:
    return sum(weights.get(term, 0.0) for term in set(terms_of(line)))


def _around(gains: Sequence[float], place: int) -> float:
    return sum(gains[max(0, place - 2) : place]) + sum(gains[place + 1 : place + 3])


def _trim(lines: Sequence[str], start: int, stop: int) -> tuple[int, int]:
    while start < stop and not lines[start].strip():
        start += 1
    while stop > start and not lines[stop].strip():
        stop -= 1
    return start, stop


def _cut_line(
    line: str, weights: Mapping[str, float], terms_of: Callable[[str], list[str]], budget: int
) -> str:
    """Return a piece of one long line around the words of the question, cut between characters."""
    pieces = [match.span() for match in re.finditer(r"\S+\s*", line)] or [(0, len(line))]
    place = max(pieces, key=lambda span: (_gain(line[span[0] : span[1]], weights, terms_of), -span[0]))[0]
    width = max(1, int(budget * 3))
    while True:
        start = max(0, min(place - width // 4, len(line) - width))
        start = _word_start(line, start, place)
        piece = line[start : start + width].strip()
        text = f"{_ELLIPSIS if start else ''}{piece}{_ELLIPSIS if start + width < len(line) else ''}"
        if cost(text) <= budget or width <= 1:
            return text if cost(text) <= budget else ""
        width = int(width * 0.8)


def _word_start(line: str, start: int, limit: int) -> int:
    blank = line.find(" ", start, min(limit, start + 30)) if start else -1
    return blank + 1 if blank >= 0 else start
