"""Readers and writers in several processes and threads at once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from index_world import TERMS, World, check_consistency, find, start

from searchsvc.errors import IndexFault
from searchsvc.index.build import Writer

NOTES = 6


def look(world: World, seen: set[str]) -> None:
    """Read one generation in full; it must be all of one round, arrays and rows and vectors."""
    with world.reader.pinned() as (frame, catalog):
        check_consistency(frame, catalog)
        found = find(frame, catalog, "shared")
        assert len(found) == NOTES, found
        texts = [row.text for row in catalog.sections(frame.table["id"][frame.live].tolist()).values()]
        (name,) = {word for text in texts for word in text.split() if word.startswith("round")}
        assert find(frame, catalog, name) == found
        cosines = frame.vectors(world.embedder.profile.identity).cosines(world.embedder.encode_query("x"))
        assert len(cosines) == len(frame.table)
        seen.add(name)


@pytest.mark.proves("R-readers-consistent")
def test_readers_see_whole_generations_while_another_process_writes_merges_and_sweeps(world):
    child = start("rewriting_process.py", world.notes.parent, NOTES, 25)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        seen: set[str] = set()
        while child.poll() is None:
            look(world, seen)
        look(world, seen)
    finally:
        child.kill()
        _, complaints = child.communicate()
    assert child.returncode == 0, complaints
    assert "round24" in seen
    assert len(seen) > 2, "the reader saw too few rounds to mean anything"


@pytest.mark.proves("R-readers-consistent")
def test_threads_share_a_reader_while_another_thread_writes(world):
    def write(number: int) -> None:
        for note in range(NOTES):
            world.write(f"{note}.md", f"shared round{number} [[{(note + 1) % NOTES}]]\n")
        world.index()
        world.embed()

    write(0)
    done = threading.Event()

    def read() -> set[str]:
        seen: set[str] = set()
        while not done.is_set():
            look(world, seen)
        world.reader.close()
        return seen

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read) for _ in range(3)]
        try:
            for number in range(1, 15):
                write(number)
        finally:
            done.set()
        assert set().union(*(reader.result() for reader in readers))


@pytest.mark.proves("R-readers-consistent")
def test_a_second_look_within_the_first_sees_the_same_generation(world):
    world.write("a.md", "alpha\n")
    world.index()
    with world.reader.pinned() as first:
        world.write("a.md", "beta\n")
        World(world.notes.parent).index()
        with world.reader.pinned() as second:
            assert second == first
        assert find(*first, "alpha") == {"a.md"}
        assert find(*first, "beta") == set()
    assert world.find("beta") == {"a.md"}


@pytest.mark.proves("R-one-writer")
def test_a_second_writer_is_told_that_another_one_writes(world):
    world.write("a.md", "alpha\n")
    world.index()
    second = Writer(world.vault.layout, TERMS, patience=0)
    with (
        Writer(world.vault.layout, TERMS),
        pytest.raises(IndexFault, match="another process is writing this index; wait for it"),
        second,
    ):
        pass
    assert world.find("alpha") == {"a.md"}


@pytest.mark.proves("R-one-writer")
def test_a_second_writer_waits_for_its_turn(world):
    world.write("a.md", "alpha\n")
    thread = threading.Thread(target=world.index)
    with Writer(world.vault.layout, TERMS):
        thread.start()
        with pytest.raises(IndexFault, match="no complete index"), world.reader.pinned():
            pass
    thread.join()
    assert world.find("alpha") == {"a.md"}


def test_a_refresh_while_another_process_writes_gives_up_and_says_so(world, monkeypatch):
    world.write("a.md", "alpha\n")
    world.index()
    world.write("a.md", "beta\n")
    monkeypatch.setattr(
        world.vault, "writer", lambda **_: Writer(world.vault.layout, TERMS, patience=0, repair=False)
    )
    with Writer(world.vault.layout, TERMS):
        assert world.vault.refresh(["a.md"]) is False
    assert world.vault.refresh(["a.md"]) is True
    assert world.find("beta") == {"a.md"}


def test_a_searcher_may_ask_for_vectors_of_a_generation_that_has_been_swept(world):
    world.write("a.md", "alpha\n")
    world.index()
    world.embed()
    identity = world.embedder.profile.identity
    with world.reader.pinned() as (frame, _):
        with Writer(world.vault.layout, TERMS) as writer:
            writer.catalog.set_vector_parts(identity, [])
        with Writer(world.vault.layout, TERMS):
            pass
        assert not list(world.vault.layout.profile(identity).glob("*"))
        assert frame.coverage(identity) == (1, 1)
