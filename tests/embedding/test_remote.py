"""Models at a server: questions, batches, order, faults in the middle, and an end before the end."""

import threading

import numpy as np
import pytest
from fault_server import (
    SECONDS,
    FaultServer,
    Reply,
    Sleeps,
    in_turn,
    openai_body,
    unit_of,
    vector_of,
    where_text,
)

from searchsvc.embedding import ModelChoice, Partial, Passage
from searchsvc.embedding.context import encode_in_context
from searchsvc.embedding.openai import load
from searchsvc.embedding.pieces import MAX_WINDOWS
from searchsvc.embedding.pipeline import GROUPS, PASSAGES_A_TEXT
from searchsvc.embedding.recovery import REFUSED_IN_A_ROW
from searchsvc.embedding.remote import CACHED_QUERIES
from searchsvc.errors import EmbeddingError


class Opened:
    """A server, a model at it, and the waits there would have been."""

    def __init__(self, fault=None, **settings):
        self.server = FaultServer().__enter__()
        self.sleeps = Sleeps()
        self.embedder = load(ModelChoice("m", base_url=self.server.url, **settings), self.sleeps)
        self.server.requests.clear()
        self.server.fault = fault

    def close(self):
        self.embedder.close()
        self.server.__exit__()

    def embed(self, texts):
        return list(self.embedder.encode_passages(Passage("", text) for text in texts))


@pytest.fixture
def opened():
    open_ = []

    def make(fault=None, **settings):
        open_.append(Opened(fault, **settings))
        return open_[-1]

    yield make
    for one in open_:
        one.close()


def is_vector_of(outcome, text):
    return isinstance(outcome, np.ndarray) and np.allclose(outcome[0], unit_of(text), atol=1e-6)


def words(count, start=0):
    return [f"heron number {number}" for number in range(start, start + count)]


# Questions


def test_a_question_is_embedded_once_and_a_blank_one_never(opened):
    here = opened()
    first = here.embedder.encode_query("where do herons nest?")
    first[:] = 0
    again = here.embedder.encode_query(" where do herons nest? ")
    assert np.allclose(again, unit_of("where do herons nest?"), atol=1e-6)
    assert here.embedder.encode_query(" \0\n").tolist() == [0] * 8
    assert len(here.server.requests) == 1


def test_the_cache_of_questions_is_bounded(opened):
    here = opened()
    for text in words(CACHED_QUERIES + 1):
        here.embedder.encode_query(text)
    here.embedder.encode_query(words(1)[0])
    assert len(here.server.requests) == CACHED_QUERIES + 2
    assert len(here.embedder._queries) == CACHED_QUERIES


def test_a_question_is_tried_twice_and_no_more(opened):
    here = opened(lambda _: Reply(503, b"busy"))
    with pytest.raises(EmbeddingError, match=f"openai at {here.server.url} answered 503: busy"):
        here.embedder.encode_query("heron")
    assert len(here.server.requests) == 2
    here.server.fault = in_turn(Reply(502), None)
    assert is_vector_of(here.embedder.encode_query("heron")[None], "heron")


def test_a_question_is_not_held_up_by_a_server_that_asks_for_patience(opened):
    here = opened(lambda _: Reply(429, b"later", {"Retry-After": "60"}))
    with pytest.raises(EmbeddingError, match="429: later"):
        here.embedder.encode_query("heron")
    assert here.sleeps.seconds == []


def test_a_question_that_gets_no_answer_in_time_is_given_up(opened):
    release = threading.Event()
    here = opened(lambda _: release.wait(SECONDS) and None, query_seconds=0.2)
    with pytest.raises(EmbeddingError, match=r"no answer within 0.2 s; .*raise query_seconds"):
        here.embedder.encode_query("heron")
    release.set()


def test_a_question_too_long_for_the_server_is_shortened(opened):
    here = opened(lambda request: Reply(413) if any(len(text) > 300 for text in request.texts) else None)
    assert np.linalg.norm(here.embedder.encode_query("heron " * 90)) == pytest.approx(1)
    assert len(here.server.requests) == 2


def test_a_server_that_went_off_is_named(opened):
    here = opened()
    here.server.__exit__()
    here.embedder.close()
    with pytest.raises(EmbeddingError, match=f"{here.server.url} is not reachable"):
        here.embedder.encode_query("heron")
    here.server.__exit__ = lambda: None


