"""Headings -> sections with ids, parents and line ranges that tile the note."""

from searchsvc.items import INTRO, Section
from searchsvc.reading.pages import Pages
from searchsvc.reading.slugs import Slugger, slug
from searchsvc.reading.structure import Heading

PREAMBLE = "_preamble"
UNTITLED = "_untitled"
NO_PAGES = Pages()


def make_sections(
    lines: tuple[str, ...], headings: list[Heading], body_start: int, pages: Pages = NO_PAGES
) -> tuple[Section, ...]:
    """Return the sections of a note, in file order.

    Text before the first heading is a section when it has words. A note that is front matter only
    gets one section over it, so that its properties can be found.
    """
    last = len(lines)
    sections = _preamble(lines, headings, body_start, pages)
    has_title, subtree_ends = _has_title(headings), _subtree_ends(headings, last)
    anchors, scopes = Slugger(), {-1: Slugger(taken=(PREAMBLE, INTRO))}
    stack: list[int] = []
    for number, heading in enumerate(headings):
        while stack and sections[stack[-1]].level >= heading.level:
            stack.pop()
        parent = stack[-1] if stack else -1
        index = len(sections)
        is_title = has_title and number == 0
        scope = -1 if parent < 0 or sections[parent].slug == INTRO else parent
        base = slug(heading.title)
        line_end = headings[number + 1].line_start - 1 if number + 1 < len(headings) else last
        leaf = INTRO if is_title else scopes[scope].unique(base or UNTITLED)
        prefix = f"{sections[scope].slug}/" if scope >= 0 else ""
        above = sections[parent].heading_path if parent >= 0 else ()
        sections.append(
            Section(
                slug=prefix + leaf,
                title=heading.title,
                level=heading.level,
                heading_path=(*above, heading.title),
                parent=parent,
                line_start=heading.line_start,
                body_start=heading.line_end + 1,
                line_end=line_end,
                subtree_end=subtree_ends[number],
                anchor=anchors.unique(base) if base else "",
                custom_anchor=" ".join(heading.names),
                pages=pages.of(lines, heading.line_start, line_end),
            )
        )
        scopes[index] = Slugger()
        stack.append(index)
    return tuple(sections)


def _has_title(headings: list[Heading]) -> bool:
    """Tell whether the first heading is the note's title: its only one of level 1."""
    return bool(headings) and headings[0].level == 1 and sum(h.level == 1 for h in headings) == 1


def _subtree_ends(headings: list[Heading], last: int) -> list[int]:
    """Return for each heading the last line before the next one of the same or a smaller level."""
    ends, open_headings = [last] * len(headings), list[int]()
    for number, heading in enumerate(headings):
        while open_headings and headings[open_headings[-1]].level >= heading.level:
            ends[open_headings.pop()] = heading.line_start - 1
        open_headings.append(number)
    return ends


def _preamble(
    lines: tuple[str, ...], headings: list[Heading], body_start: int, pages: Pages
) -> list[Section]:
    stop = headings[0].line_start - 1 if headings else len(lines)
    # Blank as CommonMark has it: nothing but spaces and tabs.
    start = next(
        (n for n in range(body_start, stop + 1) if lines[n - 1].strip(" \t") and n not in pages.lines), None
    )
    if start is None:
        if headings or body_start == 1:
            return []
        start, stop = 1, body_start - 1
    return [
        Section(
            slug=PREAMBLE, title="", level=0, heading_path=(), parent=-1, line_start=start,
            body_start=start, line_end=stop, subtree_end=stop, anchor="",
            pages=pages.of(lines, start, stop),
        )
    ]  # fmt: skip
