"""Formulas of a book -> text on one line: TeX when the book has it, else what MathML says.

Marks for above, below and under a root are set, because ``1/2`` and ``12`` are not the same.
"""

import re
from collections.abc import Callable
from typing import Any

from searchsvc.importing.epub_code import classes_of

_TEX = re.compile(r"[\\^_{}]")
_MAX_DEPTH = 40
"""Of elements in elements; deeper ones are read as their text."""
_DROPPED = frozenset(("annotation", "annotation-xml", "mphantom"))
_ONE = re.compile(r"\w+|\W")
_WRAPPED = re.compile(
    r"\s*(?:\\\((?P<a>.+)\\\)|\\\[(?P<b>.+)\\\]|\$\$(?P<c>.+)\$\$|\$(?P<d>[^$]+)\$)\s*", re.DOTALL
)


def formula(node: Any) -> tuple[str, bool]:
    """Return a formula as text, and whether that is TeX."""
    text = str(node.get("alttext") or "").strip()
    if not text:
        notes = (note for note in node.find_all("annotation") if "tex" in str(note.get("encoding")))
        text = next((" ".join(note.get_text().split()) for note in notes), "")
    if not text:
        text = " ".join(_linear(node, 0).split()).rstrip("; ")
    return text, bool(_TEX.search(text))


def tex_of(node: Any) -> str:
    """Return the TeX in an element that its class calls a formula; empty when it holds something else.

    Books written for a browser, that would draw it, have the signs around it in their text.
    """
    if "math" not in classes_of(node) or node.find(True) is not None:
        return ""
    found = _WRAPPED.fullmatch(node.get_text())
    return " ".join(str(found.group(found.lastgroup or "a")).split()) if found else ""


def _linear(node: Any, depth: int) -> str:
    if isinstance(node, str):
        return " ".join(node.split())
    if node.name in _DROPPED:
        return ""
    if depth > _MAX_DEPTH:
        return " ".join(node.get_text().split())
    parts = [_linear(part, depth + 1) for part in node.children if not isinstance(part, str) or part.strip()]
    shape = _SHAPES.get(node.name)
    count = _COUNTS.get(node.name, 0)
    if shape is not None and (not count or len(parts) == count):
        return shape(parts)
    if node.name == "mo":
        return _spaced("".join(parts))
    return (" " if node.name in ("mtr", "mtd", "mtext", "mspace") else "").join(["", *parts, ""])


def _spaced(sign: str) -> str:
    return f" {sign} " if sign in ("=", "<", ">", "≤", "≥", "≠", "≈", "→", "∈", "±", "+", "−", "-") else sign


def _group(text: str) -> str:
    return text if len(_ONE.findall(text.strip())) < 2 else f"({text.strip()})"


_SHAPES: dict[str, Callable[[list[str]], str]] = {
    "mfrac": lambda parts: f"{_group(parts[0])}/{_group(parts[1])} ",
    "msup": lambda parts: f"{_group(parts[0])}^{_group(parts[1])}",
    "mover": lambda parts: f"{_group(parts[0])}^{_group(parts[1])}",
    "msub": lambda parts: f"{_group(parts[0])}_{_group(parts[1])}",
    "munder": lambda parts: f"{_group(parts[0])}_{_group(parts[1])}",
    "msubsup": lambda parts: f"{_group(parts[0])}_{_group(parts[1])}^{_group(parts[2])} ",
    "munderover": lambda parts: f"{_group(parts[0])}_{_group(parts[1])}^{_group(parts[2])} ",
    "msqrt": lambda parts: f"√{_group(''.join(parts))}",
    "mroot": lambda parts: f"root {_group(parts[1])} of {_group(parts[0])}",
    "mfenced": lambda parts: f"({', '.join(parts)})",
    "mtr": lambda parts: " ".join(parts) + "; ",
}
_COUNTS = {"mfrac": 2, "msup": 2, "mover": 2, "msub": 2, "munder": 2, "mroot": 2}
_COUNTS |= {"msubsup": 3, "munderover": 3}
