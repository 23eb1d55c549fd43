"""The reader as a host runs it: a process, its pipes, the bundled models."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from tests.serving.reader_client import HERONS, configure, text_of, until

ROOT = Path(__file__).parents[2]


def parameters(tmp_path):
    kept = {key: value for key, value in os.environ.items() if not key.startswith("SEARCHSVC_")}
    (tmp_path / "empty.yaml").touch()
    own = {"SEARCHSVC_DATA_DIR": str(tmp_path / "data"), "SEARCHSVC_CONFIG": str(tmp_path / "empty.yaml")}
    words = ["-m", "searchsvc", "serve", str(tmp_path / "notes"), "--toolsets", "reader"]
    return StdioServerParameters(
        command=sys.executable, args=["-W", "error::ResourceWarning", *words],
        env={**kept, **own, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


@pytest.mark.anyio
@pytest.mark.proves("R-end-to-end")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_pdf_is_imported_searched_and_read_with_the_bundled_model(tmp_path, mode):
    configure(tmp_path)
    async with Client(parameters(tmp_path), mode=mode) as client:
        added = await client.call_tool(
            "reader.import_document", {"path": "papers/marsh.pdf", "title": "Möwen 🐦"}
        )
        (facts,) = added.structured_content["rows"]
        assert facts["title"] == "Möwen 🐦"
        text = {"query": HERONS[:30]}
        found = await until(
            lambda: client.call_tool("reader.search_markdown", text),
            lambda reply: reply.structured_content["rows"],
        )
        assert found.structured_content["rows"][0]["pages"] == [1, 1]
        question = {"query": "a bird that waits motionless for its prey", "file_types": ["pdf"], "top_k": 2}
        hits = await until(
            lambda: client.call_tool("reader.semantic_search_documents", question),
            lambda reply: not reply.is_error and reply.structured_content["hits"],
        )
        assert hits.structured_content["hits"][0]["pages"] == [1, 1]
        (recent,) = (await client.read_resource("reader://documents/recent")).contents
        assert json.loads(recent.text)[0]["doc_id"] == facts["doc_id"]
        refused = await client.call_tool("reader.import_document", {"path": "../outside/secret.pdf"})
        assert refused.is_error
        assert "outside the root" in text_of(refused)


@pytest.mark.anyio
async def test_what_another_process_imports_is_seen_by_a_running_server(tmp_path):
    configure(tmp_path)
    server = parameters(tmp_path)
    async with Client(server) as client:
        before = await client.call_tool("reader.list_documents", {"file_types": ["epub"]})
        assert before.structured_content["rows"] == []
        command = [server.command, "-m", "searchsvc", "import", str(tmp_path / "notes/papers/owls.epub")]
        subprocess.run(command, env=server.env, check=True, capture_output=True)
        listed = await until(
            lambda: client.call_tool("reader.list_documents", {"file_types": ["epub"]}),
            lambda reply: reply.structured_content["rows"],
        )
        assert listed.structured_content["rows"][0]["title"] == "Owls"
        opened = await client.call_tool("reader.open_document", {"path": "owls.epub"})
        assert "Owls hunt at night." in text_of(opened)


def test_a_server_says_its_tools_before_anything_heavy_is_loaded():
    heavy = "{'numpy', 'onnxruntime', 'pypdfium2', 'searchsvc.service'}"
    code = f"import sys, searchsvc.serving.server; print(*{heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == ""
