"""The figures of a deterministic run, one a question and policy, and the tables that sum them up.

A run is JSON-safe and free of times, so that the same run twice gives the same bytes::

    {"name": "vault", "profile": "…", "budgets": [1000, …], "cap": 64000, "notes": 51, "tokens": 61000,
     "grep": "grep-around",              the best variant, by mean recall at 4,000 tokens
     "policies": ["grep-lines", …],
     "questions": [
       {"id": "…", "kind": "…", "tags": […], "language": "en", "cluster": "…", "answerable": true,
        "units": 2,                      pieces of evidence; 0 for a question without an answer
        "policies": {"grep-lines": {
          "recall": [0.0, 0.5, …],       at each budget
          "spent": [1000, 2000, …],      tokens paid at each budget
          "first": 812, "all": 4120,     tokens to the first and to all pieces; null when never within cap
          "calls_first": 2, "calls": 4   up to the first and to the last piece, or in all
        }, …}}, …]}
"""

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import exp, log
from typing import Any

from benchmark.study.evidence import BUDGETS, CAP, MAIN, Trace
from benchmark.study.intervals import Estimate, estimate, tally
from benchmark.tables import markdown, mean

Run = dict[str, Any]
"""One set of questions; see the head of this module."""
Row = dict[str, Any]
"""One question of a run."""
_LEAST_TAGGED = 3
"""Questions that a tag needs for a line of its own."""


def figures(trace: Trace) -> dict[str, Any]:
    """Return what is kept of one question and policy."""
    return {
        "recall": [round(share, 6) for share in trace.recall],
        "spent": list(trace.spent),
        "first": trace.first,
        "all": trace.last,
        "calls_first": trace.calls_first,
        "calls": trace.calls,
    }


