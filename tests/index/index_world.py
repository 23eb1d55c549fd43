"""A folder of notes with its index, and an embedder that costs nothing."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import searchsvc
from searchsvc.batch import embed_vault
from searchsvc.config import Config, Root
from searchsvc.embedding.base import Matrix, ModelChoice, Passage, Profile
from searchsvc.index.catalog import Catalog
from searchsvc.index.open import Frame, Reader
from searchsvc.index.records import FIELDS
from searchsvc.indexing import IndexReport
from searchsvc.items import Section
from searchsvc.ranking.corpus import Corpus
from searchsvc.tokens import Tokenizer
from searchsvc.vault import Vault

TERMS = Tokenizer()


class HashEmbedder:
    """Gives every text a vector drawn from its hash."""

    def __init__(self, dimension: int = 16) -> None:
        self.profile = Profile("hash", "test", "0", dimension, max_tokens=100)
        self.seen: list[Passage] = []

    def encode_query(self, text: str) -> np.ndarray:
        return self._vector(text)

    def encode_passages(self, passages: Iterable[Passage]) -> Iterator[Matrix]:
        for passage in passages:
            self.seen.append(passage)
            yield self._vector(f"{passage.context}\x00{passage.text}")[None, :]

    def _vector(self, text: str) -> np.ndarray:
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
        vector = np.random.default_rng(seed).normal(size=self.profile.dimension).astype(np.float32)
        return vector / np.linalg.norm(vector)


class World:
    """Notes in one folder, their index in another."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.notes = folder / "notes"
        self.notes.mkdir(parents=True, exist_ok=True)
        self.config = Config(data_dir=folder / "data", workers=1, **settings)  # type: ignore[arg-type]
        self.root = Root("notes", self.notes.resolve())
        self.vault = Vault(self.root, self.config)
        self.embedder = HashEmbedder()

    def write(self, path: str, text: str) -> Path:
        file = self.notes / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def index(self) -> IndexReport:
        return self.vault.update()

    def embed(self, **options: Any) -> int:
        """Return how many sections were embedded."""
        return embed_vault(self.vault, self.embedder, ModelChoice("hash"), **options).embedded

    @property
    def reader(self) -> Reader:
        return self.vault.reader

    @property
    def generation(self) -> int:
        with self.reader.pinned() as (frame, _):
            return frame.generation

    def find(self, word: str) -> set[str]:
        """Return ``path#slug`` of every live section that holds a word."""
        with self.reader.pinned() as (frame, catalog):
            return find(frame, catalog, word)

    def called(self, word: str) -> set[str]:
        """Return ``path#slug`` of every section that links call by a word."""
        with self.reader.pinned() as (frame, catalog):
            *_, term = TERMS.terms(word)
            if frame.anchors is None or (number := frame.anchors.find(term)) < 0:
                return set()
            places = frame.anchor_places[frame.anchors.of(number)[0]]
            return _addresses(frame, catalog, places[places >= 0])

    def links(self) -> dict[tuple[str, str], str]:
        """Return the destination of every link by source and target, '' for none."""
        with self.reader.pinned() as (_, catalog):
            paths = {note: row.path for note, row in catalog.notes().items()}
            return {
                (paths[note], f"{link.target}#{link.heading}".rstrip("#")): paths.get(found or 0, "")
                for _, note, link, (found, _) in catalog.links()
            }

    def weights(self) -> dict[str, dict[str, float]]:
        """Return the posting weight of every term in every live section."""
        with self.reader.pinned() as (frame, catalog):
            rows = catalog.sections(frame.table["id"][frame.live].tolist())
            notes = catalog.notes()
            out: dict[str, dict[str, float]] = {}
            for base, segment in zip(frame.bases, frame.segments, strict=False):
                for term in range(len(segment.postings.frequencies)):
                    sections, weights = segment.postings.of(term)
                    for section, weight in zip((sections + base).tolist(), weights.tolist(), strict=True):
                        if frame.live[section]:
                            row = rows[int(frame.table["id"][section])]
                            place = address(notes[row.note].path, row.section)
                            out.setdefault(segment.postings.spell(term).decode(), {})[place] = weight
            return out


def find(frame: Frame, catalog: Catalog, word: str) -> set[str]:
    """Return ``path#slug`` of every live section that holds a word."""
    *_, term = TERMS.terms(word)
    ordinals = []
    for base, segment in Corpus([frame]).segments:
        number = segment.postings.find(term)
        if number >= 0:
            ordinals.append(segment.postings.of(number)[0] + base)
    found = np.concatenate([np.empty(0, np.int64), *ordinals])
    return _addresses(frame, catalog, found[frame.live[found]])


def _addresses(frame: Frame, catalog: Catalog, ordinals: np.ndarray) -> set[str]:
    rows = catalog.sections(frame.table["id"][ordinals].tolist())
    notes = catalog.notes({row.note for row in rows.values()})
    assert len(rows) == len(ordinals), "the arrays name a section that the catalog does not have"
    return {address(notes[row.note].path, row.section) for row in rows.values()}


def address(path: str, section: Section) -> str:
    """Return ``path#slug``, or the path alone for what stands before the first inner heading."""
    return path if section.slug.startswith("_") else f"{path}#{section.slug}"


def check_consistency(frame: Frame, catalog: Catalog) -> None:
    """Assert that the arrays and the rows of a generation tell the same."""
    live = frame.table[frame.live]
    rows = catalog.connection.execute("SELECT id, note, parent, level FROM sections ORDER BY id").fetchall()
    assert sorted(live["id"].tolist()) == [row[0] for row in rows]
    notes = {row[0]: row[1] for row in rows}
    assert all(notes[int(section["id"])] == int(section["note"]) for section in live)
    assert set(notes.values()) <= set(catalog.notes())
    parents = live["parent"][live["parent"] >= 0]
    assert (frame.table["note"][parents] == live["note"][live["parent"] >= 0]).all()
    assert (frame.anchor_places >= 0).all(), "anchor text of a section that is not there"
    for identity in catalog.vector_parts():
        frame.coverage(identity)
    for segment in frame.segments:
        assert len(segment.stream_bounds) == len(segment.sections) * len(FIELDS) + 1
        assert int(segment.stream_bounds[-1]) == len(segment.stream_terms)
        assert int(segment.postings.bounds[-1]) == len(segment.postings.sections)


def start(script: str, *arguments: object) -> "subprocess.Popen[str]":
    """Run a script that lies beside this file in another process, its output in a pipe."""
    here = Path(__file__).parent
    path = os.pathsep.join([str(Path(searchsvc.__file__).parents[1]), str(here)])
    return subprocess.Popen(
        [sys.executable, "-W", "error", str(here / script), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )


def say(text: str) -> None:
    """Tell the test that started this process."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def acknowledged(output: str) -> list[dict[str, int]]:
    """Return the complete lines that a writing process has printed."""
    return [json.loads(line) for line in output.split("\n")[:-1] if line]
