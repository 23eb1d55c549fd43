"""Lists of contents among the chapters of a book: what they say is there anyway, as headings."""

from typing import Any

from searchsvc.importing.epub_marks import HEADINGS, is_dropped

_MAX_TITLE, _SHARE = 40, 10
"""A list may begin with a title so long, and have this part of what its links say beside them."""


def is_contents(soup: Any) -> bool:
    """Tell whether a document that the package calls the contents holds nothing else."""
    linked = unlinked = 0
    hidden: set[int] = set()
    links: set[int] = set()
    for node in soup.descendants:
        above = id(node.parent)
        if not isinstance(node, str):
            if above in hidden or is_dropped(node) or node.name in HEADINGS:
                hidden.add(id(node))
            elif above in links or (node.name == "a" and node.get("href")):
                links.add(id(node))
            elif node.name in ("img", "image", "svg"):
                return False
        elif above in hidden:
            continue
        elif above in links:
            linked += len(node.strip())
        elif linked or unlinked or len(node.strip()) > _MAX_TITLE:
            unlinked += sum(map(str.isalpha, node))
    return unlinked <= linked // _SHARE
