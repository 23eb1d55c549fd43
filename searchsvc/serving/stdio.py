"""Standard input and output as a transport: every line gets an answer, and what was asked last gets one too.

The transport of the SDK passes over lines that are no messages, so that a client waits for an answer to a
request of which, say, half of an emoji was cut off; it takes a request with an id that is no id for a
notification; and it leaves what is under way at the end of its input. So lines are read here.
"""

import io
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, BinaryIO

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

_LAST_SECONDS = 3.0
"""How long requests under way are waited for when the input ends."""

Requests = MemoryObjectReceiveStream[SessionMessage | Exception]
Replies = MemoryObjectSendStream[SessionMessage]


@asynccontextmanager
async def standard_streams() -> AsyncIterator[tuple[Requests, Replies]]:
    """Open the streams that a server reads its messages from and writes its own to."""
    to_server, requests = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    from_server, replies = anyio.create_memory_object_stream[SessionMessage](0)
    waiting = set[int | str]()

    async def read() -> None:
        async with to_server:
            async for line in lines:
                found = read_line(line)
                if isinstance(found, JSONRPCError):
                    await wire.send(SessionMessage(found))
                elif found is not None:
                    _note_request(found, waiting)
                    await to_server.send(found)
            with anyio.move_on_after(_LAST_SECONDS):
                while waiting:
                    await anyio.sleep(0.01)

    async def write() -> None:
        async with replies, wire:
            async for reply in replies:
                await wire.send(reply)
                if isinstance(reply.message, JSONRPCResponse | JSONRPCError):
                    waiting.discard(reply.message.id or 0)

    lines = anyio.wrap_file(io.TextIOWrapper(_claim_input(), encoding="utf-8", errors="replace"))
    async with (
        stdio_server(stdin=anyio.wrap_file(io.StringIO())) as (unread, wire),
        anyio.create_task_group() as group,
    ):
        await unread.aclose()
        group.start_soon(read)
        group.start_soon(write)
        try:
            yield requests, from_server
        finally:
            await from_server.aclose()
            await requests.aclose()


def _note_request(sent: SessionMessage, waiting: set[int | str]) -> None:
    message = sent.message
    if isinstance(message, JSONRPCRequest):
        waiting.add(message.id)
    elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
        waiting.discard((message.params or {}).get("requestId", ""))


def _claim_input() -> BinaryIO:
    """Return standard input for ourselves: child processes, and what else reads it, find it at its end."""
    try:
        own = os.dup(0)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
    except OSError:
        return sys.stdin.buffer
    if sys.platform == "win32":
        from mcp.os.win32.utilities import rebind_std_handle_to_fd

        rebind_std_handle_to_fd(0)
    # Never closed: a thread may still wait for a line when the server ends.
    return os.fdopen(own, "rb", closefd=False)


def read_line(line: str) -> SessionMessage | JSONRPCError | None:
    """Return the message that a line holds, else the error that answers it.

    None for what gets no answer: a blank line, and by JSON-RPC a faulty notification or answer.
    """
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        return _read_text(line)
    return _read_text(line) if isinstance(message, JSONRPCNotification) else SessionMessage(message)


def _is_request(value: dict[str, Any]) -> bool:
    """Tell whether a message without a sound id is a request; some clients write null in notifications."""
    is_told = value.get("id") is None and str(value.get("method")).startswith("notifications/")
    return "id" in value and not is_told


def _read_text(line: str) -> SessionMessage | JSONRPCError | None:
    line = line.strip().removeprefix("\ufeff")
    if not line:
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return _error(
            None, PARSE_ERROR, "Parse error: the line is no JSON; send one message a line, in UTF-8"
        )
    # Python reads halves of pairs of surrogates, which are no characters.
    whole = (
        json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )
    try:
        message = jsonrpc_message_adapter.validate_json(whole, by_name=False)
    except ValidationError:
        return _refuse(value)
    # A request whose id is no id passes for a notification.
    is_faulty = isinstance(message, JSONRPCNotification) and _is_request(value)
    return _refuse(value) if is_faulty else SessionMessage(message)


def _refuse(value: Any) -> JSONRPCError | None:
    """Return the error for JSON that is no message."""
    if isinstance(value, list):
        return _error(
            None, INVALID_REQUEST, "Invalid request: batches are not part of MCP; send one message a line"
        )
    if not isinstance(value, dict):
        return _error(None, INVALID_REQUEST, "Invalid request: expected a JSON object")
    if "id" not in value and "method" in value or "result" in value or "error" in value:
        return None
    number = value.get("id")
    known = number if isinstance(number, int | str) and not isinstance(number, bool) else None
    reason = (
        'expected "jsonrpc": "2.0", an id that is an integer or text, a method, and params that are an object'
    )
    return _error(known, INVALID_REQUEST, f"Invalid request: {reason}")


def _error(number: int | str | None, code: int, text: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=code, message=text))
