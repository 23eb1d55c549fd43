"""The nouns of the package: what travels between the rooms.

A note becomes sections; a question becomes a ranking of hits; a ranking becomes an answer.
All lines are 1-based, inclusive, and count every line of the file as stored.
"""

import re
from dataclasses import dataclass, field
from typing import Any, Literal

PAGE_MARK = re.compile(r"<!-- page (\d{1,6}) -->")
"""The line that importers put before the first text of every page."""
PAGE_MARK_START = "<!-- page"
"""Text without it, as most is, needs no look for page marks."""

INTRO = "_intro"
"""Slug of the text under a note's title, whose id means that text alone."""

Channel = Literal["lexical", "vector", "title", "link"]
Mode = Literal["hybrid", "lexical", "vector"]
FileType = Literal["markdown", "pdf", "epub"]


@dataclass(frozen=True, slots=True)
class Link:
    """A reference from one note to something else, as written."""

    target: str
    """Note name or path as written, percent-decoded for Markdown links; empty for the note itself."""
    line: int
    """Line of the reference."""
    heading: str = ""
    """Heading after ``#``, without block references."""
    block: str = ""
    """Block id after ``#^``."""
    text: str = ""
    """What a reader sees: the alias or the link text; empty when it equals the target."""
    embed: bool = False
    """Whether the target is shown in place (``![[…]]``)."""
    wiki: bool = False
    """Whether it is a wikilink; the others are Markdown links, whose targets are relative paths."""


@dataclass(frozen=True, slots=True)
class Image:
    """A picture that a note shows."""

    source: str
    """Path, file name or address as written, percent-decoded but for ``data:`` addresses."""
    line: int
    """Line of the reference."""
    alt: str = ""
    """Alternative text."""
    raw: str = field(default="", compare=False, repr=False)
    """The whole reference as written, without the marks of quotes and lists around its lines."""


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A fenced or indented block of code."""

    line_start: int
    """Line of the opening fence, or the first line of indented code."""
    line_end: int
    """Line of the closing fence, or the last line of code."""
    language: str = ""
    """First word after the opening fence."""
    fence: str = ""
    """The characters of the fence, such as three backticks; empty for indented code."""


@dataclass(frozen=True, slots=True)
class Picture:
    """The bytes of an image that a language model can be sent."""

    data: bytes = field(repr=False)
    media_type: str
    """``image/png``, ``image/jpeg``, ``image/gif`` or ``image/webp``, as the bytes have it."""
    width: int
    """In pixels."""
    height: int


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and its own text, up to the next heading of any level."""

    slug: str
    """Nested slugs, unique in the note: the part of a section id after ``#``."""
    title: str
    """Heading text as a reader sees it; empty before the first heading."""
    level: int
    """1 to 6; 0 for text before the first heading."""
    heading_path: tuple[str, ...]
    """Titles from the outermost heading down to this one; the note's title heading included."""
    parent: int
    """Index of the parent in ``Note.sections``, or -1."""
    line_start: int
    """Line of the heading (of the first text line, for text before the first heading)."""
    body_start: int
    """First line after the heading; may lie past ``line_end``."""
    line_end: int
    """Last line before the next heading of any level."""
    subtree_end: int
    """Last line before the next heading of the same or a smaller level."""
    anchor: str
    """GitHub's anchor for the heading; empty when it has none."""
    custom_anchor: str = ""
    """Other ids that lead to it, with blanks between: of a trailing ``{#id}``, of HTML elements and blocks
    (``^id``) in it, the anchors of headings inside its quotes and lists, and the heading's source with
    ``%20`` for blanks."""
    pages: tuple[int, int] | None = None
    """First and last page of its own text, in an imported document that has pages."""

    @property
    def anchors(self) -> tuple[str, ...]:
        """GitHub's anchor and the other ids."""
        return (self.anchor, *self.custom_anchor.split())

    @property
    def read_end(self) -> int:
        """Last line of what its id returns: with the sections below it, but under a title the text alone."""
        return self.line_end if self.slug == INTRO else self.subtree_end


@dataclass(frozen=True, slots=True)
class Metadata:
    """What is known of a document beside its text."""

    author: str = ""
    """All authors, joined by ``", "``."""
    language: str = ""
    """BCP 47 tag as the document says; else, in an index, the language of most of its text."""
    file_type: FileType = "markdown"
    """Of the file that it was made from."""
    created: str = ""
    """As the document says, an ISO 8601 date or date and time."""
    imported: str = ""
    """When it was imported, ISO 8601 in UTC; empty for a note that was not."""
    pages: int = 0
    """How many pages it has; 0 for a document without pages."""
    source: str = ""
    """Path of the file that it was made from; empty for a note that was not imported."""


@dataclass(frozen=True, slots=True)
class Note:
    """A parsed Markdown file."""

    path: str
    """Relative to its root, ``/``-separated, as the file system spells it."""
    title: str
    """Front matter title, else the title heading, else the file's stem."""
    lines: tuple[str, ...]
    """The text, line by line, without line ends."""
    sections: tuple[Section, ...]
    """In file order; their own lines tile the body."""
    body_start: int = 1
    """First line after the front matter."""
    properties: dict[str, Any] = field(default_factory=dict)
    """Front matter, JSON-safe."""
    metadata: Metadata = field(default_factory=Metadata)
    tags: tuple[str, ...] = ()
    """From front matter and text, without ``#``, in order of appearance."""
    aliases: tuple[str, ...] = ()
    """Other names of the note, from front matter."""
    links: tuple[Link, ...] = ()
    """In file order; links inside code are none."""
    images: tuple[Image, ...] = ()
    """In file order; images inside code are none."""
    code: tuple[CodeBlock, ...] = ()
    """Blocks of code, in file order, those in quotes and lists included."""
    problems: tuple[str, ...] = ()
    """What was wrong with the file but did not stop the reading."""

    def text(self, line_start: int, line_end: int) -> str:
        """Return the lines of a range, verbatim but for line ends."""
        return "\n".join(self.lines[line_start - 1 : line_end])

    def prose(self, line_start: int, line_end: int) -> str:
        """Return the lines of a range as search sees them: without page marks."""
        text = self.text(line_start, line_end)
        return PAGE_MARK.sub("", text) if PAGE_MARK_START in text else text


