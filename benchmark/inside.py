"""The one place where the benchmark reaches behind the public API: stages by themselves, made-up vectors.

Vectors are random unit vectors around 200 random centres. They say nothing of quality, but a scan reads
and multiplies them as it does real ones.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmark.core import make_config
from benchmark.timing import cpu_of
from searchsvc.embedding.base import Matrix, ModelChoice, Passage, Profile
from searchsvc.embedding.slot import ModelSlot
from searchsvc.index.build import Writer
from searchsvc.index.catalog import Catalog
from searchsvc.index.postings import build_postings, merge_streams
from searchsvc.index.profiles import ProfileCard
from searchsvc.index.records import FIELDS, Batch, BatchBuilder
from searchsvc.index.segments import lengths_of, mean_lengths
from searchsvc.index.vocabulary import Vocabulary
from searchsvc.indexing import make_tokenizer
from searchsvc.items import Mode, Note, Ranking
from searchsvc.models import Models
from searchsvc.ranking import fuse
from searchsvc.ranking.corpus import Corpus
from searchsvc.reading.note import read_note
from searchsvc.searching import Request, Searcher
from searchsvc.service import Service
from searchsvc.tokens import Tokenizer

DIMENSION = 384
_CENTRES = 200
_PARTS = 4
"""Files that vectors are spread over, as after some runs of embedding."""
_AHEAD = 1_000
"""How many vectors of questions are drawn at once."""
_PROFILE = Profile("random", "static", "0", DIMENSION, 256, languages=("*",))

Floats = NDArray[np.float32]


class RandomModel:
    """Makes the same unit vectors in the same order in every run. Implements Embedder."""

    def __init__(self, seed: int) -> None:
        self.profile = _PROFILE
        self._random = np.random.default_rng(seed)
        centres = np.random.default_rng(0).standard_normal((_CENTRES, DIMENSION))
        self._centres = centres.astype(np.float32)
        self._ahead: list[Floats] = []

    def vectors(self, count: int) -> Floats:
        """Return unit vectors, shape ``(count, DIMENSION)``."""
        rows = self._centres[self._random.integers(0, _CENTRES, count)]
        rows = rows + self._random.standard_normal(rows.shape, dtype=np.float32)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)

    def encode_query(self, text: str) -> Floats:
        """Return the next vector, whatever the text; drawn ahead, since what a model takes is not timed."""
        if not self._ahead:
            self._ahead = [np.asarray(self.vectors(1)[0]) for _ in range(_AHEAD)][::-1]
        return self._ahead.pop()

    def encode_passages(self, passages: Iterable[Passage]) -> Iterator[Matrix]:
        """Yield a vector a passage, whatever its text."""
        return (self.vectors(1) for _ in passages)


@dataclass(frozen=True, slots=True)
class RankingCall:
    """One question, ready to be ranked."""

    terms: list[str]
    """What is looked up in the postings."""
    words: str
    """The same as written, for engines with a tokeniser of their own."""
    rank: Callable[[], Any]


@dataclass(slots=True)
class Stages:
    """The stages of one index, each to be called by itself."""

    service: Service
    corpus: Corpus
    catalog: Catalog
    searcher: Searcher

    def ranking_of(self, query: str, mode: Mode) -> "RankingCall":
        """Return the ranking of a question as a call of its own: terms and cosines in, ordinals out."""
        calls: list[tuple[Any, ...]] = []

        def record(*args: Any, **named: Any) -> Any:
            calls.append((args, named))
            return fuse.fuse(*args, **named)

        with patch("searchsvc.searching.fuse", record):
            self.ask(query, mode)
        args, named = calls[0]
        terms = args[1].counted
        pairs = make_tokenizer(self.service.config.stemming).query_terms(query)
        words = " ".join(dict.fromkeys(word for term, word in pairs if term in terms))
        return RankingCall(list(terms), words, partial(fuse.fuse, *args, **named))

    def cosines(self, query: Floats) -> Floats:
        """Scan the vectors of all sections."""
        return self.corpus.cosines(_PROFILE.identity, query)

    def ask(self, query: str, mode: Mode) -> Ranking:
        """Answer with hits, the query's vector being a random one at no cost."""
        return self.searcher.search(Request(query, mode=mode), wait=True)

    def tokens(self) -> list[list[str]]:
        """Return the terms of every section, all fields together, as the index holds them."""
        found: list[list[str]] = []
        for _, segment in self.corpus.segments:
            stream = segment.stream()
            step = (len(stream.bounds) - 1) // max(len(segment.sections), 1)
            starts = stream.bounds[::step].tolist()
            words = [stream.vocabulary[term] for term in stream.terms.tolist()]
            found += [words[a:b] for a, b in zip(starts, starts[1:], strict=False)]
        return found

    def texts(self) -> list[str]:
        """Return heading path and text of every section."""
        ids = self.corpus.column("id").tolist()
        rows = self.catalog.sections(ids)
        return [" ".join((*rows[i].section.heading_path, rows[i].text)) for i in ids]


