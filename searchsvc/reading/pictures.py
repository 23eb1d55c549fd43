"""Bytes of an image file -> a picture that a language model can be sent.

The type is that of the bytes, whatever a name says. What fits is passed on as it is; what is too large is
scaled. Every limit is checked before the work it bounds.
"""

import binascii
import io
import math
import re
import warnings
from base64 import b64decode
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from searchsvc.errors import ReadingError
from searchsvc.items import Picture

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_SIDE = 1568
"""Pixels of the longer side; vision models scale larger pictures down to about that."""
_MAX_PIXELS = 50_000_000
_PIXELS_A_TOKEN = 750
_MAX_SVG_BYTES = 200_000
_MAX_SVG_ELEMENTS = 1_000
_MAX_SVG_DEPTH = 60
_SENT = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}
_READ = (*_SENT, "BMP", "TIFF", "ICO", "AVIF")
_QUALITIES = (85, 60, 35)
_DATA_URI = re.compile(r"data:([^,;]*)((?:;[^,;]*)*),", re.IGNORECASE)
_SVG_TAG = re.compile(r"<(/?)\s*([A-Za-z_][\w:.-]*)((?:[^<>\"']|\"[^\"]*\"|'[^']*')*)>")
_SVG_ASIDE = re.compile(r"<!--.*?-->|<\?.*?\?>", re.DOTALL)
_SVG_REFERENCE = re.compile(r"url\(\s*[\"']?\s*[^#\s\"']|(?:href|src)\s*=\s*(?![\"']\s*#)")
"""A reference to anything but a part of the same drawing."""
_NUMBER = r"\d{1,9}(?:\.\d{0,9})?|\.\d{1,9}"
_SIDE = re.compile(rf"\b(width|height)\s*=\s*[\"']\s*({_NUMBER})\s*(?:px)?\s*[\"']")
_VIEW_BOX = re.compile(
    rf"viewBox\s*=\s*[\"']\s*[-\d.]{{1,20}}[\s,]+[-\d.]{{1,20}}[\s,]+({_NUMBER})[\s,]+({_NUMBER})\s*[\"']"
)
_SVG_RISKS = frozenset(
    "use image script foreignobject filter pattern mask marker symbol animate set iframe".split()
)
"""Elements that may load, repeat without bound or run; drawings without them are what is rasterised."""


def make_picture(data: bytes, max_bytes: int) -> Picture:
    """Verify an image and bring it to a form and size that can be sent.

    Raises ``ReadingError`` with a short reason when it is none, is damaged, or is beyond a limit.
    """
    if len(data) > max_bytes:
        raise ReadingError(f"{len(data):,} bytes, at most {max_bytes:,} are read")
    head = data[:512].lstrip(b"\xef\xbb\xbf \t\r\n")
    if not data:
        raise ReadingError("the file is empty")
    if head.startswith(b"version https://git-lfs"):
        raise ReadingError("a Git LFS pointer, not the image; run git lfs pull")
    if head.startswith(b"<") and b"<svg" in data[:4096].lower():
        data = _rasterised(data)
    elif head.startswith(b"<"):
        raise ReadingError("a page of HTML or XML, expected an image")
    return _verified(data, max_bytes)


def read_data_uri(uri: str, max_bytes: int) -> bytes:
    """Return the bytes in a ``data:`` address; raises ``ReadingError`` when they cannot be had."""
    match = _DATA_URI.match(uri)
    if match is None:
        raise ReadingError("a data: address without data")
    body = uri[match.end() :]
    if len(body) > 2 * max_bytes:
        raise ReadingError(f"about {len(body) * 3 // 4:,} bytes, at most {max_bytes:,} are read")
    raw = unquote_to_bytes(body)
    if "base64" not in match[2].lower():
        return raw
    try:
        return b64decode(b"".join(raw.split()) + b"==", validate=False)
    except (binascii.Error, ValueError) as error:
        raise ReadingError("a data: address whose base64 is broken") from error


def picture_cost(picture: Picture) -> int:
    """Return about how many tokens a picture takes: width x height / 750 (Anthropic's vision guide)."""
    return max(1, math.ceil(picture.width * picture.height / _PIXELS_A_TOKEN))


def _verified(data: bytes, max_bytes: int) -> Picture:
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings(action="ignore"), Image.open(io.BytesIO(data), formats=_READ) as image:
            if image.width * image.height > _MAX_PIXELS:
                raise ReadingError(
                    f"{image.width} x {image.height} pixels, at most {_MAX_PIXELS // 10**6} million are read"
                )
            kind = image.format or ""
            image.load()
            if kind in _SENT and max(image.size) <= MAX_SIDE:
                return Picture(data, _SENT[kind], *image.size)
            return _scaled(image, max_bytes)
    except ReadingError:
        raise
    except UnidentifiedImageError as error:
        raise ReadingError("not an image by its bytes") from error
    except Image.DecompressionBombError as error:
        raise ReadingError(f"more pixels than the {_MAX_PIXELS // 10**6} million that are read") from error
    except Exception as error:  # Decoders of damaged files raise nearly anything.
        raise ReadingError(f"damaged, or of a kind that is not read ({type(error).__name__})") from error


