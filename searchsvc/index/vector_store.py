"""The writing side of vectors: profiles and their parts, failures, calibration."""

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from searchsvc.index.arrays import sweep
from searchsvc.index.calibration import calibrate
from searchsvc.index.catalog import ACTIVE, Catalog, transaction
from searchsvc.index.faults import faults
from searchsvc.index.layout import Layout
from searchsvc.index.ledger import Failure, Ledger
from searchsvc.index.profiles import ProfileCard, write_card
from searchsvc.index.segments import open_segment
from searchsvc.index.vectors import Floats, merge_parts, open_part, write_part

MAX_PARTS = 12


class VectorStore:
    """Changes the vectors of one index; made by the writer, who holds the lease."""

    def __init__(self, layout: Layout, connection: sqlite3.Connection) -> None:
        self._layout = layout
        self._connection = connection
        self._catalog = Catalog(connection)
        self._ledger = Ledger(connection)

    @faults()
    def add(self, card: ProfileCard, made: Mapping[int, Floats], failures: Sequence[Failure] = ()) -> None:
        """Store the vectors of passages, by hash of what was embedded, and what failed; one commit.

        Matrices have shape ``(windows, dimension)``.
        """
        names = self._parts(card.identity)
        new = self._new(card.identity, names, made)
        if new or failures:
            write_card(self._layout, card)
        if new:
            folder = self._layout.profile(card.identity)
            names.append(write_part(folder, list(new), list(new.values()), len(card.probe)))
            if len(names) > MAX_PARTS:
                names = self._merge(card.identity, names)
        with transaction(self._connection):
            whole = set(made) - {failure.key for failure in failures}
            self._ledger.forget(card.identity, whole)
            self._ledger.record(card.identity, failures)
            if new:
                self._catalog.set_vector_parts(card.identity, names)
            if new or failures:
                self._catalog.advance()
        sweep(self._layout.profile(card.identity), set(names))

    @faults()
    def use(self, identity: str) -> None:
        """Make a profile the one that searches go by; empty for none."""
        with transaction(self._connection):
            self._catalog.set_meta({ACTIVE: identity})
            self._catalog.advance()

    @faults()
    def drop(self, identity: str) -> None:
        """Delete a profile with its vectors."""
        with transaction(self._connection):
            self._catalog.set_vector_parts(identity, [])
            self._ledger.forget(identity)
            self._catalog.drop_meta(f"calibration {identity}")
            if self._catalog.meta().get(ACTIVE) == identity:
                self._catalog.drop_meta(ACTIVE)
            self._catalog.advance()
        sweep(self._layout.vectors, set(self._catalog.profiles()))

    @faults()
    def forget_failures(self, identity: str, keys: Collection[int] | None = None) -> None:
        """Let what failed be tried again: these texts, or all of a profile."""
        with transaction(self._connection):
            self._ledger.forget(identity, keys)
            self._catalog.advance()

    def is_calibrated(self, identity: str) -> bool:
        """Tell whether the cosines of a profile have been measured."""
        return f"calibration {identity}" in self._catalog.meta()

    @faults()
    def calibrate(self, identity: str, probes: Floats) -> None:
        """Measure what the cosines of a profile mean here; ``probes`` are vectors of foreign questions."""
        folder = self._layout.profile(identity)
        measured = calibrate([open_part(folder, name) for name in self._parts(identity)], probes)
        if measured is not None:
            with transaction(self._connection):
                self._catalog.set_meta({f"calibration {identity}": json.dumps(asdict(measured))})
                self._catalog.advance()

    def _new(self, identity: str, names: Sequence[str], made: Mapping[int, Floats]) -> dict[int, Floats]:
        """Return what is in no part yet."""
        keys = np.fromiter(made, np.uint64, len(made))
        folder = self._layout.profile(identity)
        for name in names:
            keys = keys[~np.isin(keys, open_part(folder, name).keys)]
        return {key: made[key] for key in keys.tolist()}

    def _parts(self, identity: str) -> list[str]:
        return list(self._catalog.vector_parts().get(identity, []))

    def _merge(self, identity: str, names: list[str]) -> list[str]:
        """Merge the smaller half of the parts, so that each vector is copied a bounded number of times."""
        folder = self._layout.profile(identity)
        parts = sorted((open_part(folder, name) for name in names), key=lambda part: len(part.rows))
        small = parts[: len(parts) // 2]
        wanted = np.concatenate([part.keys for part in small])
        wanted = wanted[np.isin(wanted, self._live_keys())]
        merged = merge_parts(folder, small, wanted)
        return [*(part.name for part in parts[len(parts) // 2 :]), merged]

    def _live_keys(self) -> NDArray[np.uint64]:
        segments = [open_segment(self._layout.segments, *entry) for entry in self._catalog.segments()]
        live = (segment.sections["key"][~segment.deleted] for segment in segments)
        return np.concatenate([np.empty(0, np.uint64), *live])
