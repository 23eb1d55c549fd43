import threading

import numpy as np
import pytest

from searchsvc.config import Config, make_root
from searchsvc.embedding.base import Partial
from searchsvc.errors import NotFound, QueryError
from searchsvc.profiles import as_plain, drop_profile, list_failures, list_profiles, use_profile
from searchsvc.service import Service
from tests.index.index_world import HashEmbedder
from tests.notes import open_service, write_notes

NOTES = {
    "a.md": "# Fruit\n\nthe pear\n\n## More\n\nthe apple\n",
    "b.md": "# Fruit\n\nthe pear\n",
    "c.md": "# Tool\n\nthe saw\n",
}
"""Four sections, three texts: two notes begin alike."""
SECTIONS = 4


class Named(HashEmbedder):
    """One of several models; it takes no text that holds the word it refuses."""

    def __init__(self, name, dimension=16, refused=""):
        super().__init__(dimension)
        self.profile = type(self.profile)(name, "test", "0", dimension, max_tokens=100)
        self.refused = refused

    def encode_passages(self, passages):
        for passage in passages:
            (vector,) = super().encode_passages([passage])
            is_refused = self.refused and self.refused in passage.text
            yield Partial(vector[:0], f"no {self.refused}") if is_refused else vector


@pytest.fixture
def models(monkeypatch):
    """Models by name."""
    known = {name: Named(name) for name in ("one", "two")}
    monkeypatch.setattr("searchsvc.models.load", lambda choice: known[choice.model])
    monkeypatch.setattr("searchsvc.models.load_card", known.__getitem__)
    return known


@pytest.fixture
def open_with(tmp_path, models):
    write_notes(tmp_path / "notes", NOTES)

    def make(model, **settings):
        return open_service(tmp_path / "notes", tmp_path / "data", model=model, **settings)

    return make


def embed(service):
    service.index()
    return service.embed()


def row_of(service, name):
    (row,) = [row for row in list_profiles(service) if row.name == name]
    return row


def used(service):
    return [row.name for row in list_profiles(service) if row.in_use]


def test_profiles_lie_side_by_side_with_their_coverage_and_one_is_in_use(open_with):
    assert list_profiles(open_with("one")) == []
    embed(open_with("one"))
    embed(open_with("two"))
    service = open_with("auto")
    rows = list_profiles(service)
    assert [(row.name, row.embedded, row.wanted, row.failed) for row in rows] == [
        ("one", SECTIONS, SECTIONS, 0),
        ("two", SECTIONS, SECTIONS, 0),
    ]
    assert used(service) == ["two"]
    plain = as_plain(rows)[0]
    assert plain["dimension"] == 16
    assert (plain["provider"], plain["runtime"]) == ("local", "test")
    assert plain["bytes"] == service.vaults[0].size(rows[0].identity) > 0


@pytest.mark.proves("R-profiles")
def test_use_switches_and_a_running_service_follows(open_with):
    embed(open_with("one"))
    embed(open_with("two"))
    running = open_with("auto")
    assert [slot.name for slot in running.slots] == ["two"]
    assert running.search("zzz", mode="vector").hits
    identity = use_profile(open_with("auto"), "one")
    assert identity == row_of(running, "one").identity
    assert [slot.name for slot in running.slots] == ["one"]
    asked = []
    one = running.slots[0].require()
    one.encode_query = lambda text: asked.append(text) or HashEmbedder.encode_query(one, text)
    assert running.search("zzz", mode="vector").hits
    assert asked == ["zzz"]
    assert used(running) == ["one"]


def test_no_question_falls_between_two_profiles_while_they_are_switched(open_with):
    embed(open_with("one"))
    embed(open_with("two"))
    running, stop, wrong = open_with("auto"), threading.Event(), []

    def ask():
        while not stop.is_set():
            try:
                found = {hit.id for hit in running.search("the saw", mode="vector").hits}
                wrong.extend([] if len(found) >= 3 else [found])
            except Exception as error:
                wrong.append(error)

    askers = [threading.Thread(target=ask) for _ in range(3)]
    for asker in askers:
        asker.start()
    other = open_with("auto")
    for turn in range(30):
        use_profile(other, ("one", "two")[turn % 2])
    stop.set()
    for asker in askers:
        asker.join()
    assert not wrong


def test_a_profile_that_is_not_complete_is_not_used(open_with, tmp_path):
    embed(open_with("one"))
    embed(open_with("two"))
    (tmp_path / "notes" / "new.md").write_text("# New\n\na text\n")
    service = open_with("auto")
    service.index()
    with pytest.raises(QueryError, match=r"not complete: root notes has vectors for 4 of 5 sections; run"):
        use_profile(service, "one")
    assert used(service) == ["two"]


def test_a_name_that_no_profile_has_is_answered_with_those_there_are(open_with):
    with pytest.raises(NotFound, match="there are: none; run `searchsvc embed`"):
        use_profile(open_with("one"), "one")
    embed(open_with("one"))
    for change in (use_profile, drop_profile, list_failures):
        with pytest.raises(NotFound, match="no profile 'three'; there are: one"):
            change(open_with("one"), "three")


