"""Literal search: the paragraphs in which a text stands as it was given.

Any part of a word counts. White space is folded, so that a phrase is found across the lines of a
paragraph; letter case is, too, unless it is asked for. Letters that are written in several ways in Unicode
are the same (NFC).
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from searchsvc.items import PAGE_MARK

_MOST_COUNTED = 5
"""Occurrences beyond these make no paragraph more relevant."""
_WHOLE_WORDS = 2
_IN_HEADING = 10


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Lines between blank ones, or a heading, that hold the text."""

    line_start: int
    line_end: int
    found: tuple[int, ...]
    """Lines on which the text stands or begins."""
    count: int
    """How often it stands there."""
    relevance: int
    """More for a heading, for whole words, and for up to five occurrences."""
    text: str
    """The lines, verbatim."""
    column: int = 0
    """Characters before the text on the first of those lines; nearly, where letters were folded."""


class Needle:
    """A text to look for."""

    def __init__(self, text: str, *, case_sensitive: bool = False) -> None:
        self._case_sensitive = case_sensitive
        self._text = " ".join(self._fold(text).split())
        self._longest = max(self._text.split(), key=len, default="")

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing to look for."""
        return not self._text

    def paragraphs(self, text: str, line_start: int, body_start: int) -> Iterator[Paragraph]:
        """Yield the paragraphs that hold the text, of a section that begins on ``line_start``."""
        if self._longest not in self._fold(text):
            return
        for first, lines in _blocks(text.split("\n"), body_start - line_start):
            found = self._found(lines, line_start + first, is_heading=first < body_start - line_start)
            if found is not None:
                yield found

    def _found(self, lines: list[str], line_start: int, *, is_heading: bool) -> Paragraph | None:
        folded = [" ".join(self._fold(line).split()) for line in lines]
        whole = " ".join(folded)
        places = [match.start() for match in re.finditer(re.escape(self._text), whole)]
        if not places:
            return None
        starts = [0, *accumulate(len(line) + 1 for line in folded[:-1])]
        first = bisect_right(starts, places[0]) - 1
        share = (places[0] - starts[first]) / max(len(folded[first]), 1)
        words = sum(self._is_whole(whole, place) for place in places)
        relevance = min(words, _MOST_COUNTED) * _WHOLE_WORDS + min(len(places) - words, _MOST_COUNTED)
        return Paragraph(
            line_start=line_start,
            line_end=line_start + len(lines) - 1,
            found=tuple(dict.fromkeys(line_start + bisect_right(starts, place) - 1 for place in places)),
            count=len(places),
            relevance=relevance + _IN_HEADING * is_heading,
            text="\n".join(lines),
            column=int(share * len(lines[first])),
        )

    def _is_whole(self, text: str, place: int) -> bool:
        """Tell whether no word goes on before or after a place; in no time, whatever stands there."""
        end = place + len(self._text)
        return not (
            (_is_word(self._text[0]) and _is_word(text[place - 1 : place]))
            or (_is_word(self._text[-1]) and _is_word(text[end : end + 1]))
        )

    def _fold(self, text: str) -> str:
        if text.isascii():
            return text if self._case_sensitive else text.lower()
        text = unicodedata.normalize("NFC", text)
        # Folding may leave letters composed in another way: an upper case one that has no single sign.
        return text if self._case_sensitive else unicodedata.normalize("NFC", text.casefold())


def _is_word(character: str) -> bool:
    return character == "_" or character.isalnum()


def _blocks(lines: Iterable[str], heading: int) -> Iterator[tuple[int, list[str]]]:
    """Yield runs of lines with text and the place of their first; the ``heading`` lines are one of them."""
    block: list[str] = []
    number = 0
    for number, line in enumerate(lines):
        if number == heading and block:
            yield number - len(block), block
            block = []
        if line.strip() and not PAGE_MARK.fullmatch(line.strip()):
            block.append(line)
        elif block:
            yield number - len(block), block
            block = []
    if block:
        yield number + 1 - len(block), block
