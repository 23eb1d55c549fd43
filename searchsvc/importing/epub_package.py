"""Container and package of an EPUB -> what it says of the book, its documents in order, its navigation."""

from dataclasses import dataclass, field

from searchsvc.errors import ReadingError
from searchsvc.importing.epub_links import Place, resolve
from searchsvc.importing.epub_xml import Element, parse_xml, text_of
from searchsvc.importing.epub_zip import Archive

_CONTAINER = "META-INF/container.xml"
_PACKAGE_TYPE = "application/oebps-package+xml"
_TEXT_TYPES = frozenset(("application/xhtml+xml", "text/html", "text/x-oeb1-document", "application/html"))
_TEXT_SUFFIXES = (".xhtml", ".html", ".htm", ".xht")
_MAX_BYTES = 50_000_000
_MAX_DEPTH = 6


@dataclass(frozen=True, slots=True)
class Entry:
    """A title of the navigation."""

    title: str
    place: Place
    depth: int
    """1 is the outermost."""


@dataclass(slots=True)
class Package:
    """What the package document says."""

    title: str = ""
    author: str = ""
    language: str = ""
    documents: list[str] = field(default_factory=list)
    """Names of members, in reading order."""
    entries: list[Entry] = field(default_factory=list)
    contents: set[str] = field(default_factory=set)
    """Documents that are said to be the table of contents."""


def read_package(archive: Archive) -> Package:
    """Read container, package and navigation; raises ``ReadingError`` when there is no book in it."""
    name = _package_name(archive)
    data = archive.read(name, _MAX_BYTES)
    if data is None:
        raise ReadingError(f"the EPUB has no readable package document ({name}); download or copy it again")
    root = parse_xml(data, "the package document (.opf)")
    package = Package()
    _read_metadata(root, package)
    items = {item.get("id", ""): item for item in root.iter("item")}
    missing = _read_spine(archive, name, root, items, package)
    if missing:
        archive.notices.append(f"{missing} documents of the reading order are missing, and were left out")
    if not package.documents:
        raise ReadingError(
            "the EPUB has an empty reading order (spine): no chapter was found in it; "
            "open it in an EPUB editor to repair it, or get another copy"
        )
    package.contents = _read_contents(archive, name, root)
    try:
        package.entries = _read_navigation(archive, name, root, items)
    except ReadingError as error:
        archive.notices.append(f"the navigation was not used: {error}")
    return package


def _package_name(archive: Archive) -> str:
    data = archive.read(_CONTAINER, _MAX_BYTES)
    if data is not None:
        files = list(parse_xml(data, _CONTAINER).iter("rootfile"))
        files.sort(key=lambda file: file.get("media-type", _PACKAGE_TYPE) != _PACKAGE_TYPE)
        for file in files:
            name = archive.find(resolve("", file.get("full-path", "")).path)
            if name:
                return name
    packages = [name for name in archive.names() if name.lower().endswith(".opf")]
    if packages and data is not None:
        archive.notices.append("the container names no package that exists; the first one was read")
        return packages[0]
    if packages:
        archive.notices.append(f"{_CONTAINER} is missing; the first package was read")
        return packages[0]
    raise ReadingError(
        f"not an EPUB: the zip file has no {_CONTAINER} and no package (.opf); "
        "if it is a zip of documents, unpack it and import those"
    )


def _read_metadata(root: Element, package: Package) -> None:
    metadata = next(root.iter("metadata"), None)
    if metadata is None:
        return
    refined = {
        (meta.get("refines", "").lstrip("#"), meta.get("property", "")): text_of(meta)
        for meta in metadata.iter("meta")
    }
    titles = [title for title in metadata.iter("title") if text_of(title)]
    titles.sort(key=lambda title: refined.get((title.get("id", ""), "title-type"), "main") != "main")
    package.title = text_of(titles[0]) if titles else ""
    creators = [creator for creator in metadata.iter("creator") if text_of(creator)]
    roles = [c.get("role") or refined.get((c.get("id", ""), "role"), "") for c in creators]
    authors = [creator for creator, role in zip(creators, roles, strict=True) if role == "aut"]
    package.author = ", ".join(dict.fromkeys(text_of(creator) for creator in authors or creators))
    package.language = next((text_of(tag) for tag in metadata.iter("language") if text_of(tag)), "")


