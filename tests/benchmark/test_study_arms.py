"""What is measured of one attempt, and records that are not what they should be."""

import pytest

from benchmark.errors import BenchmarkError
from benchmark.study.attempts import measure
from benchmark.study.questions import Evidence, Question
from benchmark.study.record import Key, open_recorder, read_records, read_run

LINES = Evidence("deep/a.md", 10, 13)
PAGES = Evidence("b/index.md", pages=(3,))
ON_PAGE = Evidence("b/index.md", 20, 29, (4,))


def measured(evidence, citations=(), shown=(), prices=None, result="12345"):
    question = Question("q", "", "?", "x", "Str", evidence=tuple(evidence))
    events = [
        {"event": "start"},
        {"event": "request"},
        {"event": "reply", "usage": [100, 20, 40], "is_estimated": False},
        {"event": "tool", "name": "grep", "result": result, "is_error": False, "shown": list(shown)},
        {"event": "end", "outcome": "answered", "answer": "x", "citations": list(citations), "seconds": 1.5},
    ]
    return measure(question, Key("q", "files", 0), events, {"md_find"}, prices)


def cite(path, first=0, last=0, page=0):
    return {"path": path, "page": page} if page else {"path": path, "line_start": first, "line_end": last}


@pytest.mark.parametrize(
    ("evidence", "shown", "citations", "recall", "cited", "precision"),
    [
        ([LINES], [], [], 0, 0, None),
        ([LINES], [["deep/a.md", 1, 11]], [], 0.5, 0, None),
        ([LINES], [["deep/a.md", 1, 10], ["deep/a.md", 10, 11]], [cite("deep/a.md", 13, 13)], 0.5, 0.25, 1),
        ([LINES], [["other.md", 1, 99]], [cite("deep/a.md", 1, 5)], 0, 0, 0),
        ([LINES], [], [cite("./deep/a.md#part", 10, 99), cite("other.md", 10, 13)], 0, 1, 0.5),
        ([LINES], [], [cite("a", 10, 13)], 0, 1, 1),
        ([LINES], [], [cite("deep/a.md", page=1)], 0, 0, 0),
        ([PAGES], [["b/index.md", 1, 99]], [], None, 0, None),
        ([PAGES], [], [cite("b/index.md", page=3)], None, 1, 1),
        ([ON_PAGE], [], [cite("b/index.md", page=4)], 0, 1, 1),
        ([ON_PAGE], [], [cite("b/index.md", page=5), cite("b/index.md", 29, 40)], 0, 0.1, 0.5),
        ([LINES, ON_PAGE], [["deep/a.md", 10, 13]], [], 4 / 14, 0, None),
        ([], [["deep/a.md", 10, 13]], [cite("deep/a.md", 1, 1)], None, None, None),
    ],
)
def test_evidence_and_citations(evidence, shown, citations, recall, cited, precision):
    measures = measured(evidence, citations, shown).measures
    found = [measures[name] for name in ("evidence_recall", "evidence_cited", "citation_precision")]
    assert found == [value if value is None else pytest.approx(value) for value in (recall, cited, precision)]


@pytest.mark.parametrize(
    ("result", "recall"),
    [
        ("=== deep/a.md#x\n… the old\n heron sleeps …", 1),
        ("=== deep/b.md#x\nthe old heron sleeps", 0),
        ("=== deep/a.md#x\nthe old", 0),
    ],
)
def test_a_part_of_a_line_that_holds_the_quote_counts(result, recall):
    evidence = [Evidence("deep/a.md", 10, 10, quote="the old  heron sleeps")]
    assert measured(evidence, result=result).measures["evidence_recall"] == recall


def test_tokens_characters_and_cost():
    row = measured([LINES], [cite("a", 1, 200), cite("a", page=2)], prices={"in": 10, "out": 20})
    assert row.cited_lines == 200
    assert row.measures["tokens"] == 120
    assert row.measures["tool_characters"] == 5
    assert row.measures["cost"] == pytest.approx((100 * 10 + 20 * 20) / 1e6)
    assert measured([], prices={"in": 10, "out": 0, "cached": 1}).measures["cost"] == pytest.approx(640 / 1e6)
    assert measured([]).measures["cost"] is None


def test_a_record_is_for_one_process_and_a_broken_line_is_named(tmp_path):
    with open_recorder(tmp_path, "a-secret-key") as recorder:
        with pytest.raises(BenchmarkError, match="another process"), open_recorder(tmp_path, ""):
            pass
        log = recorder.log(Key("q", "files", 0))
        log("start", text="a-secret-key is not kept, \ud800 is")
        log("end", outcome="turns")
    assert len(read_records(tmp_path).attempts[Key("q", "files", 0)]) == 2
    file = tmp_path / "records.jsonl"
    assert b"a-secret" not in file.read_bytes()
    file.write_bytes(file.read_bytes() + b"[]\n")
    with pytest.raises(BenchmarkError, match="line 3: not an event"):
        read_records(tmp_path)
    (tmp_path / "run.json").write_text('{"format": 99}')
    with pytest.raises(BenchmarkError, match="not of format 1"):
        read_run(tmp_path)
