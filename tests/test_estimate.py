from dataclasses import replace

import pytest

from searchsvc.batch import Limits, rate_key
from searchsvc.config import Config, make_root
from searchsvc.errors import EmbeddingError
from searchsvc.estimate import estimate
from searchsvc.service import Service
from searchsvc.tokens import cost
from tests.index.index_world import HashEmbedder
from tests.notes import write_notes


@pytest.fixture
def embedder(monkeypatch):
    found = HashEmbedder()
    monkeypatch.setattr("searchsvc.models.load", lambda choice: found)
    monkeypatch.setattr("searchsvc.models.load_card", lambda name: None)
    return found


@pytest.fixture
def config(tmp_path, embedder):
    root = make_root(write_notes(tmp_path / "notes"), "notes")
    return Config(roots=(root,), data_dir=tmp_path / "data", model="hash", instant_model="none")


def indexed(config):
    service = Service(config)
    service.index()
    return service


def sent(embedder):
    """Return the tokens of all that the model was given."""
    return sum(cost(f"{passage.context} {passage.text}") for passage in embedder.seen)


def test_an_estimate_counts_the_texts_that_a_run_then_embeds_and_embeds_none(config, embedder):
    service = indexed(config)
    found = estimate(service)
    assert (found.model, found.provider, found.texts) == ("hash", "local", 14)
    assert embedder.seen == []
    assert service.embed().embedded == found.texts
    assert estimate(service).texts == estimate(service).tokens == 0


def test_the_tokens_are_about_those_that_are_sent(tmp_path, config, embedder):
    text = "Some words about a matter that takes more than one line to tell.\n" * 8
    write_notes(tmp_path / "notes", {f"{n}.md": f"# Note {n}\n\n## Part\n\n{n} {text}\n" for n in range(300)})
    service = indexed(config)
    found = estimate(service)
    service.embed()
    assert found.tokens == pytest.approx(sent(embedder), rel=0.25)


def test_equal_texts_are_counted_once_and_failed_ones_not_at_all(config, tmp_path, monkeypatch):
    write_notes(tmp_path / "notes", {"copy/soup.md": (tmp_path / "notes/kitchen/soup.md").read_text()})
    service = indexed(config)
    assert estimate(service).texts == 14
    service.embed(limits=Limits(texts=4))
    assert estimate(service).texts == 10


def test_a_price_is_used_only_for_the_model_it_is_of(config):
    service = indexed(config)
    assert estimate(service).dollars is None
    priced = estimate(indexed(replace(config, prices={"hash": 2.0, "other": 9.0})))
    assert priced.dollars == pytest.approx(priced.tokens * 2 / 1e6)
    assert estimate(indexed(replace(config, prices={"hash": 0.0}))).dollars == 0.0


def test_the_time_goes_by_the_rate_of_an_earlier_run(config, embedder):
    service = indexed(config)
    assert estimate(service).seconds is None
    with service.vaults[0].writer() as writer:
        writer.catalog.set_meta({rate_key(embedder.profile.identity): "7.000"})
    assert estimate(service).seconds == pytest.approx(2.0)


def test_several_roots_are_added_up(config, tmp_path):
    other = make_root(write_notes(tmp_path / "other", {"a.md": "# A\n\none\n\n## B\n\ntwo\n"}))
    one, both = estimate(indexed(config)), estimate(indexed(replace(config, roots=(*config.roots, other))))
    assert both.texts == one.texts + 2
    assert both.tokens > one.tokens


def test_without_a_model_there_is_nothing_to_estimate_and_without_its_server_an_error(config, monkeypatch):
    assert estimate(indexed(replace(config, model="none"))) is None

    def fail(choice):
        raise EmbeddingError("the server is off")

    monkeypatch.setattr("searchsvc.models.load", fail)
    with pytest.raises(EmbeddingError, match="the server is off"):
        estimate(indexed(config))
