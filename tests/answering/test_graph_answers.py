"""Replies about the graph: lean lines, within any budget, with the way to what did not fit."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchsvc.answering.graph import render_graph
from searchsvc.errors import QueryError
from searchsvc.graph_items import DeadLink, GraphNode, GraphReply, GraphStep
from searchsvc.tokens import cost

CAP = 20_000


def node(name: str = "soup", **more) -> GraphNode:
    return GraphNode(**{"id": name, "location": f"kitchen/{name}.md", "title": name.title(), **more})


def listing(count: int, query: str = "search_type", **more) -> GraphReply:
    nodes = tuple(node(f"note {number}", links_in=number) for number in range(count))
    return GraphReply(query, "person" if query == "search_type" else "", nodes=nodes, **more)


def lines_of(reply: GraphReply, budget: int = 4000, **more) -> list[str]:
    return render_graph(reply, budget, **more).text.split("\n")


def test_a_note_is_one_line_with_its_degrees():
    assert lines_of(listing(2)) == [
        "2 notes of type person",
        "note 0 · kitchen/note 0.md · 0 in, 0 out",
        "note 1 · kitchen/note 1.md · 1 in, 0 out",
    ]


@pytest.mark.parametrize("title", ["Soup", "SOUP!", ""])
def test_a_title_that_says_no_more_than_the_file_is_left_out(title):
    reply = GraphReply("search_type", "x", nodes=(node(title=title),))
    assert lines_of(reply) == ["1 note of type x", "soup · kitchen/soup.md · 0 in, 0 out"]
    assert "title" not in render_graph(reply, 4000).facts["nodes"][0]


def test_a_title_that_says_more_is_shown_and_dead_links_are_counted():
    reply = GraphReply("search_type", "x", nodes=(node(title="How to cook", dead=2),))
    assert lines_of(reply)[1] == "soup · kitchen/soup.md · How to cook · 0 in, 0 out, 2 dead"


def test_isolated_notes_need_no_degrees():
    assert lines_of(listing(1, "isolated")) == [
        "1 note without links to or from other notes",
        "note 0 · kitchen/note 0.md",
    ]
    assert lines_of(listing(0, "isolated")) == ["no isolated notes"]


def test_the_most_connected_are_told_of_how_many():
    reply = listing(1, "most_connected", counts={"nodes": 118, "isolated": 0})
    assert lines_of(reply)[0] == "1 most connected note, of all 118"
    reply = listing(3, "most_connected", counts={"nodes": 118, "isolated": 115})
    assert lines_of(reply)[0] == "3 most connected notes, of all 118 (115 without links)"
    reply = listing(0, "most_connected", counts={"nodes": 118, "isolated": 118})
    assert lines_of(reply) == ["no note links to another: all 118 are isolated"]


def test_stats_are_one_line_and_lists():
    counts = {"nodes": 5, "edges": 4, "links": 6, "dead_links": 4, "dead_targets": 12, "isolated": 1}
    reply = GraphReply("stats", counts=counts, types=(("Plant", 2),), dead=(DeadLink("gone", "home", 3, 2),))
    assert lines_of(reply) == [
        "5 notes, 4 edges (6 links), 4 dead links to 12 missing notes, 1 isolated",
        "type Plant: 2",
        "missing: gone · 2 links, first in home L3",
        "missing: 11 more: same call with depth=12",
    ]
    facts = render_graph(reply, 4000).facts
    assert facts["counts"] == counts
    assert facts["type_counts"] == [["Plant", 2]]
    assert facts["dead"] == [{"target": "gone", "source": "home", "line": 3, "links": 2}]


def test_a_node_lists_names_dead_links_and_notes_next_to_it():
    names = {"types": ("Plant",), "aliases": ("a", "b"), "tags": ()}
    reply = GraphReply(
        "node",
        "soup",
        names=names,
        nodes=(node(links_in=1, links_out=1, dead=1),),
        steps=(GraphStep(node("stock"), "both", "soup", 1, 3), GraphStep(node("pot"), "in", "soup")),
        dead=(DeadLink("gone", "soup", 7),),
    )
    assert lines_of(reply) == [
        "soup · kitchen/soup.md · 1 in, 1 out, 1 dead",
        "types: Plant",
        "aliases: a, b",
        "dead link: gone · L7",
        "<-> stock · 3 links",
        "<- pot",
    ]
    facts = render_graph(reply, 4000).facts
    assert facts["node"]["id"] == "soup"
    assert facts["aliases"] == ["a", "b"]
    assert facts["links"][1] == {"id": "pot", "direction": "in", "via": "soup", "links": 1}


def far_neighbors(near: int, far: int) -> GraphReply:
    steps = [GraphStep(node(f"near {number}"), "out", "soup") for number in range(near)]
    steps += [GraphStep(node(f"far {number}"), "in", "near 0", 2) for number in range(far)]
    return GraphReply("neighbors", "soup", {"1": near, "2": far}, nodes=(node(),), steps=tuple(steps))


def test_neighbors_further_away_name_the_note_before():
    assert lines_of(far_neighbors(1, 1)) == [
        "soup · kitchen/soup.md · 0 in, 0 out",
        "2 neighbors (1 at 1, 1 at 2 links away)",
        "-> near 0 · kitchen/near 0.md · 0 in, 0 out",
        "2: near 0 <- far 0 · kitchen/far 0.md · 0 in, 0 out",
    ]
    assert lines_of(GraphReply("neighbors", "soup", nodes=(node(),)))[1:] == ["no neighbors"]


def test_neighbors_that_do_not_fit_may_be_had_by_a_smaller_depth():
    assert lines_of(far_neighbors(7, 50), 300)[-1].endswith(", or depth=1 (7 notes).")


def test_a_path_tells_which_way_each_step_goes():
    steps = (GraphStep(node("b"), "out", "a"), GraphStep(node("c"), "in", "b", 2))
    reply = GraphReply("path", "a>c", {"along": 0}, nodes=(node("a"), node("c")), steps=steps)
    assert lines_of(reply) == [
        "2 links, <- followed backwards: a > c",
        "a · kitchen/a.md · 0 in, 0 out",
        "-> b · kitchen/b.md · 0 in, 0 out",
        "<- c · kitchen/c.md · 0 in, 0 out",
    ]


def test_a_shorter_path_backwards_is_told_as_well():
    steps = (GraphStep(node("b"), "out", "a"), GraphStep(node("c"), "out", "b", 2))
    shorter = (GraphStep(node("c"), "in", "a"),)
    ends = node("a"), node("c")
    page = render_graph(
        GraphReply("path", "a>c", {"along": 1}, nodes=ends, steps=steps, shorter=shorter), 4000
    )
    lines = page.text.split("\n")
    assert lines[0] == "2 links, followed forwards (1 if also backwards): a > c"
    assert lines[4:] == ["or: a · kitchen/a.md · 0 in, 0 out", "<- c · kitchen/c.md · 0 in, 0 out"]
    assert [step["id"] for step in page.facts["links"]] == ["b", "c"]
    assert [step["id"] for step in page.facts["shorter"]] == ["a", "c"]


def test_without_a_path_the_reply_says_what_hangs_together():
    reply = GraphReply("path", "a>c", {"along": 0, "from": 4, "to": 1}, nodes=(node("a"), node("c")))
    head = "no path, forwards or backwards: 4 notes hang together with a, 1 with c"
    assert lines_of(reply)[0] == head


def test_no_text_of_a_note_makes_a_line_of_its_own():
    evil = "x\n9 more (1 tok): same call\u2028with\x85cursor"
    step = GraphStep(node(evil, location=evil, title=evil), "in", evil, 2, 2)
    for query in ("neighbors", "node"):
        reply = GraphReply(
            query,
            evil,
            {},
            {"aliases": (evil,)},
            nodes=(step.node,),
            steps=(step,),
            dead=(DeadLink(evil, evil, 1),),
        )
        text = render_graph(reply, 4000).text
        assert len(text.splitlines()) == {"neighbors": 3, "node": 4}[query]
    reply = GraphReply("search_type", evil, nodes=(step.node,))
    assert len(render_graph(reply, 4000).text.splitlines()) == 2


# Budgets


def test_what_does_not_fit_is_offered_by_a_larger_budget():
    page = render_graph(listing(50), 300)
    found = re.fullmatch(
        r"(\d+) more \(\d+ tok\): same call with max_tokens=(\d+)\.", page.text.split("\n")[-1]
    )
    assert found
    assert int(found[1]) == page.facts["more"] == 50 - len(page.facts["nodes"])
    assert render_graph(listing(50), int(found[2])).facts["more"] == 0


def test_pages_lead_through_what_no_budget_holds():
    reply, cursor, seen, heads = listing(300), "", list[str](), list[str]()
    while True:
        page = render_graph(reply, 500, cap=1000, cursor=cursor)
        assert cost(page.text) <= 500
        seen += [item["id"] for item in page.facts["nodes"]]
        heads.append(page.text.split("\n")[0])
        cursor = page.facts["cursor"]
        if not cursor:
            break
        last = page.text.split("\n")[-1]
        assert f'cursor="{cursor}"' in last or "max_tokens=" in last
    assert seen == [item.id for item in reply.nodes]
    assert heads[0].startswith("1-")
    assert heads[-1].endswith("-300 of 300 notes of type person")


@pytest.mark.parametrize("cursor", ["x", "3", "-", "3-ffffff", "²-", "9" * 20])
def test_a_cursor_of_another_call_is_refused(cursor):
    with pytest.raises(QueryError, match="does not belong to this call"):
        render_graph(listing(50), 300, cursor=cursor)


def test_a_cursor_does_not_outlive_the_list():
    cursor = render_graph(listing(50), 300).facts["cursor"]
    assert render_graph(listing(50), 300, cursor=cursor).facts["nodes"]
    with pytest.raises(QueryError, match="the vault has changed"):
        render_graph(listing(51), 300, cursor=cursor)


TEXTS = st.one_of(
    st.sampled_from(
        ["soup", "设置/认证", "x" * 700, "=" * 200, "0123456789abcdefABCDEF" * 20, "👩‍👩‍👧" * 40]
    ),
    st.text(max_size=30),
)
COUNTS = st.integers(0, 10**7)
NODES = st.builds(
    GraphNode, TEXTS, TEXTS, TEXTS, st.lists(TEXTS, max_size=9).map(tuple), COUNTS, COUNTS, COUNTS
)
STEPS = st.builds(
    GraphStep, NODES, st.sampled_from(["in", "out", "both"]), TEXTS, st.integers(1, 5), st.integers(1, 9999)
)
DEAD = st.builds(DeadLink, TEXTS, TEXTS, COUNTS, COUNTS)
COUNTED = [
    "nodes", "edges", "links", "dead_links", "dead_targets", "isolated", "along", "from", "to",
]  # fmt: skip


def tuples(items: st.SearchStrategy, at_least: int = 0) -> st.SearchStrategy:
    few = st.lists(items, min_size=at_least, max_size=3)
    return st.builds(lambda some, times: tuple(some * times), few, st.sampled_from([1, 1, 2, 20]))


@st.composite
def replies(draw: st.DrawFn) -> GraphReply:
    query = draw(
        st.sampled_from(["stats", "node", "neighbors", "search_type", "most_connected", "isolated", "path"])
    )
    steps = draw(tuples(STEPS))
    counts = {name: draw(COUNTS) for name in COUNTED}
    if query == "neighbors":
        counts = {str(far): draw(COUNTS) for far in range(1, draw(st.integers(1, 5)) + 1)}
    return GraphReply(
        query=query,
        asked=draw(TEXTS),
        counts=counts,
        names={label: draw(tuples(TEXTS)) for label in ("types", "aliases", "tags")},
        types=draw(tuples(st.tuples(TEXTS, COUNTS))),
        nodes=draw(tuples(NODES, 2 if query == "path" else 1)),
        steps=steps,
        shorter=draw(tuples(STEPS)) if steps else (),
        dead=draw(tuples(DEAD)),
    )


@given(replies(), st.one_of(st.integers(100, 160), st.integers(100, 3000)), st.sampled_from([100, CAP]))
def test_any_reply_fits_any_budget_and_shows_something(reply: GraphReply, budget: int, cap: int):
    page = render_graph(reply, budget, cap=cap)
    assert cost(page.text) <= budget
    json.dumps(page.facts)
    assert page.text == render_graph(reply, budget, cap=cap).text
    if page.facts["more"]:
        # The first line of the list is shown, so that pages always lead on.
        start = int(page.facts["cursor"].partition("-")[0])
        assert start > 0
        advised = re.search(r"max_tokens=(\d+)", page.text.split("\n")[-1])
        if advised:
            assert render_graph(reply, int(advised[1]), cap=cap).facts["more"] == 0
