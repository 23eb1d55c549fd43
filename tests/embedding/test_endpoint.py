"""Addresses, keys, what answers mean, and trying again."""

import json
import logging
import socket
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from fault_server import FaultServer, Reply, Sleeps, openai_error

from searchsvc.embedding.address import ollama_address, read_address, read_key
from searchsvc.embedding.endpoint import JOB, LOADING_PAUSE, OPENING, Endpoint, RetryPolicy, Stopped, again
from searchsvc.embedding.faults import Asked, Kind, ServerFault, read_delay, read_fault, show
from searchsvc.errors import EmbeddingError

KEY = "sk-secret-0123456789"
ASKED = Asked(
    "openai at http://h/v1",
    "http://h/v1/embeddings",
    "key_file",
    KEY,
    ("heron " * 20, "A heading that is whole"),
)


def endpoint_of(server: FaultServer, key: str = "") -> Endpoint:
    return Endpoint("openai", read_address(server.url), key)


def ask(endpoint: Endpoint, texts=("text",), seconds=10.0):
    url = f"{endpoint.address.url}/embeddings"
    return endpoint.ask("POST", url, {"model": "m", "input": list(texts)}, seconds=seconds, texts=texts)


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://localhost:1234/v1/", "http://localhost:1234/v1"),
        (" HTTPS://Example.com ", "https://example.com"),
        ("http://0.0.0.0:80/x//", "http://127.0.0.1:80/x"),
        ("http://[::1]:9/v1", "http://[::1]:9/v1"),
    ],
)
def test_an_address_is_trimmed(given, url):
    assert read_address(given).url == url


@pytest.mark.parametrize(
    "given",
    ["localhost:1234", "ftp://h/", "http://", "http://h:x", "http://h:99999", "http://a b/", "http://h/a?k=hush",
     "http://h/#hush", "http://u:hush@h/", "u:hush@h", "http://[::1", "http://u:hush@h:x", "file:///hush?hush"],
)  # fmt: skip
def test_an_unusable_address_is_refused_and_no_secret_repeated(given):
    with pytest.raises(EmbeddingError, match="base_url") as error:
        read_address(given)
    assert "hush" not in str(error.value).replace("file:///hush", "")


@pytest.mark.parametrize(
    ("variable", "url"),
    [
        ("", "http://localhost:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080"),
        (":8080", "http://localhost:8080"),
        ("box", "http://box:11434"),
        ("[::]", "http://[::1]:11434"),
        ("::1", "http://[::1]:11434"),
        ("https://box.example/ollama/", "https://box.example/ollama"),
    ],
)
def test_the_address_of_ollama_comes_from_its_variable(monkeypatch, variable, url):
    monkeypatch.setenv("OLLAMA_HOST", variable)
    assert ollama_address("").url == url
    assert ollama_address("http://h:1/v1/").url == "http://h:1"
    assert ollama_address("http://h:1/api").url == "http://h:1"


@pytest.mark.parametrize(
    ("url", "near"),
    [
        ("http://localhost", True), ("http://127.0.0.9", True), ("http://[::1]", True),
        ("http://10.1.2.3", True), ("http://192.168.0.2", True), ("http://box", True),
        ("http://box.local", True), ("http://[fe80::1]", True),
        ("http://8.8.8.8", False), ("http://example.com", False), ("http://134744072", False),
        ("http://0x08080808", False), ("http://[::ffff:8.8.8.8]", False), ("http://local.example.com", False),
    ],
)  # fmt: skip
def test_hosts_that_are_near(url, near):
    assert read_address(url).is_near is near


@pytest.fixture
def no_keys(monkeypatch):
    for name in ("SEARCHSVC_API_KEY", "OPENAI_API_KEY", "LM_API_TOKEN", "OLLAMA_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_keys")
def test_keys_come_from_the_file_then_the_general_then_the_providers_variable(monkeypatch, tmp_path):
    openai, other = read_address("https://api.openai.com/v1"), read_address("https://example.com/v1")
    with pytest.raises(EmbeddingError, match="wants a key"):
        read_key("openai", openai, None)
    monkeypatch.setenv("OPENAI_API_KEY", "of-openai")
    monkeypatch.setenv("LM_API_TOKEN", "of-lmstudio")
    monkeypatch.setenv("OLLAMA_API_KEY", "of-ollama")
    assert read_key("openai", openai, None) == "of-openai"
    assert read_key("openai", other, None) == ""
    assert read_key("lmstudio", other, None) == "of-lmstudio"
    assert read_key("ollama", other, None) == "of-ollama"
    monkeypatch.setenv("SEARCHSVC_API_KEY", "general")
    assert read_key("openai", other, None) == "general"
    file = tmp_path / "key"
    file.write_text(" of-file \nsecond line\n")
    assert read_key("openai", openai, file) == "of-file"


