"""An SVG -> PNG, without trust in either the drawing or the renderer.

A strict parser reads the drawing, and what it holds of known harmless elements is written anew: no second
parser can read it otherwise. It is drawn in a process of its own, bounded in time and memory, because the
renderer holds the interpreter while it works, overflows its stack on deep nesting, and opens any local file
that an image refers to.
"""

import importlib.util
import math
import os
import re
import sys
import threading
from html import escape

from searchsvc.errors import ReadingError

_MAX_BYTES = 1_000_000
_MAX_ELEMENTS = 20_000
_MAX_DEPTH = 100
"""The renderer overflows its stack at somewhat more than 200."""
_SECONDS = 5.0
_MEMORY = 1 << 30
_SPACE = "http://www.w3.org/2000/svg"
_DRAWN = frozenset(
    """svg g defs symbol use switch a style path rect circle ellipse line polyline polygon text tspan textPath
    linearGradient radialGradient stop pattern clipPath mask marker image filter feBlend feColorMatrix
    feComponentTransfer feComposite feConvolveMatrix feDiffuseLighting feDisplacementMap feDistantLight
    feDropShadow feFlood feFuncA feFuncB feFuncG feFuncR feGaussianBlur feImage feMerge feMergeNode
    feMorphology feOffset fePointLight feSpecularLighting feSpotLight feTile feTurbulence""".split()
)
"""Elements that are drawn; others are left out with all that is in them."""
_ATTRIBUTES = {
    "http://www.w3.org/1999/xlink href": "href",
    "http://www.w3.org/XML/1998/namespace space": "xml:space",
}
_EMBEDDED = re.compile(r"\s*data:image/(?:png|jpe?g|gif|webp);base64,[A-Za-z0-9+/=\s]*", re.IGNORECASE)
_OUTSIDE = re.compile(r"url\(\s*(?:[\"']\s*)?(?![\"'\s#]|data:)|@import", re.IGNORECASE)
_FONT_RULE = re.compile(
    r"@import\s*(?:url\(\s*)?(?:\"[^\"]*\"|'[^']*'|[^\s;\"')]*)\s*\)?[^;{}@\"']*;?|@font-face\s*\{[^{}]*\}",
    re.IGNORECASE,
)
"""What only names fonts to fetch: the renderer does not heed it."""
_LENGTH = re.compile(r"\s*\+?(\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:e\+?(\d{1,2}))?([a-zA-Z]{0,2})\s*")
_UNITS = {"": 1, "px": 1, "pt": 4 / 3, "pc": 16, "in": 96, "cm": 37.8, "mm": 3.78, "em": 16, "ex": 8}
_PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
_NO_FONT = 3
_drawing = threading.BoundedSemaphore(2)

_DRAW = f"""
import sys
try:
    import resource
except ImportError:  # Windows: time is the only limit there.
    resource = None
for name, limit in (("AS", {_MEMORY}), ("CPU", {math.ceil(_SECONDS) + 1}), ("FSIZE", 0), ("CORE", 0)):
    try:
        resource and resource.setrlimit(getattr(resource, "RLIMIT_" + name), (limit, limit))
    except (OSError, ValueError):
        pass
sys.path.insert(0, sys.argv[1])
import resvg_py
def draw(svg, **options):
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, **options))
svg, options = sys.stdin.buffer.read().decode(), {{"background": "white"}}
if "<text" in svg:  # Text in a family that is not installed would vanish without a word.
    probe = '<svg xmlns="{_SPACE}" width="9" height="9"><text y="9" font-family="%s">%s</text></svg>'
    empty = draw(probe % ("", ""))
    for family in ("Arial", "DejaVu Sans", "Liberation Sans", "Noto Sans", "Helvetica", "FreeSans", "Ubuntu",
                   "Roboto", "Open Sans", "Cantarell", "Segoe UI", "Verdana"):
        if draw(probe % (family, "A")) != empty:
            break
    else:
        sys.exit({_NO_FONT})
    options.update(font_family=family, serif_family=family, sans_serif_family=family)
sys.stdout.buffer.write(draw(svg, width=int(sys.argv[2]), height=int(sys.argv[3]), **options))
"""
"""What the drawing process runs: it bounds itself, for a hook before its start is not safe among threads."""


def draw(data: bytes, max_side: int) -> bytes:
    """Return an SVG as PNG on white, as a page would show it, no side longer than ``max_side`` pixels.

    Raises ``ReadingError`` with the reason when it is none, may not be drawn, or takes too long.
    """
    import subprocess

    if b"svg" not in data[:100_000].lower():
        raise ReadingError("a page of HTML or XML, expected an image")
    if len(data) > _MAX_BYTES:
        raise ReadingError(f"an SVG of {len(data):,} bytes, at most {_MAX_BYTES:,} are drawn")
    drawing = _Drawing(data, max_side)
    found = importlib.util.find_spec("resvg_py")
    if found is None or not found.origin or not sys.executable or getattr(sys, "frozen", False):
        raise ReadingError("an SVG, left as text; pip install 'searchsvc[svg]' to have it drawn")
    folder = os.path.dirname(os.path.dirname(found.origin))
    command = [sys.executable, "-I", "-S", "-c", _DRAW, folder, *map(str, drawing.size)]
    hidden = getattr(subprocess, "CREATE_NO_WINDOW", 0)
    try:
        with _drawing:
            done = subprocess.run(
                command,
                input=drawing.text.encode(),
                capture_output=True,
                timeout=_SECONDS,
                creationflags=hidden,
                check=False,
            )
    except subprocess.TimeoutExpired as error:
        raise ReadingError(f"an SVG that takes more than {_SECONDS:g} seconds to draw") from error
    except OSError as error:
        raise ReadingError(f"an SVG; the process that draws did not start: {error.strerror}") from error
    if done.returncode == _NO_FONT:
        raise ReadingError("an SVG with text, and no font to draw it; install one, such as DejaVu Sans")
    if done.returncode or not done.stdout.startswith(_PNG_MAGIC):
        raise ReadingError("an SVG that cannot be drawn: it is broken or needs too much memory")
    return done.stdout


