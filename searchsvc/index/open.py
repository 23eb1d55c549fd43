"""The reading side of an index: one consistent generation at a time, in any number of processes."""

import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from searchsvc.errors import IndexFault
from searchsvc.index.anchors import open_anchors
from searchsvc.index.calibration import Calibration
from searchsvc.index.catalog import ACTIVE, FORMAT_VERSION, Catalog, connect, end
from searchsvc.index.faults import Damage, faults
from searchsvc.index.layout import Layout
from searchsvc.index.ledger import Ledger
from searchsvc.index.postings import Postings
from searchsvc.index.profiles import ProfileCard, read_card
from searchsvc.index.segments import SECTION_DTYPE, SHAPE, Segment, open_segment
from searchsvc.index.vectors import VectorView, open_part

_ATTEMPTS = 20
"""A writer may sweep files between our look at the catalog and their opening; the next look is newer."""


class Frame:
    """The arrays of one generation; shared by all searches until the next one."""

    def __init__(self, layout: Layout, catalog: Catalog) -> None:
        """Open the arrays that the catalog names, inside its transaction."""
        meta = catalog.meta()
        self.generation = catalog.generation()
        self.version = _version(meta)
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
        self.active = meta.get(ACTIVE, "")
        """Identity of the profile in use; empty when none was chosen."""
        self.calibrations = {
            key.removeprefix("calibration "): Calibration(**json.loads(value))
            for key, value in meta.items()
            if key.startswith("calibration ")
        }
        """What cosines mean here, by profile identity."""
        # Opened now, not when asked for: the writer may have merged and swept them by then.
        self._parts = {
            identity: [open_part(layout.profile(identity), name) for name in names]
            for identity, names in catalog.vector_parts().items()
        }
        ledger = Ledger(catalog.connection)
        self._failed = {identity: ledger.failed_keys(identity) for identity in catalog.profiles()}
        self._views: dict[str, VectorView] = {}
        self._coverage: dict[str, tuple[int, int]] = {}
        self._lock = threading.Lock()

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

    def vectors(self, identity: str) -> VectorView:
        """Return the vectors of a profile; without any when it has none."""
        with self._lock:
            if identity not in self._views:
                keys = np.where(self.live, self.table["key"], np.uint64(0))
                self._views[identity] = VectorView(self._parts.get(identity, []), keys)
            return self._views[identity]

    def failed(self, identity: str, within: NDArray[np.bool_] | None = None) -> int:
        """Return how many live sections have a text that the model of a profile did not take."""
        failed = self._failed.get(identity)
        if not failed:
            return 0
        counted = self.live if within is None else self.live & within
        return int((counted & np.isin(self.table["key"], np.array(failed, np.uint64))).sum())

    def missing(self, identity: str, *, failed_too: bool = False) -> NDArray[np.int64]:
        """Return the place of one section for each live text without vectors, those that failed left out."""
        keys, firsts = np.unique(np.where(self.live, self.table["key"], np.uint64(0)), return_index=True)
        done = [part.keys for part in self._parts.get(identity, [])]
        failed = [] if failed_too else self._failed.get(identity, [])
        known = np.concatenate([np.array([0, *failed], np.uint64), *done])
        return np.sort(firsts[~np.isin(keys, known)])

    def coverage(self, identity: str, within: NDArray[np.bool_] | None = None) -> tuple[int, int]:
        """Return how many live sections with text a profile has done, and how many there are.

        ``within`` tells which sections count, shape ``(sections,)``; all when left out.
        """
        if within is not None:
            wanted = self.live & within & (self.table["key"] != 0)
            return int((wanted & self.vectors(identity).done).sum()), int(wanted.sum())
        if identity not in self._coverage:
            self._coverage[identity] = self.coverage(identity, self.live)
        return self._coverage[identity]


