from dataclasses import replace

import pytest

from searchsvc.config import make_root
from searchsvc.embedding.base import ModelChoice
from searchsvc.errors import EmbeddingError, IndexFault, NotFound, QueryError
from searchsvc.models import make_card
from searchsvc.portable import export_vectors, import_vectors
from searchsvc.profiles import list_profiles, use_profile
from searchsvc.service import Service
from tests.notes import NOTES, open_service, write_notes
from tests.portable_world import TEXTS, arrays, exported, hashed, here, machine, vectors

__all__ = ["exported", "hashed", "here"]

STATIC = "minilm-static-256"


# From one machine to another


def test_a_real_model_s_vectors_travel_and_answer_without_embedding_a_text(tmp_path, monkeypatch):
    there = machine(tmp_path / "there", embed=True, model=STATIC)
    done = export_vectors(there, tmp_path / "v.npz")
    assert (done.texts, done.bytes) == (TEXTS, (tmp_path / "v.npz").stat().st_size)
    here = machine(tmp_path / "here", model="auto")
    report = import_vectors(here, tmp_path / "v.npz")
    assert (report.added, report.known, report.unmatched, report.missing) == (TEXTS, 0, 0, 0)
    use_profile(here, STATIC)
    best = here.search("credentials renewed", mode="vector").hits[0]
    assert best.id == "ops/runbook.md#rotating-keys"
    assert best.score == there.search("credentials renewed", mode="vector").hits[0].score
    assert here.embed().embedded == 0


@pytest.mark.proves("R-portable")
def test_vectors_arrive_bit_by_bit_with_their_calibration(tmp_path, here, exported):
    there = open_service(tmp_path / "there" / "notes", tmp_path / "there" / "data", model="hash")
    identity = import_vectors(here, exported).profile
    ours, theirs = vectors(here, identity), vectors(there, identity)
    assert ours.keys() == theirs.keys()
    assert all((ours[key] == theirs[key]).all() for key in ours)
    with here.vaults[0].reader.pinned() as (mine, _), there.vaults[0].reader.pinned() as (other, _):
        assert mine.calibrations[identity].nothing == pytest.approx(other.calibrations[identity].nothing)


def test_an_import_says_what_matched_and_what_did_not(tmp_path, hashed, exported):
    notes = {path: NOTES[path] for path in ("garden/tomatoes.md", "kitchen/soup.md")}
    here = machine(tmp_path / "other", {**notes, "new.md": "# New\n\nA text of its own.\n"})
    report = import_vectors(here, exported)
    matched = 3 + 3
    assert (report.texts, report.added, report.unmatched) == (TEXTS, matched, TEXTS - matched)
    assert (report.known, report.missing) == (0, 1)
    again = import_vectors(here, exported)
    assert (again.added, again.known, again.unmatched, again.missing) == (0, matched, TEXTS - matched, 1)


def test_a_second_import_commits_nothing(here, exported):
    import_vectors(here, exported)
    before = here.status().roots[0].generation
    import_vectors(here, exported)
    assert here.status().roots[0].generation == before


def test_a_text_that_is_in_two_roots_is_exported_once_and_given_to_both(tmp_path, hashed):
    one = write_notes(tmp_path / "one")
    two = write_notes(tmp_path / "two", NOTES | {"more.md": "# More\n\nOnly here.\n"})
    there = machine(tmp_path / "unused")
    config = replace(there.config, roots=(make_root(one), make_root(two)), data_dir=tmp_path / "both")
    there, here = Service(config), Service(replace(config, data_dir=tmp_path / "fresh"))
    there.index()
    there.embed()
    assert export_vectors(there, tmp_path / "v.npz").texts == TEXTS + 1
    here.index()
    report = import_vectors(here, tmp_path / "v.npz")
    assert (report.added, report.missing) == (TEXTS + 1, 0)
    assert [row.embedded for row in list_profiles(here)] == [TEXTS, TEXTS + 1]


def test_texts_that_are_gone_are_not_exported(tmp_path, hashed):
    there = machine(tmp_path / "there", embed=True)
    there.vaults[0].file("kitchen/soup.md").unlink()
    there.index()
    assert export_vectors(there, tmp_path / "v.npz").texts == TEXTS - 3


def test_an_export_holds_no_text_no_path_and_no_address(tmp_path, hashed):
    there = machine(tmp_path / "there", embed=True)
    vault = there.vaults[0]
    choice = ModelChoice("hash", "ollama", base_url="http://10.1.2.3:11434")
    with vault.writer() as writer:
        card = make_card(hashed, choice)
        writer.vectors.add(card, {1: card.probe[None, :]})
    export_vectors(there, tmp_path / "v.npz", "hash")
    raw = (tmp_path / "v.npz").read_bytes()
    for secret in (b"tomatoes", b"10.1.2.3", str(tmp_path).encode()):
        assert secret not in raw


def test_an_export_replaces_a_file_only_when_told_to(tmp_path, hashed):
    there = machine(tmp_path / "there", embed=True)
    (tmp_path / "v.npz").write_text("mine")
    with pytest.raises(QueryError, match=r"v\.npz exists; choose another name, or add --force"):
        export_vectors(there, tmp_path / "v.npz")
    assert (tmp_path / "v.npz").read_text() == "mine"
    assert export_vectors(there, tmp_path / "v.npz", overwrite=True).texts == TEXTS


def test_a_profile_that_is_not_there_cannot_be_exported(tmp_path, here):
    with pytest.raises(NotFound, match="0 profiles are called 'in use'"):
        export_vectors(here, tmp_path / "v.npz")
    with pytest.raises(NotFound, match="0 profiles are called 'other'"):
        export_vectors(here, tmp_path / "v.npz", "other")
    assert not (tmp_path / "v.npz").exists()


def test_a_profile_that_has_lost_its_card_cannot_be_exported_and_says_what_to_do(tmp_path, hashed):
    there = machine(tmp_path / "there", embed=True)
    (row,) = list_profiles(there)
    there.vaults[0].layout.profile_card(row.identity).unlink()
    with pytest.raises(IndexFault, match=r"profile\.json.*profiles drop"):
        export_vectors(there, tmp_path / "v.npz", row.identity)


def test_without_its_model_a_profile_is_exported_all_the_same(tmp_path, hashed, monkeypatch):
    there = machine(tmp_path / "there", embed=True)

    def fail(choice):
        raise EmbeddingError("the server is off")

    monkeypatch.setattr("searchsvc.models.load", fail)
    there = open_service(tmp_path / "there" / "notes", tmp_path / "there" / "data", model="hash")
    assert export_vectors(there, tmp_path / "v.npz").texts == TEXTS
    assert "probes" not in arrays(tmp_path / "v.npz")
    assert import_vectors(machine(tmp_path / "here"), tmp_path / "v.npz").added == TEXTS
