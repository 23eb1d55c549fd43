"""Meaning counts more where words account for little; a question wants a passage that holds most of it."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from searchsvc.config import load
from searchsvc.ranking.fuse import HELD_WEIGHT, WORDS_ENOUGH, _wordless, fuse
from searchsvc.service import Service
from tests.notes import open_service, write_notes
from tests.ranking.small_corpus import small_corpus, terms_of


def test_the_gain_fades_as_words_earn_more():
    earned = np.linspace(0, 0.5, 100)
    gains = [_wordless(float(share)) for share in earned]
    assert gains[0] == 1
    assert gains == sorted(gains, reverse=True)
    assert _wordless(3 * WORDS_ENOUGH) < 0.001


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notes")
    (folder / "boats.md").write_text(
        "# Boats\n\n## Mooring\n\nTie the vessel to the quay with two lines before the wind rises.\n\n"
        "## Engine\n\nChange the oil every hundred hours.\n\n"
        "## Paint\n\nTwo coats of red below the waterline.\n"
    )
    (folder / "kitchen.md").write_text(
        "# Kitchen\n\n## Bread\n\nKnead the dough, let it rise, bake it before noon.\n\n"
        "## Stew\n\nThe recipe for a fish stew that the village has long called storm.\n"
    )
    config = load({"roots": str(folder), "data_dir": folder.parent / "data"}, environment={})
    made = Service(config)
    made.index()
    made.embed()
    return made


def test_a_paraphrase_is_found_though_a_word_of_it_stands_elsewhere(service):
    question = "how do I fasten my craft at the dock ahead of a storm"
    words = service.search(question, mode="lexical")
    assert words.hits[0].id == "kitchen.md#stew"
    assert service.search(question).hits[0].id == "boats.md#mooring"


def test_words_that_account_for_the_question_still_decide(service):
    assert service.search("fish stew called storm").hits[0].id == "kitchen.md#stew"


FACTS = {
    "ferry.md": "# Ferry\n\n## Ferry timetable\n\nThe timetable: the ferry leaves, the ferry returns.\n",
    "log.md": "# Log\n\n## June\n\nOn Tuesday the ferry left the harbour at nine, since fog had come in.\n",
    "dog.md": "# Dog\n\n## Collar\n\nRed.\n",
}
QUESTION = "Why did the ferry leave the harbour at nine on Tuesday"


@pytest.mark.parametrize("mark", ["?", "？", ' ?"'])
def test_a_question_is_answered_by_the_passage_that_holds_most_of_it(tmp_path, mark):
    with small_service(tmp_path) as ask:
        assert ask(QUESTION)[0] == "ferry.md#ferry-timetable"
        assert ask(QUESTION + mark)[0] == "log.md#june"


@contextmanager
def small_service(folder):
    """Give a function that returns the ids of the hits of a query, by words."""
    service = open_service(write_notes(folder / "notes", FACTS), folder / "data")
    service.index()
    yield lambda query: [hit.id for hit in service.search(query, mode="lexical").hits]


def test_what_a_section_holds_counts_once_and_by_idf(tmp_path):
    with small_corpus(tmp_path, FACTS) as small:
        terms = replace(terms_of("ferry fog quxify"), asks=True)
        plain, asked = fuse(small.corpus, terms_of("ferry fog quxify")), fuse(small.corpus, terms)
        assert plain.lexical.held is None
        held = asked.lexical.held
        idf = {match.term: match.idf for match in asked.lexical.matches if match.known}
        for name, words in (("ferry.md#ferry-timetable", ["ferri"]), ("log.md#june", ["ferri", "fog"])):
            ordinal = small.ordinal(name)
            share = sum(idf[word] for word in words) / sum(idf.values())
            assert held[ordinal] == pytest.approx(share)
            gain = asked.scores[asked.ordinals == ordinal] - plain.scores[plain.ordinals == ordinal]
            assert gain[0] == pytest.approx(HELD_WEIGHT * share, abs=1e-6)
        assert held[small.ordinal("dog.md#collar")] == 0


def test_a_function_word_is_told_by_its_spelling_where_its_stem_is_another_word(tmp_path):
    write_notes(
        tmp_path / "notes",
        {
            "deer.md": "# Deer\n\n## Doe\n\nThe doe, a deer; a doe runs.\n",
            "pump.md": "# Pump\n\n## Parts\n\nThe pump lifts water.\n",
        },
    )
    service = open_service(tmp_path / "notes", tmp_path / "data")
    service.index()
    assert service.search("What does the pump lift", mode="lexical").hits[0].id == "pump.md#parts"
    assert [hit.path for hit in service.search("what does the pump", mode="lexical").hits] == ["pump.md"] * 2
    assert service.search("a doe", mode="lexical").hits[0].id == "deer.md#doe"
