"""Cosines -> how far each section stands above the background.

A cosine alone means nothing: models differ in range, and every question has its own background. So it
is measured in standard deviations above the mean of the corpus, and divided by what chance alone would
give the best of N: about ``sqrt(2 ln N)`` standard deviations (the expected maximum of N normal draws).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from searchsvc.index.calibration import Calibration
from searchsvc.languages import FUNCTION_WORDS, foreign_share, language_of_question

Floats = NDArray[np.float32]

_PRIOR_COUNT = 10
"""How many sections the model's own background counts as."""


@dataclass(frozen=True, slots=True)
class VectorScores:
    """What a vector profile says of every section."""

    cosines: Floats
    """Shape ``(sections,)``; ``-inf`` where there is no vector."""
    standing: Floats
    """0 for the background or below, about 1 for what chance would give the best, more for real hits."""
    relevance: float | None
    """Of the best section: 0 what foreign questions get, 1 what near neighbours get; none if not measured."""
    trust: float
    """How much these vectors count, see ``trust_in``."""


def vector_scores(cosines: Floats, trust: float, calibrations: Sequence[Calibration] = ()) -> VectorScores:
    """Put cosines on the scale of the background.

    ``calibrations`` are those of the profile, one a root; in a small corpus they steady the background.
    """
    covered = cosines > -np.inf
    known = cosines if covered.all() else cosines[covered]
    if not len(known):
        return VectorScores(cosines, np.zeros_like(cosines), None, trust)
    count, mean, variance = len(known), float(known.mean()), float(known.var())
    sound = [calibration for calibration in calibrations if calibration.is_sound]
    if sound:
        prior = sound[0]
        mean = (count * mean + _PRIOR_COUNT * prior.mean) / (count + _PRIOR_COUNT)
        variance = (count * variance + _PRIOR_COUNT * prior.deviation**2) / (count + _PRIOR_COUNT)
    scale = np.float32((math.sqrt(variance) + 1e-9) * math.sqrt(2 * math.log(max(count, 3))))
    standing = np.maximum((cosines - np.float32(mean)) / scale, np.float32(0))
    best = float(known.max())
    relevance = max((calibration.relevance(best) for calibration in sound), default=None)
    return VectorScores(cosines, standing, relevance, trust)


def trust_in(query: str, languages: Sequence[str], share_of: Callable[[str], float]) -> float:
    """Return how much the vectors of a model count for a question: 0 not at all, 1 as usual, up to 2.

    A model says nothing of languages that it does not read. One of many languages counts the more, the
    less of the corpus is in the question's language (``share_of`` a language code): there, words cannot
    match. A question that is in a model's language but for some words in another script counts in part.
    """
    language = language_of_question(query)
    reads_all, reads_it = "*" in languages, language in languages
    if language and not (reads_all or reads_it) and (language in FUNCTION_WORDS or len(languages) > 1):
        return 0.0
    if reads_all or len(languages) > 1:
        return 2 - (share_of(language) if language else 1.0)
    is_latin = not language or language in FUNCTION_WORDS
    return 1.0 if reads_it and not is_latin else 1 - foreign_share(query)
