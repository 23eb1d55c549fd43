"""The record of a run, written as it happens.

A folder holds ``run.json`` (settings, no secrets), ``questions.jsonl`` (those asked) and ``records.jsonl``:
one event a line, each flushed at once, so that a run that was stopped goes on after the last attempt that
was finished. An attempt is one question, in one arm, once. Its events, in order:

- ``start``: ``try``, one more for an attempt begun anew; ``time``
- ``request``: ``turn``, ``fields`` of the body, and the ``messages`` that the request before did not have
- ``reply``: ``turn``, ``body`` as the endpoint sent it, ``usage`` (tokens in, out, cached), ``is_estimated``,
  ``seconds``, ``tries``; or ``failure``: ``turn``, ``error``
- ``tool``: ``name``, ``arguments``, ``result`` as the model got it, ``is_error``, ``is_cut``, ``shown``
  (ranges of lines that the result holds whole), ``seconds``
- ``end``: ``outcome`` (a status of the answer, or ``turns``, ``tokens``, ``error``), ``answer``,
  ``citations``, ``seconds``

``arm`` events, outside of attempts, have the tools and the instructions of each arm.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock, Timeout

from benchmark.core import say
from benchmark.errors import BenchmarkError
from benchmark.machine import machine
from benchmark.study.chat import redact
from benchmark.study.questions import Question

RUN, QUESTIONS, RECORDS, RESULTS = "run.json", "questions.jsonl", "records.jsonl", "results.json"
FORMAT = 1
_PACKAGES = ("mcp", "httpx", "numpy")
_MAY_DIFFER = ("path",)
"""Facts that say where things were, not what was measured."""
Event = dict[str, Any]
Log = Callable[..., None]
"""Writes an event of one attempt: its name, and its facts by keyword."""


class Key(NamedTuple):
    """Names an attempt."""

    question: str
    arm: str
    repeat: int


@dataclass(frozen=True, slots=True)
class Records:
    """What a record holds."""

    arms: dict[str, Event]
    """The tools and instructions of each arm, as they were last."""
    attempts: dict[Key, list[Event]]
    """The events of the attempts that were finished."""
    begun: dict[Key, int]
    """How often each attempt was begun."""


class Recorder:
    """Appends events; a context manager, for one process at a time."""

    def __init__(self, folder: Path, key: str) -> None:
        self._file = (folder / RECORDS).open("ab")
        self._key = key

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def write(self, event: str, **facts: Any) -> None:
        """Write one event; the endpoint's key never stands in it."""
        line = json.dumps({"event": event, **facts}, ensure_ascii=False)
        self._file.write(redact(line, self._key).encode("utf-8", "surrogatepass") + b"\n")
        self._file.flush()

    def log(self, key: Key) -> Log:
        """Return a function that writes events of one attempt."""

        def write(event: str, **facts: Any) -> None:
            self.write(event, **key._asdict(), **facts)

        return write


@contextmanager
def open_recorder(folder: Path, key: str) -> Iterator[Recorder]:
    """Yield what appends to a record; ``BenchmarkError`` while another process does."""
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise BenchmarkError(f"another process writes to {folder}") from error
    try:
        _drop_torn_line(folder / RECORDS)
        recorder = Recorder(folder, key)
        try:
            yield recorder
        finally:
            recorder.close()
    finally:
        lock.release()


def _drop_torn_line(file: Path) -> None:
    """Take away a last line that a stopped process did not write to its end."""
    if file.is_file():
        data = file.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            with file.open("r+b") as handle:
                handle.truncate(whole)


def read_records(folder: Path) -> Records:
    """Read the record of a run; ``BenchmarkError`` names a line that is no event."""
    records = Records({}, {}, {})
    under_way: dict[Key, list[Event]] = {}
    file = folder / RECORDS
    data = file.read_bytes() if file.is_file() else b""
    # What follows the last line end was not written to its end: its process was stopped.
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            event: Event = json.loads(line)
            if event["event"] == "arm":
                records.arms[event["arm"]] = event
                continue
            key = Key(event["question"], event["arm"], int(event["repeat"]))
            kind = event["event"]
        except (ValueError, KeyError, TypeError) as error:
            raise BenchmarkError(f"{file}, line {number}: not an event ({type(error).__name__})") from error
        if kind == "start":
            under_way[key] = []
            records.begun[key] = records.begun.get(key, 0) + 1
        under_way.setdefault(key, []).append(event)
        if kind == "end":
            records.attempts[key] = under_way.pop(key)
    return records


def begin(folder: Path, settings: Mapping[str, Any], corpus: Path, questions: Sequence[Question]) -> None:
    """Make the folder of a run, or check that it holds a run of the same settings, to go on with.

    ``BenchmarkError`` says what differs.
    """
    facts = {"format": FORMAT, "settings": dict(settings), "corpus": _fingerprint(corpus)}
    lines = "".join(f"{json.dumps(asdict(question), ensure_ascii=False)}\n" for question in questions)
    facts["questions"] = {"count": len(questions), "sha256": hashlib.sha256(lines.encode()).hexdigest()}
    session = {"started": now(), "machine": machine(_PACKAGES)}
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / RUN).is_file():
        run = read_run(folder)
        for part in facts:
            _compare(folder, part, run.get(part), json.loads(json.dumps(facts[part])))
        run["sessions"].append(session)
        say(f"{folder} holds this run; going on with it")
    else:
        run = {**facts, "sessions": [session]}
        (folder / QUESTIONS).write_text(lines, encoding="utf-8")
    write_json(folder / RUN, run)


def _compare(folder: Path, part: str, before: Any, now: Any) -> None:
    if isinstance(before, dict) and isinstance(now, dict):
        for name in {**before, **now}:
            if name not in _MAY_DIFFER:
                _compare(folder, f"{part} {name}", before.get(name), now.get(name))
    elif before != now:
        raise BenchmarkError(
            f"{folder} holds another run: {part} is {before!r} there and {now!r} here; give another --out"
        )


def read_run(folder: Path) -> dict[str, Any]:
    """Return ``run.json`` of a run; ``BenchmarkError`` when the folder holds none."""
    try:
        run = json.loads((folder / RUN).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BenchmarkError(f"{folder} holds no run ({RUN}: {type(error).__name__})") from error
    if not isinstance(run, dict) or run.get("format") != FORMAT:
        raise BenchmarkError(f"{folder / RUN} is not of format {FORMAT}")
    return run


def write_json(file: Path, value: Any) -> None:
    """Write JSON so that the file is never seen in part."""
    part = file.with_suffix(".part")
    part.write_text(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    part.replace(file)


def now() -> str:
    """Return the time, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _fingerprint(corpus: Path) -> dict[str, Any]:
    """Return how many files a corpus has, and a hash of their names and bytes."""
    total, count = hashlib.sha256(), 0
    for file in sorted(path for path in corpus.rglob("*") if path.is_file()):
        name = file.relative_to(corpus)
        if not any(part.startswith(".") for part in name.parts):
            count += 1
            total.update(f"{name.as_posix()}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return {"path": str(corpus), "files": count, "sha256": total.hexdigest()}
