"""One request to an OpenAI-compatible ``/chat/completions``, and what its reply says.

The key comes from the environment alone and goes into the request's header alone.
"""

import ipaddress
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import httpx

from benchmark.errors import BenchmarkError
from searchsvc.errors import SearchError

KEY_VARIABLES = ("SEARCHSVC_STUDY_KEY", "OPENAI_API_KEY")
_TIMEOUT = 600.0
_LONGEST_WAIT = 60.0
_REFUSED = (401, 403, 404)
"""No request will do better: the key, the address or the name of the model is wrong."""
_MESSAGE_CHARACTERS = 300
_FENCE = re.compile(r"```[ \t]*(?:json|tool_call|tool)?[ \t]*\r?\n?(.*?)```", re.DOTALL)
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)


class ChatFault(Exception):
    """A call failed for good; the question counts as wrong."""


class ChatRefused(SearchError):
    """The endpoint takes no calls as things are; the run stops, and can go on later."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply of the endpoint."""

    body: dict[str, Any]
    seconds: float
    """Of the request that succeeded."""
    tries: int


class Chat(Protocol):
    """Something that replies to requests."""

    def complete(self, body: Mapping[str, Any]) -> Reply:
        """Return the reply to a request; ``ChatFault`` when there is none."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call as the endpoint reports them."""

    tokens_in: int
    tokens_out: int
    tokens_cached: int
    """Of those that went in."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool that a model wants."""

    name: str
    arguments: dict[str, Any]
    id: str = ""
    """Empty for a call that stood in the text."""
    fault: str = ""
    """What is wrong with its form; the model gets that as the result."""


@dataclass(frozen=True, slots=True)
class Message:
    """What a model said."""

    echo: dict[str, Any]
    """To be sent back in the next request."""
    calls: tuple[Call, ...]


def read_key() -> str:
    """Return the key for the endpoint; empty when there is none, as local servers need none."""
    return next((key for name in KEY_VARIABLES if (key := os.environ.get(name, "").strip())), "")


def redact(text: str, key: str) -> str:
    """Return a text without the key, which servers may repeat in their errors."""
    return text.replace(key, "***") if len(key) >= 8 else text