@dataclass(frozen=True, slots=True)
class Problem:
    """A file that could not be read, or only in part."""

    path: str
    """Relative to its root."""
    reason: str
    """What was found and what to do."""
    skipped: bool = True
    """Whether the file is missing from the index because of it."""


@dataclass(frozen=True, slots=True)
class ChannelScore:
    """What one channel says of one hit."""

    rank: int
    """1 is best; 0 when the channel did not find it."""
    score: float
    """In the channel's own unit."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A section that answers a question."""

    root: str
    """Name of its root."""
    path: str
    """Of its note, relative to the root."""
    location: str
    """How a caller names the note: its path, or ``root:path`` when several roots hold that path."""
    section: Section
    """Lines as indexed; an answer corrects them when the file has changed."""
    score: float
    """0 to 1; comparable within one ranking only."""
    cost: int
    """Tokens of the section's own text."""
    text: str
    """The section's own lines, verbatim."""
    note_title: str = ""
    """Title of its note."""
    why: tuple[str, ...] = ()
    """Short reasons, best first: matched terms, title, links, meaning."""
    channels: dict[Channel, ChannelScore] = field(default_factory=dict)
    """Rank and score by channel; filled when asked to explain."""
    terms: dict[str, float] = field(default_factory=dict)
    """Lexical score by query term; filled when asked to explain."""
    twins: tuple[str, ...] = ()
    """Addresses of sections with the same text, shown once through this hit."""
    likes: tuple[str, ...] = ()
    """Addresses of sections under the same heading with nearly the same text, likewise."""
    cost_below: int = 0
    """Tokens of the sections below it, which its id returns as well."""

    @property
    def id(self) -> str:
        """The address that every tool accepts."""
        return f"{self.location}#{self.section.slug}"


@dataclass(frozen=True, slots=True)
class Ranking:
    """Hits in order, with the evidence that they answer the question at all."""

    hits: tuple[Hit, ...]
    """One page of them, best first."""
    total: int = 0
    """How many sections were ranked closely; pages lead through these."""
    relevant: bool = True
    """False when the evidence says that nothing here answers the question."""
    nearly: bool = False
    """Whether it is not relevant by a little only, so that its best sections are worth a look."""
    coverage: float = 0.0
    """Share of the question's informative terms that the best section holds, 0 to 1."""
    relevance: float | None = None
    """Of the best vector: 0 what questions about other matters get, 1 what near neighbours get."""
    weights: dict[str, float] = field(default_factory=dict)
    """Terms of the question with their inverse document frequency."""
    notices: tuple[str, ...] = ()
    """What the caller should know, for example that vectors are still being made."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply that fits its budget."""

    text: str
    """Stands alone."""
    cost: int
    """Estimated tokens of ``text``."""
    ranking: Ranking
    """The facts behind the text."""
    shown: tuple[tuple[Hit, str], ...] = ()
    """Each hit that the text holds, with how: ``full``, ``window``, ``list``."""
    cursor: str = ""
    """Pass it back to get what did not fit; empty when all is shown."""


@dataclass(frozen=True, slots=True)
class TreeRow:
    """A heading of an outline."""

    id: str
    """The address that every tool accepts."""
    name: str
    """The shortest part of the id that is unique in the note."""
    title: str
    level: int
    line_start: int
    line_end: int
    """Last line of the section, those below it included; of its own text for the note's title."""
    cost: int
    """Tokens of these lines."""
    depth: int = 1
    """1 for the outermost headings, below the title if there is one."""
    pages: tuple[int, int] | None = None
    """First and last page of these lines, in an imported document that has pages."""


@dataclass(frozen=True, slots=True)
class Tree:
    """The headings of a note."""

    location: str
    title: str
    lines: int
    cost: int
    """Tokens of the whole file."""
    rows: tuple[TreeRow, ...]
    problems: tuple[str, ...] = ()
    is_whole: bool = True
    """Whether the rows are all of them, not those of one section."""


@dataclass(frozen=True, slots=True)
class IndexRow:
    """A section in an index of a file, as md-vision has it, with cost and id."""

    heading: str
    """With its ``#`` marks; empty before the first heading."""
    line_start: int
    image_count: int
    char_count: int
    """Characters of the section's own lines, line ends included."""
    tokens: int
    id: str


@dataclass(frozen=True, slots=True)
class FileIndex:
    """An index of a file."""

    location: str
    lines: int
    chars: int
    front_matter: str
    """The block as written, fences included; empty when there is none."""
    rows: tuple[IndexRow, ...]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """What a reading tool answers: text and pictures within a budget, and the same facts for programs."""

    blocks: tuple[str | Picture, ...]
    """In the order of the document."""
    cost: int
    """Estimated tokens, pictures included."""
    rows: tuple[dict[str, Any], ...] = ()
    """JSON-safe facts of what is shown."""
    notes: tuple[str, ...] = ()
    """What could not be done as asked, and why."""
    rest: str = ""
    """The call that returns what did not fit; empty when all is shown."""

    @property
    def text(self) -> str:
        """The text without the pictures."""
        return "\n".join(block for block in self.blocks if isinstance(block, str))
