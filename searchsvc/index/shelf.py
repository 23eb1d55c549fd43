"""The notes of an index as documents: what is known of each beside its text, and the text by section."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from searchsvc.index.catalog import Catalog
from searchsvc.items import FileType, Metadata


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A note as a document."""

    id: int
    path: str
    title: str
    lines: int
    modified: float
    """When its file was changed, in seconds since 1970."""
    cost: int
    """Tokens of its file."""
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class SectionText:
    """The own lines of a section."""

    id: int
    note: int
    line_start: int
    body_start: int
    text: str


class Shelf:
    """Reads documents from a catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._connection = catalog.connection

    def documents(self) -> list[DocumentRow]:
        """Return all documents, by path."""
        query = (
            "SELECT id, path, title, lines, modified, cost, author, language, file_type, created, imported, "
            "pages, source FROM notes ORDER BY path"
        )
        return [_document(row) for row in self._connection.execute(query)]

    def of_types(self, file_types: Iterable[FileType]) -> set[int]:
        """Return the ids of the documents that were made from files of these types."""
        query = "SELECT id FROM notes WHERE file_type IN (SELECT value FROM json_each(?))"
        return {note for (note,) in self._connection.execute(query, (json.dumps(list(file_types)),))}

    def texts(self, notes: Iterable[int] | None = None) -> Iterator[SectionText]:
        """Yield the text of every section of these notes, or of all, in no particular order."""
        query = "SELECT id, note, line_start, body_start, text FROM sections"
        if notes is None:
            rows = self._connection.execute(query)
        else:
            query += " WHERE note IN (SELECT value FROM json_each(?))"
            rows = self._connection.execute(query, (json.dumps(list(notes)),))
        for row in rows:
            yield SectionText(*row)


def _document(row: Sequence[Any]) -> DocumentRow:
    note, path, title, lines, modified, cost, *about = row
    return DocumentRow(note, path, title, lines, modified, cost, Metadata(*about))