def test_two_profiles_of_one_name_are_told_apart_by_their_identities(open_with, models):
    embed(open_with("one"))
    models["one"] = Named("one", 24)
    embed(open_with("one"))
    service = open_with("auto")
    small, large = sorted(list_profiles(service), key=lambda row: row.dimension)
    with pytest.raises(QueryError, match=f"2 profiles are called 'one'; say which: .*{small.identity}"):
        use_profile(service, "one")
    assert use_profile(service, small.identity) == small.identity
    assert [row.dimension for row in list_profiles(service) if row.in_use] == [16]


def test_drop_frees_the_space_and_leaves_the_other_profile(open_with):
    embed(open_with("one"))
    embed(open_with("two"))
    service = open_with("auto")
    folder = service.vaults[0].layout.profile(row_of(service, "one").identity)
    assert drop_profile(service, "one") > 0
    assert not folder.exists()
    assert [row.name for row in list_profiles(service)] == ["two"]
    assert service.search("zzz", mode="vector").hits


def test_the_profile_in_use_is_dropped_only_by_force_and_words_remain(open_with):
    embed(open_with("one"))
    running = open_with("one")
    with pytest.raises(QueryError, match="one is in use; switch to another .* or add --force"):
        drop_profile(running, "one")
    assert row_of(running, "one").embedded == SECTIONS
    drop_profile(running, "one", force=True)
    assert list_profiles(running) == []
    assert running.search("the saw").hits
    assert running.vaults[0].reader.active == ""


def test_the_default_model_counts_as_in_use_before_any_is_chosen(tmp_path, models, monkeypatch):
    monkeypatch.setattr("searchsvc.models.DEFAULT_MODEL", "one")
    service = open_service(write_notes(tmp_path / "notes", NOTES), tmp_path / "data", model="auto")
    embed(service)
    assert service.vaults[0].reader.active == ""
    assert used(service) == ["one"]
    with pytest.raises(QueryError, match="in use"):
        drop_profile(service, "one")


def test_a_text_that_failed_counts_for_each_of_its_sections_and_does_not_stand_in_the_way(open_with, models):
    models["one"].refused = "pear"
    report = embed(open_with("one"))
    assert (report.failed, report.left) == (1, 0)
    row = row_of(open_with("auto"), "one")
    assert (row.embedded, row.failed, row.wanted) == (2, 2, SECTIONS)
    assert use_profile(open_with("auto"), "one") == row.identity


def test_failures_of_texts_that_are_gone_do_not_count_for_texts_that_are_missing(open_with, models, tmp_path):
    models["one"].refused = "saw"
    embed(open_with("one"))
    embed(open_with("two"))
    (tmp_path / "notes" / "c.md").write_text("# Tool\n\nthe plane\n")
    service = open_with("auto")
    service.index()
    row = row_of(service, "one")
    assert (row.embedded, row.failed, row.wanted) == (3, 0, 4)
    with pytest.raises(QueryError, match="3 of 4 sections"):
        use_profile(service, "one")


def test_failures_are_listed_by_root_profile_and_section(open_with, models):
    models["one"].refused = "saw"
    embed(open_with("one"))
    embed(open_with("two"))
    service = open_with("auto")
    (row,) = list_failures(service)
    assert (row.root, row.profile, row.id, row.reason, row.embedded) == (
        "notes", "one", "c.md#_intro", "no saw", False,
    )  # fmt: skip
    assert list_failures(service, "one") == [row]
    assert list_failures(service, "two") == []
    assert as_plain([row])[0]["id"] == "c.md#_intro"


def test_a_profile_of_which_everything_failed_is_listed_with_its_failures_and_can_be_dropped(
    open_with, models
):
    models["one"].refused = "the"
    assert embed(open_with("one")).failed == 3
    service = open_with("auto")
    service.index()
    (row,) = list_profiles(service)
    assert (row.embedded, row.failed) == (0, SECTIONS)
    assert len(list_failures(service)) == 3
    drop_profile(service, row.identity, force=True)
    assert list_failures(service) == []


def test_every_root_must_have_the_profile_but_one_without_texts_has_all_there_are(tmp_path, models):
    for name, notes in {"full": NOTES, "empty": {}, "late": NOTES}.items():
        (tmp_path / name).mkdir()
        write_notes(tmp_path / name, notes)

    def service(*names):
        roots = tuple(make_root(tmp_path / name) for name in names)
        return Service(Config(roots=roots, data_dir=tmp_path / "data", model="one", instant_model="none"))

    embed(service("full", "empty"))
    use_profile(service("full", "empty"), "one")
    service("late").index()
    with pytest.raises(QueryError, match="root late has vectors for 0 of 4 sections"):
        use_profile(service("full", "late"), "one")


@pytest.mark.proves("R-profiles")
def test_vectors_of_two_models_are_never_compared(open_with, models):
    embed(open_with("one"))
    models["two"] = Named("two", 24)
    service = open_with("two")
    ranking = service.search("the saw")
    assert all("vector" not in hit.channels for hit in ranking.hits)
    assert any(
        "the index was made with one-" in notice and "embed --model two" in notice
        for notice in ranking.notices
    )
    embed(service)
    rows = {row.name: row for row in list_profiles(service)}
    assert rows["one"].identity != rows["two"].identity
    with service.vaults[0].reader.pinned() as (frame, _):
        for name, row in rows.items():
            place = int(np.flatnonzero(frame.table["key"])[-1])
            assert frame.vectors(row.identity).of(place).shape == (1, models[name].profile.dimension)
