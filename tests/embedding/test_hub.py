"""Downloads, from a hub on this machine: what is had, refused, deleted, and never asked for."""

import shutil
from pathlib import Path

import pytest
from hub_world import COMMIT, LATER, Hub, serve, write_card

from searchsvc.embedding import ModelChoice, load
from searchsvc.embedding.cards import data_folder, load_card
from searchsvc.embedding.hub import fetch_files, find_repository
from searchsvc.embedding.places import fetch, find_files
from searchsvc.errors import EmbeddingError

STATIC = "minilm-static-256"
REPOSITORY = "somebody/mini"


@pytest.fixture
def cache(monkeypatch, tmp_path) -> Path:
    folder = tmp_path / "hub"
    monkeypatch.setenv("HF_HUB_CACHE", str(folder))
    return folder


@pytest.fixture
def hub(monkeypatch, tmp_path, cache):
    with serve() as running:
        shutil.copytree(data_folder() / STATIC, tmp_path / "served")
        running.repositories[REPOSITORY] = tmp_path / "served"
        monkeypatch.setenv("HF_ENDPOINT", running.address)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield running


@pytest.fixture
def card_file(tmp_path) -> Path:
    (tmp_path / "cards").mkdir()
    return write_card(tmp_path / "cards" / "mine.yaml", STATIC, hub=REPOSITORY, revision="main")


def everything_in(cache: Path) -> list[Path]:
    return [file for file in cache.rglob("*") if file.is_file()] if cache.exists() else []


def test_without_leave_nothing_is_asked_and_the_error_lists_places_and_ways_out(hub, cache, card_file):
    with pytest.raises(EmbeddingError) as caught:
        load(ModelChoice(str(card_file)))
    text = str(caught.value)
    assert "the folder of the card: no model.safetensors, tokenizer.json, config.json" in text
    assert "HF_HUB_CACHE, which has no snapshot of somebody/mini" in text
    assert "somebody/mini at the hub: not asked, downloads are not allowed" in text
    assert "searchsvc models fetch" in text and "model_path" in text
    assert str(cache) not in text
    assert hub.requests == []


def test_with_leave_the_model_is_had_once_and_then_found_without_asking(hub, card_file, capfd):
    choice = ModelChoice(str(card_file), allow_downloads=True)
    assert load(choice).encode_query("a question").any()
    assert hub.requests
    hub.requests.clear()
    embedder = load(choice)
    assert load(ModelChoice(str(card_file))).profile == embedder.profile
    assert embedder.profile.name == "mine"
    assert hub.requests == []
    assert capfd.readouterr() == ("", "")


def test_progress_is_told_to_the_last_byte(hub, card_file):
    told: dict[str, list[tuple[int, int]]] = {}
    card = load_card(str(card_file))
    fetch(card, lambda name, here, whole: told.setdefault(name, []).append((here, whole)))
    for file in card.files:
        assert told[file.name][-1] == (file.bytes, file.bytes)
        assert told[file.name] == sorted(told[file.name])


def test_all_files_are_of_one_commit_even_when_the_branch_moves(hub, card_file, cache):
    card = load_card(str(card_file))

    def move(name: str, here: int, whole: int) -> None:
        hub.commit = LATER

    assert fetch_files(card, move).name == COMMIT
    assert [folder.name for folder in cache.glob("models--*/snapshots/*")] == [COMMIT]


def test_a_file_that_is_not_the_cards_is_deleted_and_refused(hub, card_file, cache):
    served = hub.repositories[REPOSITORY] / "model.safetensors"
    served.write_bytes(b"something else")
    with pytest.raises(
        EmbeddingError, match=r"has SHA-256 \w{12}…, the card of model 'mine' expects"
    ) as caught:
        load(ModelChoice(str(card_file), allow_downloads=True))
    assert "has been deleted" in str(caught.value)
    assert not [file for file in everything_in(cache) if file.read_bytes() == b"something else"]
    with pytest.raises(EmbeddingError, match="were not found"):
        find_files(load_card(str(card_file)))


