"""Estimates say when there is no interval, and what is no mean is made anew in each resample."""

import numpy as np
import pytest

from benchmark.compare import against_best, against_figures, compare
from benchmark.study.intervals import FEW_CLUSTERS, estimate, estimate_of
from benchmark.study.scoring_answers import precision_recall_f1


def test_one_document_gives_no_interval_and_few_a_rough_one():
    one = estimate([0.0, 1.0, 1.0], ["a", "a", "a"])
    assert (one.low, one.high, one.detectable) == (None, None, None)
    assert one.text == "+0.667 [no interval: one document]"
    few = estimate([0.0, 1.0, 1.0], ["a", "b", "c"])
    assert few.low is not None
    assert few.text.endswith("(rough: 3 documents)")
    many = estimate([0.0, 1.0] * FEW_CLUSTERS, [str(n) for n in range(2 * FEW_CLUSTERS)])
    assert many.note() == ""


def test_nothing_and_what_does_not_vary_have_no_interval():
    assert estimate([], []).text == "–"
    assert estimate([0.2] * 9, list("abcdefghi")).text == "+0.200 [no interval: all alike]"


def test_an_f1_is_made_anew_of_the_counts_of_each_resample():
    rng = np.random.default_rng(0)
    answerable = rng.random(60) < 0.8
    claimed = rng.random(60) < 0.7
    earned = (rng.random(60) < 0.5) & answerable & claimed
    columns = np.column_stack((earned, claimed, answerable)).astype(float)
    clusters = [str(n // 4) for n in range(60)]
    found = estimate_of(columns, clusters, lambda sums: precision_recall_f1(sums)[..., 2], resamples=500)
    drawn = np.random.default_rng(1).integers(0, 15, (500, 15))
    expected = []
    for chosen in drawn:
        rows = np.concatenate([columns[4 * c : 4 * c + 4] for c in chosen])
        precision, recall = rows[:, 0].sum() / rows[:, 1].sum(), rows[:, 0].sum() / rows[:, 2].sum()
        expected.append(2 * precision * recall / (precision + recall) if precision else 0.0)
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(expected, (2.5, 97.5))))
    assert found.low < found.mean < found.high


def run(mode, scores, profile="m"):
    queries = [
        {"id": str(n), "kind": "k", "ndcg": s, "recall": s, "document_ndcg": s} for n, s in enumerate(scores)
    ]
    return {"set": "s", "mode": mode, "profile": profile, "queries": queries}


def test_the_fused_ranking_is_held_against_its_best_channel():
    fused = run("hybrid", [0.5, 0.7, 0.9, 0.6])
    channels = [run("lexical", [0.6, 0.6, 0.9, 0.6], ""), run("vector", [0.1, 0.9, 0.2, 0.2])]
    (lead,) = against_best([fused, *channels], channels)
    assert (lead.other, lead.ndcg, lead.queries) == ("lexical", pytest.approx(0.675), 4)
    assert lead.difference.mean == pytest.approx(0)
    assert lead.difference.low < 0 < lead.difference.high
    (known,) = against_figures([fused], {"s": {"k": 0.5}, "other": {"k": 0.1}}, "recipe")
    assert known.difference.mean == pytest.approx(0.175)


def test_a_single_query_has_a_difference_but_no_interval():
    change = compare([run("hybrid", [0.5])], [run("hybrid", [0.3])])[0].differences["ndcg"]
    assert (change.mean, change.low, change.interval, change.verdict) == (pytest.approx(0.2), None, "–", "")
