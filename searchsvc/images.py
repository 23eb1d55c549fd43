"""Image references of a document -> pictures: from data in the text, from files, or from allowed hosts."""

import os
import posixpath
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urljoin

from searchsvc.answering.passage import short_caption
from searchsvc.config import Config, Root
from searchsvc.errors import AccessDenied, NotFound, SearchError
from searchsvc.items import Image, Picture
from searchsvc.reading.access import Place, locate_attachment, read_bytes
from searchsvc.reading.hosts import is_address
from searchsvc.reading.links import IMAGE_STUB
from searchsvc.reading.manifest import ImageEntry
from searchsvc.reading.pictures import make_picture, read_data_uri
from searchsvc.reading.web import fetch

_MAX_WALKED = 200_000
"""Files looked at for an image that is embedded by its name alone."""

Entries = Callable[[], Mapping[str, ImageEntry]]
"""Images of a root by id, read when a stub needs them."""


class Images:
    """The pictures of one document, for the length of one request."""

    def __init__(self, config: Config, place: Place | None, url: str, entries: Entries) -> None:
        """``place`` is that of a document on disk, ``url`` the address of one that was fetched."""
        self._config = config
        self._place = place
        self._url = url
        self._entries = entries
        self._made: dict[tuple[str, bool], Picture | SearchError] = {}
        self._named: dict[str, list[str]] | None = None

    def show(self, image: Image) -> Picture:
        """Return the picture of a reference; raises ``SearchError`` when it cannot be sent."""
        key = image.source, _is_wiki(image)  # an embed finds a file by its name alone, a link does not
        made = self._made.get(key)
        if made is None:
            try:
                made = make_picture(self._data(image), self._config.max_image_bytes)
            except SearchError as error:
                made = error
            self._made[key] = made
        if isinstance(made, SearchError):
            raise made
        return made

    def caption(self, image: Image) -> str:
        """Return the caption by the index of images, else the alternative text."""
        if image.source.startswith(IMAGE_STUB):
            entry = self._entries().get(image.source.removeprefix(IMAGE_STUB))
            return short_caption(entry.caption if entry else image.alt)
        return "" if image.alt.replace("x", "").isdigit() else short_caption(image.alt)

    def _data(self, image: Image) -> bytes:
        source, limit = image.source, self._config.max_image_bytes
        if source[:5].lower() == "data:":
            return read_data_uri(source, limit)
        if source.startswith(IMAGE_STUB):
            return read_bytes(self._by_id(source.removeprefix(IMAGE_STUB)), self._config, limit)
        address = f"https:{source}" if source.startswith("//") else source
        if self._url and not is_address(address):
            address = urljoin(self._url, source)
        if is_address(address):
            return fetch(address, self._config, kinds=("image/",), max_bytes=limit).data
        return read_bytes(self._file(source, is_wiki=_is_wiki(image)), self._config, limit)

    def _by_id(self, name: str) -> Place:
        entry = self._entries().get(name)
        if entry is None or self._place is None:
            raise NotFound(f"no image {name!r} in {self._config.images_index}")
        return locate_attachment(entry.file, self._place.root)

    def _file(self, source: str, *, is_wiki: bool) -> Place:
        if self._place is None:
            raise NotFound("no such image")
        root, folder = self._place.root, posixpath.dirname(self._place.path)
        denied: SearchError = NotFound(f"no image at {source[:200]!r}")
        for path in self._candidates(source.replace("\\", "/"), folder, is_wiki=is_wiki):
            if path.startswith("../") or path == "..":
                denied = AccessDenied("it lies outside the root")
                continue
            try:
                return locate_attachment(path, root)
            except NotFound:
                continue
            except AccessDenied as error:
                denied = error
        if not isinstance(denied, NotFound):
            raise denied
        found = self._by_name(root, source, folder) if is_wiki else self._spelled_so(root, source, folder)
        if not found:
            raise denied
        return locate_attachment(found, root)

    def _candidates(self, source: str, folder: str, *, is_wiki: bool) -> list[str]:
        beside = posixpath.normpath(posixpath.join(folder, source.lstrip("/") if is_wiki else source))
        from_root = posixpath.normpath(source.lstrip("/"))
        if is_wiki:
            paths = [from_root, beside]
        elif source.startswith("/"):
            paths = [from_root]
        else:
            paths = [beside]
        if "?" in source or "#" in source:
            bare = source.partition("?")[0].partition("#")[0]
            paths += self._candidates(bare, folder, is_wiki=is_wiki) if bare else []
        return list(dict.fromkeys(paths))

    def _by_name(self, root: Root, source: str, folder: str) -> str:
        """Find a file anywhere in the root by its name, as Obsidian does: the nearest, then the first."""
        found = self._files_named(root, source)
        return min(found, key=lambda p: (posixpath.dirname(p) != folder, p.count("/"), p), default="")

    def _spelled_so(self, root: Root, source: str, folder: str) -> str:
        """Find a file by its path in other letter case or form, as systems that do not tell them apart."""
        wanted = {
            _spelled(path) for path in self._candidates(source.replace("\\", "/"), folder, is_wiki=False)
        }
        return next(
            (path for path in sorted(self._files_named(root, source)) if _spelled(path) in wanted), ""
        )

    def _files_named(self, root: Root, source: str) -> list[str]:
        if self._named is None:
            self._named = _files_by_name(root.path)
        name = posixpath.basename(source.replace("\\", "/"))
        names = (name, name.partition("?")[0].partition("#")[0])
        return next(filter(None, (self._named.get(_spelled(one)) for one in names)), [])


def _is_wiki(image: Image) -> bool:
    return image.raw.startswith("![[")


def _spelled(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _files_by_name(root: Path) -> dict[str, list[str]]:
    named: dict[str, list[str]] = {}
    count = 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        inside = Path(folder).relative_to(root).as_posix()
        for name in names:
            named.setdefault(_spelled(name), []).append(name if inside == "." else f"{inside}/{name}")
        count += len(names)
        if count > _MAX_WALKED:
            break
    return named