@pytest.mark.usefixtures("no_keys")
@pytest.mark.parametrize("data", [b"", b"\nhush", b"hush" * 2000, b"hu\x07sh\n", "hüsh".encode(), None])
def test_a_key_file_that_holds_no_key_is_refused_without_showing_it(tmp_path, data):
    file = tmp_path / "key"
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(EmbeddingError, match="key_file") as error:
        read_key("openai", read_address("https://example.com"), file)
    assert not {"hush", "hüsh", "hu\x07sh"} & set(str(error.value).split())


def test_no_key_goes_unencrypted_to_a_foreign_host(monkeypatch):
    monkeypatch.setenv("SEARCHSVC_API_KEY", KEY)
    with pytest.raises(EmbeddingError, match="unencrypted to example.com") as error:
        read_key("openai", read_address("http://example.com/v1"), None)
    assert KEY not in str(error.value)
    assert read_key("openai", read_address("http://192.168.1.5/v1"), None) == KEY


FAULTS = [
    (401, {"error": {"message": "bad key"}}, Kind.SYSTEMIC),
    (404, {"error": "model 'x' not found"}, Kind.SYSTEMIC),
    (404, {"detail": "Not Found"}, Kind.SYSTEMIC),
    (429, openai_error("slow down", "rate_limit_exceeded"), Kind.TRANSIENT),
    (429, openai_error("no money", "insufficient_quota"), Kind.SYSTEMIC),
    (429, openai_error("no money", None, "insufficient_quota"), Kind.SYSTEMIC),
    (408, {}, Kind.TRANSIENT),
    (409, {}, Kind.TRANSIENT),
    (502, b"<html>bad gateway: the nan is too large</html>", Kind.TRANSIENT),
    (503, {"error": {"message": "Loading model", "code": 503}}, Kind.LOADING),
    (503, {"error": "server busy"}, Kind.TRANSIENT),
    (504, b"", Kind.TRANSIENT),
    (529, b"", Kind.TRANSIENT),
    (500, b"", Kind.UNCLEAR),
    (500, {"error": "model runner has unexpectedly stopped"}, Kind.UNCLEAR),
    (500, {"error": "failed to encode response: json: unsupported value: NaN"}, Kind.CONTENT),
    (400, {"error": "embedding contains NaN or Inf values"}, Kind.CONTENT),
    (400, {"detail": "too many inputs"}, Kind.CONTENT),
    (422, {"detail": [{"msg": "String should be shorter", "input": "never shown"}]}, Kind.CONTENT),
    (400, {"error": "the input length exceeds the context length"}, Kind.LENGTH),
    (500, {"error": {"message": "input (900 tokens) is too large to process"}}, Kind.LENGTH),
    (
        400,
        openai_error("This model's maximum context length is 8192 tokens, however you sent 9000"),
        Kind.LENGTH,
    ),
    (400, openai_error("Requested 400000 tokens, max 300000", None, "max_tokens_per_request"), Kind.LENGTH),
    (413, b"", Kind.LENGTH),
    (400, openai_error("This model does not support specifying dimensions."), Kind.SYSTEMIC),
    (400, {"error": "No models loaded. Please load a model"}, Kind.SYSTEMIC),
    (400, {"error": 'model "llama" does not support embeddings'}, Kind.SYSTEMIC),
    (200, {"error": "Unexpected endpoint or method. (POST /embeddings)"}, Kind.SYSTEMIC),
    (302, b"", Kind.SYSTEMIC),
    # Gateways answer 200 and say in the body what the server behind them answered.
    (200, {"error": {"message": "Provider returned error", "code": 429}}, Kind.TRANSIENT),
    (200, {"error": {"message": "bad gateway", "code": "502"}}, Kind.TRANSIENT),
    (200, {"error": {"message": "no auth credentials found", "code": 401}}, Kind.SYSTEMIC),
    (200, {"error": {"message": "too many inputs", "code": 17}}, Kind.CONTENT),
    (424, {"error": "Inference failed", "error_type": "Backend"}, Kind.UNCLEAR),
    (400, {"error": 'do embedding request: Post "http://127.0.0.1:61135/embedding": EOF'}, Kind.UNCLEAR),
    (400, {"error": "dial tcp 127.0.0.1:61135: connect: connection refused"}, Kind.UNCLEAR),
]


