"""The commands about models: what they print, and their exit codes."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hub_world import serve, write_card

from searchsvc.embedding.cards import data_folder
from searchsvc.model_commands import models

SHIPPED = ("all-minilm-l6-v2-int8", "minilm-static-256")


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(models, list(arguments), catch_exceptions=False)


@pytest.fixture
def damaged(tmp_path) -> Path:
    """The card of a model beside its files, one of which is damaged."""
    for file in (data_folder() / SHIPPED[1]).iterdir():
        shutil.copy(file, tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    return write_card(tmp_path / "mine.yaml", SHIPPED[1])


def test_list_tells_of_each_model_what_it_is_and_where():
    shown = run("list")
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    (static,) = (line for line in lines if line.startswith(SHIPPED[1]))
    assert lines[0].split() == ["model", "dimensions", "languages", "size", "files"]
    assert " 256 " in static and "8.0 MB" in static and static.endswith(" bundled")
    (official,) = (line for line in lines if line.startswith("multilingual-e5-small "))
    assert "many" in official and "487.4 MB" in official and official.endswith("not here")


def test_list_as_json_has_the_same():
    rows = {row["id"]: row for row in json.loads(run("list", "--json").stdout)}
    assert rows[SHIPPED[0]]["dimension"] == 384
    assert rows[SHIPPED[0]]["languages"] == ["en"]
    assert rows["multilingual-e5-small"]["found"] is None


def test_show_tells_everything_with_scores_and_places():
    shown = run("show", "multilingual-e5-small").stdout
    assert "query_prefix:   'query: '" in shown
    assert "nDCG@10 46.6  BEIR" in shown and "microsoft/unilm" in shown
    assert "HF_HUB_CACHE, which has no snapshot" in shown
    told = json.loads(run("show", "multilingual-e5-small", "--json").stdout)
    assert told["licence"] == "MIT" and told["scores"][0]["metric"] == "MRR@10"
    assert [file["name"] for file in told["files"]] == ["onnx/model.onnx", "tokenizer.json"]
    assert told["looked_for"][0]["missing"] == ["onnx/model.onnx", "tokenizer.json"]


def test_show_takes_a_card_of_the_users_own(damaged):
    assert "the folder of the card: found" in run("show", str(damaged)).stdout


def test_an_unknown_model_is_an_error_with_the_known_ones():
    shown = run("show", "gpt")
    assert shown.exit_code == 1
    assert "no model named 'gpt'; choose one of: all-minilm-l6-v2-int8" in shown.stderr


def test_verify_says_ok_and_absent():
    shown = run("verify", SHIPPED[0], "multilingual-e5-small")
    assert shown.exit_code == 0
    first, second = shown.stdout.splitlines()
    assert first == f"{SHIPPED[0]}: ok, the models that came with the package"
    assert second.startswith("multilingual-e5-small: absent")


def test_verify_of_all_as_json():
    states = {state["id"]: state["state"] for state in json.loads(run("verify", "--json").stdout)}
    assert states[SHIPPED[1]] == "ok"
    assert states["multilingual-e5-small"] == "absent"


def test_verify_ends_with_1_when_a_file_is_damaged(damaged):
    shown = run("verify", SHIPPED[0], str(damaged))
    assert shown.exit_code == 1
    assert "mine: damaged, the folder of the card: tokenizer.json of model 'mine' has SHA-256" in shown.stdout
    (state,) = json.loads(run("verify", str(damaged), "--json").stdout)
    assert (state["id"], state["state"]) == ("mine", "damaged")


def test_fetch_downloads_verifies_and_is_content_with_what_is_here(tmp_path, monkeypatch):
    with serve() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        hub.repositories["somebody/mini"] = data_folder() / SHIPPED[1]
        (tmp_path / "cards").mkdir()
        fields = {"hub": "somebody/mini", "revision": "main"}
        file = str(write_card(tmp_path / "cards" / "mine.yaml", SHIPPED[1], **fields))
        assert run("verify", file).stdout.startswith("mine: absent")
        assert hub.requests == []
        assert "mine: complete and verified" in run("fetch", file).stdout
        assert run("verify", file).stdout.startswith("mine: ok, snapshot")
        hub.requests.clear()
        reply = json.loads(run("fetch", file, "--json").stdout)
        assert reply["state"] == "ok" and Path(reply["folder"]).is_relative_to(tmp_path / "hub")
        assert hub.requests == []


def test_fetch_of_what_ships_asks_nobody(monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert run("fetch", SHIPPED[0]).exit_code == 0


def test_fetch_of_what_is_at_no_hub_says_what_to_do_instead():
    shown = run("fetch", "e5-small-en-int8")
    assert shown.exit_code == 1
    assert "give the folder that holds model.onnx tokenizer.json" in shown.stderr


@pytest.mark.parametrize("arguments", [(), ("list",), ("show",), ("fetch",), ("verify",)])
def test_every_command_explains_itself(arguments):
    shown = run(*arguments, "--help")
    assert shown.exit_code == 0
    assert "Usage:" in shown.stdout
