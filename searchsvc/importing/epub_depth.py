"""Tags nested deeper than can be walked -> a tree that says the same with fewer tags.

Who nests hundreds of tags is a program that wraps, or someone hostile. What carries no meaning goes first,
then what is said twice, and boxes in boxes last; ids stay, so links still find their place. The tree is
written anew and parsed again: moving elements in it takes time that grows with the square of their number.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from html import escape
from typing import Any

from searchsvc.importing.epub_marks import BREAK, DROPPED, kinds

MAX_DEPTH = 60
"""Of tags in tags, as the walk of a chapter takes several calls for each."""
_FREE, _BOXED, _LAST = 20, 40, MAX_DEPTH - 2
"""Up to where everything is kept, then boxes, then anything."""
_BOXES = frozenset("blockquote ul ol menu dl dir table".split())
_PARTS = frozenset("thead tbody tfoot tr td th".split())
_ITEMS = frozenset("li dt dd".split())
_INLINE = frozenset(
    """a abbr b bdi bdo big cite code data del dfn em font i img image ins kbd mark q rb ruby s samp small
    span strike strong sub sup svg time tt u var wbr""".split()
)
_MEANT = frozenset(
    """a b br caption cite code del dfn em embed figcaption figure h1 h2 h3 h4 h5 h6 hr i img image kbd list
    math object p pre q ruby s samp strong sub sup svg tt var""".split()
)
_HARMLESS = frozenset(("NavigableString", "CData"))


def flatten(soup: Any, parse: Callable[[str], Any]) -> Any:
    """Return the tree, or one with the same text that is not as deep."""
    return parse("".join(_source(soup))) if _is_deep(soup) else soup


def _is_deep(soup: Any) -> bool:
    depths = {id(soup): 0}
    for node in soup.find_all(True):
        depth = depths[id(node)] = depths[id(node.parent)] + 1
        if depth > _LAST:
            return True
    return False


def _source(soup: Any) -> Iterator[str]:
    """Write the tree; nothing here calls itself, as the tree may be deeper than calls can be."""
    stack: list[tuple[Iterator[Any], str, str]] = [(iter(soup.contents), "", "")]
    opened, depth = Counter[str](), 0
    while stack:
        nodes, name, end = stack[-1]
        node = next(nodes, None)
        if node is None:
            stack.pop()
            opened[name] -= 1
            depth -= bool(name)
            yield end
        elif isinstance(node, str):
            yield escape(node, quote=False) if type(node).__name__ in _HARMLESS else ""
        elif node.name in DROPPED - {"input"}:
            continue
        elif _is_kept(node, opened, depth):
            opened[node.name] += 1
            depth += 1
            yield f"<{node.name}{_attributes(node)}>"
            stack.append((iter(node.contents), node.name, f"</{node.name}>"))
        else:
            gap = "" if node.name in _INLINE else f"<{BREAK}/>"
            yield gap + _anchor(node)
            stack.append((iter(node.contents), "", gap))


def _is_kept(node: Any, opened: Counter[str], depth: int) -> bool:
    name = node.name
    if depth < _FREE or depth >= _LAST:
        return depth < _FREE
    if name in _BOXES:
        return depth < _BOXED
    if name in _PARTS:
        return opened["table"] > 0
    if name in _ITEMS:
        return depth <= _BOXED
    if kinds(node) or node.attrs.keys() & {"hidden", "style"}:
        return True
    return name in _MEANT and not opened[name]


def _attributes(node: Any) -> str:
    values = {
        key: " ".join(map(str, value)) if isinstance(value, list) else str(value)
        for key, value in node.attrs.items()
    }
    return "".join(f' {key}="{escape(value)}"' for key, value in values.items() if _is_name(key))


def _is_name(key: str) -> bool:
    return all(sign.isalnum() or sign in "-_:." for sign in key)


def _anchor(node: Any) -> str:
    name = node.get("id") or (node.get("name") if node.name == "a" else None)
    return f'<a id="{escape(str(name))}"/>' if name else ""
