"""A recorded run again: the model's replies from the record, the tools for real.

A tool's result, and the tools and instructions of an arm, must be those of the record. Before they are
compared, the folder of the corpus and temporary folders are replaced everywhere. In what searchsvc says of
itself (replies of ``status``, and lines that begin with ``===`` or ``!``) so are dates with a time, clock
times with seconds, durations (``12 ms``, ``0.3 s``), sizes on disk (``1.7 MB``) and numbers of generations.
The text of notes is compared as it is.
"""

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmark.study.chat import ChatFault, Reply
from benchmark.study.record import Event

_VARYING = (
    (re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?"), "<time>"),
    (re.compile(r"\b\d{2}:\d{2}:\d{2}(?:\.\d+)?\b"), "<time>"),
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|s|seconds)\b"), "<duration>"),
    (re.compile(r"\b\d+(?:\.\d+)? ?[kMG]B\b"), "<size>"),
    (re.compile(r"\bgeneration \d+\b"), "generation <n>"),
)
_TEMPORARY = re.compile(r"[^\s\"']*searchsvc-study-\w+")
_OWN_LINE = ("===", "!")
_OWN_TOOL = "status"
_CONTEXT_LINES = 2


class Replies:
    """Serves the replies of one attempt, its failures too, in their order."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = iter([event for event in events if event["event"] in ("reply", "failure")])

    def complete(self, body: Mapping[str, Any]) -> Reply:
        """Return the next recorded reply; ``ChatFault`` for a failure, and when there are no more."""
        event = next(self._events, None)
        if event is None:
            raise ChatFault("the record has no further reply: the attempt goes another way now")
        if event["event"] == "failure":
            raise ChatFault(event["error"])
        return Reply(event["body"], event["seconds"], event["tries"])


@dataclass(slots=True)
class Comparison:
    """Takes the events of an attempt that is made again, and keeps what differs from the record."""

    label: str
    recorded: Iterator[Event]
    corpora: tuple[Path, ...]
    """Where the corpus was and where it is."""
    differences: list[str] = field(default_factory=list)
    compared: int = 0
    """Results of tools."""

    def log(self, event: str, **facts: Any) -> None:
        """Compare an event with the recorded one."""
        if event not in ("tool", "end"):
            return
        before = next(self.recorded, {"event": "nothing"})
        if event == "tool" and before["event"] == "tool":
            self.compared += 1
            call = f"{facts['name']}({json.dumps(facts['arguments'], ensure_ascii=False)})"
            is_own = facts["name"] == _OWN_TOOL
            self._compare(call, before["result"], facts["result"], is_own)
            return
        names = ("outcome", "answer", "citations")
        old = {"event": before["event"], **{name: before.get(name) for name in names}}
        new = {"event": event, **{name: facts.get(name) for name in names}}
        self._compare("outcome", json.dumps(old, indent=1), json.dumps(new, indent=1))

    def _compare(self, what: str, before: str, now: str, is_own: bool = False) -> None:
        found = differences(f"{self.label}: {what}", before, now, self.corpora, is_own=is_own)
        self.differences.extend(found)


def of_attempt(label: str, events: Sequence[Event], corpora: tuple[Path, ...]) -> Comparison:
    """Return a comparison with the events of one attempt."""
    return Comparison(label, iter([e for e in events if e["event"] in ("tool", "end")]), corpora)


def differences(
    title: str, before: str, now: str, corpora: Sequence[Path], *, is_own: bool = False
) -> list[str]:
    """Return a readable diff in a list, or an empty list when nothing that counts has changed.

    ``is_own`` when the whole text is searchsvc's word about itself.
    """
    old, new = (normalised(text, corpora, is_own=is_own).split("\n") for text in (before, now))
    if old == new:
        return []
    lines = difflib.unified_diff(old, new, "recorded", "now", n=_CONTEXT_LINES, lineterm="")
    return ["\n".join([title, *lines])]


def normalised(text: str, corpora: Sequence[Path], *, is_own: bool = False) -> str:
    """Return a text with what varies by itself replaced."""
    for folder in sorted({str(path.resolve()) for path in corpora}, key=len, reverse=True):
        text = text.replace(folder, "<corpus>")
    lines = _TEMPORARY.sub("<temporary>", text).split("\n")
    return "\n".join(_steady(line) if is_own or line.startswith(_OWN_LINE) else line for line in lines)


def _steady(line: str) -> str:
    for pattern, name in _VARYING:
        line = pattern.sub(name, line)
    return line
