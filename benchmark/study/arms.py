"""What each arm did and how the arms differ, from the records alone: ``results.json``.

    format        1
    settings      as in run.json; ``machine`` beside it
    corpus        path, files, sha256
    questions     how many; ``repeats``; ``complete``: whether every attempt was made
    arms          {arm: {"all": FIGURES, "kinds": {kind: FIGURES}, "tags": {tag: FIGURES}}}
    differences   {"all": {measure: DIFFERENCE}, "kinds": {kind: {...}}, "tags": {tag: {...}}}
    attempts      [ATTEMPT]

FIGURES, over finished attempts: ``attempts``, ``questions``; ``precision``, ``recall``, ``f1`` over
answerability, null where no question has an answer; the mean of each of ``MEASURES`` over the attempts that
have it, null where none has; ``cited_lines``, mean number of lines cited; ``calls`` ({tool: mean number an
attempt}); ``adoption``, share of attempts with a call of a tool of searchsvc, null for the arm without;
``outcomes`` ({outcome: attempts}); ``errors``, attempts that ended by a failed call; ``tool_errors``, mean
number of calls that a tool refused; ``estimated``, attempts with tokens that the endpoint did not report, so
that they are estimates.

DIFFERENCE, ``files+searchsvc`` minus ``files``, by question (means over repeats, where both arms have the
measure): ``mean``, ``low``, ``high`` (95 %, documents drawn whole), ``count`` of questions, ``clusters``
(documents), ``detectable``, ``note``, ``wins``, ``ties``, ``losses``. A win is a better value: a smaller one
of those in ``LESS_IS_BETTER``. ``low``, ``high`` and ``detectable`` are null where no resample differs from
another, as with one document, and ``mean`` is null of nothing; ``note`` says so, and that an interval from
few documents is rough. ``precision``, ``recall`` and ``f1`` are made anew of the questions of each resample,
the same ones in both arms; single questions have none, so their wins are null.

ATTEMPT: ``question``, ``kind``, ``tags``, ``cluster``, ``arm``, ``repeat``, ``outcome``, ``answer``,
``calls``, ``adopted``, ``tool_errors``, ``cited_lines``, ``is_estimated``, and each of ``MEASURES``, null
where there is none.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from benchmark.study.attempts import LESS_IS_BETTER, MEASURES, Prices, Row, measure
from benchmark.study.intervals import Statistic, estimate, estimate_of, tally
from benchmark.study.questions import Question
from benchmark.study.record import FORMAT, Records
from benchmark.study.scoring_answers import answerability_counts, precision_recall_f1
from benchmark.study.tool_box import ARMS, BOTH, FILES
from benchmark.tables import markdown

ANSWERABILITY = ("precision", "recall", "f1")
"""Over answerability. No means over questions: they are made anew of the sums in each resample."""


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


def figures(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the figures of one arm."""
    counts = np.array([_counts(row) for row in rows], np.float64).reshape(-1, 3).sum(axis=0)
    over_answerability = (float(figure) for figure in precision_recall_f1(counts))
    tools = sorted({name for row in rows for name in row.calls})
    has_ours = any(row.key.arm == BOTH for row in rows)
    return {
        "attempts": len(rows),
        "questions": len({row.key.question for row in rows}),
        **{
            name: None if np.isnan(figure) else figure
            for name, figure in zip(ANSWERABILITY, over_answerability, strict=True)
        },
        **{name: _mean(row.measures[name] for row in rows) for name in MEASURES},
        "cited_lines": _mean(row.cited_lines for row in rows),
        "calls": {name: _mean(row.calls[name] for row in rows) for name in tools},
        "adoption": fmean(row.adopted for row in rows) if has_ours else None,
        "outcomes": dict(sorted(Counter(row.outcome for row in rows).items())),
        "errors": sum(row.outcome == "error" for row in rows),
        "tool_errors": _mean(row.tool_errors for row in rows),
        "estimated": sum(row.is_estimated for row in rows),
    }


