"""Folders with known answers, and what the quality command says of them."""

import json

import pytest

from benchmark.errors import BenchmarkError
from benchmark.quality import main
from benchmark.sets import VAULT, corpus_of, find_sets, queries_of
from benchmark.tokens import measure

NOTE = "# Owls\n\nOwls fly.\n\n## Nests\n\nIn barns.\n\nIn trees.\n\n## Food\n\nMice.\n"


@pytest.fixture
def own(tmp_path):
    """A set of questions with evidence in lines."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text(NOTE)
    lines = [{"path": "a.md", "line_start": n, "line_end": n} for n in (7, 9)]
    questions = [
        {"id": "1", "question": "Where do owls nest?", "answer": "x", "kind": "k", "evidence": lines,
         "language": "de"},
        {"id": "2", "question": "What do owls eat?", "answer": "mice", "kind": "k",
         "evidence": [{"path": "a.md", "line_start": 13, "line_end": 13}]},
        {"id": "3", "question": "How old?", "answer": "Not answerable", "answer_format": "None"},
    ]  # fmt: skip
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, questions)))
    return tmp_path


def test_the_sections_that_hold_the_evidence_are_relevant_each_once(own):
    queries = queries_of(own)
    assert [query.id for query in queries] == ["1", "2"]
    assert queries[0].facts["relevant"] == [{"path": "a.md", "line_start": 5, "line_end": 10}]
    assert queries[1].facts["relevant"] == [{"path": "a.md", "line_start": 11, "line_end": 13}]
    assert queries[0].facts["lang"] == "de"


def test_evidence_in_a_note_that_is_not_there_is_refused(own):
    (own / "notes" / "a.md").unlink()
    with pytest.raises(BenchmarkError, match=r"there is no note 'a\.md'"):
        queries_of(own)


def test_our_own_set_is_one(capsys):
    assert find_sets([VAULT]) == [VAULT.resolve()]
    assert corpus_of(VAULT).name == "notes"


def test_the_command_says_by_language_by_documents_and_against_channels_and_recipe(own, capsys):
    recipe = own / "recipe.json"
    recipe.write_text(json.dumps({own.name: {"k": 0.99}}))
    given = ["--data", str(own), "--profile", "none", "--recipe", str(recipe)]
    assert main([*given, "--json", str(own / "out.json")]) == 0
    shown = capsys.readouterr().out
    for title in ("hybrid none, whole documents", "The fused ranking against its best channel",
                  "The fused ranking against recipe.json"):  # fmt: skip
        assert f"## {title}" in shown
    assert f"| {own.name} | in de | 1 |" in shown
    line = next(line for line in shown.split("\n") if "recipe.json | 0.990 |" in line)
    assert line.endswith("BELOW |"), "a lead of less than .04 is marked"
    rows = json.loads((own / "out.json").read_text())["runs"][0]["queries"]
    assert all(row["tokens"] > 0 and "document_recall5" in row for row in rows)


@pytest.mark.parametrize("content", ["[]", "{", '{"a": {"b": "x"}}', '{"a": 1}'])
def test_a_recipe_of_another_form_is_refused_in_one_line(own, capsys, content):
    (own / "recipe.json").write_text(content)
    assert main(["--data", str(own), "--recipe", str(own / "recipe.json")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_tokens_without_a_known_answer_leave_out_what_takes_a_question(tmp_path):
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.md").write_text(NOTE)
    (tmp_path / "queries.jsonl").write_text('{"id": "1", "query": "owls", "relevant": []}')
    assert [cost for cost in measure(tmp_path, "none") if cost.holds is not None] == []
