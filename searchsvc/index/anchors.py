"""Text of incoming links -> postings of the sections they lead to.

Kept apart from the segments: when one note changes, what others are called by it changes too.
"""

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from searchsvc.index.arrays import read_array
from searchsvc.index.postings import Postings, Stream, build_postings, field_lengths, merge_streams
from searchsvc.index.records import ANCHOR
from searchsvc.index.segments import open_postings, write_postings
from searchsvc.tokens import STOP_WORDS, Tokenizer


def write_anchors(parent: Path, texts: Iterable[tuple[int, str]], tokenizer: Tokenizer) -> str:
    """Write the postings of ``(section id, link text)`` pairs, sorted by section; return their name."""
    ids: dict[str, int] = {}
    terms: list[int] = []
    bounds, targets = [0], []
    for section, links in groupby(texts, key=lambda pair: pair[0]):
        for _, text in links:
            words = (term for term in tokenizer.terms(text) if term not in STOP_WORDS)
            terms += [ids.setdefault(term, len(ids)) for term in words]
        targets.append(section)
        bounds.append(len(terms))
    stream = merge_streams([Stream(list(ids), np.array(terms, np.int32), np.array(bounds, np.int64))])
    lengths = field_lengths(stream.bounds, 1)
    average = np.array([lengths[lengths > 0].mean() if lengths.any() else 0.0])
    postings = build_postings(stream, (ANCHOR,), average)
    return write_postings(parent, postings, targets=np.array(targets, np.int64))


def open_anchors(folder: Path) -> tuple[Postings, NDArray[np.int64]]:
    """Open anchor postings and the ids of the sections that their ordinals stand for."""
    return open_postings(folder), np.asarray(read_array(folder, "targets"))