@pytest.mark.parametrize(
    ("status", "body", "kind"), FAULTS, ids=[f"{s}-{n}" for n, (s, _, _) in enumerate(FAULTS)]
)
def test_what_an_answer_means(status, body, kind):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    fault = read_fault(status, {}, data, ASKED)
    assert fault.kind is kind
    assert f"answered {status}" in str(fault)
    assert "never shown" not in str(fault)


def test_the_server_may_say_whether_to_try_again():
    assert read_fault(503, {"x-should-retry": "false"}, b"", ASKED).kind is Kind.SYSTEMIC
    assert read_fault(400, {"x-should-retry": "true"}, b"", ASKED).kind is Kind.TRANSIENT


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b"", "no message"), (b"plain text", "plain text"), (b'{"error": "a string"}', "a string"),
        (b'{"error": {"message": "an object"}}', "an object"), (b'[{"message": "a list"}]', "a list"),
        (b'{"detail": [{"msg": "one"}, {"msg": "two"}]}', "one; two"), (b"<html>x</html>", "an HTML page"),
        (b'{"error":', '{"error":'), (b"\xff\x00\x1b[31mred", "[31mred"),
    ],
)  # fmt: skip
def test_error_bodies_of_every_shape(body, shown):
    assert shown in str(read_fault(400, {}, body, ASKED))


def test_messages_are_cut_and_hold_neither_key_nor_text():
    assert len(show("x y " * 500, ASKED)) == 300
    assert KEY not in show(f"Incorrect API key: {KEY}", ASKED)
    assert "heron" not in show("invalid: " + "heron " * 12, ASKED)
    assert "heading" not in show("cannot embed 'A heading that is whole'", ASKED)
    assert "heron" in show("a heron", ASKED)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None), ({"retry-after": "1.5"}, 1.5), ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "-3"}, 0), ({"retry-after": "soon"}, None), ({"retry-after": "nan"}, None),
        ({"retry-after": format_datetime(datetime(2001, 1, 1, tzinfo=UTC), usegmt=True)}, 0),
    ],
)  # fmt: skip
def test_how_long_a_server_asks_to_wait(headers, seconds):
    assert read_delay(headers) == seconds


def test_a_date_to_wait_until():
    then = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    assert 55 < (read_delay({"retry-after": then}) or 0) <= 60


def failing(*faults: ServerFault):
    waiting = list(faults)

    def attempt() -> str:
        if waiting:
            raise waiting.pop(0)
        return "done"

    return attempt


def test_a_passing_fault_is_tried_again_after_at_least_what_was_asked():
    sleeps = Sleeps()
    faults = [ServerFault("x", Kind.TRANSIENT, delay=5), ServerFault("x", Kind.TRANSIENT, delay=500)]
    assert again(JOB, failing(*faults), sleeps) == "done"
    assert sleeps.seconds == [5, 120]


def test_waits_grow_are_drawn_and_bounded():
    sleeps = Sleeps()
    policy = RetryPolicy(tries=9, seconds=10, first=1, longest=4)
    with pytest.raises(ServerFault):
        again(policy, failing(*[ServerFault("x", Kind.TRANSIENT)] * 9), sleeps)
    assert len(sleeps.seconds) == 8
    assert all(pause <= min(2**number, 4) for number, pause in enumerate(sleeps.seconds))
    assert sum(sleeps.seconds) <= 10


@pytest.mark.parametrize(
    ("kind", "tries"),
    [
        (Kind.SYSTEMIC, 1),
        (Kind.CONTENT, 1),
        (Kind.LENGTH, 1),
        (Kind.TIMEOUT, 2),
        (Kind.UNCLEAR, 3),
        (Kind.TRANSIENT, 6),
    ],
)
def test_tries_by_kind(kind, tries):
    sleeps = Sleeps()
    with pytest.raises(ServerFault):
        again(JOB, failing(*[ServerFault("x", kind)] * 99), sleeps)
    assert len(sleeps.seconds) == tries - 1


