"""The only writer of an index: notes and vectors in, generations out.

Every change is written to new files first and becomes visible in one sqlite commit. The lease is a
file lock that the operating system releases when the process ends, however it ends.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

import numpy as np
from filelock import FileLock, Timeout

from searchsvc.errors import IndexFault
from searchsvc.index.anchors import write_anchors
from searchsvc.index.arrays import sweep
from searchsvc.index.catalog import FORMAT_VERSION, Catalog, connect, transaction
from searchsvc.index.layout import Layout
from searchsvc.index.links import Anchor, Resolver, find_anchor
from searchsvc.index.postings import merge_streams
from searchsvc.index.records import Batch, NoteRecord
from searchsvc.index.segments import (
    Segment,
    mean_lengths,
    merge_segments,
    open_segment,
    pack_deleted,
    section_array,
    write_segment,
)
from searchsvc.index.vectors import Floats, merge_parts, open_part, write_part
from searchsvc.items import Problem
from searchsvc.tokens import Tokenizer

MAX_SEGMENTS = 8
"""More are merged; each costs a little in every search."""
MAX_VECTOR_PARTS = 12
_KEPT_SEGMENTS = 3
_MAX_DELETED_SHARE = 0.3
_MAX_DRIFT = 0.1
"""How far mean field lengths may move before a segment's weights are made again."""


