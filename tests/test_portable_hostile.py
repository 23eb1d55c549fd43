import shutil
import tracemalloc

import numpy as np
import pytest

from searchsvc.errors import EmbeddingError
from searchsvc.index.archive import write_archive
from searchsvc.portable import export_vectors, import_vectors
from searchsvc.profiles import list_profiles
from tests.portable_world import (
    TEXTS,
    arrays,
    exported,
    forge,
    hashed,
    here,
    machine,
    nothing_is_stored,
    refaced,
    vectors,
)  # fmt: skip

__all__ = ["exported", "hashed", "here"]


def refused(service, file, match=r"not an export of vectors, or is damaged"):
    before = service.status().roots[0].generation
    with pytest.raises(EmbeddingError, match=match):
        import_vectors(service, file)
    assert service.status().roots[0].generation == before
    assert nothing_is_stored(service)


def test_a_file_that_is_none_or_cut_short_is_refused(tmp_path, here, exported):
    refused(here, tmp_path / "missing.npz", "cannot be read: No such file")
    refused(here, tmp_path, "cannot be read: Is a directory")
    whole = exported.read_bytes()
    for end in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        exported.write_bytes(whole[:end])
        refused(here, exported)


@pytest.mark.parametrize("name", ["keys", "counts", "rows", "manifest"])
def test_a_file_without_one_of_its_arrays_is_refused(here, exported, name):
    refused(here, forge(exported, drop=(name,)))


def test_one_changed_bit_in_the_vectors_is_noticed(here, exported):
    rows = arrays(exported)["rows"]
    rows[5] = rows[4]
    whole = arrays(exported)["manifest"]
    refused(here, forge(exported, rows=rows, manifest={"sha256": whole["sha256"]}), "the checksum is another")


ROWS = {
    "no number": lambda rows: rows * np.nan,
    "infinite": lambda rows: rows * np.inf,
    "too long": lambda rows: rows * 1.01,
    "zero": lambda rows: rows * 0,
    "too few": lambda rows: rows[1:],
    "too many": lambda rows: np.concatenate([rows, rows[:1]]),
    "too narrow": lambda rows: rows[:, 1:],
    "flat": lambda rows: rows.ravel(),
    "no floats": lambda rows: rows.astype(np.int64),
}


@pytest.mark.proves("R-portable-hostile")
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("change", ROWS.values(), ids=ROWS)
def test_vectors_that_are_none_are_refused_though_the_checksum_fits(here, exported, change):
    refused(here, forge(exported, rows=change(arrays(exported)["rows"])))


COUNTS = {
    "negative": [-1, 3],
    "sum that overflows to what is there": [2**62, 2**62, 2**62, 2**62, TEXTS],
    "sum that overflows to nothing": [2**63 - 1, 1, 2**63 - 1, 1],
    "more than any text has": [2**17],
    "too few": [1],
}


@pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS)
def test_counts_that_do_not_fit_are_refused(here, exported, counts):
    keys = arrays(exported)["keys"]
    rest = np.ones(max(0, len(keys) - len(counts)), np.int64) if sum(counts) == 2 else []
    changed = np.array([*counts, *rest], np.int64)
    refused(here, forge(exported, counts=changed, keys=np.arange(1, len(changed) + 1, dtype=np.uint64)))


@pytest.mark.parametrize("change", [lambda k: k * 0 + k[0], lambda k: np.append(k[1:], np.uint64(0))])
def test_keys_that_are_zero_or_there_twice_are_refused(here, exported, change):
    refused(here, forge(exported, keys=change(arrays(exported)["keys"])), "a key is 0 or there twice")


@pytest.mark.parametrize("name", ["keys", "counts"])
def test_keys_and_counts_of_another_shape_or_kind_are_refused(here, exported, name):
    array = arrays(exported)[name]
    for changed in (array[:, None], array[:-1], array.astype(np.float32)):
        refused(here, forge(exported, **{name: changed}))


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b"3", b"\xff\xfe", b"{}", b"[" * 200_000, b'{"format": 1}', b'{"format": [1]}']
)
def test_a_manifest_that_is_none_is_refused(here, exported, raw):
    refused(here, with_manifest(exported, raw), r"\w")


