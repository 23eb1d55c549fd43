"""Title, author and language of a PDF, as it says itself, without what is none."""

import re
from dataclasses import dataclass
from typing import Any

from searchsvc.importing.pdf_headings import clean

_LONGEST = 500
_PROGRAM = re.compile(
    r"(?:microsoft\s+)?(?:(?:office\s+)?word|powerpoint|excel|publisher|visio) - |print(?:ing)? - ",
    re.IGNORECASE,
)
_MODE = re.compile(
    r"\s*[\[(](?:compatibility mode|read-only|kompatibilitätsmodus|mode de compatibilité)[\])]$", re.I
)
_ENDS = " \t\"'`´„“”‚‘’«»‹›()[]{}<>*_.,:;!?#-–—"
"""What placeholders are put between."""
_NOBODY = r"anonymous|anonym|unknown|unbekannt|unspecified|undefined|none|null|nil|n/?a|not set|default"
_NO_TITLE = re.compile(
    rf"(?:(?:{_NOBODY}|(?:no|new|my|blank|your|insert)? ?(?:title|document|file|name)s?(?: here)?"
    r"|untitled(?: document)?"
    r"|unbenannt(?:es dokument)?|ohne titel|dokument|sans titre|sin título|senza titolo|sem título|naamloos"
    r"|без (?:имени|названия)|无标题|無標題|未命名|無題|名称未設定|about:blank"
    r"|(?:power ?point )?pr[eä]sentation"
    r"|slide|folie|book|mappe|sheet|page|seite|scan|img|image|layout|print(?:out)?|test|temp|tmp|doc|pdf)"
    # A name that a program counts up is none, with or without a number.
    r"[\W\d_]*"
    r"|[\W\d_]*"
    # Addresses, paths and names of files.
    r"|(?:https?|file|ftp)://\S*|[a-z]:[\\/].*|/\S+/.*|\S+_\S*"
    r"|\S+\.(?:html?|php|aspx?|ps|tex|dvi|md|xml|eps|jpe?g|png|tiff?)"
    r"|.*\.(?:pdf|docx?|docm|dotx?|pptx?|pps|xlsx?|odt|odp|ods|rtf|txt|indd|qxd|pmd|fm|wpd|pub|vsdx?|pages|key))",
    re.IGNORECASE,
)
_NO_AUTHOR = re.compile(
    rf"(?:{_NOBODY}|(?:(?:microsoft )?office |windows |registered |default |your )?"
    r"(?:users?|name|author|owner|autor|benutzer)|admin(?:istrat(?:or|eur))?|root|guest|me|pc|home|scanner"
    r"|author name)?[\W\d_]*",
    re.IGNORECASE,
)
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
    title = _MODE.sub("", _PROGRAM.sub("", _value(document, "Title")))
    names = [part.strip(" ,") for part in re.split(r"\s*;\s*", _value(document, "Author"))]
    return Facts(
        "" if _NO_TITLE.fullmatch(title.strip(_ENDS)) else title,
        ", ".join(name for name in names if not _NO_AUTHOR.fullmatch(name.strip(_ENDS))),
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
