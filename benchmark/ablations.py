"""The product with one part taken out, or with one channel alone: what each part is worth.

Constants and functions are replaced while the block lasts, in this process only; the product itself has no
switches for this.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmark.errors import BenchmarkError
from searchsvc.embedding import context, windows
from searchsvc.embedding.base import Passage
from searchsvc.ranking import fuse as fusing
from searchsvc.ranking.corpus import Corpus
from searchsvc.ranking.fuse import Fused
from searchsvc.ranking.lexical import LexicalScores, Terms, lexical

_RRF = 60
"""The constant of Cormack, Clarke and Buettcher, "Reciprocal Rank Fusion" (2009)."""


@dataclass(frozen=True, slots=True)
class Ablation:
    """One change of the product."""

    name: str
    replaced: tuple[tuple[str, Any], ...]
    """Dotted name of a constant or function, and what stands in for it."""
    embeds: bool = False
    """Whether vectors have to be made anew."""

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Run a block with the change."""
        with ExitStack() as stack:
            for name, value in self.replaced:
                stack.enter_context(patch(name, value))
            yield


def _without_links(corpus: Corpus, terms: Terms, **options: Any) -> LexicalScores:
    words = lexical(corpus, terms, **options)
    return replace(words, scores=words.scores - words.links, links=np.zeros_like(words.links))


def _links_alone(corpus: Corpus, terms: Terms, **options: Any) -> LexicalScores:
    words = lexical(corpus, terms, **options)
    return replace(words, scores=words.links.copy())


def _titles_alone(corpus: Corpus, terms: Terms, vector: Any = None, **options: Any) -> Fused:
    """Rank only what the question says word for word, the whole question first."""
    fused = _fuse(corpus, terms, None, **options)
    said = np.isin(fused.ordinals, list(fused.said))
    return replace(fused, ordinals=fused.ordinals[said], scores=fused.scores[said])


def _first_window(offsets: windows.Offsets, room: int, limit: int) -> list[tuple[int, int]]:
    return _cut_windows(offsets, room, 1)


def _bare_texts(passage: Passage) -> tuple[Passage, Passage, Passage]:
    return _texts_of(Passage("", passage.text, passage.heading))


_cut_windows, _texts_of, _fuse = windows.cut_windows, context.texts_of, fusing.fuse


def _reciprocal_ranks(corpus: Corpus, terms: Terms, vector: Any = None, **options: Any) -> Fused:
    """Fuse words and vectors by their ranks alone."""
    mode = options.pop("mode", "hybrid")
    if mode != "hybrid" or vector is None:
        return _fuse(corpus, terms, vector, mode=mode, **options)
    words = _fuse(corpus, terms, None, mode="lexical", **options)
    near = _fuse(corpus, terms, vector, mode="vector", **options)
    total = dict[int, float]()
    for ranking in (words, near):
        for rank, ordinal in enumerate(ranking.ordinals.tolist(), 1):
            total[ordinal] = total.get(ordinal, 0.0) + 1 / (_RRF + rank)
    ordered = sorted(total, key=lambda ordinal: (-total[ordinal], ordinal))[: fusing.POOL]
    scores = np.array([total[ordinal] for ordinal in ordered], np.float32)
    return Fused(np.array(ordered, np.int64), scores, words.lexical, vector, words.said)


def _ranking(**constants: float) -> tuple[tuple[str, Any], ...]:
    return tuple((f"searchsvc.ranking.fuse.{name}", value) for name, value in constants.items())


_LEXICAL = "searchsvc.ranking.fuse.lexical"
_NO_TITLES = _ranking(EXACT_BONUS=0.0, PHRASE_BONUS=0.0)
_NO_VECTORS = _ranking(VECTOR_WEIGHT=0.0)
_NO_KIN = _ranking(KIN_LOSS=0.0)
_NO_LEAN = (
    ("searchsvc.embedding.context.HEADING_WEIGHT", 0.0),
    ("searchsvc.embedding.context.CONTEXT_WEIGHT", 0.0),
)
ABLATIONS = {
    ablation.name: ablation
    for ablation in (
        Ablation("no links", ((_LEXICAL, _without_links),)),
        Ablation("no titles", _NO_TITLES),
        Ablation("no kin rule", _NO_KIN),
        Ablation("no vectors", _NO_VECTORS),
        Ablation("no windows", (("searchsvc.embedding.windows.cut_windows", _first_window),), embeds=True),
        Ablation(
            "no context", (*_NO_LEAN, ("searchsvc.embedding.context.texts_of", _bare_texts)), embeds=True
        ),
        Ablation("no leaning", _NO_LEAN, embeds=True),
        Ablation("reciprocal ranks", (("searchsvc.searching.fuse", _reciprocal_ranks),)),
        Ablation("links alone", ((_LEXICAL, _links_alone), *_NO_TITLES, *_NO_VECTORS, *_NO_KIN)),
        Ablation("titles alone", (("searchsvc.searching.fuse", _titles_alone), *_NO_KIN)),
    )
}


def chosen(names: Sequence[str]) -> list[Ablation]:
    """Return ablations by name, all of them for ``all``; ``BenchmarkError`` for an unknown one."""
    for name in names:
        if name not in (*ABLATIONS, "all"):
            raise BenchmarkError(f"no ablation {name!r}; there are: {', '.join(ABLATIONS)}, all")
    return [*ABLATIONS.values()] if "all" in names else [ABLATIONS[name] for name in dict.fromkeys(names)]