# Batches


@pytest.mark.parametrize(
    "settings", [{}, {"batch_texts": 3}, {"batch_texts": 1, "concurrency": 8}, {"concurrency": 1}]
)
def test_outcomes_come_in_the_order_of_the_passages(opened, settings):
    here = opened(**settings)
    texts = [f"heron {number} " + "wades " * (number * 7 % 40) for number in range(300)]
    outcomes = here.embed(texts)
    assert len(outcomes) == 300
    assert all(is_vector_of(outcome, text.strip()) for outcome, text in zip(outcomes, texts, strict=True))
    limit = settings.get("batch_texts", 32)
    assert max(len(request.texts) for request in here.server.requests) == limit
    assert len(here.server.requests) == -(-300 // limit)


def test_the_texts_of_a_batch_are_of_about_the_same_length(opened):
    here = opened(batch_texts=16, concurrency=4)
    here.embed("x " * (number * 37 % 100 + 1) + str(number) for number in range(128))
    spread = [max(map(len, request.texts)) - min(map(len, request.texts)) for request in here.server.requests]
    assert max(spread) < 100


def test_equal_texts_are_sent_once(opened):
    here = opened()
    passages = [Passage("Notes > Birds", f"heron {number}", "Introduction") for number in range(50)]
    outcomes = list(encode_in_context(here.embedder, passages))
    sent = [text for request in here.server.requests for text in request.texts]
    assert len(outcomes) == 50
    assert sent.count("Introduction") == sent.count("Notes > Birds") == 1
    assert len(sent) == len(set(sent)) == 52


def test_blank_and_unsendable_texts_have_no_rows_and_are_not_sent(opened):
    here = opened()
    outcomes = here.embed(["", "heron", " \n", "\0", "\ud83d", "crane\0 \ud83d!"])
    assert [len(outcome) for outcome in outcomes] == [0, 1, 0, 0, 0, 1]
    assert sorted(here.server.requests[0].texts) == ["crane !", "heron"]
    assert list(here.embedder.encode_passages([])) == []


def test_a_long_text_has_windows_up_to_the_limit(opened):
    here = opened(max_tokens=64)
    (outcome,) = here.embed([" ".join(words(3000))])
    assert outcome.shape == (MAX_WINDOWS, 8)


def test_passages_are_pulled_a_bounded_way_ahead(opened):
    here = opened(batch_texts=4, concurrency=2)
    pulled = []
    passages = (pulled.append(text) or Passage("", text) for text in words(10_000))
    outcomes = here.embedder.encode_passages(passages)
    assert pulled == []
    for taken in range(1, 100):
        next(outcomes)
        assert len(pulled) <= taken + GROUPS * 2 * 4
    outcomes.close()


@pytest.mark.parametrize("text", ["", "the same"])
def test_passages_that_send_nothing_new_are_pulled_a_bounded_way_ahead(opened, text):
    here = opened(batch_texts=4, concurrency=2)
    pulled = []
    outcomes = here.embedder.encode_passages(pulled.append(1) or Passage("", text) for _ in range(100_000))
    next(outcomes)
    assert len(pulled) <= PASSAGES_A_TEXT * GROUPS * 2 * 4
    outcomes.close()


def test_the_server_has_work_while_the_taker_is_busy(opened):
    here = opened(batch_texts=4, concurrency=2)
    outcomes = here.embedder.encode_passages(Passage("", text) for text in words(1000))
    next(outcomes)
    here.server.wait_for(GROUPS * 2)
    outcomes.close()


def test_as_many_requests_as_chosen_are_under_way_at_once(opened):
    together = threading.Barrier(3)

    def fault(_):
        together.wait(SECONDS)

    here = opened(fault, batch_texts=4, concurrency=3)
    assert len(here.embed(words(24))) == 24


def test_a_taker_that_stops_ends_the_requests(opened):
    release = threading.Event()
    here = opened(batch_texts=1, concurrency=2)
    here.server.fault = lambda request: (
        release.wait(SECONDS) and None if request.texts != ["heron number 0"] else None
    )
    outcomes = here.embedder.encode_passages(Passage("", text) for text in words(1000))
    next(outcomes)
    here.server.wait_for(3)
    outcomes.close()
    threads = [thread for thread in threading.enumerate() if thread.name == "searchsvc-embed"]
    release.set()
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive()
    assert len(here.server.requests) == 3


# Faults


def test_waits_asked_for_are_kept(opened):
    wait = Reply(429, openai_body([]), {"Retry-After": "1"})
    here = opened(in_turn(wait, wait))
    assert all(map(is_vector_of, here.embed(["aaa", "bbb"]), ["aaa", "bbb"]))
    assert len(here.server.requests) == 3
    assert min(here.sleeps.seconds) >= 1


@pytest.mark.parametrize(
    "reply",
    [*map(Reply, (408, 409, 425, 429, 500, 502, 503, 504)), Reply(200, b"x" * 99, is_cut=True)],
)
def test_passing_faults_are_tried_again(opened, reply):
    here = opened(in_turn(reply, reply))
    assert all(map(is_vector_of, here.embed(["aaa", "bbb"]), ["aaa", "bbb"]))
    assert len(here.server.requests) == 3
    assert len(here.sleeps.seconds) == 2


def test_a_fault_that_does_not_pass_ends_the_run_after_some_tries(opened):
    here = opened(lambda _: Reply(503, b"busy"))
    with pytest.raises(EmbeddingError, match="503: busy"):
        here.embed(["aaa"])
    assert len(here.server.requests) == 6


def test_a_systemic_fault_comes_at_its_turn_after_what_was_done(opened):
    here = opened(where_text("bbb", Reply(401, {"error": "bad key"})), batch_texts=1, concurrency=1)
    taken = []
    with pytest.raises(EmbeddingError, match="401: bad key; check the key"):
        taken.extend(here.embedder.encode_passages(Passage("", text) for text in ("aaa", "ab", "bbb", "ccc")))
    assert len(taken) == 2
    assert len(here.server.requests) <= 4


def test_an_error_of_the_passages_is_passed_on(opened):
    def passages():
        yield Passage("", "aaa")
        raise LookupError("a note is gone")

    with pytest.raises(LookupError):
        list(opened().embedder.encode_passages(passages()))


def one_fewer(request):
    return Reply(
        body=openai_body([vector_of(text) for text in request.texts[: max(1, len(request.texts) - 1)]])
    )


def test_a_batch_with_one_vector_fewer_is_asked_for_again_in_parts(opened):
    here = opened(one_fewer)
    texts = words(9)
    assert all(map(is_vector_of, here.embed(texts), texts))


def without_blank(request):
    """Answer as a look-alike that drops a text, and shifts all later vectors."""
    return Reply(
        body={"data": [{"embedding": vector_of(text)} for text in request.texts if "bbb" not in text]}
    )


@pytest.mark.proves("R-no-guess")
def test_a_text_that_a_server_drops_is_refused_and_shifts_no_other(opened):
    texts = ["aaa", "bbb", "ccc", "ddd"]
    outcomes = opened(without_blank).embed(texts)
    assert [is_vector_of(outcome, text) for outcome, text in zip(outcomes, texts, strict=True)] == [
        1,
        0,
        1,
        1,
    ]
    assert "0 vectors for 1 texts" in outcomes[1].reason


def with_nan(request):
    rows = [[float("nan")] * 8 if "bbb" in text else vector_of(text) for text in request.texts]
    return Reply(body=openai_body(rows))


def with_null(request):
    return Reply(body=openai_body([None if "bbb" in text else vector_of(text) for text in request.texts]))


@pytest.mark.parametrize(
    "fault",
    [
        with_nan,
        with_null,
        where_text("bbb", Reply(500, {"error": "what a pity"})),
        where_text("bbb", Reply(200, b"null")),
        where_text("bbb", Reply(200, {"detail": "what a pity"})),
        where_text("bbb", Reply(200, b'{"data": [{"embedding": [0.1,')),
    ],
)
def test_one_bad_text_among_many_is_found_in_few_requests(opened, fault):
    here = opened(fault)
    texts = [*words(20), "bbb", *words(11, 20)]
    outcomes = here.embed(texts)
    assert sum(isinstance(outcome, Partial) for outcome in outcomes) == 1
    assert isinstance(outcomes[20], Partial)
    assert len(here.server.requests) <= 20


def test_a_passage_with_one_bad_window_keeps_the_others(opened):
    here = opened(where_text("heron number 500", Reply(400, {"error": "no"})), max_tokens=64)
    (outcome,) = here.embed([" ".join(words(100, 450))])
    assert isinstance(outcome, Partial)
    assert len(outcome.rows) > 5
    assert "windows have no vector: openai at" in outcome.reason
    assert np.allclose(np.linalg.norm(outcome.rows, axis=1), 1)


def test_a_batch_too_large_is_halved_and_nothing_lost(opened):
    here = opened(lambda request: Reply(413) if len(request.texts) > 5 else None)
    texts = words(32)
    assert all(map(is_vector_of, here.embed(texts), texts))


@pytest.mark.parametrize(
    "reply",
    [
        Reply(400, {"error": {"message": "batch size is invalid, it should not be larger than 10"}}),
        Reply(422, {"error": "batch size 32 > maximum allowed batch size 10", "error_type": "Validation"}),
        Reply(500, {"error": "llama_decode returned -1"}),
    ],
)
def test_how_many_texts_a_server_takes_is_learned(opened, reply):
    here = opened(lambda request: reply if len(request.texts) > 10 else None, concurrency=1)
    texts = words(320)
    assert all(map(is_vector_of, here.embed(texts), texts))
    assert sum(len(request.texts) > 10 for request in here.server.requests) <= 7
    assert len(here.server.requests) <= 320 / 8 + 7


def test_a_text_that_stays_too_long_is_given_up(opened):
    reply = Reply(500, {"error": {"message": "input (900 tokens) is too large to process"}})
    here = opened(where_text("wide", reply))
    long, short = here.embed(["wide " * 40, "aaa"])
    assert isinstance(long, Partial)
    assert len(long.rows) == 0
    assert is_vector_of(short, "aaa")
    assert len(here.server.requests) <= 8


def test_a_server_that_refuses_everything_ends_the_run(opened):
    here = opened(lambda _: Reply(400, {"detail": "too many inputs"}))
    with pytest.raises(EmbeddingError, match="one after the other .* also one that was taken before"):
        here.embed(words(200))
    assert len(here.server.requests) < 4 * REFUSED_IN_A_ROW
    assert all(isinstance(outcome, Partial) for outcome in here.embed(words(3)))


def test_a_server_that_is_out_of_order_is_not_held_against_the_texts(opened):
    here = opened(lambda _: Reply(500, b""))
    with pytest.raises(EmbeddingError, match="one after the other .* also one that was taken before"):
        here.embed(words(2))


def test_texts_refused_one_after_the_other_do_not_end_the_run_while_others_are_taken(opened):
    here = opened(where_text("bad", Reply(400, {"detail": "no"})))
    outcomes = here.embed([f"bad {number}" for number in range(40)] + ["good"])
    assert [isinstance(outcome, Partial) for outcome in outcomes] == [True] * 40 + [False]


def test_another_dimension_than_before_ends_the_run_with_both_numbers(opened):
    here = opened()
    here.server.dimension = 6
    with pytest.raises(EmbeddingError, match="of 6 dimensions, expected 8"):
        here.embed(["aaa"])


@pytest.mark.proves("R-secrets")
def test_no_text_and_no_key_is_in_what_is_reported(opened, monkeypatch):
    monkeypatch.setenv("SEARCHSVC_API_KEY", "sk-hush-hush")
    here = opened(
        lambda request: Reply(400, {"error": f"{request.headers['authorization']} sent {request.texts}"})
    )
    (outcome,) = here.embed(["a secret of the herons, which nobody may ever read in a log"])
    assert "answered 400" in outcome.reason
    assert "herons" not in outcome.reason + repr(outcome)
    assert "hush" not in outcome.reason


@pytest.mark.parametrize("settings", [{"batch_texts": -1}, {"concurrency": -1}])
def test_settings_below_zero_are_refused(opened, settings):
    with FaultServer() as server, pytest.raises(EmbeddingError, match="is -1, expected"):
        load(ModelChoice("m", base_url=server.url, **settings))
