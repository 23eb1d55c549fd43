"""Where an embedding server is, and the key that may be sent to it.

A key goes over an open connection only to machines that are near: this one, a private address, a name
of the local network. Errors never hold a key, nor a password somebody wrote into an address.
"""

import ipaddress
import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from searchsvc.errors import EmbeddingError

MAX_KEY_BYTES = 4096
"""A key file that is larger is some other file."""

OPENAI_HOST = "api.openai.com"
GENERAL_KEY = "SEARCHSVC_API_KEY"
PROVIDER_KEYS = {"openai": "OPENAI_API_KEY", "lmstudio": "LM_API_TOKEN", "ollama": "OLLAMA_API_KEY"}
"""The variable in which each provider's own programs look for a key."""

_ANY = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}
"""What a server listens on when it listens on all addresses, and where it is then reached from here."""
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\]")
_LOCAL_NAME = re.compile(r"[a-z_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.local\.?)?|(?:[a-z0-9_-]+\.)+local\.?")
_PRINTABLE = re.compile(r"[\x20-\x7e]+")


@dataclass(frozen=True, slots=True)
class Address:
    """A checked base address of a server."""

    url: str
    """``scheme://host[:port][/path]`` without a slash at its end."""
    host: str
    """Lower case, without brackets."""
    is_secure: bool
    """Whether the connection is encrypted."""

    @property
    def is_loopback(self) -> bool:
        """Whether the host is this machine."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def is_near(self) -> bool:
        """Whether the host is this machine, a private address, or a name of the local network."""
        try:
            address = ipaddress.ip_address(self.host.partition("%")[0])
        except ValueError:
            # A name of digits alone would be an address in disguise.
            return bool(_LOCAL_NAME.fullmatch(self.host))
        mapped = getattr(address, "ipv4_mapped", None) or address
        return bool(mapped.is_private or mapped.is_loopback or mapped.is_link_local)


def read_address(url: str, *, setting: str = "base_url") -> Address:
    """Return the checked address of a server; EmbeddingError, naming the ``setting``, for an unusable one."""
    text = url.strip().rstrip("/")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise EmbeddingError(f"{setting} is no address ({_without_login(url)}); {_EXPECTED}") from error
    if parts.scheme not in ("http", "https") or not host or _UNSAFE.search(text):
        raise EmbeddingError(f"{setting} is {_without_login(url)!r}, not an http address; {_EXPECTED}")
    if "@" in parts.netloc:
        raise EmbeddingError(f"{setting} holds a user name or password; leave it out, and {_HOW_TO_KEY}")
    if "?" in text or "#" in text:
        raise EmbeddingError(f"{setting} holds a query or fragment (? or #); leave it out, and {_HOW_TO_KEY}")
    shown = _ANY.get(host, f"[{host}]" if ":" in host else host)
    place = shown if port is None else f"{shown}:{port}"
    return Address(
        f"{parts.scheme}://{place}{parts.path.rstrip('/')}", shown.strip("[]"), text[:5] == "https"
    )


_EXPECTED = "give it as http://host:port or https://host/path"
_HOW_TO_KEY = f"give a key in api_key_file or {GENERAL_KEY}"


def _without_login(url: str) -> str:
    """Return an address as it may be shown: what stands before an @ or behind a ? may be secret."""
    return re.split(r"[?#]", re.sub(r"(?s)(//)?.*@", r"\1…@", url.strip()))[0][:200]


def ollama_address(base_url: str) -> Address:
    """Return the address of an Ollama server: the one given, else of OLLAMA_HOST, else the usual one.

    A trailing ``/v1`` or ``/api`` is dropped. EmbeddingError for what is no address.
    """
    setting, text = "base_url", base_url.strip()
    if not text:
        setting, text = "OLLAMA_HOST", os.environ.get("OLLAMA_HOST", "").strip().strip("\"'")
    if setting == "OLLAMA_HOST" and "://" not in text:
        text = f"http://{_with_port(text)}"
    address = read_address(text, setting=setting)
    return Address(re.sub(r"/+(?:v1|api)$", "", address.url), address.host, address.is_secure)


def _with_port(place: str) -> str:
    """Return a host as Ollama understands it, with a port: ``host``, ``host:port``, ``:port``, IPv6."""
    place, slash, path = place.partition("/")
    if place.count(":") > 1 and not place.startswith("["):
        place = f"[{place}]"
    if place.startswith(":"):
        place = f"localhost{place}"
    if not re.search(r":\d+$", place) or place.endswith("]"):
        place = f"{place or 'localhost'}:11434"
    return f"{place}{slash}{path}"


def read_key(provider: str, address: Address, key_file: Path | None, given: str = "") -> str:
    """Return the key for a server, empty when there is none: as given, of the file, else of the environment.

    ``OPENAI_API_KEY`` goes to OpenAI itself only. EmbeddingError for OpenAI without a key, a file that holds
    no key, a key that no header can carry, and one that would go unencrypted to a machine that is not near.
    """
    source, key = ("the arguments", given.strip()) if given else _find_key(provider, address, key_file)
    if not key:
        if address.host == OPENAI_HOST:
            raise EmbeddingError(
                "OpenAI wants a key and there is none: set OPENAI_API_KEY in the environment, or the setting "
                "api_key_file"
            )
        return ""
    if not _PRINTABLE.fullmatch(key):
        raise EmbeddingError(
            f"the key in {source} holds control characters or letters outside ASCII, which no header "
            "carries; copy it again"
        )
    if not address.is_secure and not address.is_near:
        raise EmbeddingError(
            f"the key in {source} would go unencrypted to {address.host}, which is not a machine of the "
            "local network; use an https address, or take the key away"
        )
    return key


def _find_key(provider: str, address: Address, key_file: Path | None) -> tuple[str, str]:
    if key_file is not None:
        return "api_key_file", _read_key_file(key_file)
    names = [GENERAL_KEY]
    if provider != "openai" or address.host == OPENAI_HOST:
        names.append(PROVIDER_KEYS[provider])
    found = ((name, os.environ.get(name, "").strip()) for name in names)
    return next(((name, key) for name, key in found if key), ("", ""))


def _read_key_file(file: Path) -> str:
    try:
        with file.expanduser().open("rb") as stream:
            data = stream.read(MAX_KEY_BYTES + 1)
    except OSError as error:
        raise EmbeddingError(
            f"api_key_file {file.name!r} cannot be read ({error.strerror}); check that it is there and its "
            "permissions"
        ) from error
    if len(data) > MAX_KEY_BYTES:
        raise EmbeddingError(
            f"api_key_file {file.name!r} is larger than {MAX_KEY_BYTES} bytes, expected one line with the key"
        )
    lines = data.decode("utf-8-sig", "replace").splitlines()
    key = lines[0].strip() if lines else ""
    if not key:
        raise EmbeddingError(f"api_key_file {file.name!r} has an empty first line, expected the key there")
    return key


def key_sources(provider: str, address: Address) -> str:
    """Return the places where a key for a server is looked for, for messages."""
    names = ["api_key_file", GENERAL_KEY]
    if provider != "openai" or address.host == OPENAI_HOST:
        names.append(PROVIDER_KEYS[provider])
    return f"{', '.join(names[:-1])} or {names[-1]}"
