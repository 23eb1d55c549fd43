"""The only writer of an index: notes and vectors in, generations out.

Every change is written to new files first and becomes visible in one sqlite commit. The lease is a
file lock that the operating system releases when the process ends, however it ends.
"""

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

import numpy as np
from filelock import FileLock, Timeout

from searchsvc.errors import IndexFault
from searchsvc.index.anchors import write_anchors
from searchsvc.index.arrays import sweep
from searchsvc.index.bring_up import bring_up
from searchsvc.index.catalog import Catalog, Destination, connect, transaction
from searchsvc.index.faults import Damage, faults, write_fault
from searchsvc.index.layout import Layout
from searchsvc.index.links import Anchors, Resolver
from searchsvc.index.postings import merge_streams
from searchsvc.index.records import Batch, NoteRecord
from searchsvc.index.segments import (
    SHAPE,
    Segment,
    lengths_of,
    live_lengths,
    mean_lengths,
    merge_segments,
    open_segment,
    pack_deleted,
    section_array,
    without,
    write_segment,
)
from searchsvc.index.vector_store import VectorStore
from searchsvc.items import Problem
from searchsvc.tokens import Tokenizer

MAX_SEGMENTS = 8
"""More are merged; each costs a little in every search."""
_KEPT_SEGMENTS = 3
_MIN_PEER = 5_000
_PEER_FACTOR = 4
_MAX_MERGED = 200_000
"""Sections of large segments that are merged into one."""
_MAX_DELETED_SHARE = 0.3
_LEFT_FOR_LATER = "left for later"
_MAX_DRIFT = 0.1
"""How far mean field lengths may move before a segment's weights are made again."""


