import pytest

from searchsvc.ranking.related import related_words
from tests.ranking.small_corpus import TOKENIZER, small_corpus

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
