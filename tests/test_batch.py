"""The batch job: what it embeds and in what order, what it keeps, and what becomes of what fails."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from filelock import FileLock

from searchsvc import batch
from searchsvc.batch import EmbedReport, Limits, embed_vault
from searchsvc.config import load
from searchsvc.embedding.base import ModelChoice, Partial
from searchsvc.errors import EmbeddingError
from searchsvc.vault import Vault
from tests.embedding.fault_server import FaultServer
from tests.index.index_world import HashEmbedder, World


class PickyEmbedder(HashEmbedder):
    """Takes nothing of a passage that holds ``bad``, and not all of one that holds ``long``."""

    bad = "bad"

    def encode_passages(self, passages):
        for passage in passages:
            (rows,) = super().encode_passages([passage])
            if self.bad and self.bad in passage.text:
                yield Partial(rows[:0], "the model said no")
            else:
                yield Partial(rows, "shortened") if "long" in passage.text else rows


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def embed(world: World, **options: object) -> EmbedReport:
    return embed_vault(world.vault, world.embedder, ModelChoice("hash"), **options)  # type: ignore[arg-type]


def bodies(world: World) -> list[str]:
    """Return the passages that were embedded, without those of headings and contexts."""
    return [passage.text for passage in world.embedder.seen if passage.context]


def failures(world: World) -> list[tuple[str, str, bool]]:
    found = world.vault.failures(world.embedder.profile.identity)
    return [(failure.address, failure.reason, failure.embedded) for failure in found]


def test_notes_that_are_new_and_much_linked_come_first(world):
    ages = {"old": 1_000_000, "older": 900_000, "hub": 950_000, "new": 2_000_000}
    for name, modified in ages.items():
        links = "" if name == "hub" else "see [[hub]]"
        os.utime(world.write(f"{name}.md", f"about {name} {links}\n"), (modified, modified))
    world.index()
    embed(world)
    assert [text.split()[1] for text in bodies(world)] == ["new", "hub", "old", "older"]


def test_equal_texts_in_equal_places_are_embedded_once(world):
    for folder in "abc":
        world.write(f"{folder}/note.md", "# Note\n\nthe same words\n")
    world.index()
    report = embed(world)
    assert (report.wanted, report.embedded, report.state) == (1, 1, "complete")


def test_a_limit_ends_the_job_and_the_next_goes_on(world):
    for number in range(5):
        world.write(f"{number}.md", f"text {number}\n")
    world.index()
    first = embed(world, limits=Limits(texts=2))
    assert (first.embedded, first.left, first.state) == (2, 3, "partial")
    second = embed(world)
    assert (second.embedded, second.left, second.state) == (3, 0, "complete")
    assert len(bodies(world)) == 5


def test_a_job_for_few_leaves_many_alone(world):
    for number in range(5):
        world.write(f"{number}.md", f"text {number}\n")
    world.index()
    assert embed(world, limits=Limits(at_most=4)).embedded == 0
    assert embed(world, limits=Limits(at_most=5)).embedded == 5


def test_a_job_that_is_stopped_keeps_what_it_has_made(world):
    for number in range(6):
        world.write(f"{number}.md", f"text {number}\n")
    world.index()
    done: list[int] = []
    report = embed(
        world, progress=lambda stage, done_, *_: done.append(done_), stop=lambda: bool(done) and done[-1] >= 4
    )
    assert (report.embedded, report.left) == (4, 2)
    assert embed(world).embedded == 2


def test_the_pace_is_kept_and_left_at_once_when_the_job_is_to_stop(world, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("searchsvc.batch.time.monotonic", lambda: clock[0])
    waits: list[float] = []

    def wait(_: threading.Event, seconds: float) -> bool:
        waits.append(seconds)
        clock[0] += seconds
        return False

    monkeypatch.setattr(threading.Event, "wait", wait)
    pace = batch._Pace(4.0, lambda: clock[0] > 10)
    assert all(pace.wait() for _ in range(9))
    assert clock[0] == pytest.approx(2.0)
    clock[0] = 11
    assert not pace.wait()


@pytest.mark.proves("R-no-text-stops")
def test_a_text_that_fails_is_noted_and_the_others_are_embedded(world):
    world.embedder = PickyEmbedder()
    for name in ("good", "bad", "long"):
        world.write(f"{name}.md", f"# Title\n\n{name} text\n")
    world.index()
    report = embed(world)
    assert (report.embedded, report.shortened, report.failed, report.state) == (2, 1, 1, "partial")
    assert failures(world) == [
        ("bad.md#_intro", "the model said no", False),
        ("long.md#_intro", "shortened", True),
    ]


def test_what_failed_is_not_tried_again_until_that_is_asked_for(world):
    world.embedder = PickyEmbedder()
    world.write("bad.md", "bad text\n")
    world.index()
    embed(world)
    assert embed(world).embedded == 0
    assert len(bodies(world)) == 1
    world.embedder.bad = ""
    report = embed(world, limits=Limits(retry_failed=True))
    assert (report.embedded, report.failed, report.state) == (1, 0, "complete")
    assert failures(world) == []


def test_a_failure_is_forgotten_with_its_text(world):
    world.embedder = PickyEmbedder()
    world.write("a.md", "bad text\n")
    world.index()
    embed(world)
    world.write("a.md", "good text\n")
    world.index()
    assert embed(world).state == "complete"
    assert failures(world) == []


def test_a_model_that_gives_out_in_the_middle_keeps_what_it_gave(world):
    class Failing(HashEmbedder):
        def encode_passages(self, passages):
            for number, rows in enumerate(super().encode_passages(passages)):
                if number == 7:
                    raise EmbeddingError("the server is gone")
                yield rows

    for number in range(5):
        world.write(f"{number}.md", f"text {number}\n")
    world.index()
    world.embedder, good = Failing(), world.embedder
    with pytest.raises(EmbeddingError, match="gone"):
        embed(world)
    world.embedder = good
    assert embed(world).embedded == 3


def test_a_model_that_gives_other_vectors_under_the_same_name_is_refused(world):
    class Other(HashEmbedder):
        def _vector(self, text: str) -> np.ndarray:
            return -super()._vector(text)

    world.write("a.md", "text\n")
    world.index()
    embed(world)
    world.write("b.md", "more text\n")
    world.index()
    world.embedder = Other()
    with pytest.raises(EmbeddingError, match=r"other vectors .* cosine -1\.0000 .* profiles drop hash-"):
        embed(world)


def test_while_one_process_embeds_another_leaves_it_to_that_one(world):
    world.write("a.md", "text\n")
    world.index()
    with FileLock(world.vault.layout.embedding_lock(world.embedder.profile.identity)):
        report = embed(world, limits=Limits(wait=False))
        assert (report.embedded, report.left) == (0, 1)
        said: list[str] = []
        waiting = embed(world, progress=lambda stage, *_: said.append(stage), stop=lambda: bool(said))
        assert waiting.embedded == 0
        assert said == ["waiting for another process that embeds"]
    assert embed(world).embedded == 1


def test_the_profile_comes_into_use_when_it_is_complete(world):
    for number in range(3):
        world.write(f"{number}.md", f"text {number}\n")
    world.index()
    embed(world, limits=Limits(texts=2), use=True)
    assert world.reader.active == ""
    embed(world, use=True)
    assert world.reader.active == world.embedder.profile.identity


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as server:
        yield server


def test_a_job_can_be_run_from_python(tmp_path, server):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# A\n\nheron\n")
    settings = {"roots": tmp_path / "notes", "data_dir": tmp_path / "data", "provider": "openai"}
    report = batch.run(load({**settings, "model": "m", "base_url": server.url}, environment={}))
    assert (report.embedded, report.state) == (1, "complete")


KILLS = 30
UNDER_WAY = 8 * 32
"""Texts that a client may have sent for nothing when it is killed: what it looks ahead at."""


@pytest.mark.proves("R-no-embedding-twice")
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no kill -9")
def test_kill_9_at_any_moment_loses_nothing_and_repeats_only_what_was_under_way(tmp_path, server):
    notes, count = tmp_path / "notes", 8000
    notes.mkdir()
    for note in range(80):
        sections = (
            f"# Heading{number}\n\nword{number} and more\n" for number in range(note * 100, note * 100 + 100)
        )
        (notes / f"{note}.md").write_text("\n".join(sections))
    command = [
        sys.executable, "-m", "searchsvc", "--data-dir", str(tmp_path / "data"), "embed", str(notes),
        "--provider", "openai", "--model", "m", "--base-url", server.url,
    ]  # fmt: skip
    environment = {**os.environ, "SEARCHSVC_INSTANT_MODEL": "none"}
    config = load({"roots": notes, "data_dir": tmp_path / "data", "model": "none"}, environment={})
    random = np.random.default_rng(5)
    embedded = 0
    for _ in range(KILLS):
        wanted = len(server.requests) + int(random.integers(2, 30))
        job = subprocess.Popen(
            [*command, "--max-rate", "500"],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        server.wait_for(wanted)
        job.send_signal(signal.SIGKILL)
        job.wait()
        vault = Vault(config.roots[0], config)
        with vault.reader.pinned() as (frame, _):
            done, of = frame.coverage(next(iter(vault.reader.profiles()), ""))
        assert of == count
        assert done >= embedded, "the index is readable, and what was committed stays"
        embedded = done
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "complete" in finished.stdout
    sent = [text for request in server.embeddings() for text in request.texts]
    sections = [text for text in sent if "and more" in text]
    assert len(set(sections)) == count, "none is lost"
    assert len(sections) - count <= KILLS * UNDER_WAY
