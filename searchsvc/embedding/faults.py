"""What went wrong at an embedding server, and what that asks of the client.

A server's words decide more than its status: the same 500 means "try again" or "this text has no vector".
They are shown cut, without the key, and not at all when they repeat a text that was embedded.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Any
from urllib.parse import urlsplit

from searchsvc.errors import EmbeddingError

MAX_MESSAGE = 300
"""Characters shown of what a server says."""
ECHO = 40
"""So many characters in a row that also stand in an embedded text are a quotation of it."""
WHOLE_ECHO = 16
"""Embedded texts of at least so many characters are not shown whole either."""


class Kind(Enum):
    """What a fault asks of the client."""

    SYSTEMIC = "no text will be embedded until somebody changes something"
    UNREACHABLE = "no connection; try again, but not for long where somebody waits"
    TIMEOUT = "no answer in time; try again once"
    LOADING = "the model is being loaded; wait for it"
    TRANSIENT = "try again later"
    UNCLEAR = "try again later, then look for the text that does it"
    CONTENT = "some text of the request has no vector; look for it"
    LENGTH = "some text is too long, or all together are"


class ServerFault(EmbeddingError):
    """A request that gave no vectors."""

    def __init__(self, text: str, kind: Kind, *, delay: float | None = None, status: int = 0) -> None:
        super().__init__(text)
        self.kind = kind
        """What it asks of the client."""
        self.delay = delay
        """Seconds the server asks to wait; none when it says nothing."""
        self.status = status
        """Of the answer; 0 when there was none."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is known of a request when its answer is judged."""

    where: str
    """The server, for messages: ``ollama at http://localhost:11434``."""
    url: str
    """The address asked."""
    key_help: str
    """Where a key is looked for."""
    key: str = field(default="", repr=False)
    """Never shown."""
    texts: Sequence[str] = field(default=(), repr=False)
    """What was to be embedded; never shown."""


_LENGTH = re.compile(
    r"context (?:length|size|window)|too (?:large|long|many tokens)|input length|physical batch|n_ctx|n_batch"
    r"|max(?:imum)?[ _](?:input|context|sequence|tokens|length)"
    r"|exceeds?\b.{0,40}\b(?:length|limit|tokens?|batch)",
    re.IGNORECASE,
)
_LENGTH_CODES = frozenset({"context_length_exceeded", "max_tokens_per_request"})
_CONTENT = re.compile(r"\bnan\b|\binf\b|unsupported value|invalid input|input.{0,30}(?:invalid|empty)", re.I)
_MODEL = re.compile(
    r"\bmodel\b.{0,200}?\b(?:not found|does not exist|not loaded|is not supported|unknown)|model_not_found"
    r"|no models? (?:is |are )?loaded|(?:invalid|unknown|no such) model|failed to load (?:the )?model"
    r"|(?:does not|doesn't) support embedding|not an embedding model",
    re.IGNORECASE | re.DOTALL,
)
_CRASH = re.compile(r"\bEOF\b|connection (?:refused|reset)|forcibly closed|no longer running", re.IGNORECASE)
"""Ollama says so, also with a status of 400, when the process that runs the model has ended."""
_ENDPOINT = re.compile(r"unexpected endpoint|404 page not found|no route", re.IGNORECASE)
_DIMENSIONS = re.compile(r"\bdimensions\b", re.IGNORECASE)

_WAITS = frozenset({408, 409, 425, 429})
_ABOUT_TEXT = frozenset({200, 400, 413, 422})
_NO_WAY = frozenset({501, 505})
OK, TOO_LARGE, SERVER_ERROR, UNAVAILABLE = 200, 413, 500, 503
FAILED_DEPENDENCY = 424
"""Of text-embeddings-inference, for what others answer 500."""


def read_fault(status: int, headers: Mapping[str, str], body: bytes, asked: Asked) -> ServerFault:
    """Return what an answer without vectors means; ``headers`` has names in lower case."""
    if 300 <= status < 400:
        host = urlsplit(headers.get("location", "")).hostname or "another path of the same host"
        text = f"answered {status}: it redirects to {show(host, asked)}; give the address where that ends"
        return ServerFault(f"{asked.where} {text}", Kind.SYSTEMIC, status=status)
    said, codes = _read_body(body, headers.get("content-type", ""))
    kind, hint = _judge(_meant(status, codes), said, codes, asked)
    should_retry = headers.get("x-should-retry", "").strip().lower()
    if should_retry == "false" and kind in (Kind.TRANSIENT, Kind.UNCLEAR, Kind.LOADING):
        kind = Kind.SYSTEMIC
    elif should_retry == "true" and kind in (Kind.CONTENT, Kind.UNCLEAR):
        kind = Kind.TRANSIENT
    text = f"{asked.where} answered {status}: {show(said, asked) or 'no message'}{hint}"
    return ServerFault(text, kind, delay=read_delay(headers), status=status)


