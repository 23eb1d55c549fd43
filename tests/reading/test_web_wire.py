"""Fetching on the wire: TLS names, broken and slow answers, packed bodies, look-ups and redirects."""

import gzip
import logging
import socket
import ssl
import threading
import time
from contextlib import contextmanager

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from web_certificate import CERTIFICATE, KEY

from searchsvc.config import Config
from searchsvc.errors import AccessDenied, ReadingError
from searchsvc.reading.hosts import check_address, is_public
from searchsvc.reading.web import fetch

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
NAME = "docs.example.test"


def get(url, *domains, seconds=5.0, max_bytes=100_000, kinds=("text/",)):
    return fetch(url, Config(allow_domains=domains, fetch_seconds=seconds), kinds=kinds, max_bytes=max_bytes)


@contextmanager
def speaking(*parts, pause=0.0, tls=None):
    """Serve the same bytes, part by part, to whoever connects; yield the port and the requests."""
    listener, requests = socket.create_server(("127.0.0.1", 0)), []
    is_over = threading.Event()

    def speak(client):
        try:
            client.settimeout(5)
            with tls.wrap_socket(client, server_side=True) if tls else client as stream:
                requests.append(stream.recv(65_536))
                for part in parts:
                    stream.sendall(part)
                    if is_over.wait(pause) if pause else False:
                        return
        except OSError:  # the client has hung up, as it should
            pass
        finally:
            client.close()

    def listen():
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            worker = threading.Thread(target=speak, args=(client,), daemon=True)
            workers.append(worker)
            worker.start()

    workers = [threading.Thread(target=listen, daemon=True)]
    workers[0].start()
    try:
        yield listener.getsockname()[1], requests
    finally:
        is_over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for worker in workers:
            worker.join(5)


def answer(body, *headers):
    return OK + b"".join(header + b"\r\n" for header in headers) + b"\r\n" + body


def redirect(location, status=302):
    return b"HTTP/1.1 %d Go\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % (status, location)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"hello\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"\0" * 1_000,
        OK + b"no colon\r\n\r\n",
        OK + b"X: " + b"y" * 200_000,
        OK + b"Content-Length: -1\r\n\r\n",
        OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        OK + b"Content-Length: " + b"9" * 5_000 + b"\r\n\r\n",
        OK + b"Content-Length: 50\r\n\r\nshort",
        OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"HTTP/1.1 101 Switching\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: \xff\xfe\x80\r\n\r\nx",
        b"HTTP/1.1 302 Go\r\n\r\n",
        b"HTTP/1.1 999 \xff\r\n\r\n",
        b"HTTP/1.1 204 No\r\n\r\n",
        b"HTTP/1.1 304 Same\r\n\r\n",
    ],
    ids=range(19),
)
def test_broken_answers_are_errors_of_reading(sent):
    with speaking(sent) as (port, _), pytest.raises(ReadingError) as said:
        get(f"http://127.0.0.1:{port}/a", "127.0.0.1")
    assert not isinstance(said.value, AccessDenied)
    assert len(str(said.value)) < 300 and str(said.value).isprintable()


@pytest.mark.parametrize(
    "location",
    [
        b"http://[::1",
        b"http://\xff\xfe/",
        b"\\\\evil.org/x",
        b"http://a\x01b/",
        b"x" * 5_000,
        b"http://127.0.0.1:99999/",
        b"javascript:alert(1)",
        b"data:text/plain,x",
        b"http://xn--\xc3\xa9/",
        b"//evil.org/x",
    ],
    ids=range(10),
)
def test_a_redirect_to_no_allowed_address_is_denied(location):
    with speaking(redirect(location)) as (port, requests), pytest.raises(AccessDenied):
        get(f"http://127.0.0.1:{port}/a", "127.0.0.1")
    assert len(requests) == 1


@pytest.mark.parametrize("location", [b"//", b"http:///x"])
def test_a_redirect_without_a_host_stays_on_the_one_that_was_checked(location):
    with speaking(redirect(location)) as (port, requests), pytest.raises(ReadingError, match="5 redirects"):
        get(f"http://127.0.0.1:{port}/a", "127.0.0.1")
    assert all(b"Host: 127.0.0.1:%d\r\n" % port in request for request in requests)


@pytest.mark.parametrize(("hops", "is_followed"), [(5, True), (6, False)])
def test_exactly_five_redirects_are_followed(hops, is_followed):
    with speaking(answer(b"end")) as (port, _):
        chain = f"http://127.0.0.1:{port}/end".encode()
        with nested(chain, hops) as first:
            if is_followed:
                assert get(first, "127.0.0.1").data == b"end"
            else:
                with pytest.raises(ReadingError, match="5 redirects"):
                    get(first, "127.0.0.1")


