"""Which vectors the reader's semantic search compares, and how: against cosines of all that is stored."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchsvc.embedding.base import Profile
from searchsvc.errors import EmbeddingError, NotFound, QueryError
from searchsvc.locating import Locator
from searchsvc.reader_models import ModelArguments
from tests.index.index_world import HashEmbedder
from tests.reader_world import ReaderWorld

MODELS = {"wide": 16, "narrow": 8}


class Fake(HashEmbedder):
    def __init__(self, choice):
        super().__init__(MODELS[choice.model])
        self.profile = Profile(choice.model, choice.provider, "0", MODELS[choice.model], max_tokens=100)


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Notes with vectors of two models, the wide one in use; and a wide one of another provider."""
    monkeypatch.setattr("searchsvc.models.load", Fake)
    notes = {f"n{number}.md": f"# Note {number}\n\nWords of {number}.\n" for number in range(20)}
    for provider, model in (("openai", "narrow"), ("ollama", "wide")):
        world = ReaderWorld(tmp_path, notes, model=model, provider=provider)
        world.service.embed()
    return world


def search(world, query="what is it", **options):
    """Return addresses and cosines of everything that is found, best first."""
    found, cursor = [], ""
    while True:
        answer = world.reader.semantic_search_documents(query, cursor=cursor, max_tokens=20_000, **options)
        found += [(hit.id, hit.score) for hit, _ in answer.shown]
        cursor = answer.cursor
        if not cursor or len(found) >= options.get("top_k", 10):
            return found


def stored(world, identity):
    """Return the vectors of all sections as they are stored, by address."""
    found = {}
    with world.service.pinned() as pinned:
        ((_, frame, catalog),) = pinned.roots()
        rows, notes = catalog.sections(frame.table["id"].tolist()), catalog.notes()
        for place, number in enumerate(frame.table["id"].tolist()):
            vectors = frame.vectors(identity).of(place)
            if len(vectors):
                found[f"{notes[rows[number].note].path}#{rows[number].section.slug}"] = np.array(vectors)
    return found


def brute_force(world, identity, vector):
    unit = np.array(vector) / np.linalg.norm(vector)
    scores = {name: float((rows @ unit).max()) for name, rows in stored(world, identity).items()}
    return sorted(scores.items(), key=lambda pair: -pair[1])


def identities(world):
    return {(card.name, card.facts["provider"]): card.identity for card in world.service.models.cards()}


def alike(found, expected):
    assert [name for name, _ in found] == [name for name, _ in expected]
    assert np.allclose([score for _, score in found], [score for _, score in expected], atol=1e-4)


@pytest.mark.proves("R-vectors-exact")
@pytest.mark.parametrize("batch_size", [0, 1, 7, 10_000])
def test_what_is_found_is_what_all_stored_vectors_give(world, batch_size):
    identity = identities(world)["wide", "ollama"]
    vector = np.random.default_rng(5).normal(size=16)
    expected = brute_force(world, identity, vector)
    assert len(expected) == 20
    found = search(world, "", query_vector=vector.tolist(), top_k=20, batch_size=batch_size)
    alike(found, expected)
    by_words = brute_force(world, identity, HashEmbedder(16).encode_query("what is it"))
    alike(search(world, top_k=20, batch_size=batch_size), by_words)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-1e30, 1e30, allow_nan=False), min_size=8, max_size=8), st.floats(-1, 1))
def test_scores_are_cosines_and_none_is_below_the_least(shared, vector, least):
    if not 1e-30 < float(np.linalg.norm(vector)):
        return
    identity = identities(shared)["narrow", "openai"]
    expected = [pair for pair in brute_force(shared, identity, vector) if abs(pair[1] - least) > 1e-4]
    found = search(shared, "", query_vector=vector, min_score=least, top_k=200)
    names = {name for name, score in found if abs(score - least) > 1e-4}
    assert names == {name for name, score in expected if score > least}
    assert all(score >= least - 1e-4 for _, score in found)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("searchsvc.models.load", Fake)
        world = ReaderWorld(
            tmp_path_factory.mktemp("shared"), {f"{n}.md": f"# N\n\nWords {n}.\n" for n in range(30)},
            model="narrow", provider="openai",
        )  # fmt: skip
        world.service.embed()
        yield world


