"""One request: retries, refusals, secrets, and the forms in which a model may call a tool."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benchmark.errors import BenchmarkError
from benchmark.study.chat import (
    Call,
    ChatFault,
    ChatRefused,
    HttpChat,
    Usage,
    checked_address,
    fenced_calls,
    read_key,
    read_message,
    read_usage,
    redact,
)
from benchmark.study.file_tools import ToolFault
from benchmark.study.prompt import read_answer

KEY = "sk-very-secret-key"


def said(content="hello", **message):
    return {"choices": [{"message": {"role": "assistant", "content": content, **message}}]}


def native(name, arguments, identity="c1"):
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.fixture
def endpoint():
    """A server that gives the answers in ``answers`` one after the other, and keeps what it was asked."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.asked.append((self.path, dict(self.headers), body))
            status, answer, headers = server.answers.pop(0)
            data = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked, server.answers = [], []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def chat(endpoint):
    waits = []
    opened = HttpChat(f"http://127.0.0.1:{endpoint.server_port}/v1/", KEY, retries=2, sleep=waits.append)
    opened.waits = waits
    yield opened
    opened.close()


def test_a_request_and_its_reply(endpoint, chat):
    endpoint.answers = [(200, said(), {})]
    reply = chat.complete({"model": "m", "messages": []})
    assert (reply.body, reply.tries) == (said(), 1)
    path, headers, body = endpoint.asked[0]
    assert (path, headers["Authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert body == {"model": "m", "messages": []}


def test_busy_servers_are_asked_again_a_few_times(endpoint, chat):
    endpoint.answers = [(429, "slow down", {"Retry-After": "7"}), (503, "", {}), (200, said(), {})]
    assert chat.complete({}).tries == 3
    assert chat.waits == [7, 2]
    endpoint.answers = [(500, f"key {KEY} broke", {"Retry-After": "9999"})] * 3
    with pytest.raises(ChatFault, match=r"answered 500: key \*\*\* broke \(tried 3 times\)"):
        chat.complete({})
    assert chat.waits == [7, 2, 60, 60]


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_stops_the_run_without_the_key_in_its_text(endpoint, chat, status):
    endpoint.answers = [(200, said(), {}), (status, f"bad key {KEY}", {})]
    chat.complete({})
    with pytest.raises(ChatRefused, match="SEARCHSVC_STUDY_KEY") as refusal:
        chat.complete({})
    assert KEY not in str(refusal.value)
    assert len(endpoint.asked) == 2


def test_the_first_failure_of_all_stops_the_run_a_later_one_is_a_fault(endpoint, chat):
    endpoint.answers = [(400, "no temperature, please", {}), (200, said(), {}), (400, "too long", {})]
    with pytest.raises(ChatRefused, match="no temperature"):
        chat.complete({})
    chat.complete({})
    with pytest.raises(ChatFault, match="answered 400: too long$"):
        chat.complete({})
    endpoint.answers = [(200, "<html>", {}), (200, {"error": "x"}, {}), (200, {"choices": []}, {})]
    for _ in range(3):
        with pytest.raises(ChatFault, match="no message of a chat"):
            chat.complete({})


def test_nobody_there():
    chat = HttpChat("http://127.0.0.1:9", "", retries=1, sleep=lambda seconds: None)
    with pytest.raises(ChatRefused, match="is not reachable"):
        chat.complete({})
    chat.close()


@pytest.mark.parametrize(
    "address",
    ["http://me:secret@h/v1", "http://h/v1?key=secret", "ftp://h/v1", "h:80/v1", "", "http://", "http://h:x"],
)
def test_an_address_that_holds_a_secret_or_is_none_is_refused(address):
    with pytest.raises(BenchmarkError, match=r"^--endpoint") as error:
        checked_address(address)
    assert "http://me" not in str(error.value)


def test_the_key_comes_from_the_environment(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert read_key() == ""
    monkeypatch.setenv("OPENAI_API_KEY", "b")
    assert read_key() == "b"
    monkeypatch.setenv("SEARCHSVC_STUDY_KEY", "a")
    assert read_key() == "a"
    assert redact("none of it", "none") == "none of it", "too short to be a secret"


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 2}, Usage(9, 2, 0)),
        ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}, Usage(9, 0, 4)),
        ({"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 3}, Usage(9, 1, 3)),
        ({}, None),
        (None, None),
    ],
)
def test_usage(usage, expected):
    assert read_usage({"usage": usage}) == expected


