"""What an element of XHTML is, by its name and attributes."""

import re
from itertools import islice
from typing import Any

from searchsvc.importing.epub_code import classes_of

HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
CONTAINERS = frozenset(("[document]", "html", "body", "div", "section", "article"))
PLAIN = CONTAINERS | {"p", "span"}
"""Elements that a page mark may stand in without breaking anything."""
BREAK = "xbreak"
"""An element of ours: ends a paragraph where the element that did was taken out."""
BOXES = frozenset(("li", "blockquote", "table", "td", "th", "dl", "dt", "dd", "_box", "_noformat"))
"""A heading inside one of these is no heading of the book."""
DROPPED = frozenset(
    """head script style template noscript audio video iframe input select button textarea canvas map link
    meta rt rp rtc case""".split()
)
_BLOCKS = frozenset(
    """header footer main aside figure center address hgroup details summary fieldset form figcaption caption
    nav""".split()
)
"""Elements that are treated as ``div``; captions of tables and figures are set apart before that."""
_LISTS_OF_CONTENTS = frozenset(("toc", "landmarks", "page-list", "loi", "lot", "doc-toc", "doc-pagelist"))
_HIDDEN = re.compile(r"(?:display:none|visibility:hidden)", re.IGNORECASE)
_NUMBER = re.compile(r"\s*(?:page|p\.|pg\.?)?\s*0*([1-9]\d{0,6})\.?\s*", re.IGNORECASE)
_ID_NUMBER = re.compile(r"(?:page|pg|p)[_\-]?0*([1-9]\d{0,6})", re.IGNORECASE)
_MAX_STYLE, _UP = 2_000, 3
_FEW, _SHORT = 40, 40
_FIGURES = frozenset(("figure", "fig", "image", "illustration", "figcenter", "caption-image"))


def kinds(node: Any) -> set[str]:
    """Return what an element says it is: ``epub:type`` and ``role``."""
    attributes = node.attrs
    if "epub:type" not in attributes and "role" not in attributes:
        return set()
    return {word.lower() for name in ("epub:type", "role") for word in str(attributes.get(name, "")).split()}


def short_text(node: Any) -> str:
    """Return the text of an element that has little of it, or the beginning; without white space.

    Few descendants are looked at: elements may be nested deep, and this is asked of each.
    """
    pieces = (part for part in islice(node.descendants, _FEW) if isinstance(part, str))
    return "".join("".join(pieces)[:_SHORT].split())


def is_dropped(node: Any) -> bool:
    """Tell whether readers see nothing of an element, or only a list of what is there anyway."""
    if node.name in DROPPED or "hidden" in node.attrs:
        return node.name != "input" or not is_check_box(node)
    style = node.attrs.get("style")
    if style and _HIDDEN.search("".join(str(style)[:_MAX_STYLE].split())):
        return True
    return node.attrs.get("x-name") == "nav" and bool(kinds(node) & _LISTS_OF_CONTENTS)


def is_check_box(node: Any) -> bool:
    """Tell whether an element is the box of a task in a list."""
    return str(node.get("type") or "").lower() == "checkbox" and any(
        above.name == "li" for above in islice(node.parents, _UP)
    )


def page_number(node: Any) -> int | None:
    """Return the number of the page that begins here; ``None`` for no page mark, 0 without a number."""
    if not kinds(node) & {"pagebreak", "doc-pagebreak"}:
        return None
    for text in (node.get("title"), node.get("aria-label"), short_text(node)):
        if found := _NUMBER.fullmatch(str(text or "")):
            return int(found.group(1))
    found = _ID_NUMBER.fullmatch(str(node.get("id") or ""))
    return int(found.group(1)) if found else 0


def tidy_names(soup: Any) -> None:
    """Take prefixes of namespaces off names, and give elements that are like others the same name."""
    for node in soup.find_all(True):
        name = node.name
        if ":" in name:
            name = node.name = name.rpartition(":")[2] or "span"
        for key in [key for key in node.attrs if key.startswith("x-")]:
            del node.attrs[key]  # ours
        if name in _BLOCKS:
            node["x-name"] = name
            if name not in ("figure", "figcaption", "caption"):
                node.name = "div"


def is_figure(node: Any) -> bool:
    """Tell whether a plain box is what a figure was before there was an element for it."""
    return bool(_FIGURES & {name.lower() for name in classes_of(node)}) and len(node.contents) <= _FEW


def _is_caption(node: Any) -> bool:
    return node.name == "figcaption" or (
        node.name in ("p", "div", "span") and any("caption" in name.lower() for name in classes_of(node))
    )


def settle_caption(figure: Any) -> None:
    """Give the only image of a figure without a text of its own the caption, which is then not said twice."""
    images = figure.find_all(["img", "image"])
    captions = [] if len(images) != 1 else figure.find_all(_is_caption)
    if len(captions) != 1 or images[0].name != "img" or captions[0].find(["img", "pre", "table", "p"]):
        return
    text = " ".join(captions[0].get_text().split())
    alt = " ".join(str(images[0].get("alt") or "").split())
    if text and alt in ("", text) and not captions[0].find("a"):
        images[0]["alt"] = text
        captions[0].name = "template"


def number_items(ordered: Any) -> None:
    """Write its number on every item of an ordered list."""
    start = str(ordered.get("start") or "1").strip()
    number = int(start) if start.isascii() and start.isdigit() and len(start) <= 8 else 1
    for item in ordered.find_all("li", recursive=False):
        value = str(item.get("value") or "").strip()
        if value.isascii() and value.isdigit() and len(value) <= 8:
            number = int(value)
        item["x-number"] = number
        number += 1
