"""Answers are scored by the rules of MMLongBench-Doc."""

import numpy as np
import pytest

from benchmark.study.questions import Question
from benchmark.study.scoring_answers import (
    Given,
    anls,
    answerability_counts,
    edit_distance,
    elements,
    precision_recall_f1,
    score_answer,
)


def ask(answer, answer_format="Str"):
    return Question("q", "", "?", answer, answer_format)


@pytest.mark.parametrize(
    ("answer_format", "right", "answer", "score"),
    [
        ("Int", "40", "40", 1),
        ("Int", "40", "40.0", 1),
        ("Int", "40", "41", 0),
        ("Int", "40", "40 crabs", 1),
        ("Int", "1240", "1,240", 1),
        ("Int", "40", "between 40 and 50", 0),
        ("Int", "40", "forty", 0),
        ("Int", "-3", "-3", 1),
        ("Int", "40", "40.7", 0),
        ("Int", "40", "type-40", 1),
        ("Int", "5", ".5 m", 0),
        ("Float", "0.5", ".5 m", 1),
        ("Int", "1", "1,2345 crabs", 0),
        ("Float", "118.8", "118.8", 1),
        ("Float", "118.8", "118.8 Hz", 1),
        ("Float", "100.0", "100.9", 1),
        ("Float", "100.0", "101.5", 0),
        ("Float", "0.24", "24%", 1),
        ("Float", "24%", "0.24", 1),
        ("Float", "$2.50", "2.5", 1),
        ("Float", "-0.003", "0", 0),
        ("Float", "2.5", "nothing", 0),
        ("Float", "nan", "nan", 0),
        ("Str", "Provider", "provider", 1),
        ("Str", "Provider", "'Provider'", 1),
        ("Str", "Provider", "Provider (a boat)", 1),
        ("Str", "Provider", "Provide", 7 / 8),
        ("Str", "abcd", "abxy", 0),
        ("Str", "abcdef", "abcdxy", 4 / 6),
        ("Str", "2024-01-15", "2024-01-16", 0),
        ("Str", "2024-01", "2024-01", 1),
        ("Str", "https://a.example/x", "https://a.example/y", 0),
        ("Str", "a@b.org", "a@b.or", 0),
        ("Str", "555-1234", "555-1235", 0),
        ("Str", "+44 1632 960001", "+44 1632 960002", 0),
        ("Str", "9 a.m.", "8 a.m.", 0),
        ("Str", "page 12", "page 13", 0),
        ("Str", "main.py", "mains.py", 0),
        ("List", "['250', '2.3']", "['2.3', '250']", 1),
        ("List", "['250', '2.3']", "['2.3', '251']", 0),
        ("List", "['Wilma', 'Jonas']", "['jonas', 'wilma']", 1),
        ("List", "['Wilma', 'Jonas']", "['Jonas']", 0),
        ("List", "['Wilma', 'Jonas']", "['Jonas', 'Wilmo']", 4 / 5),
        ("List", "['Wilma', 'Jonas']", "['Jonas', 'Peter']", 0),
        ("List", "['Wilma', 'Jonas']", "[Wilma, Jonas]", 1),
        ("List", "['Wilma']", "Wilma", 1),
    ],
)
def test_an_answer(answer_format, right, answer, score):
    assert score_answer(ask(right, answer_format), Given("answered", answer)) == pytest.approx(score)


def test_no_answer_is_wrong_even_where_there_is_none():
    assert score_answer(ask("x"), Given("")) == 0
    assert score_answer(ask("Not answerable", "None"), Given("")) == 0
    assert score_answer(ask("Not answerable", "None"), Given("not_answerable")) == 1
    assert score_answer(ask("Not answerable", "None"), Given("answered", "Not answerable")) == 0
    assert score_answer(ask("x"), Given("not_answerable", "x")) == 0


def test_a_hostile_list_is_not_run():
    assert elements("[__import__('os').getcwd()]") == ["__import__('os').getcwd()"]
    assert elements("[" * 5000)


def test_edit_distance_and_threshold():
    assert edit_distance("kitten", "sitting") == edit_distance("sitting", "kitten") == 3
    assert edit_distance("", "abc") == 3
    assert anls("", "") == 1
    assert anls("ab", "ax") == 0, "just 0.5 is not enough"


def test_f1_takes_precision_over_the_claimed_and_recall_over_the_answerable():
    none = ask("Not answerable", "None")
    rows = [
        (ask("a"), Given("answered", "a"), 1.0),
        (ask("a"), Given("answered", "b"), 0.0),
        (ask("a"), Given("not_answerable"), 0.0),
        (ask("a"), Given(""), 0.0),
        (none, Given("not_answerable"), 1.0),
        (none, Given("answered", "a"), 0.0),
    ]
    sums = np.sum([answerability_counts(*row) for row in rows], axis=0)
    assert sums.tolist() == [1, 4, 4]
    assert precision_recall_f1(sums) == pytest.approx([1 / 4, 1 / 4, 1 / 4])
    assert precision_recall_f1(np.array([[1.0, 2, 4], [0, 0, 4]])) == pytest.approx(
        np.array([[1 / 2, 1 / 4, 1 / 3], [0, 0, 0]])
    )
    assert np.isnan(precision_recall_f1(np.zeros(3))).all()
