"""The blocks of a note -> its headings with all names that links may call them by.

A link ``#name`` leads not only to headings by their own text: authors put ``<a id="name"></a>`` in front of
a heading, into it or anywhere below it, renderers give headings inside quotes and lists an anchor, too, and
in Obsidian ``#^name`` leads to the block that ends with ``^name``.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from searchsvc.reading.slugs import slug
from searchsvc.reading.structure import Heading, Structure

_BLOCK_ID = re.compile(r"(?:^|(?<=[ \t]))(\^[A-Za-z0-9-]{1,200})[ \t]*$", re.MULTILINE)
_NAMED_TAG = re.compile(
    r"""<[A-Za-z][^<>]{0,500}?\s(?:id|name)\s*=\s*(?:"([^"\s]{1,200})"|'([^'\s]{1,200})'|([^\s"'<>/]{1,200}))"""
)
_TAG = re.compile(r"<[^<>]{1,1000}>")


def named_headings(structure: Structure) -> list[Heading]:
    """Return the headings of a structure with more ``names``; the anchor of one heading names no other.

    What stands before the first heading counts as part of it.
    """
    headings = structure.headings
    names = defaultdict[int, dict[str, None]](dict)
    for place, name in _ids(structure):
        names[max(place, 0)][name] = None
    starts = [heading.line_start for heading in headings]
    for line, title in structure.inner_headings:
        names[max(bisect_right(starts, line) - 1, 0)][slug(title)] = None
    if not names:
        return headings
    taken = {"", *(slug(heading.title) for heading in headings)}
    return [
        replace(heading, names=(*heading.names, *(name for name in names[place] if name not in taken)))
        for place, heading in enumerate(headings)
    ]


def _ids(structure: Structure) -> Iterator[tuple[int, str]]:
    """Yield the ids of HTML elements and blocks, each with the place of the heading that it leads to.

    Elements that stand alone in front of a heading lead to that one.
    """
    starts = [heading.line_start for heading in structure.headings]
    waiting = list[str]()
    for block in structure.blocks:
        if "^" in block.content and not block.html:
            place = bisect_right(starts, block.line) - 1
            yield from ((place, name) for name in _BLOCK_ID.findall(block.content))
        if "<" in block.content:
            waiting += ["".join(name) for name in _NAMED_TAG.findall(block.content)]
        if waiting:
            place = bisect_right(starts, block.line) - 1
            is_heading = place >= 0 and starts[place] == block.line
            if is_heading or _TAG.sub("", block.content).strip():
                yield from ((place, name) for name in waiting)
                waiting.clear()
    yield from ((len(starts) - 1, name) for name in waiting)
