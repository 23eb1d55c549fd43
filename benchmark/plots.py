"""Figures as pictures: PNG files, and the same as SVG to stand in a page.

Each function takes what a command has written with ``--json`` and returns a matplotlib figure.
"""

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.errors import BenchmarkError
from benchmark.study.intervals import Estimate, estimate

try:
    import matplotlib

    matplotlib.use("Agg")
    from cycler import cycler
    from matplotlib import pyplot
except ImportError as _error:
    raise BenchmarkError("pictures need matplotlib: pip install 'searchsvc[bench]'") from _error

_COLOURS = ("#31688e", "#e07b39", "#5aa469", "#8d5a97", "#c4453c", "#7a7a7a", "#b59f3b", "#3aa6b9")
_BOUNDS = {"oracle": "--", "random": ":", "sequential": "-."}
"""Policies that nobody would follow are drawn thin and grey."""
_DPI = 150
_BANDED = ("hybrid", "grep")
"""Policies whose intervals are drawn; those of all would hide each other."""
_DODGE = 1.025
"""Factor between the points of one policy and of the next, so that equal ones are seen side by side."""
_OURS = "searchsvc"
FEW = 8
"""Kinds of fewer questions are left out of pictures: their intervals would fill them."""
pyplot.rcParams.update(
    {
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.25,
        "svg.fonttype": "none",
        "svg.hashsalt": "searchsvc",
        "axes.prop_cycle": cycler(color=_COLOURS),
    }
)


def save(figure: Any, file: Path) -> str:
    """Write a figure as PNG, and return it as SVG for a page."""
    figure.savefig(file, dpi=_DPI, bbox_inches="tight")
    out = io.StringIO()
    figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None})
    pyplot.close(figure)
    svg = out.getvalue()
    return re.sub(r"^.*?(?=<svg)", "", svg, flags=re.DOTALL)


