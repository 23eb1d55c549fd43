import pytest

from searchsvc.ranking.lexical import lexical
from searchsvc.ranking.related import related_words, spelled_nearly
from tests.ranking.small_corpus import TOKENIZER, small_corpus, terms_of

WORDS = """configuration config configure aislamiento aislar aislado blockchain block blocks database data
    tomato authentication authenticate authority 认证系统 testing v2config"""


@pytest.fixture(scope="module")
def related(tmp_path_factory):
    with small_corpus(tmp_path_factory.mktemp("related"), {"a.md": f"# A\n\n{WORDS}\n"}) as small:

        def ask(word):
            return set(related_words(small.corpus, TOKENIZER.terms(word)[0]))

        yield ask


@pytest.mark.parametrize(
    ("word", "other"), [("config", "configuration"), ("configuration", "config"), ("aislar", "aislamiento"),
                        ("aislado", "aislar"), ("authenticate", "authentication")],
)  # fmt: skip
def test_forms_of_a_word_are_related(related, word, other):
    (term,) = TOKENIZER.terms(word)
    (wanted,) = TOKENIZER.terms(other)
    assert term == wanted or wanted in related(word)


@pytest.mark.parametrize(
    ("word", "other"), [("block", "blockchain"), ("data", "database"), ("tomato", "config")]
)
def test_words_that_only_begin_alike_are_not(related, word, other):
    (wanted,) = TOKENIZER.terms(other)
    assert wanted not in related(word)


@pytest.mark.parametrize("word", ["cat", "认证", "1234", "nowhere"])
def test_short_words_numbers_scripts_without_blanks_and_strangers_have_no_relatives(related, word):
    assert related(word) == set()


@pytest.fixture(scope="module")
def meant(tmp_path_factory):
    text = "hardlink hardlinks authentication treasure котенок café tests text 12345 认证系统"
    with small_corpus(tmp_path_factory.mktemp("meant"), {"a.md": f"# A\n\n{text}\n"}) as small:
        yield lambda term: spelled_nearly(small.corpus, term)


@pytest.mark.parametrize("term", ["hardlnik", "hadlink", "hardlinkk", "hardlimk", "harrdlink", "hardlin"])
def test_a_letter_lost_added_changed_or_swapped_is_taken_for_the_word(meant, term):
    assert meant(term) == ["hardlink"]


def test_a_slip_in_other_letters_is_found_as_well(meant):
    assert meant("котинок") == ["котенок"]


@pytest.mark.parametrize(
    "term", ["hrdlnik", "xardlink", "hardlnki", "tst", "12346", "认证系", "softlink", ""]
)
def test_two_slips_first_letters_short_words_and_numbers_are_left_alone(meant, term):
    assert meant(term) == []


def test_the_words_meant_count_for_a_word_that_no_section_holds(tmp_path):
    notes = {"a.md": "# A\n\n## Cache\n\nEach hardlink counts.\n", "b.md": "# B\n\n## Other\n\nNothing.\n"}
    with small_corpus(tmp_path, notes) as small:
        right, wrong, strange = (
            lexical(small.corpus, terms_of(word)) for word in ("hardlink", "hardlnik", "cupboard")
        )
        assert right.matches[0].meant == () == strange.matches[0].meant
        assert wrong.matches[0].meant == ("hardlink",)
        assert wrong.scores.argmax() == right.scores.argmax()
        assert 0 < wrong.scores.max() < right.scores.max()
        assert strange.scores.max() == 0


def test_of_several_words_that_may_be_meant_the_most_frequent_comes_first(tmp_path):
    text = "# A\n\n## Pyston\n\nFast.\n" + "".join(f"\n## Part {n}\n\nIn python.\n" for n in range(3))
    with small_corpus(tmp_path, {"a.md": text}) as small:
        assert spelled_nearly(small.corpus, "pyton") == ["python", "pyston"]
