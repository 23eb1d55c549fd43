"""The optional index files of a folder -> documents and images by id, with every problem named.

``index.json`` holds ``{"documents": [{id, path, title, summary, approx_tokens}]}`` and ``images/index.json``
holds ``{"images": [{id, file, caption}]}``. Both are validated whole at each call; sound entries count.
"""

import json
import posixpath
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from searchsvc.config import Config, Root
from searchsvc.errors import NotFound, ReadingError, SearchError
from searchsvc.reading.access import Place, locate, locate_attachment, read_bytes
from searchsvc.reading.ignore import IgnoreRules

_MAX_PROBLEMS, _MAX_PROBLEM, _MAX_SHOWN = 100, 200, 60
_MAX_TOKENS = 10**12
_CONTROLS = frozenset(("Cc", "Cs", "Zl", "Zp"))
"""Categories of what breaks lines, or is no character at all."""
_TURNS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Turn the direction of what is shown after them."""

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
    """What the index files of a folder say."""

    documents: tuple[DocumentEntry, ...] = ()
    images: tuple[ImageEntry, ...] = ()
    problems: tuple[str, ...] = ()
    """One line each: the file, the entry, what was found and expected."""


def read_manifest(root: Root, config: Config, folder: str = "") -> Manifest | None:
    """Read the index files of a folder as they are now; none when it has neither.

    ``folder`` is relative to the root, empty for the root itself; paths in the files are relative to it.
    """
    problems, rules = _Problems(), IgnoreRules(root.path, config)
    folder = folder.strip("/")

    def find_document(path: str) -> Place:
        return locate(posixpath.join(folder, path), root, config, rules)

    def find_image(file: str) -> Place:
        """Find an image relative to the folder, else beside its index."""
        try:
            return locate_attachment(posixpath.join(folder, file), root)
        except NotFound as missing:
            beside = posixpath.join(folder, posixpath.dirname(config.images_index), file)
            try:
                return locate_attachment(beside, root)
            except NotFound:
                raise missing from None

    documents = _entries(config.documents_index, "documents", folder, root, config, problems)
    made = _checked(documents or [], problems, lambda entry: _document(entry, find_document))
    images = _entries(config.images_index, "images", folder, root, config, problems)
    if documents is None and images is None:
        return None
    return Manifest(
        made, _checked(images or [], problems, lambda entry: _image(entry, find_image)), problems.told()
    )


class _Problems:
    """Problems, as many as are listed; the others are counted."""

    def __init__(self) -> None:
        self.where = ""
        """The file and its field, such as ``index.json: documents``."""
        self._lines: list[str] = []
        self._count = 0

    def add(self, problem: str) -> None:
        self._count += 1
        if len(self._lines) < _MAX_PROBLEMS:
            line = " ".join("".join(" " if _is_control(sign) else sign for sign in problem).split())
            self._lines.append(line if len(line) <= _MAX_PROBLEM else f"{line[: _MAX_PROBLEM - 1]}…")

    def told(self) -> tuple[str, ...]:
        more = self._count - len(self._lines)
        return (*self._lines, *([f"and {more} more"] if more else ()))


class _Pairs(dict[str, Any]):
    """An object of JSON that remembers which keys it had twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.twice: list[str] = []
        if len(self) < len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen and key not in self.twice:
                    self.twice.append(key)
                seen.add(key)


