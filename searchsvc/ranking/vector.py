"""Cosines -> how far each section stands above the background.

A cosine alone means nothing: models differ in range, and every question has its own background. So it
is measured in standard deviations above the mean of the corpus, and divided by what chance alone would
give the best of N: about ``sqrt(2 ln N)`` standard deviations (the expected maximum of N normal draws).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from searchsvc.tokens import is_unspaced

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class VectorScores:
    """What a vector profile says of every section."""

    cosines: Floats
    """Shape ``(sections,)``; ``-inf`` where there is no vector."""
    standing: Floats
    """0 for the background or below, about 1 for what chance would give the best, more for real hits."""
    margin: float
    """Of the best section above the mean, in standard deviations."""
    share: float
    """How much the model understands of the question, 0 to 1."""


def vector_scores(cosines: Floats, share: float) -> VectorScores:
    """Put cosines on the scale of the background; ``share`` is passed through."""
    standing = np.zeros_like(cosines)
    covered = cosines > -np.inf
    known = cosines[covered]
    if len(known) < 2:
        return VectorScores(cosines, np.where(covered, np.float32(1), standing), 0.0, share)
    z = (known - known.mean()) / (known.std() + 1e-9)
    standing[covered] = np.maximum(z, 0) / math.sqrt(2 * math.log(max(len(known), 3)))
    return VectorScores(cosines, standing, float(z.max()), share)


def understood_share(terms: list[str], languages: tuple[str, ...]) -> float:
    """Return the share of a question's terms that are in a script the model knows."""
    if not terms or {"*", "zh", "ja", "ko"} & set(languages):
        return 1.0
    return 1 - sum(map(is_unspaced, terms)) / len(terms)
