"""Reading for programs that need no service: one file or folder, no index, typed results.

Each function reads the file as it is now. The folder of the file is the root: images outside it are not read.
"""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from searchsvc.answering.outlines import make_file_index
from searchsvc.config import Config, make_root
from searchsvc.documents import Documents
from searchsvc.errors import NotFound
from searchsvc.items import FileIndex, Reply, Tree
from searchsvc.library import Library
from searchsvc.reading.decode import Text, split_lines
from searchsvc.reading.outline import outline_of

_ALL = 100_000


def index_text(text: str, name: str = "text.md") -> FileIndex:
    """Return one row for each section of a Markdown text: heading, line, images, characters, tokens, id."""
    lines = split_lines(text)
    return make_file_index(name, outline_of(name, Text(lines)), lines)


def index_file(path: str | PathLike[str]) -> FileIndex:
    """Return one row for each section of a file; raises ``SearchError`` when it cannot be read."""
    documents, name = _open(path)
    return documents.index(name)[0]


def index_folder(path: str | PathLike[str]) -> list[FileIndex]:
    """Return the index of every note under a folder, in path order; those that cannot be read say why."""
    return _desk(Path(path)).index(".")


def tree(path: str | PathLike[str]) -> Tree:
    """Return the headings of a file with lines and token costs."""
    documents, name = _open(path)
    return documents.tree(name)


def section(
    path: str | PathLike[str], heading: str, *, include_subsections: bool = True, max_tokens: int = _ALL
) -> Reply:
    """Return one section of a file, verbatim, by id, heading or a part of it."""
    documents, name = _open(path)
    return documents.md_section(name, heading, include_subsections=include_subsections, max_tokens=max_tokens)


def read(
    path: str | PathLike[str],
    *,
    section: str = "",
    lines: Sequence[int] | None = None,
    max_images: int = 10,
    max_tokens: int = _ALL,
) -> Reply:
    """Return a file, or a section or lines of it, with its pictures between the texts."""
    documents, name = _open(path)
    return documents.read_md_with_images(
        name, section=section, line_range=lines, max_images=max_images, max_tokens=max_tokens
    )


def _open(path: str | PathLike[str]) -> tuple[Documents, str]:
    file = Path(path).expanduser()
    if not file.is_file():
        raise NotFound(f"{str(path)!r} is no file; give the path of a Markdown file")
    return _desk(file.parent), file.name


def _desk(folder: Path) -> Documents:
    root = make_root(folder)
    config = Config(roots=(root,), max_reply_tokens=_ALL)
    return Documents(Library(config.roots, config), config)