class HttpChat:
    """An endpoint; calls are tried again after 429, 5xx and lost connections."""

    def __init__(
        self, endpoint: str, key: str, *, retries: int, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        address = checked_address(endpoint)
        self._url = address if address.endswith("/chat/completions") else f"{address}/chat/completions"
        self._key, self._retries, self._sleep = key, retries, sleep
        self._has_answered = False
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        # A proxy of the environment would be asked for local servers too.
        local = _is_loopback(httpx.URL(address).host)
        self._http = httpx.Client(headers=headers, timeout=_TIMEOUT, trust_env=not local)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def complete(self, body: Mapping[str, Any]) -> Reply:
        """Return the reply to a request.

        ``ChatFault`` when there is none; ``ChatRefused`` when no request can succeed, which is also assumed
        when the very first one fails.
        """
        try:
            reply = self._tried(body)
        except ChatFault as fault:
            if not self._has_answered:
                raise ChatRefused(str(fault)) from fault
            raise
        self._has_answered = True
        return reply

    def _tried(self, body: Mapping[str, Any]) -> Reply:
        problem = ""
        for number in range(1, self._retries + 2):
            start = time.perf_counter()
            wait = min(2.0 ** (number - 1), _LONGEST_WAIT)
            try:
                response = self._http.post(self._url, json=body)
            except httpx.TransportError as error:
                problem = f"{self._url} is not reachable ({type(error).__name__}: {error})"
            else:
                if response.is_success:
                    return Reply(self._read(response), time.perf_counter() - start, number)
                problem = f"{self._url} answered {response.status_code}: {self._message(response)}"
                if response.status_code in _REFUSED:
                    raise ChatRefused(f"{problem}; the key is read from {' or '.join(KEY_VARIABLES)}")
                if response.status_code != 429 and response.status_code < 500:
                    raise ChatFault(problem)
                wait = _asked_wait(response) or wait
            if number <= self._retries:
                self._sleep(min(wait, _LONGEST_WAIT))
        raise ChatFault(f"{problem} (tried {self._retries + 1} times)")

    def _read(self, response: httpx.Response) -> dict[str, Any]:
        try:
            body = response.json()
            read_message(body)
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            text = self._message(response)
            raise ChatFault(f"{self._url} answered with no message of a chat: {text}") from error
        found: dict[str, Any] = json.loads(redact(json.dumps(body), self._key))
        return found

    def _message(self, response: httpx.Response) -> str:
        text = redact(" ".join(response.text.split()), self._key)
        return text[:_MESSAGE_CHARACTERS] or "nothing"


def checked_address(endpoint: str) -> str:
    """Return the address without a slash at its end; ``BenchmarkError`` for one that may hold a secret."""
    try:
        url = httpx.URL(endpoint.strip())
    except httpx.InvalidURL as error:
        raise BenchmarkError(f"--endpoint {endpoint!r} is not an address ({error})") from error
    if url.userinfo or url.query or url.fragment:
        raise BenchmarkError(
            f"--endpoint takes no user, key or query; the key is read from {KEY_VARIABLES[0]}"
        )
    if url.scheme not in ("http", "https") or not url.host:
        raise BenchmarkError(f"--endpoint {endpoint!r} is not an address, as http://127.0.0.1:8080/v1 is")
    return str(url).rstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _asked_wait(response: httpx.Response) -> float:
    try:
        return max(0.0, float(response.headers.get("retry-after", "")))
    except ValueError:
        return 0.0


def read_usage(body: Mapping[str, Any]) -> Usage | None:
    """Return the tokens of a call; none when the endpoint does not report them."""
    usage = body.get("usage") or {}
    if not isinstance(usage.get("prompt_tokens"), int):
        return None
    details = usage.get("prompt_tokens_details") or {}
    cached = details.get("cached_tokens") or usage.get("prompt_cache_hit_tokens") or 0
    return Usage(usage["prompt_tokens"], int(usage.get("completion_tokens") or 0), int(cached))


def read_message(body: Mapping[str, Any]) -> Message:
    """Return what a model said; ``KeyError``, ``TypeError`` or the like when the body is no reply.

    Calls in fenced JSON count when there are no others.
    """
    message = body["choices"][0]["message"]
    content = message.get("content") or ""
    if not isinstance(content, str):
        content = "".join(str(part.get("text", "")) for part in content)
    echo: dict[str, Any] = {"role": "assistant", "content": content}
    if native := message.get("tool_calls"):
        # Some servers give no ids; results are sent back under one.
        named = [{**call, "id": str(call.get("id") or f"call-{n}")} for n, call in enumerate(native, 1)]
        return Message(echo | {"tool_calls": named}, tuple(_native_call(call) for call in named))
    return Message(echo, tuple(fenced_calls(content)))


def _native_call(call: Mapping[str, Any]) -> Call:
    function, identity = call["function"], str(call.get("id") or "")
    name, arguments = str(function["name"]), function.get("arguments") or {}
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError as error:
            return Call(name, {}, identity, f"the arguments are not JSON: {error}")
    if not isinstance(arguments, dict):
        return Call(name, {}, identity, "the arguments are not a JSON object")
    return Call(name, arguments, identity)


def fenced_calls(text: str) -> list[Call]:
    """Return the calls in fenced blocks of a text, thoughts left out; blocks without a name are no calls."""
    calls = []
    for block in _FENCE.findall(_THOUGHT.sub("", text)):
        try:
            found = json.loads(block)
        except ValueError as error:
            if '"name"' in block:
                calls.append(Call("", {}, fault=f"the block is not JSON: {error}"))
            continue
        entries = found if isinstance(found, list) else [found]
        named = [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("name"), str)]
        for entry in named:
            arguments = entry.get("arguments", entry.get("parameters", {}))
            calls.append(_native_call({"function": {"name": entry["name"], "arguments": arguments}}))
    return calls
