"""Indexing again does what the changes ask for, and no more."""

import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from index_world import World, check_consistency

from searchsvc import indexing
from searchsvc.errors import ReadingError
from searchsvc.items import Problem


@pytest.mark.proves("R-incremental")
def test_a_run_without_changes_commits_nothing_and_embeds_nothing(world):
    world.write("a.md", "# A\n\nalpha\n")
    world.write("b/c.md", "# C\n\n[[a]]\n")
    world.index()
    world.embed()
    before = world.generation
    report = world.index()
    assert (report.added, report.changed, report.removed, report.unchanged) == (0, 0, 0, 2)
    assert world.embed() == 0
    assert world.generation == before


@pytest.mark.proves("R-incremental")
def test_added_changed_and_deleted_notes_are_counted_and_found(world):
    world.write("keep.md", "keeping\n")
    world.write("change.md", "before\n")
    world.write("drop.md", "dropping\n")
    first = world.index()
    assert (first.added, first.changed, first.removed, first.unchanged) == (3, 0, 0, 0)
    world.write("change.md", "after\n")
    world.write("new.md", "newness\n")
    (world.notes / "drop.md").unlink()
    second = world.index()
    assert (second.added, second.changed, second.removed, second.unchanged) == (1, 1, 1, 1)
    assert world.find("before") == world.find("dropping") == set()
    assert world.find("after") == {"change.md"}
    assert world.find("newness") == {"new.md"}


@pytest.mark.proves("R-incremental")
def test_a_note_written_again_with_the_same_content_makes_no_generation(world):
    file = world.write("a.md", "# A\n\nalpha\n")
    world.index()
    before = world.generation
    os.utime(file, (1_000_000_000, 1_000_000_000))
    report = world.index()
    assert (report.changed, report.unchanged) == (0, 1)
    assert world.generation == before
    with world.reader.pinned() as (_, catalog):
        row = catalog.note_by_path("a.md")
        assert row.modified == 1_000_000_000
        assert world.vault.stale([row]) == []


def test_a_touched_note_and_a_changed_one_go_into_one_commit(world):
    touched = world.write("a.md", "alpha\n")
    for name in "bcdef":
        world.write(f"{name}.md", "beta\n")
    world.index()
    before = world.generation
    os.utime(touched, (1_000_000_000, 1_000_000_000))
    world.write("b.md", "gamma\n")
    assert world.index().changed == 1
    assert world.generation == before + 1
    with world.reader.pinned() as (_, catalog):
        assert catalog.note_by_path("a.md").modified == 1_000_000_000


@pytest.mark.proves("R-no-embedding-twice")
def test_a_renamed_note_with_its_own_title_embeds_nothing(world):
    world.write("old.md", "# The title\n\nalpha\n\n## Part\n\nbeta\n")
    world.index()
    assert world.embed() == 2
    (world.notes / "sub").mkdir()
    (world.notes / "old.md").rename(world.notes / "sub" / "new.md")
    report = world.index()
    assert (report.added, report.removed) == (1, 1)
    assert world.embed() == 0
    assert world.find("alpha") == {"sub/new.md"}
    with world.reader.pinned() as (frame, _):
        assert frame.coverage(world.embedder.profile.identity) == (2, 2)


@pytest.mark.proves("R-no-embedding-twice")
def test_a_section_moved_within_its_note_is_not_embedded_again(world):
    world.write("a.md", "# T\n\n## One\n\nalpha\n\n## Two\n\nbeta\n")
    world.index()
    world.embed()
    world.write("a.md", "# T\n\n## Two\n\nbeta\n\n## One\n\nalpha\n")
    assert world.index().changed == 1
    assert world.embed() == 0


@pytest.mark.proves("R-no-embedding-twice")
def test_only_the_changed_section_of_a_note_is_embedded_again(world):
    world.write("a.md", "# T\n\n## One\n\nalpha\n\n## Two\n\nbeta\n")
    world.index()
    world.embed()
    world.write("a.md", "# T\n\n## One\n\nalpha\n\n## Two\n\ngamma\n")
    world.index()
    assert world.embed() == 1


@pytest.mark.proves("R-freshness")
@pytest.mark.parametrize("attempt", range(5))
def test_a_second_change_within_one_tick_of_the_clock_is_seen(world, attempt):
    file = world.write("a.md", "first\n")
    world.index()
    kept = file.stat().st_mtime_ns
    file.write_text("other\n", encoding="utf-8")
    os.utime(file, ns=(kept, kept))
    assert world.index().changed == 1
    assert world.find("other") == {"a.md"}


