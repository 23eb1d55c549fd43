import numpy as np
import pytest

from searchsvc.ranking.corpus import Corpus
from searchsvc.ranking.evidence import (
    MIN_RELEVANCE,
    MIN_SUM,
    MIN_TRUST,
    NEAR_RELEVANCE,
    is_measured,
    weigh,
)
from searchsvc.ranking.fuse import KIN_LOSS, PHRASE_BONUS, POOL, fuse, join, led_by
from searchsvc.ranking.vector import VectorScores
from tests.ranking.small_corpus import small_corpus, terms_of

NOTES = {
    "lock.md": "# Locking\n\nIntro.\n\n## Lock file\n\nThe lock file pins dependencies.\n\n"
    "### Lock file format\n\nThe lock file is written in TOML.\n",
    "other.md": "# Other\n\n## Notes\n\nA lock file is mentioned here, with dependencies of a lock file.\n",
    "copy.md": "# Copied\n\n## Licence\n\nPermission is granted to anyone.\n",
    "copy2.md": "# Copied too\n\n## Licence\n\nPermission is granted to anyone.\n",
    "far.md": "# Far\n\n## Whales\n\nWhales sing in the sea.\n",
}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    with small_corpus(tmp_path_factory.mktemp("fuse"), NOTES) as opened:
        yield opened


def ask(small, question, vector=None, **how):
    return fuse(small.corpus, terms_of(question), vector, **how)


def meaning(small, relevance=0.9, trust=1.0, **cosines):
    values = np.zeros(len(small.corpus), np.float32)
    for slug, cosine in cosines.items():
        values[[n for n, address in enumerate(small.addresses) if address.endswith(slug)]] = cosine
    return VectorScores(values, values * 3, relevance, trust)


def test_a_heading_that_is_the_question_wins(small):
    fused = ask(small, "lock file")
    assert small.names(fused.ordinals)[0] == "lock.md#lock-file"
    assert small.ordinal("lock.md#lock-file") in fused.said


def test_the_lower_of_parent_and_child_loses_a_share_once(small):
    fused = ask(small, "lock file")
    child = small.ordinal("lock.md#lock-file/lock-file-format")
    place = fused.ordinals.tolist().index(child)
    bonus = fused.scores[place] / (1 - KIN_LOSS) - fused.lexical.scores[child]
    assert bonus == pytest.approx(0, abs=1e-6)


def test_kin_are_found_in_the_second_of_two_roots(small, tmp_path):
    far = {"first.md": "# First\n\n" + "".join(f"## Part {n}\n\nA lock file.\n\n" for n in range(9))}
    with small_corpus(tmp_path, far) as first:
        both = Corpus([*first.corpus.frames, *small.corpus.frames])
        fused = fuse(both, terms_of("lock file"))
        base = len(first.corpus)
        child = base + small.ordinal("lock.md#lock-file/lock-file-format")
        assert both.parents(np.array([child])).tolist() == [base + small.ordinal("lock.md#lock-file")]
        place = fused.ordinals.tolist().index(child)
        assert fused.scores[place] == pytest.approx((1 - KIN_LOSS) * undimmed(fused, child), abs=1e-6)


def undimmed(fused, ordinal):
    """Return the score of a section whose heading the question says, before kin are looked at."""
    return fused.lexical.scores[ordinal] + (PHRASE_BONUS if ordinal in fused.said else 0.0)


def test_the_best_section_loses_nothing(small):
    fused = ask(small, "whales")
    best = int(fused.ordinals[0])
    assert fused.scores[0] >= fused.lexical.scores[best]


def test_a_section_found_by_its_vector_alone_is_found(small):
    fused = ask(small, "cetacean songs", meaning(small, whales=0.8))
    assert small.names(fused.ordinals)[0] == "far.md#whales"


def test_vectors_that_are_not_trusted_change_nothing(small):
    plain, other = ask(small, "lock file"), ask(small, "lock file", meaning(small, trust=0.0, whales=0.9))
    assert plain.ordinals.tolist() == other.ordinals.tolist()
    assert plain.scores.tolist() == other.scores.tolist()


def test_only_allowed_and_live_sections_are_ranked(small):
    mask = np.array([address.startswith("other.md") for address in small.addresses])
    assert {
        name.partition("#")[0] for name in small.names(ask(small, "lock file", allowed=mask).ordinals)
    } == {"other.md"}


def test_the_first_of_several_phrasings_counts_as_much_as_all_others(small):
    one, two = ask(small, "whales"), ask(small, "permission granted")
    joined = join([one, two, two])
    assert small.names(joined.ordinals)[0] == "far.md#whales"
    assert {"copy.md#licence", "far.md#whales"} <= set(small.names(joined.ordinals))
    assert joined.scores[0] == pytest.approx(0.5 * one.scores[0])
    assert join([one]) is one


def test_no_more_than_the_pool_is_ranked(small):
    assert len(join([ask(small, "lock file whales permission")] * 2).ordinals) <= POOL


