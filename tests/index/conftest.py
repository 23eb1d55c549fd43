"""Fixtures of the index tests."""

from pathlib import Path

import pytest
from index_world import World


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what only a power cut could tell from doing it."""
    monkeypatch.setattr("searchsvc.index.arrays.os.fsync", lambda descriptor: None)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)