def test_a_vector_chooses_no_profile_but_that_in_use(world):
    with pytest.raises(
        QueryError, match="query_vector has 8 numbers, profile wide has 16 dimensions.*narrow"
    ):
        search(world, "", query_vector=[1.0] * 8)
    found = search(world, "", query_vector=[1.0] * 8, model=ModelArguments(model="narrow"), top_k=20)
    alike(found, brute_force(world, identities(world)["narrow", "openai"], [1.0] * 8))


@pytest.mark.parametrize(
    "vector",
    [[0.0] * 16, [math.nan] + [1.0] * 15, [math.inf] + [1.0] * 15, [-0.0] * 16],
    ids=["zero", "nan", "inf", "minus zero"],
)
def test_a_vector_without_direction_is_refused(world, vector):
    with pytest.raises(QueryError, match="has no direction"):
        search(world, "", query_vector=vector)


@pytest.mark.parametrize("scale", [1e-310, 1e-150, 1e-30, 1e30, 1e150, 1e307])
def test_length_of_a_vector_does_not_count(world, scale):
    vector = np.random.default_rng(3).normal(size=16)
    scaled = search(world, "", query_vector=(vector * scale).tolist())
    alike(scaled, search(world, "", query_vector=vector.tolist()))


def test_only_the_latest_notes_are_compared_when_so_asked_and_that_is_said(world):
    answer = world.reader.semantic_search_documents("what", scan_limit=5, top_k=20)
    assert {hit.path for hit, _ in answer.shown} == {f"n{number}.md" for number in range(5)}
    assert "only 5 of 20 sections were compared" in answer.text
    for batch_size in (1, 3, 50):
        again = world.reader.semantic_search_documents("what", scan_limit=5, top_k=20, batch_size=batch_size)
        assert [hit.id for hit, _ in again.shown] == [hit.id for hit, _ in answer.shown]
    whole = world.reader.semantic_search_documents("what", scan_limit=20, top_k=20)
    assert "were compared" not in whole.text
    assert len(whole.shown) == 20


def test_a_limit_counts_among_what_the_filters_leave(world):
    sha = "ab" * 32
    world.write(
        "old.md", f"---\nimporter: 1\nsha256: {sha}\nfile_type: pdf\n---\n# Old\n\nWords.\n", age=10**6
    )
    world.service.index()
    world.service.embed()
    found = search(world, scan_limit=1, file_types=["pdf"])
    assert [name.partition("#")[0] for name, _ in found] == ["old.md"]
    assert "old.md" not in str(search(world, file_types=["markdown"], top_k=200))
    assert search(world, file_types=["epub"]) == []


def test_a_document_or_section_may_be_chosen(world):
    (only,) = search(world, locator=Locator("n7.md"))
    assert only[0] == "n7.md#_intro"
    assert [name for name, _ in search(world, locator=Locator("n7.md#_intro"))] == ["n7.md#_intro"]
    answer = world.reader.semantic_search_documents("x", Locator("gone.md", title="Note 3"))
    assert "found by title" in answer.text
    assert answer.shown[0][0].path == "n3.md"


def test_a_document_whose_name_is_a_pattern_is_that_document(world):
    world.write("n[1]*.md", "# Odd\n\nOdd words.\n")
    world.service.index()
    world.service.embed()
    assert {name.partition("#")[0] for name, _ in search(world, locator=Locator("n[1]*.md"))} == {"n[1]*.md"}


def test_pages_hold_everything_once_and_belong_to_their_question(world):
    first = world.reader.semantic_search_documents("what", top_k=6, max_tokens=400)
    assert first.cost <= 400
    assert first.cursor
    seen, cursor = [hit.id for hit, _ in first.shown], first.cursor
    while cursor:
        page = world.reader.semantic_search_documents("what", top_k=6, max_tokens=400, cursor=cursor)
        seen += [hit.id for hit, _ in page.shown]
        cursor = page.cursor
    assert len(seen) == len(set(seen)) == 20
    for changed in ({"min_score": 0.5}, {"scan_limit": 3}, {"model": ModelArguments("ollama")}):
        with pytest.raises(QueryError, match="does not belong to this question"):
            world.reader.semantic_search_documents("what", top_k=6, cursor=first.cursor, **changed)


