"""What a figure depends on beside the code that made it: machine, versions, commit."""

import os
import platform
import subprocess
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import searchsvc

_SECONDS = 10
_TURNS = 1_000_000


def machine(packages: Sequence[str] = ()) -> dict[str, Any]:
    """Return the commit, the machine, and the versions of packages that are installed."""
    versions = {}
    for name in packages:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "searchsvc": searchsvc.__version__,
        "commit": commit(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "loop_ns": loop_ns(),
        "versions": versions,
    }


def loop_ns() -> float:
    """Return the CPU nanoseconds that a turn of an empty Python loop takes now, the best of five.

    Machines differ in it by a factor of three, and one with others on it from hour to hour by two, so that
    no time says anything without it.
    """
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        for _ in range(_TURNS):
            pass
        best = min(best, time.process_time() - start)
    return round(best / _TURNS * 1e9, 1)


def commit() -> str:
    """Return the commit of the checkout, marked when files differ from it; empty outside of one."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=True,
            cwd=Path(__file__).parent,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
