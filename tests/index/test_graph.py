"""The graph of links: what is an edge, how notes are called, and what each query says."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from index_world import World

from searchsvc.errors import NotFound, QueryError
from searchsvc.graph_items import GraphReply
from searchsvc.index.graph import Graph
from searchsvc.index.node_names import Named, Names, fold, make_ids


def graph_of(world: World, notes: dict[str, str]) -> Graph:
    for path, text in notes.items():
        world.write(path, text)
    world.index()
    with world.reader.pinned() as (_, catalog):
        return Graph([("notes", catalog)])


def ids(reply: GraphReply) -> list[str]:
    return [node.id for node in reply.nodes]


def steps(reply: GraphReply) -> list[tuple[str, str, str, int]]:
    return [(step.via, step.direction, step.node.id, step.distance) for step in reply.steps]


SMALL = {
    "garden/tomatoes.md": "---\ntype: Plant\naliases: [love apples]\ntags: [red]\n---\n# Tomatoes\n\n"
    "## Watering\n\nSee [[compost]], [[compost#Heat|heat]] and [[#Watering]].\n",
    "garden/compost.md": "---\nTYPE: [Soil, plant]\n---\n# Compost\n\n"
    "Feeds [them](tomatoes.md#watering). `[[soup]]`\n\n```\n[[soup]]\n```\n",
    "kitchen/soup.md": "# Soup\n\nOf ![[love apples]], see [[garden/tomatoes]] and [[stock]].\n",
    "home.md": "# Home\n\n[[soup]] [no](gone.md) [no](./gone.md) [[Stock]]\n",
    "alone.md": "# A note for itself\n\n[[alone]]\n",
}


@pytest.fixture
def small(world: World) -> Graph:
    return graph_of(world, SMALL)


def test_stats_count_edges_once_and_dead_links_apart(small):
    reply = small.ask("stats")
    assert reply.counts == {
        "nodes": 5, "edges": 4, "links": 6, "dead_links": 4, "dead_targets": 2, "isolated": 1,
    }  # fmt: skip
    assert reply.types == (("untyped", 3), ("Plant", 2), ("Soil", 1))
    assert [(link.target, link.links, link.source, link.line) for link in reply.dead] == [
        ("gone.md", 2, "home", 3),
        ("Stock", 2, "home", 3),
    ]


def test_stats_list_as_many_missing_notes_as_asked_for(small):
    reply = small.ask("stats", depth=1)
    assert len(reply.dead) == 1
    assert reply.counts["dead_targets"] == 2


def test_dead_markdown_links_to_one_file_are_one_target_from_whatever_folder(world):
    graph = graph_of(world, {"a/b/x.md": "[x](../../ref/set.md)", "y.md": "[x](ref/set.md) [x](/ref/set.md)"})
    assert [(link.target, link.links) for link in graph.stats().dead] == [("ref/set.md", 3)]


def test_a_node_tells_its_names_its_links_and_its_dead_links(small):
    reply = small.node("tomatoes")
    assert reply.names == {"types": ("Plant",), "aliases": ("love apples",), "tags": ("red",)}
    assert (reply.nodes[0].links_in, reply.nodes[0].links_out, reply.nodes[0].dead) == (2, 1, 0)
    assert steps(reply) == [("tomatoes", "both", "compost", 1), ("tomatoes", "in", "soup", 1)]
    assert [step.links for step in reply.steps] == [3, 2]
    assert [(link.target, link.line) for link in small.node("soup").dead] == [("stock", 3)]


def test_neighbors_go_in_any_direction_and_name_the_note_before(small):
    assert steps(small.neighbors("home", 3)) == [
        ("home", "out", "soup", 1),
        ("soup", "out", "tomatoes", 2),
        ("tomatoes", "both", "compost", 3),
    ]
    assert small.neighbors("home", 2).counts == {"1": 1, "2": 1}
    assert steps(small.neighbors("alone", 5)) == []


def test_a_type_is_found_in_any_letter_case_and_in_lists(small):
    assert ids(small.of_type("PLANT")) == ["compost", "tomatoes"]
    assert ids(small.of_type("[[soil]]")) == ["compost"]
    assert ids(small.of_type("untyped")) == ["alone", "home", "soup"]


def test_an_unknown_or_missing_type_is_answered_with_those_there_are(small):
    with pytest.raises(NotFound, match="no note has type 'plants'; there are: Plant, Soil; 'untyped'"):
        small.of_type("plants")
    with pytest.raises(QueryError, match="needs node_id, a type; there are: Plant, Soil"):
        small.of_type(" ")


@pytest.mark.parametrize(
    ("written", "types"),
    [
        ("type: person", ["person"]),
        ("type: '[[Person|someone]]'", ["Person"]),
        ("type: 3", ["3"]),
        ("type: [a, null, A, '']", ["A"]),
        ("type:", ["untyped"]),
        ("type: []", ["untyped"]),
        ("Type: x\ntype: y", ["y"]),
        ("Type: x\ntype:", ["x"]),
        ("types: x", ["untyped"]),
    ],
)
def test_types_are_read_as_people_write_them(world, written, types):
    graph = graph_of(world, {"a.md": f"---\n{written}\n---\ntext\n"})
    assert [name for name, _ in graph.stats().types] == types


def test_the_most_connected_come_first_and_of_equals_those_linked_to(small):
    assert ids(small.most_connected()) == ["tomatoes", "compost", "soup", "home"]
    assert ids(small.most_connected(2)) == ["tomatoes", "compost"]


def test_of_a_vault_without_links_none_is_called_connected_or_linked(world):
    graph = graph_of(world, {"a.md": "# A\n", "b.md": "# B\n\n[[nowhere]]\n"})
    reply = graph.most_connected()
    assert not reply.nodes and reply.counts == {"nodes": 2, "isolated": 2}
    with pytest.raises(NotFound) as error:
        graph.node("zzzzzz")
    assert "linked" not in str(error.value)
    with pytest.raises(QueryError, match="for example 'a'; find"):
        graph.node("")


def test_isolated_notes_have_no_edges_whatever_they_say_of_themselves(small):
    assert ids(small.isolated()) == ["alone"]


def test_a_path_follows_links_and_tells_of_a_shorter_one_against_them(world):
    graph = graph_of(world, {"a.md": "[[b]]", "b.md": "[[c]]", "c.md": "[[d]]", "d.md": "[[a]]"})
    reply = graph.ask("path", "a>d")
    assert steps(reply) == [("a", "out", "b", 1), ("b", "out", "c", 2), ("c", "out", "d", 3)]
    assert [(step.via, step.direction, step.node.id) for step in reply.shorter] == [("a", "in", "d")]
    assert reply.counts == {"along": 1}
    assert steps(graph.ask("path", "d -> A.md")) == [("d", "out", "a", 1)]


def test_a_path_goes_against_links_when_there_is_no_other(small):
    reply = small.ask("path", "compost>home")
    assert steps(reply) == [
        ("compost", "both", "tomatoes", 1),
        ("tomatoes", "in", "soup", 2),
        ("soup", "in", "home", 3),
    ]
    assert reply.counts == {"along": 0}
    assert not reply.shorter


def test_without_a_path_the_reply_says_how_much_hangs_together(small):
    reply = small.ask("path", "home>alone")
    assert not reply.steps
    assert reply.counts == {"along": 0, "from": 4, "to": 1}


def test_a_name_in_a_path_may_hold_the_sign(world):
    graph = graph_of(world, {"a > b.md": "[[c]]", "c.md": ""})
    assert steps(graph.ask("path", "a > b>c")) == [("a > b", "out", "c", 1)]
    assert steps(graph.ask("path", "c>a > b")) == [("c", "in", "a > b", 1)]


@pytest.mark.parametrize("pair", ["", "tomatoes", ">", "tomatoes>", "> tomatoes"])
def test_a_path_needs_two_notes(small, pair):
    with pytest.raises(QueryError, match="expected two notes as 'a>b', for example 'tomatoes>compost'"):
        small.ask("path", pair)


def test_a_path_to_the_note_itself_is_refused(small):
    with pytest.raises(QueryError, match="are the same note"):
        small.ask("path", "soup>kitchen/soup.md")


def test_many_signs_in_a_path_take_no_long_time(small):
    with pytest.raises(NotFound):
        small.ask("path", "x>" * 5000 + "x")


@pytest.mark.parametrize(
    "asked",
    [
        "tomatoes", "TOMATOES", " tomatoes ", "tomatoes.md", "garden/tomatoes.md", "garden/tomatoes",
        "Garden/Tomatoes", "garden_tomatoes", "./garden/tomatoes.md", "/garden/tomatoes", "garden\\tomatoes",
        "notes:garden/tomatoes.md", "notes/garden/tomatoes.md", "love apples", "Love  Apples",
        "garden/tomatoes.md#watering", "tomatoes#watering", "[[tomatoes]]", "![[garden/tomatoes#Watering|x]]",
    ],
)  # fmt: skip
def test_a_note_is_found_by_whatever_it_may_be_called(small, asked):
    assert small.node(asked).asked == "tomatoes"


def test_a_title_names_a_note(small):
    assert small.node("a note for itself").asked == "alone"


@pytest.mark.parametrize(
    ("asked", "near"),
    [("tomatos", "tomatoes"), ("toma", "tomatoes"), ("love aples", "tomatoes"), ("x/soups.md#y", "soup")],
)
def test_an_unknown_note_is_answered_with_the_nearest_ids(small, asked, near):
    with pytest.raises(NotFound, match=f"nearest ids: {near}; give an id as node_id"):
        small.node(asked)


def test_without_any_near_id_the_most_linked_are_named(small):
    with pytest.raises(NotFound, match="nor any like it; most linked: tomatoes, compost, soup;"):
        small.neighbors("zzz")


@pytest.mark.parametrize("query", ["node", "neighbors"])
def test_a_missing_node_id_is_answered_with_an_example(small, query):
    with pytest.raises(QueryError, match=f"query '{query}' needs node_id.* for example 'tomatoes'"):
        small.ask(query, " ")


@pytest.mark.parametrize(
    ("query", "depth", "expected"),
    [
        ("neighbors", 0, "1 to 5"), ("neighbors", 6, "1 to 5"), ("most_connected", 0, "1 to 100"),
        ("most_connected", 101, "1 to 100"), ("stats", -1, "1 to 100000"),
    ],
)  # fmt: skip
def test_a_depth_out_of_bounds_is_refused(small, query, depth, expected):
    with pytest.raises(QueryError, match=f"depth is {depth}, expected {expected}"):
        small.ask(query, "soup", depth)


def test_an_unknown_query_is_answered_with_those_there_are(small):
    with pytest.raises(QueryError, match="expected one of: stats, node, .*; did you mean 'neighbors'"):
        small.ask("neighbours")


def test_an_error_quotes_little_and_on_one_line(small):
    with pytest.raises(NotFound) as caught:
        small.node("x\n99 notes" + "y" * 5000)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_an_empty_vault_has_stats_and_no_notes(world):
    graph = graph_of(world, {})
    assert graph.stats().counts["nodes"] == 0
    assert not graph.isolated().nodes
    assert not graph.most_connected().nodes
    for query in ("node", "neighbors"):
        with pytest.raises(NotFound, match="no notes are indexed here"):
            graph.ask(query, "x")
    with pytest.raises(QueryError):
        graph.ask("path", "")


# Ids


def test_notes_that_share_a_stem_are_called_by_their_paths(world):
    graph = graph_of(world, {"a/design.md": "[[b/design]]", "b/Design.md": "", "other.md": "[[a/design]]"})
    assert ids(graph.most_connected()) == ["a_design", "b_design", "other"]
    assert steps(graph.node("a/design")) == [
        ("a_design", "out", "b_design", 1),
        ("a_design", "in", "other", 1),
    ]
    with pytest.raises(QueryError, match="'Design' means 2 notes; .* node_id: a_design, b_design"):
        graph.node("Design")


def test_an_alias_of_several_notes_is_answered_with_the_candidates(world):
    note = "---\naliases: [both]\n---\n"
    graph = graph_of(world, {"a.md": note, "b.md": note, "c.md": "# Both\n"})
    with pytest.raises(QueryError, match="'both' means 3 notes; .* node_id: a, b, c"):
        graph.node("both")


def test_many_candidates_are_counted(world):
    graph = graph_of(world, {f"{folder}/index.md": "" for folder in "abcdefgh"})
    with pytest.raises(QueryError, match="means 8 notes; .*: a_index, b_index, .* and 3 more"):
        graph.node("index")


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["x.md", "y/z.md"], ["x", "z"]),
        (["a/b.md", "c/b.md"], ["a_b", "c_b"]),
        (["a/b.md", "a/b.markdown"], ["a_b.md", "a_b.markdown"]),
        (["a.md", "A.md"], ["a-2", "a-1"]),
        (["a_b.md", "a/b.md", "c/b.md"], ["a_b", "a_b-1", "c_b"]),
        (["Café.md", "x/Cafe\u0301.md"], ["café", "x_café"]),
        (["a\nb.md"], ["a b"]),
        (["设置/认证.md"], ["认证"]),
    ],
)
def test_ids_are_stems_or_paths_and_never_the_same(paths, expected):
    assert make_ids([Named("notes", path) for path in paths], several_roots=False) == expected


NAMES = st.text(st.sampled_from("aAbßs_-.1 é\u0301"), min_size=1, max_size=3)
PATHS = st.builds(
    lambda folders, suffix: "/".join(folders) + suffix,
    st.lists(NAMES, min_size=1, max_size=3),
    st.sampled_from([".md", ".markdown", ".MD"]),
)


@given(st.lists(st.tuples(st.sampled_from(["r", "r_a"]), PATHS), unique=True, max_size=14), st.randoms())
def test_whatever_the_paths_ids_are_unique_stable_and_lead_back(held: list, chance: random.Random):
    notes = [Named(root, path) for root, path in held]
    roots = {root for root, _ in held}
    made = make_ids(notes, several_roots=len(roots) > 1)
    assert len({fold(name) for name in made}) == len(notes)
    shuffled = notes.copy()
    chance.shuffle(shuffled)
    again = dict(zip(shuffled, make_ids(shuffled, several_roots=len(roots) > 1), strict=True))
    assert again == dict(zip(notes, made, strict=True))
    names = Names(notes, made, [])
    for place, name in enumerate(made):
        assert names.find(name) == place


# Roots


def two_roots(tmp_path: Path) -> tuple[World, World]:
    one, two = World(tmp_path / "one"), World(tmp_path / "two")
    one.write("index.md", "[[start]]")
    one.write("start.md", "")
    two.write("index.md", "[[index]] [[start]]")
    two.write("a/index.md", "[[/index]]")
    one.index()
    two.index()
    return one, two


def graph_of_roots(worlds: Sequence[World], root: str = "") -> Graph:
    with worlds[0].reader.pinned() as (_, first), worlds[1].reader.pinned() as (_, second):
        return Graph([("one", first), ("two", second)], root)


def test_the_graph_of_several_roots_has_ids_for_all_and_no_edges_between(tmp_path):
    graph = graph_of_roots(two_roots(tmp_path))
    assert {node.id: node.location for node in graph.most_connected().nodes} == {
        "one_index": "one:index.md", "start": "start.md", "two_index": "two:index.md",
        "a_index": "a/index.md",
    }  # fmt: skip
    assert steps(graph.node("start")) == [("start", "in", "one_index", 1)]
    assert graph.node("one:index.md").asked == "one_index"
    assert graph.node("two/index").asked == "two_index"
    with pytest.raises(QueryError, match="'index#x' means 2 notes; .*: one_index, two_index"):
        graph.node("index#x")


def test_the_graph_of_one_root_tells_paths_as_all_tools_do(tmp_path):
    graph = graph_of_roots(two_roots(tmp_path), "one")
    assert {node.id: node.location for node in graph.most_connected().nodes} == {
        "index": "one:index.md", "start": "start.md",
    }  # fmt: skip
    assert graph.node("one_index").asked == "index"


# Promises


def test_a_graph_says_the_same_however_its_notes_were_indexed(tmp_path):
    paths = list(SMALL)
    replies = []
    for turn, order in enumerate((paths, paths[::-1])):
        world = World(tmp_path / str(turn))
        for path in order:
            world.write(path, SMALL[path])
            world.index()
        with world.reader.pinned() as (_, catalog):
            graph = Graph([("notes", catalog)])
        asked = [("stats", "", 5), ("neighbors", "soup", 5), ("most_connected", "", 9), ("node", "home", 1)]
        replies.append([graph.ask(*question) for question in asked])
    assert replies[0] == replies[1]


def test_a_graph_outlives_the_generation_it_was_read_from(world):
    graph = graph_of(world, SMALL)
    (world.notes / "home.md").unlink()
    world.index()
    assert graph.node("home").nodes[0].links_out == 1
