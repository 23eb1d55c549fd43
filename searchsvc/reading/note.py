"""The text of a file -> a note."""

from searchsvc.items import Note
from searchsvc.reading.decode import Text, decode
from searchsvc.reading.frontmatter import FrontMatter, read_front_matter, text_list
from searchsvc.reading.links import NOTE_SUFFIXES, read_references
from searchsvc.reading.sections import INTRO, make_sections
from searchsvc.reading.structure import read_structure


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
    sections = make_sections(text.lines, structure.headings, body_start)
    references = read_references(structure)
    titled = bool(sections) and any(section.slug == INTRO for section in sections[:2])
    heading = next((s.title for s in sections if s.slug == INTRO), "") if titled else ""
    return Note(
        path=path,
        title=_title(front) or heading or stem(path),
        lines=text.lines,
        sections=sections,
        body_start=body_start,
        properties=front.properties,
        tags=_tags(front, references.tags),
        aliases=tuple(_property(front, "aliases", "alias")),
        links=tuple(references.links),
        images=tuple(references.images),
        problems=tuple(problem for problem in (text.problem, front.problem) if problem),
    )


def stem(path: str) -> str:
    """Return the file name of a note without its suffix; other dots belong to the name."""
    name = path.rsplit("/", 1)[-1]
    for suffix in NOTE_SUFFIXES:
        if name.lower().endswith(suffix):
            return name[: -len(suffix)]
    return name


def _title(front: FrontMatter) -> str:
    value = front.properties.get("title")
    return "" if value is None or isinstance(value, list | dict) else " ".join(str(value).split())


def _property(front: FrontMatter, *names: str, split_commas: bool = False) -> list[str]:
    """Collect a list property; its name is matched without regard to case, as Obsidian does."""
    values = [value for key, value in front.properties.items() if key.lower() in names]
    return [text for value in values for text in text_list(value, split_commas=split_commas)]


def _tags(front: FrontMatter, inline: list[str]) -> tuple[str, ...]:
    written = _property(front, "tags", "tag", split_commas=True) + inline
    distinct: dict[str, str] = {}
    for tag in written:
        name = tag.lstrip("#")
        if name:
            distinct.setdefault(name.casefold(), name)
    return tuple(distinct.values())
