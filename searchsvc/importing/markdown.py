"""A Markdown file -> a book: what its front matter says, and its images beside it.

Images are taken from files within the folder of the document only, after all symbolic links, and only when
their bytes are those of an image. Every other reference stays as it is written.
"""

import os
import re
import stat
import unicodedata
from collections import Counter
from collections.abc import Iterator
from html import escape
from itertools import islice
from pathlib import Path

from searchsvc.errors import ReadingError
from searchsvc.importing.base import Asset, Book, Limits
from searchsvc.items import Image
from searchsvc.reading.decode import decode
from searchsvc.reading.frontmatter import read_front_matter
from searchsvc.reading.links import read_images
from searchsvc.reading.metadata import read_metadata
from searchsvc.reading.note import front_title
from searchsvc.reading.structure import read_structure

_ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:|//|\\\\|image:")
"""An address, data in the text, or the id of an image."""
_MAGIC = (
    (".png", re.compile(rb"\x89PNG\r\n\x1a\n")),
    (".jpg", re.compile(rb"\xff\xd8\xff")),
    (".gif", re.compile(rb"GIF8[79]a")),
    (".webp", re.compile(rb"RIFF....WEBP", re.DOTALL)),
    (".avif", re.compile(rb"....ftyp(?:avif|avis|mif1|msf1)", re.DOTALL)),
    (".bmp", re.compile(rb"BM.{4}\x00\x00\x00\x00", re.DOTALL)),
    (".tif", re.compile(rb"II[*+]\x00|MM\x00[*+]")),
    (".svg", re.compile(rb"(\xef\xbb\xbf)?\s*<(svg[\s>]|(\?xml|!).{0,2000}?<svg[\s>])", re.DOTALL)),
)  # fmt: skip
_OURS = re.compile(r"assets/(image-\d{4,9})", re.IGNORECASE)
"""Names as those of copies. Where a document has them already, they are not given again."""
_SIZE = re.compile(r"(?:^|\s*\\?\|)\s*\d{1,5}(?:x\d{1,5})?\s*$")
"""How large an image is to be drawn, which stands where its caption does."""
_SNIFFED_BYTES = 4_096
_MAX_SEARCHED = 20_000
"""Files below the folder of a document among which one is looked for that is not where it is said."""
_MAX_NAME = 80


def convert(data: bytes, limits: Limits, folder: Path) -> Book:
    """Return the book in a Markdown file that lies in ``folder``.

    Raises ``ReadingError`` when the bytes are no text, or are beyond a limit.
    """
    if len(data) > limits.file_bytes:
        raise ReadingError(f"{len(data):,} bytes, at most {limits.file_bytes:,} are read; split the file")
    text = decode(data)
    front = read_front_matter(text.lines)
    structure = read_structure(text.lines, front.lines + 1)
    found = _Images(folder, limits, {name.lower() for line in text.lines for name in _OURS.findall(line)})
    body = _rewritten(text.lines, front.lines + 1, read_images(structure), found)
    if len(body) > limits.text_characters:
        raise ReadingError(
            f"{len(body):,} characters, at most {limits.text_characters:,} are read; split the file"
        )
    heading = structure.headings[0].title if structure.headings else ""
    about = read_metadata(front)
    problems = (text.problem, front.problem)
    return Book(
        kind="markdown",
        markdown=body,
        title=front_title(front) or heading,
        author=about.author,
        language=about.language,
        assets=tuple(found.assets),
        notices=(*(problem for problem in problems if problem), *found.notices()),
    )


def _rewritten(lines: tuple[str, ...], first_line: int, images: list[Image], found: "_Images") -> str:
    """Return the text from ``first_line`` on, with references to copied images leading to the copies."""
    text = "\n".join(lines[first_line - 1 :])
    starts, at = list[int](), 0
    for line in lines[first_line - 1 :]:
        starts.append(at)
        at += len(line) + 1
    starts.append(at)
    pieces, done = [], 0
    for image in sorted(images, key=lambda image: image.line):
        row = image.line - first_line
        span = _find(image.raw, text, max(done, starts[row]), starts[row + 1])
        if span is None:
            continue
        name = found.take(image.source, by_name=image.raw.startswith("![["))
        if name:
            pieces += [text[done : span[0]], _reference(image, name)]
            done = span[1]
    return "".join([*pieces, text[done:]])


def _find(raw: str, text: str, start: int, stop: int) -> tuple[int, int] | None:
    """Return where a reference stands that begins between two places.

    Between its lines there may be the marks of quotes and lists, which are not in ``raw``.
    """
    if not raw:
        return None
    begin = text.find(raw, start, stop + len(raw))
    if 0 <= begin < stop:
        return begin, begin + len(raw)
    first, *rest = raw.split("\n")
    if not rest:
        return None
    begin = text.find(first, start, stop)
    pattern = "\n[ \t>]*".join(re.escape(line.strip()) for line in (first, *rest))
    found = re.compile(pattern).match(text, begin) if begin >= 0 else None
    return found.span() if found else None


