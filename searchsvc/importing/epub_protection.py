"""Copy protection of an EPUB, by the marks it leaves: named and refused, never removed."""

import re

from searchsvc.errors import ReadingError
from searchsvc.importing.epub_xml import decode, parse_xml
from searchsvc.importing.epub_zip import Archive

_FONTS = frozenset(("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#rc"))
"""Ways to obfuscate fonts, in lower case. They touch no text."""
_ENCRYPTION, _RIGHTS = "META-INF/encryption.xml", "META-INF/rights.xml"
_SCHEMES = (
    ("Adobe ADEPT", re.compile(r"ns\.adobe\.com/adept|adobe\.com/digitaleditions", re.IGNORECASE)),
    ("Readium LCP", re.compile(r"readium\.org/\d+/\d+/lcp", re.IGNORECASE)),
    ("Apple FairPlay", re.compile(r"itunes\.apple\.com|fairplay", re.IGNORECASE)),
    ("Kobo DRM", re.compile(r"kobo|kdrm", re.IGNORECASE)),
    ("Marlin DRM", re.compile(r"marlin-drm", re.IGNORECASE)),
)
_MAX_BYTES = 20_000_000


def refuse_protected(archive: Archive) -> None:
    """Raise ``ReadingError`` with the name of the scheme when the book is encrypted; fonts may be."""
    marks = [archive.find(name) for name in ("META-INF/sinf.xml", _RIGHTS)]
    encryption = archive.find(_ENCRYPTION)
    if not any(marks) and not (encryption and _touches_more_than_fonts(archive, encryption)):
        return
    raise ReadingError(
        f"the book is protected by {_scheme(archive)} and cannot be read; searchsvc removes no protection: "
        "get the book without DRM from the shop or the publisher, and import that"
    )


def _touches_more_than_fonts(archive: Archive, name: str) -> bool:
    data = archive.read(name, _MAX_BYTES)
    if data is None:
        return True
    entries = list(parse_xml(data, _ENCRYPTION).iter("EncryptedData"))
    methods = [entry.find("EncryptionMethod") for entry in entries]
    names = ["" if method is None else method.get("Algorithm", "").strip().lower() for method in methods]
    return any(name not in _FONTS for name in names)


def _scheme(archive: Archive) -> str:
    if archive.find("META-INF/license.lcpl"):
        return "Readium LCP"
    if archive.find("META-INF/sinf.xml"):
        return "Apple FairPlay"
    text = "".join(
        decode(archive.read(name, _MAX_BYTES) or b"") for name in (_RIGHTS, _ENCRYPTION) if archive.find(name)
    )
    return next((name for name, mark in _SCHEMES if mark.search(text)), "an unknown DRM scheme")
