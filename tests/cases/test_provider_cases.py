"""The cases about embedding services: each runs against a service on the loopback that behaves as it says."""

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_world import World

from searchsvc.config import load
from searchsvc.embedding.base import Matrix, Passage, Profile
from searchsvc.errors import SearchError
from searchsvc.service import Service
from tests.embedding.fault_server import FaultServer, Reply, Request, openai_body

CASES = [json.loads(line) for line in (Path(__file__).parent / "providers.jsonl").read_text().splitlines()]
KEYS = ("aaa", "bbb", "ccc", "lll")
DIMENSION = 8
KNOWN_EXPECTATIONS = frozenset(
    "no_misaligned_vectors either lexical_still_finds vector_of embedded reported requests_max stored_dim "
    "all_embedded sends_only does_not_send first no_error min_wait_between_tries_s max_seconds message_names "
    "lexical_fallback_is_stated provider_inputs_second_run stored_vectors reported_all message_contains "
    "long_either".split()
)


def vector(text: str) -> list[float]:
    """Return the axis of the key in a text, else one that no key has."""
    axis = next((at for at, key in enumerate(KEYS) if key in text), DIMENSION - 1)
    return [float(at == axis) for at in range(DIMENSION)]


def rows(request: Request) -> list[list[float]]:
    return [vector(text) for text in request.texts]


def answer(request: Request, made: list[list[float]]) -> Reply:
    if request.path.startswith("/api/"):
        return Reply(body={"model": "m", "embeddings": made})
    return Reply(body=openai_body(made))


class StandIn:
    """Decides what the service answers."""

    def __init__(self, said: dict[str, Any]) -> None:
        self._said = said
        self._behaviour = said.get("behaviour", "")
        self._waiting = list(said.get("replies", []))
        self.times: list[float] = []
        self.is_probed = False
        """Faults of one answer begin after the first: the service worked when it was chosen."""

    def __call__(self, request: Request) -> Reply | None:
        if not request.path.endswith(("/embeddings", "/embed")):
            return None
        self.times.append(time.monotonic())
        made = rows(request)
        is_first, self.is_probed = not self.is_probed, True
        return self._misbehave(request, made, is_first=is_first) or answer(request, made)

    def _misbehave(self, request: Request, made: list[list[float]], *, is_first: bool) -> Reply | None:
        said = self._said
        fault = Reply(said.get("status", 200), said.get("body", b""))
        if self._behaviour == "status" and any(said["match"] in text for text in request.texts):
            return fault
        if self._behaviour == "max_chars" and any(len(text) > said["limit"] for text in request.texts):
            return fault
        if self._behaviour == "short" and not is_first:
            return answer(request, made[:-1])
        if self._behaviour == "shuffled_index":
            body = openai_body(made)
            body["data"].reverse()
            return Reply(body=body)
        if self._behaviour == "reject_non_string_input":
            is_text = all(isinstance(text, str) for text in request.texts)
            return None if is_text and "dimensions" not in request.body else Reply(400, {"error": "no"})
        if self._behaviour == "sequence" and self._waiting:
            reply = self._waiting.pop(0)
            return None if reply["status"] == 200 else Reply(reply["status"], b"", reply.get("headers", {}))
        return None


class FakeEmbedder:
    """A model within the process that counts what it is given."""

    def __init__(self, said: dict[str, Any]) -> None:
        self.profile = Profile(said["model"], "fake", "0", said["dim"], max_tokens=100)
        self.inputs = 0

    def encode_query(self, text: str) -> np.ndarray:
        return np.eye(self.profile.dimension, dtype=np.float32)[0]

    def encode_passages(self, passages: Iterable[Passage]) -> Iterator[Matrix]:
        for passage in passages:
            self.inputs += bool(passage.text)
            yield self.encode_query(passage.text)[None, :]


