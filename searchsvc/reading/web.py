"""A web address that somebody asked for -> its bytes, or a refusal.

What asks may have been talked into it by a text it read, so an address gets nothing but what the person
who set this up allowed by name; and a name gets no further than the public net, unless it was itself
allowed, letter by letter. A host is looked up once: the addresses that were checked are the ones that
are connected to, so an answer that changes in between changes nothing. Nothing is kept between calls.
"""

import re
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from searchsvc import __version__
from searchsvc.config import Config
from searchsvc.errors import AccessDenied, ReadingError
from searchsvc.reading.hosts import (
    MAX_LENGTH,
    UNSAFE,
    Target,
    check_address,
    how_to_allow,
    is_public,
    shown_address,
)

if TYPE_CHECKING:
    from httpcore import NetworkBackend, NetworkStream, Response
else:  # importing them is dear, and httpcore only ever calls the methods defined here
    NetworkBackend = NetworkStream = object

_MEDIA_TYPE = re.compile(r"[\w!#$&^.+\-]{1,60}/[\w!#$&^.+\-]{1,60}", re.ASCII)
_CHARSET = re.compile(r""";\s*charset\s*=\s*["']?([\w.:+\-]{1,40})""", re.ASCII | re.IGNORECASE)
_REDIRECTS = (301, 302, 303, 307, 308)
_MAX_REDIRECTS = 5
_STEP = 65_536
"""The most bytes unpacked at once: a few bytes of gzip can hold gigabytes."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What an address gave."""

    data: bytes = field(repr=False)
    """The body, unpacked."""
    media_type: str
    """Lower case, without parameters."""
    charset: str
    """From the content type, lower case, unchecked; empty when it names none."""
    url: str
    """Where it came from after redirects, without fragment."""


