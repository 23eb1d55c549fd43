"""One request to an embedding server -> the JSON of its answer, or a fault that says what to do.

And the same request again, as often as a policy allows. Redirects are never followed: what is sent is
the user's text. Only hosts beyond the local network are reached through the environment's proxy.
"""

import json
import random
import ssl
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from searchsvc.embedding.address import Address, key_sources
from searchsvc.embedding.faults import Asked, Kind, ServerFault, read_error, read_fault, show
from searchsvc.errors import EmbeddingError

if TYPE_CHECKING:
    from httpx import Client, Response

T = TypeVar("T")

CONNECT_SECONDS = 5.0
MAX_ANSWER_BYTES = 200_000_000
MAX_ERROR_BYTES = 100_000
MAX_SERVER_DELAY = 120.0
"""A server that asks to wait longer between two tries is asked again after so many seconds."""
LOADING_PAUSE = 2.0
"""Seconds between two looks at a model that is being loaded."""

_STARTING = {
    "ollama": "start it with `ollama serve`",
    "lmstudio": "start its server with `lms server start`",
    "openai": "check base_url and the network",
}

Sleep = Callable[[float, threading.Event], Any]
"""Waits so many seconds, or until the event is set."""


def wait(seconds: float, stop: threading.Event) -> None:
    """Wait so many seconds, or until ``stop`` is set."""
    stop.wait(seconds)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long a request is tried again."""

    tries: int
    """At most, the first included."""
    seconds: float
    """The waits of our own choice add up to no more; a server's wishes are kept beside."""
    first: float = 1.0
    """Upper bound of the first wait; it doubles. The wait is drawn evenly between 0 and the bound."""
    longest: float = 40.0
    """The bound doubles up to here."""
    unreachable_tries: int = 6
    """Tries to connect."""
    unreachable_seconds: float = 60.0
    """No new try to connect begins later than this after the first."""
    timeout_tries: int = 2
    """Tries of a request that gets no answer in its time."""
    unclear_tries: int = 3
    """Tries of a request that a server answers with a status of 500 without a reason."""
    max_delay: float = MAX_SERVER_DELAY
    """A server that asks to wait longer is not asked again."""


JOB = RetryPolicy(tries=6, seconds=120)
OPENING = RetryPolicy(tries=4, seconds=120, unreachable_tries=2, unreachable_seconds=3)
QUERY = RetryPolicy(
    tries=2,
    seconds=2,
    first=0.25,
    unreachable_tries=2,
    unreachable_seconds=1,
    timeout_tries=1,
    unclear_tries=2,
    max_delay=4,
)


class Stopped(Exception):
    """The one who asked is gone: nothing more is tried."""


class Endpoint:
    """A server that embeds texts. Safe to use from several threads; its connections are kept open."""

    def __init__(self, provider: str, address: Address, key: str = "") -> None:
        self.provider = provider
        """``ollama``, ``lmstudio`` or ``openai``."""
        self.address = address
        self.where = f"{provider} at {address.url}"
        """The server, for messages."""
        self._key = key
        self._client: Client | None = None
        self._lock = threading.Lock()

    def ask(
        self,
        method: str,
        url: str,
        body: dict[str, Any] | None = None,
        *,
        seconds: float,
        texts: Sequence[str] = (),
    ) -> Any:
        """Return the JSON that one request gives within ``seconds``.

        ``texts`` are what the body holds to be embedded: no error repeats them. ServerFault otherwise, also
        for an answer of status 200 that holds an error or is no JSON.
        """
        import httpx

        asked = Asked(self.where, url, key_sources(self.provider, self.address), self._key, texts)
        content = None if body is None else json.dumps(body).encode("ascii")
        headers = {"Content-Type": "application/json"} if content else {}
        timeout = httpx.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
        deadline = time.monotonic() + seconds
        try:
            with self._connections().stream(
                method, url, content=content, headers=headers, timeout=timeout
            ) as response:
                limit = MAX_ANSWER_BYTES if response.is_success else MAX_ERROR_BYTES
                data = b"".join(_limited(response, limit, deadline, asked))
        except httpx.HTTPError as error:
            raise self._broken(error, seconds) from error
        except RuntimeError as error:  # the connections were closed meanwhile
            raise self._broken(error, seconds) from error
        except (httpx.InvalidURL, UnicodeError) as error:
            raise EmbeddingError(f"{self.where} is no address that can be asked; check base_url") from error
        if not response.is_success:
            raise read_fault(response.status_code, dict(response.headers), data, asked)
        return _read_answer(response, data, asked)

    def _connections(self) -> "Client":
        """Return the pool of connections, made when first needed: importing httpx is dear."""
        import httpx

        with self._lock:
            if self._client is None:
                headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
                if self._key:
                    headers["Authorization"] = f"Bearer {self._key}"
                client = httpx.Client(
                    headers=headers, follow_redirects=False, trust_env=not self.address.is_near
                )
                weakref.finalize(self, client.close)
                self._client = client
            return self._client

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _broken(self, error: Exception, seconds: float) -> ServerFault:
        """Return what a request that got no whole answer means."""
        import httpx

        if any(isinstance(cause, ssl.SSLError) for cause in _causes(error)):
            reason = (
                "no trusted encrypted connection; check the certificate, or whether it is an http address"
            )
            return ServerFault(f"{self.where}: {reason}", Kind.SYSTEMIC)
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError):
            help_ = f"{_STARTING[self.provider]}, or choose a model that runs here (provider local)"
            return ServerFault(f"{self.where} is not reachable; {help_}", Kind.UNREACHABLE)
        if isinstance(error, httpx.TimeoutException):
            return self.late(seconds)
        reason = "the answer breaks off or is no HTTP; see the log of the server"
        return ServerFault(f"{self.where}: {reason}", Kind.TRANSIENT)

    def late(self, seconds: float, setting: str = "request_seconds") -> ServerFault:
        """Return the fault of an answer that did not come within so many seconds."""
        advice = f"raise {setting}, or send less at once (batch_texts, concurrency)"
        if setting != "request_seconds":
            advice = f"try again when the server has loaded the model and is less busy, or raise {setting}"
        return ServerFault(f"{self.where} gave no answer within {seconds:g} s; {advice}", Kind.TIMEOUT)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _limited(response: "Response", limit: int, deadline: float, asked: Asked) -> Iterator[bytes]:
    """Pass the chunks of a body on while there is time; cut that of an error, refuse any other too long."""
    import httpx

    total = 0
    for chunk in response.iter_bytes():
        if time.monotonic() > deadline:
            raise httpx.ReadTimeout("the body takes too long", request=response.request)
        total += len(chunk)
        if total > limit and response.is_success:
            raise ServerFault(
                f"{asked.where}: the answer is larger than {limit:,} bytes; lower batch_texts", Kind.SYSTEMIC
            )
        yield chunk
        if total > limit:
            return


