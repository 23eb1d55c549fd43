"""One attempt, by its events alone: every measure of it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from statistics import fmean
from typing import Any

from benchmark.study.questions import Evidence, Question
from benchmark.study.record import Event, Key
from benchmark.study.scoring_answers import Given, score_answer

MEASURES = (
    "score",
    "evidence_recall",
    "evidence_cited",
    "citation_precision",
    "tokens",
    "tokens_in",
    "tokens_out",
    "tokens_cached",
    "tool_characters",
    "tool_calls",
    "turns",
    "seconds",
    "cost",
)
"""Of an attempt. ``score``: of the answer, 0 to 1. ``evidence_recall``: share of the lines of evidence that a
tool showed, whole or with the quote, null where only pages are known; ``evidence_cited``: that were cited.
``citation_precision``: share of citations that touch the evidence. ``tokens``: in and out, over all requests.
``cost``: dollars."""
LESS_IS_BETTER = (
    "tokens", "tokens_in", "tokens_out", "tool_characters", "tool_calls", "turns", "seconds", "cost",
)  # fmt: skip
_MILLION = 1e6
Prices = Mapping[str, float]
"""Dollars for a million tokens: ``in``, ``out``, ``cached`` (those of ``in`` that were; default ``in``)."""


@dataclass(frozen=True, slots=True)
class Row:
    """One attempt with its measures."""

    question: Question
    key: Key
    given: Given
    outcome: str
    measures: dict[str, float | None]
    calls: Counter[str]
    adopted: bool
    tool_errors: int
    cited_lines: int
    is_estimated: bool

    def to_json(self) -> dict[str, Any]:
        """Return the attempt as results.json has it."""
        return {
            **self.key._asdict(),
            "kind": self.question.kind,
            "tags": list(self.question.tags),
            "cluster": self.question.cluster,
            "outcome": self.outcome,
            "answer": self.given.answer,
            "calls": dict(sorted(self.calls.items())),
            "adopted": self.adopted,
            "tool_errors": self.tool_errors,
            "cited_lines": self.cited_lines,
            "is_estimated": self.is_estimated,
            **self.measures,
        }


def measure(
    question: Question, key: Key, events: Sequence[Event], ours: set[str], prices: Prices | None
) -> Row:
    """Return what the events of one attempt say; ``ours`` are the names of searchsvc's tools."""
    end = events[-1]
    replies = [event for event in events if event["event"] == "reply"]
    tools = [event for event in events if event["event"] == "tool"]
    is_answer = end["outcome"] in ("answered", "not_answerable")
    given = Given(end["outcome"] if is_answer else "", end["answer"])
    tokens_in, tokens_out, cached = (sum(reply["usage"][n] for reply in replies) for n in range(3))
    cited = list(_cited(end["citations"]))
    shown = [_Span(path, first, last) for tool in tools for path, first, last in tool["shown"]]
    shown += _quoted(question.evidence, [tool["result"] for tool in tools])
    calls = Counter(tool["name"] for tool in tools)
    measures: dict[str, float | None] = {
        "score": score_answer(question, given),
        "evidence_recall": _recall([piece for piece in question.evidence if piece.line_start], shown),
        "evidence_cited": _recall(question.evidence, cited),
        "citation_precision": _precision(question.evidence, cited),
        "tokens": tokens_in + tokens_out,
        "tokens_in": tokens_in,
        "tokens_out": tokens_out,
        "tokens_cached": cached,
        "tool_characters": sum(len(tool["result"]) for tool in tools),
        "tool_calls": len(tools),
        "turns": sum(event["event"] == "request" for event in events),
        "seconds": end["seconds"],
        "cost": _cost(tokens_in, tokens_out, cached, prices) if prices else None,
    }
    return Row(
        question,
        key,
        given,
        end["outcome"],
        measures,
        calls,
        any(name in ours for name in calls),
        sum(tool["is_error"] for tool in tools),
        sum(span.last - span.first + 1 for span in cited if span.first),
        any(reply["is_estimated"] for reply in replies),
    )


def _cost(tokens_in: int, tokens_out: int, cached: int, prices: Prices) -> float:
    full, out = prices["in"], prices["out"]
    dear = (tokens_in - cached) * full + cached * prices.get("cached", full) + tokens_out * out
    return dear / _MILLION


@dataclass(frozen=True, slots=True)
class _Span:
    """Lines of a note, or one page of it."""

    path: str
    first: int = 0
    last: int = 0
    page: int = 0

    def lines_of(self, evidence: Evidence) -> range:
        """Return the lines that this has of some evidence."""
        if not evidence.line_start or not _is_same(self.path, evidence.path):
            return range(0)
        if self.page:
            whole = self.page in evidence.pages
            return range(evidence.line_start, evidence.line_end + 1) if whole else range(0)
        return range(max(self.first, evidence.line_start), min(self.last, evidence.line_end) + 1)

    def touches(self, evidence: Evidence) -> bool:
        """Tell whether any of the evidence is here."""
        on_page = self.page in evidence.pages and _is_same(self.path, evidence.path)
        return on_page or bool(self.lines_of(evidence))


def _cited(citations: Iterable[Mapping[str, Any]]) -> Iterator[_Span]:
    for given in citations:
        yield _Span(given["path"], given.get("line_start", 0), given.get("line_end", 0), given.get("page", 0))


def _quoted(evidence: Iterable[Evidence], results: Iterable[str]) -> list[_Span]:
    """Return the evidence whose quote and path stand in a result, which may show a part of a long line."""
    bare = [" ".join(text.split()) for text in results]
    return [
        _Span(piece.path, piece.line_start, piece.line_end)
        for piece in evidence
        if piece.quote and any(" ".join(piece.quote.split()) in text and piece.path in text for text in bare)
    ]


def _is_same(given: str, path: str) -> bool:
    """Tell whether a path as an agent writes it (``./a.md``, ``a.md#section``, ``a``) is this one."""
    bare = given.strip().partition("#")[0].removeprefix("./").lstrip("/")
    return bare == path or bare in (path.removesuffix(".md"), PurePosixPath(path).stem)


def _recall(evidence: Sequence[Evidence], spans: Sequence[_Span]) -> float | None:
    """Return the share of lines of evidence within spans; a page without known lines counts as one line."""
    wanted, found = 0, 0
    for piece in evidence:
        if piece.line_start:
            wanted += piece.line_end - piece.line_start + 1
            found += len({line for span in spans for line in span.lines_of(piece)})
        else:
            wanted += 1
            found += any(span.touches(piece) for span in spans)
    return found / wanted if wanted else None


def _precision(evidence: Sequence[Evidence], cited: Sequence[_Span]) -> float | None:
    if not evidence or not cited:
        return None
    return fmean(any(span.touches(piece) for piece in evidence) for span in cited)
