"""What cannot be read for a moment is neither lost from the index nor forgotten."""

import errno
import os
from pathlib import Path

import pytest

from searchsvc.items import Problem
from searchsvc.reading.walk import may_pass


@pytest.fixture
def fail(monkeypatch):
    """Makes a function of ``os`` fail for paths that end in a name, as often as is asked for."""

    def install(function: str, name: str, code: int, times: int = 1) -> None:
        real, left = getattr(os, function), [times]

        def failing(path, *args, **named):
            if str(path).endswith(name) and left[0]:
                left[0] -= 1
                raise OSError(code, os.strerror(code))
            return real(path, *args, **named)

        monkeypatch.setattr(os, function, failing)

    return install


@pytest.mark.parametrize("code", [errno.EMFILE, errno.EIO, errno.ENOMEM])
def test_a_new_note_that_cannot_be_read_for_a_moment_is_read_at_the_next_run(world, fail, code):
    world.write("a.md", "alpha\n")
    world.write("b.md", "beta\n")
    fail("open", "a.md", code)
    assert world.index().problems == [Problem("a.md", f"cannot be read: {os.strerror(code)}")]
    assert world.find("beta") == {"b.md"}
    assert world.index().problems == []
    assert world.find("alpha") == {"a.md"}


def test_a_known_note_that_cannot_be_read_for_a_moment_keeps_its_sections_and_is_read_again(world, fail):
    file = world.write("a.md", "alpha\n")
    world.index()
    file.write_text("gamma\n")
    fail("open", "a.md", errno.EIO, times=2)
    for _ in range(2):
        assert [problem.path for problem in world.index().problems] == ["a.md"]
        assert world.find("alpha") == {"a.md"}
    assert world.index().problems == []
    assert world.find("alpha") == set()
    assert world.find("gamma") == {"a.md"}


def test_a_note_with_a_fault_of_its_own_is_told_so_again_after_it_could_not_be_read(world, fail):
    file = world.write("a.md", "---\na: [1\n---\nalpha\n")
    own = world.index().problems
    assert [problem.path for problem in own] == ["a.md"]
    os.utime(file, (1, 1))
    fail("open", "a.md", errno.EIO)
    world.index()
    assert world.index().problems == own
    assert world.find("alpha") == {"a.md"}


def test_a_lasting_fault_is_not_tried_again_until_the_file_changes(world, fail):
    file = world.write("a.md", "alpha\n")
    fail("open", "a.md", errno.EACCES)
    world.index()
    assert world.index().unchanged == 1
    assert world.find("alpha") == set()
    os.utime(file, (1, 1))
    world.index()
    assert world.find("alpha") == {"a.md"}


def test_the_state_of_a_file_that_cannot_even_be_looked_at_is_no_other_files_state(world, fail):
    world.write("a.md", "alpha\n")
    world.write("b.md", "beta\n")
    # The walk looks at it first, by its entry.
    fail("lstat", "b.md", errno.EIO)
    assert [problem.path for problem in world.index().problems] == ["b.md"]
    world.index()
    assert world.find("beta") == {"b.md"}


@pytest.mark.parametrize("away", ["sub", "notes"])
def test_notes_of_a_folder_that_is_away_stay_with_their_vectors(world, fail, away):
    world.write("a.md", "alpha\n")
    world.write("sub/b.md", "---\na: [1\n---\nbeta\n")
    own = world.index().problems
    world.embed()
    fail("scandir", away, errno.EIO, times=2)
    for _ in range(2):
        report = world.index()
        assert (report.removed, len(report.problems)) == (0, 2)
    assert world.find("beta") == {"sub/b.md"}
    assert world.index().problems == own
    assert world.embed() == 0


def test_notes_of_a_drive_that_is_not_there_stay_until_it_is_back(world):
    world.write("a.md", "alpha\n")
    world.index()
    elsewhere = Path(f"{world.notes}-away")
    world.notes.rename(elsewhere)
    assert world.index().removed == 0
    assert world.find("alpha") == {"a.md"}
    elsewhere.rename(world.notes)
    assert world.index().unchanged == 1


def test_a_folder_that_may_not_be_opened_is_gone(world, fail):
    world.write("sub/b.md", "beta\n")
    world.index()
    fail("scandir", "sub", errno.EACCES)
    assert world.index().removed == 1
    assert world.find("beta") == set()


def test_a_file_that_another_program_holds_on_windows_is_tried_again():
    held, forbidden = PermissionError(errno.EACCES, "held"), PermissionError(errno.EACCES, "forbidden")
    held.winerror = 32
    assert may_pass(held)
    assert not may_pass(forbidden)
    assert not may_pass(ValueError("no fault of the system's"))