def _entries(
    name: str, field: str, folder: str, root: Root, config: Config, problems: _Problems
) -> list[Any] | None:
    """Return the entries of an index file, or none when there is no such file."""
    name = posixpath.join(folder, name)
    problems.where = f"{name}: {field}"
    try:
        data = read_bytes(locate_attachment(name, root), config, config.max_index_file_bytes)
    except NotFound:
        return None
    except ReadingError as error:
        problems.add(f"{name}: {str(error).removeprefix(f'{name}: ')}")
        return []
    try:
        value = json.loads(data.decode("utf-8-sig"), object_pairs_hook=_Pairs, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        problems.add(f"{name}: is no JSON: {error.msg} in line {error.lineno}, column {error.colno}")
    except UnicodeDecodeError as error:
        problems.add(f"{name}: is not UTF-8 from byte {error.start} on")
    except RecursionError:
        problems.add(f"{name}: is nested too deeply, expected a list of objects")
    except _NoNumber as error:
        problems.add(f"{name}: is no JSON: {error} is no number of it")
    except ValueError:  # Python's limit for turning digits into a number
        problems.add(f"{name}: has a number of thousands of digits")
    else:
        for key in value.twice if isinstance(value, _Pairs) else ():
            problems.add(f"{name}: has the key {_quoted(key)} twice")
        entries = value.get(field) if isinstance(value, dict) else None
        if isinstance(entries, list):
            return entries
        held = _kind(entries) if isinstance(value, dict) and field in value else "nothing"
        found = f"{held} there" if isinstance(value, dict) else _kind(value)
        problems.add(f'{name}: expected {{"{field}": [...]}}, found {found}')
    return []


class _NoNumber(ValueError):
    """``NaN`` or ``Infinity``, which Python would read."""


def _refuse(constant: str) -> None:
    raise _NoNumber(constant)


class _Fields:
    """The fields of one entry; what is wrong with them is collected."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values
        self.faults = [f"has the key {_quoted(key)} twice" for key in getattr(values, "twice", ())]

    def text(self, name: str, *, required: bool = False) -> str:
        """Return a text, empty when it is missing or no text."""
        value = self._values.get(name, None if required else "")
        if name not in self._values and required:
            self.faults.append(f"{name} is missing")
        elif not isinstance(value, str):
            self.faults.append(f"{name} is {_kind(value)}, expected text")
        elif required and not value.strip():
            self.faults.append(f"{name} is empty")
        elif not _is_whole(value):
            self.faults.append(f"{name} has half of a character in it (a lone surrogate)")
        else:
            return value
        return ""

    def identity(self) -> str:
        """Return the id, empty when it cannot be one."""
        identity = self.text("id", required=True)
        if "#" in identity or any(map(_is_control, identity)):
            self.faults.append("id has '#' or control characters in it, which no id may have")
            return ""
        return identity

    def tokens(self) -> int | None:
        """Return the number of tokens, none when it is missing."""
        value = self._values.get("approx_tokens")
        if value is None or (
            isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_TOKENS
        ):
            return value
        self.faults.append(
            f"approx_tokens is {_kind(value)}, expected a whole number from 0 to {_MAX_TOKENS}"
        )
        return None

    def place(self, name: str, find: Callable[[str], Place]) -> str:
        """Return the path of the file that a field names, relative to the root; empty when it is refused."""
        asked = self.text(name, required=True)
        if not asked:
            return ""
        if ".." in asked.split("/"):
            leaves = posixpath.normpath(asked).startswith("..")
            why = "leads outside the root" if leaves else "has '..' in it, expected a plain path"
            self.faults.append(f"{name} {_quoted(asked)} {why}")
            return ""
        try:
            return find(asked).path
        except SearchError as error:
            # A long path would push the reason out of the line.
            self.faults.append(f"{name}: {str(error).replace(asked[:200], asked[:_MAX_SHOWN])}")
        return ""


def _document(fields: _Fields, find: Callable[[str], Place]) -> DocumentEntry:
    return DocumentEntry(
        fields.identity(),
        fields.place("path", find),
        fields.text("title"),
        fields.text("summary"),
        fields.tokens(),
    )


def _image(fields: _Fields, find: Callable[[str], Place]) -> ImageEntry:
    return ImageEntry(fields.identity(), fields.place("file", find), fields.text("caption"))


def _checked(entries: list[Any], problems: _Problems, make: Callable[[_Fields], Entry]) -> tuple[Entry, ...]:
    """Return the entries without fault; no two have one id, nor do two documents have one path."""
    sound: list[Entry] = []
    first: dict[tuple[str, str], int] = {}
    field = problems.where.rpartition(" ")[2]
    for number, values in enumerate(entries):
        where = f"{problems.where}[{number}]"
        if not isinstance(values, dict):
            problems.add(f"{where}: is {_kind(values)}, expected an object")
            continue
        fields = _Fields(values)
        item = make(fields)
        names = {"id": item.id, "path": item.path if isinstance(item, DocumentEntry) else ""}
        for kind, name in names.items():
            if name and first.setdefault((kind, name), number) != number:
                fields.faults.append(f"{kind} {_quoted(name)} repeats that of {field}[{first[kind, name]}]")
        if not fields.faults:
            sound.append(item)
        shown = f" (id {_quoted(values['id'])})" if isinstance(values.get("id"), str) else ""
        for fault in fields.faults:
            problems.add(f"{where}{shown}: {fault}")
    return tuple(sound)


def _is_control(sign: str) -> bool:
    return sign in _TURNS or unicodedata.category(sign) in _CONTROLS


def _is_whole(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…")


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    kinds = {list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), f"{value!r:.20}")