@pytest.mark.proves("R-freshness")
def test_a_change_while_its_note_is_being_read_is_seen_by_the_next_run(world, monkeypatch):
    file = world.write("a.md", "first\n")
    genuine = indexing.read_bytes

    def read_then_change(place, config):
        data = genuine(place, config)
        file.write_text("other\n", encoding="utf-8")
        return data

    monkeypatch.setattr(indexing, "read_bytes", read_then_change)
    world.index()
    assert world.find("first") == {"a.md"}
    monkeypatch.undo()
    assert world.index().changed == 1
    assert world.find("other") == {"a.md"}


def test_a_note_that_becomes_unreadable_is_reported_once_it_does_and_found_again_when_it_recovers(
    world, monkeypatch
):
    file = world.write("a.md", "alpha\n")
    world.write("b.md", "beta\n")
    world.index()

    def refuse(place, config):
        raise ReadingError(f"{place.path}: cannot be read: Permission denied")

    os.utime(file, (1, 1))
    with monkeypatch.context() as patched:
        patched.setattr(indexing, "read_bytes", refuse)
        report = world.index()
        problem = Problem("a.md", "cannot be read: Permission denied")
        assert report.problems == [problem]
        before = world.generation
        assert world.index().problems == [problem], "a standing problem is told again"
        assert world.generation == before
    assert world.find("alpha") == set()
    assert world.find("beta") == {"b.md"}
    os.utime(file, (2, 2))
    assert world.index().problems == []
    assert world.find("alpha") == {"a.md"}


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 0)() == 0, reason="nothing is unreadable for this user")
def test_a_note_without_read_permission_is_reported(world):
    file = world.write("a.md", "alpha\n")
    file.chmod(0)
    assert world.index().problems == [Problem("a.md", "cannot be read: Permission denied")]
    file.chmod(stat.S_IRUSR | stat.S_IWUSR)
    assert world.index().problems == []


@pytest.mark.proves("R-bad-file")
def test_a_note_that_breaks_the_parser_does_not_stop_the_others(world, monkeypatch):
    world.write("a.md", "alpha\n")
    world.write("bad.md", "poison\n")
    genuine = indexing.read_note

    def read(path, data):
        if path == "bad.md":
            raise RecursionError
        return genuine(path, data)

    monkeypatch.setattr(indexing, "read_note", read)
    (problem,) = world.index().problems
    assert problem.path == "bad.md"
    assert "RecursionError" in problem.reason
    assert world.find("alpha") == {"a.md"}


@pytest.mark.proves("R-bad-file")
@pytest.mark.parametrize(
    "text",
    [
        '---\ntitle: "\\ud83d"\naliases: ["\\udc00"]\ntags: ["a\\ud800"]\n---\n\nalpha\n',
        '---\n"\\ud800": "\\ud800"\n---\n\nalpha\n',
        "[link](%ED%A0%80.md) ![[%ED%A0%80]] alpha\n",
        "# \x00 nul\n\nalpha and enough other words not to look like a binary file \x00\n",
        "---\nn: 99999999999999999999999999\nd: .nan\n---\nalpha\n",
    ],
)
def test_no_text_can_stop_a_commit(world, text):
    world.write("odd.md", text)
    world.index()
    assert world.find("alpha") == {"odd.md"}
    assert world.embed() >= 1


def test_a_problem_of_a_note_survives_a_run_that_was_cut_short(world, monkeypatch):
    monkeypatch.setattr(indexing, "_CHUNK_BYTES", 1)
    monkeypatch.setattr(indexing, "_COMMIT_BYTES", 1)
    (world.notes / "a.md").write_bytes(b"\x00\x01\x02" * 100)
    for name in "bcd":
        world.write(f"{name}.md", f"{name}\n")

    def cut(stage, done, total):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        world.vault.update(progress=cut)
    assert [problem.path for problem in world.index().problems] == ["a.md"]


# Links


@pytest.mark.proves("R-links")
def test_a_link_to_a_renamed_note_leads_nowhere_and_to_its_new_name_once_written(world):
    world.write("a.md", "[[target]] and [[renamed]]\n")
    world.write("target.md", "text\n")
    world.index()
    assert world.links() == {("a.md", "target"): "target.md", ("a.md", "renamed"): ""}
    (world.notes / "target.md").rename(world.notes / "renamed.md")
    world.index()
    assert world.links() == {("a.md", "target"): "", ("a.md", "renamed"): "renamed.md"}
    assert world.called("renamed") == {"renamed.md"}
    assert world.called("target") == set()


