"""Looks for what is wrong with a set-up, and says how each fault is put right."""

import shutil
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from searchsvc.config import Config, data_dir
from searchsvc.embedding.base import PROBE
from searchsvc.embedding.slot import ModelSlot
from searchsvc.errors import IndexFault, SearchError
from searchsvc.index.catalog import connect
from searchsvc.items import Problem
from searchsvc.reading.walk import walk
from searchsvc.service import Service
from searchsvc.vault import Vault

_LOW_SPACE = 500_000_000
_UNREADABLE = (IndexFault, sqlite3.Error, OSError, ValueError, TypeError)
"""What reading a damaged index may raise."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    state: Literal["ok", "warning", "fault"]
    found: str
    fix: str = ""
    """What to do; empty when nothing needs doing."""


def examine(config: Config) -> Iterator[Check]:
    """Yield what was found, check by check; never raises for what is wrong, and never shows a secret."""
    yield _data_folder(data_dir(config))
    try:
        service = Service(config)
    except SearchError as error:
        yield Check("settings", "fault", str(error), "correct the setting that is named")
        return
    for vault in service.vaults:
        yield _root(vault, config)
        yield from _index(vault)
    if not service.slots:
        yield Check("model", "warning", "none: search is by words only", "set model, or leave it to auto")
    for slot in service.slots:
        yield _model(slot)
    yield from _vectors(service)


def _data_folder(folder: Path) -> Check:
    name = f"data folder {folder}"
    try:
        existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
        probe = existing / f".searchsvc-{time.monotonic_ns()}"
        probe.touch()
        probe.unlink()
        free = shutil.disk_usage(existing).free
    except OSError as error:
        fix = "check its permissions, or choose another with --data-dir"
        return Check(name, "fault", f"cannot be written: {error.strerror}", fix)
    if free < _LOW_SPACE:
        return Check(
            name, "warning", f"{free / 1e6:.0f} MB free", "free space; an index takes up to 10 kB a section"
        )
    return Check(name, "ok", f"can be written, {free / 1e9:.1f} GB free")


def _root(vault: Vault, config: Config) -> Check:
    name = f"root {vault.root.name} ({vault.root.path})"
    entries = list(walk(vault.root.path, config))
    problems = [entry for entry in entries if isinstance(entry, Problem)]
    notes = len(entries) - len(problems)
    if not notes:
        fix = "check the path, and the settings ignore, use_gitignore and include_hidden"
        return Check(name, "fault", "no Markdown files (.md, .markdown, .mdx, .qmd)", fix)
    if problems:
        first = f"{problems[0].path}: {problems[0].reason}"
        return Check(
            name, "warning", f"{notes} notes; {len(problems)} places cannot be read, {first}", "see above"
        )
    return Check(name, "ok", f"{notes} notes")


def _index(vault: Vault) -> Iterator[Check]:
    name = f"index of {vault.root.name}"
    if not vault.layout.catalog.is_file():
        yield Check(name, "warning", "not made yet", "run `searchsvc index`, or just search")
        return
    try:
        connection = connect(vault.layout.catalog, read_only=True)
        try:
            (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        finally:
            connection.close()
        if said != "ok":
            raise IndexFault(f"sqlite says: {said}")
        # Pinning opens every file of the newest generation, and changes nothing.
        with vault.reader.pinned() as (frame, catalog):
            sections, problems = int(frame.live.sum()), catalog.problems()
    except _UNREADABLE as error:
        yield Check(name, "fault", str(error), "run `searchsvc index`: it repairs or makes the index anew")
        return
    yield Check(name, "ok", f"sound, {sections} sections, {vault.size() / 1e6:.1f} MB")
    skipped = [problem for problem in problems if problem.skipped]
    if skipped:
        first = f"{skipped[0].path}: {skipped[0].reason}"
        yield Check(
            name, "warning", f"{len(skipped)} files could not be read, the first {first}", "see `status`"
        )


def _model(slot: ModelSlot) -> Check:
    """Load a model, or ask its server, and embed one text."""
    name = f"model {slot.name} ({slot.choice.provider})"
    try:
        begin = time.perf_counter()
        embedder = slot.require()
        loaded = time.perf_counter()
        embedder.encode_query(f"{PROBE} {time.monotonic_ns()}")
        asked = time.perf_counter()
    except SearchError as error:
        return Check(name, "fault", str(error), "do what the message says, or choose another model")
    except Exception as error:
        # Of a provider that somebody installed; what it says might hold anything.
        found = f"{type(error).__name__} at the first text"
        return Check(name, "fault", found, f"report it to the makers of provider {slot.choice.provider}")
    return Check(
        name,
        "ok",
        f"loaded in {loaded - begin:.1f} s, {embedder.profile.dimension} dimensions, "
        f"one text in {(asked - loaded) * 1000:.0f} ms",
    )


def _vectors(service: Service) -> Iterator[Check]:
    from searchsvc.profiles import list_profiles

    try:
        rows = list_profiles(service)
    except _UNREADABLE:
        # Told of the index itself.
        return
    for row in rows:
        name = f"vectors of {row.name} in {row.root}"
        left = row.wanted - row.embedded - row.failed
        if row.failed:
            fix = "see `searchsvc embed --failures`, then `searchsvc embed --retry-failed`"
            yield Check(name, "warning", f"{row.failed} texts failed", fix)
        elif left > 0:
            state: Literal["ok", "warning"] = "warning" if row.in_use else "ok"
            fix = "run `searchsvc embed`, or leave it to `serve`" if row.in_use else ""
            yield Check(name, state, f"{row.embedded} of {row.wanted} sections", fix)
        else:
            yield Check(name, "ok", f"{row.embedded} of {row.wanted} sections")
