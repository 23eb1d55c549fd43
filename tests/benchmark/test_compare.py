"""Rankings held against each other: differences, their intervals, and the best channel."""

import pytest

from benchmark.compare import against_best, against_figures, compare


def run(mode, scores, name="set", profile="", kind="k"):
    rows = [
        {"id": str(n), "kind": kind, "ndcg": score, "recall": score, "document_ndcg": score}
        for n, score in enumerate(scores)
    ]
    return {"set": name, "mode": mode, "profile": profile, "queries": rows}


def changes(*pairs):
    """Compare sets, each given as its old and new scores."""
    new = [run("hybrid", after, f"s{n}") for n, (_, after) in enumerate(pairs)]
    old = [run("hybrid", before, f"s{n}") for n, (before, _) in enumerate(pairs)]
    return [change.differences["ndcg"] for change in compare(new, old)]


def test_one_query_has_no_interval_and_no_verdict():
    for found in changes(([0.0], [1.0])):
        assert (found.mean, found.low, found.high) == (1, None, None)
        assert (found.interval, found.verdict) == ("–", "")


def test_queries_that_do_not_differ_have_no_interval():
    assert changes(([0.5] * 20, [0.5] * 20))[0].interval == "–"


def test_an_interval_of_many_queries_leaves_out_zero():
    found = changes(([0.1] * 40, [0.2, 0.3] * 20))[0]
    assert found.mean == pytest.approx(0.15)
    assert found.low < found.mean < found.high
    assert found.verdict == "better"


def test_sets_are_drawn_apart():
    """Were they drawn alike, the mean of two sets would vary as much as one of them."""
    half = ([0.0] * 50, [0.0] * 25 + [1.0] * 25)
    first, second, mean = changes(half, half)
    width, of_mean = first.high - first.low, mean.high - mean.low
    assert second.high - second.low == pytest.approx(width, abs=0.02)
    assert of_mean / width == pytest.approx(2**-0.5, abs=0.06)


def test_a_set_of_one_query_takes_the_interval_from_the_mean_of_sets():
    many, one, mean = changes(([0.0] * 9, [0.1 * n for n in range(9)]), ([0.0], [1.0]))
    assert many.low is not None
    assert one.low is None
    assert (mean.mean, mean.low) == (pytest.approx(0.7), None)


def test_the_best_channel_is_that_of_the_kind_and_of_the_same_model():
    fused = run("hybrid", [0.6, 0.8, 0.7, 0.5], profile="m")
    channels = [
        run("lexical", [0.1, 0.2, 0.3, 0.4]),
        run("vector", [0.5, 0.9, 0.7, 0.5], profile="m"),
        run("vector", [1.0, 1.0, 1.0, 1.0], profile="another"),
        run("lexical", [1.0, 1.0, 1.0, 1.0], name="another"),
    ]
    (lead,) = against_best([fused, *channels], channels)
    assert (lead.other, lead.kind, lead.queries) == ("vector", "k", 4)
    assert lead.ndcg == pytest.approx(0.65)
    assert lead.difference.mean == pytest.approx(0.0)
    assert lead.difference.low == pytest.approx(-0.075, abs=0.03)


def test_a_known_figure_is_held_against_the_kind_it_is_of():
    fused = run("hybrid", [0.6, 0.8], profile="m")
    (lead,) = against_figures([fused], {"set": {"k": 0.5, "other": 0.1}, "other": {"k": 1}}, "recipe")
    assert (lead.other, lead.ndcg, lead.difference.mean) == ("recipe", 0.5, pytest.approx(0.2))
