"""Fetching: against real servers on the loopback, and against addresses that must never be reached."""

import gzip
import http.server
import re
import socket
import threading
import time
from contextlib import contextmanager

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from searchsvc.config import Config
from searchsvc.errors import AccessDenied, ReadingError
from searchsvc.reading.hosts import check_address, is_address, is_public
from searchsvc.reading.web import fetch

TEXT = ("text/",)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    close_connection = True

    def log_message(self, *_):
        pass

    def answer(self, body=b"", status=200, **headers):
        self.send_response(status)
        for name, value in ({"Content_Type": "text/markdown; charset=utf-8"} | headers).items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):  # noqa: N802
        path = self.path.partition("?")[0]
        self.server.seen.append((path, self.headers.get("Host"), self.headers.get("Cookie")))
        try:
            if path.startswith("/to/"):
                self.answer(status=302, Location=self.targets()[path[4:]])
            elif path in ("/drip", "/endless"):
                self.stream(b"x" if path == "/drip" else b"x" * 10_000, pause=0.1 if path == "/drip" else 0)
            elif path == "/silent":
                time.sleep(3)
            else:
                body, headers = PAGES[path]
                self.answer(body, **headers)
        except OSError:  # the client has hung up, as it should
            pass

    def targets(self):
        port = self.server.server_address[1]
        return {
            "note": "/note.md",
            "loop": "/to/loop",
            "file": "file:///etc/passwd",
            "meta": "http://169.254.169.254/latest",
            "other": f"http://localhost:{port}/note.md",
            "secret": f"http://user:pw@127.0.0.1:{port}/note.md",
            "number": "http://2130706433/x",
        }

    def stream(self, piece, pause):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        for _ in range(1_000):
            self.wfile.write(piece)
            self.wfile.flush()
            time.sleep(pause)


PAGES = {
    "/note.md": ("# Grüße\n".encode(), {"Set_Cookie": "a=b"}),
    "/page.html": (b"GIF89a", {"Content_Type": "image/gif"}),
    "/missing": (b"no", {"status": 404}),
    "/declared": (b"x", {"Content_Length": "99999999"}),
    "/bomb": (gzip.compress(b"\0" * 20_000_000), {"Content_Encoding": "gzip"}),
}


class Quiet(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """A client that hangs up is what these tests want."""


@contextmanager
def serving(handler=Handler):
    server = Quiet(("127.0.0.1", 0), handler)
    server.seen = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def server():
    with serving() as made:
        yield made


@pytest.fixture
def base(server):
    return f"http://127.0.0.1:{server.server_address[1]}"


def allowing(*domains, seconds=5.0):
    return Config(allow_domains=domains, fetch_seconds=seconds)


def get(url, *domains, kinds=TEXT, max_bytes=1_000_000, seconds=5.0):
    return fetch(url, allowing(*domains, seconds=seconds), kinds=kinds, max_bytes=max_bytes)


def test_an_allowed_address_is_fetched_and_redirects_within_it_are_followed(server, base):
    found = get(f"{base}/to/note?token=1", "127.0.0.1")
    assert found.data.decode() == "# Grüße\n"
    assert (found.media_type, found.charset, found.url) == ("text/markdown", "utf-8", f"{base}/note.md")
    get(f"{base}/note.md", "127.0.0.1")
    assert all(cookie is None for _, _, cookie in server.seen)


def test_nothing_is_fetched_unless_its_host_is_allowed(server, base):
    before = len(server.seen)
    for domains in ((), ("none",), ("all",), ("example.com",), ("127.0.0.1:1",), ("127.0.0.1", "none")):
        with pytest.raises(AccessDenied, match="allow-domain"):
            get(f"{base}/note.md", *domains)
    assert len(server.seen) == before


@pytest.mark.proves("R-fetch")
@pytest.mark.parametrize("way", ["file", "meta", "other", "secret", "number"])
def test_a_redirect_is_checked_like_the_first_address(base, way):
    with pytest.raises(AccessDenied):
        get(f"{base}/to/{way}", "127.0.0.1")


def test_redirects_that_never_end_are_given_up(base):
    with pytest.raises(ReadingError, match="more than 5 redirects"):
        get(f"{base}/to/loop", "127.0.0.1")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/page.html", "image/gif"),
        ("/missing", "404"),
        ("/declared", "99,999,999"),
        ("/endless", "100,000"),
        ("/bomb", "100,000"),
    ],
)
def test_wrong_types_and_sizes_are_refused_with_what_was_found(base, path, said):
    with pytest.raises(ReadingError, match=said):
        get(base + path, "127.0.0.1", max_bytes=100_000)


