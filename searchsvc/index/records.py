"""A note -> the rows and terms that the index stores of it.

Made in worker processes, so everything here is plain data that travels between processes.
"""

import hashlib
import json
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from json.encoder import encode_basestring_ascii
from typing import NamedTuple

import numpy as np

from searchsvc.index.postings import Field, Stream
from searchsvc.index.vocabulary import Vocabulary
from searchsvc.items import PAGE_MARK_START, Metadata, Note, Section
from searchsvc.languages import CODES, language_of
from searchsvc.tokens import cost

FIELDS: dict[str, Field] = {
    "title": Field(weight=1.2, b=0.6),
    "aliases": Field(weight=1.2, b=0.6),
    "heading": Field(weight=5.0, b=0.7, counted=True),
    "path": Field(weight=2.0, b=0.3),
    "file": Field(weight=2.0, b=0.3),
    "properties": Field(weight=1.0, b=0.5),
    "body": Field(weight=1.0, b=0.45, k=2.5, counted=True),
}
"""The parts of a section that lexical search weighs; the order is that of cells on disk."""

ANCHOR = Field(weight=2.0, b=0.4)
"""Text of the links that lead to a section, kept apart since other notes own it."""

_MIN_TWIN_CHARACTERS = 40
_MAX_PROPERTIES = 500


Row = tuple[str | int | float | None, ...]
"""Columns of a table of the catalog, in its order, without the ids that are given at the commit."""


class SectionRecord(NamedTuple):
    """What is stored of one section. A named tuple, as these travel in a fraction of the time of objects."""

    row: Row
    """For the table ``sections``, without ``id`` and ``note``."""
    parent: int
    """Place of the parent in the note, or -1."""
    level: int
    cost: int
    """Tokens of its own lines."""
    line_start: int
    key: int
    """Hash of what embedding models see: context and text; 0 when there is nothing to embed."""
    twin: int
    """Hash of the text with white space folded; 0 for text too short to matter."""
    language: int
    """Place of its language in ``languages.CODES``; 0 when unknown."""


class NoteRecord(NamedTuple):
    """What is stored of one note."""

    path: str
    aliases: tuple[str, ...]
    row: Row
    """For the table ``notes``, without ``id``."""
    sections: tuple[SectionRecord, ...]
    links: tuple[Row, ...]
    """For the table ``links``, without ``note`` and destination."""


@dataclass(frozen=True, slots=True)
class Touched:
    """A note whose file has been written again with the same content."""

    path: str
    signature: str
    modified: float


@dataclass(slots=True)
class Batch:
    """The records of some notes and the terms of their sections."""

    notes: list[NoteRecord] = field(default_factory=list)
    stream: Stream = field(default_factory=lambda: Stream([], np.empty(0, np.int32), np.zeros(1, np.int64)))
    touched: list[Touched] = field(default_factory=list)


