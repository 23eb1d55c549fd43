"""Page marks: where each page of an imported document begins.

Importers put a line ``<!-- page N -->`` before the first text of every page, and say in the front matter how
many pages there are. A note without that property has no pages, whatever comments stand in it.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from searchsvc.items import PAGE_MARK, PAGE_MARK_START


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of a document, by the lines on which they begin."""

    lines: tuple[int, ...] = ()
    """Of the marks, ascending."""
    numbers: tuple[int, ...] = ()
    """Page that begins at each."""

    def of(self, lines: Sequence[str], first: int, last: int) -> tuple[int, int] | None:
        """Return the first and last page that lines of the document stand on; none without pages.

        A mark at the end, after which nothing follows, belongs to what comes next.
        """
        if not self.lines:
            return None
        while last > first and (not lines[last - 1].strip() or PAGE_MARK.fullmatch(lines[last - 1].strip())):
            last -= 1
        return self._at(first), self._at(last)

    def range(self, first: int, last: int, count: int) -> tuple[int, int] | None:
        """Return the first and last line of pages of a document of ``count`` lines; none when it has none."""
        starts = [line for line, page in zip(self.lines, self.numbers, strict=True) if first <= page <= last]
        if not starts:
            return None
        after = [line for line, page in zip(self.lines, self.numbers, strict=True) if page > last]
        end = min((line for line in after if line > starts[-1]), default=count + 1)
        return starts[0], end - 1

    def _at(self, line: int) -> int:
        place = bisect_right(self.lines, line) - 1
        return self.numbers[max(place, 0)]


def read_pages(lines: Sequence[str], properties: Mapping[str, Any]) -> Pages:
    """Return the pages of a document by its lines and front matter."""
    count = properties.get("pages")
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        return Pages()
    found = (
        (n, PAGE_MARK.fullmatch(line.strip())) for n, line in enumerate(lines, 1) if PAGE_MARK_START in line
    )
    marks = [(n, int(mark[1])) for n, mark in found if mark]
    return Pages(tuple(n for n, _ in marks), tuple(page for _, page in marks))