def test_a_damaged_file_of_the_cache_is_had_anew_by_fetch(hub, card_file):
    card = load_card(str(card_file))
    folder = fetch(card)
    (folder / "tokenizer.json").resolve().write_bytes(b"{}")
    with pytest.raises(EmbeddingError, match=r"tokenizer\.json .*`searchsvc models fetch"):
        load(ModelChoice(str(card_file)))
    assert fetch(card) == folder
    assert load(ModelChoice(str(card_file))).encode_query("text").any()


def test_a_download_that_breaks_off_counts_for_nothing(hub, card_file, cache):
    hub.cut = "model.safetensors"
    with pytest.raises(EmbeddingError, match=r"model\.safetensors of somebody/mini cannot be downloaded"):
        load(ModelChoice(str(card_file), allow_downloads=True))
    assert not [file for file in everything_in(cache) if file.stat().st_size > 1_000_000]
    hub.cut = "config.json"
    with pytest.raises(EmbeddingError, match=r"config\.json of somebody/mini"):
        load(ModelChoice(str(card_file), allow_downloads=True))
    with pytest.raises(EmbeddingError, match=r"snapshot c0ffeec0 of somebody/mini in .*: no config\.json"):
        load(ModelChoice(str(card_file)))
    hub.cut = ""
    assert load(ModelChoice(str(card_file), allow_downloads=True)).encode_query("text").any()


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"hub": "nobody/none"}, "no such repository"),
        ({"revision": "gone"}, "no such revision"),
        ({"files": [{"name": "absent.bin"}, {"name": "tokenizer.json"}]}, "no such file"),
    ],
)
def test_what_the_hub_has_not_is_an_error_that_says_which(hub, tmp_path, changes, hint):
    fields = {"hub": REPOSITORY, "revision": "main", **changes}
    file = write_card(tmp_path / "odd.yaml", STATIC, **fields)
    with pytest.raises(EmbeddingError, match=hint):
        load(ModelChoice(str(file), allow_downloads=True))


def test_the_hubs_own_switch_for_offline_is_minded(hub, card_file, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(EmbeddingError, match=r"cannot be reached, or HF_HUB_OFFLINE is set"):
        load(ModelChoice(str(card_file), allow_downloads=True))
    assert hub.requests == []


def is_whole(folder: Path) -> bool:
    return (folder / "config.json").is_file() and (folder / "model.safetensors").is_file()


def test_a_repository_is_had_as_a_whole_or_not_at_all(hub: Hub):
    def find(*, leave: bool) -> Path | None:
        return find_repository(REPOSITORY, allow_downloads=leave, is_whole=is_whole)

    root = hub.repositories[REPOSITORY]
    (root / "onnx").mkdir()
    (root / "onnx" / "model.onnx").write_bytes(b"not wanted")
    assert find(leave=False) is None
    assert hub.requests == []
    hub.cut = "tokenizer.json"
    with pytest.raises(EmbeddingError, match="somebody/mini cannot be downloaded"):
        find(leave=True)
    assert find(leave=False) is None
    hub.cut = ""
    folder = find(leave=True)
    assert folder is not None
    assert sorted(file.name for file in folder.rglob("*") if file.is_file()) == [
        "config.json", "model.safetensors", "tokenizer.json",
    ]  # fmt: skip
    hub.requests.clear()
    assert find(leave=False) == find(leave=True) == folder
    assert hub.requests == []


def test_a_snapshot_made_for_something_else_is_not_taken_for_the_model(hub: Hub, tmp_path):
    fields = {"hub": REPOSITORY, "revision": "main", "files": [{"name": "tokenizer.json"}]}
    fetch(load_card(str(write_card(tmp_path / "part.yaml", STATIC, **fields))))
    assert find_repository(REPOSITORY, allow_downloads=False, is_whole=is_whole) is None
    folder = find_repository(REPOSITORY, allow_downloads=True, is_whole=is_whole)
    assert folder is not None and is_whole(folder)
