"""Memory and CPU time of this process and its children, on every platform."""

import os
import re
import sys
import time
from pathlib import Path

_MEGABYTE = 1e6


def peak_rss_mb() -> float | None:
    """Return the most memory this process has held, in MB (1e6 bytes); none when nobody can tell."""
    # What the resource module says on Linux counts the process that started this one, too.
    status = Path("/proc/self/status")
    if status.is_file():
        found = re.search(r"^VmHWM:\s*(\d+) kB", status.read_text(), re.MULTILINE)
        if found:
            return round(int(found.group(1)) * 1024 / _MEGABYTE, 1)
    try:
        import resource
    except ImportError:
        return _peak_by_psutil()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak * (1 if sys.platform == "darwin" else 1024) / _MEGABYTE, 1)


def _peak_by_psutil() -> float | None:
    try:
        import psutil
    except ImportError:
        return None
    memory = psutil.Process().memory_info()
    peak = int(getattr(memory, "peak_wset", memory.rss))
    return round(peak / _MEGABYTE, 1)


def own_cpu_seconds() -> float:
    """Return the CPU time of this process, in seconds."""
    return time.process_time()


def children_cpu_seconds() -> float:
    """Return the CPU time of children that have ended, in seconds; 0 where nobody can tell (Windows)."""
    times = os.times()
    return times.children_user + times.children_system
