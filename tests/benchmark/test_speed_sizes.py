"""The sizes of a speed run, what is left out at the largest, and the growth curves that come of it."""

import json

import pytest

from benchmark import peers, processes, speed
from benchmark.errors import BenchmarkError
from benchmark.report import _timings
from benchmark.sets import VAULT
from benchmark.speed import MILLION, main, sizes_of

SMALL, LARGE = 40, 90


def test_a_million_needs_its_own_option():
    assert sizes_of([10, 5, 5], million=False) == [5, 10]
    assert sizes_of([10], million=True) == [10, MILLION]
    with pytest.raises(BenchmarkError, match="give --million too"):
        sizes_of([MILLION], million=False)


def test_help_says_what_a_million_takes(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    assert "--million" in shown
    for word in ("temporary folder", "memory", "hour", "rank_bm25 is\nleft out"):
        assert word in shown


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A run in which 90 sections stand for a million, and 40 are the most that rank_bm25 may have."""
    out = tmp_path_factory.mktemp("speed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "_REPEATS", 1)
        patch.setattr(speed, "MILLION", LARGE)
        patch.setattr(speed, "QUESTIONS", 8)
        patch.setattr(speed, "_EMBEDDED", 3)
        patch.setattr(peers, "MOST_FOR_BM25", SMALL)
        given = ["--sections", str(SMALL), "--million", "--source", str(VAULT / "notes")]
        assert main([*given, "--json", str(out / "speed.json"), "--out", str(out / "page")]) == 0
    return json.loads((out / "speed.json").read_text()), out / "page"


def rows_of(size):
    return {row["name"]: row for table in ("words", "vectors", "both") for row in size[table]}


def test_both_sizes_are_measured(report):
    assert [size["wanted"] for size in report[0]["sizes"]] == [SMALL, LARGE]


def test_an_engine_that_is_left_out_stands_in_the_table_with_the_reason(report):
    pytest.importorskip("rank_bm25", reason="compares with the package rank-bm25")
    small, large = map(rows_of, report[0]["sizes"])
    assert small["rank_bm25, same tokens"]["p50"] > 0
    assert small[peers.COMBINATION]["p50"] > 0
    for name in (peers.BM25, peers.COMBINATION):
        assert large[name]["p50"] is None
        assert "sections" in large[name]["skipped"]
    assert "| rank_bm25 | left out: more than" in _timings(report[0]["sizes"][1]["words"])


def test_an_engine_that_is_not_installed_stands_there_too():
    def missing():
        raise ImportError("No module named 'engine'")

    (row,) = peers._installed("engine", missing)
    assert (row.p50, row.skipped) == (None, "No module named 'engine'")


def test_stages_of_indexing_are_told_apart(report):
    for size in report[0]["sizes"]:
        stages = size["stages"]
        assert stages["sections"] == size["sections"]
        assert all(stages[name] > 0 for name in ("parse", "tokenise", "records", "postings"))
        assert size["vectors_storing_cpu"] > 0
    assert report[0]["vectors"]["cpu"] > 0


def test_wall_time_is_reported_beside_cpu_time(report):
    for size in report[0]["sizes"]:
        for row in rows_of(size).values():
            assert row["p50"] is None or 0 < row["wall_p50"] <= row["wall_p95"]


def test_the_page_has_the_growth_curves(report):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    page = (report[1] / "report.html").read_text()
    assert "<svg" in page
    assert "left out: more than" in page
    assert (report[1] / "latency.png").stat().st_size > 10_000
