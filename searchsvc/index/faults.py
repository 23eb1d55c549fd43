"""Errors of sqlite and of the file system -> ``IndexFault`` with advice."""

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from searchsvc.errors import IndexFault

REBUILD = "run `searchsvc index`, which makes it anew"

_KEPT = "The last complete state is kept."


class Damage(IndexFault):
    """A file of the index is missing or is not what was written; the next writer makes the index anew."""


@contextmanager
def faults() -> Iterator[None]:
    """Turn errors of sqlite into ``IndexFault``."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translated(error) from error


def write_fault(error: OSError) -> IndexFault:
    """Return what to raise when an index file cannot be written."""
    is_full = error.errno in (None, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # numpy gives no number
    found = error.strerror or "the disk is full"
    advice = "free space" if is_full else "check the permissions of the data folder"
    return IndexFault(f"index cannot be written: {found}; {advice}, then index again. {_KEPT}")


def _translated(error: sqlite3.Error) -> IndexFault:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or str(error).startswith("no such "):
        return Damage(f"index is damaged: {error}; {REBUILD}")
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return IndexFault(f"index cannot be written: {error}; free space, then index again. {_KEPT}")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return IndexFault(f"index is in use: {error}; close the other program or try again in a moment")
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return IndexFault(f"index cannot be opened: {error}; check the permissions of the data folder")
    return IndexFault(f"index cannot be used: {error}; {REBUILD}")
