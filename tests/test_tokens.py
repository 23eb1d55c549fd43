"""Terms: what index and question agree on; cost: what a text takes of a budget."""

import math
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchsvc.tokens import STOP_WORDS, Tokenizer, cost, fold, is_single_unspaced, is_unspaced, words

settings.register_profile("calm", deadline=None)  # a busy machine is no fault
settings.load_profile("calm")

WORDS = st.text(
    st.one_of(
        st.sampled_from("abcXYZ019_.-'’/:+#@ éßøıİ"),
        st.sampled_from("一二の가ก\u0e34हि\u0301\u200d🎉"),
        st.characters(),
    ),
    max_size=40,
)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer()


@given(WORDS)
def test_a_question_has_the_terms_of_the_text_it_is_copied_from(tokenizer: Tokenizer, text: str) -> None:
    """But for stop words, and for the last character that is indexed alone in a script without blanks."""
    indexed, asked = tokenizer.terms(text), [term for term, _ in tokenizer.query_terms(text)]
    extra = set(indexed) - set(asked)
    assert set(asked) <= set(indexed)
    assert all(term in STOP_WORDS or is_single_unspaced(term) for term in extra)
    assert "" not in indexed and not [term for term in indexed if term.isspace()]


@given(WORDS)
def test_letter_case_accents_and_composition_do_not_matter(tokenizer: Tokenizer, text: str) -> None:
    composed, taken_apart = unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)
    assert tokenizer.terms(composed) == tokenizer.terms(taken_apart)
    lower = [term for word in text.split() for term in tokenizer.terms(word.lower())]
    assert set(tokenizer.terms(text)) >= {term for term in lower if term == fold(text.lower())}


@given(WORDS)
def test_a_memory_of_words_changes_nothing(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.terms(text) == tokenizer.terms(text) == Tokenizer().terms(text)


@given(WORDS, WORDS)
def test_words_apart_are_split_apart(tokenizer: Tokenizer, one: str, two: str) -> None:
    assert tokenizer.terms(f"{one}\n{two}") == tokenizer.terms(one) + tokenizer.terms(two)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("max-retry-count", {"max", "retri", "count", "maxretrycount"}),
        ("MAX_RETRY", {"max", "retri", "maxretri"}),
        ("maxRetry", {"max", "retri", "maxretri"}),
        ("XMLHttpRequest", {"xml", "http", "request", "xmlhttprequest"}),
        ("HCA060T", {"hca060t"}),
        ("v1.2.3", {"v1", "1", "2", "3", "1.2.3", "v1.2.3"}),
        ("192.168.0.1:80", {"192", "168", "0", "1", "80", "192.168.0.1", "192.168.0.1:80"}),
        ("2024-05-01", {"2024", "05", "01", "2024-05-01", "20240501"}),
        ("1,299.99", {"1", "299", "99", "1299", "1299.99"}),
        ("1_000_000", {"1", "000", "1000000", "1_000_000"}),
        ("1'000'000", {"1", "000", "1000000", "1'000'000"}),
        ("1.000.000", {"1", "000", "1000000", "1.000.000"}),
        ("192.168.100.200", {"192", "168", "100", "200", "192.168.100.200"}),
        ("9,90", {"9", "90", "9.90"}),
        ("1.299,99", {"1", "299", "99", "1299.99"}),
        ("1,2,3", {"1", "2", "3"}),
        ("1.2,3", {"1", "2", "1.2", "3"}),
        ("2½", {"2", "1", "1/2"}),
        ("C++ C# F# C", {"c++", "c#", "f#", "c"}),
        ("Objective-C++", {"object", "c", "c++", "objectivec"}),
        (".NET", {"net", ".net"}),
        ("node.js", {"node", "js", "nodej"}),
        ("Ann's dogs’", {"ann", "dog"}),
        ("系統", {"系統", "統"}),
        ("JWT令牌", {"jwt", "令牌", "牌"}),
        ("ｶﾞｲﾄﾞ", {"ガイ", "イド", "ド"}),
        ("🎉👍🏽❤️", {"🎉", "👍", "❤"}),
        ("co\u00adoperate foo\u200bbar", {"cooper", "foobar"}),
        ("data:image/gif;base64,R0lGODlhAQABAAAA end", {"end"}),
        ("___ --- … \u0301 \u200d", set()),
    ],
)
def test_names_are_found_whole_and_in_parts(tokenizer: Tokenizer, text: str, terms: set[str]) -> None:
    assert set(tokenizer.terms(text)) == terms


