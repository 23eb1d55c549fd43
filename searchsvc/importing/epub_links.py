"""Links of a book: where an address inside it leads, and what becomes of that in one Markdown file.

While chapters are converted, nobody knows the anchors of later headings. So headings and links are
written with control characters, which no chapter can hold, and put right when all is there.
"""

import posixpath
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from searchsvc.reading.slugs import Slugger, slug
from searchsvc.reading.structure import plain_text

HEADING, LINK, LINK_TEXT, LINK_END = "\x05", "\x02", "\x03", "\x04"
HEADING_NUMBER = re.compile(f"^{HEADING}(\\d+){HEADING}", re.MULTILINE)
GUARD = "\x06"
"""Stands before a character that has to be escaped at the start of a line."""
KEPT_BLANK = "\x12"
"""Stands on blank lines that are to be kept."""
_HEADING = re.compile(f"^{HEADING}(\\d+){HEADING}(.*)$", re.MULTILINE)
_LINK = re.compile(f"{LINK}(\\d+){LINK_TEXT}([^{LINK}{LINK_END}]*){LINK_END}")
_LINE_START = re.compile(f"^((?:[ \\t>]|[-+*] |\\d{{1,9}}[.)] )*+\\d{{0,9}}){GUARD}", re.MULTILINE)
_STRAY = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
_CLOSING = re.compile(r"(^|\s)(#+)$")
_UNSAFE = re.compile(r"[\s()<>\\\"'`|*\[\]]")
_SCHEMES = frozenset(("http", "https", "mailto"))
_MAX_URL = 2_000
_LAST_LEVEL = 6


class Place(NamedTuple):
    """A spot in a book."""

    path: str
    """Name of a member; empty for what lies outside."""
    anchor: str = ""
    """The id of an element; empty for the document itself."""


def resolve(base: str, href: str) -> Place:
    """Return where an address leads, seen from the document ``base``; an empty path when it leads out."""
    try:
        parts = urlsplit(href.strip())
    except ValueError:
        return Place("")
    if parts.scheme or parts.netloc:
        return Place("")
    anchor = unquote(parts.fragment)
    if not parts.path:
        return Place(base, anchor)
    path = posixpath.normpath(posixpath.join(posixpath.dirname(base), unquote(parts.path)))
    while path.startswith(("../", "/")):
        path = path.removeprefix("..").lstrip("/")
    return Place(path, anchor)


def external(href: str) -> str:
    """Return a web or mail address in a form that fits Markdown; empty when it is neither."""
    href = "".join(href.split())
    try:
        scheme = urlsplit(href).scheme.lower()
    except ValueError:
        return ""
    if scheme not in _SCHEMES or len(href) > _MAX_URL:
        return ""
    return _UNSAFE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found.group().encode()), href)


@dataclass(slots=True)
class Weave:
    """Headings, ids and links of a book as they come, and the final text."""

    levels: list[int] = field(default_factory=list)
    """Of every heading, in order."""
    is_named: list[bool] = field(default_factory=list)
    """Whether a heading was made of a title of the navigation; its level is right as it is."""
    places: dict[Place, int] = field(default_factory=dict)
    """The heading that a place belongs to, -1 before the first."""
    links: list[Place] = field(default_factory=list)

    def heading(self, level: int, *, is_named: bool = False) -> int:
        """Note a heading, return its number."""
        self.levels.append(level)
        self.is_named.append(is_named)
        return len(self.levels) - 1

    def link(self, text: str, place: Place) -> str:
        """Return a link to be put right later."""
        self.links.append(place)
        return f"{LINK}{len(self.links) - 1}{LINK_TEXT}{text}{LINK_END}"

    def finish(self, text: str, chapter_level: int) -> str:
        """Return Markdown: headings with their level, links with their anchor."""
        slugger, numbers, anchors = Slugger(), list[int](), list[str]()

        def heading(found: re.Match[str]) -> str:
            number, source = int(found.group(1)), heading_source(found.group(2))
            level = self.levels[number]
            if not self.is_named[number]:
                level = min(max(level - chapter_level + 1, 1), _LAST_LEVEL)
            base = slug(plain_text(source))
            numbers.append(number)
            anchors.append(slugger.unique(base) if base else "")
            return f"{'#' * level} {source}"

        def link(found: re.Match[str]) -> str:
            number = self.places.get(self.links[int(found.group(1))], -1)
            index = bisect_right(numbers, number) - 1
            anchor = anchors[index] if index >= 0 else ""
            return f"[{found.group(2)}](#{anchor})" if anchor else found.group(2)

        text = _HEADING.sub(heading, text)
        text = _LINE_START.sub(r"\1\\", _LINK.sub(link, text))
        return _STRAY.sub("", text)


def heading_source(text: str) -> str:
    """Return the text of a heading so that its end is not read as the closing of it, or as its id."""
    text = _STRAY.sub("", text).strip()
    text = _CLOSING.sub(r"\1\\\2", text)
    if text.endswith("}"):
        head, brace, tail = text.rpartition("{")
        return f"{head}&#123;{tail}" if brace else text
    return text