class RandomModels(Models):
    """Goes by a model that draws its vectors."""

    _slot_of_random = ModelSlot(ModelChoice("random"), lambda: RandomModel(2))

    def slots(self, active: Sequence[str] | None = None) -> list[ModelSlot]:
        """Return the one there is."""
        return [self._slot_of_random]


def add_random_vectors(service: Service) -> int:
    """Give every section that has text a vector; return how many vectors that makes."""
    vault, model = service.vaults[0], RandomModel(1)
    with Writer(vault.layout, make_tokenizer(service.config.stemming)) as writer:
        with vault.reader.pinned() as (frame, _):
            keys = frame.table["key"][frame.missing(_PROFILE.identity)].tolist()
        card = ProfileCard(_PROFILE.identity, asdict(_PROFILE), {}, model.encode_query(""))
        for part in range(_PARTS):
            mine = keys[part::_PARTS]
            matrices = list(model.vectors(len(mine))[:, None, :])
            if mine:
                writer.vectors.add(card, dict(zip(mine, matrices, strict=True)))
    return len(keys)


def open_stages(corpus: Path, data_dir: Path) -> Stages:
    """Open an index that is ready, with its random vectors if it has them; no real model is loaded."""
    service = Service(make_config(corpus, data_dir, "none"))
    models = RandomModels(service.config, service.vaults)
    searcher = Searcher(
        service.vaults, make_tokenizer(service.config.stemming), models, service.documents.library.address
    )
    with searcher.pinned() as pinned:
        return Stages(service, pinned.corpus, pinned.catalogs[0], searcher)


@dataclass(frozen=True, slots=True)
class StageCosts:
    """CPU seconds of the stages of indexing, each by itself over the same notes in one process."""

    sections: int
    parse: float
    """Bytes of a file to sections, links and metadata."""
    tokenise: float
    """Own lines of all sections to terms."""
    records: float
    """Notes to the rows and terms that are stored, tokenising included."""
    postings: float
    """The terms of all sections, merged and inverted."""


def time_stages(corpus: Path, step: int, *, stemming: bool) -> StageCosts:
    """Time the stages over every ``step``-th note of a corpus, in order of paths."""
    files = sorted(corpus.rglob("*.md"))[::step]
    data = [(path.relative_to(corpus).as_posix(), path.read_bytes()) for path in files]
    notes, parse = cpu_of(lambda: [read_note(*file) for file in data])
    texts = [note.text(part.line_start, part.line_end) for note in notes for part in note.sections]
    tokenizer = Tokenizer(stemming=stemming)
    _, tokenise = cpu_of(lambda: [tokenizer.terms(text) for text in texts])
    batch, records = cpu_of(lambda: _records(notes, Tokenizer(stemming=stemming)))
    averages = mean_lengths([lengths_of(batch.stream)])
    fields = tuple(FIELDS.values())
    _, postings = cpu_of(lambda: build_postings(merge_streams([batch.stream]), fields, averages))
    return StageCosts(len(texts), parse, tokenise, records, postings)


def _records(notes: Sequence[Note], tokenizer: Tokenizer) -> Batch:
    builder = BatchBuilder(Vocabulary(tokenizer))
    for note in notes:
        builder.add(note, signature="", digest="", modified=0.0)
    return builder.finish()