class Writer:
    """Changes one index; use as a context manager, since it holds the lease."""

    def __init__(self, layout: Layout, tokenizer: Tokenizer, *, patience: float = 10.0) -> None:
        """Take the lease and make or migrate the index.

        An index made by a tokeniser of other settings is rebuilt. Raises ``IndexFault`` when another
        process still writes after ``patience`` seconds, or the folder cannot be written.
        """
        self._layout = layout
        self._patience = patience
        self._tokenizer = tokenizer
        self._settings = {"tokenizer": tokenizer.settings}
        self.remark = ""
        """What was done to an index of another version, for the user; usually empty."""

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
            raise IndexFault(
                f"index folder {self._layout.folder} cannot be written: {error.strerror}"
            ) from error
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
        self._lease.release()

    def _open(self) -> None:
        try:
            self._connection = connect(self._layout.catalog)
        except sqlite3.DatabaseError:
            self._layout.catalog.unlink()
            self.remark = "index was damaged and is rebuilt"
            self._connection = connect(self._layout.catalog)
        self.catalog = Catalog(self._connection)
        meta = self.catalog.meta()
        with transaction(self._connection):
            if not meta:
                self._reset()
            elif meta.get("format") != str(FORMAT_VERSION):
                self.remark = f"index of format {meta.get('format')} is rebuilt as format {FORMAT_VERSION}"
                self._reset()
            elif any(meta.get(key) != value for key, value in self._settings.items()):
                self.remark = (
                    "settings of lexical search have changed; the index is rebuilt, vectors are kept"
                )
                self._reset(keep_vectors=True)
        self._sweep()

    def _reset(self, *, keep_vectors: bool = False) -> None:
        parts = self.catalog.vector_parts() if keep_vectors else {}
        tables = self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            self._connection.execute(f'DROP TABLE "{table}"')
        self.catalog.create(self._settings)
        for identity, names in parts.items():
            self.catalog.set_vector_parts(identity, names)

    def commit(
        self,
        batches: Sequence[Batch],
        *,
        removed: Sequence[int] = (),
        touched: Sequence[tuple[str, int]] = (),
        problems: Iterable[Problem] = (),
        problem_paths: Iterable[str] | None = (),
    ) -> None:
        """Make one new generation.

        ``batches`` hold new and changed notes; ``removed`` are ids of notes that are gone or replaced by
        a batch; ``touched`` are new signatures of unchanged notes. ``problems`` replace those of
        ``problem_paths``, or all when that is none.
        """
        meta = self.catalog.meta()
        first_note, first_section = int(meta.get("next_note", 1)), int(meta.get("next_section", 1))
        notes = [note for batch in batches for note in batch.notes]
        table = section_array(notes, first_note, first_section)
        segments = self._segments()
        name = ""
        if len(table):
            stream = merge_streams([batch.stream for batch in batches])
            averages = mean_lengths([*(s.stream_bounds for s in segments), stream.bounds])
            name = write_segment(self._layout.segments, table, stream, averages)
        with transaction(self._connection):
            same_paths = self._same_paths(notes, removed)
            self.catalog.open_links_to(removed)
            self.catalog.delete_notes(removed)
            self.catalog.add_notes(notes, first_note, first_section)
            self.catalog.touch_notes(touched)
            self.catalog.replace_problems(problems, problem_paths)
            gone = np.array(removed, np.int32)
            kept = [(s.name, pack_deleted(s.deleted | np.isin(s.sections["note"], gone))) for s in segments]
            self.catalog.set_segments([*kept, (name, b"")] if name else kept)
            self._resolve_links(everything=not same_paths)
            anchors = write_anchors(self._layout.segments, self.catalog.anchor_texts(), self._tokenizer)
            self.catalog.set_meta({"anchors": anchors})
            self._advance(next_note=first_note + len(notes), next_section=first_section + len(table))

    def _same_paths(self, notes: Sequence[NoteRecord], removed: Sequence[int]) -> bool:
        """Tell whether the commit leaves every path as it was, so that other links keep their meaning."""
        old = {row.path for row in self.catalog.notes(removed).values()}
        return old == {note.path for note in notes} and not any(note.aliases for note in notes)

    def _resolve_links(self, *, everything: bool) -> None:
        """Find the destination of links: of all, or only of those that have none."""
        names = self.catalog.names()
        resolver = Resolver((path, aliases) for _, path, _, aliases in names)
        paths = {note: path for note, path, _, _ in names}
        ids = {path: note for note, path, _, _ in names}
        anchors: dict[int, list[Anchor]] = {}
        rows: list[tuple[int | None, int | None, int]] = []
        for row, source, link in self.catalog.links(open_only=not everything):
            note = ids.get(resolver.resolve(link, paths[source]).path)
            section = None
            if note is not None:
                if note not in anchors:
                    anchors[note] = self.catalog.anchors(note)
                section = find_anchor(anchors[note], link.heading)
                if section and note == source and section.line_start <= link.line <= section.line_end:
                    section = None
            rows.append((note, section.id if section else None, row))
        self.catalog.resolve_links(rows)

    def _advance(self, **counters: int) -> None:
        values = {key: str(value) for key, value in counters.items()}
        self.catalog.set_meta({"generation": str(self.catalog.generation() + 1), **values})

    def _segments(self) -> list[Segment]:
        return [open_segment(self._layout.segments, *entry) for entry in self.catalog.segments()]

    def compact(self) -> None:
        """Merge small segments, drop deleted sections, and weigh again what the corpus outgrew."""
        segments = self._segments()
        if not segments:
            return
        averages = mean_lengths([segment.stream_bounds for segment in segments])
        small = sorted(segments, key=lambda segment: len(segment.sections))
        crowded = len(segments) > MAX_SEGMENTS
        merged = small[: max(0, len(small) - _KEPT_SEGMENTS)] if crowded else []
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
            self._advance()
        self._sweep()

    def add_vectors(
        self, identity: str, keys: Sequence[int], matrices: Sequence[Floats], dimension: int
    ) -> None:
        """Store the vectors of passages under the hashes of what was embedded; one commit."""
        folder = self._layout.profile(identity)
        done = self.embedded_keys(identity)
        new = [(key, matrix) for key, matrix in zip(keys, matrices, strict=True) if key not in done]
        if not new:
            return
        keys, matrices = [key for key, _ in new], [matrix for _, matrix in new]
        name = write_part(folder, keys, matrices, dimension)
        names = [*self.catalog.vector_parts().get(identity, []), name]
        if len(names) > MAX_VECTOR_PARTS:
            names = self._merge_vectors(identity, names)
        with transaction(self._connection):
            self.catalog.set_vector_parts(identity, names)
            self._advance()
        sweep(folder, set(names))

    def _merge_vectors(self, identity: str, names: list[str]) -> list[str]:
        """Merge the smaller half of the parts, so that each vector is copied a bounded number of times."""
        folder = self._layout.profile(identity)
        parts = sorted((open_part(folder, name) for name in names), key=lambda part: len(part.rows))
        small = parts[: len(parts) // 2]
        wanted = np.concatenate([part.keys for part in small])
        live = [s.sections["key"][~s.deleted] for s in self._segments()]
        wanted = wanted[np.isin(wanted, np.concatenate([np.empty(0, np.uint64), *live]))]
        merged = merge_parts(folder, small, wanted)
        return [*(part.name for part in parts[len(parts) // 2 :]), merged]

    def embedded_keys(self, identity: str) -> set[int]:
        """Return the hashes of all passages that have vectors in a profile."""
        folder, names = self._layout.profile(identity), self.catalog.vector_parts().get(identity, [])
        return {int(key) for name in names for key in open_part(folder, name).keys}

    def passages_to_embed(self, identity: str) -> list[tuple[int, int]]:
        """Return section id and key of every distinct live text without vectors, newest segment first."""
        done = self.embedded_keys(identity)
        work: dict[int, int] = {}
        for segment in reversed(self._segments()):
            for row in segment.sections[~segment.deleted]:
                key = int(row["key"])
                if key and key not in done:
                    work.setdefault(key, int(row["id"]))
        return [(section, key) for key, section in work.items()]

    def _sweep(self) -> None:
        used = {name for name, _ in self.catalog.segments()}
        sweep(self._layout.segments, used | {self.catalog.meta().get("anchors", "")})
        parts = self.catalog.vector_parts()
        sweep(self._layout.vectors, set(parts))
        for identity, names in parts.items():
            sweep(self._layout.profile(identity), set(names))


def _is_stale(segment: Segment, averages: np.ndarray) -> bool:
    drift = np.abs(segment.averages - averages) / np.maximum(averages, 1.0)
    return bool(drift.max(initial=0) > _MAX_DRIFT) or bool(segment.deleted.mean() > _MAX_DELETED_SHARE)