@pytest.mark.parametrize(
    ("model", "chosen"),
    [
        (ModelArguments(), ("wide", "ollama")),
        (ModelArguments("openai"), ("narrow", "openai")),
        (ModelArguments("Open_AI"), ("narrow", "openai")),
        (ModelArguments(model="narrow"), ("narrow", "openai")),
        (ModelArguments(dimension=8), ("narrow", "openai")),
        (ModelArguments("ollama", "wide", 16), ("wide", "ollama")),
        (ModelArguments(embedding_ollama_model="wide"), ("wide", "ollama")),
        (ModelArguments(model="{narrow}"), ("narrow", "openai")),
    ],
)
def test_a_profile_is_chosen_by_any_of_its_facts(world, model, chosen):
    known = identities(world)
    if model.model.startswith("{"):
        model = ModelArguments(model=known[chosen])
    expected = brute_force(world, known[chosen], HashEmbedder(MODELS[chosen[0]]).encode_query("what is it"))
    alike(search(world, model=model, top_k=20), expected)


@pytest.mark.parametrize(
    "model",
    [
        ModelArguments("nowhere"), ModelArguments(model="none"), ModelArguments(dimension=5),
        ModelArguments("openai", "wide"), ModelArguments(dimension=-16),
        ModelArguments(embedding_ollama_model="narrow"),
    ],
)  # fmt: skip
def test_an_unknown_profile_is_refused_with_those_that_exist(world, model):
    with pytest.raises(NotFound, match=r"no vectors here of .*there are: narrow .*8 dim.*wide .*16 dim"):
        search(world, model=model)


def test_several_that_fit_are_listed_unless_one_is_in_use(tmp_path, monkeypatch):
    monkeypatch.setattr("searchsvc.models.load", Fake)
    for provider in ("openai", "lmstudio"):
        world = ReaderWorld(tmp_path, model="narrow", provider=provider)
        world.service.embed()
    assert search(world, model=ModelArguments(model="narrow"))
    monkeypatch.setitem(MODELS, "third", 4)
    world = ReaderWorld(tmp_path, model="third", provider="ollama")
    world.service.embed()
    with pytest.raises(QueryError, match="several profiles fit.*lmstudio.*openai|openai.*lmstudio"):
        search(world, model=ModelArguments(model="narrow"))


def test_without_vectors_it_says_how_to_make_some(tmp_path):
    world = ReaderWorld(tmp_path)
    with pytest.raises(EmbeddingError, match="needs vectors"):
        search(world)
    with pytest.raises(NotFound, match="searchsvc embed"):
        search(world, "", query_vector=[1.0, 2.0])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"query": ""}, "found neither"),
        ({"query": "x", "query_vector": [1.0]}, "found both"),
        ({"query": "x", "top_k": 0}, "1 to 200"),
        ({"query": "x", "top_k": 201}, "1 to 200"),
        ({"query": "x", "min_score": 1.1}, "from -1 to 1"),
        ({"query": "x", "min_score": math.nan}, "from -1 to 1"),
        ({"query": "x", "scan_limit": -1}, "scan_limit is -1"),
        ({"query": "x", "batch_size": -1}, "batch_size is -1"),
        ({"query": "x", "file_types": ["doc"]}, "markdown, pdf, epub"),
    ],
)
def test_what_is_out_of_bounds_is_refused(world, arguments, said):
    with pytest.raises(QueryError, match=said):
        world.reader.semantic_search_documents(**arguments)


def test_replies_fit_whatever_the_budget(world):
    for budget in (100, 137, 260, 900):
        cursor = ""
        for _ in range(3):
            answer = world.reader.semantic_search_documents(
                "q" * 900,
                Locator("x" * 300, title="Note 3"),
                max_tokens=budget,
                cursor=cursor,
            )
            assert answer.cost <= budget
            cursor = answer.cursor
            if not cursor:
                break