def _read_spine(
    archive: Archive, base: str, root: Element, items: dict[str, Element], package: Package
) -> int:
    """Fill the documents, those outside the line of reading last; return how many are missing."""
    missing, aside = 0, list[str]()
    for reference in root.iter("itemref"):
        item = items.get(reference.get("idref", ""))
        href = "" if item is None else item.get("href", "")
        name = archive.find(resolve(base, href).path) if href else ""
        if item is not None and name and not _is_text(item, name):
            continue
        if not name:
            missing += 1
        elif reference.get("linear", "yes").strip().lower() == "no":
            aside.append(name)
        else:
            package.documents.append(name)
    package.documents = list(dict.fromkeys([*package.documents, *aside]))
    return missing


def _read_contents(archive: Archive, base: str, root: Element) -> set[str]:
    sources = [
        item.get("href", "") for item in root.iter("item") if "nav" in item.get("properties", "").split()
    ]
    sources += [ref.get("href", "") for ref in root.iter("reference") if ref.get("type", "").lower() == "toc"]
    return {archive.find(resolve(base, source).path) for source in sources if source}


def _is_text(item: Element, name: str) -> bool:
    return item.get("media-type", "").strip().lower() in _TEXT_TYPES or name.lower().endswith(_TEXT_SUFFIXES)


def _read_navigation(archive: Archive, base: str, root: Element, items: dict[str, Element]) -> list[Entry]:
    """Return the titles of EPUB 3, else those of EPUB 2."""
    for item in items.values():
        if "nav" in item.get("properties", "").split():
            name = archive.find(resolve(base, item.get("href", "")).path)
            data = archive.read(name, _MAX_BYTES) if name else None
            entries = (
                [] if data is None else _entries_of_nav(name, parse_xml(data, "the navigation"), archive)
            )
            if entries:
                return entries
    spine = next(root.iter("spine"), None)
    toc = items.get("" if spine is None else spine.get("toc", ""))
    if toc is None:
        toc = next((i for i in items.values() if i.get("media-type") == "application/x-dtbncx+xml"), None)
    name = "" if toc is None else archive.find(resolve(base, toc.get("href", "")).path)
    data = archive.read(name, _MAX_BYTES) if name else None
    return [] if data is None else _entries_of_ncx(name, parse_xml(data, "the navigation"), archive)


def _entries_of_nav(name: str, root: Element, archive: Archive) -> list[Entry]:
    navs = list(root.iter("nav"))
    toc = next((nav for nav in navs if "toc" in nav.get("type", "").split()), None)
    if toc is None:
        return []
    entries, stack = list[Entry](), [(toc, 0)]
    while stack:
        element, depth = stack.pop()
        if element.tag == "a" and element.get("href"):
            _add(entries, archive, name, text_of(element), element.get("href", ""), depth)
            continue
        depth += element.tag == "ol"
        stack += [(child, depth) for child in reversed(element)]
    return entries


def _entries_of_ncx(name: str, root: Element, archive: Archive) -> list[Entry]:
    start = next(root.iter("navMap"), None)
    entries, stack = list[Entry](), [] if start is None else [(start, 0)]
    while stack:
        element, depth = stack.pop()
        if element.tag == "navPoint":
            content = element.find("content")
            source = "" if content is None else content.get("src", "")
            _add(entries, archive, name, text_of(element.find("navLabel")), source, depth)
        stack += [(child, depth + 1) for child in reversed(element) if child.tag == "navPoint"]
    return entries


def _add(entries: list[Entry], archive: Archive, base: str, title: str, href: str, depth: int) -> None:
    place = resolve(base, href)
    path = archive.find(place.path)
    if title and path:
        entries.append(Entry(title, Place(path, place.anchor), min(max(depth, 1), _MAX_DEPTH)))
