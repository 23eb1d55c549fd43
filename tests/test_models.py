import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from searchsvc.embedding.base import ModelChoice
from searchsvc.embedding.slot import ModelSlot
from searchsvc.errors import ConfigError, EmbeddingError, NotFound
from searchsvc.index.profiles import ProfileCard, read_card, write_card
from searchsvc.models import check, known_of, make_card, profile_of
from searchsvc.profiles import list_profiles, use_profile
from tests.index.index_world import HashEmbedder
from tests.notes import open_service, write_notes

SECTIONS = 14


class Server(HashEmbedder):
    """A model at an address, of some version; a turn makes its vectors differ a little."""

    def __init__(self, choice, revision="0", turn=0.0):
        super().__init__()
        kind = type(self.profile)
        prefix = choice.query_prefix if choice.query_prefix is not None else "trained: "
        self.profile = kind(choice.model, choice.provider, revision, 16, 100, query_prefix=prefix)
        self.turn = turn

    def _vector(self, text):
        first, second = super()._vector(text), super()._vector(text + "\x00")
        vector = np.cos(self.turn) * first + np.sin(self.turn) * (second - first * (first @ second))
        return (vector / np.linalg.norm(vector)).astype(np.float32)


@pytest.fixture
def asked(monkeypatch):
    """The choices that were loaded; what the server behind them is can be changed."""
    choices = []

    def load(choice):
        choices.append(choice)
        return Server(choice, **load.server)

    load.server = {}
    choices_and_server = choices, load.server
    monkeypatch.setattr("searchsvc.models.load", load)
    monkeypatch.setattr("searchsvc.models.is_provider", lambda name: True)
    return choices_and_server


@pytest.fixture
def open_with(tmp_path):
    write_notes(tmp_path / "notes")

    def make(**settings):
        return open_service(tmp_path / "notes", tmp_path / "data", **settings)

    return make


def embed(service):
    service.index()
    service.embed()
    return service


# What is remembered


@pytest.mark.parametrize(
    "settings",
    [
        {"provider": "openai", "base_url": "http://localhost:99/v1"},
        {"provider": "other", "dimensions": 8, "window_tokens": 64},
        {"provider": "other", "query_prefix": "ask: ", "passage_prefix": "text: "},
        {"provider": "other", "query_prefix": "", "passage_prefix": ""},
    ],
)
def test_without_a_model_in_the_settings_the_one_of_the_index_is_loaded_just_as_it_was(
    open_with, asked, settings
):
    choices, _ = asked
    embed(open_with(model="m", **settings))
    service = open_with(model="auto")
    assert service.search("zzz", mode="vector").hits
    assert choices[1] == choices[0]
    assert choices[0].query_prefix == settings.get("query_prefix")


def test_settings_for_another_provider_do_not_reach_the_model_of_a_profile(open_with, asked):
    embed(open_with(model="m", provider="ollama"))
    service = open_with(
        model="n", provider="openai", base_url="http://localhost:99/v1", dimensions=8, query_prefix="q: "
    )
    choice = service.models.named("m").choice
    assert (choice.model, choice.provider) == ("m", "ollama")
    assert (choice.base_url, choice.dimensions, choice.query_prefix) == ("", 0, None)


def test_a_local_profile_is_loaded_though_the_settings_name_a_server(open_with):
    embed(open_with(model="minilm-static-256"))
    service = open_with(model="n", provider="openai", base_url="http://localhost:99/v1")
    ranking = service.search("credentials renewed", mode="vector", profile="minilm-static-256")
    assert ranking.hits[0].id == "ops/runbook.md#rotating-keys"


def test_the_address_in_the_settings_serves_a_profile_that_came_without_one(open_with, asked):
    embed(open_with(model="m", provider="openai"))
    service = open_with(model="auto", base_url="http://127.0.0.1:99/v1")
    assert service.models.choices()[0].base_url == "http://127.0.0.1:99/v1"


def test_the_address_in_the_settings_is_not_given_to_a_model_that_runs_here(open_with):
    embed(open_with(model="minilm-static-256"))
    service = open_with(model="auto", base_url="http://127.0.0.1:99/v1", dimensions=8)
    assert service.search("credentials renewed", mode="vector").hits[0].id == "ops/runbook.md#rotating-keys"