def with_manifest(file, raw):
    found = arrays(file) | {"manifest": np.frombuffer(raw, np.uint8)}
    write_archive(file, found)
    return file


FIELDS = {
    "another format": {"format": 2},
    "another identity": {"identity": "hash-000000000000"},
    "a nameless identity": {"identity": None},
    "no facts": {"facts": {}},
    "facts of no kind": {"facts": 3},
    "no choice": {"choice": {}},
    "no probe": {"probe": []},
    "a probe of words": {"probe": ["x"] * 16},
    "a probe of lists": {"probe": [[1.0]] * 16},
    "a probe without end": {"probe": [10**400] * 16},
    "a long probe": {"probe": [0.25] * 17},
    "a probe of zeros": {"probe": [0.0] * 16},
    "other counts": {"texts": 1},
    "a checksum of no kind": {"sha256": None},
}


@pytest.mark.parametrize("fields", FIELDS.values(), ids=FIELDS)
def test_a_manifest_with_a_wrong_field_is_refused(here, exported, fields):
    refused(here, forge(exported, manifest=fields), r"\w")


def test_a_probe_that_is_no_number_is_refused_since_it_would_recognise_any_model(here, exported):
    refused(here, forge(exported, manifest={"probe": [float("nan")] * 16}))


NAMES = ["../../evil", "/tmp/evil", "a/b", "..", "C:evil", "a\\b", "a\x00b", "a" * 300, "é", ""]


@pytest.mark.parametrize("name", NAMES)
def test_a_profile_whose_identity_would_be_a_path_is_refused(here, exported, tmp_path, name, monkeypatch):
    monkeypatch.setattr("searchsvc.embedding.base._identity", lambda profile: f"{profile.name}")
    refused(here, forge(exported, manifest=refaced(exported, name=name)))


@pytest.mark.parametrize("name", NAMES)
def test_a_profile_of_any_name_stays_within_the_index(here, exported, name):
    report = import_vectors(here, forge(exported, manifest=refaced(exported, name=name)))
    vault = here.vaults[0]
    assert [folder.name for folder in vault.layout.vectors.iterdir()] == [report.profile]
    here.index()
    (row,) = list_profiles(here)
    assert (row.name, row.embedded, row.bytes > 0) == (name, TEXTS, True)


@pytest.mark.parametrize(
    "facts",
    [
        {"dimension": "16"}, {"dimension": 16.0}, {"dimension": True}, {"max_tokens": None},
        {"languages": [1]}, {"provider": 3}, {"revision": True}, {"dimension": 10**9}, {"dimension": -16},
    ],
)  # fmt: skip
def test_facts_of_another_kind_are_refused_though_the_identity_fits(here, exported, facts):
    refused(here, forge(exported, manifest=refaced(exported, **facts)))


@pytest.mark.parametrize(
    "probes",
    [np.zeros((20, 16)), np.ones((20, 15)), np.ones((1, 16)) / 4, np.ones(16), np.full((2, 16), np.nan)],
)
def test_probes_that_are_none_are_refused_before_a_vector_is_stored(here, exported, probes):
    refused(here, forge(exported, probes=probes.astype(np.float32)))


# Where a file must not lead


@pytest.mark.proves("R-address")
def test_an_address_in_a_file_is_never_taken(here, exported):
    choice = {"model": "hash", "provider": "openai", "base_url": "http://evil.example/v1"}
    manifest = refaced(exported, choice, provider="openai")
    report = import_vectors(here, forge(exported, manifest=manifest))
    assert report.added == TEXTS
    assert "base_url" not in here.vaults[0].reader.card(report.profile).choice
    assert "evil" not in here.vaults[0].layout.profile_card(report.profile).read_text()


