"""The ``searchsvc`` command, and ``python -m searchsvc``."""

import os
import sys


def run() -> None:
    """Start the command line, with file names and pipes in UTF-8 whatever the locale says."""
    if sys.getfilesystemencoding() != "utf-8":
        # A host may start us with LC_ALL=C; names that are not ASCII would then be unreadable.
        command = [sys.executable, "-X", "utf8", "-m", "searchsvc", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, "PYTHONUTF8": "1"})
    for stream in (sys.stdout, sys.stderr):
        if not stream.isatty() and hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")

    from searchsvc.cli import main

    main(prog_name="searchsvc")


if __name__ == "__main__":
    run()
