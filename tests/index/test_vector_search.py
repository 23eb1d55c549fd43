"""The int8 scan with its float rescore finds what an exact search finds."""

import builtins
import sys
from pathlib import Path

import numpy as np
import pytest

from searchsvc.index import vectors
from searchsvc.index.vectors import VectorView, merge_parts, open_part, quantise, write_part

TOP = 10


def unit(rows: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(rows, axis=-1, keepdims=True)
    return (rows / np.maximum(norms, 1e-12)).astype(np.float32)


def cloud(kind: str, count: int, dimension: int, rng: np.random.Generator) -> np.ndarray:
    """Return unit vectors; those of a ``tight`` cloud differ by less than int8 can tell."""
    if kind == "random":
        return unit(rng.normal(size=(count, dimension)))
    centres = unit(rng.normal(size=(3, dimension)))
    noise = {"clustered": 0.3, "tight": 0.02}[kind] / np.sqrt(dimension)
    return unit(centres[rng.integers(3, size=count)] + noise * rng.normal(size=(count, dimension)))


def view_of(folder: Path, matrices: list[np.ndarray], section_keys: list[int], parts: int = 1) -> VectorView:
    """Return a view of passages with keys 1, 2, …, spread over several parts."""
    dimension = max(matrix.shape[1] for matrix in matrices)
    names = [
        write_part(
            folder,
            list(range(1, len(matrices) + 1))[part::parts],
            [np.asarray(matrix, np.float32) for matrix in matrices[part::parts]],
            dimension,
        )
        for part in range(parts)
    ]
    return VectorView([open_part(folder, name) for name in names], np.array(section_keys, np.uint64))


def assert_top_is_exact(found: np.ndarray, exact: np.ndarray) -> None:
    """Assert equal best scores, and that each of the best stands where it should."""
    best = np.argsort(-found, kind="stable")[:TOP]
    expected = np.sort(exact)[::-1][:TOP]
    np.testing.assert_allclose(found[best], expected, atol=1e-6)
    np.testing.assert_allclose(exact[best], expected, atol=1e-6)


@pytest.fixture(params=["simsimd", "numpy"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "simsimd":
        pytest.importorskip("simsimd")
        return "simsimd"
    genuine = builtins.__import__

    def without_simsimd(name: str, *args: object, **kwargs: object) -> object:
        if name == "simsimd":
            raise ImportError(name)
        return genuine(name, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without_simsimd)
    return "numpy"


@pytest.mark.proves("R-vectors-exact")
@pytest.mark.parametrize("kind", ["random", "clustered", "tight"])
@pytest.mark.parametrize("dimension", [8, 256, 384, 512])
@pytest.mark.parametrize("seed", range(3))
def test_the_best_ten_are_those_of_an_exact_search(tmp_path, engine, kind, dimension, seed):
    rng = np.random.default_rng(seed)
    rows = cloud(kind, 1500, dimension, rng)
    view = view_of(tmp_path, [row[None] for row in rows], list(range(1, 1501)), parts=3)
    for query in unit(rows[rng.integers(1500, size=3)] + 0.3 * rng.normal(size=(3, dimension))):
        assert_top_is_exact(view.cosines(query), rows @ query)


@pytest.mark.proves("R-vectors-exact")
@pytest.mark.parametrize("seed", range(5))
def test_windows_duplicates_gaps_and_blank_texts_do_not_disturb_the_best_ten(tmp_path, engine, seed):
    rng = np.random.default_rng(seed)
    matrices = [cloud("tight", int(count), 384, rng) for count in rng.integers(0, 5, 800)]
    matrices += matrices[:40]  # equal rows under other keys
    matrices.append(np.zeros((1, 384)))
    keys = [int(key) for key in rng.integers(0, len(matrices) + 50, 1200)]  # 0 and unknown ones too
    view = view_of(tmp_path, matrices, keys, parts=4)
    query = unit(rng.normal(size=384) * 0.05 + matrices[int(np.argmax([len(m) for m in matrices]))][0])
    exact = np.full(len(keys), -np.inf)
    for section, key in enumerate(keys):
        if 0 < key <= len(matrices) and len(matrices[key - 1]):
            exact[section] = (matrices[key - 1] @ query).max()
    found = view.cosines(query)
    np.testing.assert_array_equal(found == -np.inf, exact == -np.inf)
    np.testing.assert_array_equal(view.covered, exact > -np.inf)
    assert_top_is_exact(found, exact)
    np.testing.assert_allclose(found, exact, atol=0.03)


def test_a_thousand_rows_that_int8_cannot_tell_apart_are_told_apart(tmp_path):
    rng = np.random.default_rng(0)
    base = unit(rng.normal(size=384))
    rows = unit(base + 1e-4 * rng.normal(size=(1000, 384)))
    view = view_of(tmp_path, [row[None] for row in rows], list(range(1, 1001)))
    exact = rows.astype(np.float64) @ base.astype(np.float64)
    by_codes, scales = quantise(rows)
    rough = (by_codes * scales[:, None]) @ base
    best = set(np.argsort(-exact)[:TOP].tolist())
    assert not best <= set(np.argsort(-rough)[: vectors.RESCORED].tolist()), "the case is too easy"
    assert_top_is_exact(view.cosines(base), exact)


def test_passages_of_no_section_do_not_use_up_the_exact_places(tmp_path):
    rng = np.random.default_rng(1)
    rows = cloud("tight", 1000, 384, rng)
    query = unit(rows[0] + 0.01 * rng.normal(size=384))
    order = np.argsort(-(rows @ query))
    dropped = set(order[:300].tolist())
    keys = [0 if place in dropped else place + 1 for place in range(1000)]
    view = view_of(tmp_path, [row[None] for row in rows], keys)
    exact = np.where(np.array(keys) > 0, rows @ query, -np.inf)
    assert_top_is_exact(view.cosines(query), exact)


@pytest.mark.parametrize("seed", range(10))
def test_no_int8_score_is_off_by_more_than_its_bound(tmp_path, seed):
    pytest.importorskip("simsimd")
    rng = np.random.default_rng(seed)
    dimension = int(rng.choice([3, 64, 256, 384]))
    rows = unit(rng.standard_cauchy(size=(500, dimension)))  # a few large values: coarse codes
    view = view_of(tmp_path, [row[None] for row in rows], list(range(1, 501)))
    query = unit(rng.standard_cauchy(size=dimension))
    values, slack = view._approximate(query)
    values = values[:-1]
    assert (np.abs(values - rows.astype(np.float64) @ query) <= slack).all()


def test_without_vectors_or_with_a_blank_question_nothing_is_found(tmp_path):
    assert VectorView([], np.array([1, 2], np.uint64)).cosines(unit(np.ones(4))).tolist() == [-np.inf] * 2
    view = view_of(tmp_path, [unit(np.ones((1, 4)))], [1, 2])
    assert view.cosines(np.zeros(4, np.float32)).tolist() == [-np.inf] * 2
    assert view.cosines(unit(np.ones(4))).tolist() == [pytest.approx(1), -np.inf]


def test_a_section_gives_its_own_rows_back(tmp_path):
    rng = np.random.default_rng(0)
    matrices = [cloud("random", count, 8, rng) for count in (2, 0, 1, 3)]
    view = view_of(tmp_path, matrices, [4, 2, 1, 99], parts=2)
    np.testing.assert_array_equal(view.of(0), matrices[3])
    np.testing.assert_array_equal(view.of(2), matrices[0])
    assert len(view.of(1)) == len(view.of(3)) == 0
    assert view.done.tolist() == [True, True, True, False]


def test_merged_parts_hold_the_wanted_passages_and_no_others(tmp_path):
    rng = np.random.default_rng(0)
    matrices = [cloud("random", count, 8, rng) for count in (1, 2, 0, 3, 1)]
    names = [write_part(tmp_path, [2 * n, 2 * n + 1], [matrices[n], matrices[n + 1]], 8) for n in range(1, 4)]
    merged = open_part(
        tmp_path,
        merge_parts(tmp_path, [open_part(tmp_path, n) for n in names], np.array([3, 4, 6], np.uint64)),
    )
    assert merged.keys.tolist() == [3, 4, 6]
    assert np.diff(merged.bounds).tolist() == [0, 0, 3]
    np.testing.assert_array_equal(merged.rows, matrices[3])


def test_scans_leave_the_counts_of_references_alone(engine, tmp_path):
    view = view_of(tmp_path, [unit(np.ones((1, 16))) for _ in range(8)], list(range(1, 9)))
    query = unit(np.ones(16))
    before = sys.getrefcount(None)
    for _ in range(500):
        view.cosines(query)
    assert abs(sys.getrefcount(None) - before) < 250
