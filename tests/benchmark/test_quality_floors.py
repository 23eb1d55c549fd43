"""The quality command on our own set, with the real default model: no kind falls much below what it reached.

Floors are .05 below the figures of 2026-12-02, so that a change of the model's arithmetic on another
processor passes and a fault of ranking does not.
"""

import json

import pytest

from benchmark import quality
from benchmark.sets import VAULT
from benchmark.tables import mean

FLOORS = {
    "cross-document": 0.59,
    "image-caption": 0.87,
    "literal": 0.89,
    "multilingual": 0.34,
    "paraphrase": 0.42,
    "table": 0.85,
    "wikilink": 0.62,
    "all": 0.66,
}
"""Section nDCG@10 of hybrid search by kind."""


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    file = tmp_path_factory.mktemp("quality") / "found.json"
    modes = [argument for mode in ("lexical", "vector", "hybrid") for argument in ("--mode", mode)]
    assert quality.main(["--data", str(VAULT), *modes, "--json", str(file)]) == 0
    return json.loads(file.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def hybrid(document):
    return next(run for run in document["runs"] if run["mode"] == "hybrid")


@pytest.mark.parametrize("kind", FLOORS)
def test_no_kind_falls_below_its_floor(hybrid, kind):
    scores = [row["ndcg"] for row in hybrid["queries"] if kind in (row["kind"], "all")]
    assert len(scores) >= 15
    assert mean(scores) >= FLOORS[kind]


def test_the_fused_ranking_stands_above_each_channel(document):
    (lead,) = (lead for lead in document["leads"]["best channel"] if lead["kind"] == "all")
    assert lead["difference"]["mean"] > 0


def test_measures_agree_with_each_other(hybrid):
    for row in hybrid["queries"]:
        assert row["recall5"] <= row["recall"]
        assert row["success"] <= row["mrr"] <= 1
