"""Front matter -> what is known of a document: author, language, file type, dates, pages.

What an import has written is believed only where all marks of an import are there; any note may have a
property that is called ``source``.
"""

import re
from typing import Any, get_args

from searchsvc.items import FileType, Metadata
from searchsvc.reading.frontmatter import FrontMatter

_LANGUAGE = re.compile(r"[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8}){0,8}")
_DATE = re.compile(r"\d{4}(-\d{2}(-\d{2}([T ]\d{2}:\d{2}(:\d{2})?.{0,12})?)?)?")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MAX_AUTHOR = 300
_MAX_SOURCE = 8_000
_MAX_PAGES = 10_000_000
"""More is no number of pages, and may be more than the index holds."""


def read_metadata(front: FrontMatter) -> Metadata:
    """Return what the front matter of a note says of the document."""
    if not front.properties:
        return Metadata()
    texts = {key.lower(): values for key, values in reversed(front.texts.items())}

    def first(*names: str) -> tuple[str, ...]:
        return next((tuple(texts[name]) for name in names if texts.get(name)), ())

    author = ", ".join(first("author", "authors", "creator"))
    language = " ".join(first("language", "lang"))
    created = " ".join(first("created", "date", "published"))
    said = Metadata(
        author=" ".join(author.split())[:_MAX_AUTHOR],
        language=language if _LANGUAGE.fullmatch(language) else "",
        created=created if _DATE.fullmatch(created) else "",
    )
    return _imported(said, front.properties) if _is_import(front.properties) else said


def _is_import(properties: dict[str, Any]) -> bool:
    return (
        isinstance(properties.get("importer"), int)
        and properties.get("file_type") in get_args(FileType)
        and _SHA256.fullmatch(str(properties.get("sha256"))) is not None
    )


def _imported(said: Metadata, properties: dict[str, Any]) -> Metadata:
    pages, imported, source = (properties.get(name) for name in ("pages", "imported_at", "source"))
    return Metadata(
        author=said.author,
        language=said.language,
        file_type=properties["file_type"],
        created=said.created,
        imported=imported if isinstance(imported, str) and _DATE.fullmatch(imported) else "",
        pages=pages if type(pages) is int and 0 < pages <= _MAX_PAGES else 0,
        source=source[:_MAX_SOURCE] if isinstance(source, str) else "",
    )