@pytest.mark.parametrize(
    ("maker", "provider"), [("onnx", "openai"), ("static", "other"), ("ollama", "openai"), ("test", "openai")]
)
def test_a_file_cannot_have_questions_to_one_provider_s_profile_sent_to_another(
    here, exported, maker, provider
):
    manifest = refaced(exported, {"model": "hash", "provider": provider}, provider=maker)
    refused(here, forge(exported, manifest=manifest), f"vectors of {maker} cannot come from")


def test_a_file_cannot_name_a_model_card_by_its_path(here, exported):
    manifest = refaced(exported, {"model": "/home/me/card.yaml", "provider": "local"})
    report = import_vectors(here, forge(exported, manifest=manifest))
    assert here.vaults[0].reader.card(report.profile).choice["model"] == "hash"


@pytest.mark.parametrize(
    "choice",
    [{"model": 3}, {"provider": ["local"]}, {"dimensions": "9"}, {"query_prefix": 1}, {"max_tokens": 1.5}],
)
def test_a_choice_of_another_kind_is_refused(here, exported, choice):
    manifest = {"choice": {"model": "hash", "provider": "local", **choice}}
    refused(here, forge(exported, manifest=manifest))


def test_what_is_known_of_a_profile_here_is_kept_when_a_file_says_something_else(tmp_path, hashed, exported):
    here = machine(tmp_path / "here", embed=True)
    here.vaults[0].file("new.md").write_text("# New\n\nA text of its own.\n")
    shutil.copytree(here.vaults[0].root.path, tmp_path / "other" / "notes")
    export_vectors(machine(tmp_path / "other", {}, embed=True), exported, overwrite=True)
    here.index()
    (row,) = list_profiles(here)
    before = here.vaults[0].reader.card(row.identity)
    report = import_vectors(here, forge(exported, manifest={"choice": {"model": "x", "provider": "else"}}))
    assert report.added == 1
    assert here.vaults[0].reader.card(row.identity).choice == before.choice


def test_vectors_of_another_model_under_the_same_identity_are_refused(tmp_path, hashed, exported):
    here = machine(tmp_path / "here", embed=True)
    here.vaults[0].file("new.md").write_text("# New\n\nA text of its own.\n")
    here.index()
    other = [float(x) for x in hashed.encode_query("another")]
    with pytest.raises(EmbeddingError, match=r"profile hash-\w+ of the file is not the one in root notes"):
        import_vectors(here, forge(exported, manifest={"probe": other}))


def test_a_file_with_windows_of_several_rows_is_taken_apart_at_the_right_places(here, exported):
    found = arrays(exported)
    counts = np.arange(len(found["keys"]), dtype=np.int64) * 3 % 5
    rows = np.random.default_rng(1).normal(size=(int(counts.sum()), 16)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    identity = import_vectors(here, forge(exported, counts=counts, rows=rows)).profile
    ends = np.cumsum(counts)
    stored = vectors(here, identity)
    for key, count, end in zip(found["keys"].tolist(), counts.tolist(), ends.tolist(), strict=True):
        assert (stored[key] == rows[end - count : end]).all() if count else not stored[key].size


def test_memory_for_an_import_is_a_small_part_of_a_large_file(here, exported):
    found = arrays(exported)
    several, dimension = 40_000, 256
    rows = np.zeros((several, dimension), np.float32)
    rows[:, 0] = 1
    # One text in three thousand is here, each in another block of the file.
    keys = np.arange(10**6, 10**6 + several, dtype=np.uint64)
    keys[:: several // TEXTS + 1] = found["keys"]
    manifest = refaced(exported, dimension=dimension) | {"probe": rows[0].tolist()}
    file = forge(
        exported, keys=keys, counts=np.ones(several, np.int64), rows=rows, manifest=manifest, drop=("probes",)
    )
    del rows
    tracemalloc.start()
    try:
        assert import_vectors(here, file).added == TEXTS
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < file.stat().st_size * 0.75