@dataclass
class Run:
    """What one case did."""

    world: World
    server: FaultServer
    service: Service | None = None
    embedder: FakeEmbedder | None = None
    messages: list[str] = field(default_factory=list)
    """Errors and notices that were shown."""
    found: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def open(self, said: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
        roots = self.world.config.roots[0].path
        settings: dict[str, Any] = {
            "roots": roots, "data_dir": self.world.config.data_dir, "instant_model": "none", "model": "m",
        }  # fmt: skip
        if said["kind"] == "fake":
            self.embedder = fake = FakeEmbedder(said)
            monkeypatch.setattr("searchsvc.models.load", lambda _: fake)
            monkeypatch.setattr("searchsvc.models.is_provider", lambda name: name == "fake")
            settings |= {"model": said["model"], "provider": "fake"}
        else:
            is_off = said.get("behaviour") == "connection_refused"
            address = "http://127.0.0.1:9" if is_off else self.server.root
            path = "" if said["kind"] == "ollama" else "/v1"
            settings |= {"provider": said["kind"], "base_url": address + path}
        self.service = Service(load(settings, environment={}))

    def index(self) -> None:
        assert self.service is not None
        self.service.index()
        try:
            self.service.embed()
        except SearchError as error:
            self.messages.append(str(error))

    def search(self, query: str, mode: Any) -> list[str]:
        assert self.service is not None
        begin = time.monotonic()
        ranking = self.service.search(query, mode=mode)
        self.seconds = time.monotonic() - begin
        self.messages += ranking.notices
        return [hit.path for hit in ranking.hits]

    def notes(self) -> set[str]:
        return {path.name for path in self.world.root.glob("*.md")}

    def fields_sent(self) -> set[str]:
        return {name for request in self.server.embeddings() for name in request.body}

    def inputs(self) -> int:
        """Return how many texts the model within the process was given since it was opened."""
        assert self.embedder is not None
        return self.embedder.inputs

    def stored(self) -> dict[str, np.ndarray]:
        """Return the first vector of every note that has one."""
        assert self.service is not None
        (vault,) = self.service.vaults
        with vault.reader.pinned() as (frame, catalog):
            found = {}
            for identity in vault.reader.profiles():
                view = frame.vectors(identity)
                notes = catalog.notes()
                for place in np.flatnonzero(view.covered).tolist():
                    found[notes[int(frame.table["note"][place])].path] = view.of(place)[0]
            return found

    def reported(self) -> set[str]:
        """Return the notes that are in the ledger of failures."""
        assert self.service is not None
        (vault,) = self.service.vaults
        rows = [row for identity in vault.reader.profiles() for row in vault.failures(identity)]
        return {row.address.partition("#")[0] for row in rows}


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES])
def test_the_product_does_what_the_case_expects_of_a_provider(case, tmp_path, monkeypatch):
    call, expect = case["call"], case["expect"]
    assert set(expect) <= KNOWN_EXPECTATIONS, "the adapter does not know all that is expected"
    provider = call.get("provider") or call["steps"][0]["provider"]
    stand_in = StandIn(provider)
    with FaultServer(stand_in, DIMENSION) as server:
        server.lists = {"/api/tags": {"models": [{"name": "m:latest", "model": "m:latest", "digest": "d1"}]}}
        run = Run(World(tmp_path, case["files"]), server)
        for step in call.get("steps", [{"op": "index", "provider": provider}]):
            take(step, run, monkeypatch)
        for name, wanted in expect.items():
            CHECKS[name](run, wanted, stand_in)