def average(several: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the mean figures of one policy with several seeds; what is never found counts as the cap."""

    def paid(name: str) -> float | None:
        values = [one[name] for one in several]
        found = [value for value in values if value is not None]
        return round(mean(CAP if value is None else value for value in values), 1) if found else None

    def each(name: str) -> list[float]:
        return [round(mean(column), 6) for column in zip(*(one[name] for one in several), strict=True)]

    calls = {name: round(mean(one[name] for one in several), 2) for name in ("calls_first", "calls")}
    return {
        "recall": each("recall"), "spent": each("spent"), "first": paid("first"), "all": paid("all"), **calls
    }  # fmt: skip


def best_grep(questions: Iterable[Row]) -> str:
    """Return the variant of grep with the best mean recall at 4,000 tokens, the first of equals."""
    rows = answerable(questions)
    names = [name for name in rows[0]["policies"] if name.startswith("grep")] if rows else []
    return max(names, key=lambda name: round(recall(rows, name, MAIN), 9), default="")


def answerable(questions: Iterable[Row]) -> list[Row]:
    """Return the questions that have evidence."""
    return [row for row in questions if row["units"]]


def recall(rows: Sequence[Row], policy: str, budget: int) -> float:
    """Return the mean recall at a budget, given by its place."""
    return mean(row["policies"][policy]["recall"][budget] for row in rows)


def differences(rows: Sequence[Row], policy: str, other: str, budget: int) -> list[float]:
    """Return recall of a policy minus that of another, question by question."""
    by_policy = (row["policies"] for row in rows)
    return [found[policy]["recall"][budget] - found[other]["recall"][budget] for found in by_policy]


def difference(rows: Sequence[Row], policy: str, other: str, budget: int) -> Estimate:
    """Return the mean of the differences with its interval, documents drawn whole."""
    return estimate(differences(rows, policy, other, budget), [row["cluster"] for row in rows])


def cost_ratio(rows: Sequence[Row], policy: str, other: str, name: str) -> Estimate:
    """Return the mean log of tokens to the first (``first``) or to ``all`` evidence, against another's.

    What is never found counts as the cap.
    """
    pairs = [(row["policies"][policy][name] or CAP, row["policies"][other][name] or CAP) for row in rows]
    return estimate([log(a / b) for a, b in pairs], [row["cluster"] for row in rows])


def tags_of(row: Row) -> set[str]:
    """Return the tags of a question; ``from:note`` and the like also count as ``from``."""
    return {part for tag in row["tags"] for part in (tag, tag.partition(":")[0])}


def groups(rows: Sequence[Row], names: Callable[[Row], Iterable[str]]) -> dict[str, list[Row]]:
    """Return the questions by kind, tag or the like, names in order."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        for name in names(row):
            found.setdefault(name, []).append(row)
    return dict(sorted(found.items()))


def tables(run: Run) -> Iterator[tuple[str, str]]:
    """Yield title and Markdown of each table of a run."""
    rows = answerable(run["questions"])
    if rows:
        yield from _evidence_tables(run, rows)
    without = [row for row in run["questions"] if not row["answerable"]]
    if without:
        title = f"{run['name']}: tokens paid for a question without an answer ({len(without)} questions)"
        yield title, _unanswerable(run, without)


def _evidence_tables(run: Run, rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    grep, main = run["grep"], f"{BUDGETS[MAIN]:,} tokens"
    yield f"{run['name']}: evidence recall by budget ({len(rows)} questions)", _overview(run, rows)
    yield f"{run['name']}: recall minus {grep}'s, with 95 % intervals", _against(run, rows)
    yield f"{run['name']}: recall at {main} by kind", _by(run, groups(rows, lambda row: [row["kind"]]))
    by_tag = groups(rows, tags_of)
    tagged = {name: some for name, some in by_tag.items() if len(some) >= _LEAST_TAGGED}
    if tagged:
        yield f"{run['name']}: recall at {main} by tag", _by(run, tagged)
    if "hybrid" in run["policies"]:
        yield f"{run['name']}: where {grep} shows more evidence than hybrid", _grep_wins(run, rows)


def _overview(run: Run, rows: Sequence[Row]) -> str:
    def line(name: str) -> list[str]:
        kept = [row["policies"][name] for row in rows]
        paid = [_median([one[what] for one in kept]) for what in ("first", "all")]
        share = f"{mean(one['all'] is not None for one in kept):.2f}"
        calls = [f"{mean(one[what] for one in kept):.1f}" for what in ("calls_first", "calls")]
        spent = f"{mean(one['spent'][MAIN] for one in kept):,.0f}"
        recalls = [f"{recall(rows, name, place):.3f}" for place in range(len(BUDGETS))]
        return [name, *recalls, *paid, share, *calls, spent]

    head = ["policy", *(f"{budget // 1000}k" for budget in BUDGETS)]
    head += ["first (median)", "all (median)", "all found", "calls to first", "calls to all", "paid at 4k"]
    return markdown(head, map(line, run["policies"]))


def _median(values: Sequence[float | None]) -> str:
    middle = statistics.median(CAP + 1 if value is None else value for value in values)
    return f"{middle:,.0f}" if middle <= CAP else "–"


def _against(run: Run, rows: Sequence[Row]) -> str:
    grep = run["grep"]

    def line(name: str) -> list[str]:
        found = [difference(rows, name, grep, place) for place in range(len(BUDGETS))]
        wins = "/".join(map(str, tally(differences(rows, name, grep, MAIN))))
        ratios = [_ratio(cost_ratio(rows, name, grep, what)) for what in ("first", "all")]
        detectable = found[MAIN].detectable
        shown = "–" if detectable is None else f"{detectable:.3f}"
        return [name, *(one.text for one in found), wins, shown, *ratios]

    head = ["policy", *(f"{budget // 1000}k" for budget in BUDGETS)]
    head += ["better/same/worse at 4k", "detectable at 4k", "tokens to first, ratio", "tokens to all, ratio"]
    return markdown(head, (line(name) for name in run["policies"] if name != grep))


def _ratio(found: Estimate) -> str:
    return found.shown(lambda logarithm: f"{exp(logarithm):.2f}")


def _by(run: Run, grouped: dict[str, list[Row]]) -> str:
    shown = [name for name in run["policies"] if not name.startswith("grep") or name == run["grep"]]
    compared = [name for name in ("hybrid", "reply") if name in shown]

    def line(group: str) -> list[str]:
        rows = grouped[group]
        recalls = [f"{recall(rows, name, MAIN):.3f}" for name in shown]
        return [group, str(len(rows)), *recalls, *(_versus(run, rows, name) for name in compared)]

    head = ["", "questions", *shown, *(f"{name} - {run['grep']}" for name in compared)]
    return markdown(head, map(line, grouped))


def _versus(run: Run, rows: Sequence[Row], name: str) -> str:
    return difference(rows, name, run["grep"], MAIN).text


def _grep_wins(run: Run, rows: Sequence[Row]) -> str:
    """Say where grep wins, at which budgets, with the ids of the questions."""

    def line(kind: str, some: Sequence[Row], place: int) -> list[str]:
        lost = [
            row["id"]
            for row, by in zip(some, differences(some, "hybrid", run["grep"], place), strict=True)
            if by < 0
        ]
        wins, _, losses = tally(differences(some, "hybrid", run["grep"], place))
        return [kind, f"{BUDGETS[place]:,}", str(losses), str(wins), " ".join(lost) or "–"]

    places = (0, MAIN)
    kinds = groups(rows, lambda row: [row["kind"]])
    lines = (line(kind, some, place) for kind, some in kinds.items() for place in places)
    return markdown(["kind", "budget", "grep wins", "hybrid wins", "where grep wins"], lines)


def _unanswerable(run: Run, rows: Sequence[Row]) -> str:
    def line(name: str) -> list[str]:
        paid = (mean(row["policies"][name]["spent"][place] for row in rows) for place in range(len(BUDGETS)))
        return [name, *(f"{tokens:,.0f}" for tokens in paid)]

    return markdown(["policy", *(f"{budget // 1000}k" for budget in BUDGETS)], map(line, run["policies"]))
