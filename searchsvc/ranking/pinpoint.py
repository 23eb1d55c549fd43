"""The part of an address after ``#`` -> the sections it means: one and what lies below it."""

import difflib
from collections.abc import Callable, Sequence

from searchsvc.errors import NotFound, QueryError
from searchsvc.index.catalog import SectionRow
from searchsvc.index.links import comparable
from searchsvc.items import INTRO

_SHOWN = 5


def pinpoint(sections: Sequence[SectionRow], asked: str, note: str) -> list[int]:
    """Return the ids of the section that ``asked`` names, and of all sections below it.

    Accepts the slug of an id, its last part where that is unique, an anchor, or the heading. Raises
    ``NotFound`` naming the nearest, ``QueryError`` naming the candidates when several fit.
    """
    wanted, heading = asked.strip(), comparable(asked.lstrip("# "))
    tests: list[Callable[[SectionRow], bool]] = [
        lambda row: row.section.slug == wanted,
        lambda row: row.section.slug.rpartition("/")[2] == wanted,
        lambda row: wanted.lower() in map(str.lower, row.section.anchors),
        lambda row: bool(heading) and comparable(row.section.title) == heading,
    ]
    for is_meant in tests:
        found = [row for row in sections if is_meant(row)]
        if len(found) > 1:
            several = ", ".join(f"{note}#{row.section.slug}" for row in found[:_SHOWN])
            raise QueryError(f"{asked!r} means several sections of {note}; give one of: {several}")
        if found:
            if found[0].section.slug == INTRO != wanted:
                return [row.id for row in sections]  # the title of a note stands for all of it
            below = f"{found[0].section.slug}/"
            return [row.id for row in sections if row is found[0] or row.section.slug.startswith(below)]
    slugs = [row.section.slug for row in sections]
    near = difflib.get_close_matches(wanted, slugs, n=3, cutoff=0.4) or slugs[:3]
    raise NotFound(
        f"{note} has no section {asked!r}; nearest: {', '.join(f'{note}#{slug}' for slug in near)}"
    )
