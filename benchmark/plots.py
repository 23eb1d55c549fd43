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
from benchmark.study.intervals import estimate

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
_FEW = 8
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
    groups = [name for name, group in values.items() if len(next(iter(group.values()))) >= _FEW]
    figure, axes = pyplot.subplots(figsize=(max(6.0, 1.1 * len(groups)), 3.6))
    width = 0.8 / len(modes)
    for number, mode in enumerate(modes):
        places, means, errors = [], [], []
        for place, name in enumerate(groups):
            scores = values[name].get(mode)
            if scores:
                found = estimate(scores, [str(n) for n in range(len(scores))])
                places.append(place + (number - (len(modes) - 1) / 2) * width)
                means.append(found.mean)
                errors.append((found.mean - found.low, found.high - found.mean))
        bars = np.array(errors).T if errors else None
        label = f"{mode[0]} {mode[1]}".strip()
        axes.bar(places, means, width, yerr=bars, label=label, error_kw={"lw": 0.8, "alpha": 0.6})
    names = [f"{name}\n{kind}" for name, kind in groups]
    axes.set_xticks(range(len(groups)), names, rotation=30, ha="right")
    axes.set_ylabel("section nDCG@10")
    axes.set_ylim(0, 1)
    axes.grid(axis="x", visible=False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.14), ncols=min(len(modes), 4), frameon=False)
    return figure


def growth(sizes: Sequence[Mapping[str, Any]]) -> Any:
    """Draw the median CPU time of a question by the number of sections, on logarithmic axes."""
    figure, panels = pyplot.subplots(1, 3, figsize=(11, 3.6), sharex=True)
    titles = {"words": "by words", "vectors": "by vectors", "both": "both"}
    for axes, (table, title) in zip(panels, titles.items(), strict=True):
        names = dict.fromkeys(row["name"] for size in sizes for row in size[table])
        for name in names:
            points = [
                (size["sections"], row["p50"]) for size in sizes for row in size[table] if row["name"] == name
            ]
            ours = name.startswith("searchsvc")
            axes.plot(*zip(*points, strict=True), "o-", lw=2.2 if ours else 1.1, ms=4, label=name)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(title, fontsize=9)
        axes.set_xlabel("sections")
        axes.legend(fontsize=6.5, frameon=False)
    panels[0].set_ylabel("CPU ms a question, median")
    return figure


def evidence(curves: Mapping[str, Mapping[str, Sequence[tuple[int, float, float, float]]]]) -> Any:
    """Draw evidence recall by budget, one panel a kind, one curve a policy.

    ``curves`` maps kinds to policies to points of budget, mean, lower and upper end of the interval.
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
    for axes, (kind, found) in zip(panels.flat, curves.items(), strict=False):
        for policy in (policy for policy in policies if policy in found):
            budgets, means, lows, highs = zip(*found[policy], strict=True)
            if policy in _BOUNDS:
                axes.plot(budgets, means, _BOUNDS[policy], lw=1, color="#999999", label=policy)
                continue
            colour = _COLOURS[real.index(policy) % len(_COLOURS)]
            axes.plot(budgets, means, "o-", ms=3, lw=1.6, color=colour, label=policy)
            axes.fill_between(budgets, lows, highs, color=colour, alpha=0.08, lw=0)
        axes.set_xscale("log", base=2)
        axes.set_xticks(budgets, [f"{budget // 1000}k" for budget in budgets])
        axes.set_title(kind, fontsize=9)
        axes.set_ylim(-0.02, 1.02)
    for axes in panels[:, 0]:
        axes.set_ylabel("evidence recall")
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=4, frameon=False, bbox_to_anchor=(0.5, -0.06))
    figure.tight_layout()
    return figure


def forest(differences: Mapping[str, tuple[float, float, float]], title: str) -> Any:
    """Draw differences with their 95 % intervals, one line a measure: mean, lower and upper end."""
    figure, axes = pyplot.subplots(figsize=(6.5, 0.45 * len(differences) + 1.0))
    for place, (mean, low, high) in enumerate(reversed(list(differences.values()))):
        colour = _COLOURS[2] if low > 0 else _COLOURS[4] if high < 0 else _COLOURS[5]
        axes.plot((low, high), (place, place), color=colour, lw=2)
        axes.plot(mean, place, "o", color=colour)
    axes.axvline(0, color="black", lw=0.8)
    axes.set_yticks(range(len(differences)), list(differences)[::-1])
    axes.set_xlabel(title)
    axes.set_ylim(-0.6, len(differences) - 0.4)
    return figure
