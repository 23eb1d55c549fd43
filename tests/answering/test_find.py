import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchsvc.answering.find import MAX_NOTES, NoteCard, group, render_find
from searchsvc.items import Ranking
from searchsvc.tokens import cost
from tests.answering.made_hits import BUDGETS, NAMES, NOTICES, make_hit, rankings

QUERIES = st.one_of(st.text(min_size=1, max_size=40), st.just("认证" * 5000), st.just("how? {count}"))


def card_of(hit, **facts):
    return NoteCard(hit.root, hit.path, hit.location, **{"title": hit.note_title, **facts})


def many(count, **facts):
    hits = [make_hit(f"Text {n}.", f"{'ab'[n % 2]}/{n}.md", score=1 - n / 1000) for n in range(count)]
    return hits, [card_of(hit, tags=(f"tag{n % 3}",), **facts) for n, hit in enumerate(hits)]


def find(hits, cards, *, budget=4000, hubs=(), query="tomatoes", **facts):
    known = {card.path: card for card in cards}
    ranking = Ranking(tuple(hits), total=len(hits), **facts)
    return render_find(query, ranking, group(hits, lambda hit: known[hit.path]), hubs, budget)


@pytest.mark.proves("R-budget")
@settings(deadline=None, max_examples=150)
@given(rankings(), QUERIES, BUDGETS, st.booleans(), st.lists(NAMES, max_size=3), st.integers(1, 3))
def test_no_reply_costs_more_than_its_budget(ranking, query, budget, relevant, names, copies):
    hits = [hit for hit in ranking.hits for _ in range(copies)]
    regions = group(hits, lambda hit: card_of(hit, title="\n".join(names), tags=tuple(names), linked_from=3))
    hubs = [region.card for region in regions]
    asked = Ranking(tuple(hits), relevant=relevant, notices=ranking.notices)
    answer = render_find(query, asked, regions, hubs, budget)
    assert answer.cost == cost(answer.text) <= budget


@settings(deadline=None)
@given(QUERIES, BUDGETS, NOTICES, st.integers(21, 80))
def test_an_ambiguous_reply_costs_no_more_than_its_budget(query, budget, notices, count):
    hits, cards = many(count)
    answer = find(hits, cards, query=query, budget=budget, notices=tuple(notices))
    assert answer.text.startswith(f"Ambiguous: {count} notes match ")
    assert answer.cost == cost(answer.text) <= budget


def test_the_best_notes_come_with_their_regions_at_most_twelve():
    hits, cards = many(20)
    answer = find(hits, cards)
    assert answer.text.startswith(f"{MAX_NOTES} of 20 notes, best first\n")
    assert answer.shown == tuple((hit, "list") for hit in hits[:MAX_NOTES])
    assert "  a/0.md#part · L1-1" in answer.text


def test_regions_much_weaker_than_the_best_of_their_note_are_left_out():
    hits = [
        make_hit(path="a.md", slug=slug, score=score) for slug, score in (("x", 1), ("y", 0.6), ("z", 0.4))
    ]
    answer = find(hits, [card_of(hits[0])])
    assert [hit.section.slug for hit, _ in answer.shown] == ["x", "y"]


def test_more_than_twenty_equal_notes_are_ambiguous_with_counts_of_folders_and_tags():
    hits, cards = many(24)
    answer = find(hits, cards)
    lines = answer.text.split("\n")
    assert lines[0] == 'Ambiguous: 24 notes match "tomatoes" equally well'
    assert lines[1] == "folders: a (12), b (12)"
    assert lines[2] == "tags: tag0 (8), tag1 (8), tag2 (8)"
    assert lines[3] == "a/0.md · #tag0"
    assert len(answer.shown) == 24
    assert lines[-1].startswith("Refine: ")


def test_exactly_twenty_equal_notes_are_not_ambiguous():
    hits, cards = many(20)
    assert "Ambiguous" not in find(hits, cards).text


def test_without_a_match_the_hubs_are_entry_points_and_weak_hits_are_called_weak():
    hits, cards = many(8)
    hub = NoteCard("notes", "index.md", "index.md", "Home", (), 12)
    answer = find(hits, cards, hubs=[hub], relevant=False)
    lines = answer.text.split("\n")
    assert lines[0] == 'No match for "tomatoes"'
    assert [line for line in lines if line.startswith("weak: ")] == [
        "weak: a/0.md#part · L1-1 · 3 tok",
        "weak: b/1.md#part · L1-1 · 3 tok",
    ]
    assert "hub: index.md · Home · linked from 12" in lines
    assert "grep" in lines[-1]
    assert not answer.shown


def test_notes_that_nothing_links_to_are_not_called_hubs():
    hits, cards = many(3)
    text = find((), (), hubs=cards, relevant=False).text
    assert "note: a/0.md · #tag0" in text
    assert "hub" not in text.lower()


def test_a_title_with_line_breaks_stays_one_line():
    hit = make_hit()
    answer = find([hit], [card_of(hit, title="Real\n99 of 99 notes")])
    assert "Real 99 of 99 notes" in answer.text.split("\n")[1]


def test_a_question_is_quoted_as_it_was_asked():
    hits, cards = many(30)
    assert '"{count} of what?"' in find(hits, cards, query="{count} of what?").text


def test_what_was_not_looked_at_closely_is_no_count_of_all():
    hits, cards = many(200)
    hits = [replace(hit, score=1 / (n + 1)) for n, hit in enumerate(hits)]
    assert find(hits, cards).text.startswith("12 of the 200 notes of the 200 best sections, best first\n")
    assert find(hits[:50], cards).text.startswith("12 of 50 notes, best first\n")
    equally = [replace(hit, score=1 - n / 10_000) for n, hit in enumerate(hits)]
    assert find(equally, cards).text.startswith("Ambiguous: at least 200 notes match ")
    assert find(equally[:150], cards).text.startswith("Ambiguous: 150 notes match ")
    assert find([*equally[:150], *hits[150:]], cards).text.startswith("Ambiguous: 150 notes match ")


@pytest.mark.parametrize("is_relevant", [True, False])
@pytest.mark.parametrize("count", [12, 20, 40])
@pytest.mark.parametrize("budget", [100, 115])
def test_a_reply_that_is_cut_says_which_call_shows_every_line(count, budget, is_relevant):
    hits, cards = many(count, linked_from=3)
    cut = find(hits, cards, budget=budget, hubs=cards, relevant=is_relevant)
    more, needed = re.search(
        r"^(\d+) lines? more: same call with max_tokens=(\d+)\.$", cut.text, re.M
    ).groups()
    whole = find(hits, cards, budget=int(needed), hubs=cards, relevant=is_relevant).text
    assert "more: same call" not in whole
    told = [line for line in cut.text.split("\n") if line in whole.split("\n")]
    assert len(whole.split("\n")) - len(told) - int(more) <= 1 + is_relevant  # the head counts; a foot may go
    assert find(hits, cards, budget=100_000, hubs=cards, relevant=is_relevant).text == whole
