"""Sections that hold, word after word, what a question puts in quotation marks."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from searchsvc.index.records import FIELDS
from searchsvc.ranking.corpus import Corpus
from searchsvc.tokens import is_unspaced

Ordinals = NDArray[np.int64]

_QUOTED = re.compile(
    '"([^"\\n]{1,300})"|“([^“”\\n]{1,300})”|„([^„“”\\n]{1,300})[“”]|«([^«»\\n]{1,300})»|「([^「」\\n]{1,300})」'
)
_MAX_PHRASES = 5


def quoted(question: str) -> list[str]:
    """Return the texts of several words in quotation marks; apostrophes are none."""
    texts = ["".join(found.groups("")) for found in _QUOTED.finditer(question)]
    return [text for text in texts if len(text.split()) > 1 or any(map(is_unspaced, text))][:_MAX_PHRASES]


def phrases_held(corpus: Corpus, phrases: Sequence[Sequence[str]], candidates: Ordinals) -> NDArray[np.int64]:
    """Return how many of the phrases each candidate holds, shape ``(len(candidates),)``.

    A phrase is its terms in order; stop words are passed over on both sides.
    """
    counts = np.zeros(len(candidates), np.int64)
    for base, segment in corpus.segments:
        known = [[segment.postings.find(term) for term in phrase] for phrase in phrases]
        wanted = [np.array(ids, np.int32) for ids in known if min(ids) >= 0]
        here = (candidates >= base) & (candidates < base + len(segment.sections))
        for place in np.flatnonzero(here).tolist() if wanted else ():
            first = int(candidates[place] - base) * len(FIELDS)
            start, stop = segment.stream_bounds[[first, first + len(FIELDS)]].tolist()
            counts[place] = sum(_holds(segment.stream_terms[start:stop], ids) for ids in wanted)
    return counts


def _holds(terms: NDArray[np.int32], ids: NDArray[np.int32]) -> bool:
    """Tell whether ``ids`` is a run of ``terms``."""
    starts = np.flatnonzero(terms[: len(terms) - len(ids) + 1] == ids[0])
    for offset in range(1, len(ids)):
        starts = starts[terms[starts + offset] == ids[offset]]
    return bool(len(starts))
