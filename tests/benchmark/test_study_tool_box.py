"""The child process that serves one arm: its start, its tools, its end."""

import tempfile

import psutil
import pytest

from benchmark.errors import BenchmarkError
from benchmark.study.tool_box import BOTH, FILES, ServerGone, open_boxes
from tests.notes import write_notes

PATIENCE = 60


def test_a_server_that_ends_stops_the_run_instead_of_spoiling_it(tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    notes = write_notes(tmp_path / "notes")
    with open_boxes(notes, "none", "find") as boxes:
        assert {tool["name"] for tool in boxes[BOTH].server.tools} == {"semantic_search", "md_find"}
        children = psutil.Process().children(recursive=True)
        (server,) = [child for child in children if "serve" in child.cmdline()]
        server.kill()
        server.wait(PATIENCE)
        with pytest.raises(ServerGone, match="has ended"):
            boxes[BOTH].call("md_find", {"query": "tomatoes"})
        assert not boxes[FILES].call("ls", {}).is_error
    with pytest.raises(BenchmarkError, match=r"^searchsvc serve failed: .*toolset"):
        open_boxes(notes, "none", "x").__enter__()
    assert not list((tmp_path / "temporary").iterdir())