def test_native_calls_come_before_those_in_the_text():
    calls = [native("grep", '{"pattern": "x"}')]
    message = read_message(said('```json\n{"name": "ls"}\n```', tool_calls=calls))
    assert message.calls == (Call("grep", {"pattern": "x"}, "c1"),)
    assert message.echo["tool_calls"] == calls
    nameless = read_message(said(None, tool_calls=[native("ls", {"path": "a"}, None)]))
    assert nameless.calls == (Call("ls", {"path": "a"}, "call-1"),)
    assert nameless.echo["tool_calls"][0]["id"] == "call-1"
    assert read_message(said([{"type": "text", "text": "hi"}])).echo["content"] == "hi"


@pytest.mark.parametrize("arguments", ["{not json", "[1]", '"x"'])
def test_arguments_that_are_no_object_are_a_fault_of_that_call_alone(arguments):
    (call,) = read_message(said(tool_calls=[native("grep", arguments)])).calls
    assert call.fault.startswith("the arguments are not")
    assert call.id == "c1"


FENCED = [
    ('First I look:\n```json\n{"name": "ls", "arguments": {"path": "."}}\n```', [("ls", {"path": "."})]),
    ('```\n{"name": "ls"}\n```', [("ls", {})]),
    ('```tool_call\r\n{"name": "ls", "parameters": {"path": "a"}}\r\n```', [("ls", {"path": "a"})]),
    ('```json {"name": "ls", "arguments": "{\\"path\\": \\"a\\"}"} ```', [("ls", {"path": "a"})]),
    ('```json\n[{"name": "ls"}, {"name": "grep", "arguments": {"pattern": "x"}}]\n```',
     [("ls", {}), ("grep", {"pattern": "x"})]),
    ('```json\n{"name": "ls"}\n```\nthen\n```json\n{"name": "answer"}\n```', [("ls", {}), ("answer", {})]),
    ('<think>```json\n{"name": "ls"}\n```</think>```json\n{"name": "grep"}\n```', [("grep", {})]),
    ('<think>never closed ```json\n{"name": "ls"}\n```', []),
    ('```python\nprint("name")\n```', [("", {})]),
    ('```json\n{"title": "no call"}\n```', []),
    ('```json\n[1, 2]\n```', []),
    ('{"name": "ls"}', []),
    ("no block at all", []),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), FENCED)
def test_calls_in_fenced_blocks(text, expected):
    found = [(call.name, call.arguments) for call in fenced_calls(text) if not call.fault]
    assert found == [call for call in expected if call[0]]


def test_a_block_that_is_nearly_a_call_is_a_fault_the_model_is_told_of():
    (call,) = fenced_calls('```json\n{"name": "ls", "arguments": {\n```')
    assert call.fault.startswith("the block is not JSON")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"status": "answered", "answer": " x "}, ("answered", "x", [])),
        ({"status": "answered", "answer": 40, "citations": None}, ("answered", "40", [])),
        ({"status": "answered", "answer": ["a", 2]}, ("answered", "['a', '2']", [])),
        ({"status": "not_answerable"}, ("not_answerable", "", [])),
    ],
)
def test_answers(arguments, expected):
    assert read_answer(arguments) == expected


def test_citations_that_say_nothing_are_left_out():
    given = [
        {"path": "a.md", "line_start": 3, "line_end": 5}, {"path": "a.md", "line_start": "7"},
        {"path": "b.md", "page": 2}, {"path": "a.md"}, {"line_start": 1}, "a.md",
        {"path": "a.md", "page": "x"},
    ]  # fmt: skip
    _, _, citations = read_answer({"status": "answered", "answer": "x", "citations": given})
    assert citations == [
        {"path": "a.md", "line_start": 3, "line_end": 5},
        {"path": "a.md", "line_start": 7, "line_end": 7},
        {"path": "b.md", "page": 2},
    ]


@pytest.mark.parametrize(
    "arguments",
    [{}, {"status": "yes", "answer": "x"}, {"status": "answered"}, {"status": "answered", "answer": {}}],
)
def test_an_answer_in_another_form_is_refused(arguments):
    with pytest.raises(ToolFault):
        read_answer(arguments)
