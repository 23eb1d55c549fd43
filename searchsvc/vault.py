"""One root with its index: brought up to date, read, and checked against its files.

Joins reading, indexing and index for the service; everything here may be called from any thread.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from searchsvc.config import Config, Root, data_dir
from searchsvc.errors import IndexFault
from searchsvc.index.build import Writer
from searchsvc.index.catalog import NoteRow
from searchsvc.index.faults import Damage
from searchsvc.index.layout import Layout, root_layout
from searchsvc.index.ledger import Failure, Ledger
from searchsvc.index.open import Reader
from searchsvc.indexing import (
    IndexReport,
    Progress,
    make_tokenizer,
    update_index,
    update_notes,
)
from searchsvc.reading.walk import signature
from searchsvc.tokens import settings_of


class Vault:
    """A root and its index."""

    def __init__(self, root: Root, config: Config) -> None:
        self._config = config
        self.layout: Layout = root_layout(data_dir(config), root.path)
        self.reader = Reader(self.layout, settings_of(stemming=config.stemming))
        given = "" if root.is_named else self.reader.name
        self.root = replace(root, name=given) if given else root

    def update(self, *, progress: Progress | None = None) -> IndexReport:
        """Read what is new or changed; raise ``IndexFault`` when another process is writing."""
        try:
            return self._update(progress)
        except Damage:
            # The writer has thrown away what was damaged, as its last act.
            return self._update(progress)

    def failures(self, identity: str) -> list[Failure]:
        """Return what could not be embedded in a profile; none without an index."""
        try:
            with self.reader.rows() as catalog:
                return Ledger(catalog.connection).failures(identity)
        except IndexFault:
            return []

    def stale(self, notes: Iterable[NoteRow]) -> list[str]:
        """Return the paths of notes whose files have changed or gone since they were indexed."""
        return [note.path for note in notes if self._signature(note.path) != note.signature]

    def refresh(self, paths: list[str]) -> bool:
        """Index these notes as they are now; return false when another process is writing."""
        try:
            with self.writer(patience=1.0, repair=False) as writer:
                update_notes(writer, self.root, self._config, paths)
        except IndexFault:
            return False
        return True

    def size(self, identity: str = "") -> int:
        """Return the bytes on disk that the index takes, or the vectors of one profile."""
        total = 0
        top = self.layout.profile(identity) if identity else self.layout.folder
        for folder, _, names in os.walk(top):
            for name in names:
                # A writer may delete what it has just replaced.
                with suppress(OSError):
                    total += os.stat(os.path.join(folder, name)).st_size
        return total

    def file(self, path: str) -> Path:
        """Return where a note lies."""
        return self.root.path / path

    def _update(self, progress: Progress | None) -> IndexReport:
        with self.writer() as writer:
            writer.remember(folder=os.fsencode(self.root.path).decode("utf-8", "backslashreplace"))
            if self.root.is_named:
                writer.remember(name=self.root.name)
            return update_index(writer, self.root, self._config, progress=progress)

    def writer(self, *, patience: float = 10.0, repair: bool = True) -> Writer:
        """Return the writer of the index; entering it waits ``patience`` seconds for other processes."""
        tokenizer = make_tokenizer(self._config.stemming)
        return Writer(self.layout, tokenizer, patience=patience, repair=repair)

    def _signature(self, path: str) -> str:
        try:
            return signature(os.lstat(os.path.join(self.root.path, path)))
        except OSError:
            return ""
