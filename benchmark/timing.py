"""Time of calls, as CPU time, which other work on the machine disturbs least, and as wall time."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

_WARM_UP = 5
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Timing:
    """Time of one call over many queries; without figures where an engine was left out."""

    name: str
    p50: float | None = None
    """Median CPU time of all threads of the process together, in milliseconds."""
    p95: float | None = None
    build: float | None = None
    """CPU seconds to make the index; none when it was not made for this row."""
    wall_p50: float | None = None
    """Median wall time, in milliseconds."""
    wall_p95: float | None = None
    skipped: str = ""
    """Why there are no figures."""


def time_calls(
    name: str, call: Callable[[_T], Any], items: Sequence[_T], build: float | None = None
) -> Timing:
    """Time a call for every item, after a few for warmth."""
    for item in items[:_WARM_UP]:
        call(item)
    spent = np.empty((len(items), 2))
    for number, item in enumerate(items):
        cpu, wall = time.process_time_ns(), time.perf_counter_ns()
        call(item)
        spent[number] = time.process_time_ns() - cpu, time.perf_counter_ns() - wall
    (p50, wall_p50), (p95, wall_p95) = np.percentile(spent / 1e6, (50, 95), axis=0).tolist()
    return Timing(name, p50, p95, build, wall_p50, wall_p95)


def cpu_of(call: Callable[[], _T]) -> tuple[_T, float]:
    """Return what a call returns and its CPU seconds."""
    start = time.process_time()
    return call(), time.process_time() - start
