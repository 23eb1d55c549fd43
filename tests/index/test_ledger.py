import sqlite3

import numpy as np
import pytest

from searchsvc.batch import Limits
from searchsvc.embedding.base import ModelChoice, Partial
from searchsvc.index.ledger import SCHEMA, Failure, Ledger
from searchsvc.models import make_card

LARGEST = 2**64 - 1


@pytest.fixture
def ledger():
    connection = sqlite3.connect(":memory:")
    connection.execute(SCHEMA)
    yield Ledger(connection)
    connection.close()


def test_failures_come_back_by_address_with_keys_of_64_bits(ledger):
    ledger.record("p", [Failure(LARGEST, "b.md#x", "too long"), Failure(0, "a.md#y", "gone", embedded=True)])
    assert ledger.failures("p") == [
        Failure(0, "a.md#y", "gone", embedded=True),
        Failure(LARGEST, "b.md#x", "too long"),
    ]
    assert ledger.failures("q") == []


def test_only_texts_without_any_vector_count_as_failed(ledger):
    ledger.record("p", [Failure(1, "a", "x"), Failure(2, "b", "x", embedded=True)])
    assert ledger.failed_keys("p") == [1]


def test_a_text_that_fails_again_has_the_last_reason_only(ledger):
    ledger.record("p", [Failure(1, "a", "first")])
    ledger.record("p", [Failure(1, "a", "second", embedded=True)])
    assert [failure.reason for failure in ledger.failures("p")] == ["second"]
    assert ledger.failed_keys("p") == []


def test_forgetting_takes_the_named_texts_of_that_profile_only(ledger):
    for identity in ("p", "q"):
        ledger.record(identity, [Failure(key, f"{key}", "x") for key in (1, 2, LARGEST)])
    ledger.forget("p", [2, LARGEST, 99])
    assert ledger.failed_keys("p") == [1]
    ledger.forget("p", [])
    assert ledger.failed_keys("p") == [1]
    ledger.forget("q")
    assert ledger.failed_keys("q") == []
    assert ledger.identities() == ["p"]


def test_many_failures_are_forgotten_at_once(ledger):
    ledger.record("p", (Failure(key, f"{key}", "x") for key in range(100_000)))
    ledger.forget("p", range(1, 100_000))
    assert ledger.failed_keys("p") == [0]


# In an index


def refuse(world, word, *, rows=0):
    """Let the model take nothing, or that many rows, of texts with a word in them."""
    whole = world.embedder.encode_passages

    def encode(passages):
        for passage in passages:
            (vector,) = whole([passage])
            refused = word in passage.text
            yield Partial(np.repeat(vector, rows, 0), f"no {word}, please") if refused else vector

    world.embedder.encode_passages = encode


def test_a_text_that_fails_is_noted_and_not_tried_again_until_asked_for(world):
    world.write("a.md", "# A\n\nthe pear\n")
    world.write("b.md", "# B\n\nthe plum\n")
    world.index()
    refuse(world, "pear")
    assert world.embed() == 1
    (failure,) = world.vault.failures(world.embedder.profile.identity)
    assert (failure.address, failure.reason, failure.embedded) == ("a.md#_intro", "no pear, please", False)
    seen = len(world.embedder.seen)
    assert world.embed() == 0
    assert len(world.embedder.seen) == seen
    del world.embedder.encode_passages
    assert world.embed(limits=Limits(retry_failed=True)) == 1
    assert world.vault.failures(world.embedder.profile.identity) == []


def test_a_text_taken_in_part_has_vectors_and_is_noted(world):
    world.write("a.md", "# A\n\nthe pear\n")
    world.index()
    refuse(world, "pear", rows=2)
    assert world.embed() == 1
    identity = world.embedder.profile.identity
    assert [failure.embedded for failure in world.vault.failures(identity)] == [True]
    with world.reader.pinned() as (frame, _):
        assert frame.coverage(identity) == (1, 1)
        assert len(frame.vectors(identity).of(0)) == 2


def test_a_failure_goes_with_its_text(world):
    file = world.write("a.md", "# A\n\nthe pear\n")
    world.write("b.md", "# B\n\nthe plum\n")
    world.index()
    refuse(world, "pear")
    world.embed()
    file.write_text("# A\n\nthe apple\n")
    world.index()
    world.embed()
    assert world.vault.failures(world.embedder.profile.identity) == []


def test_a_vector_from_elsewhere_ends_a_failure(world):
    world.write("a.md", "# A\n\nthe pear\n")
    world.index()
    refuse(world, "pear")
    world.embed()
    identity = world.embedder.profile.identity
    (failure,) = world.vault.failures(identity)
    card = make_card(world.embedder, ModelChoice("hash"))
    with world.vault.writer() as writer:
        writer.vectors.add(card, {failure.key: card.probe[None, :]})
    assert world.vault.failures(identity) == []
    with world.reader.pinned() as (frame, _):
        assert frame.coverage(identity) == (1, 1)


def test_a_dropped_profile_takes_its_failures_along_and_leaves_those_of_others(world):
    world.write("a.md", "# A\n\nthe pear\n")
    world.index()
    with world.vault.writer() as writer:
        for name in ("hash", "other"):
            card = make_card(world.embedder, ModelChoice(name))
            writer.vectors.add(
                type(card)(f"{name}-1", card.facts, card.choice, card.probe), {}, [Failure(1, "a.md", "x")]
            )
        writer.vectors.drop("hash-1")
    assert world.vault.failures("hash-1") == []
    assert len(world.vault.failures("other-1")) == 1
