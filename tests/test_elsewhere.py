"""Indexes named by where they lie: which are opened, and which are refused."""

import gc
import json
import shutil
import sqlite3
from contextlib import nullcontext

import pytest

from searchsvc.config import Config, make_root
from searchsvc.elsewhere import Elsewhere
from searchsvc.errors import AccessDenied, NotFound, SearchError
from searchsvc.locating import Locator
from searchsvc.service import Service
from tests.reader_world import ReaderWorld, text_of


@pytest.fixture
def open_to(tmp_path):
    """A folder that is allowed beside the root."""
    folder = tmp_path / "open"
    folder.mkdir()
    return folder


@pytest.fixture
def home(tmp_path, open_to):
    return ReaderWorld(tmp_path / "home", allow_paths=(open_to.resolve(),))


@pytest.fixture
def elsewhere(home):
    return Elsewhere(home.reader)


def index(notes, data, text="# Far\n\nA distant zebra.\n"):
    """Index a folder with one note; return the folder of the index."""
    notes.mkdir(parents=True, exist_ok=True)
    (notes / "far.md").write_text(text, encoding="utf-8")
    config = Config(roots=(make_root(notes),), data_dir=data, model="none", instant_model="none")
    service = Service(config)
    service.index()
    return service.vaults[0].layout.folder


def test_no_path_and_that_of_the_served_index_are_the_index_at_home(home, elsewhere):
    folder = home.service.vaults[0].layout.folder
    for path in (
        "",
        "  ",
        str(folder),
        f"{folder}/",
        str(folder / "catalog.sqlite"),
        f"{folder}/../{folder.name}",
    ):
        assert elsewhere.reader(path) is home.reader


def test_another_index_is_opened_by_its_folder_or_its_file(open_to, elsewhere):
    folder = index(open_to / "notes", open_to / "data")
    reader = elsewhere.reader(str(folder))
    assert reader is elsewhere.reader(str(folder / "catalog.sqlite"))
    assert [row["text"] for row in reader.search_markdown("zebra").rows] == ["A distant zebra."]
    assert not elsewhere.reader("").search_markdown("zebra").rows
    (open_to / "notes/far.md").write_text("# Far\n\nGone now.\n", encoding="utf-8")
    assert not reader.search_markdown("zebra").rows


def test_a_link_is_followed_before_it_is_judged(tmp_path, open_to, elsewhere):
    outside = index(tmp_path / "private/notes", tmp_path / "private/data")
    (open_to / "link").symlink_to(outside)
    with pytest.raises(AccessDenied, match="outside the roots"):
        elsewhere.reader(str(open_to / "link"))
    copy = index(open_to / "notes", open_to / "data")
    (open_to / "ring").symlink_to(copy)
    assert elsewhere.reader(str(open_to / "ring")).list_documents().rows


@pytest.mark.proves("R-jail")
def test_an_index_outside_and_one_whose_notes_lie_outside_are_refused(tmp_path, open_to, elsewhere):
    outside = index(tmp_path / "private/notes", tmp_path / "private/data")
    with pytest.raises(AccessDenied, match="allow-path"):
        elsewhere.reader(str(outside))
    inside = index(tmp_path / "secret", open_to / "data")
    with pytest.raises(AccessDenied, match="notes of the index") as refused:
        elsewhere.reader(str(inside))
    assert "secret" not in str(refused.value)


def test_what_is_outside_is_not_told_apart(tmp_path, elsewhere):
    (tmp_path / "private").mkdir()
    said = set()
    for path in (tmp_path / "private", tmp_path / "nowhere", tmp_path / "private/x.sqlite", "/etc/passwd"):
        with pytest.raises(AccessDenied) as refused:
            elsewhere.reader(str(path))
        said.add(str(refused.value))
    assert len(said) == 1


@pytest.mark.parametrize(
    "path",
    [
        "\0",
        "a\0b",
        "x" * 5000,
        "/" * 5000,
        "~nobody-of-this-name/x",
        "\udcff",
        "relative",
        "..",
        "C:\\x",
        "{open}/loop",
    ],
)
def test_what_is_no_path_is_an_error_that_says_so(open_to, elsewhere, path):
    (open_to / "loop").symlink_to(open_to / "loop")
    with pytest.raises((AccessDenied, NotFound)):
        elsewhere.reader(path.replace("{open}", str(open_to)))