def _read_answer(response: "Response", data: bytes, asked: Asked) -> Any:
    """Return the JSON of an answer of status 2xx."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        found = show(response.headers.get("content-type", "").partition(";")[0], asked) or "no type"
        begins_well = not data.strip() or data.lstrip()[:1] in (b"{", b"[")
        is_cut = begins_well and not isinstance(error, RecursionError)
        raise ServerFault(
            f"{asked.where} answered {response.status_code} with {found} that is not JSON: something else "
            f"may listen at {asked.url}; check base_url",
            Kind.UNCLEAR if is_cut else Kind.SYSTEMIC,
            status=response.status_code,
        ) from error
    if isinstance(value, dict) and value.get("error") and read_error(value)[0]:
        body = json.dumps({"error": value["error"]}).encode("ascii")
        raise read_fault(response.status_code, dict(response.headers), body, asked)
    return value


def again(
    policy: RetryPolicy, attempt: Callable[[], T], sleep: Sleep = wait, stop: threading.Event | None = None
) -> T:
    """Return what ``attempt`` gives, trying again after passing faults as the policy allows.

    Raises the last ServerFault when the policy is at its end, at once one that does not pass, and Stopped
    when ``stop`` is set.
    """
    stop = stop or threading.Event()
    begin, waited, loading, tries = time.monotonic(), 0.0, 0.0, 0
    while not stop.is_set():
        try:
            return attempt()
        except ServerFault as fault:
            tries += fault.kind is not Kind.LOADING
            asked_for = min(fault.delay or 0.0, MAX_SERVER_DELAY)
            if tries >= _tries(policy, fault.kind, time.monotonic() - begin) or asked_for > policy.max_delay:
                raise
            if fault.kind is Kind.LOADING:
                pause = max(asked_for, LOADING_PAUSE)
                loading += pause
                if loading > policy.seconds:
                    raise
            else:
                bound = min(policy.first * 2.0 ** (tries - 1), policy.longest, policy.seconds - waited)
                chosen = random.uniform(0, max(bound, 0.0))
                waited += chosen
                pause = max(asked_for, chosen)
        sleep(pause, stop)
    raise Stopped


def _tries(policy: RetryPolicy, kind: Kind, elapsed: float) -> int:
    """Return how many tries a fault of that kind is worth in all."""
    if kind in (Kind.SYSTEMIC, Kind.CONTENT, Kind.LENGTH):
        return 1
    if kind is Kind.UNREACHABLE:
        return policy.unreachable_tries if elapsed < policy.unreachable_seconds else 1
    if kind is Kind.TIMEOUT:
        return policy.timeout_tries
    return min(policy.tries, policy.unclear_tries) if kind is Kind.UNCLEAR else policy.tries
