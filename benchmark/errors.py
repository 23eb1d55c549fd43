"""One-line errors of the benchmark's commands, and the exit codes that go with them."""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from searchsvc.errors import ConfigError, EmbeddingError, SearchError

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


class BenchmarkError(Exception):
    """An argument or input file is not usable; the text says which, and what was expected."""


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """Print the message and exit with code 2."""
        self.exit(EXIT_USAGE, f"error: {message}; see --help\n")


def run_command(command: Callable[[Sequence[str] | None], None], arguments: Sequence[str] | None) -> int:
    """Run a command, turn its errors into one line on stderr, and return the exit code."""
    try:
        command(arguments)
    except (BenchmarkError, ConfigError, EmbeddingError) as error:
        return _fail(error, EXIT_USAGE)
    except (SearchError, OSError) as error:
        return _fail(error, EXIT_FAILED)
    except KeyboardInterrupt:
        return _fail("interrupted", EXIT_INTERRUPTED)
    return 0


def _fail(error: object, code: int) -> int:
    print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
    return code
