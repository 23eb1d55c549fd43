"""Markdown tables and the few statistics that go into them."""

from collections.abc import Iterable, Sequence

import numpy as np


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; bars in cells are escaped."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)


def mean(values: Iterable[float]) -> float:
    """Return the mean; NaN of nothing."""
    numbers = np.fromiter(values, np.float64)
    return float(numbers.mean()) if len(numbers) else float("nan")


def percentile(values: Iterable[float], share: float) -> float:
    """Return a percentile, ``share`` in percent; NaN of nothing."""
    numbers = np.fromiter(values, np.float64)
    return float(np.percentile(numbers, share)) if len(numbers) else float("nan")
