"""Imported documents on disk: whole or absent at every moment, with front matter that says what it should."""

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st

from searchsvc.errors import SearchError
from searchsvc.importing.base import VERSION, Asset, Book
from searchsvc.importing.store import Record, Source, Store, clean_overrides, is_import, read_record
from searchsvc.reading.note import read_note

DIGEST = "0" * 64


def book(text: str = "# One\n\ntext", **values: object) -> Book:
    return Book(kind="pdf", markdown=text, **values)  # type: ignore[arg-type]


def source(path: Path | str, digest: str = DIGEST, **overrides: str) -> Source:
    return Source(str(path), digest, clean_overrides(overrides))


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "imports")


def properties(place: Path) -> dict[str, object]:
    note = read_note("index.md", (place / "index.md").read_bytes())
    assert note.problems == ()
    return note.properties


def names(store: Store) -> list[str]:
    return sorted(name for name in os.listdir(store.folder) if not name.endswith(".lock"))


def test_a_document_says_what_it_is_and_where_it_comes_from(store):
    made = book(title="A Book", author="Ann, Bob", language="en", pages=7, assets=(Asset("p.png", b"png"),))
    place = store.write(source("/books/A Book (2nd).pdf"), made)
    found = properties(place)
    assert str(found.pop("imported_at")).endswith("Z")
    assert found == {
        "title": "A Book", "author": "Ann, Bob", "language": "en", "source": "/books/A Book (2nd).pdf",
        "file_type": "pdf", "sha256": DIGEST, "importer": VERSION, "pages": 7,
    }  # fmt: skip
    assert place.name.startswith("a-book-2nd-")
    assert (place / "assets" / "p.png").read_bytes() == b"png"
    assert (place / "index.md").read_text().endswith("---\n\n# One\n\ntext\n")


def test_a_source_has_one_place_and_another_source_of_the_same_name_has_another(store):
    assert store.place("/a/b.pdf") == store.place("/a/b.pdf")
    assert store.place("/a/b.pdf").name[:2] == store.place("/c/b.pdf").name[:2]
    assert store.place("/a/b.pdf") != store.place("/c/b.pdf")


@pytest.mark.parametrize("stem", ["図" * 300, "..", "???", " ", "\udcff", "-", "𝔸" * 200, "con"])
def test_any_file_name_makes_a_folder_name_that_systems_take(store, stem):
    place = store.write(source(f"/books/{stem}.pdf"), book())
    assert len(os.fsencode(place.name)) < 230
    assert is_import(place)


HOSTILE = [
    "a\nb", "---", "x\n---\ny: 1", "nul\x00here", "'", '"', "''", "a: b", "# no comment", "[x", "{x}", "&a",
    "*a", "!!python/object:os.system", "no", "null", "~", "1.10", "0o17", "1e3", "0x1F", "2026-05-26", "|",
    ">", "%x", "@x", "`x`", "\u2028", "\x85", "\ufeff", "\ud800", "𝔸 😀", "é", "\x1b[31m", "...", "a\r\nb",
    "\t", "- x", "? x", "[[link]]", "\ue085\ue028",
]  # fmt: skip


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_titles_come_back_as_one_line_of_text(store, hostile):
    said = {"title": f"a {hostile} z", "author": hostile}
    for place in (
        store.write(source("/a.pdf"), book(**said)),
        store.write(source("/b.pdf", **said), book()),
    ):
        found = properties(place)
        assert found["file_type"] == "pdf" and found["sha256"] == DIGEST
        title = found["title"]
        assert isinstance(title, str) and title.startswith("a ") and title.endswith(" z")
        assert len(title.splitlines()) == 1
        if hostile.isprintable() and "\ue085" not in hostile:
            assert title == f"a {hostile} z"
            assert found.get("author", "") == " ".join(hostile.split())


@given(st.text())
def test_any_title_leaves_the_other_properties_as_they_are(tmp_path_factory, title):
    store = Store(tmp_path_factory.getbasetemp() / "any")
    found = properties(store.write(source("/a.pdf"), book(title=title)))
    assert isinstance(found["title"], str) and found["title"]
    assert found["sha256"] == DIGEST


def test_a_very_long_title_is_cut(store):
    found = properties(store.write(source("/a.pdf"), book(title="word " * 100_000)))
    assert len(str(found["title"])) == 500


def test_a_language_that_is_no_tag_is_left_out(store):
    assert "language" not in properties(store.write(source("/a.pdf"), book(language="see page 3")))


def test_a_document_without_a_title_has_that_of_its_file(store):
    note = read_note(
        "index.md", (store.write(source("/b/Field Notes.pdf"), book("text")) / "index.md").read_bytes()
    )
    assert note.title == "Field Notes"


def test_what_the_user_says_wins_and_is_remembered(store):
    place = store.write(source("/a.pdf", title="Mine", author="Me"), book(title="Theirs", author="They"))
    assert (properties(place)["title"], properties(place)["author"]) == ("Mine", "Me")
    assert store.record("/a.pdf") == Record(DIGEST, VERSION, {"author": "Me", "title": "Mine"})


def test_a_text_with_control_characters_is_still_read_as_text(store):
    place = store.write(source("/a.pdf"), book("# A\n\n" + "\x00\x01\ud800" * 3000))
    assert properties(place)["file_type"] == "pdf"
    assert "\ufffd" in (place / "index.md").read_text()


@pytest.mark.parametrize(
    "name", ["../evil.png", "a/b.png", "", ".hidden", "a\\b", "a\x00b", "x" * 200, "C:a.png"]
)
def test_an_image_name_that_leads_elsewhere_is_refused_and_leaves_nothing(store, name):
    with pytest.raises(SearchError, match="image name"):
        store.write(source("/a.pdf"), book(assets=(Asset(name, b""),)))
    assert names(store) == []


