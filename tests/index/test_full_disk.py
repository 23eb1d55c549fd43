"""A disk that fills up at any point costs nothing that was there."""

import pytest
from index_world import World, check_consistency, start

pytest.importorskip("resource", reason="limits on file sizes are a matter of POSIX")


@pytest.mark.proves("R-full-disk")
@pytest.mark.parametrize("limit", [100, 1_000, 4_000, 20_000, 40_000, 80_000, 160_000])
def test_a_write_that_fails_part_way_is_a_fault_and_the_last_state_stays(tmp_path, limit):
    world = World(tmp_path)
    world.write("old.md", "# Old\n\noldness\n")
    world.index()
    world.embed()
    before = world.generation
    words = " ".join(f"word{number}" for number in range(3000))
    for number in range(6):
        world.write(f"new{number}.md", f"# New {number}\n\nnewness {words}\n")
    child = start("disk_full_process.py", tmp_path, limit)
    said, complaints = child.communicate(timeout=60)
    assert child.returncode == 0, complaints
    assert said.startswith("fault: index cannot be written: "), said
    assert "free space, then index again. The last complete state is kept." in said
    assert world.find("oldness") == {"old.md"}
    assert world.find("newness") == set()
    assert world.generation == before
    with world.reader.pinned() as (frame, catalog):
        check_consistency(frame, catalog)
        assert frame.coverage(world.embedder.profile.identity) == (1, 1)
    assert world.index().added == 6
    assert len(world.find("newness")) == 6
    assert world.embed() == 6
