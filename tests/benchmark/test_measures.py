"""The benchmark's measures are those of a library that the field uses."""

import random

import pytest

from benchmark.scoring import score

ir_measures = pytest.importorskip("ir_measures", reason="compares with the package ir-measures")
from ir_measures import RR, R, Success, nDCG  # noqa: E402

MEASURES = {"ndcg": nDCG @ 10, "recall5": R @ 5, "recall": R @ 10, "mrr": RR @ 10, "success": Success @ 1}


def sections(count):
    return [{"path": f"{n}.md", "line_start": 1, "line_end": 10} for n in range(count)]


@pytest.mark.parametrize("seed", range(200))
def test_a_ranking_of_sections_scores_as_a_ranking_of_documents_does(seed):
    draw = random.Random(seed)
    pool = sections(30)
    relevant = draw.sample(pool, draw.randint(1, 14))
    results = draw.sample(pool, draw.randint(0, 20))
    ours = score({"relevant": relevant}, results)
    judged = [ir_measures.Qrel("q", entry["path"], 1) for entry in relevant]
    found = [ir_measures.ScoredDoc("q", hit["path"], -rank) for rank, hit in enumerate(results)]
    theirs = ir_measures.calc_aggregate(MEASURES.values(), judged, found)
    for name, measure in MEASURES.items():
        assert getattr(ours, name) == pytest.approx(theirs[measure], abs=1e-9), name
