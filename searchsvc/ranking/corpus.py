"""The sections of one or more roots, seen as one corpus with ordinals 0 to n-1."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchsvc.index.calibration import Calibration
from searchsvc.index.open import Frame
from searchsvc.index.postings import Postings
from searchsvc.index.segments import SECTION_DTYPE, Segment
from searchsvc.languages import CODES

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class AnchorView:
    """The anchor postings of one root, with ordinals of the corpus."""

    postings: Postings
    places: NDArray[np.int32]
    """Ordinal of each anchored section, or -1."""
    is_whole: bool
    """Whether every anchored section has an ordinal."""
    is_ascending: bool
    """Whether the ordinals ascend with the anchored sections."""


class Corpus:
    """Joins the frames of all roots; each keeps its own arrays."""

    def __init__(self, frames: Sequence[Frame]) -> None:
        self.frames = list(frames)
        self.bases = np.cumsum([0, *(len(frame.table) for frame in frames)])
        self.segments: list[tuple[int, Segment]] = [
            (int(base + start), segment)
            for base, frame in zip(self.bases, frames, strict=False)
            for start, segment in zip(frame.bases, frame.segments, strict=False)
        ]
        self._starts = [base for base, _ in self.segments]
        self._roots = self.bases[:-1].tolist()
        self.anchors = [
            _anchor_view(frame.anchors, frame.anchor_places, int(base))
            for base, frame in zip(self.bases, frames, strict=False)
            if frame.anchors is not None
        ]
        self.live: Mask = np.concatenate([np.empty(0, bool), *(frame.live for frame in frames)])

    def __len__(self) -> int:
        return len(self.live)

    @cached_property
    def count(self) -> int:
        """Number of live sections."""
        return int(self.live.sum())

    def column(self, name: str) -> NDArray[Any]:
        """Return one column of the section table over the whole corpus."""
        columns = [frame.table[name] for frame in self.frames]
        return columns[0] if len(columns) == 1 else np.concatenate([np.empty(0, np.int64), *columns])

    def twins(self, ordinals: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the hash of the text of some sections, 0 for short ones."""
        return self._at("twin", ordinals)[0]

    def parents(self, ordinals: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the ordinal of the parent of some sections, -1 for none."""
        parents, bases = self._at("parent", ordinals)
        return np.where(parents >= 0, parents + bases, -1)

    def _at(self, name: str, ordinals: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return one column of the section table for some sections, and where the root of each begins."""
        if len(self.frames) == 1:
            return self.frames[0].table[name][ordinals], np.zeros(len(ordinals), np.int64)
        roots = np.searchsorted(self.bases, ordinals, side="right") - 1
        found = np.empty(len(ordinals), SECTION_DTYPE[name])
        for number, frame in enumerate(self.frames):
            mine = roots == number
            found[mine] = frame.table[name][ordinals[mine] - self.bases[number]]
        return found, self.bases[roots]

    def holds(self, term: str) -> bool:
        """Tell whether any section holds a term or is called by it in links."""
        everywhere = (
            *(segment.postings for _, segment in self.segments),
            *(v.postings for v in self.anchors),
        )
        return any(postings.find(term) >= 0 for postings in everywhere)

    def segment_of(self, ordinal: int) -> int:
        """Return the number of the segment that holds a section."""
        return bisect_right(self._starts, ordinal) - 1

    def place(self, ordinal: int) -> tuple[int, int]:
        """Return the number of the root and the place in its table of a section."""
        root = bisect_right(self._roots, ordinal) - 1
        return root, ordinal - int(self.bases[root])

    def cosines(self, identity: str, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the cosine of every section with a query vector; ``-inf`` without one, and for dead ones."""
        return np.concatenate(
            [np.empty(0, np.float32), *(frame.vectors(identity).cosines(query) for frame in self.frames)]
        )

    def scanned(
        self, identity: str, query: NDArray[np.float32], ordinals: NDArray[np.int64], batch: int
    ) -> NDArray[np.float32]:
        """Return the exact cosine of some sections, ``-inf`` for all others; ``batch`` are read at a time."""
        found = [np.empty(0, np.float32)]
        for frame, base in zip(self.frames, self.bases.tolist(), strict=False):
            mine = ordinals[(ordinals >= base) & (ordinals < base + len(frame.table))] - base
            found.append(frame.vectors(identity).scanned(query, mine, batch))
        return np.concatenate(found)

    def covered(self, identity: str) -> Mask:
        """Return which sections have a vector of a profile."""
        return np.concatenate(
            [np.empty(0, bool), *(frame.vectors(identity).covered for frame in self.frames)]
        )

    def calibrations(self, identity: str) -> list[Calibration]:
        """Return what cosines of a profile mean, for each root where that was measured."""
        return [frame.calibrations[identity] for frame in self.frames if identity in frame.calibrations]

    def language_share(self, code: str) -> float:
        """Return the share of sections of a known language that are in this one; 1 when none is known."""
        known = self._languages[1:].sum()
        return float(self._languages[CODES.index(code)] / known) if known else 1.0

    @cached_property
    def _languages(self) -> NDArray[np.int64]:
        return np.bincount(self.column("language")[self.live], minlength=len(CODES))

    def coverage(self, identity: str, allowed: Mask | None = None) -> tuple[int, int]:
        """Return how many live sections with text have vectors of a profile, and how many there are.

        With ``allowed``, of those alone.
        """
        pairs = [
            frame.coverage(identity, part)
            for frame, part in zip(self.frames, self._by_frame(allowed), strict=True)
        ]
        return sum(done for done, _ in pairs), sum(wanted for _, wanted in pairs)

    def failed(self, identity: str, allowed: Mask | None = None) -> int:
        """Return how many of them have a text that the model of a profile did not take."""
        parts = self._by_frame(allowed)
        return sum(frame.failed(identity, part) for frame, part in zip(self.frames, parts, strict=True))

    def _by_frame(self, allowed: Mask | None) -> Sequence[Mask | None]:
        if allowed is None:
            return [None] * len(self.frames)
        return [allowed[start:stop] for start, stop in pairwise(self.bases.tolist())]


def _anchor_view(postings: Postings, places: NDArray[np.int64], base: int) -> AnchorView:
    """Return anchor postings with ordinals of the corpus, where the root's sections begin at ``base``."""
    ordinals = np.where(places >= 0, places + base, -1).astype(np.int32)
    present = ordinals[ordinals >= 0]
    is_ascending = bool((np.diff(present) > 0).all())
    return AnchorView(postings, ordinals, len(present) == len(ordinals), is_ascending)
