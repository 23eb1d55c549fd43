"""Images of a book -> assets with names of our own."""

import base64
import hashlib
import posixpath
import re
import unicodedata
from urllib.parse import unquote

from searchsvc.importing.base import Asset, Limits
from searchsvc.importing.epub_links import resolve
from searchsvc.importing.epub_zip import Archive

_TYPES = (
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpg"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"BM", "bmp"),
    (b"II*\0", "tif"),
    (b"MM\0*", "tif"),
)
_SVG = re.compile(
    rb"^(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--.{0,2000}?-->\s*|<!DOCTYPE[^>\[]*>\s*){0,3}<svg[\s>]",
    re.DOTALL,
)
_SNIFFED = 4096
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".bmp", ".tif", ".tiff", ".svg")
_OTHER = re.compile(r"[^a-z0-9]+")
_MAX_STEM = 60
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)")


class Pictures:
    """Takes images out of the archive as chapters ask for them, each once."""

    def __init__(self, archive: Archive, limits: Limits) -> None:
        self.assets: list[Asset] = []
        self._archive = archive
        self._limits = limits
        self._names: dict[str, str] = {}
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}
        self._lost: dict[str, int] = {}

    def name_of(self, base: str, source: str) -> str:
        """Return the name of the asset for an image of the document ``base``; empty when it cannot be had."""
        if source[:5].lower() == "data:":
            return self._embedded(source)
        place = resolve(base, source)
        path = self._archive.find(place.path) if place.path else ""
        key = path or source[:500]
        if key not in self._names:
            self._names[key] = self._take(path, is_outside=not place.path)
        return self._names[key]

    def notices(self) -> list[str]:
        """Return what could not be had."""
        return [f"{count} images left out: {why}" for why, count in self._lost.items()]

    def _take(self, path: str, *, is_outside: bool) -> str:
        limits = self._limits
        if is_outside:
            return self._lose("not in the book but elsewhere")
        if not path:
            return self._lose("missing in the archive")
        if len(self.assets) >= limits.images:
            return self._lose(f"a document has at most {limits.images}")
        if self._archive.packed_size(path) > limits.image_bytes:
            return self._lose(f"larger than {limits.image_bytes} bytes")
        data = self._archive.read(path, limits.image_bytes)
        suffix = suffix_of(data or b"")
        if data is None or not suffix:
            return self._lose("damaged, or of an unknown kind")
        name = self._new_name(path, suffix)
        self.assets.append(Asset(name, data))
        return name

    def _embedded(self, source: str) -> str:
        """Return the name for an image that stands in the text itself."""
        key = hashlib.sha256(source.encode("utf-8", "replace")).hexdigest()
        if key not in self._names:
            self._names[key] = self._decode(source)
        return self._names[key]

    def _decode(self, source: str) -> str:
        limits = self._limits
        head, _, coded = source.partition(",")
        if not head.lower().endswith(";base64"):
            return self._lose("damaged, or of an unknown kind")
        if len(coded) > limits.image_bytes * 3 // 2 + 4:
            return self._lose(f"larger than {limits.image_bytes} bytes")
        if len(self.assets) >= limits.images:
            return self._lose(f"a document has at most {limits.images}")
        try:
            data = base64.b64decode("".join(unquote(coded).split()))
        except ValueError:
            data = b""
        if len(data) > limits.image_bytes:
            return self._lose(f"larger than {limits.image_bytes} bytes")
        suffix = suffix_of(data)
        if not suffix:
            return self._lose("damaged, or of an unknown kind")
        name = self._new_name("image", suffix)
        self.assets.append(Asset(name, data))
        return name

    def _lose(self, why: str) -> str:
        self._lost[why] = self._lost.get(why, 0) + 1
        return ""

    def _new_name(self, path: str, suffix: str) -> str:
        stem = posixpath.splitext(posixpath.basename(path))[0]
        plain = unicodedata.normalize("NFKD", stem).encode("ascii", "ignore").decode()
        stem = _OTHER.sub("-", plain.lower())[:_MAX_STEM].strip("-") or "image"
        if _RESERVED.fullmatch(stem):
            stem = f"image-{stem}"
        name, number = f"{stem}.{suffix}", self._counts.get(stem, 0)
        while name in self._taken:
            number += 1
            name = f"{stem}-{number}.{suffix}"
        self._counts[stem] = number
        self._taken.add(name)
        return name


def suffix_of(data: bytes) -> str:
    """Return the suffix for an image by its first bytes; empty when it is none."""
    for start, suffix in _TYPES:
        if data.startswith(start):
            return suffix
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    if data[4:12] in (b"ftypavif", b"ftypavis"):
        return "avif"
    return "svg" if _SVG.match(data[:_SNIFFED]) else ""
