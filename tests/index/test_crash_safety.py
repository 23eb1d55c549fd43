"""kill -9 at any moment loses nothing that was acknowledged and leaves nothing half-done."""

import random
import signal
import subprocess
from pathlib import Path

import pytest
from index_world import World, acknowledged, check_consistency, start

from searchsvc.index.layout import STAGING_PREFIX

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")


def run_until_killed(folder: Path, first: int, dice: random.Random) -> list[dict[str, int]]:
    """Let a writing process work until it dies, by its own hand or ours; return what it acknowledged."""
    inside = dice.random() < 0.6
    child = start("writing_process.py", folder, first, dice.randrange(1, 1500) if inside else 0, 1000)
    assert child.stdout is not None
    heard = ""
    if not inside:
        heard = child.stdout.readline()
        try:
            child.wait(timeout=dice.uniform(0, 0.8))
        except subprocess.TimeoutExpired:
            child.kill()
    rest, complaints = child.communicate(timeout=60)
    assert child.returncode == -signal.SIGKILL, complaints
    return acknowledged(heard + rest)


@pytest.mark.proves("R-crash-safe")
def test_fifteen_kills_in_a_row_lose_nothing_that_was_acknowledged(tmp_path):
    dice = random.Random(7)
    indexed = embedded = -1
    next_round = 0
    for _ in range(15):
        lines = run_until_killed(tmp_path, next_round, dice)
        indexed = max([indexed, *(line["indexed"] for line in lines if "indexed" in line)])
        embedded = max([embedded, *(line["embedded"] for line in lines if "embedded" in line)])
        world = World(tmp_path)
        if not world.reader.exists:
            assert indexed < 0
            continue
        check_what_is_there(world, indexed, embedded)
        next_round = indexed + 1
    assert indexed > 10, "too few rounds were acknowledged to mean anything"
    the_next_writer_goes_on(World(tmp_path))


def check_what_is_there(world: World, indexed: int, embedded: int) -> None:
    with world.reader.pinned() as (frame, catalog):
        check_consistency(frame, catalog)
        paths = {row.path for row in catalog.notes().values()}
        texts = [row.text for row in catalog.sections(frame.table["id"][frame.live].tolist()).values()]
    assert {f"round-{number}.md" for number in (indexed - 1, indexed) if number >= 0} <= paths
    versions = [int(word[7:]) for text in texts for word in text.split() if word.startswith("version")]
    assert len(versions) == 1
    assert versions[0] >= indexed
    assert world.find(f"version{versions[0]}") == {"changing.md"}
    assert world.find(f"version{versions[0] - 1}") == set()
    for number in (indexed - 1, indexed):
        if number >= 0:
            assert world.find(f"round{number}") == {f"round-{number}.md"}
    with world.reader.pinned() as (frame, catalog):
        acknowledged_note = catalog.note_by_path(f"round-{embedded}.md")
        if acknowledged_note is not None:
            places = (frame.table["note"] == acknowledged_note.id) & frame.live
            assert frame.vectors(world.embedder.profile.identity).covered[places].all()


def the_next_writer_goes_on(world: World) -> None:
    world.write("after.md", "# After\n\nafterwards\n")
    world.index()
    world.embed()
    assert world.find("afterwards") == {"after.md"}
    with world.reader.pinned() as (frame, catalog):
        check_consistency(frame, catalog)
        done, wanted = frame.coverage(world.embedder.profile.identity)
        assert done == wanted
        named = {name for name, _ in catalog.segments()} | {catalog.meta()["anchors"]}
        parts = catalog.vector_parts()
    on_disk = {folder.name for folder in world.vault.layout.segments.iterdir()}
    assert named <= on_disk
    for identity, names in parts.items():
        assert set(names) <= {folder.name for folder in world.vault.layout.profile(identity).iterdir()}
    everything = [file.name for file in world.vault.layout.folder.rglob("*")]
    assert not [name for name in everything if name.startswith(STAGING_PREFIX)]


@pytest.mark.proves("R-crash-safe")
def test_what_a_killed_writer_was_staging_is_swept_by_the_next(world):
    world.write("a.md", "# A\n\nalpha\n")
    world.index()
    layout = world.vault.layout
    for folder in (layout.segments, layout.vectors / "some-profile"):
        (folder / f"{STAGING_PREFIX}left").mkdir(parents=True)
        (folder / "orphan").mkdir()
        (folder / "orphan" / "x.npy").write_bytes(b"x")
    world.index()
    left = [file.name for file in layout.folder.rglob("*")]
    assert "orphan" not in left
    assert not [name for name in left if name.startswith(STAGING_PREFIX)]
    assert world.find("alpha") == {"a.md"}


def test_worker_processes_end_with_the_process_that_started_them(tmp_path):
    child = start("reading_process.py", tmp_path)
    assert child.stdout is not None
    assert child.stdout.readline() == "reading\n"
    child.kill()
    # The pipe ends only when the last process that holds it has ended.
    child.communicate(timeout=30)
    assert child.returncode == -signal.SIGKILL
