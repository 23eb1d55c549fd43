"""The sqlite file that says what is visible: notes, sections, links, segments, vectors, problems.

Readers see one generation for the length of a transaction; the writer replaces rows and names new
immutable files in one commit. Nothing becomes visible before that commit, nothing is lost by a crash.
"""

import json
import sqlite3
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from searchsvc.index import ledger
from searchsvc.index.links import Anchor
from searchsvc.index.records import NoteRecord
from searchsvc.items import Link, Problem, Section

Destination = tuple[int | None, int | None]
"""Note and section that a link leads to."""

FORMAT_VERSION = 3
"""Raised whenever an older index cannot be read as it is; it is then rebuilt."""

ACTIVE = "active profile"
"""Key of the setting that names the profile in use, by its identity."""

_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE notes (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, title TEXT NOT NULL, signature TEXT NOT NULL,
    digest TEXT NOT NULL, lines INTEGER NOT NULL, modified REAL NOT NULL, properties TEXT NOT NULL,
    tags TEXT NOT NULL, aliases TEXT NOT NULL, cost INTEGER NOT NULL, author TEXT NOT NULL,
    language TEXT NOT NULL, file_type TEXT NOT NULL, created TEXT NOT NULL, imported TEXT NOT NULL,
    pages INTEGER NOT NULL, source TEXT NOT NULL);
CREATE TABLE sections (
    id INTEGER PRIMARY KEY, note INTEGER NOT NULL, slug TEXT NOT NULL, title TEXT NOT NULL,
    heading_path TEXT NOT NULL, level INTEGER NOT NULL, parent INTEGER NOT NULL,
    line_start INTEGER NOT NULL, body_start INTEGER NOT NULL, line_end INTEGER NOT NULL,
    subtree_end INTEGER NOT NULL, anchor TEXT NOT NULL, custom_anchor TEXT NOT NULL,
    cost INTEGER NOT NULL, text TEXT NOT NULL, page_start INTEGER, page_end INTEGER);
CREATE INDEX sections_by_note ON sections (note);
CREATE TABLE links (
    note INTEGER NOT NULL, line INTEGER NOT NULL, target TEXT NOT NULL, heading TEXT NOT NULL,
    block TEXT NOT NULL, text TEXT NOT NULL, embed INTEGER NOT NULL, wiki INTEGER NOT NULL,
    destination INTEGER, destination_section INTEGER);
