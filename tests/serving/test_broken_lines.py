"""What a server answers to lines that are no messages, and to what was asked just before its input ended."""

import json
import subprocess
import sys

import pytest

from tests.notes import write_notes
from tests.serving.test_stdio import environment

PATIENCE = 120
HELLO = {
    "jsonrpc": "2.0", "id": "hello", "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}
    },
}  # fmt: skip


def call(number, query):
    params = {"name": "semantic_search", "arguments": {"query": query}}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def answers(tmp_path, *lines):
    """Send lines, texts as they are, and close the input at once; return the answers but the first."""
    folder = write_notes(tmp_path / "notes")
    sent = [HELLO, {"jsonrpc": "2.0", "method": "notifications/initialized"}, *lines]
    data = b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in sent)
    done = subprocess.run(
        [sys.executable, "-m", "searchsvc", "serve", str(folder), "--model", "none"],
        input=data, env=environment(tmp_path), capture_output=True, timeout=PATIENCE, check=True,
    )  # fmt: skip
    assert b"Traceback" not in done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()][1:]


def test_what_was_asked_before_the_input_ended_is_answered(tmp_path):
    found = answers(tmp_path, call(1, "tomatoes"), call(2, "tomatoes"))
    assert {answer["id"] for answer in found} == {1, 2}
    assert all(answer["result"]["structuredContent"]["hits"] for answer in found)


@pytest.mark.parametrize(
    ("line", "number", "code"),
    [
        (b"no json\n", None, -32700),
        (b'{"jsonrpc":"2.0","id":1,\n', None, -32700),
        (b'\xff\xfe{"jsonrpc":"2.0","id":1,"method":"ping"}\n', None, -32700),
        (b"[" * 100_000 + b"\n", None, -32700),
        (b"[]\n", None, -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n', None, -32600),
        (b"null\n", None, -32600),
        (b"{}\n", None, -32600),
        (b'{"id":"a","method":"ping"}\n', "a", -32600),
        (b'{"jsonrpc":"1.0","id":7,"method":"ping"}\n', 7, -32600),
        (b'{"jsonrpc":"2.0","id":7,"method":8}\n', 7, -32600),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}\n', 7, -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n', None, -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}\n', None, -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}\n', None, -32600),
        (b'{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}\n', None, -32600),
        (
            b'{"jsonrpc":"2.0","id":1.5,"method":"ping","params":{"x":"\\ud83d"}}\n',
            None,
            -32600,
        ),
    ],
)
def test_a_line_that_is_no_message_is_answered_by_an_error_and_the_next_one_as_ever(
    line, number, code, tmp_path
):
    refused, done = sorted(
        answers(tmp_path, line, call(9, "tomatoes")), key=lambda answer: "result" in answer
    )
    assert (refused["id"], refused["error"]["code"]) == (number, code)
    assert (done["id"], "result" in done) == (9, True)


def test_nothing_answers_blank_lines_wrong_notifications_and_answers(tmp_path):
    silent = (
        b"\n", b"  \r\n", b'{"jsonrpc":"2.0","method":"notifications/x","params":[]}\n',
        b'{"jsonrpc":"2.0","id":5,"result":7}\n', b'{"jsonrpc":"2.0","id":5,"error":7}\n',
        b'{"jsonrpc":"2.0","id":1.5,"result":{}}\n',
        b'{"jsonrpc":"2.0","id":null,"method":"notifications/x"}\n',
    )  # fmt: skip
    assert [answer["id"] for answer in answers(tmp_path, *silent, call(9, "tomatoes"))] == [9]


def test_half_of_an_emoji_and_a_byte_order_mark_cost_no_answer(tmp_path):
    half = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"semantic_search",' \
        b'"arguments":{"query":"tomatoes \\ud83d"}}}\n'  # fmt: skip
    marked = b"\xef\xbb\xbf" + json.dumps(call(2, "tomatoes")).encode() + b"\n"
    found = answers(tmp_path, half, marked)
    assert {answer["id"] for answer in found} == {1, 2}
    assert all(answer["result"]["structuredContent"]["hits"] for answer in found)