@pytest.mark.parametrize("name", ["", "data", "nowhere", "data/far.md"])
def test_where_no_index_is_it_says_what_was_expected(open_to, elsewhere, name):
    (open_to / "data").mkdir()
    (open_to / "data/far.md").write_text("x", encoding="utf-8")
    with pytest.raises(NotFound, match=r"catalog\.sqlite"):
        elsewhere.reader(str(open_to / name))


def damage(file, how):
    if how == "cut":
        file.write_bytes(file.read_bytes()[:3000])
    elif how == "noise":
        file.write_bytes(b"no database" * 500)
    elif how == "empty":
        file.write_bytes(b"")
    elif how == "older":
        with sqlite3.connect(file) as connection:
            connection.execute("PRAGMA user_version = 1")
            connection.execute(
                "UPDATE meta SET value = '1' WHERE key LIKE '%version%' OR key LIKE '%format%'"
            )
        connection.close()


@pytest.mark.parametrize("how", ["cut", "noise", "empty", "older"])
def test_a_damaged_or_older_index_is_an_error_and_is_not_touched(open_to, elsewhere, how):
    folder = index(open_to / "notes", open_to / "data")
    for end in ("-wal", "-shm"):
        folder.joinpath(f"catalog.sqlite{end}").unlink(missing_ok=True)
    damage(folder / "catalog.sqlite", how)
    before = (folder / "catalog.sqlite").read_bytes()
    with pytest.raises(NotFound, match="damaged or was made by another version; index its folder again"):
        elsewhere.reader(str(folder))
    assert (folder / "catalog.sqlite").read_bytes() == before


def test_an_index_that_moved_or_lost_its_notes_is_refused(open_to, elsewhere):
    folder = index(open_to / "notes", open_to / "data")
    renamed = shutil.copytree(folder, open_to / "data" / "renamed")
    with pytest.raises(NotFound, match="renamed"):
        elsewhere.reader(str(renamed))
    shutil.rmtree(open_to / "notes")
    with pytest.raises(NotFound, match="gone"):
        elsewhere.reader(str(folder))


@pytest.mark.proves("R-foreign-index")
@pytest.mark.parametrize(
    ("choice", "is_refused"),
    [
        ({"provider": "sentence-transformers", "model": "{open}/evil"}, True),
        ({"provider": "local", "model": "{open}/evil.yaml"}, True),
        ({"provider": "of-some-package", "model": "x"}, True),
        ({"provider": "local", "model": "minilm-static-256"}, False),
        ({"provider": "ollama", "model": "x"}, False),
    ],
)
def test_an_index_does_not_choose_which_files_are_loaded_as_models(open_to, elsewhere, choice, is_refused):
    index(open_to / "notes", open_to / "data")
    root = make_root(open_to / "notes")
    service = Service(Config(roots=(root,), data_dir=open_to / "data", model="minilm-static-256"))
    service.embed()
    folder = service.vaults[0].layout.folder
    elsewhere.reader(str(folder))  # so that it is open already
    for card in folder.rglob("profile.json"):
        known = json.loads(card.read_text(encoding="utf-8"))
        known["choice"] = {name: text.replace("{open}", str(open_to)) for name, text in choice.items()}
        card.write_text(json.dumps(known), encoding="utf-8")
    with pytest.raises(AccessDenied, match="settings do not name") if is_refused else nullcontext():
        elsewhere.reader(str(folder))


def test_an_index_that_goes_while_it_is_open_is_missed(open_to, elsewhere):
    folder = index(open_to / "notes", open_to / "data")
    assert elsewhere.reader(str(folder)).list_documents().rows
    shutil.rmtree(folder)
    with pytest.raises(SearchError):
        elsewhere.reader(str(folder)).list_documents()


def test_many_indexes_leave_no_open_files_behind(open_to, elsewhere):
    folders = [index(open_to / f"notes-{n}", open_to / "data", f"# N\n\nzebra {n}\n") for n in range(7)]
    for _ in range(2):
        for number, folder in enumerate(folders):
            (row,) = elsewhere.reader(str(folder)).search_markdown("zebra").rows
            assert row["text"] == f"zebra {number}"
    gc.collect()  # what is left open warns, and warnings are errors


def test_documents_of_another_index_are_opened_from_their_own_folder(home, open_to, elsewhere):
    folder = index(open_to / "notes", open_to / "data")
    home.write("far.md", "# Far\n\nAt home.\n")
    home.service.index()
    assert "distant" in text_of(elsewhere.reader(str(folder)).open_document(Locator("far.md")))
    assert "At home" in text_of(elsewhere.reader("").open_document(Locator("far.md")))
