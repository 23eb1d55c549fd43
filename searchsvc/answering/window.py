"""The best part of a section that is too long for the budget."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from searchsvc.answering.lines import ELLIPSIS, is_inside_character
from searchsvc.tokens import cost

TermsOf = Callable[[str], list[str]]

_FENCE = re.compile(r"((?:[ \t>]|(?:[-*+]|\d{1,9}[.)])[ \t])*)(`{3,}|~{3,})(.*)$")
"""What stands before a code fence (quote signs, list markers, blanks), its mark, and the rest."""
_LIST_MARKER = re.compile(r"[-*+]|\d{1,9}[.)]")
_CODE_INDENT = 4
_PIECE = re.compile(r"\S{1,40}\s*|\s+")
_LINE_END_COST = 0.3
_SHRINK = 0.8


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive lines of a section, verbatim but for repaired fences and a cut inside a line."""

    text: str
    line_start: int
    line_end: int
    is_cut_inside_line: bool = False


def best_window(
    lines: Sequence[str], first_line: int, weights: Mapping[str, float], terms_of: TermsOf, budget: float
) -> Window:
    """Return the lines that hold the most of the question and cost at most ``budget`` tokens.

    ``weights`` has the IDF of each term of the question. The line that holds most of it is taken first, where
    none holds any the first below the heading, then its neighbours, the richer side first, as long as they
    fit. The text is empty when not even a piece of a line fits.
    """
    gains = [_gain(line, weights, terms_of) for line in lines]
    costs = [cost(line) + _LINE_END_COST for line in lines]
    seed = max(range(len(lines)), key=lambda i: (gains[i], _around(gains, i), _is_body(lines[i]), -i))
    fences, limit = _fences(lines), budget
    while costs[seed] <= limit:
        start, stop = _trim(lines, fences, *_grow(gains, costs, seed, limit))
        text = "\n".join(_repaired(lines, fences, start, stop))
        if cost(text) <= budget:
            return Window(text, first_line + start, first_line + stop)
        limit *= _SHRINK  # The fences that were added cost too much.
    text = _cut_line(lines[seed], weights, terms_of, budget)
    is_cut = text != lines[seed].strip()
    return Window(text, first_line + seed, first_line + seed, is_cut_inside_line=is_cut)


def _grow(gains: Sequence[float], costs: Sequence[float], seed: int, limit: float) -> tuple[int, int]:
    """Return first and last place of the lines around the seed that cost at most ``limit``."""
    before = [0.0, *accumulate(gains)]
    start = stop = seed
    spent = costs[seed]
    while True:
        above = start > 0 and spent + costs[start - 1] <= limit
        below = stop < len(costs) - 1 and spent + costs[stop + 1] <= limit
        if not above and not below:
            return start, stop
        if above and (not below or before[start] > before[-1] - before[stop + 1]):
            start -= 1
            spent += costs[start]
        else:
            stop += 1
            spent += costs[stop]


def _trim(lines: Sequence[str], fences: Sequence[str], start: int, stop: int) -> tuple[int, int]:
    """Leave out blank lines at both ends, and fences whose code is not shown."""
    while start < stop and (not lines[start].strip() or (fences[start] and not fences[start + 1])):
        start += 1
    while stop > start and (not lines[stop].strip() or (fences[stop + 1] and not fences[stop])):
        stop -= 1
    return start, stop


def _fences(lines: Sequence[str]) -> list[str]:
    """Return for each line the opening line of the code block that it stands in, and one more for the end.

    An opening line does not yet stand in its block, a closing line still does.
    """
    opening = ""
    state = [opening]
    for line in lines:
        if not opening:
            opening = line if _opens(line) else ""
        elif _closes(line, opening):
            opening = ""
        state.append(opening)
    return state


def _opens(line: str) -> bool:
    match = _FENCE.match(line)
    return match is not None and not (match[2][0] == "`" and "`" in match[3])


def _closes(line: str, opening: str) -> bool:
    match, opened = _FENCE.match(line), _FENCE.match(opening)
    if match is None or opened is None or match[3].strip():
        return False
    return match[2].startswith(opened[2]) and len(match[1]) < len(opened[1]) + _CODE_INDENT


def _repaired(lines: Sequence[str], fences: Sequence[str], start: int, stop: int) -> list[str]:
    """Return a range of lines, code blocks that it cuts opened and closed again."""
    parts = list(lines[start : stop + 1])
    if fences[start]:
        parts.insert(0, fences[start])
    closing = closing_fence(fences[stop + 1])
    return [*parts, closing] if closing else parts


def closing_fence(opening: str) -> str:
    """Return the line that closes a code block opened by a line; empty when that line opens none."""
    opened = _FENCE.match(opening)
    if opened is None:
        return ""
    return _LIST_MARKER.sub(lambda marker: " " * len(marker[0]), opened[1]) + opened[2]


def _gain(text: str, weights: Mapping[str, float], terms_of: TermsOf) -> float:
    return sum(weights.get(term, 0.0) for term in set(terms_of(text))) if weights else 0.0


def _is_body(line: str) -> int:
    """Tell text, 2, from a heading, 1, which says no more than the id of the section, and from a blank, 0."""
    return (2 if not line.startswith("#") else 1) if line.strip() else 0


def _around(gains: Sequence[float], place: int) -> float:
    return sum(gains[max(0, place - 2) : place]) + sum(gains[place + 1 : place + 3])


def _cut_line(line: str, weights: Mapping[str, float], terms_of: TermsOf, budget: float) -> str:
    """Return a piece of one long line around the words of the question, cut between characters."""
    pieces = [match.span() for match in _PIECE.finditer(line)] or [(0, 0)]
    place = max(pieces, key=lambda span: (_gain(line[span[0] : span[1]], weights, terms_of), -span[0]))[0]
    width = int(budget * 3)
    while width > 0:
        start = _cut_before(line, max(0, min(place - width // 4, len(line) - width)), place)
        stop = start + width
        while stop > start and is_inside_character(line, stop):
            stop -= 1
        text = line[start:stop].strip()
        text = f"{ELLIPSIS if start else ''}{text}{ELLIPSIS if stop < len(line) else ''}" if text else ""
        if cost(text) <= budget:
            return text
        width = int(width * _SHRINK)
    return ""


def _cut_before(line: str, start: int, limit: int) -> int:
    """Return a place near ``start``, at most ``limit``, where a word or at least a character begins."""
    blank = line.find(" ", start, min(limit, start + 30)) if start else -1
    if blank >= 0:
        return blank + 1
    while start > 0 and is_inside_character(line, start):
        start -= 1
    return start
