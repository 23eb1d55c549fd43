"""What each arm did and how the arms differ, from the records alone: ``results.json``.

    format        1
    settings      as in run.json; ``machine`` beside it
    corpus        path, files, sha256
    questions     how many; ``repeats``; ``complete``: whether every attempt was made
    arms          {arm: {"all": FIGURES, "kinds": {kind: FIGURES}, "tags": {tag: FIGURES}}}
    differences   {"all": {measure: DIFFERENCE}, "kinds": {kind: {...}}, "tags": {tag: {...}}}
    attempts      [ATTEMPT]

FIGURES, over finished attempts: ``attempts``, ``questions``; ``precision``, ``recall``, ``f1``; the mean of
each of ``MEASURES`` over the attempts that have it, null where none has; ``cited_lines``, mean number of
lines cited; ``calls`` ({tool: mean number an attempt}); ``adoption``, share of questions with a call of a
tool of searchsvc, null for the arm without; ``outcomes`` ({outcome: attempts}); ``errors``, attempts that
ended by a failed call; ``tool_errors``, mean number of calls that a tool refused; ``estimated``, attempts
with tokens that the endpoint did not report, so that they are estimates.

DIFFERENCE, ``files+searchsvc`` minus ``files``, by question (means over repeats, where both arms have the
measure): ``mean``, ``low``, ``high`` (95 %, documents drawn whole), ``count`` of questions, ``detectable``,
``wins``, ``ties``, ``losses``. A win is a better value: a smaller one of those in ``LESS_IS_BETTER``.

ATTEMPT: ``question``, ``kind``, ``tags``, ``cluster``, ``arm``, ``repeat``, ``outcome``, ``answer``,
``calls``, ``adopted``, ``tool_errors``, ``cited_lines``, ``is_estimated``, and each of ``MEASURES``, null
where there is none.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from statistics import fmean
from typing import Any

from benchmark.study.intervals import estimate, tally
from benchmark.study.questions import Evidence, Question
from benchmark.study.record import FORMAT, Event, Key, Records
from benchmark.study.scoring_answers import Given, precision_recall_f1, score_answer
from benchmark.study.tool_box import ARMS, BOTH, FILES
from benchmark.tables import markdown

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
tool showed, whole or with the quote, or the agent cited; ``evidence_cited``: that it cited.
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


def results(
    run: Mapping[str, Any], questions: Sequence[Question], records: Records, prices: Prices | None
) -> dict[str, Any]:
    """Return every figure of a run, safe for JSON; see the head of this module."""
    ours = {tool["name"] for tool in records.arms.get(BOTH, {}).get("tools", ())}
    ours -= {tool["name"] for tool in records.arms.get(FILES, {}).get("tools", ())}
    by_id = {question.id: question for question in questions}
    order = {question.id: place for place, question in enumerate(questions)}
    rows = [
        measure(by_id[key.question], key, events, ours, prices) for key, events in records.attempts.items()
    ]
    rows.sort(key=lambda row: (order[row.key.question], row.key.repeat, row.key.arm))
    repeats = int(run["settings"]["repeats"])
    return {
        "format": FORMAT,
        "settings": run["settings"],
        "machine": run["sessions"][-1]["machine"],
        "corpus": run["corpus"],
        "questions": len(questions),
        "repeats": repeats,
        "complete": len(rows) == len(questions) * repeats * len(ARMS),
        "arms": {arm: _grouped([row for row in rows if row.key.arm == arm], figures) for arm in ARMS},
        "differences": _grouped(rows, differences),
        "attempts": [row.to_json() for row in rows],
    }


def _grouped(rows: Sequence[Row], make: Callable[[Sequence[Row]], Any]) -> dict[str, Any]:
    kinds = sorted({row.question.kind for row in rows})
    tags = sorted({tag for row in rows for tag in row.question.tags})
    return {
        "all": make(rows),
        "kinds": {kind: make([row for row in rows if row.question.kind == kind]) for kind in kinds},
        "tags": {tag: make([row for row in rows if tag in row.question.tags]) for tag in tags},
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
        "evidence_recall": _recall(question.evidence, [*shown, *cited]),
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


def figures(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the figures of one arm."""
    precision, recall, f1 = precision_recall_f1(
        (row.question, row.given, row.measures["score"] or 0.0) for row in rows
    )
    tools = sorted({name for row in rows for name in row.calls})
    adopted = {row.key.question for row in rows if row.adopted}
    asked = {row.key.question for row in rows}
    has_ours = any(row.key.arm == BOTH for row in rows)
    return {
        "attempts": len(rows),
        "questions": len(asked),
        "precision": precision,
        "recall": recall,
        "f1": f1,
        **{name: _mean(row.measures[name] for row in rows) for name in MEASURES},
        "cited_lines": _mean(row.cited_lines for row in rows),
        "calls": {name: _mean(row.calls[name] for row in rows) for name in tools},
        "adoption": len(adopted) / len(asked) if has_ours else None,
        "outcomes": dict(sorted(Counter(row.outcome for row in rows).items())),
        "errors": sum(row.outcome == "error" for row in rows),
        "tool_errors": _mean(row.tool_errors for row in rows),
        "estimated": sum(row.is_estimated for row in rows),
    }


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def differences(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the paired differences of every measure, ``files+searchsvc`` minus ``files``."""
    by_question: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_question[row.question.id].append(row)
    found = {}
    for name in MEASURES:
        values, clusters = [], []
        for mine in by_question.values():
            both, files = (_mean(r.measures[name] for r in mine if r.key.arm == arm) for arm in (BOTH, FILES))
            if both is not None and files is not None:
                values.append(both - files)
                clusters.append(mine[0].question.cluster)
        wins, ties, losses = tally(values)
        if name in LESS_IS_BETTER:
            wins, losses = losses, wins
        found[name] = {**asdict(estimate(values, clusters)), "wins": wins, "ties": ties, "losses": losses}
    return found


def table(found: Mapping[str, Any]) -> str:
    """Return the results as Markdown tables."""
    arms, parts = found["arms"], [f"{found['questions']} questions, {found['repeats']} times each"]
    if not found["complete"]:
        parts.append("The run is not complete: these are the attempts that were made.")
    names = ("attempts", "f1", "precision", "recall", *MEASURES, "cited_lines", "adoption", "errors")
    lines = [(name, *(_show(arms[arm]["all"][name]) for arm in ARMS)) for name in names]
    tools = sorted({tool for arm in ARMS for tool in arms[arm]["all"]["calls"]})
    lines += [
        (f"calls of {t or '?'}", *(_show(arms[a]["all"]["calls"].get(t, 0)) for a in ARMS)) for t in tools
    ]
    outcomes = sorted({name for arm in ARMS for name in arms[arm]["all"]["outcomes"]})
    lines += [
        (f"outcome {name}", *(str(arms[a]["all"]["outcomes"].get(name, 0)) for a in ARMS))
        for name in outcomes
    ]
    parts.append(markdown(("figure", *ARMS), lines))
    head = ("files+searchsvc minus files", "mean [95 %]", "questions", "win/tie/loss", "detectable")
    groups = found["differences"]
    named = [(name, groups["all"][name]) for name in MEASURES]
    for group in ("kinds", "tags"):
        named += [(f"score, {name}", entry["score"]) for name, entry in groups[group].items()]
    parts.append(markdown(head, [_difference_line(name, entry) for name, entry in named if entry["count"]]))
    return "\n\n".join(parts)


def _difference_line(name: str, entry: Mapping[str, Any]) -> tuple[str, ...]:
    numbers = f"{_show(entry['mean'])} [{_show(entry['low'])}, {_show(entry['high'])}]"
    counts = f"{entry['wins']}/{entry['ties']}/{entry['losses']}"
    return name, numbers, str(entry["count"]), counts, _show(entry["detectable"])


def _show(value: float | None) -> str:
    if value is None:
        return "-"
    if abs(value) >= 100 or float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) >= 0.01 else f"{value:.2g}"
