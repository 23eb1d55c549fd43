"""The text of a file -> a note."""

import re
from collections.abc import Iterator

from searchsvc.items import INTRO, Link, Note, Section
from searchsvc.reading.decode import Text, decode
from searchsvc.reading.frontmatter import FrontMatter, read_front_matter
from searchsvc.reading.links import NOTE_SUFFIXES, read_references, wikilinks
from searchsvc.reading.metadata import read_metadata
from searchsvc.reading.pages import read_pages
from searchsvc.reading.sections import make_sections
from searchsvc.reading.structure import read_structure
from searchsvc.reading.targets import named_headings

_LINES_AHEAD = 20
_BETWEEN_TAGS = re.compile(r"[,\s]+")
_BETWEEN_ALIASES = re.compile(r"[,\n]")


def read_note(path: str, data: bytes) -> Note:
    """Parse the bytes of a Markdown file; ``path`` is relative to its root.

    Raises ``ReadingError`` when the bytes are no text; everything else that is wrong with the file is
    a problem of the note, not an error.
    """
    return parse_note(path, decode(data))


def parse_note(path: str, text: Text) -> Note:
    """Parse decoded text."""
    front = read_front_matter(text.lines)
    body_start = front.lines + 1
    structure = read_structure(text.lines, body_start)
    pages = read_pages(text.lines, front.properties)
    sections = make_sections(text.lines, named_headings(structure), body_start, pages)
    references = read_references(structure)
    return Note(
        path=path,
        title=note_title(path, front, sections),
        lines=text.lines,
        sections=sections,
        body_start=body_start,
        properties=front.properties,
        metadata=read_metadata(front),
        tags=_tags(front, references.tags),
        aliases=_aliases(front),
        links=(*_property_links(front, text.lines), *references.links),
        images=tuple(references.images),
        code=tuple(structure.code),
        problems=tuple(problem for problem in (text.problem, front.problem) if problem),
    )


def note_title(path: str, front: FrontMatter, sections: tuple[Section, ...]) -> str:
    """Return the title by the front matter, else by the title heading, else by the file's name."""
    heading = next((section.title for section in sections[:2] if section.slug == INTRO), "")
    return front_title(front) or heading or stem(path)


def stem(path: str) -> str:
    """Return the file name of a note without its suffix; other dots belong to the name."""
    name = path.rsplit("/", 1)[-1]
    for suffix in NOTE_SUFFIXES:
        if name.lower().endswith(suffix):
            return name[: -len(suffix)]
    return name


def front_title(front: FrontMatter) -> str:
    """Return the title of the front matter as written, so that ``1.10`` stays what it is."""
    key = next((key for key in front.properties if key.lower() == "title"), "")
    value = front.properties.get(key)
    if isinstance(value, bool):
        return str(value).lower()
    return "" if isinstance(value, list | dict) else " ".join("".join(front.texts.get(key, ())).split())


def _values(front: FrontMatter, names: tuple[str, ...], separator: re.Pattern[str]) -> Iterator[str]:
    """Yield the items of a list property; a text holds several, an item of a list is one.

    The name of the property is matched without regard to case, as Obsidian does.
    """
    for key, texts in front.texts.items():
        if key.lower() in names:
            yield from texts if isinstance(front.properties[key], list) else separator.split(texts[0])


def _aliases(front: FrontMatter) -> tuple[str, ...]:
    found = (alias.strip() for alias in _values(front, ("aliases", "alias"), _BETWEEN_ALIASES))
    return tuple(alias for alias in found if alias)


def _property_links(front: FrontMatter, lines: tuple[str, ...]) -> list[Link]:
    """Return the wikilinks in properties, which Obsidian counts like those in the text.

    YAML reads ``[[Note]]`` without quotes as a list in a list; that is no link.
    """
    holders = [number for number, line in enumerate(lines[: front.lines], 1) if "[[" in line]
    found: list[Link] = []
    for text in (text for texts in front.texts.values() for text in texts if "[[" in text):
        ahead = (n for n, holder in enumerate(holders[:_LINES_AHEAD]) if text in lines[holder - 1])
        del holders[: next(ahead, 0)]
        found += wikilinks(text, holders[0] if holders else 1)
    return found


def _tags(front: FrontMatter, inline: list[str]) -> tuple[str, ...]:
    """Return tags once each."""
    written = _values(front, ("tags", "tag"), _BETWEEN_TAGS)
    distinct: dict[str, str] = {}
    for tag in [*written, *inline]:
        name = tag.lstrip("#").strip("/")
        if name:
            distinct.setdefault(name.casefold(), name)
    return tuple(distinct.values())
