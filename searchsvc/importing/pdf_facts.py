"""Title, author and language of a PDF, as it says itself, without what is none."""

import re
from dataclasses import dataclass
from typing import Any

from searchsvc.importing.pdf_headings import clean

_LONGEST = 500
_PROGRAM = re.compile(r"(?:microsoft )?(?:word|powerpoint|excel) - ", re.IGNORECASE)
_NO_TITLE = re.compile(
    r"(?:untitled|unbenannt|no title|title|document)[\W\d_]*|\S+\.(?:pdf|ps|tex|dvi|html?|txt)|[\W\d_]*"
    r"|.*\.(?:docx?|docm|pptx?|xlsx?|odt|rtf|indd|qxd)",
    re.IGNORECASE,
)
_NO_AUTHOR = re.compile(r"(?:anonymous|unknown|user|admin(?:istrator)?|author)?", re.IGNORECASE)
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*")


@dataclass(frozen=True, slots=True)
class Facts:
    """What a document says of itself; empty where it says nothing useful."""

    title: str
    author: str
    language: str


def read_facts(pdfium: Any, document: Any) -> Facts:
    """Return the facts of an open document; ``pdfium`` is the module ``pypdfium2.raw``."""
    # "Microsoft Word - Annual report" holds a title, "Microsoft Word - report.doc" a file name.
    title = _PROGRAM.sub("", _value(document, "Title"))
    names = [part.strip(" ,") for part in re.split(r"\s*;\s*", _value(document, "Author"))]
    return Facts(
        "" if _NO_TITLE.fullmatch(title) else title,
        ", ".join(name for name in names if not _NO_AUTHOR.fullmatch(name)),
        _language(pdfium, document),
    )


def _value(document: Any, key: str) -> str:
    try:
        return clean(document.get_metadata_value(key))[:_LONGEST]
    except UnicodeDecodeError:
        return ""


def _language(pdfium: Any, document: Any) -> str:
    buffer = (pdfium.FPDF_WCHAR * 64)()
    count = pdfium.FPDFCatalog_GetLanguage(document.raw, buffer, 64)
    text = bytes(buffer)[: 2 * max(0, min(count, 64))].decode("utf-16-le", "replace")
    match = _LANGUAGE.fullmatch(clean(text).replace("_", "-"))
    return match[0] if match else ""