def test_coverage_is_the_share_of_informative_words_that_one_section_holds(small):
    assert weigh(ask(small, "whales sing"), "whales sing").coverage == pytest.approx(1.0)
    assert 0 < weigh(ask(small, "whales quxify"), "whales quxify").coverage < 0.6
    assert weigh(ask(small, "quxify"), "quxify").coverage == 0.0


def test_words_alone_are_relevant_when_the_best_section_holds_enough_of_them(small):
    assert weigh(ask(small, "whales sing in the sea"), "whales sing in the sea").is_relevant()
    strange = "quarterly revenue forecast of overseas subsidiaries written"
    assert not weigh(ask(small, strange), strange).is_relevant()
    assert not weigh(ask(small, "quxify"), "quxify").is_relevant()


@pytest.mark.proves("R-honest-nothing")
def test_a_ranking_by_vectors_alone_is_relevant_when_its_best_is_near_enough(small):
    near = ask(small, "", meaning(small, relevance=MIN_RELEVANCE + 0.01, whales=0.5), mode="vector")
    far = ask(small, "", meaning(small, relevance=MIN_RELEVANCE - 0.01, whales=0.5), mode="vector")
    assert weigh(near, "").is_relevant(by_vectors_alone=True)
    assert not weigh(far, "").is_relevant(by_vectors_alone=True)


@pytest.mark.parametrize(("relevance", "trust"), [(None, 1.0), (0.9, 0.0), (0.9, MIN_TRUST - 0.01)])
def test_cosines_that_were_not_measured_or_not_trusted_tell_nothing_of_relevance(small, relevance, trust):
    vector = meaning(small, relevance, trust, whales=0.5)
    assert not is_measured(vector)
    evidence = weigh(ask(small, "", vector, mode="vector"), "")
    assert evidence.relevance is None
    assert evidence.is_relevant(by_vectors_alone=True)
    assert not evidence.is_near
    strange = "quxify whales of overseas subsidiaries with quarterly forecasts"
    assert not weigh(ask(small, strange, vector), strange).is_relevant()


def test_a_question_in_a_script_of_pairs_needs_to_earn_less(tmp_path):
    text = "每个月的第一个星期六，住在岛上的人一起包饺子，馅是羊肉和海带。" + "海上有风。" * 40
    with small_corpus(
        tmp_path, {"zh.md": f"# 生活\n\n{text}\n", "en.md": "# Life\n\nOn the island.\n"}
    ) as small:
        fused, question = ask(small, "饺子用什么做馅？"), "饺子用什么做馅？"
        plain = float(fused.lexical.scores.max()) * fused.lexical.known_share
        assert weigh(fused, question).earned > 1.5 * plain


OFTEN = {
    **{
        f"{name}.md": f"# {name}\n\n## Failed {name}\n\nWhat failed, and why it failed there.\n"
        for name in ("build", "install", "upload", "login")
    },
    **{f"plain{n}.md": f"# Plain {n}\n\n## Part {n}\n\nNothing of note.\n" for n in range(12)},
    "cache.md": "# Cache\n\n## Clearing\n\n" + "It removes old entries. " * 20 + "Each hardlink counts.\n",
}


def test_the_holder_of_a_rare_word_counts_and_leads_where_headings_outdo_it(tmp_path):
    with small_corpus(tmp_path, OFTEN) as small:
        fused = ask(small, "hardlink failed")
        assert "clearing" not in str(small.names(fused.ordinals[:3].tolist()))
        evidence = weigh(fused, "hardlink failed")
        assert evidence.is_relevant()
        assert evidence.holder is not None
        led = led_by(fused, evidence.holder)
        assert led.ordinals[0] == evidence.holder
        assert sorted(led.ordinals.tolist()) == sorted(fused.ordinals.tolist())
        assert (led.scores[1:] <= led.scores[:-1]).all()


def test_without_need_nothing_is_put_first(small):
    assert weigh(ask(small, "whales sing"), "whales sing").holder is None


def test_a_cosine_below_the_background_takes_nothing_from_the_words(small):
    question = "whales sing quxify"
    words = weigh(ask(small, question), question).coverage
    assert words > 0.5
    for relevance in (-0.9, 0.0):
        vector = meaning(small, relevance=relevance, whales=0.5)
        evidence = weigh(ask(small, question, vector), question)
        assert evidence.is_relevant() == (words >= MIN_SUM)


def test_one_word_of_many_is_chance_when_words_alone_decide(tmp_path):
    with small_corpus(tmp_path, OFTEN) as small:
        for question, expected in (
            ("hardlink", True),
            ("hardlink removes", True),
            ("hardlink accounting quxify", False),
            ("hardlink entries accounting", True),
        ):
            assert weigh(ask(small, question), question).is_relevant() == expected, question


def test_what_is_nearly_relevant_is_told_from_what_is_far(small):
    near = meaning(small, relevance=NEAR_RELEVANCE + 0.01, whales=0.5)
    far = meaning(small, relevance=NEAR_RELEVANCE - 0.01, whales=0.5)
    for vector, expected in ((near, True), (far, False)):
        evidence = weigh(ask(small, "cetacean quxify", vector), "cetacean quxify")
        assert (evidence.is_near, evidence.is_relevant()) == (expected, False)
