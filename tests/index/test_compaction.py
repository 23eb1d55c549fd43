"""Segments are merged, weighed again and rid of the dead without a change in what they say."""

import numpy as np
import pytest
from index_world import TERMS, World, check_consistency

from searchsvc.index.build import MAX_SEGMENTS, Writer
from searchsvc.index.records import FIELDS
from searchsvc.index.segments import live_lengths, mean_lengths, merge_segments
from searchsvc.index.vector_store import MAX_PARTS
from searchsvc.index.vectors import open_part


def fill(world: World, rounds: int) -> None:
    """Make one segment a round by refreshing single notes, which does not merge at once."""
    world.write("base.md", "shared base\n\n## Part\n\npart of base\n")
    world.index()
    for number in range(rounds):
        world.write(f"{number}.md", f"# N\n\nshared word{number}\n\n## In {number}\n\ninner shared\n")
        assert world.vault.refresh([f"{number}.md"])


@pytest.mark.proves("R-compaction")
def test_merging_keeps_every_posting_of_live_sections(world):
    fill(world, MAX_SEGMENTS - 2)
    world.write("2.md", "# N\n\nother\n")
    world.vault.refresh(["2.md"])
    before = world.weights()
    with world.reader.pinned() as (frame, catalog):
        assert len(frame.segments) == MAX_SEGMENTS - 1, "the segment of the replaced note is gone"
        check_consistency(frame, catalog)
        table, stream = merge_segments(frame.segments)
        assert len(table) == frame.live.sum()
        assert len(stream.bounds) == len(table) * len(FIELDS) + 1
        kept = sum(live_lengths(segment).sum() for segment in frame.segments)
        assert len(stream.terms) == kept
    world.write("last.md", "shared\n")
    world.index()
    with world.reader.pinned() as (frame, catalog):
        check_consistency(frame, catalog)
    after = world.weights()
    assert {term: set(found) for term, found in before.items()} == {
        term: found for term in before if (found := set(after.get(term, {})) - {"last.md"})
    }


@pytest.mark.proves("R-compaction")
def test_merging_without_changes_keeps_weights_as_those_of_one_segment(world):
    fill(world, MAX_SEGMENTS + 1)
    with Writer(world.vault.layout, TERMS) as writer:
        writer.compact()
        before = writer.catalog.generation()
        writer.compact()
        assert writer.catalog.generation() == before, "compacting twice does nothing more"
    merged = world.weights()
    anew = World(world.notes.parent / "anew")
    for file in world.notes.iterdir():
        anew.write(file.name, file.read_text())
    anew.index()
    once = anew.weights()
    assert {term: set(found) for term, found in merged.items()} == {
        term: set(found) for term, found in once.items()
    }
    for term, found in merged.items():
        for place, weight in found.items():
            # Segments that were not merged may differ by the drift that is allowed.
            assert weight == pytest.approx(once[term][place], rel=0.15), (term, place)


@pytest.mark.proves("R-compaction")
def test_segments_are_weighed_again_when_mean_lengths_have_drifted(world):
    for number in range(4):
        world.write(f"{number}.md", "short note\n")
    world.index()
    for number in range(4, 8):
        world.write(f"{number}.md", f"much longer note{' with many words' * 50}\n")
    world.index()
    with world.reader.pinned() as (frame, _):
        averages = mean_lengths([live_lengths(segment) for segment in frame.segments])
        for segment in frame.segments:
            np.testing.assert_allclose(segment.averages, averages, rtol=0.1, atol=0.1)
    before = world.generation
    world.index()
    assert world.generation == before


@pytest.mark.proves("R-compaction")
def test_segments_that_are_mostly_dead_are_cleaned(world):
    for number in range(10):
        world.write(f"{number}.md", "text\n")
    world.index()
    for number in range(4):
        (world.notes / f"{number}.md").unlink()
    world.index()
    with world.reader.pinned() as (frame, _):
        assert len(frame.table) == 6
        assert frame.live.all()


def test_when_all_notes_are_gone_no_segment_is_left(world):
    fill(world, 3)
    for file in list(world.notes.iterdir()):
        file.unlink()
    world.index()
    with world.reader.pinned() as (frame, catalog):
        assert (len(frame.segments), len(frame.table), catalog.count("sections")) == (0, 0, 0)
    assert world.find("shared") == set()
    world.write("again.md", "shared\n")
    world.index()
    assert world.find("shared") == {"again.md"}


@pytest.mark.proves("R-compaction")
def test_vector_files_are_merged_and_still_say_the_same(world):
    for number in range(MAX_PARTS + 5):
        world.write(f"{number}.md", f"word{number}\n")
        world.index()
        assert world.embed() == 1
    identity = world.embedder.profile.identity
    with world.reader.pinned() as (frame, catalog):
        assert len(catalog.vector_parts()[identity]) <= MAX_PARTS
        assert frame.coverage(identity) == (MAX_PARTS + 5,) * 2
        view = frame.vectors(identity)
        for place in range(0, len(frame.table), 7):
            (row,) = view.of(place)
            assert view.cosines(row).argmax() == place


def test_vectors_of_texts_that_are_gone_leave_with_the_next_merge(world):
    for number in range(MAX_PARTS):
        world.write("changing.md", f"version {number}\n")
        world.index()
        world.embed()
    world.write("other.md", "text\n")
    world.index()
    world.embed()
    identity = world.embedder.profile.identity
    with world.reader.pinned() as (frame, catalog):
        folder = world.vault.layout.profile(identity)
        stored = sum(len(open_part(folder, name).keys) for name in catalog.vector_parts()[identity])
        assert stored < MAX_PARTS
        assert frame.coverage(identity) == (2, 2)