@pytest.mark.parametrize("path", ["/drip", "/silent"])
def test_a_slow_answer_ends_at_the_deadline(base, path):
    begin = time.monotonic()
    with pytest.raises(ReadingError, match="fetch_seconds"):
        get(base + path, "127.0.0.1", seconds=0.4)
    assert time.monotonic() - begin < 3  # a drip of ten seconds, or silence of three


def test_errors_show_neither_query_nor_credentials(base):
    for address in (f"{base}/missing?key=S3CRET", "http://me:S3CRET@127.0.0.1/x", "http://x.org/?S3CRET"):
        with pytest.raises(ReadingError) as said:
            get(address, "127.0.0.1")
        assert "S3CRET" not in str(said.value) and "\n" not in str(said.value)


@pytest.mark.proves("R-fetch")
def test_the_address_that_was_checked_is_the_one_connected_to(monkeypatch, server):
    """A name that leads to a public address first and to this machine later gets nowhere."""
    asked, connected = [], []
    port = server.server_address[1]

    def look_up(host, port, *_, **__):
        asked.append(host)
        address = "93.184.216.34" if len(asked) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    def connect(address, *_, **__):
        connected.append(address[0])
        raise OSError("not in a test")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(ReadingError):
        get(f"http://rebind.example.com:{port}/note.md", "example.com")
    assert asked.count("rebind.example.com") == 1
    assert set(connected) == {"93.184.216.34"}


@pytest.mark.parametrize("leads_to", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1"])
def test_an_allowed_name_that_leads_inside_is_refused_unless_named_itself(monkeypatch, leads_to):
    answer = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (leads_to, 80))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answer)
    for domains in (("example.com",), ("all",)):
        with pytest.raises(AccessDenied, match="not public") as said:
            get("http://inner.example.com/x", *domains)
        assert leads_to not in str(said.value)


@pytest.mark.parametrize(
    ("host", "domains", "is_allowed"),
    [
        ("example.com", ("example.com",), True),
        ("docs.example.com", ("example.com",), True),
        ("DOCS.Example.COM.", ("example.com",), True),
        ("docs.example.com", ("*.example.com",), True),
        ("badexample.com", ("example.com",), False),
        ("example.com.evil.org", ("example.com",), False),
        ("example.com", ("com",), True),
        ("exämple.com", ("xn--exmple-cua.com",), True),
        ("anything.org", ("all",), True),
        ("anything.org", ("all", "none"), False),
    ],
)
def test_hosts_match_on_label_borders(host, domains, is_allowed):
    if is_allowed:
        assert check_address(f"https://{host}/a.md", allowing(*domains))
    else:
        with pytest.raises(AccessDenied):
            check_address(f"https://{host}/a.md", allowing(*domains))


@pytest.mark.parametrize(
    "address",
    ["file:///etc/passwd", "ftp://example.com/a", "http://u:p@example.com/", "http://example.com\\@evil.org/",
     "http://example.com/\n", "http://", "https://example.com:99999/", "http://[::1", "data:text/plain,x",
     "gopher://example.com/", f"http://example.com/{'x' * 5000}", "http://evil.org#@example.com/"],
)  # fmt: skip
def test_what_is_no_plain_web_address_is_refused(address):
    with pytest.raises(AccessDenied):
        check_address(address, allowing("example.com"))


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        *((address, True) for address in ("8.8.8.8", "2001:4860:4860::8888")),
        *(
            (address, False)
            for address in ("10.1.2.3", "100.64.0.1", "169.254.169.254", "0.0.0.0", "224.0.0.1")
        ),
        *((address, False) for address in ("fe80::1", "fc00::1", "::", "::ffff:10.0.0.1", "64:ff9b::7f00:1")),
        *((address, False) for address in ("2002:7f00:1::", "nonsense")),
    ],
)
def test_only_the_public_net_is_public(address, expected):
    assert is_public(address) is expected


@given(st.text(max_size=60) | st.from_regex(r"https?://[a-z0-9.@:\[\]#?/%\\-]{1,40}", fullmatch=True))
@example("http://example.com@127.0.0.1/")
@example("http://127.0.0.1#.example.com/")
@example("http://example.com:80:80/")
def test_no_address_is_let_through_whose_host_is_not_allowed(address):
    try:
        target = check_address(address, allowing("example.com"))
    except (AccessDenied, ReadingError):
        return
    assert re.fullmatch(r"(.+\.)?example\.com", target.host)


def test_paths_are_no_addresses():
    assert not any(map(is_address, ["a.md", "C:/notes/a.md", "vault:a.md", "a/b.md#c", "C:\\x.md"]))
    assert all(map(is_address, ["https://x.org/a", "FILE:///etc", "ftp://x", "data:text/plain,x"]))
