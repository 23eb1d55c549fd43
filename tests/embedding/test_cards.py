"""Model cards, and where the files of a model are found."""

import dataclasses
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from searchsvc.embedding import cards as module
from searchsvc.embedding import list_cards, load_embedder
from searchsvc.embedding.cards import find_files, load_card, verify_files
from searchsvc.errors import EmbeddingError

SHIPPED = ["all-minilm-l6-v2-int8", "minilm-static-256"]
OFFICIAL = "multilingual-e5-small"


@pytest.fixture
def no_cache(monkeypatch, tmp_path) -> Path:
    monkeypatch.delenv("HF_HOME", raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def cached(cache: Path, snapshot: str) -> Path:
    folder = cache / "models--intfloat--multilingual-e5-small" / "snapshots" / snapshot
    (folder / "onnx").mkdir(parents=True)
    (folder / "onnx" / "model.onnx").touch()
    (folder / "tokenizer.json").touch()
    return folder


def test_every_card_can_be_read_and_is_named_after_its_file():
    found = list_cards()
    assert [card.id for card in found] == sorted(card.id for card in found)
    assert {*SHIPPED, OFFICIAL, "use-multilingual-v3"} <= {card.id for card in found}
    for card in found:
        assert load_card(card.id) == card
        assert card.provider in {"onnx", "static", "use"}
        assert card.licence and card.source and card.revision and card.files and card.normalise


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_files_are_those_their_card_describes(name):
    card = load_card(name)
    folder = find_files(card)
    assert verify_files(card, folder) == card.files[0].sha256
    assert [(folder / file.name).stat().st_size for file in card.files] == [file.bytes for file in card.files]
    assert name in (folder.parent / "NOTICE").read_text(encoding="utf-8")


def test_the_build_program_expects_the_files_that_the_cards_describe():
    build = runpy.run_path(str(find_files(load_card(SHIPPED[0])).parent / "build.py"), run_name="build")
    described = {f"{name}/{file.name}": file.sha256 for name in SHIPPED for file in load_card(name).files}
    assert build["EXPECTED"] == described
    assert {load_card(name).revision for name in SHIPPED} == {build["SOURCE_SHA256"]}


def test_the_build_program_explains_itself_and_refuses_other_weights(tmp_path):
    program = [sys.executable, str(find_files(load_card(SHIPPED[0])).parent / "build.py")]
    shown = subprocess.run([*program, "--help"], capture_output=True, text=True, check=True)
    assert "torch==" in shown.stdout and "--only" in shown.stdout
    (tmp_path / "model.safetensors").write_bytes(b"other")
    refused = subprocess.run([*program, str(tmp_path), str(tmp_path)], capture_output=True, text=True)
    assert refused.returncode != 0 and "expected 53aa5117" in refused.stderr


def test_an_unknown_name_is_an_error_that_lists_the_known_ones():
    with pytest.raises(EmbeddingError, match="no model named 'gpt'.*all-minilm-l6-v2-int8, e5-small"):
        load_embedder("gpt")


def test_a_name_cannot_lead_out_of_the_folder_of_cards():
    with pytest.raises(EmbeddingError, match="no model named"):
        load_card("../models/minilm-static-256")


def test_a_damaged_card_is_an_error_that_names_it(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_data_folder", lambda: tmp_path)
    (tmp_path / "odd.yaml").write_text("id: odd\nfiles: []\nlanguages: [en]\n")
    with pytest.raises(EmbeddingError, match=r"odd\.yaml is damaged"):
        load_card("odd")


@pytest.mark.parametrize("name", SHIPPED)
def test_a_changed_file_is_an_error_that_shortens_both_digests(tmp_path, name):
    shutil.copytree(find_files(load_card(name)), tmp_path / name)
    weights = tmp_path / name / load_card(name).files[0].name
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    with pytest.raises(EmbeddingError, match=r"has SHA-256 \w{12}…, expected \w{12}…") as caught:
        load_embedder(name, model_path=tmp_path / name)
    assert str(tmp_path) not in str(caught.value)


def test_missing_files_are_an_error_that_lists_each_place_and_the_ways_out(no_cache):
    with pytest.raises(EmbeddingError) as caught:
        load_embedder(OFFICIAL)
    text = str(caught.value)
    assert "the models that came with the package: no onnx/model.onnx, tokenizer.json" in text
    assert "HF_HUB_CACHE, which has no snapshot of intfloat/multilingual-e5-small" in text
    assert "hf download intfloat/multilingual-e5-small" in text and "model path" in text
    assert str(no_cache) not in text


def test_a_path_given_by_the_caller_is_the_only_place_looked_at(tmp_path):
    with pytest.raises(EmbeddingError) as caught:
        load_embedder(SHIPPED[0], model_path=tmp_path)
    assert f"the folder given, {tmp_path}" in str(caught.value)
    assert "came with the package:" not in str(caught.value)


def test_a_model_with_a_path_is_loaded_from_there(tmp_path):
    shutil.copytree(find_files(load_card(SHIPPED[1])), tmp_path / "copy")
    assert load_embedder(SHIPPED[1], model_path=tmp_path / "copy").encode_query("text").any()


def test_the_snapshot_that_main_names_is_preferred(no_cache):
    cached(no_cache, "aaaa")
    wanted = cached(no_cache, "bbbb")
    reference = wanted.parent.parent / "refs" / "main"
    reference.parent.mkdir()
    reference.write_text("bbbb")
    assert find_files(load_card(OFFICIAL)) == wanted


def test_the_cache_follows_the_variables_of_the_hub(monkeypatch, tmp_path):
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    folder = cached(tmp_path / "hub", "cccc")
    assert find_files(load_card(OFFICIAL)) == folder
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "elsewhere"))
    with pytest.raises(EmbeddingError, match="HF_HUB_CACHE"):
        find_files(load_card(OFFICIAL))
    monkeypatch.delenv("HF_HUB_CACHE")
    monkeypatch.delenv("HF_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    folder = cached(tmp_path / "home" / ".cache" / "huggingface" / "hub", "dddd")
    assert find_files(load_card(OFFICIAL)) == folder


def test_the_identity_of_a_profile_changes_with_its_revision_but_not_its_languages(static):
    profile = static.profile
    assert profile.revision == load_card("minilm-static-256").files[0].sha256
    assert dataclasses.replace(profile, revision="0" * 64).identity != profile.identity
    assert dataclasses.replace(profile, passage_prefix="p: ").identity != profile.identity
    assert dataclasses.replace(profile, languages=("de",)).identity == profile.identity


def test_the_multilingual_package_takes_no_path(tmp_path):
    with pytest.raises(EmbeddingError, match="takes no path"):
        load_embedder("use-multilingual-v3", model_path=tmp_path)
