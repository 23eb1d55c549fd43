"""Which web addresses may be fetched from: the rules for schemes, hosts and the nets they lead to."""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from searchsvc.config import Config
from searchsvc.errors import AccessDenied

if TYPE_CHECKING:
    import httpx

_ADDRESS = re.compile(
    r"(https?|ftps?|file|mailto|javascript|about|blob|urn|tel|wss?):"
    r"|data:[^,]*,"
    r"|[a-z][a-z0-9+.\-]+:/",
    re.IGNORECASE,
)
"""``root:path`` names a note, so a scheme nobody knows is one only before a slash."""
_HOST = re.compile(r"[a-z0-9_\-]+(\.[a-z0-9_\-]+)*|[0-9a-f.]*:[0-9a-f:.]*")
_ENTRY = re.compile(r"(?P<below>\*?\.)?(?P<place>[^/?#@\\\s]+)")
UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\\]")
"""Signs that no address may have."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_PUBLIC_IPV6 = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC = tuple(
    ipaddress.IPv4Network(block)
    for block in ("100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32")
)
"""Shared by carriers, kept for protocols, a retired relay, and a cloud's inner service: the standard
library calls some of them global, depending on its version."""
MAX_LENGTH = 4_096
"""Characters of an address."""
_MAX_HOST = 253
_MAX_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Target:
    """An address that passed every check but that of where its host leads."""

    url: "httpx.URL"
    host: str
    port: int
    is_named: bool
    """Whether the settings name exactly this host, which may then lie in an inner net."""

    def __str__(self) -> str:
        return shown_address(str(self.url))


def is_address(asked: str) -> bool:
    """Return whether this is an address with a scheme, of any kind, and not a path (``C:`` is a drive)."""
    return _ADDRESS.match(asked) is not None


def check_address(address: str, config: Config) -> Target:
    """Hold an address against every rule that needs no network."""
    import httpx

    shown = shown_address(address)
    if len(address) > MAX_LENGTH:
        raise AccessDenied(f"{shown}: {len(address):,} characters, at most {MAX_LENGTH:,} are an address")
    if UNSAFE.search(address):
        raise AccessDenied(f"{shown}: holds a control character or backslash; take it out")
    try:
        url = httpx.URL(address).copy_with(fragment=None)
        host = _plain_host(url)
    except (httpx.InvalidURL, ValueError) as error:
        raise AccessDenied(f"{shown}: is no valid address, expected https://host/path") from error
    if url.scheme not in ("http", "https"):
        raise AccessDenied(f"{shown}: is no web address; only http:// and https:// are fetched")
    if url.userinfo:
        raise AccessDenied(f"{shown}: holds a user name or password, which is never sent; leave it out")
    port = {"http": 80, "https": 443}[url.scheme] if url.port is None else url.port
    if not _HOST.fullmatch(host) or len(host) > _MAX_HOST or not 0 < port < 65_536:
        raise AccessDenied(f"{shown}: has no valid host or port, expected https://host/path")
    verdict = _verdict(host, port, config.allow_domains)
    if verdict == "refused":
        raise AccessDenied(f"{shown}: host {host} is not allowed; {how_to_allow(host)}")
    return Target(url.copy_with(host=host), host, port, verdict == "named")


def _verdict(host: str, port: int, allowed: Iterable[str]) -> Literal["refused", "public", "named"]:
    """Return whether the settings allow a host nowhere, in the public net, or wherever it leads."""
    import httpx

    entries = [entry.strip().lower() for entry in allowed]
    if "none" in entries:
        return "refused"
    verdict: Literal["refused", "public"] = "public" if "all" in entries else "refused"
    for entry in entries:
        parts = _ENTRY.fullmatch(entry)
        if parts is None:
            continue
        place = f"[{entry}]" if ":" in entry and _ip(entry) else parts["place"]
        try:
            # The scheme has no default port, so ``host:80`` keeps its port.
            url = httpx.URL(f"entry://{place}")
            name = _plain_host(url)
        except (httpx.InvalidURL, ValueError):
            continue
        if not name or url.port not in (None, port):
            continue
        if name == host and not parts["below"]:
            return "named"
        if name == host or (host.endswith(f".{name}") and not _ip(host)):
            verdict = "public"
    return verdict


def _plain_host(url: "httpx.URL") -> str:
    """Return the host in the one form in which it is compared, shown, looked up and certified."""
    host = url.raw_host.decode("ascii").lower().removesuffix(".")
    return str(_ip(host) or host)


def _ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def how_to_allow(host: str) -> str:
    """Return what an error advises the person who runs the server."""
    return f"if it should be, start with --allow-domain {host} or add it to the setting allow_domains"


def is_public(address: str) -> bool:
    """Return whether an IP address, and the one it may wrap, belongs to the public net."""
    ip = _ip(address)
    if isinstance(ip, ipaddress.IPv4Address):
        is_special = ip.is_multicast or ip.is_reserved or any(ip in block for block in _NOT_PUBLIC)
        return ip.is_global and not is_special
    if ip is None:
        return False
    if ip.ipv4_mapped or ip in _NAT64:
        return is_public(str(ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)))
    if ip.sixtofour is not None:
        return is_public(str(ip.sixtofour))
    return ip in _PUBLIC_IPV6 and ip.is_global


def shown_address(address: str) -> str:
    """Return what errors show of an address: neither query nor credentials, in one short line."""
    import httpx

    try:
        url = httpx.URL(address)
        host, path = url.netloc.decode("ascii"), url.raw_path.decode("ascii").partition("?")[0]
    except (httpx.InvalidURL, ValueError):
        host = path = ""
    if host:
        plain = f"{url.scheme}://{host}{path}"
    elif "@" in address:  # nobody can tell where the credentials end in what is no valid address
        plain = "address with @"
    else:
        plain = re.split(r"[?#]", address[:MAX_LENGTH], maxsplit=1)[0]
    line = "".join(character if character.isprintable() else "\ufffd" for character in plain)
    return line if len(line) <= _MAX_SHOWN else f"{line[:_MAX_SHOWN]}…"
