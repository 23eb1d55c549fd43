"""What could not be embedded, by profile: kept so that a job goes on and nothing is tried for ever."""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

SCHEMA = """
CREATE TABLE failures (
    identity TEXT NOT NULL, key TEXT NOT NULL, address TEXT NOT NULL, reason TEXT NOT NULL,
    embedded INTEGER NOT NULL, PRIMARY KEY (identity, key)) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Failure:
    """A text that a model did not take, or not whole."""

    key: int
    """Hash of what was to be embedded."""
    address: str
    """Id of a section with that text."""
    reason: str
    """What the model or its server said."""
    embedded: bool = False
    """Whether a part of it has vectors all the same."""


class Ledger:
    """Reads and writes the failures of one index."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def identities(self) -> list[str]:
        """Return the profiles that have failures, with vectors or without any."""
        rows = self._connection.execute("SELECT DISTINCT identity FROM failures ORDER BY identity")
        return [identity for (identity,) in rows]

    def failures(self, identity: str) -> list[Failure]:
        """Return the failures of a profile by address."""
        rows = self._connection.execute(
            "SELECT key, address, reason, embedded FROM failures WHERE identity = ? ORDER BY address, key",
            (identity,),
        )
        return [Failure(int(key), address, reason, bool(embedded)) for key, address, reason, embedded in rows]

    def failed_keys(self, identity: str) -> list[int]:
        """Return the hashes of the texts that have no vector because of a failure."""
        query = "SELECT key FROM failures WHERE identity = ? AND NOT embedded"
        return [int(key) for (key,) in self._connection.execute(query, (identity,))]

    def record(self, identity: str, failures: Iterable[Failure]) -> None:
        """Add failures; one text has one."""
        self._connection.executemany(
            "INSERT OR REPLACE INTO failures VALUES (?, ?, ?, ?, ?)",
            [(identity, str(f.key), f.address, f.reason, f.embedded) for f in failures],
        )

    def forget(self, identity: str, keys: Iterable[int] | None = None) -> None:
        """Drop the failures of these texts, or all of a profile."""
        if keys is None:
            self._connection.execute("DELETE FROM failures WHERE identity = ?", (identity,))
            return
        self._connection.execute(
            "DELETE FROM failures WHERE identity = ? AND key IN (SELECT value FROM json_each(?))",
            (identity, json.dumps([str(key) for key in keys])),
        )
