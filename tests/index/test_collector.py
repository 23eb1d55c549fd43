"""The garbage collector rests while notes are read, and is afterwards as it was before."""

import gc

import pytest

from searchsvc import indexing
from searchsvc.index.records import Batch
from searchsvc.index.vocabulary import Vocabulary
from searchsvc.indexing import make_tokenizer
from searchsvc.items import Note, Problem


@pytest.fixture(params=[True, False], ids=["on", "off"])
def was_on(request):
    before = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if before else gc.disable)()


def read(world) -> tuple[Batch, list[Problem]]:
    return indexing.read_batch(world.root, world.config, ["a.md"], {}, Vocabulary(make_tokenizer(True)))


def test_it_rests_while_notes_are_read_and_no_longer(world, monkeypatch, was_on):
    world.write("a.md", "alpha\n")
    seen = []

    def look(path, data):
        seen.append(gc.isenabled())
        return Note(path=path, title="A", lines=(), sections=())

    monkeypatch.setattr(indexing, "read_note", look)
    read(world)
    assert seen == [False]
    assert gc.isenabled() == was_on


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt, RecursionError])
def test_it_is_as_before_after_an_error(world, monkeypatch, was_on, error):
    world.write("a.md", "alpha\n")

    def fail(path, data):
        raise error

    monkeypatch.setattr(indexing, "read_note", fail)
    if error is RecursionError:
        assert read(world)[1]
    else:
        with pytest.raises(error):
            read(world)
    assert gc.isenabled() == was_on