def _counts(row: Row) -> tuple[float, float, float]:
    return answerability_counts(row.question, row.given, row.measures["score"] or 0.0)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def differences(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the paired differences of every measure, ``files+searchsvc`` minus ``files``."""
    by_question: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_question[row.question.id].append(row)
    found: dict[str, Any] = _over_answerability(list(by_question.values()))
    for name in MEASURES:
        values, clusters = [], []
        for mine in by_question.values():
            both, files = (_mean(r.measures[name] for r in _of(mine, arm)) for arm in (BOTH, FILES))
            if both is not None and files is not None:
                values.append(both - files)
                clusters.append(mine[0].question.cluster)
        wins, ties, losses = tally(values)
        if name in LESS_IS_BETTER:
            wins, losses = losses, wins
        entry = estimate(values, clusters).to_json()
        found[name] = {**entry, "wins": wins, "ties": ties, "losses": losses}
    return found


def _over_answerability(by_question: Sequence[Sequence[Row]]) -> dict[str, Any]:
    """Return the differences of what is no mean over questions; both arms get the same resamples.

    The counts of a question are means over its repeats, so that it weighs the same in both arms when a run
    is not complete.
    """
    paired = [rows for rows in by_question if _of(rows, BOTH) and _of(rows, FILES)]
    clusters = [rows[0].question.cluster for rows in paired]
    columns = [[*_mean_counts(_of(rows, BOTH)), *_mean_counts(_of(rows, FILES))] for rows in paired]

    def of_column(place: int) -> Statistic:
        return lambda sums: (
            precision_recall_f1(sums[..., :3])[..., place] - precision_recall_f1(sums[..., 3:])[..., place]
        )

    table = np.array(columns, np.float64).reshape(-1, 6)
    untold = {"wins": None, "ties": None, "losses": None}
    return {
        name: {**estimate_of(table, clusters, of_column(place)).to_json(), **untold}
        for place, name in enumerate(ANSWERABILITY)
    }


def _of(rows: Sequence[Row], arm: str) -> list[Row]:
    return [row for row in rows if row.key.arm == arm]


def _mean_counts(rows: Sequence[Row]) -> list[float]:
    return [fmean(column) for column in zip(*map(_counts, rows), strict=True)]


def table(found: Mapping[str, Any]) -> str:
    """Return the results as Markdown tables."""
    arms, parts = found["arms"], [f"{found['questions']} questions, {found['repeats']} times each"]
    if not found["complete"]:
        parts.append("The run is not complete: these are the attempts that were made.")
    names = ("attempts", *ANSWERABILITY, *MEASURES, "cited_lines", "adoption", "errors")
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
    named = [(name, groups["all"][name]) for name in (*ANSWERABILITY, *MEASURES)]
    for group in ("kinds", "tags"):
        named += [(f"score, {name}", entry["score"]) for name, entry in groups[group].items()]
    parts.append(markdown(head, [_difference_line(name, entry) for name, entry in named if entry["count"]]))
    return "\n\n".join(parts)


def _difference_line(name: str, entry: Mapping[str, Any]) -> tuple[str, ...]:
    return name, _interval(entry), str(entry["count"]), tally_text(entry), _show(entry["detectable"])


def _interval(entry: Mapping[str, Any]) -> str:
    mean, note = _show(entry["mean"]), entry["note"]
    if entry["low"] is None:
        return f"{mean} [{note}]"
    return f"{mean} [{_show(entry['low'])}, {_show(entry['high'])}]{note and f' ({note})'}"


def tally_text(entry: Mapping[str, Any]) -> str:
    """Return wins, ties and losses of a difference; a dash where single questions have no such figure."""
    if entry["wins"] is None:
        return "–"
    return f"{entry['wins']}/{entry['ties']}/{entry['losses']}"


def _show(value: float | None) -> str:
    if value is None:
        return "-"
    if abs(value) >= 100 or float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) >= 0.01 else f"{value:.2g}"
