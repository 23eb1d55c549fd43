"""Work on many items at once, hand the results out in order, and never run far ahead of the taker."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

AHEAD = 4
"""Items per worker that may be started before their result is asked for."""


def cores() -> int:
    """Return the number of processor cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_in_order(function: Callable[[T], R], items: Iterable[T], workers: int) -> Iterator[R]:
    """Yield ``function(item)`` for each item, in order, from ``workers`` threads.

    An error of the function is raised at its item's turn. When the taker stops early, what was not
    begun is dropped and the threads are joined.
    """
    if workers <= 1:
        yield from map(function, items)
        return
    waiting = iter(items)
    pool = ThreadPoolExecutor(workers, thread_name_prefix="searchsvc-embed")
    try:
        running: deque[Future[R]] = deque(
            pool.submit(function, item) for item in islice(waiting, workers * AHEAD)
        )
        while running:
            result = running.popleft().result()
            running.extend(pool.submit(function, item) for item in islice(waiting, 1))
            yield result
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
