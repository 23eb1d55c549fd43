import pytest

from searchsvc.ranking.copies import LIKE, Copies, collapse
from searchsvc.ranking.corpus import Corpus
from tests.notes import open_service, write_notes
from tests.ranking.small_corpus import small_corpus

WORDS = [
    "anchor", "buoy", "chain", "deck", "engine", "fender", "gauge", "hull", "island", "jetty", "keel", "lamp",
    "mooring", "net", "oar", "pump", "quay", "rope", "sail", "tide",
]  # fmt: skip
BODY = " ".join(WORDS)


def section(heading, body):
    return f"## {heading}\n\n{body}.\n\n"


def changed(count):
    """Return the body with so many of its words replaced."""
    return " ".join([*(f"other{word}" for word in WORDS[:count]), *WORDS[count:]])


NOTES = {
    "a.md": "# First\n\n"
    + section("Gear", BODY)
    + section("Licence", "Permission is granted to all people here"),
    "b.md": "# Second\n\n" + section("Gear", changed(1)) + section("Other gear", changed(1)),
    "c.md": "# Third\n\n" + section("Gear", changed(4)),
    "d.md": "# Fourth\n\n"
    + section("Gear", changed(1))
    + section("Licence", "Permission is granted to all people here"),
    "e.md": "# Fifth\n\n" + section("Short", "buoy chain deck") + section("Short", "buoy chain deck keel"),
}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    with small_corpus(tmp_path_factory.mktemp("copies"), NOTES) as opened:
        yield opened


def order_of(small, *names):
    ordinals = [small.ordinal(name) for name in names]
    order, copies = collapse(small.corpus, ordinals)
    return small.names(order), copies


def test_a_text_that_a_better_section_has_word_for_word_moves_behind_all_others(small):
    order, copies = order_of(small, "d.md#licence", "a.md#licence", "c.md#gear")
    assert order == ["d.md#licence", "c.md#gear", "a.md#licence"]
    assert copies == Copies(same={small.ordinal("d.md#licence"): [small.ordinal("a.md#licence")]})
    assert collapse(small.corpus, []) == ([], Copies())


def test_nearly_the_same_text_moves_behind_with_its_own_copies(small):
    order, copies = order_of(small, "a.md#gear", "b.md#gear", "d.md#gear", "c.md#gear")
    assert order == ["a.md#gear", "c.md#gear", "b.md#gear", "d.md#gear"]
    assert copies.same == {}
    assert copies.like == {
        small.ordinal("a.md#gear"): [small.ordinal("b.md#gear"), small.ordinal("d.md#gear")]
    }


@pytest.mark.parametrize(
    "names",
    [
        ("a.md#gear", "b.md#other-gear"),  # another heading: perhaps another thing
        ("a.md#gear", "c.md#gear"),  # too many other words
        ("e.md#short", "e.md#short-1"),  # too short to compare
    ],
)
def test_what_may_say_something_else_stays_in_its_place(small, names):
    assert order_of(small, *names) == (list(names), Copies())


def test_how_much_may_differ():
    shared = len(WORDS) - 1
    assert shared / (len(WORDS) + 1) >= LIKE > (shared - 1) / (len(WORDS) + 2)


def test_copies_are_found_across_roots_and_segments(small, tmp_path):
    with small_corpus(
        tmp_path, {"far.md": "# Far\n\nzebra yak xylophone\n\n" + section("Gear", BODY)}
    ) as far:
        both = Corpus([*far.corpus.frames, *small.corpus.frames])
        one, other = far.ordinal("far.md#gear"), len(far.corpus) + small.ordinal("b.md#gear")
        assert collapse(both, [one, other])[1] == Copies(like={one: [other]})


def test_copies_are_named_with_the_one_that_is_shown(tmp_path):
    service = open_service(write_notes(tmp_path / "notes", NOTES), tmp_path / "d")
    service.index()
    reply = service.semantic_search("anchor gear")
    best = reply.ranking.hits[0]
    assert best.id == "a.md#gear"
    assert best.likes == ("b.md#gear", "d.md#gear")
    assert "nearly the same text: b.md#gear, d.md#gear" in reply.text