def _reference(image: Image, name: str) -> str:
    alt = " ".join(_SIZE.sub("", image.alt).split("\n"))
    if image.raw.startswith("<"):
        return f'<img src="assets/{name}" alt="{escape(alt)}">'
    return f"![{alt}](assets/{name})"


class _Images:
    """Copies of the images of one document, each file once."""

    def __init__(self, folder: Path, limits: Limits, taken: set[str]) -> None:
        """``taken`` are names that the document has itself, without suffix."""
        self.assets: list[Asset] = []
        self._folder = os.path.realpath(folder)
        self._limits = limits
        self._taken = taken
        self._number = 0
        self._below: dict[str, list[str]] | None = None
        self._left = limits.unpacked_bytes
        self._names: dict[str, str] = {}
        """By real path."""
        self._refused: Counter[str] = Counter()
        self._examples: dict[str, str] = {}

    def take(self, source: str, *, by_name: bool = False) -> str:
        """Return the name of the copy of an image; empty when its reference stays as it is.

        ``by_name`` says that it may lie in any folder below, as an embed of Obsidian does.
        """
        if _ELSEWHERE.match(source):
            return ""
        try:
            return self._copy(source, by_name)
        except ReadingError as error:
            self._refused[str(error)] += 1
            self._examples.setdefault(str(error), source[:_MAX_NAME])
        return ""

    def notices(self) -> list[str]:
        """Say which references stay as they were, by reason."""
        return [
            f"{count} image{'s' if count > 1 else ''} not copied: {reason} ({self._examples[reason]}"
            f"{', …' if count > 1 else ''})"
            for reason, count in self._refused.items()
        ]

    def _copy(self, source: str, by_name: bool) -> str:
        real = self._real(source, by_name)
        if real in self._names:
            return self._names[real]
        if len(self.assets) >= self._limits.images:
            raise ReadingError(f"more than {self._limits.images:,} images")
        data = self._read(real)
        suffix = next((suffix for suffix, magic in _MAGIC if magic.match(data[:_SNIFFED_BYTES])), "")
        if not suffix:
            raise ReadingError("not an image by its bytes")
        self._left -= len(data)
        name = f"{self._new_stem()}{suffix}"
        self.assets.append(Asset(name, data))
        self._names[real] = name
        return name

    def _new_stem(self) -> str:
        while True:
            self._number += 1
            if (stem := f"image-{self._number:04}") not in self._taken:
                return stem

    def _real(self, source: str, by_name: bool) -> str:
        """Return the real path of a file inside the folder; ``?`` and ``#`` may belong to its name."""
        for name in dict.fromkeys((source, re.split(r"[?#]", source, maxsplit=1)[0])):
            try:
                real = os.path.realpath(os.path.join(self._folder, name))
            except (OSError, ValueError):
                continue
            if not Path(real).is_relative_to(self._folder):
                raise ReadingError("outside the folder of the document")
            if os.path.isfile(real):
                return real
        if found := self._alike(source, by_name):
            return found
        raise ReadingError("no such file")

    def _alike(self, source: str, by_name: bool) -> str:
        """Return a file whose name differs in letter case, in how accents are written or in slashes.

        Files are looked up by the end of their path; of several, the one that is least deep is meant.
        """
        wanted = _folded(os.path.normpath(source.replace("\\", "/")))
        if self._below is None:
            self._below = _files_below(self._folder)
        for path in self._below.get(os.path.basename(wanted), ()):
            folded = _folded(path)
            if folded == wanted or (by_name and folded.endswith("/" + wanted)):
                real = os.path.realpath(os.path.join(self._folder, path))
                if Path(real).is_relative_to(self._folder) and os.path.isfile(real):
                    return real
        return ""

    def _read(self, real: str) -> bytes:
        limit = self._limits.image_bytes
        flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
        try:
            with open(os.open(real, flags | getattr(os, "O_NONBLOCK", 0)), "rb") as stream:
                status = os.fstat(stream.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise ReadingError("no such file")
                if status.st_size > limit:
                    raise ReadingError(f"more than {limit:,} bytes")
                if status.st_size > self._left:
                    raise ReadingError(
                        f"all images together are more than {self._limits.unpacked_bytes:,} bytes"
                    )
                return stream.read(limit)
        except OSError as error:
            raise ReadingError(f"cannot be read: {error.strerror}") from error


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", path).casefold()


def _files_below(folder: str) -> dict[str, list[str]]:
    """Return the relative paths of files by their name, least deep first; no link to a folder is followed."""
    paths = sorted(islice(_walk(folder), _MAX_SEARCHED), key=lambda path: (path.count("/"), path))
    found: dict[str, list[str]] = {}
    for path in paths:
        found.setdefault(_folded(os.path.basename(path)), []).append(path)
    return found


def _walk(folder: str) -> Iterator[str]:
    for above, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        inner = os.path.relpath(above, folder).replace(os.sep, "/")
        yield from (name if inner == "." else f"{inner}/{name}" for name in names)