@contextmanager
def nested(target, hops):
    """Serve a chain of redirects that ends at a target."""
    if hops == 0:
        yield target.decode()
        return
    with speaking(redirect(target)) as (port, _), nested(b"http://127.0.0.1:%d/" % port, hops - 1) as first:
        yield first


@pytest.mark.parametrize(
    "parts",
    [[OK, *[b"X: y\r\n"] * 200], [b"HTTP/1.1 100 Continue\r\n\r\n"] * 200, [answer(b""), *[b"x"] * 200]],
    ids=["headers", "informational", "body"],
)
def test_what_drips_ends_at_the_deadline(parts):
    begin = time.monotonic()
    with speaking(*parts, pause=0.05) as (port, _), pytest.raises(ReadingError, match=r"0\.3 s"):
        get(f"http://127.0.0.1:{port}/a", "127.0.0.1", seconds=0.3)
    assert time.monotonic() - begin < 4


def test_redirects_share_one_deadline():
    with speaking(b"HTTP/1.1 302 Go\r\n", b"Location: /again\r\nContent-Length: 0\r\n\r\n", pause=0.15) as (
        port,
        _,
    ):
        with pytest.raises(ReadingError, match=r"0\.4 s"):
            get(f"http://127.0.0.1:{port}/a", "127.0.0.1", seconds=0.4)


def test_a_look_up_that_hangs_ends_at_the_deadline(monkeypatch):
    is_over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: is_over.wait(10) and [])
    begin = time.monotonic()
    with pytest.raises(ReadingError, match="fetch_seconds"):
        get("http://docs.example.com/a", "example.com", seconds=0.2)
    is_over.set()
    assert time.monotonic() - begin < 5


def member(data):
    return gzip.compress(data, mtime=0)


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 131_072, 99_999])
def test_gzip_is_unpacked_whole(size):
    data = b"a" * size
    with speaking(answer(member(data), b"Content-Encoding: gzip")) as (port, _):
        assert get(f"http://127.0.0.1:{port}/a", "127.0.0.1", max_bytes=200_000).data == data


def test_gzip_of_several_members_is_unpacked_whole():
    with speaking(answer(member(b"one ") + member(b"two"), b"Content-Encoding: gzip")) as (port, _):
        assert get(f"http://127.0.0.1:{port}/a", "127.0.0.1").data == b"one two"


@pytest.mark.parametrize(
    ("body", "encoding"),
    [(member(b"word " * 1_000)[:-10], b"gzip"), (b"no gzip", b"gzip"), (b"x", b"br"), (b"x", b"gzip, gzip")],
)
def test_what_cannot_be_unpacked_is_an_error(body, encoding):
    with speaking(answer(body, b"Content-Encoding: " + encoding)) as (port, _), pytest.raises(ReadingError):
        get(f"http://127.0.0.1:{port}/a", "127.0.0.1")


def test_a_bomb_is_not_unpacked_beyond_one_step(monkeypatch):
    import searchsvc.reading.web as web

    made, limited = [], web._unpacked

    def counted(chunks):
        for chunk in limited(chunks):
            made.append(len(chunk))
            yield chunk

    monkeypatch.setattr(web, "_unpacked", counted)
    bomb = member(b"\0" * 50_000_000)
    with speaking(answer(bomb, b"Content-Encoding: gzip")) as (port, _):
        with pytest.raises(ReadingError, match="at most 100,000"):
            get(f"http://127.0.0.1:{port}/a", "127.0.0.1")
    assert sum(made) < 200_000


@pytest.fixture
def tls(monkeypatch, tmp_path):
    """Serve with the certificate of ``NAME``, trust it, and lead every name to this machine."""
    pem = tmp_path / "both.pem"
    pem.write_text(CERTIFICATE + KEY)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    context.names = []
    context.sni_callback = lambda _, name, __: context.names.append(name)
    trusted = ssl.create_default_context(cadata=CERTIFICATE)
    monkeypatch.setattr(httpx, "create_ssl_context", lambda **_: trusted)
    found = socket.getaddrinfo

    def look_up(host, port, *rest, **more):
        return found("127.0.0.1" if str(host).endswith(".test") else host, port, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return context


def test_tls_and_host_header_keep_the_name(tls):
    with speaking(answer(b"safe"), tls=tls) as (port, requests):
        assert get(f"https://{NAME}:{port}/a?b", NAME).data == b"safe"
    assert tls.names == [NAME]
    assert b"GET /a?b HTTP/1.1\r\nHost: %b:%d\r\n" % (NAME.encode(), port) in requests[0]


def test_a_certificate_of_another_name_is_refused(tls):
    with speaking(answer(b"x"), tls=tls) as (port, requests):
        with pytest.raises(ReadingError, match="certificate"):
            get(f"https://other.example.test:{port}/a", "other.example.test")
    assert requests == []


def test_a_certificate_nobody_signed_is_refused(tls, monkeypatch):
    monkeypatch.setattr(httpx, "create_ssl_context", lambda **_: ssl.create_default_context())
    with speaking(answer(b"x"), tls=tls) as (port, requests):
        with pytest.raises(ReadingError, match="certificate"):
            get(f"https://{NAME}:{port}/a", NAME)
    assert requests == []


def test_a_redirect_from_https_to_http_is_denied(tls):
    with speaking(answer(b"x")) as (plain, requests):
        target = f"http://{NAME}:{plain}/b".encode()
        with (
            speaking(redirect(target), tls=tls) as (port, _),
            pytest.raises(AccessDenied, match="https to http"),
        ):
            get(f"https://{NAME}:{port}/a", NAME)
    assert requests == []


def test_the_environment_decides_nothing(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with speaking(answer(b"direct")) as (port, _):
        assert get(f"http://127.0.0.1:{port}/a", "127.0.0.1").data == b"direct"


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "127.1", "[::ffff:127.0.0.1]", "0", "localhost"])
@pytest.mark.parametrize("domains", [("all",), ("all", "127.0.0.1")])
def test_another_spelling_of_this_machine_is_denied(host, domains):
    with speaking(answer(b"x")) as (port, requests), pytest.raises(AccessDenied, match="not public"):
        get(f"http://{host}:{port}/a", *domains)
    assert requests == []