class Reader:
    """Opens generations of one index; safe to use from several threads."""

    def __init__(self, layout: Layout, tokenizer: str = "") -> None:
        """``tokenizer`` are the settings that texts must have been split with; empty for any."""
        self._layout = layout
        self._tokenizer = tokenizer
        self._lock = threading.Lock()
        self._frame: Frame | None = None
        self._local = threading.local()

    @property
    def exists(self) -> bool:
        """Whether there is an index of this version and these settings with at least one commit."""
        try:
            with faults():
                return not self._lack(Catalog(self._connection()).meta())
        except IndexFault:
            return False

    @property
    def name(self) -> str:
        """The name that was chosen for the root when it was indexed; empty when none was."""
        return self._fact("name")

    @property
    def folder(self) -> str:
        """The folder that was indexed; empty without an index, or for one of an early version."""
        return self._fact("folder")

    @property
    def active(self) -> str:
        """Identity of the profile in use; empty when none was chosen."""
        return self._fact(ACTIVE)

    def _fact(self, key: str) -> str:
        try:
            with faults():
                return Catalog(self._connection()).meta().get(key, "")
        except IndexFault:
            return ""

    def profiles(self) -> list[str]:
        """Return the identities of all profiles with vectors or failures here; none without an index."""
        try:
            with self.rows() as catalog:
                return catalog.profiles()
        except IndexFault:
            return []

    def card(self, identity: str) -> ProfileCard | None:
        """Return what is known of a profile that has vectors here; none for one without a card."""
        return read_card(self._layout, identity)

    @contextmanager
    def rows(self) -> Iterator[Catalog]:
        """Give the rows of the newest generation, without its arrays."""
        with faults():
            connection = self._connection()
            is_within = connection.in_transaction
            try:
                if not is_within:
                    connection.execute("BEGIN DEFERRED")
                yield Catalog(connection)
            finally:
                if not is_within:
                    end(connection)

    @contextmanager
    def pinned(self) -> Iterator[tuple[Frame, Catalog]]:
        """Give the newest generation; it stays as it is, rows and arrays, to the end of the block.

        Raises ``IndexFault`` when there is no complete index of this version and these settings.
        """
        held: tuple[Frame, Catalog] | None = getattr(self._local, "pinned", None)
        if held is not None:
            # A second look within the first, in one thread, sees what the first sees.
            yield held
            return
        with faults():
            connection = self._connection()
            try:
                self._local.pinned = self._newest(connection), Catalog(connection)
                yield self._local.pinned
            finally:
                self._local.pinned = None
                end(connection)

    def _newest(self, connection: sqlite3.Connection) -> Frame:
        """Begin a transaction and return the arrays of the generation that it sees."""
        for attempt in range(_ATTEMPTS):
            end(connection)
            connection.execute("BEGIN DEFERRED")
            try:
                return self._frame_of(Catalog(connection))
            except Damage:
                if attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    def _frame_of(self, catalog: Catalog) -> Frame:
        meta = catalog.meta()
        if lack := self._lack(meta):
            raise IndexFault(f"{lack}; run `searchsvc index`, or call index() of the service")
        version = _version(meta)
        with self._lock:
            if self._frame is None or self._frame.version != version:
                self._frame = Frame(self._layout, catalog)
            return self._frame

    def _connection(self) -> sqlite3.Connection:
        """Return this thread's connection to the file that is there now."""
        try:
            stat = self._layout.catalog.stat()
        except OSError as error:
            raise IndexFault("there is no index yet; run `searchsvc index`") from error
        file = stat.st_dev, stat.st_ino
        if getattr(self._local, "file", None) != file:
            self._local.connection = connect(self._layout.catalog, read_only=True)
            self._local.file = file
        connection: sqlite3.Connection = self._local.connection
        return connection

    def _lack(self, meta: Mapping[str, str]) -> str:
        """Say why an index cannot be read as it is; empty for one that can."""
        if not meta or meta.get("generation") == "0":
            return "there is no complete index yet"
        if meta.get("format") != str(FORMAT_VERSION) or meta.get("shape") != SHAPE:
            return "the index was made by another version"
        if self._tokenizer and meta.get("tokenizer") != self._tokenizer:
            return "the index was made by another version, or with other settings of search by words"
        return ""

    def close(self) -> None:
        """Close this thread's connection and forget the arrays."""
        if getattr(self._local, "file", None):
            self._local.connection.close()
            self._local.file = None
        self._frame = None


def _version(meta: Mapping[str, str]) -> tuple[str, str]:
    """Return what names a generation for good: an index made anew counts from the start again."""
    return meta.get("epoch", ""), meta.get("generation", "")
