import numpy as np
import pytest

from searchsvc.index.calibration import Calibration
from searchsvc.ranking.vector import trust_in, vector_scores

MEASURED = Calibration(nothing=0.2, same=0.8, mean=0.0, deviation=0.1)


def all_english(code):
    return float(code == "en")


@pytest.mark.parametrize(
    ("question", "languages", "trust"),
    [
        ("how do I water the tomatoes", ("en",), 1.0),
        ("tomatoes", ("en",), 1.0),
        ("wie kann ich die Tomaten am Abend gießen", ("en",), 0.0),
        ("如何浇水", ("en",), 0.0),
        ("как поливать помидоры", ("en",), 0.0),
        ("كيف أسقي الطماطم", ("en",), 0.0),
        ("πώς ποτίζω", ("en",), 0.0),
        ("รดน้ำอย่างไร", ("en",), 0.0),
        ("как поливать помидоры", ("*",), 2.0),
        ("как поливать помидоры", ("en", "zh"), 0.0),
        ("如何浇水", ("zh",), 1.0),
        ("how to use 令牌 tokens", ("en",), 14 / 16),
        ("how do I water the tomatoes", ("zh",), 0.0),
        ("how do I water the tomatoes", ("*",), 1.0),
        ("wie kann ich die Tomaten am Abend gießen", ("*",), 2.0),
        ("如何浇水", ("en", "zh"), 2.0),
        ("tomatoes", ("*",), 1.0),
    ],
)
def test_vectors_count_where_the_model_reads_the_question_and_more_where_words_cannot(
    question, languages, trust
):
    assert trust_in(question, languages, all_english) == pytest.approx(trust)


def test_a_section_stands_as_high_as_it_is_above_the_background():
    cosines = np.random.default_rng(1).normal(0.3, 0.1, 5000).astype(np.float32)
    cosines[7] = 1.2
    scores = vector_scores(cosines, 1.0)
    assert scores.standing.argmax() == 7
    assert scores.standing[7] > 2 > 1.2 > np.partition(scores.standing, -2)[-2]
    assert (scores.standing >= 0).all()
    assert scores.relevance is None


def test_sections_without_vectors_have_no_standing_and_do_not_count_as_background():
    cosines = np.array([0.5, -np.inf, 0.1, 0.2], np.float32)
    scores = vector_scores(cosines, 1.0, [MEASURED])
    assert scores.standing[1] == 0
    assert scores.relevance == pytest.approx(0.5)
    assert vector_scores(np.full(3, -np.inf, np.float32), 1.0).standing.tolist() == [0, 0, 0]


def test_relevance_is_that_of_the_root_where_it_is_greatest():
    strict = Calibration(nothing=0.4, same=0.9, mean=0.0, deviation=0.1)
    assert vector_scores(np.array([0.5], np.float32), 1.0, [strict, MEASURED]).relevance == pytest.approx(0.5)