@pytest.mark.proves("R-links")
def test_a_nearer_note_of_the_same_name_takes_links_over_and_gives_them_back(world):
    world.write("x/a.md", "[[target]]\n")
    world.write("deep/er/target.md", "far\n")
    world.index()
    assert world.links()["x/a.md", "target"] == "deep/er/target.md"
    near = world.write("x/target.md", "near\n")
    world.index()
    assert world.links()["x/a.md", "target"] == "x/target.md"
    near.unlink()
    world.index()
    assert world.links()["x/a.md", "target"] == "deep/er/target.md"


@pytest.mark.proves("R-links")
def test_link_text_follows_the_links_of_a_note_that_changes(world):
    world.write("a.md", "[[b|zebra]] [[b#Part|giraffe]]\n")
    world.write("b.md", "intro\n\n## Part\n\ntext\n")
    world.write("c.md", "other\n")
    world.index()
    assert world.called("zebra") == {"b.md"}
    assert world.called("giraffe") == {"b.md#part"}
    world.write("a.md", "[[c|zebra]]\n")
    world.index()
    assert world.called("zebra") == {"c.md"}
    assert world.called("giraffe") == set()


@pytest.mark.proves("R-links")
def test_links_keep_their_section_when_their_target_changes(world):
    world.write("a.md", "[[b#Part|giraffe]]\n")
    world.write("b.md", "intro\n\n## Part\n\ntext\n")
    world.index()
    world.write("b.md", "intro\n\n## New\n\nmore\n\n## Part\n\ntext\n")
    world.index()
    assert world.called("giraffe") == {"b.md#part"}
    world.write("b.md", "intro\n")
    world.index()
    assert world.called("giraffe") == set()


@pytest.mark.proves("R-links")
def test_aliases_that_come_and_go_take_links_with_them(world):
    world.write("a.md", "[[nickname]]\n")
    world.write("b.md", "text\n")
    world.index()
    assert world.links()["a.md", "nickname"] == ""
    world.write("b.md", "---\naliases: [nickname]\n---\ntext\n")
    world.index()
    assert world.links()["a.md", "nickname"] == "b.md"
    world.write("b.md", "text\n")
    world.index()
    assert world.links()["a.md", "nickname"] == ""


@pytest.mark.proves("R-links")
@pytest.mark.parametrize("vanish", [False, True])
def test_links_of_a_run_that_was_cut_short_are_resolved_by_the_next(world, monkeypatch, vanish):
    monkeypatch.setattr(indexing, "_CHUNK_BYTES", 1)
    monkeypatch.setattr(indexing, "_COMMIT_BYTES", 1)
    world.write("a.md", "[[b|zebra]]\n")
    world.write("b.md", "text\n")
    last = world.write("c.md", "text\n")

    def cut(stage, done, total):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        world.vault.update(progress=cut)
    assert world.links() == {("a.md", "b"): ""}
    if vanish:
        last.unlink()
    world.index()
    assert world.links() == {("a.md", "b"): "b.md"}
    assert world.called("zebra") == {"b.md"}
    before = world.generation
    world.index()
    assert world.generation == before


# Notes read again for an answer


@pytest.mark.proves("R-freshness")
def test_a_refresh_reads_what_changed_and_drops_what_is_gone(world):
    world.write("a.md", "alpha\n")
    world.write("b.md", "beta\n")
    for name in "cdefghi":
        world.write(f"{name}.md", "gamma\n")
    world.index()
    world.write("a.md", "delta\n")
    (world.notes / "b.md").unlink()
    assert world.vault.refresh(["a.md", "b.md"])
    assert world.find("delta") == {"a.md"}
    assert world.find("beta") == set()
    with world.reader.pinned() as (_, catalog):
        assert catalog.problems() == []
    before = world.generation
    report = world.index()
    assert (report.changed, report.removed, report.unchanged) == (0, 0, 8)
    assert world.generation == before


