"""The vault of one case, on disk and in the product."""

import base64
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from searchsvc.config import Config, make_root
from searchsvc.embedding.base import Matrix, ModelChoice, Passage, Profile
from searchsvc.embedding.slot import ModelSlot
from searchsvc.index.catalog import Catalog
from searchsvc.index.links import Anchor, Resolver
from searchsvc.items import Note, Problem
from searchsvc.reading.access import locate, read_bytes
from searchsvc.reading.note import read_note
from searchsvc.service import Service

REAL_MODEL = "all-minilm-l6-v2-int8"


class World:
    """A vault made from the files of a case, and what the product says of it."""

    def __init__(self, folder: Path, files: Mapping[str, Any], *, reverse: bool = False) -> None:
        self.folder = folder
        self.root = folder / "vault"
        self.root.mkdir()
        self._closed: list[Path] = []
        names = sorted(files, reverse=reverse)
        links = [name for name in names if isinstance(files[name], dict) and "hardlink" in files[name]]
        for name in [*(name for name in names if name not in links), *links]:
            self._make(self.fill(name), files[name])
        for name in names:
            self._restrict(self.root / self.fill(name), files[name])
        self.config = Config(
            roots=(make_root(self.root),), data_dir=folder / "index of the case", model="none",
            instant_model="none", workers=1,
        )  # fmt: skip
        self._service: Service | None = None
        self._vectors: Mapping[str, Any] | None = None

    def fill(self, text: str) -> str:
        """Put the paths of this vault in place of the placeholders."""
        for name, value in (("VAULTNAME", self.root.name), ("ABSVAULT", self.root), ("ABS", self.folder)):
            text = text.replace(f"{{{name}}}", str(value))
        return text

    def _make(self, name: str, what: Any) -> None:
        path = Path(os.path.normpath(self.root / name))
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(what, str):
            path.write_bytes(what.encode())
        elif "b64" in what:
            path.write_bytes(base64.b64decode(what["b64"]))
        elif "gen" in what:
            part = what["gen"]
            text = part.get("prefix", "") + part["repeat"] * part["times"] + part.get("suffix", "")
            path.write_bytes(text.encode())
        elif "symlink" in what:
            path.symlink_to(self.fill(what["symlink"]))
        elif "hardlink" in what:
            path.hardlink_to(self.root / what["hardlink"])
        elif "text" in what:
            path.write_bytes(what["text"].encode())
        elif "note" in what and name.endswith(".webp"):
            Image.new("RGB", (2, 2)).save(path, "WEBP")
        elif "zip" in what:
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
                for member, text in sorted(what["zip"].items(), key=lambda item: item[0] != "mimetype"):
                    stored = zipfile.ZIP_STORED if member == "mimetype" else zipfile.ZIP_DEFLATED
                    book.writestr(member, text, stored)
        else:
            raise AssertionError(f"{name}: the adapter cannot make a file from {sorted(what)}")

    def _restrict(self, path: Path, what: Any) -> None:
        for key, place in (("mode", path), ("dirmode", path.parent)):
            if isinstance(what, dict) and key in what:
                place.chmod(int(what[key], 8))
                self._closed.append(place)

    def reopen(self) -> None:
        """Give back the permissions that were taken away, so that the folder can be deleted."""
        for path in self._closed:
            path.chmod(0o700)

    # What the product says

    def use(self, *, model: str = "none", vectors: Mapping[str, Any] | None = None) -> None:
        """Choose the embedding model, real or made up, before the service is first asked."""
        self._vectors = vectors
        self.config = Config(
            roots=self.config.roots, data_dir=self.config.data_dir, model=model, instant_model="none",
            workers=1,
        )  # fmt: skip

    @property
    def service(self) -> Service:
        if self._service is None:
            self._service = Service(self.config)
            if self._vectors is not None:
                embedder = FakeEmbedder(self._vectors)
                slot = ModelSlot(ModelChoice(embedder.profile.name), lambda: embedder)
                self._service.models.slots = lambda active=None: [slot]  # type: ignore[method-assign]
        return self._service

    def index(self) -> None:
        self.service.index()
        if self.service.slots:
            self.service.embed()

    def ready(self) -> Service:
        """Return the service, with an index."""
        if not self.service.is_indexed:
            self.index()
        return self.service

    @contextmanager
    def catalog(self) -> Iterator[Catalog]:
        (vault,) = self.ready().vaults
        with vault.reader.pinned() as (_, catalog):
            yield catalog

    def problems(self) -> list[Problem]:
        with self.catalog() as catalog:
            return catalog.problems()

    def indexed(self) -> list[str]:
        """Return the notes that are in the index with their text."""
        skipped = {problem.path for problem in self.problems() if problem.skipped}
        with self.catalog() as catalog:
            return sorted(row.path for row in catalog.notes().values() if row.path not in skipped)

    def links_into(self, path: str) -> list[str]:
        with self.catalog() as catalog:
            paths = {note: row.path for note, row in catalog.notes().items()}
            return sorted({paths[source] for source, note in catalog.edges() if paths[note] == path})

    def note(self, path: str) -> Note:
        """Read one note as any tool would: through the jail."""
        (root,) = self.config.roots
        place = locate(path, root, self.config)
        return read_note(place.path, read_bytes(place, self.config))

    def resolver(self, *, reverse: bool = False) -> Resolver:
        with self.catalog() as catalog:
            names = sorted((path, tuple(aliases)) for _, path, _, aliases in catalog.names())
        return Resolver(names[::-1] if reverse else names)


def anchors(note: Note) -> list[Anchor]:
    return [
        Anchor(n, s.level, s.title, s.anchor, s.custom_anchor, s.line_start, s.line_end)
        for n, s in enumerate(note.sections)
    ]


class FakeEmbedder:
    """Answers with the vectors of a case: of the first key that a text contains, else an unrelated one."""

    def __init__(self, vectors: Mapping[str, Any]) -> None:
        self._vectors = vectors
        length = max(len(value) for value in vectors.values() if not isinstance(value, str))
        self.profile = Profile(
            name="made-up", provider="fake", revision="0", dimension=length + 1, max_tokens=512
        )

    def encode_query(self, text: str) -> np.ndarray:
        return self._vector(text)

    def encode_passages(self, passages: Iterable[Passage]) -> Iterator[Matrix]:
        for passage in passages:
            yield self._vector(f"{passage.context} {passage.text}")[None, :]

    def _vector(self, text: str) -> np.ndarray:
        """Return a unit vector, but what cannot be brought to length 1 as it is."""
        found = next((value for key, value in self._vectors.items() if key in text), None)
        vector = np.zeros(self.profile.dimension, np.float32)
        if found is None:
            vector[-1] = 1
        elif found == "nan":
            vector[:] = np.nan
        else:
            vector[: len(found)] = [np.nan if value == "nan" else value for value in found]
        length = np.linalg.norm(vector)
        return vector / length if np.isfinite(length) and length else vector