def take(step: dict[str, Any], run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    if step["op"] == "index":
        run.open(step["provider"], monkeypatch)
        run.index()
    elif step["op"] == "touch":
        os.utime(run.world.root / step["file"], (2_000_000_000, 2_000_000_000))
    else:
        assert step["op"] == "search"
        run.found = run.search(step["query"], step["mode"])


def aligned(run: Run, notes: dict[str, str]) -> None:
    stored = run.stored()
    for note, key in notes.items():
        assert int(stored[note].argmax()) == KEYS.index(key), note


def no_misaligned(run: Run, *_: Any) -> None:
    for note, row in run.stored().items():
        text = (run.world.root / note).read_text()
        assert int(row.argmax()) == next(at for at, key in enumerate(KEYS) if key in text), note


def one_of(run: Run, wanted: list[str], _: StandIn) -> None:
    notes = run.notes()
    embedded, reported = set(run.stored()), run.reported()
    ways = {
        "retried_singly_all_ok": embedded == notes,
        "failed_sections_reported": embedded | reported == notes,
        "all_reembedded": embedded == notes and not run.messages,
        "clear_message_and_lexical_fallback": bool(run.messages) and bool(run.found),
        "embedded_in_parts": "long.md" in embedded,
        "shortened_and_reported": "long.md" in reported,
    }
    assert any(ways[way] for way in wanted), (embedded, reported, run.messages)


def finds(run: Run, words: list[str], _: StandIn) -> None:
    for word in words:
        (found,) = run.search(word, "lexical")
        assert word in (run.world.root / found).read_text()


def kept_waiting(_: Run, seconds: float, stand_in: StandIn) -> None:
    refused = 2
    gaps = np.diff(stand_in.times[: refused + 1])
    assert len(gaps) == refused
    assert all(gap >= seconds for gap in gaps)


def sent_only_text(run: Run, *_: Any) -> None:
    for request in run.server.embeddings():
        given = request.body["input"]
        assert isinstance(given, str) or all(isinstance(text, str) for text in given)


def all_embedded(run: Run, *_: Any) -> None:
    assert set(run.stored()) == run.notes()


def said(run: Run) -> str:
    return " ".join(run.messages)


def names(run: Run, what: list[str], _: StandIn) -> None:
    shown = {"the service address": "http://127.0.0.1:9", "that it is not reachable": "is not reachable"}
    assert all(shown[thing] in said(run) for thing in what), run.messages


def is_true(test: Callable[[Run], bool]) -> Callable[[Run, Any, StandIn], None]:
    def check(run: Run, *_: Any) -> None:
        assert test(run), (run.found, run.messages, run.stored(), run.reported())

    return check


def holds(test: Callable[[Run, Any], bool]) -> Callable[[Run, Any, StandIn], None]:
    def check(run: Run, wanted: Any, _: StandIn) -> None:
        assert test(run, wanted), (wanted, run.found, run.messages, run.stored(), run.reported())

    return check


CHECKS: dict[str, Callable[[Run, Any, StandIn], None]] = {
    "no_misaligned_vectors": no_misaligned,
    "either": one_of,
    "long_either": one_of,
    "lexical_still_finds": finds,
    "vector_of": lambda run, wanted, _: aligned(run, wanted),
    "embedded": holds(lambda run, notes: set(run.stored()) >= set(notes)),
    "reported": holds(lambda run, notes: run.reported() == set(notes)),
    "requests_max": holds(lambda run, most: len(run.server.embeddings()) <= most),
    "stored_dim": holds(lambda run, size: {len(row) for row in run.stored().values()} == {size}),
    "all_embedded": all_embedded,
    "sends_only": sent_only_text,
    "does_not_send": holds(lambda run, names: not {*names} & run.fields_sent()),
    "first": holds(lambda run, note: run.found[:1] == [note]),
    "no_error": is_true(lambda run: not run.messages),
    "min_wait_between_tries_s": kept_waiting,
    "max_seconds": holds(lambda run, most: run.seconds <= most),
    "message_names": names,
    "lexical_fallback_is_stated": is_true(lambda run: "by words only" in said(run)),
    "provider_inputs_second_run": holds(lambda run, count: run.inputs() == count),
    "stored_vectors": holds(lambda run, count: len(run.stored()) == count),
    "reported_all": is_true(lambda run: bool(run.messages) or run.reported() == run.notes()),
    "message_contains": holds(lambda run, parts: all(part in said(run) for part in parts)),
}  # fmt: skip


def test_every_expectation_has_a_check():
    assert set(CHECKS) == KNOWN_EXPECTATIONS