class Writer:
    """Changes one index; use as a context manager, since it holds the lease."""

    def __init__(
        self, layout: Layout, tokenizer: Tokenizer, *, patience: float = 10.0, repair: bool = True
    ) -> None:
        """Entering takes the lease, and makes the index or makes it anew.

        An index that is damaged, or made by another version or by a tokeniser of other settings, is
        emptied, to be filled by an update of all notes; without ``repair`` that raises ``IndexFault``,
        as do a folder that cannot be written and a process that still writes after ``patience`` seconds.
        """
        self._layout = layout
        self._patience = patience
        self._repair = repair
        self._tokenizer = tokenizer
        self._settings = {"tokenizer": tokenizer.settings, "shape": SHAPE}
        self.remark = ""
        """What was done to a damaged index or one of another version, for the user; usually empty."""

    def __enter__(self) -> Self:
        try:
            self._layout.folder.mkdir(parents=True, exist_ok=True)
            self._lease = FileLock(self._layout.lock, timeout=self._patience)
            self._lease.acquire()
        except Timeout as error:
            raise IndexFault(
                "another process is writing this index; wait for it, or search meanwhile"
            ) from error
        except OSError as error:
            raise write_fault(error) from error
        try:
            self._open()
        except BaseException:
            self._lease.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
        try:
            if isinstance(error, Damage) and self._repair:
                self._discard()
        finally:
            self._lease.release()

    def _open(self) -> None:
        try:
            self._prepare()
        except Damage:
            if not self._repair:
                raise
            self._discard()
            self._prepare()

    @faults()
    def _prepare(self) -> None:
        """Open the catalog and bring it to this version; what crashes left behind is swept."""
        self._connection = connect(self._layout.catalog)
        try:
            self.catalog = Catalog(self._connection)
            self.vectors = VectorStore(self._layout, self._connection)
            with transaction(self._connection):
                self.remark = bring_up(self._layout, self.catalog, self._settings, repair=self._repair)
            self._sweep()
        except BaseException:
            self._connection.close()
            raise

    def _discard(self) -> None:
        """Delete a catalog that sqlite cannot use; readers that still hold it open are not disturbed."""
        try:
            for file in self._layout.catalog_files:
                file.unlink(missing_ok=True)
        except OSError as error:
            raise write_fault(error) from error

    @faults()
    def commit(
        self,
        batches: Sequence[Batch],
        *,
        removed: Sequence[int] = (),
        touched: Sequence[tuple[str, float, int]] = (),
        problems: Iterable[Problem] = (),
        problem_paths: Iterable[str] | None = (),
        more_follows: bool = False,
    ) -> None:
        """Make one new generation.

        ``batches`` hold new and changed notes; ``removed`` are ids of notes that are gone or replaced by
        a batch; ``touched`` are new signatures and times of unchanged notes. ``problems`` replace those
        of ``problem_paths``, or all when that is none. Links are left for later when ``more_follows``.
        """
        meta = self.catalog.meta()
        first_note, first_section = int(meta.get("next_note", 1)), int(meta.get("next_section", 1))
        notes = [note for batch in batches for note in batch.notes]
        table = section_array(notes, first_note, first_section)
        segments = [without(segment, removed) for segment in self._segments()]
        kept = [(s.name, pack_deleted(s.deleted)) for s in segments if not s.deleted.all()]
        if len(table):
            stream = merge_streams([batch.stream for batch in batches])
            averages = mean_lengths([*map(live_lengths, segments), lengths_of(stream)])
            kept.append((write_segment(self._layout.segments, table, stream, averages), b""))
        with transaction(self._connection):
            same_paths = self._same_paths(notes, removed)
            self.catalog.open_links_to(removed)
            self.catalog.delete_notes(removed)
            self.catalog.add_notes(notes, first_note, first_section)
            self.catalog.touch_notes(touched)
            self.catalog.replace_problems(problems, problem_paths)
            self.catalog.set_segments(kept)
            if more_follows:
                self.catalog.set_meta({"links": _LEFT_FOR_LATER})
            else:
                self._update_links(everything=not same_paths or meta.get("links") == _LEFT_FOR_LATER)
            self.catalog.advance(next_note=first_note + len(notes), next_section=first_section + len(table))

    @faults()
    def touch(self, touched: Sequence[tuple[str, float, int]]) -> None:
        """Store new signatures and times of notes with unchanged content; no new generation."""
        with transaction(self._connection):
            self.catalog.touch_notes(touched)

    def _same_paths(self, notes: Sequence[NoteRecord], removed: Sequence[int]) -> bool:
        """Tell whether the commit leaves every path as it was, so that other links keep their meaning."""
        old = {row.path for row in self.catalog.notes(removed).values()}
        return old == {note.path for note in notes} and not any(note.aliases for note in notes)

    def _update_links(self, *, everything: bool) -> None:
        self._resolve_links(everything=everything)
        anchors = write_anchors(self._layout.segments, self.catalog.anchor_texts(), self._tokenizer)
        self.catalog.set_meta({"anchors": anchors, "links": ""})

    def _resolve_links(self, *, everything: bool) -> None:
        """Find the destination of links: of all, or only of those that have none."""
        names = self.catalog.names()
        resolver = Resolver((path, aliases) for _, path, _, aliases in names)
        paths = {note: path for note, path, _, _ in names}
        ids = {path: note for note, path, _, _ in names}
        anchors: dict[int, Anchors] = {}
        rows: list[tuple[int, Destination]] = []
        for row, source, link, before in self.catalog.links(open_only=not everything):
            note = ids.get(resolver.resolve(link, paths[source]).path)
            section = None
            if note is not None:
                if note not in anchors:
                    anchors[note] = Anchors(self.catalog.anchors(note))
                section = anchors[note].of(link)
                if section and note == source and section.line_start <= link.line <= section.line_end:
                    section = None
            found = note, section.id if section else None
            if found != before:
                rows.append((row, found))
        self.catalog.resolve_links(rows)

    def _segments(self) -> list[Segment]:
        return [open_segment(self._layout.segments, *entry) for entry in self.catalog.segments()]

    @faults()
    def compact(self) -> None:
        """Merge small segments, drop deleted sections, and weigh again what the corpus outgrew."""
        segments = self._segments()
        if not segments:
            return
        averages = mean_lengths(list(map(live_lengths, segments)))
        merged = _smallest(segments, len(segments) - _KEPT_SEGMENTS) if self.is_crowded else _peers(segments)
        stale = [s for s in segments if s not in merged and _is_stale(s, averages)]
        groups = [group for group in (merged, *([segment] for segment in stale)) if group]
        replaced = {segment.name for group in groups for segment in group}
        new = []
        for group in groups:
            table, stream = merge_segments(group)
            if len(table):
                new.append(write_segment(self._layout.segments, table, stream, averages))
        if not groups:
            self._sweep()
            return
        with transaction(self._connection):
            kept = [(s.name, pack_deleted(s.deleted)) for s in segments if s.name not in replaced]
            self.catalog.set_segments([*kept, *((name, b"") for name in new)])
            self.catalog.advance()
        self._sweep()

    @property
    def is_unfinished(self) -> bool:
        """Whether links were left for a commit that has not come, or nothing was ever committed."""
        return self.catalog.meta().get("links", _LEFT_FOR_LATER) == _LEFT_FOR_LATER

    @property
    def is_crowded(self) -> bool:
        """Whether small commits have piled up that ``compact`` would merge."""
        return len(self.catalog.segments()) > MAX_SEGMENTS

    def remember(self, **facts: str) -> None:
        """Keep facts of the root: its ``folder``, and the ``name`` that was chosen for it."""
        meta = self.catalog.meta()
        if any(meta.get(key) != value for key, value in facts.items()):
            with transaction(self._connection):
                self.catalog.set_meta(facts)

    def _sweep(self) -> None:
        used = {name for name, _ in self.catalog.segments()}
        sweep(self._layout.segments, used | {self.catalog.meta().get("anchors", "")})
        sweep(self._layout.vectors, set(self.catalog.profiles()))
        for identity, names in self.catalog.vector_parts().items():
            sweep(self._layout.profile(identity), set(names))


def _peers(segments: Sequence[Segment]) -> list[Segment]:
    """Return large segments of about one size, such as the portions of a first run.

    One segment is searched about twice as fast as four. A section is merged a few times at most, since
    what comes out is no longer of the size of what comes next; the total is bounded, and so is memory.
    """
    sizes = [len(segment.sections) for segment in segments]
    chosen: list[int] = []
    for place in sorted(range(len(sizes)), key=lambda place: -sizes[place]):
        smallest = max(_MIN_PEER, sizes[chosen[0]] // _PEER_FACTOR) if chosen else _MIN_PEER
        if sizes[place] >= smallest and sum(sizes[p] for p in chosen) + sizes[place] <= _MAX_MERGED:
            chosen.append(place)
    return [segments[place] for place in sorted(chosen)] if len(chosen) > 1 else []


def _smallest(segments: Sequence[Segment], count: int) -> list[Segment]:
    """Return the smallest segments, oldest first as they stand."""
    order = sorted(range(len(segments)), key=lambda place: len(segments[place].sections))
    return [segments[place] for place in sorted(order[:count])]


def _is_stale(segment: Segment, averages: np.ndarray) -> bool:
    drift = np.abs(segment.averages - averages) / np.maximum(averages, 1.0)
    return bool(drift.max(initial=0) > _MAX_DRIFT) or bool(segment.deleted.mean() > _MAX_DELETED_SHARE)