@pytest.mark.proves("R-jail")
@pytest.mark.parametrize("where", ["note", "folder"])
def test_a_note_replaced_by_a_link_out_of_the_root_is_dropped_not_followed(world, tmp_path, where):
    world.write("in/a.md", "alpha\n")
    world.index()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.md").write_text("secret\n")
    (world.notes / "in" / "a.md").unlink()
    if where == "note":
        (world.notes / "in" / "a.md").symlink_to(outside / "a.md")
    else:
        (world.notes / "in").rmdir()
        (world.notes / "in").symlink_to(outside, target_is_directory=True)
    assert world.vault.refresh(["in/a.md"])
    assert world.find("secret") == world.find("alpha") == set()


def test_a_refresh_drops_a_note_that_is_ignored_by_now(world):
    world.write("a.md", "alpha\n")
    world.index()
    world.write(".searchsvcignore", "a.md\n")
    world.write("a.md", "beta\n")
    assert world.vault.refresh(["a.md"])
    assert world.find("beta") == world.find("alpha") == set()


def test_many_refreshes_do_not_pile_up_segments(world):
    for number in range(5):
        world.write(f"{number}.md", "alpha\n")
    world.index()
    for number in range(30):
        world.write(f"{number % 5}.md", f"round{number} alpha\n")
        assert world.vault.refresh([f"{number % 5}.md"])
    with world.reader.pinned() as (frame, catalog):
        assert len(frame.segments) <= 9
        check_consistency(frame, catalog)
    assert len(world.find("alpha")) == 5


# Interruptions


@pytest.mark.proves("R-interrupt")
def test_an_interrupt_at_any_portion_leaves_a_good_index(tmp_path, monkeypatch):
    monkeypatch.setattr(indexing, "_CHUNK_BYTES", 20)
    monkeypatch.setattr(indexing, "_COMMIT_BYTES", 50)
    for moment in range(1, 9):
        world = World(tmp_path / str(moment))
        for number in range(16):
            world.write(f"{number:02}.md", f"word{number} shared [[{(number + 1) % 16:02}]]\n")

        def interrupt(stage, done, total, *, moment=moment):
            if done >= moment * 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            world.vault.update(progress=interrupt)
        if world.reader.exists:
            with world.reader.pinned() as (frame, catalog):
                check_consistency(frame, catalog)
        world.index()
        assert len(world.find("shared")) == 16
        with world.reader.pinned() as (frame, catalog):
            check_consistency(frame, catalog)
        assert all(world.links().values())


@pytest.mark.proves("R-interrupt")
def test_an_interrupt_while_embedding_keeps_the_vectors_made_so_far(world):
    for number in range(10):
        world.write(f"{number}.md", f"word{number}\n")
    world.index()

    def interrupt(stage, done, total, failed=0):
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        world.embed(progress=interrupt)
    assert world.embed() == 6


# Everything at once

_NAMES = ("a.md", "b.md", "c/a.md", "c/d.md")
_TEXTS = ("", "alpha [[b]]\n", "# T\n\nbeta\n\n## S\n\ngamma [[a#S]]\n", "---\naliases: [b]\n---\ndelta\n")
_changes = st.lists(
    st.tuples(st.sampled_from(_NAMES), st.sampled_from([None, *_TEXTS])), min_size=1, max_size=4
)


@pytest.mark.proves("R-as-from-nothing")
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_changes, min_size=1, max_size=5))
def test_after_any_changes_the_index_equals_one_made_from_nothing(tmp_path_factory, rounds):
    folder: Path = tmp_path_factory.mktemp("any")
    world = World(folder)
    for changes in rounds:
        for name, text in changes:
            if text is None:
                (world.notes / name).unlink(missing_ok=True)
            else:
                world.write(name, text)
        world.index()
    anew = World(folder)
    anew.vault = type(anew.vault)(anew.root, indexing.Config(data_dir=folder / "anew", workers=1))
    anew.index()
    assert facts(world) == facts(anew)


def facts(world: World) -> object:
    """Return what an index says, without the numbers it gave out by itself."""
    with world.reader.pinned() as (frame, catalog):
        check_consistency(frame, catalog)
        notes = catalog.notes()
        live = frame.table[frame.live]
        rows = catalog.sections(live["id"].tolist())
        sections = sorted((notes[row.note].path, row.section.slug, row.text) for row in rows.values())
        columns = sorted((int(s["key"]), int(s["twin"]), int(s["cost"]), int(s["level"])) for s in live)
    words = {word: world.find(word) for word in ("alpha", "beta", "gamma", "delta")}
    called = {word: world.called(word) for word in ("a", "b", "s")}
    return sections, columns, words, called, world.links()
