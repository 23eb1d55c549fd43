"""The import job: what it takes, what one bad document costs, and that it goes on where it was stopped."""

import os
import random
import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from filelock import FileLock

from searchsvc.errors import ConfigError, SearchError
from searchsvc.importing import job
from searchsvc.importing.base import VERSION, Limits
from searchsvc.importing.job import ImportReport, Row, import_documents
from searchsvc.importing.store import Store
from searchsvc.importing.workers import run_each
from searchsvc.reading.note import read_note
from tests.importing.stub_converters import CONVERTERS

PNG = b"\x89PNG\r\n\x1a\n"


class Place:
    """A folder with sources and a store."""

    def __init__(self, folder: Path) -> None:
        self.sources = folder / "sources"
        self.into = folder / "imports"
        self.sources.mkdir()

    def add(self, path: str, text: str = "good") -> Path:
        file = self.sources / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def run(self, *paths: object, **options: object) -> ImportReport:
        settings = {"into": self.into, "converters": CONVERTERS, "workers": 2, **options}
        return import_documents(paths or [self.sources], **settings)  # type: ignore[arg-type]

    def documents(self) -> list[str]:
        return sorted(name for name in os.listdir(self.into) if not name.endswith(".lock"))

    def properties(self, source: str) -> dict[str, object]:
        index = Store(self.into).place(str(self.sources / source)) / "index.md"
        return read_note("index.md", index.read_bytes()).properties


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def states(report: ImportReport) -> dict[str, str]:
    return {Path(row.path).name: row.state for row in report.rows}


def test_a_folder_is_imported_with_all_below_it_in_path_order(place):
    for name in ("b.PDF", "a.pdf", "sub/deep/c.pdf", "readme.txt"):
        place.add(name)
    report = place.run()
    assert [Path(row.path).name for row in report.rows] == ["a.pdf", "b.PDF", "c.pdf"]
    assert {(row.state, row.pages) for row in report.rows} == {("imported", 3)}
    assert sorted(row.folder.name for row in report.rows) == place.documents()
    assert place.properties("a.pdf")["pages"] == 3


def test_hidden_files_links_and_other_imports_are_left_out(place, tmp_path):
    place.add("a.pdf")
    place.add(".hidden.pdf")
    place.add(".git/x.pdf")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "far.pdf").write_text("good")
    (place.sources / "link.pdf").symlink_to(elsewhere / "far.pdf")
    (place.sources / "loop").symlink_to(place.sources)
    (place.sources / "outside").symlink_to(elsewhere)
    assert states(place.run(into=place.sources / "results")) == {"a.pdf": "imported"}
    (made,) = (place.sources / "results").glob("a-*")
    (made / "assets" / "a.pdf").write_text("good")
    for into in (place.sources / "results", place.sources, place.into):
        assert list(states(place.run(into=into))) == ["a.pdf"]
        assert list(states(place.run(f"{place.sources}/**/*.pdf", into=into))) == ["a.pdf"]


def test_patterns_are_matched_by_the_job_where_no_shell_did_it(place, monkeypatch):
    for name in ("a.pdf", "b.pdf", "x/c.pdf", "x/y/d.pdf", "x/.h/e.pdf", "notes.txt"):
        place.add(name)
    monkeypatch.chdir(place.sources)
    matched = {
        "*.pdf": ["a.pdf", "b.pdf"],
        "[b]*": ["b.pdf"],
        "*/*.pdf": ["x/c.pdf"],
        "x/**/?.pdf": ["x/c.pdf", "x/y/d.pdf"],
        "**": ["a.pdf", "b.pdf", "x/c.pdf", "x/y/d.pdf"],
        "x*": ["x/c.pdf", "x/y/d.pdf"],
        str(place.sources / "x" / "*" / "d.pdf"): [str(place.sources / "x/y/d.pdf")],
    }
    for pattern, expected in matched.items():
        assert [row.path for row in place.run(pattern).rows] == expected, pattern


def test_a_document_that_is_named_twice_is_imported_once(place):
    file = place.add("a.pdf")
    assert len(place.run(file, place.sources, f"{place.sources}/*.pdf").rows) == 1


def test_what_is_no_document_is_reported_with_the_reason(place):
    text, good = place.add("a.txt"), place.add("b.pdf")
    made = place.run(good).rows[0].folder / "copy.pdf"
    made.write_text("good")
    report = place.run(text, place.sources / "none.pdf", f"{place.sources}/*.docx", made, good)
    assert [row.reason for row in report.rows] == [
        "a .txt file, expected .pdf; convert it to one of these",
        "there is no such file or folder; check the path",
        "matches no document; expected .pdf",
        "was made by an import; import its source instead",
        "",
    ]
    assert [row.state for row in report.rows] == ["failed"] * 4 + ["unchanged"]


