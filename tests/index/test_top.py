"""The best of many scores, against a plain sort."""

import math

import numpy as np
import pytest

from searchsvc.index.top import best_places


@pytest.mark.parametrize("size", [0, 1, 50, 800, 5_000])
@pytest.mark.parametrize("levels", [1, 3, 1_000_000])
@pytest.mark.parametrize("above", [-math.inf, 0.0, 0.5])
def test_the_best_are_those_that_a_sort_puts_first(size, levels, above):
    rng = np.random.default_rng(size + levels)
    scores = (rng.integers(0, levels, size) / levels).astype(np.float32)
    scores[rng.random(size) < 0.3] = -np.inf
    wanted = [place for place in np.argsort(-scores, kind="stable") if scores[place] > above][:12]
    assert sorted(best_places(scores, 12, above).tolist()) == sorted(wanted)