def test_a_model_that_is_being_loaded_is_waited_for():
    sleeps = Sleeps()
    assert again(OPENING, failing(*[ServerFault("x", Kind.LOADING)] * 20), sleeps) == "done"
    assert sleeps.seconds == [LOADING_PAUSE] * 20
    with pytest.raises(ServerFault):
        again(OPENING, failing(*[ServerFault("x", Kind.LOADING)] * 999), sleeps)


def test_nothing_is_tried_when_the_asker_is_gone():
    stop = threading.Event()
    with pytest.raises(Stopped):
        again(JOB, failing(*[ServerFault("x", Kind.TRANSIENT)] * 3), lambda *_: stop.set(), stop)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def test_an_unreachable_server_is_named_with_the_ways_out():
    endpoint = Endpoint("ollama", read_address(f"http://127.0.0.1:{free_port()}"))
    with pytest.raises(
        ServerFault, match=r"ollama at http://127.*is not reachable; start it with `ollama serve`"
    ) as e:
        ask(endpoint)
    assert e.value.kind is Kind.UNREACHABLE
    endpoint.close()


def test_the_key_is_sent_and_in_no_log_repr_or_error(caplog):
    caplog.set_level(logging.DEBUG)
    with FaultServer(
        lambda request: Reply(401, {"error": f"bad key {request.headers['authorization']}"})
    ) as server:
        endpoint = endpoint_of(server, KEY)
        with pytest.raises(ServerFault) as error:
            ask(endpoint)
        endpoint.close()
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    shown = [str(error.value), repr(error.value), repr(endpoint), repr(ASKED), caplog.text]
    assert not [text for text in shown if KEY in text]
    assert "check the key in api_key_file" in str(error.value)


def test_a_redirect_is_not_followed_and_only_its_host_named():
    reply = Reply(307, b"", {"Location": "https://user:hush@elsewhere.example/v1?hush"})
    with FaultServer(lambda _: reply) as server:
        endpoint = endpoint_of(server)
        with pytest.raises(ServerFault, match="redirects to elsewhere.example;") as error:
            ask(endpoint)
        endpoint.close()
    assert "hush" not in str(error.value)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("reply", "kind", "message"),
    [
        (
            Reply(200, b"<html>hi</html>", {"Content-Type": "text/html; charset=x"}),
            Kind.SYSTEMIC,
            "text/html that is not",
        ),
        (Reply(200, b"[" * 100_000), Kind.SYSTEMIC, "not JSON"),
        (Reply(200, b'{"data": [{"embedding": [0.1,'), Kind.UNCLEAR, "not JSON"),
        (Reply(200, b"\n"), Kind.UNCLEAR, "not JSON"),
        (Reply(200, {"data": [1] * 50}, is_cut=True), Kind.TRANSIENT, "breaks off"),
        (Reply(404, {"detail": "Not Found"}), Kind.SYSTEMIC, "tried http://127.*/v1/embeddings.*ends in /v1"),
        (Reply(400, b"x" * 1_000_000), Kind.CONTENT, "answered 400: x+"),
    ],
)
def test_answers_that_are_none(reply, kind, message):
    with FaultServer(lambda _: reply) as server:
        endpoint = endpoint_of(server)
        with pytest.raises(ServerFault, match=message) as error:
            ask(endpoint)
        endpoint.close()
    assert error.value.kind is kind
    assert len(str(error.value)) < 600


def test_an_answer_beyond_the_limit_is_refused(monkeypatch):
    monkeypatch.setattr("searchsvc.embedding.endpoint.MAX_ANSWER_BYTES", 1000)
    with FaultServer(lambda _: Reply(200, b"1" * 5000)) as server:
        endpoint = endpoint_of(server)
        with pytest.raises(ServerFault, match="larger than 1,000 bytes; lower batch_texts"):
            ask(endpoint)
        endpoint.close()


def test_an_answer_that_does_not_come_is_given_up():
    release = threading.Event()
    with FaultServer(lambda _: release.wait(20) and None) as server:
        endpoint = endpoint_of(server)
        with pytest.raises(ServerFault, match=r"no answer within 0.2 s; raise request_seconds") as error:
            ask(endpoint, seconds=0.2)
        release.set()
        endpoint.close()
    assert error.value.kind is Kind.TIMEOUT
