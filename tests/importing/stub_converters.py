"""Converters for tests of the import job: what they do is what the document says.

In a module of their own, since worker processes import them by name.
"""

import os
import signal
import sys
import threading
from pathlib import Path

from searchsvc.errors import ReadingError
from searchsvc.importing.base import Asset, Book, Limits

HUGE = 8_000_000_000


def obey(data: bytes, limits: Limits, folder: Path) -> Book:
    """Do what the first word says, or make a book of three pages."""
    word = data.split(maxsplit=1)[0].decode() if data.strip() else ""
    if word == "exit":
        os._exit(7)
    if word == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if word == "hang":
        threading.Event().wait()
    if word == "stumble":
        raise ValueError(word)
    if word == "refuse":
        raise ReadingError("refused: found a stub, expected a book")
    if word == "need":
        raise ModuleNotFoundError("No module named 'pressroom'", name="pressroom")
    if word == "greedy":
        bytearray(HUGE)
    if word == "chatter":
        sys.stdout.write("to stdout")
        sys.stderr.write("to stderr")
    notices = tuple(f"notice {number}" for number in range(100)) if word == "notices" else ()
    text = data.decode()
    return Book("pdf", f"# {text}\n\n{text * 100}", assets=(Asset("a.png", data),), pages=3, notices=notices)


CONVERTERS = {".pdf": obey}
