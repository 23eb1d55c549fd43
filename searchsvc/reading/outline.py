"""The text of a file -> its outline: sections with costs, code, images; no links, which readers need not."""

import re
from dataclasses import dataclass

from searchsvc.items import CodeBlock, Image, Section
from searchsvc.reading.decode import Text
from searchsvc.reading.frontmatter import FrontMatter, read_front_matter
from searchsvc.reading.links import read_images
from searchsvc.reading.note import note_title
from searchsvc.reading.pages import Pages, read_pages
from searchsvc.reading.sections import NO_PAGES, make_sections
from searchsvc.reading.structure import Structure, plain_text, read_structure
from searchsvc.reading.targets import named_headings
from searchsvc.tokens import cost

_MAX_SUMMARY = 160
_SUMMARIES = ("description", "summary", "abstract")
_WORDS = re.compile(r"\w")
_IMAGE = re.compile(r"!\[\[[^\[\]]*\]\]|!\[[^\[\]]*\](?:\([^()]*\)|\[[^\[\]]*\])")
_EMPTY_LINK = re.compile(r"\[\s*\](?:\([^()]*\)|\[[^\[\]]*\])")
"""What is left of a link whose text was an image, such as a badge."""


@dataclass(frozen=True, slots=True)
class Outline:
    """What stands where in a file."""

    title: str
    """Front matter title, else the title heading, else the file's stem."""
    opening: str
    """Description by the front matter, else the beginning of the running text, in Markdown."""
    sections: tuple[Section, ...]
    """In file order."""
    costs: tuple[int, ...]
    """Tokens of each section's own lines."""
    code: tuple[CodeBlock, ...]
    images: tuple[Image, ...]
    lines: int
    """How many lines the file has."""
    characters: int
    """How many characters, line ends not counted."""
    cost: int
    """Tokens of the whole file."""
    body_start: int
    """First line after the front matter."""
    pages: Pages = NO_PAGES
    """Where the pages of an imported document begin."""
    problems: tuple[str, ...] = ()
    """What was wrong with the file but did not stop the reading."""

    @property
    def summary(self) -> str:
        """What the note is about, in one short line without markup."""
        text = plain_text(self.opening)
        return text if len(text) <= _MAX_SUMMARY else f"{text[:_MAX_SUMMARY].rsplit(' ', 1)[0]}…"

    def read_cost(self, place: int) -> int:
        """Return the tokens of what the id of a section, given by its place, returns."""
        end = self.sections[place].read_end
        total = 0
        for section, own in zip(self.sections[place:], self.costs[place:], strict=True):
            if section.line_start > end:
                break
            total += own
        return total


def outline_of(path: str, text: Text) -> Outline:
    """Parse decoded text."""
    lines = text.lines
    front = read_front_matter(lines)
    structure = read_structure(lines, front.lines + 1)
    pages = read_pages(lines, front.properties)
    sections = make_sections(lines, named_headings(structure), front.lines + 1, pages)
    costs = tuple(cost("\n".join(lines[s.line_start - 1 : s.line_end])) for s in sections)
    head = sections[0].line_start - 1 if sections else len(lines)
    return Outline(
        title=note_title(path, front, sections),
        opening=_opening(front, structure),
        sections=sections,
        costs=costs,
        code=tuple(structure.code),
        images=tuple(read_images(structure)),
        lines=len(lines),
        characters=sum(map(len, lines)),
        cost=sum(costs) + cost("\n".join(lines[:head])),
        body_start=front.lines + 1,
        pages=pages,
        problems=tuple(problem for problem in (text.problem, front.problem) if problem),
    )


def _opening(front: FrontMatter, structure: Structure) -> str:
    written = next((front.texts[key][0] for key in front.texts if key.lower() in _SUMMARIES), "")
    if not written:
        titles = {heading.line_start for heading in structure.headings}
        prose = (b for b in structure.blocks if not b.html and b.line not in titles)
        texts = (block.content[: 4 * _MAX_SUMMARY] for block in prose)
        written = next((text for text in texts if _says_more(text)), "")
    return written


def _says_more(text: str) -> bool:
    """Tell whether a text has words beside its images."""
    return bool(_WORDS.search(_EMPTY_LINK.sub("", _IMAGE.sub("", text))))
