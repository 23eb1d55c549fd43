"""What taking a part out of the ranking changes, and that nothing of it is left behind."""

import json

import pytest

from benchmark.ablations import ABLATIONS, chosen
from benchmark.errors import BenchmarkError
from benchmark.quality import ablated, main
from benchmark.tokens import measure, pooled
from searchsvc.ranking import fuse, lexical


@pytest.fixture
def source(tmp_path):
    corpus = tmp_path / "set" / "corpus"
    corpus.mkdir(parents=True)
    text = "filler " * 400
    (corpus / "a.md").write_text(
        f"# Owls\n\n## Hunting at night\n\nOwls hunt. {text}\n\n## Nests\n\nIn barns.\n"
    )
    (corpus / "b.md").write_text(f"# Index\n\nSee [the silent flyers](a.md#nests) there. {text}\n")
    nests, hunting = {"line_start": 7, "line_end": 9}, {"line_start": 3, "line_end": 6}
    queries = [
        {"id": "1", "query": "silent flyers", "kind": "k", "relevant": [{"path": "a.md", **nests}]},
        {"id": "2", "query": "hunting at night", "kind": "k", "relevant": [{"path": "a.md", **hunting}]},
    ]
    (tmp_path / "set" / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    return tmp_path / "set"


def run(source, name):
    (found,) = ablated(source, [ABLATIONS[name]], "none", 10)
    return {row["id"]: row["ndcg"] for row in found["queries"]}


def test_without_links_what_only_they_say_is_not_found(source):
    assert run(source, "no titles")["1"] > 0
    assert run(source, "no links")["1"] == 0
    assert run(source, "links alone")["1"] == 1


def test_titles_alone_find_what_is_said_word_for_word(source):
    assert run(source, "titles alone") == {"1": 0, "2": 1}


@pytest.mark.parametrize("name", ABLATIONS)
def test_nothing_of_an_ablation_stays(name):
    before = fuse.VECTOR_WEIGHT, fuse.EXACT_BONUS, fuse.KIN_LOSS, fuse.lexical
    with ABLATIONS[name].applied():
        pass
    assert (fuse.VECTOR_WEIGHT, fuse.EXACT_BONUS, fuse.KIN_LOSS, fuse.lexical) == before
    assert fuse.lexical is lexical.lexical


def test_unknown_ones_are_refused_and_all_are_all():
    assert chosen(["all"]) == [*ABLATIONS.values()]
    with pytest.raises(BenchmarkError, match="no ablation 'none'"):
        chosen(["none"])


def test_quality_prints_the_differences(source, capsys):
    code = main(["--data", str(source), "--mode", "hybrid", "--profile", "none", "--ablation", "no links"])
    assert code == 0
    assert "## no links, against hybrid none" in capsys.readouterr().out


def test_tokens_are_counted_by_note_and_by_question(source):
    costs = list(measure(source, "none"))
    by_tool = {cost.tool: cost for cost in costs}
    assert by_tool["md_tree"].calls == 2
    assert 0.5 < by_tool["md_tree"].saves < 1
    asked = by_tool["semantic_search, 1000 tokens"]
    assert (asked.calls, asked.holds) == (2, 1.0)
    assert [cost.calls for cost in pooled(costs * 2) if cost.tool == "md_tree"] == [4]
