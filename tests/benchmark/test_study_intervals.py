"""Intervals: what is drawn, what is recomputed, and that nothing pretends to be certain."""

from dataclasses import replace

import numpy as np
import pytest

from benchmark.study.arms import differences, figures, table
from benchmark.study.attempts import MEASURES, Row
from benchmark.study.budgets import best_grep, tables
from benchmark.study.evidence import BUDGETS, CAP
from benchmark.study.intervals import RESAMPLES, SEED, estimate
from benchmark.study.questions import Evidence, Question
from benchmark.study.record import Key
from benchmark.study.scoring_answers import Given, score_answer
from benchmark.study.tool_box import ARMS, BOTH, FILES


def test_documents_are_drawn_whole():
    values, clusters = [1.0, 1.0, 1.0, 0.0, 0.0], ["a", "a", "a", "b", "b"]
    found = estimate(values, clusters)
    assert (found.mean, found.count, found.clusters) == (pytest.approx(0.6), 5, 2)
    # Two documents: both drawn twice, or each once. No mean but 0, .6 and 1 can come of that.
    assert (found.low, found.high) == (0, 1)
    alone = estimate(values, list("abcde"))
    assert alone.high - alone.low < 1


def test_one_document_has_no_interval():
    found = estimate([1.0, 0.0, 1.0], ["a", "a", "a"])
    assert (found.mean, found.low, found.high, found.detectable) == (pytest.approx(2 / 3), None, None, None)
    assert found.text == "+0.667 [no interval: one document]"
    assert found.to_json()["note"] == "no interval: one document"
    assert found.note("query") == "no interval: one query"


def test_values_that_are_all_alike_have_no_interval_and_detect_nothing():
    found = estimate([0.1] * 9, list("abcdefghi"))
    assert (found.low, found.detectable, found.note()) == (None, None, "no interval: all alike")


@pytest.mark.parametrize(("documents", "note"), [(4, "rough: 4 documents"), (5, "")])
def test_an_interval_from_few_documents_is_called_rough(documents, note):
    found = estimate([float(n % 2) for n in range(documents)], [str(n) for n in range(documents)])
    assert found.low < found.high
    assert found.note() == note
    assert note in found.text


def test_nothing_has_no_figure_at_all():
    found = estimate([], [])
    assert (found.mean, found.low, found.detectable, found.count) == (None, None, None, 0)
    assert (found.text, found.note()) == ("–", "nothing to estimate")


# F1 over answerability, of an A/B study


def row(question, arm, status, answer="", repeat=0):
    given = Given(status, answer)
    measures = dict.fromkeys(MEASURES, 1.0) | {"score": score_answer(question, given)}
    key = Key(question.id, arm, repeat)
    return Row(question, key, given, status or "turns", measures, {}, arm == BOTH, 0, 0, False)


def study(seed, documents=8, each=4):
    """Make attempts by chance, the arm with searchsvc being right more often."""
    draw = np.random.default_rng(seed)
    rows = []
    for number in range(documents * each):
        right = {"answer": "right", "answer_format": "Str"}
        if draw.random() < 0.3:
            right = {"answer": "Not answerable", "answer_format": "None"}
        path = f"d{number % documents}.md"
        question = Question(str(number), "k", "?", **right, scope="document", documents=(path,))
        for arm, luck in ((FILES, 0.4), (BOTH, 0.7)):
            status = draw.choice(["answered", "not_answerable", ""], p=[0.7, 0.2, 0.1])
            rows.append(row(question, arm, str(status), "right" if draw.random() < luck else "wrong"))
    return rows


def f1_by_hand(rows):
    """Compute F1 as the published evaluation of MMLongBench-Doc does, from single answers."""
    earned = sum(r.measures["score"] for r in rows if r.question.is_answerable)
    recall = earned / sum(r.question.is_answerable for r in rows)
    precision = earned / sum(r.given.status != "not_answerable" for r in rows)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def test_f1_is_computed_anew_in_each_resample_the_same_one_for_both_arms():
    rows = study(1)
    by_document = {}
    for r in rows:
        by_document.setdefault(r.question.cluster, []).append(r)
    documents = list(by_document.values())
    drawn = np.random.default_rng(SEED).integers(0, len(documents), (RESAMPLES, len(documents)))
    by_hand = []
    for places in drawn:
        some = [r for place in places for r in documents[place]]
        both, files = ([r for r in some if r.key.arm == arm] for arm in (BOTH, FILES))
        by_hand.append(f1_by_hand(both) - f1_by_hand(files))
    found = differences(rows)["f1"]
    arms = {arm: figures([r for r in rows if r.key.arm == arm])["f1"] for arm in ARMS}
    assert found["mean"] == pytest.approx(arms[BOTH] - arms[FILES])
    assert (found["low"], found["high"]) == pytest.approx(np.percentile(by_hand, (2.5, 97.5)))
    assert found["detectable"] == pytest.approx(2.8016 * np.std(by_hand))
    assert (found["count"], found["clusters"], found["wins"]) == (32, 8, None)