class BatchBuilder:
    """Collects notes into a batch with a vocabulary of its own."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        """``vocabulary`` may have served other batches; one batch at a time uses it."""
        self._vocabulary = vocabulary
        self._terms = bytearray()
        self._bounds = array("q", [0])
        self._notes: list[NoteRecord] = []

    def add(self, note: Note, *, signature: str, digest: str, modified: float) -> None:
        """Add one note."""
        texts = [note.text(section.line_start, section.line_end) for section in note.sections]
        pieces = [text.split() for text in texts]
        sections = tuple(map(_section_record, repeat(note), note.sections, texts, pieces))
        about = _with_language(note.metadata, sections)
        row = (
            note.path, note.title, signature, digest, len(note.lines), modified, json.dumps(note.properties),
            _json_list(note.tags), _json_list(note.aliases), _cost(note, sections),
            about.author, about.language, about.file_type, about.created, about.imported, about.pages,
            about.source,
        )  # fmt: skip
        links = tuple(
            (link.line, link.target, link.heading, link.block, link.text, link.embed, link.wiki)
            for link in note.links
        )
        self._notes.append(NoteRecord(note.path, note.aliases, row, sections, links))
        title, aliases, file, properties = map(self._vocabulary.label_ids, _labels(note))
        for section, text, in_text in zip(note.sections, texts, pieces, strict=True):
            heading, above = map(self._vocabulary.label_ids, _headings(note, section))
            body = self._vocabulary.ids_of_pieces(_body_pieces(note, section, text, in_text))
            for packed in (title, aliases, heading, above, file, properties, body):  # as in ``FIELDS``
                self._terms += packed
                self._bounds.append(len(self._terms))

    def finish(self) -> Batch:
        """Return everything added so far."""
        return Batch(self._notes, self._vocabulary.stream(self._terms, self._bounds))


def context_of(title: str, heading_path: Iterable[str]) -> str:
    """Return where a section stands, as embedding models and readers see it."""
    parts = list(heading_path)
    if not parts or parts[0] != title:
        parts.insert(0, title)
    return " > ".join(part for part in parts if part)


def passage_text(section: Section, text: str) -> str:
    """Return what is embedded of a section beside its context: its own text without the heading."""
    heading_lines = section.body_start - section.line_start
    *heading, body = text.split("\n", heading_lines)
    return body if len(heading) == heading_lines and body.strip() else section.title


def _labels(note: Note) -> tuple[str, str, str, str]:
    """Return what all sections of a note are called by: title, aliases, file name, properties."""
    folders, _, name = note.path.rpartition("/")
    more = {key: value for key, value in note.properties.items() if key.lower() != "title"}
    properties = " ".join(_strings(more))[:_MAX_PROPERTIES]
    return (
        note.title,
        " / ".join(note.aliases),
        f"{folders.replace('/', ' / ')} / {name.rsplit('.', 1)[0]}",
        " ".join([properties, *note.tags]),
    )


def _headings(note: Note, section: Section) -> tuple[str, str]:
    """Return the own heading of a section, and those above it.

    The note's title belongs to every section; a title heading is not weighed as a heading again, or
    the introduction of a note would beat the section that answers.
    """
    own = "" if section.level <= 1 and section.title == note.title else section.title
    return own, " / ".join(title for title in section.heading_path[:-1] if title != note.title)


def _strings(value: object) -> Iterable[str]:
    """Yield every text in a property value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


def _json_list(texts: Iterable[str]) -> str:
    """Return what ``json.dumps`` does of a list of texts, in a third of the time."""
    return f"[{', '.join(map(encode_basestring_ascii, texts))}]"


def _body_pieces(note: Note, section: Section, text: str, pieces: list[str]) -> list[str]:
    """Return the pieces of a section's own text that lie below its heading, page marks left out."""
    if PAGE_MARK_START in text:
        return note.prose(section.body_start, section.line_end).split()
    return pieces[len(note.text(section.line_start, section.body_start - 1).split()) :]


def _section_record(note: Note, section: Section, text: str, pieces: Sequence[str]) -> SectionRecord:
    """Return what is stored of a section by its text and the pieces between the blanks of that."""
    body = " ".join(pieces)
    tokens = cost(text, pieces)
    row = (
        section.slug, section.title, _json_list(section.heading_path), section.level, section.parent,
        section.line_start, section.body_start, section.line_end, section.subtree_end, section.anchor,
        section.custom_anchor, tokens, text, *(section.pages or (None, None)),
    )  # fmt: skip
    return SectionRecord(
        row=row,
        parent=section.parent,
        level=section.level,
        cost=tokens,
        line_start=section.line_start,
        key=_key(note, section, text) if body else 0,
        twin=_hash(body) if len(body) >= _MIN_TWIN_CHARACTERS else 0,
        language=CODES.index(language_of(body)),
    )


def _with_language(metadata: Metadata, sections: Sequence[SectionRecord]) -> Metadata:
    """Return what is known of a document, with the language of most of its text where it names none."""
    if metadata.language:
        return metadata
    costs = [0] * len(CODES)
    for section in sections:
        costs[section.language] += section.cost if section.language else 0
    most = max(costs)
    return replace(metadata, language=CODES[costs.index(most)]) if most else metadata


def _cost(note: Note, sections: Sequence[SectionRecord]) -> int:
    """Return the tokens of a whole file, front matter included."""
    head = sections[0].line_start - 1 if sections else len(note.lines)
    return sum(section.cost for section in sections) + cost(note.text(1, head))


def _key(note: Note, section: Section, text: str) -> int:
    """Hash what embedding models see; blank lines around a text come and go as sections are moved."""
    return _hash(f"{context_of(note.title, section.heading_path)}\x00{passage_text(section, text).strip()}")


def _hash(text: str) -> int:
    """Return 64 bits that are never 0."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") or 1
