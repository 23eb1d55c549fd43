"""What every importer makes of a file, and how much it may take for that."""

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["markdown", "pdf", "epub"]

VERSION = 2
"""Of the importers. Raised whenever one of them makes something else of the same file."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a file may have at most; beyond it a file is refused, or cut with a notice."""

    file_bytes: int = 500_000_000
    """Of the file itself."""
    unpacked_bytes: int = 1_000_000_000
    """Of all that is unpacked from an archive."""
    pages: int = 10_000
    image_bytes: int = 20_000_000
    """Of one image; larger ones are left out with a notice."""
    images: int = 5_000
    """In one document."""
    text_characters: int = 50_000_000
    """Of the Markdown."""


@dataclass(frozen=True, slots=True)
class Asset:
    """An image of a document."""

    name: str
    """File name below ``assets/``; made by the importer, never taken from the document as it is."""
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Book:
    """A document as Markdown."""

    kind: Kind
    markdown: str
    """Without front matter; images as ``![caption](assets/name)``; before the first text of every page of a
    document that has pages stands a line ``<!-- page N -->``, N counted from 1."""
    title: str = ""
    """As the document says, else of its first heading; empty when neither tells."""
    author: str = ""
    """All authors, joined by ``", "``."""
    language: str = ""
    """BCP 47 tag as the document says."""
    assets: tuple[Asset, ...] = ()
    notices: tuple[str, ...] = ()
    """What could not be had, for people: ``12 of 80 pages have no text layer``."""
    pages: int = 0
    """How many pages it has; 0 for a document without pages."""