def _meant(status: int, codes: frozenset[str]) -> int:
    """Return the status that is meant: gateways answer 200 and name that of the server behind them."""
    if status == FAILED_DEPENDENCY:
        return SERVER_ERROR
    named = [int(code) for code in codes if code.isdecimal() and len(code) == 3]
    return next((code for code in named if code >= 400), status) if status == OK else status


def _judge(status: int, said: str, codes: frozenset[str], asked: Asked) -> tuple[Kind, str]:
    """Return what a status and message ask of the client, and advice for the user, begun with ``; ``."""
    if status in (401, 402, 403):
        return Kind.SYSTEMIC, f"; check the key in {asked.key_help}"
    if "insufficient_quota" in codes:
        return Kind.SYSTEMIC, "; the account has no credit left: trying again does not help"
    if status in _WAITS:
        return Kind.TRANSIENT, ""
    if status == UNAVAILABLE and "loading" in said.lower():
        return Kind.LOADING, ""
    if status in _ABOUT_TEXT or status == SERVER_ERROR:
        return _judge_words(status, said, codes, asked)
    if status > SERVER_ERROR and status not in _NO_WAY:
        return Kind.TRANSIENT, ""
    if _MODEL.search(said) or "model_not_found" in codes:
        return Kind.SYSTEMIC, ""
    return Kind.SYSTEMIC, _wrong_address(asked)


def _judge_words(status: int, said: str, codes: frozenset[str], asked: Asked) -> tuple[Kind, str]:
    if status == TOO_LARGE or _LENGTH.search(said) or codes & _LENGTH_CODES:
        return Kind.LENGTH, ""
    if _MODEL.search(said) or "model_not_found" in codes:
        return Kind.SYSTEMIC, "; check the name of the model, and that it is one for embeddings"
    if _ENDPOINT.search(said):
        return Kind.SYSTEMIC, _wrong_address(asked)
    if status != SERVER_ERROR and _DIMENSIONS.search(said):
        return Kind.SYSTEMIC, "; leave the setting dimensions out, or give a length that the model has"
    if (status == SERVER_ERROR and not _CONTENT.search(said)) or _CRASH.search(said):
        return Kind.UNCLEAR, ""
    return Kind.CONTENT, ""


def _wrong_address(asked: Asked) -> str:
    return f"; tried {asked.url}: check base_url, which usually ends in /v1 where the server is not Ollama"


def read_delay(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, at least 0; none when it says nothing readable."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        try:
            seconds = float(value) * unit
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(seconds, 0.0)
    try:
        until = parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, IndexError, OverflowError):
        return None
    moment = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max((moment - datetime.now(UTC)).total_seconds(), 0.0)


def show(said: str, asked: Asked) -> str:
    """Return words of a server as they may be shown: one line, cut, without key and embedded texts."""
    if asked.key:
        said = said.replace(asked.key, "[key]")
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in said[:20_000]).split())
    if len(line) > MAX_MESSAGE:
        line = f"{line[: MAX_MESSAGE - 1]}…"
    return "a message that repeats the text (left out)" if _is_echo(line, asked.texts) else line


def _is_echo(line: str, texts: Sequence[str]) -> bool:
    pieces = {line[at : at + ECHO] for at in range(len(line) - ECHO + 1)}
    for text in texts:
        plain = " ".join(text.split())
        if WHOLE_ECHO <= len(plain) <= len(line) and plain in line:
            return True
        escaped = json.dumps(plain)[1:-1]
        if any(piece in plain or piece in escaped for piece in pieces):
            return True
    return False


def _read_body(body: bytes, content_type: str) -> tuple[str, frozenset[str]]:
    """Return the message of an error and its machine-readable codes, whatever shape it came in."""
    text = body.decode("utf-8", "replace").strip()
    if "html" in content_type.lower() or text[:1] == "<":
        return "an HTML page, expected JSON: something else may listen there", frozenset()
    try:
        return read_error(json.loads(text))
    except (ValueError, RecursionError):
        return text, frozenset()


def read_error(value: Any) -> tuple[str, frozenset[str]]:
    """Return the message in the JSON of an error and its codes: a string, an object, or a list of them."""
    parts = list(_messages(value, 0))
    codes = {code for said, code in parts if code}
    return "; ".join(dict.fromkeys(said for said, _ in parts if said)), frozenset(codes)


def _messages(value: Any, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield value, ""
    elif isinstance(value, list) and depth < 4:
        for entry in value[:8]:
            yield from _messages(entry, depth + 1)
    elif isinstance(value, dict) and depth < 4:
        for name in ("code", "type"):
            if isinstance(value.get(name), str | int):
                yield "", str(value[name])
        # Only these: other fields, such as pydantic's ``input``, repeat what was sent.
        for name in ("error", "message", "msg", "detail", "errors"):
            if value.get(name):
                yield from _messages(value[name], depth + 1)