def test_what_stands_past_any_length_is_still_indexed(tokenizer: Tokenizer) -> None:
    for long in (
        "一二三四五" * 100 + "终点",
        "ab." * 100 + "終点",
        "x" * 1000 + " 终点",
        "a_b-" * 100 + "终点",
    ):
        assert {"终点", "終点"} & set(tokenizer.terms(long))


def test_names_of_words_typed_apart_are_joined_as_names_are_indexed(tokenizer: Tokenizer) -> None:
    for name in ("DEC-0054", "CVE-2021-44228", "2024-05-01", "front-matter"):
        whole = tokenizer.terms(name)[-1]
        assert whole in tokenizer.joined_terms(name.replace("-", " "))


def test_a_question_of_stop_words_alone_keeps_them(tokenizer: Tokenizer) -> None:
    assert [term for term, _ in tokenizer.query_terms("to be or not to be")] == "to be or not to be".split()
    assert [term for term, _ in tokenizer.query_terms("the cache")] == ["cach"]


def test_stemming_can_be_switched_off_and_is_part_of_the_settings() -> None:
    plain = Tokenizer(stemming=False)
    assert plain.terms("running caches") == ["running", "caches"]
    assert plain.settings != Tokenizer().settings


@pytest.mark.parametrize(
    "forms",
    [
        "собака собаки собаками",
        "красный красного КРАСНАЯ",
        "котёнок котенок",
        "σκύλος σκύλου ΣΚΎΛΟΙ",
        "किताब किताबें किताबों",
        "புத்தகம் புத்தகங்கள்",
        "caches caching",
    ],
)
def test_forms_of_a_word_are_one_term_by_the_script_they_are_in(tokenizer: Tokenizer, forms: str) -> None:
    assert len(set(tokenizer.terms(forms))) == 1


def test_the_short_i_is_a_letter_and_other_breves_are_not(tokenizer: Tokenizer) -> None:
    plain = Tokenizer(stemming=False)
    assert plain.terms("йод и\u0306од ЙОД") == ["йод"] * 3
    assert plain.terms("ğ ё ї") == ["g", "е", "і"]


def test_every_mark_of_a_letter_stays_with_its_word(tokenizer: Tokenizer) -> None:
    for word in ("हिन्दी", "தமிழ்", "ಕನ್ನಡ", "བསྐྱོད", "ꦧꦱ", "ⲁ̅ⲃ", "שָׁלוֹם", "ܫܠܵܡܵܐ"):
        assert len(tokenizer.terms(word)) == 1, word


def test_scripts_without_blanks_are_known_by_their_letters() -> None:
    assert all(map(is_unspaced, ("中", "の", "ア", "한", "ไ", "ខ", "𠮷")))
    assert not any(map(is_unspaced, ("a", "й", "ह", "א", "1", "")))


@given(st.text(max_size=300))
def test_cost_is_no_less_than_eight_characters_a_token_and_no_more_than_two_tokens_a_byte(text: str) -> None:
    assert len(text) / 8 <= cost(text) <= 2 * len(text.encode("utf-8", "surrogatepass")) + 1


@given(st.text(max_size=200), st.text(max_size=200))
def test_more_text_never_costs_less(one: str, two: str) -> None:
    both = cost(one + two)
    assert both >= max(cost(one), cost(two))
    assert both >= cost(one) + cost(two) - 2


def test_cost_of_known_kinds_of_text() -> None:
    assert cost("") == 0
    assert 20 <= cost("The quick brown fox jumps over the lazy dog. " * 2) <= 26
    assert math.isclose(cost("概要" * 100), 200, rel_tol=0.25)
    assert cost("8f14e45fceea167a5a36dedd4bea2543") >= 16


@settings(max_examples=500)
@given(
    st.lists(WORDS, max_size=6),
    st.sampled_from([" ", "\n", "\t", "\u00a0", "\u2003", "\u2028", "\x1c", "\u3000"]),
)
def test_no_word_spans_a_blank(parts, blank):
    text = blank.join(parts)
    assert words(text) == [word for piece in text.split() for word in words(piece)]


@given(st.lists(WORDS, max_size=6).map(" ".join))
def test_terms_of_pieces_are_those_of_the_text_without_stop_words(text):
    tokenizer = Tokenizer()
    expected = [term for term in tokenizer.terms(text) if term not in STOP_WORDS]
    for _ in range(2):
        assert [term for piece in text.split() for term in tokenizer.topic_terms(piece)] == expected
