"""CPU time of calls: what other work on the machine disturbs least."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

_WARM_UP = 5
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Timing:
    """CPU time of one call over many queries, all threads of the process together."""

    name: str
    p50: float
    """Median, in milliseconds."""
    p95: float
    build: float | None = None
    """CPU seconds to make the index; none when it was not made for this row."""


def time_calls(
    name: str, call: Callable[[_T], Any], items: Sequence[_T], build: float | None = None
) -> Timing:
    """Time a call for every item, after a few for warmth."""
    for item in items[:_WARM_UP]:
        call(item)
    spent = np.empty(len(items))
    for number, item in enumerate(items):
        start = time.process_time_ns()
        call(item)
        spent[number] = time.process_time_ns() - start
    p50, p95 = np.percentile(spent / 1e6, (50, 95))
    return Timing(name, float(p50), float(p95), build)


def cpu_of(call: Callable[[], _T]) -> tuple[_T, float]:
    """Return what a call returns and its CPU seconds."""
    start = time.process_time()
    return call(), time.process_time() - start