def test_a_card_of_ones_own_is_remembered_by_its_full_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert known_of(ModelChoice("cards/mine.yaml"))["model"] == str(tmp_path / "cards" / "mine.yaml")
    assert known_of(ModelChoice("minilm-static-256"))["model"] == "minilm-static-256"
    assert known_of(ModelChoice("x.yaml", "ollama"))["model"] == "x.yaml"


@pytest.mark.proves("R-doctor")
def test_no_secret_and_nothing_of_the_machine_is_remembered(tmp_path):
    choice = ModelChoice(
        "m", "openai", key_file=tmp_path / "key", workers=3, batch_texts=7, model_path=tmp_path
    )
    assert known_of(choice) == {"model": "m", "provider": "openai"}


# Addresses that an index names


@pytest.mark.proves("R-address")
@pytest.mark.parametrize(
    "url",
    ["http://evil.example/v1", "http://127.0.0.1@evil.example", "http://localhost.evil.example", "http://["],
)
def test_an_address_that_an_index_names_is_not_asked_and_words_answer(open_with, asked, url):
    choices, _ = asked
    embed(open_with(model="m", provider="openai", base_url=url))
    choices.clear()
    service = open_with(model="auto")
    ranking = service.search("water tomatoes")
    assert ranking.hits[0].id == "garden/tomatoes.md#watering"
    assert f"put `base_url: {url}` into the settings" in ranking.notices[0]
    assert choices == []
    assert not open_with(model="auto", base_url=url).search("water tomatoes").notices


def test_from_a_profile_at_an_unknown_address_one_can_switch_to_another(open_with, asked):
    embed(open_with(model="near", provider="other"))
    embed(open_with(model="far", provider="openai", base_url="http://evil.example/v1"))
    service = open_with(model="auto")
    use_profile(service, "near")
    assert not service.search("water tomatoes").notices


@pytest.mark.parametrize("url", ["http://localhost:1/v1", "http://127.0.0.1:1", "http://[::1]:1/v1"])
def test_an_address_on_this_machine_is_asked_again(open_with, asked, url):
    embed(open_with(model="m", provider="openai", base_url=url))
    assert open_with(model="auto").search("zzz", mode="vector").hits


def test_a_model_that_has_gone_since_leaves_the_way_to_another_open(open_with, monkeypatch):
    embed(open_with(model="minilm-static-256"))
    service = open_with(model="auto")
    vault = service.vaults[0]
    (row,) = list_profiles(service)
    card = vault.reader.card(row.identity)
    write_card(
        vault.layout,
        ProfileCard(card.identity, card.facts, {"model": "gone", "provider": "local"}, card.probe),
    )
    service = open_with(model="auto")
    ranking = service.search("water tomatoes")
    assert ranking.hits[0].id == "garden/tomatoes.md#watering"
    assert "no model named 'gone'" in ranking.notices[0]


def test_a_model_of_the_settings_that_cannot_exist_is_refused_at_once(open_with):
    with pytest.raises(EmbeddingError, match="no model named 'nomodel'"):
        open_with(model="nomodel")
    with pytest.raises(EmbeddingError, match="no model named 'nomodel'"):
        open_with(model="auto", instant_model="nomodel")
    with pytest.raises(ConfigError, match="provider 'ollama' needs a model: add --model NAME"):
        open_with(model="auto", provider="ollama")


def test_model_none_is_no_model_whatever_the_index_has(open_with, asked):
    embed(open_with(model="m", provider="other"))
    service = open_with(model="none", instant_model="minilm-static-256")
    assert service.models.choices() == []
    assert service.models.named("m") is not None
    with pytest.raises(NotFound, match="no profile 'n'; there are: m"):
        service.search("zzz", profile="n")


# Is it the same model?


def test_a_server_that_gives_other_vectors_under_the_same_name_is_not_asked(open_with, asked):
    _, server = asked
    embed(open_with(model="m", provider="other"))
    server["turn"] = 0.1
    service = open_with(model="auto")
    notice = service.search("water tomatoes").notices[0]
    assert "gives other vectors than those kept as m-" in notice
    assert "cosine 0.9950 for the same text, expected at least 0.999" in notice
    assert "run `searchsvc profiles drop m-" in notice
    with pytest.raises(EmbeddingError, match="gives other vectors"):
        service.embed()


def test_rounding_is_no_other_model(open_with, asked):
    _, server = asked
    embed(open_with(model="m", provider="other"))
    server["turn"] = 0.02
    assert not open_with(model="auto").search("water tomatoes").notices


