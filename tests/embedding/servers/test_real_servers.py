"""The product's clients against a real server of llama.cpp, as OpenAI's API and as LM Studio's."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import children
import llama_server
import numpy as np
import pytest
import texts

from searchsvc import embedding
from searchsvc.embedding import ModelChoice, Outcome, Partial, Passage, openai
from searchsvc.embedding.local import OnnxEmbedder
from searchsvc.embedding.remote import RemoteEmbedder
from searchsvc.errors import EmbeddingError

LOADERS = {"openai": openai.load, "lmstudio": openai.load_lmstudio}
SHORTEST_BATCH = 64
PATIENCE = 120.0
"""Seconds that a question may take: the machine may be busy with other tests."""

Load = Callable[..., RemoteEmbedder]


@pytest.fixture
def load() -> Iterator[Load]:
    """Load a model of a server as the product does, without the waits between two tries."""
    loaded: list[RemoteEmbedder] = []

    def make(
        server: children.Child, provider: str = "openai", path: str = "/v1", **settings
    ) -> RemoteEmbedder:
        chosen = {
            "model": llama_server.MODEL,
            "base_url": f"{server.address}{path}",
            "query_seconds": PATIENCE,
        }
        choice = ModelChoice(provider=provider, **chosen | settings)
        loaded.append(LOADERS[provider](choice, sleep=lambda seconds, stop: None))
        return loaded[-1]

    yield make
    for embedder in loaded:
        embedder.close()


@pytest.fixture(params=LOADERS)
def embedder(request: pytest.FixtureRequest, llama: children.Child, load: Load) -> RemoteEmbedder:
    return load(llama, request.param)


def passages(contents: Iterable[str]) -> Iterator[Passage]:
    return (Passage("", content) for content in contents)


def only_row(outcome: Outcome) -> np.ndarray:
    assert not isinstance(outcome, Partial), outcome.reason
    assert outcome.shape == (1, llama_server.DIMENSION)
    return outcome[0]


def assert_same(rows: Iterable[np.ndarray], others: Iterable[np.ndarray], cosine: float = 0.9999) -> None:
    for number, (row, other) in enumerate(zip(rows, others, strict=True)):
        assert row @ other >= cosine, number


def test_the_model_made_for_the_server_is_the_shipped_one(load: Load, llama, minilm: OnnxEmbedder):
    served = load(llama)
    queries = [served.encode_query(text) for text in texts.VARIED]
    assert_same(queries, map(minilm.encode_query, texts.VARIED), 0.97)


@pytest.mark.parametrize("provider", LOADERS)
def test_a_provider_is_reached_by_its_name(llama, provider):
    choice = ModelChoice(provider=provider, model=llama_server.MODEL, base_url=f"{llama.address}/v1/")
    embedder = embedding.load(choice)
    assert isinstance(embedder, RemoteEmbedder)
    assert embedder.profile.provider == provider
    embedder.close()


def test_the_dimension_is_learned_from_the_server(embedder: RemoteEmbedder):
    assert embedder.profile.dimension == llama_server.DIMENSION
    assert embedder.profile.name == llama_server.MODEL


def test_questions_and_passages_are_unit_vectors_and_the_same_for_a_text(embedder: RemoteEmbedder):
    queries = [embedder.encode_query(text) for text in texts.VARIED]
    rows = [only_row(outcome) for outcome in embedder.encode_passages(passages(texts.VARIED))]
    assert np.linalg.norm([*queries, *rows], axis=1) == pytest.approx(1, abs=1e-5)
    assert_same(queries, rows)


def test_both_providers_give_the_same_vectors(load: Load, llama):
    by_openai, by_lmstudio = load(llama, "openai"), load(llama, "lmstudio")
    assert_same(map(by_openai.encode_query, texts.VARIED), map(by_lmstudio.encode_query, texts.VARIED))
    assert by_openai.profile.identity != by_lmstudio.profile.identity


@pytest.fixture(scope="module")
def two_hundred(llama: children.Child) -> tuple[list[str], np.ndarray]:
    """Texts of mixed lengths, and the vector that each has when it is sent alone."""
    address, model = f"{llama.address}/v1", llama_server.MODEL
    choice = ModelChoice(provider="openai", model=model, base_url=address, query_seconds=PATIENCE)
    embedder, made = openai.load(choice), texts.numbered(200)
    rows = np.stack([embedder.encode_query(text) for text in made])
    embedder.close()
    return made, rows


@pytest.mark.parametrize("settings", [{}, {"batch_texts": 1}, {"batch_texts": 64, "concurrency": 4}], ids=str)
def test_two_hundred_passages_of_mixed_lengths_keep_their_order(load: Load, llama, two_hundred, settings):
    wanted, alone = two_hundred
    outcomes = load(llama, **settings).encode_passages(passages(wanted))
    rows = np.stack([only_row(outcome) for outcome in outcomes])
    assert ((rows @ alone.T).argmax(axis=1) == np.arange(len(wanted))).all()
    assert_same(rows, alone)


def test_blank_passages_and_questions_never_reach_the_server(embedder: RemoteEmbedder):
    blank = ("", "  \n\t", "\x00")
    outcomes = list(embedder.encode_passages(passages(["first", *blank, "last"])))
    assert [len(outcome) for outcome in outcomes] == [1, 0, 0, 0, 1]
    assert_same([outcomes[0][0], outcomes[-1][0]], map(embedder.encode_query, ("first", "last")))
    assert not embedder.encode_query(" ").any()


def test_text_no_json_or_tokeniser_likes_is_embedded(embedder: RemoteEmbedder):
    awkward = (
        "half a \ud83d surrogate",
        "nul \x00 inside",
        "\u202eright to left",
        "e\u0301" * 40,
        "====" * 30,
    )
    rows = [only_row(outcome) for outcome in embedder.encode_passages(passages(awkward))]
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-5)


def test_a_text_beyond_the_physical_batch_is_shortened_and_all_others_are_whole(load: Load, start_llama):
    embedder = load(start_llama(batch=SHORTEST_BATCH), max_tokens=400)
    short, long = texts.numbered(40, longest=20), texts.of_tokens(3 * SHORTEST_BATCH // 2)
    wanted = [*short[:7], long, *short[7:], f"again {long}"]
    outcomes = list(embedder.encode_passages(passages(wanted)))
    cut = [outcome for outcome in outcomes if isinstance(outcome, Partial)]
    assert [len(partial.rows) for partial in cut] == [1, 1]
    assert all("too large" in partial.reason and long[:30] not in partial.reason for partial in cut)
    assert outcomes[7] is cut[0]
    whole = [outcome for outcome in outcomes if not isinstance(outcome, Partial)]
    assert_same(map(only_row, whole), map(embedder.encode_query, short))


def test_a_text_beyond_the_physical_batch_becomes_windows_once_max_tokens_says_so(load: Load, start_llama):
    embedder = load(start_llama(batch=SHORTEST_BATCH), max_tokens=SHORTEST_BATCH * 3 // 4)
    outcome = next(embedder.encode_passages(passages([texts.of_tokens(3 * SHORTEST_BATCH)])))
    assert not isinstance(outcome, Partial), outcome.reason
    assert len(outcome) > 3


def test_a_question_beyond_the_physical_batch_is_shortened(load: Load, start_llama):
    embedder = load(start_llama(batch=SHORTEST_BATCH))
    question = texts.of_tokens(SHORTEST_BATCH)
    assert embedder.encode_query(question) @ embedder.encode_query(question[: len(question) // 2]) > 0.8


def test_the_address_without_v1_is_an_error_that_says_so(load: Load, llama):
    with pytest.raises(EmbeddingError, match="base_url") as caught:
        load(llama, path="")
    assert llama.address in str(caught.value)


@pytest.mark.parametrize("path", ["/v1/v1", "/v2", "/v1/embeddings"])
def test_an_address_with_another_path_is_an_error_that_shows_what_was_tried(load: Load, llama, path):
    with pytest.raises(EmbeddingError, match="base_url") as caught:
        load(llama, path=path)
    assert f"{llama.address}{path}/embeddings" in str(caught.value)


def test_dimensions_that_the_server_ignores_are_an_error_with_both_numbers(load: Load, llama):
    with pytest.raises(EmbeddingError, match=r"\b384\b.*\b128\b|\b128\b.*\b384\b"):
        load(llama, dimensions=128)


def test_the_models_own_length_may_be_asked_for(load: Load, llama):
    assert load(llama, dimensions=llama_server.DIMENSION).profile.dimension == llama_server.DIMENSION


def test_a_server_that_stops_in_a_job_is_an_error_with_its_address_and_keeps_what_was_given(
    load: Load, llama, start_llama
):
    server = start_llama()
    embedder, wanted = load(server, batch_texts=4), texts.numbered(200, longest=30)
    outcomes = embedder.encode_passages(passages(wanted))
    given = [only_row(next(outcomes)) for _ in range(10)]
    server.stop()
    with pytest.raises(EmbeddingError, match="not reachable|breaks off") as caught:
        given += map(only_row, outcomes)
    assert server.address in str(caught.value)
    assert 10 <= len(given) < len(wanted)
    assert_same(given, map(load(llama).encode_query, wanted[: len(given)]))


def test_a_question_to_a_server_that_is_gone_is_an_error_with_its_address(load: Load, start_llama):
    server = start_llama()
    embedder = load(server)
    server.stop()
    with pytest.raises(EmbeddingError, match=server.address):
        embedder.encode_query("hello")


def test_a_server_that_is_not_there_is_an_error_with_its_address(load: Load, llama, start_llama):
    server = start_llama()
    server.stop()
    for provider in LOADERS:
        with pytest.raises(EmbeddingError, match=server.address):
            load(server, provider)


def test_two_models_have_two_profiles_and_one_model_at_two_addresses_has_one(load: Load, llama, start_llama):
    here, elsewhere = load(llama), load(start_llama())
    other = load(start_llama(model="minilm-again"), model="minilm-again")
    prefixed = load(llama, query_prefix="query: ", passage_prefix="passage: ")
    assert here.profile.identity == elsewhere.profile.identity
    assert_same([here.encode_query("hello")], [elsewhere.encode_query("hello")])
    assert len({embedder.profile.identity for embedder in (here, other, prefixed)}) == 3


def test_prefixes_are_put_before_questions_and_passages(load: Load, llama):
    plain, prefixed = load(llama), load(llama, query_prefix="query: ", passage_prefix="passage: ")
    assert_same([prefixed.encode_query("red apples")], [plain.encode_query("query: red apples")])
    outcome = next(prefixed.encode_passages(passages(["red apples"])))
    assert_same([only_row(outcome)], [plain.encode_query("passage: red apples")])


def test_the_context_of_a_passage_is_part_of_its_vector(load: Load, llama):
    embedder = load(llama)
    outcome = next(embedder.encode_passages([Passage("Fruit > Apples", "They are red.")]))
    assert_same([only_row(outcome)], [embedder.encode_query("Fruit > Apples\nThey are red.")])


def test_several_threads_may_ask_one_model(load: Load, llama):
    embedder, wanted = load(llama), texts.numbered(60, longest=30)
    alone = [embedder.encode_query(text) for text in wanted]
    fresh, start = load(llama), threading.Barrier(3)

    def embed(_: int) -> list[np.ndarray]:
        start.wait(30)
        return [only_row(outcome) for outcome in fresh.encode_passages(passages(wanted))]

    with ThreadPoolExecutor(3) as pool:
        for rows in pool.map(embed, range(3)):
            assert_same(rows, alone)


def test_a_caller_may_stop_at_any_passage_and_ask_again(load: Load, llama):
    embedder, taken = load(llama, batch_texts=2, concurrency=1), []
    outcomes = embedder.encode_passages(
        Passage("", taken.append(text) or text) for text in texts.numbered(200)
    )
    only_row(next(outcomes))
    outcomes.close()
    assert len(taken) < 50
    assert_same(
        [only_row(next(embedder.encode_passages(passages(["hello"]))))], [embedder.encode_query("hello")]
    )


def test_a_key_opens_the_server_and_no_error_shows_it(load: Load, start_llama, tmp_path: Path):
    server = start_llama(key="sesame-4711")
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.write_text("sesame-4711\n", encoding="utf-8")
    wrong.write_text("sesame-0815\n", encoding="utf-8")
    assert load(server, key_file=right).profile.dimension == llama_server.DIMENSION
    for settings in ({}, {"key_file": wrong}):
        with pytest.raises(EmbeddingError, match="key_file") as caught:
            load(server, **settings)
        assert "sesame" not in str(caught.value)