def test_a_second_run_makes_nothing_anew(place):
    place.add("a.pdf")
    first = place.run()
    index = first.rows[0].folder / "index.md"
    before = index.stat()
    report = place.run()
    assert (report.rows[0].state, report.rows[0].pages) == ("unchanged", 3)
    assert (index.stat().st_ino, index.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_changed_source_is_imported_into_the_same_folder(place):
    place.add("a.pdf")
    first = place.run().rows[0]
    place.add("a.pdf", "better")
    second = place.run().rows[0]
    assert (second.state, second.folder) == ("imported", first.folder)
    assert "better" in (second.folder / "index.md").read_text()
    assert (second.folder / "assets" / "a.png").read_text() == "better"


def test_force_and_a_new_importer_make_everything_anew(place, monkeypatch):
    place.add("a.pdf")
    place.run()
    assert states(place.run(force=True)) == {"a.pdf": "imported"}
    index = place.run().rows[0].folder / "index.md"
    index.write_text(index.read_text().replace(f"importer: {VERSION}", "importer: 0"))
    assert states(place.run()) == {"a.pdf": "imported"}
    assert states(place.run()) == {"a.pdf": "unchanged"}


def test_a_damaged_result_is_made_anew(place):
    place.add("a.pdf")
    (place.run().rows[0].folder / "index.md").write_text("---\nbroken: [\n---\n")
    assert states(place.run()) == {"a.pdf": "imported"}


def test_what_the_user_says_of_a_document_is_kept_until_it_is_taken_back(place):
    file = place.add("a.pdf")
    place.run(file, overrides={"title": "Mine\n---", "author": "Me"})
    assert (place.properties("a.pdf")["title"], place.properties("a.pdf")["author"]) == ("Mine ---", "Me")
    assert states(place.run(file, overrides={"title": "Mine\n---"})) == {"a.pdf": "unchanged"}
    place.add("a.pdf", "changed")
    assert states(place.run()) == {"a.pdf": "imported"}
    assert place.properties("a.pdf")["title"] == "Mine ---"
    assert states(place.run(file, overrides={"title": ""})) == {"a.pdf": "imported"}
    assert (place.properties("a.pdf")["title"], place.properties("a.pdf")["author"]) == ("a", "Me")
    with pytest.raises(ConfigError, match="'pages'; expected some of title"):
        place.run(file, overrides={"pages": "3"})


REASONS = {
    "exit": "ended with code 7; the file is probably damaged",
    "kill": "ended by SIGKILL",
    "hang": "took longer than 0.5 s",
    "stumble": "cannot be understood (ValueError); is it damaged?",
    "refuse": "refused: found a stub, expected a book",
    "need": "needs pressroom, which is not installed",
}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_document_that_crashes_hangs_or_fails_costs_that_document_only(place, workers):
    for number, word in enumerate(REASONS):
        place.add(f"{number}-bad.pdf", word)
        place.add(f"{number}-good.pdf")
    told: list[tuple[int, int, int]] = []
    report = place.run(workers=workers, seconds=0.5, progress=lambda stage, *counts: told.append(counts))
    bad = [row for row in report.rows if row.state == "failed"]
    assert [Path(row.path).name for row in bad] == [f"{number}-bad.pdf" for number in range(len(REASONS))]
    for row, reason in zip(bad, REASONS.values(), strict=True):
        assert reason in row.reason
        assert row.folder is None
    assert report.count("imported") == len(REASONS) == len(place.documents())
    assert [done for done, _, _ in told] == list(range(1, 13))
    assert told[-1] == (12, 12, 6)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux holds a process to its memory")
def test_a_document_that_takes_all_memory_fails_alone(place):
    place.add("a.pdf", "greedy")
    place.add("b.pdf")
    report = place.run(workers=1)
    assert states(report) == {"a.pdf": "failed", "b.pdf": "imported"}
    assert "more memory" in report.rows[0].reason


def test_a_file_beyond_the_limit_or_not_readable_is_refused_before_it_is_read(place):
    place.add("big.pdf", "good" * 100)
    os.mkfifo(place.sources / "pipe.pdf")
    report = place.run(place.sources / "big.pdf", place.sources / "pipe.pdf", limits=Limits(file_bytes=100))
    assert "400 bytes, at most 100 are read" in report.rows[0].reason
    assert "no regular file" in report.rows[1].reason


def test_what_a_converter_prints_goes_nowhere(place, capfd):
    place.add("a.pdf", "chatter")
    assert states(place.run()) == {"a.pdf": "imported"}
    assert capfd.readouterr() == ("", "")


def test_notices_are_passed_on_but_not_without_end(place):
    place.add("a.pdf", "notices")
    (row,) = place.run(note_bytes=100).rows
    assert row.notices[:2] == ("notice 0", "notice 1")
    assert row.notices[20] == "80 more"
    assert "at most 100 are indexed; raise max_file_bytes" in row.notices[21]


def test_the_parent_does_not_hold_what_it_imports(place):
    count, size = 200, 20_000
    for number in range(count):
        place.add(f"{number}.pdf", "x" * size)
    held: list[int] = []
    tracemalloc.start()
    try:
        place.run(progress=lambda *_: held.append(tracemalloc.get_traced_memory()[0]))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(held) == count
    assert held[-1] - held[count // 2] < count // 2 * 2_000
    assert peak - held[0] < count * size / 4


def test_a_job_that_is_stopped_leaves_whole_documents_and_goes_on(place):
    for number in range(10):
        place.add(f"{number}.pdf")

    def stop(stage: str, done: int, total: int, failed: int = 0) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        place.run(progress=stop)
    made = place.documents()
    assert 4 <= len(made) < 10
    assert not [name for name in made if name.startswith(".")]
    report = place.run()
    assert report.count("unchanged") == len(made)
    assert report.count("imported") == 10 - len(made)


def test_a_job_waits_for_another_one_and_says_so(place):
    place.add("a.pdf")
    place.into.mkdir()
    said: list[str] = []

    def give_up(stage: str, *counts: int) -> None:
        said.append(stage)
        raise KeyboardInterrupt

    with FileLock(place.into / ".searchsvc-import.lock"), pytest.raises(KeyboardInterrupt):
        place.run(progress=give_up)
    assert said == ["waiting for another import"]
    assert states(place.run()) == {"a.pdf": "imported"}


def test_a_worker_that_cannot_start_ends_the_job_with_an_error(monkeypatch):
    with pytest.raises(SearchError, match="before it had begun"):
        list(run_each(Unloadable(), ["a"], workers=1, seconds=60))


class Unloadable:
    """Pickled here, and not to be had in another process."""

    def __call__(self, task: str) -> str:
        return task

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return os._exit, (3,)


JOB = """
import sys
from pathlib import Path
from searchsvc.importing.job import import_documents

def tell(stage, done, total, failed=0):
    print(done, flush=True)

import_documents([sys.argv[1]], into=Path(sys.argv[2]), progress=tell, workers=2)
"""
COUNT = 40


def write_sources(folder: Path, version: str) -> None:
    for number in range(COUNT):
        (folder / str(number)).mkdir(exist_ok=True)
        (folder / str(number) / "pic.png").write_bytes(PNG + version.encode() * 10_000)
        text = f"# Note {number}\n\n![p](pic.png)\n\n{f'{version} ' * 5_000}\n"
        (folder / str(number) / f"note{number}.md").write_text(text)


def start(place: Place) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", JOB, str(place.sources), str(place.into)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


def whole(folder: Path) -> str:
    """Return the version of a document, whose text and image have to be of the same one."""
    text = (folder / "index.md").read_text().rstrip()
    version = text.rsplit(maxsplit=1)[-1]
    assert text.endswith(" ".join([version] * 5_000))
    assert (folder / "assets" / "image-0001.png").read_bytes() == PNG + version.encode() * 10_000
    return version


@pytest.mark.proves("R-import")
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no kill -9")
def test_kill_9_at_any_moment_leaves_whole_documents_and_a_rerun_completes(place):
    chance = random.Random(5)
    write_sources(place.sources, "old")
    place.run(converters=job.CONVERTERS)
    write_sources(place.sources, "new")
    kills = renewed = 0
    while renewed < COUNT and kills < 40:
        with start(place) as running:
            assert running.stdout
            for _ in range(renewed + chance.randrange(4)):
                running.stdout.readline()
            for _ in range(chance.randrange(30_000)):
                pass
            # The terminal goes, with all processes, or the parent alone.
            if kills % 2:
                os.killpg(running.pid, signal.SIGKILL)
            else:
                running.kill()
        kills += 1
        visible = [name for name in place.documents() if not name.startswith(".")]
        versions = [whole(place.into / name) for name in visible]
        assert len(visible) >= COUNT - 4, "no more than those under way"
        assert versions.count("new") >= renewed, "what is done stays done"
        renewed = versions.count("new")
    assert kills > 5
    report = place.run(converters=job.CONVERTERS)
    assert report.count("failed") == 0 and report.count("unchanged") >= renewed
    assert len(place.documents()) == COUNT
    assert {whole(place.into / name) for name in place.documents()} == {"new"}


def test_two_jobs_at_once_make_every_document_once(place):
    write_sources(place.sources, "text")
    first, second = start(place), start(place)
    with first, second:
        assert (first.wait(), second.wait()) == (0, 0)
    assert len(place.documents()) == COUNT
    assert {whole(place.into / name) for name in place.documents()} == {"text"}


def test_rows_come_in_the_order_of_the_paths(place):
    files = [place.add(name) for name in ("c.pdf", "a.pdf", "b.txt", "d.pdf")]
    assert [row.path for row in place.run(*files).rows] == [str(file) for file in files]
    assert place.run(*files[2:3]).rows == (
        Row(str(files[2]), "failed", "a .txt file, expected .pdf; convert it to one of these"),
    )
