"""Meaning counts more where words account for little of a question."""

import numpy as np
import pytest

from searchsvc.config import load
from searchsvc.ranking.fuse import WORDLESS_GAIN, WORDS_ENOUGH, _wordless_gain
from searchsvc.service import Service


def test_the_gain_fades_as_words_earn_more():
    earned = np.linspace(0, 0.5, 100)
    gains = [_wordless_gain(float(share)) for share in earned]
    assert gains[0] == WORDLESS_GAIN
    assert gains == sorted(gains, reverse=True)
    assert _wordless_gain(3 * WORDS_ENOUGH) < 0.001


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