CREATE INDEX links_by_note ON links (note);
CREATE INDEX links_by_destination ON links (destination);
CREATE TABLE segments (name TEXT PRIMARY KEY, place INTEGER NOT NULL, deleted BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE vectors (
    identity TEXT NOT NULL, name TEXT NOT NULL, place INTEGER NOT NULL,
    PRIMARY KEY (identity, name)) WITHOUT ROWID;
CREATE TABLE problems (path TEXT NOT NULL, reason TEXT NOT NULL, skipped INTEGER NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class NoteRow:
    """A note as the catalog knows it."""

    id: int
    path: str
    title: str
    signature: str
    digest: str
    lines: int
    modified: float


@dataclass(frozen=True, slots=True)
class SectionRow:
    """A section as the catalog knows it."""

    id: int
    note: int
    section: Section
    cost: int
    text: str


class _Connection(sqlite3.Connection):
    """Closed with the thread that opened it."""

    def __del__(self) -> None:
        with suppress(sqlite3.Error):
            self.close()


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open the sqlite file; transactions are begun and ended by hand."""
    connection = sqlite3.connect(
        path, timeout=10, isolation_level=None, check_same_thread=False, factory=_Connection
    )
    try:
        if read_only:
            connection.execute("PRAGMA query_only=ON")
        else:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit at the end of the block, roll back when it fails."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        end(connection)


def end(connection: sqlite3.Connection) -> None:
    """Roll back what is still open; sqlite may have done so by itself."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


class Catalog:
    """Reads and writes the tables; knows nothing of arrays."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def create(self, settings: dict[str, str]) -> None:
        """Make the tables of an empty index."""
        for statement in (_SCHEMA + ledger.SCHEMA).split(";\n"):
            if statement.strip():
                self.connection.execute(statement)
        fixed = {"format": str(FORMAT_VERSION), "epoch": uuid.uuid4().hex, "generation": "0"}
        self.set_meta({**fixed, **settings})

    def meta(self) -> dict[str, str]:
        """Return all settings of the index; empty when it has no tables yet."""
        query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'meta'"
        if not self.connection.execute(query).fetchone():
            return {}
        return dict(self.connection.execute("SELECT key, value FROM meta").fetchall())

    def set_meta(self, values: dict[str, str]) -> None:
        """Store settings."""
        self.connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())

    def generation(self) -> int:
        """Return the number of the last commit."""
        row = self.connection.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()
        return int(row[0]) if row else 0

    def drop_meta(self, key: str) -> None:
        """Forget a setting."""
        self.connection.execute("DELETE FROM meta WHERE key = ?", (key,))

    def advance(self, **counters: int) -> None:
        """Count one generation up, and store other counters."""
        values = {key: str(value) for key, value in counters.items()}
        self.set_meta({"generation": str(self.generation() + 1), **values})

    def empty(self, settings: dict[str, str]) -> None:
        """Drop all tables and make them anew."""
        tables = self.connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            self.connection.execute(f'DROP TABLE "{table}"')
        self.create(settings)

    # Notes

    def notes(self, ids: Iterable[int] | None = None) -> dict[int, NoteRow]:
        """Return notes by id, all of them when no ids are given."""
        query = "SELECT id, path, title, signature, digest, lines, modified FROM notes"
        if ids is None:
            rows: Iterable[Any] = self.connection.execute(query)
        else:
            rows = _by_ids(self.connection, query, ids)
        return {row[0]: NoteRow(*row) for row in rows}

    def paths(self, ids: Iterable[int]) -> dict[int, str]:
        """Return the paths of notes by id."""
        return dict(_by_ids(self.connection, "SELECT id, path FROM notes", ids))

    def costs(self) -> dict[str, tuple[str, int]]:
        """Return the signature of every note's file, and the tokens that the file then had, by path."""
        rows = self.connection.execute("SELECT path, signature, cost FROM notes")
        return {path: (signature, tokens) for path, signature, tokens in rows}

    def modified(self) -> dict[int, float]:
        """Return when each note was changed, by id, in seconds since 1970."""
        return dict(self.connection.execute("SELECT id, modified FROM notes").fetchall())

    def note_by_path(self, path: str) -> NoteRow | None:
        """Return the note at a path, if there is one."""
        query = "SELECT id, path, title, signature, digest, lines, modified FROM notes WHERE path = ?"
        row = self.connection.execute(query, (path,)).fetchone()
        return NoteRow(*row) if row else None

    def names(self) -> list[tuple[int, str, str, list[str]]]:
        """Return id, path, title and aliases of every note."""
        rows = self.connection.execute("SELECT id, path, title, aliases FROM notes")
        return [(note, path, title, json.loads(aliases)) for note, path, title, aliases in rows]

    def tags_and_properties(self) -> Iterator[tuple[int, list[str], dict[str, Any]]]:
        """Yield id, tags and properties of every note."""
        for note, tags, properties in self.connection.execute("SELECT id, tags, properties FROM notes"):
            yield note, json.loads(tags), json.loads(properties)

    def add_notes(self, notes: Sequence[NoteRecord], first_note: int, first_section: int) -> None:
        """Insert notes with ids counted up from ``first_note``, and their sections and links."""
        numbered = list(enumerate(notes, first_note))
        sections = ((note, item.row) for note, record in numbered for item in record.sections)
        execute = self.connection.executemany
        execute(
            f"INSERT INTO notes VALUES ({_marks(18)})", ((note, *record.row) for note, record in numbered)
        )
        execute(
            f"INSERT INTO sections VALUES ({_marks(17)})",
            ((number, note, *row) for number, (note, row) in enumerate(sections, first_section)),
        )
        execute(
            f"INSERT INTO links VALUES ({_marks(8)}, NULL, NULL)",
            ((note, *row) for note, record in numbered for row in record.links),
        )

    def delete_notes(self, ids: Sequence[int]) -> None:
        """Delete notes with all that belongs to them; links to them become open again."""
        rows = [(note,) for note in ids]
        for table, column in (("notes", "id"), ("sections", "note"), ("links", "note")):
            self.connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", rows)

    def touch_notes(self, rows: Iterable[tuple[str, float, int]]) -> None:
        """Store signature and modification time of notes with unchanged content, by id."""
        self.connection.executemany("UPDATE notes SET signature = ?, modified = ? WHERE id = ?", rows)

    # Sections

    def sections(self, ids: Iterable[int]) -> dict[int, SectionRow]:
        """Return sections by id."""
        query = "SELECT * FROM sections"
        return {row[0]: _read_section(row) for row in _by_ids(self.connection, query, ids)}

    def sections_of(self, note: int) -> list[SectionRow]:
        """Return the sections of a note in file order."""
        rows = self.connection.execute("SELECT * FROM sections WHERE note = ? ORDER BY id", (note,))
        return [_read_section(row) for row in rows]

    # Links

    def links(self, *, open_only: bool = False) -> Iterator[tuple[int, int, Link, Destination]]:
        """Yield row id, note id, link and stored destination of every link, or of those without one."""
        query = (
            "SELECT rowid, note, destination, destination_section, "
            "target, line, heading, block, text, embed, wiki FROM links"
        )
        if open_only:
            query += " WHERE destination IS NULL"
        for row, note, *found, target, line, heading, block, text, embed, wiki in self.connection.execute(
            query
        ):
            link = Link(target, line, heading, block, text, bool(embed), bool(wiki))
            yield row, note, link, (found[0], found[1])

    def anchors(self, note: int) -> list[Anchor]:
        """Return what links to sections of a note may name, in file order."""
        query = (
            "SELECT id, level, title, anchor, custom_anchor, line_start, line_end "
            "FROM sections WHERE note = ? ORDER BY id"
        )
        return [Anchor(*row) for row in self.connection.execute(query, (note,))]

    def anchor_texts(self) -> Iterator[tuple[int, str]]:
        """Yield destination section and visible text of every link to a section, by section."""
        query = (
            "SELECT destination_section, CASE text WHEN '' THEN target || ' ' || heading ELSE text END "
            "FROM links WHERE destination_section IS NOT NULL ORDER BY destination_section, rowid"
        )
        yield from self.connection.execute(query)

    def open_links_to(self, notes: Iterable[int]) -> None:
        """Forget the destination of links that lead to these notes."""
        query = "UPDATE links SET destination = NULL, destination_section = NULL WHERE destination = ?"
        self.connection.executemany(query, [(note,) for note in notes])

    def resolve_links(self, rows: Iterable[tuple[int, Destination]]) -> None:
        """Store the destination of links by row id."""
        query = "UPDATE links SET destination = ?, destination_section = ? WHERE rowid = ?"
        self.connection.executemany(query, ((*found, row) for row, found in rows))

    def edges(self) -> list[tuple[int, int]]:
        """Return source and destination note of every link that leads to a note."""
        query = "SELECT note, destination FROM links WHERE destination IS NOT NULL ORDER BY rowid"
        return self.connection.execute(query).fetchall()

    def count(self, table: str) -> int:
        """Return the number of rows of a table."""
        return int(self.connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])

    # Files

    def segments(self) -> list[tuple[str, bytes]]:
        """Return name and packed deletion bits of every segment, oldest first."""
        return self.connection.execute("SELECT name, deleted FROM segments ORDER BY place, name").fetchall()

    def set_segments(self, segments: Sequence[tuple[str, bytes]]) -> None:
        """Replace the list of segments."""
        self.connection.execute("DELETE FROM segments")
        rows = [(name, place, deleted) for place, (name, deleted) in enumerate(segments)]
        self.connection.executemany("INSERT INTO segments VALUES (?, ?, ?)", rows)

    def vector_parts(self) -> dict[str, list[str]]:
        """Return the vector files of every profile by its identity, oldest first."""
        parts: dict[str, list[str]] = {}
        for identity, name in self.connection.execute(
            "SELECT identity, name FROM vectors ORDER BY place, name"
        ):
            parts.setdefault(identity, []).append(name)
        return parts

    def profiles(self) -> list[str]:
        """Return the identities of all profiles that have vectors, or tried to."""
        query = "SELECT identity FROM vectors UNION SELECT identity FROM failures ORDER BY identity"
        return [identity for (identity,) in self.connection.execute(query)]

    def set_vector_parts(self, identity: str, names: Sequence[str]) -> None:
        """Replace the list of vector files of a profile."""
        self.connection.execute("DELETE FROM vectors WHERE identity = ?", (identity,))
        rows = [(identity, name, place) for place, name in enumerate(names)]
        self.connection.executemany("INSERT INTO vectors VALUES (?, ?, ?)", rows)

    # Problems

    def problems(self) -> list[Problem]:
        """Return what the last indexing could not read, by path."""
        rows = self.connection.execute("SELECT path, reason, skipped FROM problems ORDER BY path, reason")
        return [Problem(path, reason, bool(skipped)) for path, reason, skipped in rows]

    def replace_problems(self, problems: Iterable[Problem], paths: Iterable[str] | None) -> None:
        """Replace the problems of these paths, or all problems when ``paths`` is none."""
        if paths is None:
            self.connection.execute("DELETE FROM problems")
        else:
            self.connection.executemany("DELETE FROM problems WHERE path = ?", [(path,) for path in paths])
        rows = [(problem.path, problem.reason, problem.skipped) for problem in problems]
        self.connection.executemany("INSERT INTO problems VALUES (?, ?, ?)", rows)


def _by_ids(connection: sqlite3.Connection, query: str, ids: Iterable[int]) -> sqlite3.Cursor:
    """Run a query for many ids with one bound parameter, however many there are."""
    wanted = json.dumps([int(item) for item in ids])
    return connection.execute(f"{query} WHERE id IN (SELECT value FROM json_each(?))", (wanted,))


def _marks(count: int) -> str:
    return ", ".join("?" * count)


def _read_section(row: tuple[Any, ...]) -> SectionRow:
    number, note, slug, title, heading_path, *numbers, anchor, custom, cost, text, first, last = row
    level, parent, start, body, end, subtree = numbers
    pages = None if first is None else (first, last)
    section = Section(
        slug, title, level, tuple(json.loads(heading_path)), parent, start, body, end, subtree, anchor,
        custom, pages,
    )  # fmt: skip
    return SectionRow(number, note, section, cost, text)
