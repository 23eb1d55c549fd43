"""Damaged, foreign and unwritable indexes: repaired by the writer, explained by the reader."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from index_world import TERMS, World, check_consistency

from searchsvc.errors import IndexFault
from searchsvc.index.arrays import RowFile, read_array, write_arrays
from searchsvc.index.build import Writer
from searchsvc.index.catalog import FORMAT_VERSION
from searchsvc.index.faults import Damage, faults
from searchsvc.index.profiles import ProfileCard
from tests.notes import open_service, write_notes

REPAIRED = "index was damaged and is rebuilt, vectors are kept"


@pytest.fixture
def indexed(world: World) -> World:
    for name in ("a", "b", "c"):
        world.write(f"{name}.md", f"# {name}\n\nshared {name}word [[a|anchor]]\n")
    world.index()
    assert world.embed() == 3
    world.reader.close()
    return world


def arrays(world: World) -> list[Path]:
    return sorted(world.vault.layout.segments.rglob("*.npy"))


def truncate_array(world: World) -> None:
    file = max(arrays(world), key=lambda file: (file.stat().st_size, file.name))
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def empty_array(world: World) -> None:
    next(file for file in arrays(world) if file.name == "weights.npy").write_bytes(b"")


def garble_array(world: World) -> None:
    for file in arrays(world):
        if file.name == "stream.npy":
            file.write_bytes(os.urandom(file.stat().st_size))


def delete_segment(world: World) -> None:
    shutil.rmtree(next(file.parent for file in arrays(world) if file.name == "table.npy"))


def delete_anchors(world: World) -> None:
    for file in arrays(world):
        if file.name == "targets.npy":
            shutil.rmtree(file.parent)


def delete_all_arrays(world: World) -> None:
    shutil.rmtree(world.vault.layout.segments)


def garble_catalog(world: World) -> None:
    world.vault.layout.catalog.write_bytes(b"this is no database" * 1000)


def truncate_catalog(world: World) -> None:
    catalog = world.vault.layout.catalog
    catalog.write_bytes(catalog.read_bytes()[:5000])


def garble_pages(world: World) -> None:
    catalog = world.vault.layout.catalog
    data = bytearray(catalog.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    catalog.write_bytes(data)


def delete_catalog(world: World) -> None:
    world.vault.layout.catalog.unlink()


def drop_table(world: World) -> None:
    connection = sqlite3.connect(world.vault.layout.catalog)
    connection.execute("DROP TABLE notes")
    connection.close()


DAMAGES = [
    truncate_array, empty_array, garble_array, delete_segment, delete_anchors, delete_all_arrays,
    garble_catalog, truncate_catalog, garble_pages, delete_catalog, drop_table,
]  # fmt: skip


@pytest.mark.proves("R-self-healing")
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_the_next_run_repairs_a_damaged_index_says_so_and_embeds_nothing_again(indexed, damage):
    damage(indexed)
    report = indexed.index()
    assert report.remark == REPAIRED
    assert report.added == 3
    assert indexed.find("shared") == {"a.md", "b.md", "c.md"}
    assert indexed.called("anchor") == {"a.md"}
    with indexed.reader.pinned() as (frame, catalog):
        check_consistency(frame, catalog)
    assert indexed.embed() == 0
    after = indexed.index()
    assert (after.unchanged, after.remark) == (3, "")


@pytest.mark.proves("R-self-healing")
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_reader_of_a_damaged_index_names_the_command_that_helps(indexed, damage):
    damage(indexed)
    with (
        pytest.raises(IndexFault, match="run `searchsvc index`"),
        indexed.reader.pinned() as (frame, catalog),
    ):
        catalog.notes()
        raise AssertionError("damage was not noticed")


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_reader_that_was_open_before_recovers_by_itself(indexed, damage):
    assert indexed.find("shared") == {"a.md", "b.md", "c.md"}
    damage(indexed)
    World(indexed.notes.parent).index()
    indexed.write("d.md", "shared\n")
    World(indexed.notes.parent).index()
    assert indexed.find("shared") == {"a.md", "b.md", "c.md", "d.md"}
    indexed.reader.close()
    assert World(indexed.notes.parent).find("shared") == {"a.md", "b.md", "c.md", "d.md"}


@pytest.mark.parametrize("damage", [delete_segment, garble_catalog], ids=lambda damage: damage.__name__)
def test_a_refresh_for_an_answer_does_not_empty_a_damaged_index(indexed, damage):
    damage(indexed)
    indexed.write("a.md", "other\n")
    assert indexed.vault.refresh(["a.md"]) is False
    with pytest.raises(IndexFault, match="searchsvc index"):
        indexed.embed()
    indexed.index()
    assert indexed.find("shared") == {"b.md", "c.md"}


@pytest.mark.proves("R-self-healing")
def test_damaged_vectors_are_made_again_and_the_rest_is_kept(indexed):
    indexed.write("d.md", "more\n")
    indexed.index()
    indexed.embed()
    parts = sorted(indexed.vault.layout.vectors.rglob("rows.npy"), key=lambda file: file.stat().st_size)
    assert len(parts) == 2
    parts[0].write_bytes(b"")
    assert indexed.index().remark == "some vectors were damaged and are made again"
    assert indexed.embed() == 1
    assert indexed.index().remark == ""


@pytest.mark.proves("R-versions")
@pytest.mark.parametrize("found", ["0", str(FORMAT_VERSION + 1), "future"])
def test_an_index_of_another_format_is_rebuilt_with_a_remark(indexed, found):
    connection = sqlite3.connect(indexed.vault.layout.catalog)
    with connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'format'", (found,))
    connection.close()
    with pytest.raises(IndexFault, match="run `searchsvc index`"), indexed.reader.pinned():
        pass
    assert not indexed.reader.exists
    assert (
        indexed.index().remark
        == f"index of format {found} is rebuilt as format {FORMAT_VERSION}, vectors are kept"
    )
    assert indexed.find("shared") == {"a.md", "b.md", "c.md"}


@pytest.mark.proves("R-versions")
def test_other_settings_of_search_by_words_rebuild_the_index_and_keep_vectors(indexed):
    other = World(indexed.notes.parent, stemming=False)
    assert (
        other.index().remark
        == "search by words has other rules or settings now; the index is rebuilt, vectors are kept"
    )
    assert other.embed() == 0
    assert other.find("bword") == {"b.md"}


@pytest.mark.proves("R-versions")
@pytest.mark.parametrize(
    ("key", "value"), [("tokenizer", "2+english"), ("tokenizer", ""), ("shape", "x"), ("format", "2")]
)
def test_a_service_over_an_index_of_another_version_says_so_until_it_has_indexed_again(tmp_path, key, value):
    open_it = partial(open_service, write_notes(tmp_path / "notes"), tmp_path / "data")
    service = open_it()
    service.index()
    with sqlite3.connect(service.vaults[0].layout.catalog) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = ?", (value, key))
    connection.close()
    service.vaults[0].file("kitchen/soup.md").write_text("# Changed\n\nTomatoes.\n", encoding="utf-8")
    service = open_it()
    asked = (service.search, service.semantic_search, service.md_find, service.md_vault_index)
    for ask in asked:
        with pytest.raises(IndexFault, match=r"made by another version.*; run `searchsvc index`, or"):
            ask("stats")
    assert not service.status().roots[0].indexed
    assert service.documents.md_tree("soup").rows and service.documents.list_documents().rows
    service.index()
    assert service.search("tomatoes").hits


def test_an_index_that_is_being_rebuilt_is_not_taken_for_an_empty_one(indexed):
    indexed.find("shared")
    with (
        Writer(indexed.vault.layout, type(TERMS)(stemming=False)),
        pytest.raises(IndexFault, match="no complete index"),
    ):
        indexed.find("shared")


def test_an_index_with_damage_everywhere_is_not_taken_for_complete_before_it_is(indexed):
    delete_segment(indexed)
    next(indexed.vault.layout.vectors.rglob("rows.npy")).write_bytes(b"")
    with Writer(indexed.vault.layout, TERMS) as writer:
        assert writer.remark == REPAIRED
    assert not indexed.reader.exists
    indexed.index()
    assert indexed.embed() == 3


def test_a_new_index_with_the_same_generation_number_is_not_taken_for_the_old_one(indexed):
    before = indexed.generation
    indexed.find("shared")
    shutil.rmtree(indexed.vault.layout.segments)
    (indexed.notes / "a.md").unlink()
    other = World(indexed.notes.parent)
    other.index()
    number = 0
    while other.generation < before:
        other.write("b.md", f"shared {number}\n")
        number += 1
        other.index()
    assert other.generation == before
    assert indexed.find("shared") == {"b.md", "c.md"}


@pytest.mark.proves("R-faults-advise")
def test_a_root_that_was_never_indexed_is_said_to_have_no_index(world):
    assert not world.reader.exists
    with (
        pytest.raises(IndexFault, match="there is no index yet; run `searchsvc index`"),
        world.reader.pinned(),
    ):
        pass
    assert not world.vault.layout.folder.exists(), "looking must not make files"


@pytest.mark.proves("R-faults-advise")
@pytest.mark.parametrize("blocked", ["data", "lock", "catalog", "segments"])
def test_an_index_that_cannot_be_written_is_a_fault_with_advice(world, blocked):
    world.write("a.md", "alpha\n")
    layout = world.vault.layout
    if blocked == "data":
        layout.folder.parent.write_text("a file")
    elif blocked == "segments":
        layout.folder.mkdir(parents=True)
        layout.segments.write_text("a file")
    else:
        {"lock": layout.lock, "catalog": layout.catalog}[blocked].mkdir(parents=True)
    with pytest.raises(IndexFault, match="permissions of the data folder"):
        world.index()


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 0)() == 0, reason="nothing is forbidden to this user")
def test_a_data_folder_without_write_permission_is_a_fault_with_advice(indexed):
    indexed.vault.layout.folder.chmod(0o500)
    indexed.write("a.md", "other\n")
    try:
        with pytest.raises(IndexFault, match="permissions of the data folder"):
            indexed.index()
    finally:
        indexed.vault.layout.folder.chmod(0o700)


@pytest.mark.proves("R-faults-advise")
def test_a_catalog_locked_by_a_foreign_program_is_a_fault_with_advice(indexed, monkeypatch):
    genuine = sqlite3.connect
    foreign = genuine(indexed.vault.layout.catalog, isolation_level=None)
    foreign.execute("BEGIN EXCLUSIVE")
    monkeypatch.setattr(
        sqlite3, "connect", lambda path, timeout, **kwargs: genuine(path, timeout=0, **kwargs)
    )
    try:
        with pytest.raises(
            IndexFault, match="in use: database is locked; close the other program or try again"
        ):
            indexed.index()
    finally:
        foreign.close()
    assert indexed.find("shared") == {"a.md", "b.md", "c.md"}


@pytest.mark.proves("R-faults-advise")
@pytest.mark.parametrize("call", ["commit", "touch", "add", "use", "drop", "forget_failures", "calibrate"])
def test_no_error_of_sqlite_escapes_from_a_writer(indexed, call):
    card = ProfileCard("p", {}, {}, np.ones(2, np.float32))
    calls: dict[str, Callable[[Writer], object]] = {
        "commit": lambda writer: writer.commit([]),
        "touch": lambda writer: writer.touch([("s", 0.0, 1)]),
        "add": lambda writer: writer.vectors.add(card, {1: np.ones((1, 2), np.float32)}),
        "use": lambda writer: writer.vectors.use("p"),
        "drop": lambda writer: writer.vectors.drop("p"),
        "forget_failures": lambda writer: writer.vectors.forget_failures("p"),
        "calibrate": lambda writer: writer.vectors.calibrate("p", np.ones((1, 2), np.float32)),
    }
    with Writer(indexed.vault.layout, TERMS) as writer:
        writer._connection.close()
        with pytest.raises(IndexFault, match="index cannot be used"):
            calls[call](writer)
    assert indexed.find("shared") == {"a.md", "b.md", "c.md"}


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (sqlite3.SQLITE_FULL, "free space, then index again"),
        (sqlite3.SQLITE_IOERR_WRITE, "free space, then index again"),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, "try again in a moment"),
        (sqlite3.SQLITE_CORRUPT_INDEX, "run `searchsvc index`"),
        (sqlite3.SQLITE_READONLY_DBMOVED, "check the permissions"),
        (sqlite3.SQLITE_MISUSE, "run `searchsvc index`"),
    ],
)
def test_every_error_of_sqlite_comes_with_advice(code, advice):
    error = sqlite3.OperationalError("found")
    error.sqlite_errorcode = code
    with pytest.raises(IndexFault, match=f"found; .*{advice}"), faults():
        raise error


def test_arrays_of_every_shape_come_back_as_written(tmp_path):
    shapes = {
        "none": np.empty(0, np.int64),
        "flat": np.empty((0, 384), np.float32),
        "one": np.ones(1, np.uint8),
    }
    shapes |= {"many": np.arange(1000).reshape(10, 100), "bits": np.zeros(3, bool)}
    name = write_arrays(tmp_path, shapes)
    for key, array in shapes.items():
        found = read_array(tmp_path / name, key)
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)


def test_rows_that_are_swept_after_their_map_was_opened_are_a_damage_and_no_crash(tmp_path):
    rows = np.ones((4, 3), np.float32)
    with pytest.raises(Damage, match=r"rows\.npy is missing"):
        RowFile(tmp_path, "rows", rows)
