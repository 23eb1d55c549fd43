"""A segment: the sections of one commit, as arrays in one immutable folder."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchsvc.index.arrays import read_array, write_arrays
from searchsvc.index.postings import Postings, Stream, build_postings, field_lengths, merge_streams
from searchsvc.index.records import ANCHOR, FIELDS, NoteRecord

SECTION_DTYPE = np.dtype(
    [
        ("id", np.int64),  # of the row in the catalog
        ("note", np.int32),  # id of its note in the catalog
        ("parent", np.int32),  # ordinal of the parent section in the segment, or -1
        ("level", np.int8),
        ("cost", np.int32),  # tokens of the own text
        ("line_start", np.int32),
        ("key", np.uint64),  # hash of context and text, joins vectors; 0 when there is nothing to embed
        ("twin", np.uint64),  # hash of the folded text; 0 when too short
        ("language", np.int8),  # place in languages.CODES, 0 for unknown
    ]
)

SHAPE = hashlib.sha256(repr((FIELDS, ANCHOR, SECTION_DTYPE.descr)).encode()).hexdigest()[:16]
"""Changes with what is stored and how it is weighed; segments of another shape are made again."""

_RECORDED = ("parent", "level", "cost", "line_start", "key", "twin", "language")
"""Columns that are as in the record of a section, but for the parent."""

_POSTING_ARRAYS = ("spelling", "spelling_bounds", "bounds", "sections", "weights", "frequencies")


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment, opened for reading; its arrays are memory maps."""

    name: str
    sections: NDArray[Any]
    """Of ``SECTION_DTYPE``, in path order."""
    postings: Postings
    stream_terms: NDArray[np.int32]
    """Term ids in reading order, cell by cell."""
    stream_bounds: NDArray[np.int64]
    averages: NDArray[np.float64]
    """Mean field lengths that the posting weights were made with."""
    deleted: NDArray[np.bool_]
    """Which sections are gone."""

    def stream(self) -> Stream:
        """Return all terms in reading order."""
        return Stream(self.postings.vocabulary(), self.stream_terms, self.stream_bounds)


def section_array(notes: Sequence[NoteRecord], first_note: int, first_section: int) -> NDArray[Any]:
    """Return the section table of notes that get ids counted up from the given ones."""
    counts = np.array([len(note.sections) for note in notes], np.int64)
    sections = [section for note in notes for section in note.sections]
    table = np.zeros(len(sections), SECTION_DTYPE)
    for name in _RECORDED:
        table[name] = [getattr(section, name) for section in sections]
    offsets = np.repeat(np.cumsum(counts) - counts, counts)
    table["parent"] += np.where(table["parent"] >= 0, offsets, 0)
    table["id"] = np.arange(first_section, first_section + len(sections))
    table["note"] = np.repeat(np.arange(first_note, first_note + len(notes)), counts)
    return table


def write_postings(parent: Path, postings: Postings, **more: NDArray[Any]) -> str:
    """Write postings, and arrays that go with them, into a new folder and return its name."""
    return write_arrays(parent, {name: getattr(postings, name) for name in _POSTING_ARRAYS} | more)


def open_postings(folder: Path) -> Postings:
    """Open postings as memory maps."""
    arrays: dict[str, Any] = {key: read_array(folder, key) for key in _POSTING_ARRAYS}
    return Postings(**arrays)


def write_segment(parent: Path, sections: NDArray[Any], stream: Stream, averages: NDArray[np.float64]) -> str:
    """Write a segment and return its name; the stream's vocabulary is in byte order."""
    postings = build_postings(stream, tuple(FIELDS.values()), averages)
    more = {"table": sections, "stream": stream.terms, "stream_bounds": stream.bounds, "averages": averages}
    return write_postings(parent, postings, **more)


def open_segment(parent: Path, name: str, deleted: bytes) -> Segment:
    """Open a segment; ``deleted`` holds one bit a section, or nothing when all are live."""
    folder = parent / name
    sections = read_array(folder, "table")
    gone = np.zeros(len(sections), dtype=bool)
    if deleted:
        gone = np.unpackbits(np.frombuffer(deleted, np.uint8), count=len(sections)).astype(bool)
    return Segment(
        name=name,
        sections=sections,
        postings=open_postings(folder),
        stream_terms=read_array(folder, "stream"),
        stream_bounds=read_array(folder, "stream_bounds"),
        averages=np.asarray(read_array(folder, "averages")),
        deleted=gone,
    )


def pack_deleted(deleted: NDArray[np.bool_]) -> bytes:
    """Return deletion bits as stored in the catalog."""
    return np.packbits(deleted).tobytes() if deleted.any() else b""


def merge_segments(segments: Sequence[Segment]) -> tuple[NDArray[Any], Stream]:
    """Return the live sections of several segments, one segment after the other, and their stream."""
    tables, streams, shift = [], [], 0
    for segment in segments:
        live = ~segment.deleted
        table = np.array(segment.sections[live])
        moved = np.cumsum(live) - 1 + shift
        has_parent = table["parent"] >= 0
        table["parent"][has_parent] = moved[table["parent"][has_parent]]
        tables.append(table)
        streams.append(_live_stream(segment, live))
        shift += len(table)
    return np.concatenate(tables), merge_streams(streams)


def _live_stream(segment: Segment, live: NDArray[np.bool_]) -> Stream:
    stream = segment.stream()
    if live.all():
        return stream
    lengths = np.diff(stream.bounds)
    kept = np.repeat(live, len(FIELDS))
    terms = stream.terms[np.repeat(kept, lengths)]
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths[kept])])
    used = np.unique(terms)
    remap = np.zeros(len(stream.vocabulary), np.int32)
    remap[used] = np.arange(len(used), dtype=np.int32)
    return Stream([stream.vocabulary[term] for term in used], remap[terms], bounds)


def without(segment: Segment, notes: Sequence[int]) -> Segment:
    """Return a segment with the sections of some notes deleted."""
    gone = np.isin(segment.sections["note"], np.array(notes, np.int64))
    return replace(segment, deleted=segment.deleted | gone)


def lengths_of(stream: Stream) -> NDArray[np.float64]:
    """Return the length of every field of every section, shape ``(sections, fields)``."""
    return field_lengths(stream.bounds, len(FIELDS))


def live_lengths(segment: Segment) -> NDArray[np.float64]:
    """Return the field lengths of the sections that are not deleted."""
    return field_lengths(segment.stream_bounds, len(FIELDS))[~segment.deleted]


def mean_lengths(lengths: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the mean length of each field over the sections that have it; 0 where none has."""
    total = np.sum([np.zeros(len(FIELDS)), *(item.sum(axis=0) for item in lengths)], axis=0)
    count = np.sum([np.zeros(len(FIELDS)), *((item > 0).sum(axis=0) for item in lengths)], axis=0)
    means: NDArray[np.float64] = np.divide(total, count, out=np.zeros(len(FIELDS)), where=count > 0)
    return means
