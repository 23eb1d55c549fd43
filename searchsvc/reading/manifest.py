"""The optional index files of a folder -> documents and images by id, with every problem named.

``index.json`` holds ``{"documents": [{id, path, title, summary, approx_tokens}]}`` and ``images/index.json``
holds ``{"images": [{id, file, caption}]}``. Both are validated whole at each call; sound entries count.
"""

import json
import posixpath
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from searchsvc.config import Config, Root
from searchsvc.errors import NotFound, ReadingError
from searchsvc.reading.access import Place, locate, locate_attachment, read_bytes

_MAX_PROBLEMS = 100
_MAX_PROBLEM = 200

Entry = TypeVar("Entry", "DocumentEntry", "ImageEntry")


@dataclass(frozen=True, slots=True)
class DocumentEntry:
    """A document as its folder's index describes it."""

    id: str
    path: str
    """Relative to the root."""
    title: str = ""
    summary: str = ""
    approx_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ImageEntry:
    """An image as its folder's index describes it."""

    id: str
    file: str
    """Relative to the root."""
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the index files of a root say."""

    documents: tuple[DocumentEntry, ...] = ()
    images: tuple[ImageEntry, ...] = ()
    problems: tuple[str, ...] = ()
    """One line each: the file, the entry, what was found and expected."""


def read_manifest(root: Root, config: Config) -> Manifest | None:
    """Read the index files of a root as they are now; none when it has neither."""
    problems: list[str] = []
    documents = _entries(config.documents_index, "documents", root, config, problems)
    images = _entries(config.images_index, "images", root, config, problems)
    if documents is None and images is None:
        return None
    made = Manifest(
        documents=_checked(
            documents or [], config.documents_index, "documents", problems, _document(root, config)
        ),
        images=_checked(images or [], config.images_index, "images", problems, _image(root, config)),
    )
    left = len(problems) - _MAX_PROBLEMS
    shown = [problem[:_MAX_PROBLEM] for problem in problems[:_MAX_PROBLEMS]]
    return Manifest(
        made.documents, made.images, (*shown, *([f"and {left} problems more"] if left > 0 else []))
    )


def _entries(name: str, field: str, root: Root, config: Config, problems: list[str]) -> list[Any] | None:
    """Return the entries of an index file, or none when there is no such file."""
    try:
        place = locate_attachment(name, root)
        data = read_bytes(place, config, config.max_index_file_bytes)
    except NotFound:
        return None
    except ReadingError as error:
        problems.append(f"{name}: {error}")
        return []
    try:
        value = json.loads(data.decode("utf-8-sig"), object_pairs_hook=_Pairs, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        problems.append(f"{name}: no JSON: {error.msg} in line {error.lineno}, column {error.colno}")
    except UnicodeDecodeError:
        problems.append(f"{name}: is not UTF-8")
    except (ValueError, RecursionError) as error:
        problems.append(f"{name}: no JSON that is read: {str(error) or 'nested too deeply'}")
    else:
        entries = value.get(field) if isinstance(value, dict) else None
        if isinstance(entries, list):
            return entries
        problems.append(f'{name}: expected {{"{field}": [...]}}, found {_kind(value)}')
    return []


class _Pairs(dict[str, Any]):
    """An object that remembers which keys it had twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        seen: set[str] = set()
        self.twice = [key for key, _ in pairs if key in seen or seen.add(key)]  # type: ignore[func-returns-value]


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _checked(
    entries: list[Any], name: str, field: str, problems: list[str], make: Callable[[Any], Entry]
) -> tuple[Entry, ...]:
    """Return the entries without fault; ids must differ, and so must what they name."""
    made: list[Entry] = []
    ids: dict[str, int] = {}
    targets: dict[str, int] = {}
    for number, entry in enumerate(entries):
        where = f"{name}: {field}[{number}]"
        try:
            if not isinstance(entry, dict):
                raise ReadingError(f"is {_kind(entry)}, expected an object")
            where += f" (id {entry['id']!r:.60})" if "id" in entry else ""
            if getattr(entry, "twice", None):
                raise ReadingError(f"has {entry.twice[0]!r:.60} twice")  # type: ignore[attr-defined]
            item = make(entry)
            target = item.path if isinstance(item, DocumentEntry) else ""
            for known, key in ((ids, item.id), (targets, target)):
                if key and key in known:
                    raise ReadingError(f"repeats {key!r:.60} of {field}[{known[key]}]")
            ids[item.id] = number
            targets[target] = number
            made.append(item)
        except ReadingError as error:
            problems.append(f"{where} {error}")
        except NotFound as error:
            problems.append(f"{where}: {error}")
    return tuple(made)


def _document(root: Root, config: Config) -> Callable[[dict[str, Any]], DocumentEntry]:
    def make(entry: dict[str, Any]) -> DocumentEntry:
        identity, path = _text(entry, "id", required=True), _text(entry, "path", required=True)
        tokens = entry.get("approx_tokens")
        if tokens is not None and (isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 0):
            raise ReadingError(f"approx_tokens is {_kind(tokens)}, expected a whole number of at least 0")
        place = locate(_tidy(path), root, config)
        return DocumentEntry(
            _identity(identity), place.path, _text(entry, "title"), _text(entry, "summary"), tokens
        )

    return make


def _image(root: Root, config: Config) -> Callable[[dict[str, Any]], ImageEntry]:
    folder = posixpath.dirname(config.images_index)

    def make(entry: dict[str, Any]) -> ImageEntry:
        identity, file = _text(entry, "id", required=True), _tidy(_text(entry, "file", required=True))
        place = _located(file, folder, root)
        return ImageEntry(_identity(identity), place.path, _text(entry, "caption"))

    return make


def _located(file: str, folder: str, root: Root) -> Place:
    """Find an image relative to the root, else beside its index."""
    try:
        return locate_attachment(file, root)
    except NotFound:
        return locate_attachment(posixpath.join(folder, file), root)


def _tidy(path: str) -> str:
    if ".." in path.split("/"):
        raise ReadingError(f"path {path!r:.80} has '..' in it")
    return path


def _identity(text: str) -> str:
    if not text.strip() or "#" in text or not text.isprintable():
        raise ReadingError("id is empty or has '#' or control characters")
    return text


def _text(entry: dict[str, Any], name: str, *, required: bool = False) -> str:
    if name not in entry:
        if required:
            raise ReadingError(f"has no {name!r}")
        return ""
    if not isinstance(entry[name], str):
        raise ReadingError(f"{name} is {_kind(entry[name])}, expected text")
    if required and not entry[name].strip():
        raise ReadingError(f"{name} is empty")
    return str(entry[name])


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return kinds.get(dict if isinstance(value, dict) else type(value), f"{value!r:.20}")