@pytest.mark.parametrize(
    ("host", "entry", "verdict"),
    [
        ("localhost", "localhost:{port}", "named"),
        ("localhost", "localhost:1", None),
        ("[::1]", "::1", "named"),
        ("[::1]", "[::1]:{port}", "named"),
        ("a.localhost", "localhost", "public"),
        ("localhost", ".localhost", "public"),
        ("9.0.0.1", "0.0.1", None),
        ("x.org", "x.org/", None),
        ("x.org", "", None),
        ("x.org", "*", None),
        ("x.org", "*.", None),
        ("xorg", "*x.org", None),
        ("x.org", "u@x.org", None),
        ("X.ORG.", " x.org. ", "named"),
    ],
)
def test_how_an_entry_allows(host, entry, verdict):
    config = Config(allow_domains=(entry.format(port=8123),))
    try:
        target = check_address(f"http://{host}:8123/a", config)
    except AccessDenied:
        assert verdict is None
    else:
        assert ("named" if target.is_named else "public") == verdict


@pytest.mark.parametrize("path", ["a\\b", "a\tb", "a\x7fb", "a\x85b", "?a\\b"])
def test_a_backslash_or_control_character_is_denied_on_an_allowed_host(path):
    with pytest.raises(AccessDenied, match="control character or backslash"):
        check_address(f"http://x.org/{path}", Config(allow_domains=("x.org",)))


@pytest.mark.parametrize("address", ["::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"])
def test_a_public_address_that_is_wrapped_stays_public(address):
    assert is_public(address)


def test_one_inner_address_among_public_ones_is_enough_to_refuse(monkeypatch):
    answers = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, 80)) for ip in ("8.8.8.8", "10.1.2.3")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answers)
    with pytest.raises(AccessDenied) as said:
        get("http://docs.example.com/a", "example.com")
    assert "10.1.2.3" not in str(said.value) and "--allow-domain docs.example.com" in str(said.value)


def test_a_peer_that_was_not_checked_gets_no_request(monkeypatch):
    """Even where a numeric address were looked up again, and led elsewhere."""
    found = socket.getaddrinfo
    with speaking(answer(b"x")) as (port, requests):
        first = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", port))]

        def look_up(host, *rest, **more):
            return first if host == "docs.example.com" else found("127.0.0.1", *rest, **more)

        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        with pytest.raises(ReadingError):
            get(f"http://docs.example.com:{port}/a", "example.com")
    assert not any(requests)


WORDS = st.text("ab/?#@:\\%[] \té", max_size=6)


@given(WORDS, WORDS, WORDS)
@example("", "", "?a=")
@example("a@", "/", "")
def test_credentials_are_never_shown(before, between, after):
    address = f"http://{before}me:S3CRET{between}@host.org/{after}"
    with pytest.raises(AccessDenied) as said:
        check_address(address, Config())
    text = str(said.value)
    assert text.isprintable() and len(text) < 700
    authority = address[7:].split("/")[0].split("?")[0].split("#")[0]
    if "@" in authority and authority.rindex("@") > authority.find("S3CRET") >= 0:
        assert "S3CRET" not in text


@pytest.mark.parametrize("seconds", [5.0])
def test_nothing_of_an_answer_gets_into_the_log(caplog, seconds):
    with caplog.at_level(logging.INFO), speaking(answer(b"x", b"Set-Cookie: a=b")) as (port, requests):
        for _ in range(2):
            get(f"http://127.0.0.1:{port}/a", "127.0.0.1", seconds=seconds)
    assert not caplog.records and not any(b"ookie" in request for request in requests)