class _Deadline:
    """The end of the time that all hops of one call share."""

    def __init__(self, seconds: float, shown: str) -> None:
        self._end, self._seconds, self._shown = time.monotonic() + seconds, seconds, shown

    def left(self) -> float:
        """Return the seconds left, never none; raise ``ReadingError`` at the end."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise self.passed()
        return left

    def passed(self) -> ReadingError:
        reason = f"not complete after {self._seconds:g} s; try later, or raise fetch_seconds"
        return ReadingError(f"{self._shown}: {reason}")


def fetch(url: str, config: Config, *, kinds: tuple[str, ...], max_bytes: int) -> Fetched:
    """Return what lies at an http or https address on an allowed host.

    ``kinds`` are beginnings of the media types that are accepted, such as ``text/``; ``max_bytes`` holds
    for the body as sent and as unpacked. Raises ``AccessDenied`` for what may not be fetched, also when
    a redirect leads there, and ``ReadingError`` for what cannot be.
    """
    target = check_address(url, config)
    deadline = _Deadline(config.fetch_seconds, str(target))
    for _ in range(_MAX_REDIRECTS + 1):
        found = _ask(target, deadline, kinds, max_bytes)
        if isinstance(found, Fetched):
            return found
        target = _follow(target, found, config)
    reason = f"more than {_MAX_REDIRECTS} redirects; give the address where they end"
    raise ReadingError(f"{shown_address(url)}: {reason}")


def _resolve(target: Target, deadline: _Deadline) -> list[str]:
    """Return the checked IP addresses of a host.

    The system's look-up knows no time limit, so it runs on a thread that is left behind when it is late.
    """
    found: list[str] = []

    def look_up() -> None:
        try:
            answers = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        except (OSError, ValueError):
            return
        found.extend(dict.fromkeys(str(answer[4][0]) for answer in answers))

    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(deadline.left())
    if thread.is_alive():
        raise deadline.passed()
    if not found:
        raise ReadingError(f"{target}: host {target.host} is not found; check its spelling and the network")
    if not target.is_named and not all(map(is_public, found)):
        reason = f"leads to an address that is not public; {how_to_allow(target.host)}, by this very name"
        raise AccessDenied(f"{target}: host {target.host} {reason}")
    return found


class _Backend(NetworkBackend):
    """Connects httpcore to the checked addresses, whatever host it names."""

    def __init__(self, addresses: list[str], deadline: _Deadline) -> None:
        self._addresses, self._deadline = addresses, deadline

    def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> NetworkStream:
        """Try the addresses in their order, each for its share of the time left."""
        import httpcore

        for number, address in enumerate(self._addresses):
            share = self._deadline.left() / (len(self._addresses) - number)
            try:
                stream = httpcore.SyncBackend().connect_tcp(address, port, timeout=share)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
            # A numeric address is not looked up again; should a system do it, the peer tells.
            with suppress(OSError):
                if stream.get_extra_info("server_addr")[0] == address:
                    return _Stream(stream, self._deadline)
            stream.close()
        self._deadline.left()
        raise httpcore.ConnectError("no address answers")


class _Stream(NetworkStream):
    """A connection whose every wait ends at the deadline: httpcore limits single waits, not their sum."""

    def __init__(self, stream: NetworkStream, deadline: _Deadline) -> None:
        self._stream, self._deadline = stream, deadline

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadline.left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._deadline.left())

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> NetworkStream:
        stream = self._stream.start_tls(ssl_context, server_hostname, self._deadline.left())
        return _Stream(stream, self._deadline)


def _ask(target: Target, deadline: _Deadline, kinds: tuple[str, ...], max_bytes: int) -> Fetched | str:
    """Return what a target gives: its body, or the address to which it redirects, as sent."""
    import httpcore
    import httpx

    backend = _Backend(_resolve(target, deadline), deadline)
    # Neither certificates nor proxies come from the environment.
    tls = httpx.create_ssl_context(trust_env=False) if target.url.scheme == "https" else None
    scheme, host, path = target.url.raw_scheme, target.host.encode("ascii"), target.url.raw_path
    origin = httpcore.Origin(scheme, host, target.port)
    address = httpcore.URL(scheme=scheme, host=host, port=target.port, target=path)
    accepted = [f"{kind}*" if kind.endswith("/") else kind for kind in kinds]
    headers = [
        (b"Host", target.url.netloc),
        (b"User-Agent", f"searchsvc/{__version__}".encode("ascii")),
        (b"Accept", ", ".join([*accepted, "*/*;q=0.1"]).encode("ascii")),
        (b"Accept-Encoding", b"gzip"),
        (b"Connection", b"close"),
    ]
    try:
        with (
            httpcore.HTTPConnection(origin, tls, network_backend=backend) as connection,
            connection.stream("GET", address, headers=headers) as response,
        ):
            return _receive(response, target, deadline, kinds, max_bytes)
    except httpcore.TimeoutException as error:
        raise deadline.passed() from error
    except (httpcore.NetworkError, httpcore.ProtocolError, OSError, ValueError, zlib.error) as error:
        if isinstance(error.__cause__, ssl.SSLCertVerificationError):
            fault = f"the certificate does not prove that it is {target.host}; check the address"
        elif isinstance(error, httpcore.ConnectError):
            fault = "the host does not answer there; check the address and the network"
        else:
            fault = "the answer breaks off or is no HTTP; try later, or give another address"
        raise ReadingError(f"{target}: {fault}") from error


def _receive(
    response: "Response", target: Target, deadline: _Deadline, kinds: tuple[str, ...], max_bytes: int
) -> Fetched | str:
    """Return the body of a response, or where it redirects; judge by its head before reading on."""
    headers = {name.lower(): value.decode("utf-8", "replace") for name, value in reversed(response.headers)}
    if response.status in _REDIRECTS and b"location" in headers:
        return headers[b"location"]
    if response.status != HTTPStatus.OK:
        phrase = {status.value: f" {status.phrase}" for status in HTTPStatus}.get(response.status, "")
        raise ReadingError(f"{target}: status {response.status}{phrase}, expected 200; check the address")
    media_type = headers.get(b"content-type", "").partition(";")[0].strip().lower()
    if not _MEDIA_TYPE.fullmatch(media_type):
        media_type = ""
    if not media_type.startswith(kinds):
        found, expected = media_type or "missing or broken", " or ".join(kinds)
        raise ReadingError(f"{target}: the type is {found}, expected {expected}; give another address")
    length = headers.get(b"content-length", "")
    if length.isdecimal() and int(length) > max_bytes:
        raise _too_large(target, int(length), max_bytes)
    encoding = headers.get(b"content-encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip"):
        raise ReadingError(f"{target}: is packed in a way not asked for, expected gzip; give another address")
    chunks = _limited(response.iter_stream(), target, deadline, max_bytes)
    if encoding.endswith("gzip"):
        chunks = _limited(_unpacked(chunks), target, deadline, max_bytes)
    data = b"".join(chunks)
    charset = _CHARSET.search(headers.get(b"content-type", ""))
    return Fetched(data, media_type, charset[1].lower() if charset else "", str(target.url))


def _limited(chunks: Iterable[bytes], target: Target, deadline: _Deadline, max_bytes: int) -> Iterator[bytes]:
    """Pass chunks on while they are within the limits of size and time."""
    total = 0
    for chunk in chunks:
        deadline.left()
        total += len(chunk)
        if total > max_bytes:
            raise _too_large(target, total, max_bytes)
        yield chunk


def _unpacked(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Unpack gzip of one or several members, in steps; raise ``ValueError`` when it has no end."""
    inflate = None
    for chunk in chunks:
        data = b""
        while chunk or len(data) == _STEP:
            if inflate is None or (chunk and inflate.eof):
                inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
            data = inflate.decompress(chunk, _STEP)
            yield data
            chunk = inflate.unconsumed_tail or inflate.unused_data
    if inflate and not inflate.eof:
        raise ValueError("gzip without end")


def _too_large(target: Target, found: int, max_bytes: int) -> ReadingError:
    reason = f"{found:,} bytes or more, at most {max_bytes:,} are fetched; give a smaller file"
    return ReadingError(f"{target}: {reason}")


def _follow(target: Target, location: str, config: Config) -> Target:
    """Return where a redirect leads, held against the same rules as the first address."""
    # Joining drops some of the characters that are refused, so they are looked for before.
    if UNSAFE.search(location) or len(location) > MAX_LENGTH:
        raise AccessDenied(f"{target}: redirects to no valid address; give the address where it should end")
    try:
        following = check_address(urljoin(str(target.url), location), config)
    except ValueError as error:
        raise AccessDenied(f"{target}: redirects to no valid address; check it in a browser") from error
    except AccessDenied as error:
        raise AccessDenied(f"redirected to {error}") from error
    if target.url.scheme == "https" and following.url.scheme == "http":
        raise AccessDenied(f"{following}: a redirect from https to http is not followed; ask for it directly")
    return following