def test_a_new_version_of_a_model_gets_a_profile_of_its_own(open_with, asked):
    _, server = asked
    embed(open_with(model="m", provider="other"))
    server["revision"] = "1"
    service = open_with(model="m", provider="other")
    assert any("has no vectors of m-" in notice for notice in service.search("soup").notices)
    embed(service)
    assert [row.embedded for row in list_profiles(service)] == [SECTIONS, SECTIONS]


def card_of(*probe):
    return ProfileCard("m-1", {"name": "m"}, {}, np.array(probe, np.float32))


@pytest.mark.parametrize("probe", [(0, 1), (np.nan, np.nan), (0, 0), (1, 0, 0), (0.9989, 0.0469)])
def test_a_probe_that_is_not_the_one_kept_is_refused(probe):
    with pytest.raises(EmbeddingError, match="model m gives other vectors"):
        check(card_of(1, 0), card_of(*probe))


def test_a_probe_within_rounding_or_none_kept_is_fine():
    check(card_of(1, 0), card_of(0.9995, 0.0316))
    check(card_of(1, 0), None)


def test_a_card_is_read_as_it_was_written_and_a_damaged_one_is_none(tmp_path, open_with):
    layout = open_with(model="none").vaults[0].layout
    embedder = HashEmbedder()
    card = make_card(embedder, ModelChoice("hash", "other", query_prefix=""))
    write_card(layout, card)
    found = read_card(layout, card.identity)
    assert profile_of(found) == embedder.profile
    assert found.choice == {"model": "hash", "provider": "other", "query_prefix": ""}
    assert (found.probe == card.probe).all()
    for text in ("", "{", "[]", "{}", '{"facts": 1, "choice": {}, "probe": []}', "\xff"):
        layout.profile_card(card.identity).write_text(text, encoding="latin-1")
        assert read_card(layout, card.identity) is None


def test_each_model_is_loaded_once(open_with, asked):
    choices, _ = asked
    service = embed(open_with(model="m", provider="other"))
    slot = service.models.named("m")
    assert slot is service.slots[0]
    (row,) = list_profiles(service)
    assert service.models.named(row.identity) is slot
    service.search("zzz", mode="vector")
    assert len(choices) == 1


# Slots


def test_a_slot_loads_once_for_many_threads_and_wakes_them_all():
    gate, loads = threading.Event(), []

    def load():
        loads.append(1)
        gate.wait()
        return HashEmbedder()

    slot = ModelSlot(ModelChoice("hash"), load)
    assert slot.get(wait=False) is None
    found = []
    threads = [threading.Thread(target=lambda: found.append(slot.require())) for _ in range(8)]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join()
    assert len(loads) == 1
    assert len(set(map(id, found))) == 1


def test_a_slot_that_failed_says_why_and_tries_again_after_a_while(monkeypatch):
    now, answers = [0.0], [EmbeddingError("the server is off"), HashEmbedder()]

    def load():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr("searchsvc.embedding.slot.time.monotonic", lambda: now[0])
    slot = ModelSlot(ModelChoice("hash"), load)
    for now[0] in (0.0, 19.9):
        with pytest.raises(EmbeddingError, match="the server is off"):
            slot.require()
    assert len(answers) == 1
    now[0] = 20.0
    assert slot.require().profile.name == "hash"
    assert slot.problem == ""


def test_a_provider_that_breaks_is_named_by_its_error_and_its_words_stay_in_the_log(caplog):
    def load():
        raise RuntimeError("key sk-123 is wrong")

    slot = ModelSlot(ModelChoice("hash"), load)
    with pytest.raises(EmbeddingError, match=r"cannot be loaded \(RuntimeError\); see the log") as caught:
        slot.require()
    assert "sk-123" not in str(caught.value)
    assert "loading hash failed" in caplog.text


@pytest.mark.skipif(sys.platform != "linux", reason="threads have priorities on Linux only")
@pytest.mark.parametrize(("before", "after"), [(0, 10), (10, 10), (15, 15)])
def test_the_priority_of_a_thread_is_only_ever_lowered(before, after):
    program = (
        "import os, threading\nfrom searchsvc.priority import lower_thread\n"
        f"os.nice({before})\nthread = threading.Thread(target=lambda: (lower_thread(10), "
        "print(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))))\nthread.start()\nthread.join()\n"
        "print(os.getpriority(os.PRIO_PROCESS, 0))"
    )
    start = os.nice(0)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    if start == 0:
        assert done.stdout.split() == [str(after), str(before)]
