"""The server as hosts run it: a process, its pipes, the real models."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from tests.notes import write_notes

ROOT = Path(__file__).parents[2]
CORPORA = Path(os.environ.get("SEARCHSVC_EVAL", ROOT.parent / "shared" / "eval"))
PATIENCE = 120


def environment(tmp_path, **more):
    kept = {key: value for key, value in os.environ.items() if not key.startswith("SEARCHSVC_")}
    (tmp_path / "empty.yaml").touch()
    own = {"SEARCHSVC_DATA_DIR": str(tmp_path / "data"), "SEARCHSVC_CONFIG": str(tmp_path / "empty.yaml")}
    return {**kept, **own, "PYTHONPATH": str(ROOT), **more}


def parameters(folder, tmp_path):
    arguments = ["-W", "error::ResourceWarning", "-m", "searchsvc", "serve", str(folder)]
    return StdioServerParameters(command=sys.executable, args=arguments, env=environment(tmp_path))


async def ask_until_embedded(client, question, model):
    """Ask until the reply has no notice about a model, and return it."""
    with anyio.fail_after(PATIENCE):
        while True:
            result = await client.call_tool("semantic_search", question)
            if not any(" yet" in notice for notice in result.structured_content.get("notices", [])):
                return result
            await anyio.sleep(0.5)


@pytest.mark.anyio
@pytest.mark.proves("R-end-to-end")
async def test_a_vault_never_seen_before_is_searched_by_meaning_with_the_bundled_model(tmp_path):
    folder = write_notes(tmp_path / "notes")
    async with Client(parameters(folder, tmp_path), mode="auto") as client:
        first = await client.call_tool("semantic_search", {"query": "watering tomatoes"})
        assert first.structured_content["hits"][0]["id"] == "garden/tomatoes.md#watering"
        question = {"query": "how do we renew expired passwords?", "explain": True}
        result = await ask_until_embedded(client, question, "all-minilm-l6-v2-int8")
    best = result.structured_content["hits"][0]
    assert best["id"] == "ops/runbook.md#rotating-keys"
    assert best["channels"]["vector"][0] == 1


@pytest.mark.anyio
@pytest.mark.skipif(not (CORPORA / "uv").is_dir(), reason="the evaluation corpora are not beside the project")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_real_documentation_answers_real_questions(tmp_path_factory, mode):
    tmp_path = tmp_path_factory.getbasetemp() / "uv-docs"
    tmp_path.mkdir(exist_ok=True)
    async with Client(parameters(CORPORA / "uv" / "corpus", tmp_path), mode=mode) as client:
        question = {"query": "How can I stop uv from downloading Python automatically?", "max_tokens": 800}
        result = await ask_until_embedded(client, question, "all-minilm-l6-v2-int8")
        found = [hit["id"] for hit in result.structured_content["hits"]]
        assert any("python-versions.md#" in address and "download" in address for address in found[:3])
        foreign = await client.call_tool("semantic_search", {"query": "how do bees make honey in winter?"})
        assert foreign.content[0].text.startswith("Nothing relevant")
        hub = await client.call_tool("md_find", {"query": "lockfile", "max_tokens": 500})
        assert "concepts/projects/sync.md" in hub.content[0].text


def speak(folder, tmp_path, messages, **more):
    """Send JSON-RPC lines, close stdin once all are answered, and return the replies and the process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "searchsvc", "serve", str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(tmp_path, **more),
    )  # fmt: skip
    expected = {message["id"] for message in messages if "id" in message}
    for message in messages:
        process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()
    lines = []
    while expected - {json.loads(line).get("id") for line in lines}:
        line = process.stdout.readline()
        assert line, process.stderr.read().decode()
        lines.append(line)
    rest, errors = process.communicate(timeout=PATIENCE)
    return [json.loads(line) for line in [*lines, *rest.splitlines()]], errors.decode(), process


def call(number, tool, **arguments):
    parameters = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": parameters}


HELLO = [
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
]


@pytest.mark.proves("R-serving-wire")
def test_only_json_rpc_in_utf8_goes_to_stdout_whatever_the_locale(tmp_path):
    notes = {"é.md": "# Übung\n\nПривет 日本語 😀\n", "bad.md": "---\na: b: c\n---\nx\n"}
    folder = write_notes(tmp_path / "notes", notes)
    asked = [call(2, "semantic_search", query="Привет"), call(3, "semantic_search", query="日本語")]
    latin = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "latin-1"}
    replies, errors, process = speak(folder, tmp_path, [*HELLO, *asked], **latin)
    assert all(reply["jsonrpc"] == "2.0" for reply in replies)
    by_id = {reply.get("id"): reply for reply in replies}
    for number in (2, 3):
        assert by_id[number]["result"]["structuredContent"]["hits"][0]["path"] == "é.md"
    assert process.returncode == 0
    assert "Traceback" not in errors


def test_closing_stdin_ends_the_server_without_a_trace(tmp_path):
    folder = write_notes(tmp_path / "notes")
    replies, errors, process = speak(folder, tmp_path, [*HELLO, call(2, "semantic_search", query="stock")])
    assert {1, 2} <= {reply.get("id") for reply in replies}
    assert process.returncode == 0
    assert "Traceback" not in errors


def test_an_unknown_method_is_a_protocol_error_and_the_session_goes_on(tmp_path):
    folder = write_notes(tmp_path / "notes")
    unknown = {"jsonrpc": "2.0", "id": 2, "method": "no/such"}
    replies, _, _ = speak(folder, tmp_path, [*HELLO, unknown, call(3, "semantic_search", query="stock")])
    by_id = {reply.get("id"): reply for reply in replies}
    assert by_id[2]["error"]["code"] == -32601
    assert by_id[3]["result"]["structuredContent"]["hits"]


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_while_stdin_is_open(tmp_path, number):
    folder = write_notes(tmp_path / "notes")
    process = subprocess.Popen(
        [sys.executable, "-m", "searchsvc", "serve", str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(tmp_path),
    )  # fmt: skip
    process.stdin.write(json.dumps(HELLO[0]).encode() + b"\n")
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["id"] == 1
    process.send_signal(number)
    assert process.wait(timeout=PATIENCE) == 128 + number
    process.communicate()
