"""The reading side of an index: one consistent generation at a time, in any number of processes."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from searchsvc.errors import IndexFault
from searchsvc.index.anchors import open_anchors
from searchsvc.index.catalog import FORMAT_VERSION, Catalog, connect
from searchsvc.index.layout import Layout
from searchsvc.index.postings import Postings
from searchsvc.index.segments import SECTION_DTYPE, Segment, open_segment
from searchsvc.index.vectors import VectorView, open_part

_ATTEMPTS = 5
"""A writer may sweep files between our look at the catalog and their opening; the next look is newer."""


@dataclass(slots=True)
class _Vectors:
    views: dict[str, VectorView] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Frame:
    """The arrays of one generation; shared by all searches until the next one."""

    def __init__(self, layout: Layout, catalog: Catalog) -> None:
        """Open the arrays that the catalog names, inside its transaction."""
        self.generation = catalog.generation()
        self.segments: list[Segment] = [open_segment(layout.segments, *entry) for entry in catalog.segments()]
        self.table: NDArray[np.void] = np.concatenate(
            [np.empty(0, SECTION_DTYPE), *(segment.sections for segment in self.segments)]
        )
        """All sections, of ``SECTION_DTYPE``; parents are ordinals in this table."""
        self.bases = np.cumsum([0, *(len(segment.sections) for segment in self.segments)])
        for segment, base in zip(self.segments, self.bases, strict=False):
            parents = self.table["parent"][base : base + len(segment.sections)]
            parents[parents >= 0] += base
        self.live = ~np.concatenate([np.empty(0, bool), *(segment.deleted for segment in self.segments)])
        self.anchors, self.anchor_places = self._open_anchors(layout, catalog)
        self._parts = catalog.vector_parts()
        self._layout = layout
        self._vectors = _Vectors()

    def _open_anchors(self, layout: Layout, catalog: Catalog) -> tuple[Postings | None, NDArray[np.int64]]:
        """Return the anchor postings and the place in the table of each of their sections, -1 for none."""
        name = catalog.meta().get("anchors")
        if not name or not len(self.table):
            return None, np.empty(0, np.int64)
        postings, targets = open_anchors(layout.segments / name)
        order = np.argsort(self.table["id"], kind="stable")
        places = np.minimum(np.searchsorted(self.table["id"][order], targets), len(order) - 1)
        found = order[places]
        return postings, np.where(self.table["id"][found] == targets, found, -1)

    @property
    def profiles(self) -> list[str]:
        """Identities of the profiles that have vectors."""
        return list(self._parts)

    def vectors(self, identity: str) -> VectorView:
        """Return the vectors of a profile; without any when it has none."""
        with self._vectors.lock:
            if identity not in self._vectors.views:
                folder = self._layout.profile(identity)
                parts = [open_part(folder, name) for name in self._parts.get(identity, [])]
                self._vectors.views[identity] = VectorView(parts, self.table["key"])
            return self._vectors.views[identity]

    def coverage(self, identity: str) -> tuple[int, int]:
        """Return how many live sections with text have a vector in a profile, and how many there are."""
        wanted = self.live & (self.table["key"] != 0)
        return int((wanted & self.vectors(identity).covered).sum()), int(wanted.sum())

    @cached_property
    def has_deleted(self) -> bool:
        """Whether any section in the arrays is gone."""
        return not bool(self.live.all())


class Reader:
    """Opens generations of one index; safe to use from several threads."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._lock = threading.Lock()
        self._frame: Frame | None = None
        self._local = threading.local()

    @property
    def exists(self) -> bool:
        """Whether there is an index of this version with at least one commit."""
        if not self._layout.catalog.is_file():
            return False
        try:
            meta = Catalog(self._connection()).meta()
        except sqlite3.DatabaseError:
            return False
        return meta.get("format") == str(FORMAT_VERSION) and meta.get("generation") != "0"

    @contextmanager
    def pinned(self) -> Iterator[tuple[Frame, Catalog]]:
        """Give the newest generation; it stays as it is, rows and arrays, to the end of the block."""
        if not self._layout.catalog.is_file():
            raise IndexFault("there is no index yet; run `searchsvc index`")
        connection = self._connection()
        catalog = Catalog(connection)
        for attempt in range(_ATTEMPTS):
            connection.execute("BEGIN DEFERRED")
            try:
                frame = self._frame_of(catalog)
                break
            except IndexFault:
                connection.execute("ROLLBACK")
                if attempt == _ATTEMPTS - 1:
                    raise
        try:
            yield frame, catalog
        finally:
            connection.execute("ROLLBACK")

    def _frame_of(self, catalog: Catalog) -> Frame:
        generation = catalog.generation()
        with self._lock:
            if self._frame is None or self._frame.generation != generation:
                self._frame = Frame(self._layout, catalog)
            return self._frame

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = connect(self._layout.catalog, read_only=True)
        return connection

    def close(self) -> None:
        """Close this thread's connection and forget the arrays."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None
        self._frame = None