def _scaled(image: "Image", max_bytes: int) -> Picture:
    """Encode anew: a drawing or what is partly transparent as PNG, a photograph as JPEG."""
    from PIL import ImageOps

    is_photo = image.format == "JPEG"
    image = ImageOps.exif_transpose(image)
    has_alpha = image.mode in ("LA", "PA", "RGBA", "RGBa") or "transparency" in image.info
    if image.mode.startswith(("I", "F")) and image.mode != "I;16":
        image = image.convert("L")
    image = image.convert("RGBA" if has_alpha else "RGB")
    ratio = min(1.0, MAX_SIDE / max(image.size))
    if ratio < 1:
        image = image.resize((max(1, round(image.width * ratio)), max(1, round(image.height * ratio))))
    if not is_photo:
        data = _encoded(image, "PNG")
        if len(data) <= max_bytes:
            return Picture(data, "image/png", *image.size)
    for quality in _QUALITIES:
        data = _encoded(image.convert("RGB"), "JPEG", quality)
        if len(data) <= max_bytes:
            return Picture(data, "image/jpeg", *image.size)
    raise ReadingError(f"more than {max_bytes:,} bytes even when scaled down")


def _encoded(image: "Image", kind: str, quality: int = 85) -> bytes:
    out = io.BytesIO()
    if kind == "PNG":
        image.save(out, kind, optimize=False)
    else:
        image.save(out, kind, quality=quality)
    return out.getvalue()


def _rasterised(data: bytes) -> bytes:
    """Draw an SVG that is plain enough to be drawn safely."""
    if len(data) > _MAX_SVG_BYTES:
        raise ReadingError(f"an SVG of {len(data):,} bytes, at most {_MAX_SVG_BYTES:,} are drawn")
    try:
        import resvg_py
    except ImportError as error:
        raise ReadingError("an SVG; pip install 'searchsvc[svg]' to have it drawn") from error
    text = _plain_svg(data)
    width, height = _size_of(text)
    try:
        # Both sides are given: what the drawing says of itself must not decide how much memory it takes.
        return bytes(resvg_py.svg_to_bytes(svg_string=text, width=width, height=height))
    except Exception as error:
        raise ReadingError("an SVG that cannot be drawn") from error


def _plain_svg(data: bytes) -> str:
    """Return the text of an SVG; refuse what could load, repeat or nest without bound."""
    try:
        # Without comments and instructions, so that what is looked at is what will be drawn.
        text = _SVG_ASIDE.sub("", data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ReadingError("an SVG that is not UTF-8") from error
    lowered = text.lower()
    if "<!" in text or "<?" in text:
        raise ReadingError("an SVG with a document type, entities or CDATA, which is not drawn")
    depth = deepest = count = 0
    for closing, name, rest in _SVG_TAG.findall(text):
        count += 1
        if name.rpartition(":")[2].lower() in _SVG_RISKS:
            raise ReadingError(f"an SVG with <{name[:20]}>, which is not drawn")
        if closing:
            depth -= 1
        elif not rest.rstrip().endswith("/"):
            depth += 1
            deepest = max(deepest, depth)
    if count != text.count("<"):
        raise ReadingError("an SVG whose tags are not well formed, which is not drawn")
    if count > _MAX_SVG_ELEMENTS or deepest > _MAX_SVG_DEPTH:
        raise ReadingError("an SVG with too many or too deeply nested elements, which is not drawn")
    if "@import" in lowered or _SVG_REFERENCE.search(lowered):
        raise ReadingError("an SVG that refers to something outside itself, which is not drawn")
    return text


def _size_of(text: str) -> tuple[int, int]:
    """Return how large to draw an SVG: as it says, within what is sent."""
    opening = re.search(r"<(?:\w+:)?svg\b[^>]*>", text)
    sides = dict(_SIDE.findall(opening[0])) if opening else {}
    box = _VIEW_BOX.search(opening[0]) if opening else None
    width = float(sides.get("width") or (box[1] if box else 300))
    height = float(sides.get("height") or (box[2] if box else 150))
    if not (0 < width < 1e9 and 0 < height < 1e9) or not 0.001 < width / height < 1000:
        raise ReadingError("an SVG of a size that makes no sense")
    ratio = min(1.0, MAX_SIDE / max(width, height))
    return max(1, round(width * ratio)), max(1, round(height * ratio))