def test_two_images_of_one_name_are_refused(store):
    with pytest.raises(SearchError, match="image name"):
        store.write(source("/a.pdf"), book(assets=(Asset("A.png", b""), Asset("a.PNG", b""))))


def test_a_folder_that_is_no_import_is_told_from_one(store, tmp_path):
    place = store.write(source("/a.pdf"), book())
    other = tmp_path / "notes-0123456789ab"
    other.mkdir()
    assert is_import(place) and not is_import(other) and not is_import(tmp_path / "none")
    (other / "index.md").write_text("---\ntitle: x\n---\n")
    assert not is_import(other)
    (other / "index.md").write_bytes(b"\x00" * 100)
    assert read_record(other) is None


def test_a_replaced_document_has_nothing_of_the_old_one(store):
    store.write(source("/a.pdf"), book("old", assets=(Asset("old.png", b"old"),)))
    place = store.write(source("/a.pdf"), book("new"))
    assert "new" in (place / "index.md").read_text()
    assert os.listdir(place) == ["index.md"]
    assert names(store) == [place.name]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_a_disk_that_takes_no_more_keeps_the_old_document_and_says_what_to_do(
    store, monkeypatch, number, call
):
    store.write(source("/a.pdf"), book("old"))
    real = os.rename

    def fail(*arguments: object) -> None:
        if call == "rename" and "searchsvc-new" not in str(arguments[0]):
            return real(*arguments)  # type: ignore[arg-type]
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, call, fail)
    advice = "free space" if number == errno.ENOSPC else "--into"
    with pytest.raises(SearchError, match=rf"cannot be written: {os.strerror(number)}; .*{advice}"):
        store.write(source("/a.pdf"), book("new"))
    monkeypatch.undo()
    assert names(store) == [store.place("/a.pdf").name]
    assert "old" in (store.place("/a.pdf") / "index.md").read_text()


def test_a_store_that_cannot_be_made_is_an_error_with_advice(tmp_path):
    (tmp_path / "file").touch()
    with (
        pytest.raises(SearchError, match="cannot be written: .*--into"),
        Store(tmp_path / "file" / "in").lock(),
    ):
        pass


DYING = """
import os, sys
from pathlib import Path
from searchsvc.importing.base import Asset, Book
from searchsvc.importing.store import Source, Store

left = int(sys.argv[2])

def dying(real):
    def call(*arguments, **options):
        global left
        if str(arguments[0]).startswith("/dev/"):
            return real(*arguments, **options)
        left -= 1
        if left < 0:
            os._exit(9)
        return real(*arguments, **options)
    return call

for name in ("rename", "fsync", "mkdir", "unlink", "rmdir"):
    setattr(os, name, dying(getattr(os, name)))
book = Book("pdf", "# new\\n\\nnew", assets=(Asset("a.png", b"new"), Asset("b.png", b"new")))
Store(Path(sys.argv[1])).write(Source("/a.pdf", "1" * 64), book)
"""


def test_a_crash_at_any_step_leaves_the_old_document_or_the_new_one_and_no_rubbish(tmp_path):
    seen: list[str] = []
    for step in range(40):
        store = Store(tmp_path / str(step))
        old = book("# old\n\nold", assets=(Asset("a.png", b"old"), Asset("b.png", b"old")))
        place = store.write(source("/a.pdf"), old)
        done = subprocess.run([sys.executable, "-c", DYING, str(store.folder), str(step)], check=False)
        if place.exists():
            assert_whole(place)
        with store.lock():
            pass
        assert names(store) == [place.name], step
        seen.append(assert_whole(place))
        if not done.returncode:
            break
        assert done.returncode == 9
    assert seen == sorted(seen, reverse=True) and {"old", "new"} == set(seen)
    assert not done.returncode, "all steps were tried"


def assert_whole(place: Path) -> str:
    text = (place / "index.md").read_text()
    version = text.splitlines()[-1]
    assert f"# {version}\n" in text
    assert {(place / "assets" / name).read_text() for name in ("a.png", "b.png")} == {version}
    return version


def test_a_reader_sees_whole_documents_while_they_are_replaced(store):
    place, stop, seen, wrong = store.place("/a.pdf"), threading.Event(), set[str](), list[str]()

    def read() -> None:
        while not stop.is_set():
            try:
                text = (place / "index.md").read_text()
            except FileNotFoundError:  # Between two renames.
                continue
            lines = text.splitlines()
            seen.add(lines[-1])
            if lines[-1] != lines[-3].removeprefix("# ") or len(lines[-1]) < 10_000 or lines[0] != "---":
                wrong.append(text)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for number in range(60):
            body = str(number) * 10_000
            store.write(source("/a.pdf"), book(f"# {body}\n\n{body}"))
    finally:
        stop.set()
        reader.join()
    assert not wrong
    assert len(seen) > 1


def test_a_document_renamed_away_is_brought_back_and_what_is_unfinished_removed(store):
    place = store.write(source("/a.pdf"), book("old"))
    place.rename(store.folder / f".searchsvc-old-{place.name}")
    (store.folder / ".searchsvc-new-0123-x").mkdir()
    (store.folder / ".searchsvc-new-file").touch()
    (store.folder / "mine.txt").touch()
    with store.lock():
        assert names(store) == sorted([place.name, "mine.txt"])


def test_who_waits_for_the_lock_is_told_and_may_give_up(store):
    store.folder.mkdir()

    def give_up() -> None:
        raise KeyboardInterrupt

    with (
        FileLock(store.folder / ".searchsvc-import.lock"),
        pytest.raises(KeyboardInterrupt),
        store.lock(give_up),
    ):
        pass