def quality(runs: Sequence[Mapping[str, Any]]) -> Any:
    """Draw nDCG@10 by set and kind, one bar a mode and profile, with 95 % intervals over queries."""
    modes = list(dict.fromkeys((run["mode"], run["profile"]) for run in runs))
    values: dict[tuple[str, str], dict[tuple[str, str], list[float]]] = {}
    for run in runs:
        for row in run["queries"]:
            group = values.setdefault((run["set"], row["kind"]), {})
            group.setdefault((run["mode"], run["profile"]), []).append(row["ndcg"])
    groups = {
        name: len(next(iter(group.values())))
        for name, group in values.items()
        if len(next(iter(group.values()))) >= FEW
    }
    figure, axes = pyplot.subplots(figsize=(max(6.0, 1.1 * len(groups)), 3.6))
    width = 0.8 / len(modes)
    for number, mode in enumerate(modes):
        bars = [
            (place, estimate(scores, [str(n) for n in range(len(scores))]))
            for place, name in enumerate(groups)
            if (scores := values[name].get(mode))
        ]
        places = [place + (number - (len(modes) - 1) / 2) * width for place, _ in bars]
        errors = np.array([_around(found) for _, found in bars]).reshape(-1, 2).T
        means = [found.mean or 0.0 for _, found in bars]
        label = f"{mode[0]} {mode[1]}".strip()
        axes.bar(places, means, width, yerr=errors, label=label, error_kw={"lw": 0.8, "alpha": 0.6})
    names = [f"{name}\n{kind} ({count})" for (name, kind), count in groups.items()]
    axes.set_xticks(range(len(groups)), names, rotation=30, ha="right")
    axes.set_xlabel("set, kind (queries); lines are 95 % intervals")
    axes.set_ylabel("section nDCG@10")
    axes.set_ylim(0, 1.02)
    axes.grid(axis="x", visible=False)
    rows = -(-len(modes) // 3)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=-(-len(modes) // rows), frameon=False)
    return figure


def _around(found: Estimate) -> tuple[float, float]:
    """Return how far the interval reaches below and above; NaN, which draws nothing, without one."""
    if found.mean is None or found.low is None or found.high is None:
        return np.nan, np.nan
    return found.mean - found.low, found.high - found.mean


def growth(sizes: Sequence[Mapping[str, Any]]) -> Any:
    """Draw the median CPU time of a question by the number of sections, on logarithmic axes.

    An engine that was left out at a size has no point there.
    """
    figure, panels = pyplot.subplots(1, 3, figsize=(11, 4.8), sharey=True)
    titles = {"words": "by words", "vectors": "by vectors, exact", "both": "words and vectors"}
    counts = sorted({size["sections"] for size in sizes})
    for axes, (table, title) in zip(panels, titles.items(), strict=True):
        names = list(dict.fromkeys(row["name"] for size in sizes for row in size[table]))
        for number, name in enumerate(names):
            points = [
                (size["sections"], row["p50"])
                for size in sizes
                for row in size[table]
                if row["name"] == name and row["p50"] is not None
            ]
            ours = name.startswith(_OURS)
            style = {"lw": 2.4, "marker": "o"} if ours else {"lw": 1.2, "marker": "s", "ls": "--"}
            colour = _COLOURS[number % len(_COLOURS)]
            label = name.replace("`", "") if points else f"{name}: left out"
            axes.plot(*(zip(*points, strict=True) if points else ([], [])), ms=4, color=colour,
                      label=label, **style)  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(counts, [f"{count:,}" for count in counts])
        axes.set_xticks([], minor=True)
        axes.set_xlim(counts[0] / 1.5, counts[-1] * 1.5)
        axes.yaxis.set_major_formatter("{x:g}")
        axes.set_title(title, fontsize=9)
        axes.set_xlabel("sections")
        axes.legend(
            fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(-0.05, -0.16), handlelength=3
        )
    panels[0].set_ylabel("CPU time of a question, median, in ms")
    figure.tight_layout()
    return figure


Point = tuple[int, float | None, float | None, float | None]
"""Budget in tokens, mean, lower and upper end of the interval."""


def evidence(curves: Mapping[str, Mapping[str, Sequence[Point]]]) -> Any:
    """Draw evidence recall by budget, one panel a kind, one curve a policy; intervals of two of them.

    ``curves`` maps titles to policies to points.
    """
    columns = min(3, len(curves))
    rows = -(-len(curves) // columns)
    figure, panels = pyplot.subplots(
        rows, columns, figsize=(3.8 * columns, 2.9 * rows), sharey=True, squeeze=False
    )
    for axes in panels.flat[len(curves) :]:
        axes.set_visible(False)
    policies = list(dict.fromkeys(policy for kind in curves.values() for policy in kind))
    real = [policy for policy in policies if policy not in _BOUNDS]
    for axes, (title, found) in zip(panels.flat, curves.items(), strict=False):
        for policy in (policy for policy in policies if policy in found):
            _draw_curve(axes, policy, found[policy], real)
        budgets = [point[0] for point in next(iter(found.values()))]
        axes.set_xscale("log", base=2)
        axes.set_xticks(budgets, [f"{budget // 1000}k" for budget in budgets])
        axes.set_title(title, fontsize=9)
        axes.set_ylim(-0.02, 1.04)
        axes.set_xlabel("tokens paid", fontsize=8)
    for axes in panels[:, 0]:
        axes.set_ylabel("evidence recall")
    figure.tight_layout()
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=4, frameon=False, bbox_to_anchor=(0.5, 0.0),
                  title="shaded: 95 % intervals, documents drawn whole", title_fontsize=8)  # fmt: skip
    return figure


def _draw_curve(axes: Any, policy: str, points: Sequence[Point], real: Sequence[str]) -> None:
    budgets, means, lows, highs = zip(*points, strict=True)
    if policy in _BOUNDS:
        axes.plot(budgets, means, _BOUNDS[policy], lw=1, color="#999999", label=policy)
        return
    place = real.index(policy)
    colour = _COLOURS[place % len(_COLOURS)]
    shifted = np.array(budgets) * _DODGE ** (place - (len(real) - 1) / 2)
    is_banded = policy == _BANDED[0] or policy.startswith(_BANDED[1])
    axes.plot(shifted, means, "o-", ms=3, lw=2.0 if is_banded else 1.0, color=colour, label=policy)
    if is_banded:
        # Without an interval, as where all is found, the band has no width.
        edges = [
            [mean if end is None else end for end, mean in zip(ends, means, strict=True)]
            for ends in (lows, highs)
        ]
        axes.fill_between(shifted, *edges, color=colour, alpha=0.15, lw=0)


def forest(differences: Mapping[str, Mapping[str, Any]], title: str) -> Any:
    """Draw differences with their 95 % intervals, one line a measure; hollow where there is none.

    ``differences`` maps names to objects with ``mean``, ``low``, ``high``, ``count`` and ``note``.
    """
    figure, axes = pyplot.subplots(figsize=(7.5, 0.34 * len(differences) + 1.0))
    names = list(differences)[::-1]
    for place, found in enumerate(differences[name] for name in names):
        mean, low, high = found["mean"], found["low"], found["high"]
        if low is None:
            axes.plot(mean, place, "o", mfc="white", color=_COLOURS[5])
        else:
            colour = _COLOURS[2] if low > 0 else _COLOURS[4] if high < 0 else _COLOURS[5]
            axes.plot((low, high), (place, place), color=colour, lw=2)
            axes.plot(mean, place, "o", color=colour)
        axes.annotate(found["note"], (1.01, place), xycoords=("axes fraction", "data"), va="center",
                      fontsize=7, color="#666666")  # fmt: skip
    axes.axvline(0, color="black", lw=0.8)
    axes.set_yticks(range(len(names)), [f"{name} (n = {differences[name]['count']})" for name in names])
    axes.set_xlabel(f"{title}; lines are 95 % intervals")
    axes.set_ylim(-0.6, len(differences) - 0.4)
    return figure
