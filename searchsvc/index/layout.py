"""Names of all files of an index; no other module spells one.

<data dir>/<root id>/
    catalog.sqlite            the source of truth of what is visible
    writer.lock               held by the one process that writes
    <identity>.lock           held by the one process that embeds for a profile
    segments/<name>/*.npy     sections, terms and postings, immutable
    vectors/<identity>/<name>/*.npy   vectors of one profile, immutable
    vectors/<identity>/profile.json   what made them
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

STAGING_PREFIX = "tmp-"


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the index of one root lies."""

    folder: Path

    @property
    def catalog(self) -> Path:
        """The sqlite file."""
        return self.folder / "catalog.sqlite"

    @property
    def catalog_files(self) -> tuple[Path, ...]:
        """The sqlite file and what sqlite keeps beside it."""
        return self.catalog, *(self.catalog.with_name(self.catalog.name + end) for end in ("-wal", "-shm"))

    @property
    def lock(self) -> Path:
        """The writer's lease."""
        return self.folder / "writer.lock"

    @property
    def segments(self) -> Path:
        """Folder of all segments."""
        return self.folder / "segments"

    @property
    def vectors(self) -> Path:
        """Folder of all vectors."""
        return self.folder / "vectors"

    def profile(self, identity: str) -> Path:
        """Folder of the vectors of one profile."""
        return self.vectors / identity

    def embedding_lock(self, identity: str) -> Path:
        """File that the one process that embeds for a profile holds."""
        return self.folder / f"{identity}.lock"

    def profile_card(self, identity: str) -> Path:
        """File that says what made the vectors of a profile."""
        return self.profile(identity) / "profile.json"


def root_layout(data_dir: Path, root: Path) -> Layout:
    """Return the layout of the index of a root, named after the folder and a hash of its full path."""
    digest = hashlib.sha256(str(root).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    readable = re.sub(r"[^A-Za-z0-9]+", "-", root.name).strip("-").lower()[:32] or "root"
    return Layout(folder=data_dir / f"{readable}-{digest}")
