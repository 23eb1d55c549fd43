"""Bytes of XML or XHTML -> text, and small XML files -> elements.

Entities that a document declares are never expanded, so none can grow; those that HTML names are known.
"""

import codecs
import re
from html import unescape
from html.entities import html5
from xml.etree import ElementTree

from searchsvc.errors import ReadingError

Element = ElementTree.Element

_DECLARED = re.compile(rb"""^\s*<\?xml[^>]{0,200}?\bencoding\s*=\s*["']([A-Za-z0-9._:\-]{1,40})["']""")
_META = re.compile(rb"""<meta\b[^>]{0,200}?\bcharset\s*=\s*["']?([A-Za-z0-9._:\-]{1,40})""", re.IGNORECASE)
_HEAD_BYTES = 2048
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_NUMBERED_CONTROL = re.compile(
    r"&#0{0,9}(?:[0-8]|1[124-9]|2\d|3[01])(?:;|(?!\d))"
    r"|&#[xX]0{0,9}(?:[0-8bBcCeEfF]|1[\da-fA-F])(?:;|(?![\da-fA-F]))"
)
_REFERENCE = re.compile(r"&(?:([A-Za-z][A-Za-z0-9]{0,40});|#\d{1,7};|#[xX][0-9A-Fa-f]{1,6};)?")
_XML_NAMES = frozenset(("amp", "lt", "gt", "quot", "apos"))
_PREFIX = re.compile(r"\{[^}]*\}")
_CDATA = "<![CDATA["
_SUBSET_SIGN = re.compile(r"""[\]"']|<!--""")
_ENTITY = re.compile(r"""<!ENTITY\s+([\w.:\-]{1,100})\s+(["'])((?:(?!\2)[^<]){0,1000})\2\s*>""")
_OTHER = re.compile(r"&(?!#?\w{1,10};)|&(?!#)(?!(?:amp|lt|gt|quot|apos|nbsp);)")
"""A reference that is not to a character."""
_MAX_SUBSET, _MAX_GROWTH = 100_000, 1_000_000


def decode(data: bytes) -> str:
    """Return the text of a document by its byte order mark, else by the encoding it declares, else UTF-8.

    Characters that XML forbids are taken out.
    """
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            text = data[len(mark) :].decode(encoding, errors="replace")
            break
    else:
        text = _by_declaration(data)
    return _NUMBERED_CONTROL.sub("", _CONTROLS.sub("", text))


def _by_declaration(data: bytes) -> str:
    head = data[:_HEAD_BYTES]
    if head[:4] in (b"<\0?\0", b"\0<\0?"):
        return data.decode("utf-16-le" if head[:1] == b"<" else "utf-16-be", errors="replace")
    found = _DECLARED.search(head) or _META.search(head)
    declared = found.group(1).decode("ascii") if found else "utf-8"
    try:
        return data.decode(declared)
    except (LookupError, ValueError):
        pass  # an unknown encoding, or one that does not fit
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def strip_declarations(text: str) -> str:
    """Take out comments, processing instructions and the document type; CDATA becomes text.

    Done by hand, so that it takes linear time on anything and no parser sees a declaration.
    """
    pieces, done = [], 0
    start = text.find("<")
    while start >= 0:
        stop = start + 1
        if text.startswith((_CDATA, "<!", "<?"), start):
            stop, kept = _declaration(text, start)
            pieces += [text[done:start], kept]
            done = stop
        start = text.find("<", stop)
    return "".join([*pieces, text[done:]])


def _declaration(text: str, start: int) -> tuple[int, str]:
    """Return where the declaration ends, and what stays of it; what never ends, goes on to the end."""
    if text.startswith("<!--", start):
        return _after(text, "-->", start + 2), ""
    if text.startswith(_CDATA, start):
        stop = _after(text, "]]>", start)
        inner = text[start + len(_CDATA) : stop].removesuffix("]]>")
        return stop, inner.replace("&", "&amp;").replace("<", "&lt;")
    if text.startswith("<?", start):
        return _after(text, ">", start), ""
    plain = _after(text, ">", start)
    bracket = text.find("[", start, plain)
    if bracket < 0:
        return plain, ""
    # Brackets and signs in quotes and comments do not end the declarations.
    return _after(text, ">", _end_of_subset(text, bracket + 1)), ""


def _end_of_subset(text: str, start: int) -> int:
    place = start
    while found := _SUBSET_SIGN.search(text, place):
        sign = found.group()
        if sign == "]":
            return found.end()
        end = "-->" if sign == "<!--" else sign
        place = text.find(end, found.end()) + len(end)
        if place < found.end():
            break
    return _after(text, "]", start)


def _after(text: str, mark: str, start: int) -> int:
    place = text.find(mark, start)
    return len(text) if place < 0 else place + len(mark)


def parse_xml(data: bytes, name: str) -> Element:
    """Return the root of a small XML file, names without namespaces.

    Raises ``ReadingError`` when it is no XML or declares entities.
    """
    text = decode(data).lstrip("\ufeff")
    if "<!ENTITY" in text:
        raise ReadingError(f"{name} of the EPUB declares XML entities, which no book needs; it is not read")
    text = resolve_names(strip_declarations(text))
    try:
        root = ElementTree.fromstring(text.strip())
    except (ElementTree.ParseError, ValueError) as error:
        raise ReadingError(f"{name} of the EPUB is no valid XML; download or copy the book again") from error
    for element in root.iter():
        element.tag = _PREFIX.sub("", str(element.tag))
        for key in [key for key in element.attrib if "}" in key]:
            element.attrib.setdefault(_PREFIX.sub("", key), element.attrib[key])
    return root


def declared_entities(text: str) -> dict[str, str]:
    """Return what the document type says of short texts; those made of other ones are not among them."""
    start = text.find("<!DOCTYPE", 0, _HEAD_BYTES)
    if start < 0:
        return {}
    subset = text[start : min(_declaration(text, start)[0], start + _MAX_SUBSET)]
    found = {name: value for name, _, value in _ENTITY.findall(subset)}
    plain = {name: unescape(value) for name, value in found.items() if not _OTHER.search(value)}
    return {name: value for name, value in plain.items() if name not in html5 and name not in _XML_NAMES}


def resolve_names(text: str, declared: dict[str, str] | None = None) -> str:
    """Put characters for the entities that HTML names, and for declared ones; other references become text.

    Those declared make a text longer by so much at most: what is beyond stays a reference.
    """
    if not declared:
        return _REFERENCE.sub(_known, text)
    left = _MAX_GROWTH

    def known(found: re.Match[str]) -> str:
        nonlocal left
        value = declared.get(found.group(1) or "")
        if value is None or len(value) > left:
            return _known(found)
        left -= len(value)
        return value.replace("&", "&amp;").replace("<", "&lt;")

    return _REFERENCE.sub(known, text)


def _known(found: re.Match[str]) -> str:
    """Return what XML understands for a reference that HTML understands."""
    name = found.group(1)
    if name is None:
        return "&amp;" if found.group() == "&" else found.group()
    if name in _XML_NAMES:
        return found.group()
    return html5.get(f"{name};", f"&{name};").replace("&", "&amp;").replace("<", "&lt;")


def text_of(element: Element | None) -> str:
    """Return all text of an element, white space folded."""
    return "" if element is None else " ".join("".join(element.itertext()).split())