def test_equal_arms_differ_by_nothing_and_their_interval_is_not_called_certain():
    rows = [r for r in study(2) if r.key.arm == FILES]
    rows += [row(r.question, BOTH, r.given.status, r.given.answer) for r in rows]
    found = differences(rows)["f1"]
    assert (found["mean"], found["low"], found["note"]) == (0, None, "no interval: all alike")


def test_repeats_that_one_arm_lacks_do_not_weigh():
    rows = study(3)
    whole = differences(rows)["f1"]
    again = [row(r.question, BOTH, r.given.status, r.given.answer, 1) for r in rows if r.key.arm == BOTH]
    assert differences(rows + again[:5])["f1"] == whole


def test_adoption_is_by_attempt_so_that_repeats_do_not_raise_it():
    question = Question("q", "k", "?", "x", "Str")
    rows = [row(question, BOTH, "answered", "x", repeat) for repeat in range(4)]
    kept = [replace(r, adopted=r.key.repeat == 0) for r in rows]
    assert figures(kept)["adoption"] == 0.25
    assert figures([row(question, FILES, "answered", "x")])["adoption"] is None


def test_without_an_answerable_question_there_is_no_f1():
    none = [Question(str(n), "k", "?", "Not answerable", "None") for n in range(6)]
    rows = [row(question, arm, "not_answerable") for question in none for arm in ARMS]
    found = differences(rows)
    assert (found["f1"]["mean"], found["f1"]["note"]) == (None, "nothing to estimate")
    assert figures(rows)["f1"] is None
    assert figures(rows)["score"] == 1


def test_one_document_is_said_in_the_table_of_a_study():
    rows = [r for r in study(4, documents=1)]
    arms = {arm: {"all": figures([r for r in rows if r.key.arm == arm])} for arm in ARMS}
    groups = {"all": differences(rows), "kinds": {}, "tags": {}}
    shown = table({"arms": arms, "differences": groups, "questions": 4, "repeats": 1, "complete": True})
    line = next(line for line in shown.split("\n") if line.startswith("| f1 |") and "[" in line)
    assert "[no interval: one document]" in line
    assert line.endswith("| – | - |")


# Scripted policies


def run_of(*questions):
    return {"name": "s", "grep": best_grep(questions), "policies": ["grep-a", "hybrid"],
            "questions": list(questions)}  # fmt: skip


def asked(name, cluster, is_answerable=True):
    spent = [*BUDGETS]
    kept = {"recall": [0.5] * 5, "spent": spent, "first": 9, "all": CAP, "calls_first": 1, "calls": 1}
    other = kept | {"recall": [1.0] * 5}
    return {"id": name, "kind": "k", "tags": [], "cluster": cluster, "answerable": is_answerable,
            "units": int(is_answerable), "policies": {"grep-a": kept, "hybrid": other}}  # fmt: skip


def test_tables_of_one_document_have_no_intervals():
    shown = dict(tables(run_of(asked("1", "a"), asked("2", "a"))))
    against = shown["s: recall minus grep-a's, with 95 % intervals"]
    assert against.count("+0.500 [no interval: one document]") == 5
    assert "1.00 [no interval: one document]" in against


def test_tables_without_any_evidence_are_those_of_questions_without_an_answer():
    shown = [title for title, _ in tables(run_of(asked("1", "a", False)))]
    assert shown == ["s: tokens paid for a question without an answer (1 questions)"]


def test_evidence_of_the_first_document_names_the_cluster():
    question = Question("q", "k", "?", "x", "Str", evidence=(Evidence("a.md", 1, 1), Evidence("b.md", 1, 1)))
    assert question.cluster == "a.md"