def fit(width: float, height: float, max_side: int) -> tuple[int, int]:
    """Return sides in pixels of the same shape, none longer than ``max_side`` and none empty."""
    ratio = min(1.0, max_side / max(width, height))
    return max(1, round(width * ratio)), max(1, round(height * ratio))


class _Drawing:
    """An SVG written anew from what is known to be harmless, so that no second parser reads it otherwise."""

    def __init__(self, data: bytes, max_side: int) -> None:
        from xml.parsers import expat

        self.size = (0, 0)
        self._max_side = max_side
        self._parts: list[str] = []
        self._open: list[str] = []
        self._style: list[str] = []
        self._skipped = self._elements = 0
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        try:
            parser.Parse(data, True)
        except (expat.ExpatError, ValueError, LookupError) as error:
            if not self._elements:
                raise ReadingError("a page of HTML or broken XML, expected an image") from error
            raise ReadingError(f"an SVG that is broken XML in line {parser.CurrentLineNumber}") from error
        self.text = "".join(self._parts)

    def _doctype(self, name: str, system: str | None, public: str | None, has_internal: bool) -> None:
        if name.rpartition(":")[2] != "svg":
            raise ReadingError("a page of HTML or XML, expected an image")
        if has_internal:
            raise ReadingError("an SVG that declares entities, which is not drawn")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        space, _, local = name.rpartition(" ")
        is_svg = space in (_SPACE, "")
        if not self._elements and not (is_svg and local == "svg"):
            raise ReadingError("a page of HTML or XML, expected an image")
        self._elements += 1
        if self._elements > _MAX_ELEMENTS or len(self._open) + self._skipped >= _MAX_DEPTH:
            raise ReadingError(
                f"an SVG of more than {_MAX_ELEMENTS:,} elements or {_MAX_DEPTH} levels, not drawn"
            )
        if self._skipped or not is_svg or local not in _DRAWN or self._open[-1:] == ["style"]:
            # In a switch an alternative follows; elsewhere all text of the drawing would be missing.
            if local == "foreignObject" and not self._skipped and self._open[-1] != "switch":
                raise ReadingError("an SVG with HTML in it (foreignObject), which is not drawn")
            self._skipped += 1
            return
        kept = _harmless(local, attributes)
        if not self._open:
            self.size = _resize(kept, self._max_side)
            kept["xmlns"] = _SPACE
        self._open.append(local)
        written = "".join(f' {key}="{escape(value)}"' for key, value in kept.items())
        self._parts.append(f"<{local}{written}>")

    def _end(self, _name: str) -> None:
        if self._skipped:
            self._skipped -= 1
            return
        if self._style:
            # Only now, for text comes in pieces and a reference may lie across two of them.
            style = _FONT_RULE.sub("", "".join(self._style))
            _expect_inside(style)
            self._parts.append(escape(style))
            self._style.clear()
        self._parts.append(f"</{self._open.pop()}>")

    def _characters(self, text: str) -> None:
        if self._skipped:
            return
        if self._open[-1] == "style":
            self._style.append(text)
        else:
            self._parts.append(escape(text))


def _harmless(element: str, attributes: dict[str, str]) -> dict[str, str]:
    """Return the attributes that a drawing needs; refuse those that lead out of it."""
    kept: dict[str, str] = {}
    for name, value in attributes.items():
        local = _ATTRIBUTES.get(name, "" if " " in name else name)
        if not local or local.startswith("on") or (local == "href" and (element == "a" or "href" in kept)):
            continue
        if local == "href" and not value.lstrip().startswith("#"):
            if element not in ("image", "feImage") or not _EMBEDDED.fullmatch(value):
                raise ReadingError("an SVG that refers to something outside itself, which is not drawn")
        elif local != "href":
            _expect_inside(value)
        kept[local] = value
    return kept


def _expect_inside(text: str) -> None:
    if _OUTSIDE.search(text):
        raise ReadingError("an SVG that refers to something outside itself, which is not drawn")


def _resize(root: dict[str, str], max_side: int) -> tuple[int, int]:
    """Set the sides of a drawing to what is sent and return them: what it says of itself takes no memory."""
    box = [_pixels(part) for part in re.split(r"[\s,]+", root.get("viewBox", "").strip(), maxsplit=4)][2:4]
    box_width, box_height = box if len(box) == 2 else (0.0, 0.0)
    width, height = _pixels(root.get("width", "")), _pixels(root.get("height", ""))
    if not (box_width and box_height):
        # As browsers do where a drawing says nothing.
        width, height = width or 300.0, height or 150.0
        root["viewBox"] = f"0 0 {width:f} {height:f}"
    elif not (width or height):
        width, height = box_width, box_height
    width = width or height * box_width / box_height
    height = height or width * box_height / box_width
    size = fit(width, height, max_side)
    root["width"], root["height"] = map(str, size)
    return size


def _pixels(length: str) -> float:
    """Return a length in pixels, 0 when it is none or relative."""
    match = _LENGTH.fullmatch(length)
    if match is None:
        return 0.0
    number = float(match[1]) * 10.0 ** int(match[2] or 0)
    return min(number * _UNITS.get(match[3].lower(), 0.0), 1e9)
