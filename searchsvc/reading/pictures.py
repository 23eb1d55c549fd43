"""Bytes of an image file -> a picture that a language model can be sent.

The type is that of the bytes, whatever a name says. What fits is passed on as it is; what is too large is
scaled. Every limit is checked before the work it bounds.
"""

import binascii
import contextlib
import importlib
import io
import math
import re
import struct
from base64 import b64decode
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from searchsvc.errors import ReadingError
from searchsvc.items import Picture
from searchsvc.reading.drawings import draw, fit

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFile import ImageFile

MAX_SIDE = 1568
"""Pixels of the longer side; vision models scale larger pictures down to about that."""
_MAX_PIXELS = 50_000_000
_PIXELS_A_TOKEN = 750
_MAX_SCANNED = 1_000_000_000
"""Pixels times scans of a JPEG: a scan may take few bytes and yet go over the whole image."""
_SENT = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}
_PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
_QUALITIES = (85, 60, 35)
_SCAN = re.compile(rb"\xff\xda\x00[\x08\x0a\x0c\x0e]")

_KINDS = tuple(
    (kind, re.compile(magic, re.DOTALL), plugin)
    for kind, magic, plugin in (
        ("PNG", re.escape(_PNG_MAGIC), "PngImagePlugin.PngImageFile"),
        ("JPEG", rb"\xff\xd8\xff", "JpegImagePlugin.JpegImageFile"),
        ("GIF", rb"GIF8[79]a", "GifImagePlugin.GifImageFile"),
        ("WEBP", rb"RIFF....WEBP", "WebPImagePlugin.WebPImageFile"),
        ("BMP", rb"BM", "BmpImagePlugin.BmpImageFile"),
        ("TIFF", rb"II[*+]\x00|MM\x00[*+]", "TiffImagePlugin.TiffImageFile"),
        ("ICO", rb"\x00\x00\x01\x00", "IcoImagePlugin.IcoImageFile"),
        ("AVIF", rb"....ftyp(?:avif|avis|mif1|msf1)", "AvifImagePlugin.AvifImageFile"),
    )
)
"""Kinds that are read, with how they begin and what opens them: no other parser of Pillow is reachable."""

_NO_IMAGES = (
    (rb"version https://git-lfs", "a Git LFS pointer, not the image; run git lfs pull"),
    (rb"\x1f\x8b", "gzip-compressed data (perhaps .svgz), expected an image; unpack it"),
    (rb"%PDF", "a PDF, expected an image; export the page as PNG"),
    (rb"....ftyp(?:hei[cmsx]|hev[cx])", "a HEIC image, which is not read; convert it to JPEG"),
)


def make_picture(data: bytes, max_bytes: int) -> Picture:
    """Verify an image and bring it to a form and size that can be sent.

    Raises ``ReadingError`` with a short reason when it is none, is damaged, or is beyond a limit.
    """
    if len(data) > max_bytes:
        raise ReadingError(f"{len(data):,} bytes, at most {max_bytes:,} are read")
    if not data:
        raise ReadingError("the file is empty")
    for magic, reason in _NO_IMAGES:
        if re.match(magic, data, re.DOTALL):
            raise ReadingError(reason)
    if data[:512].removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<"):
        data = draw(data, MAX_SIDE)
    return _verified(data, max_bytes)


def read_data_uri(uri: str, max_bytes: int) -> bytes:
    """Return the bytes in a ``data:`` address; raises ``ReadingError`` when they cannot be had."""
    head, comma, body = uri.partition(",")
    if not comma or head[:5].lower() != "data:":
        raise ReadingError("a data: address without data; expected data:image/png;base64,…")
    is_base64 = head.rpartition(";")[2].strip().lower() == "base64"
    # Escapes take three characters for one.
    if len(body) > 4 * max_bytes + 1_000:
        raise ReadingError(
            f"a data: address of {len(body):,} characters; at most {max_bytes:,} bytes are read"
        )
    raw = unquote_to_bytes(body)
    if is_base64:
        packed = b"".join(raw.split()).rstrip(b"=")
        try:
            raw = b64decode(packed + b"=" * (-len(packed) % 4), validate=True)
        except (binascii.Error, ValueError) as error:
            raise ReadingError("a data: address whose base64 is broken") from error
    if len(raw) > max_bytes:
        raise ReadingError(f"{len(raw):,} bytes, at most {max_bytes:,} are read")
    return raw


def picture_cost(picture: Picture) -> int:
    """Return about how many tokens a picture takes: width x height / 750 (Anthropic's vision guide)."""
    return max(1, math.ceil(picture.width * picture.height / _PIXELS_A_TOKEN))


def _verified(data: bytes, max_bytes: int) -> Picture:
    kind, plugin = next(((k, p) for k, magic, p in _KINDS if magic.match(data)), ("", ""))
    if not kind:
        raise ReadingError(
            "not an image by its bytes; PNG, JPEG, GIF, WebP, BMP, TIFF, ICO, AVIF, SVG are read"
        )
    try:
        if kind == "ICO":
            embedded = _checked_icon(data)
            if embedded:
                return _verified(embedded, max_bytes)
        with _opener(plugin)(io.BytesIO(data)) as image:
            _check_work(image, data)
            is_small = max(image.size) <= MAX_SIDE
            if not is_small and kind == "JPEG":
                # Decoding straight to about the size that is sent saves most of the time and memory.
                image.draft(None, fit(*image.size, MAX_SIDE))
            image.load()
            if kind == "PNG":
                _opener(plugin)(io.BytesIO(data)).verify()
            if kind in _SENT and is_small and len(data) <= max_bytes:
                return Picture(data, _SENT[kind], *image.size)
            is_photo = kind == "JPEG" or (kind == "WEBP" and b"VP8 " in data)
            return _encoded(_scaled(image), max_bytes, is_photo=is_photo)
    except ReadingError:
        raise
    except Exception as error:  # Decoders of damaged files raise nearly anything.
        if type(error).__name__.startswith("DecompressionBomb"):
            raise ReadingError(f"more pixels than the {_MAX_PIXELS:,} that are read") from error
        raise ReadingError(f"damaged, cut off, or a {kind} of a kind that is not read") from error


def _opener(plugin: str) -> "Callable[[io.BytesIO], ImageFile]":
    """Return what opens one format.

    ``Image.open`` would try other parsers, take some photographs for their 3D kin (MPO), and warn of large
    images by filters that all threads share.
    """
    module, name = plugin.split(".")
    opener: Callable[[io.BytesIO], ImageFile] = getattr(importlib.import_module(f"PIL.{module}"), name)
    return opener


def _check_work(image: "ImageFile", data: bytes) -> None:
    """Refuse, by what the header says, what would take too long to decode."""
    pixels = image.width * image.height
    if pixels > _MAX_PIXELS:
        raise ReadingError(f"{image.width} x {image.height} pixels, at most {_MAX_PIXELS:,} are read")
    if image.format == "JPEG" and pixels * sum(1 for _ in _SCAN.finditer(data)) > _MAX_SCANNED:
        raise ReadingError("a JPEG with more scans than any camera makes, which is not read")
    tags = getattr(image, "tag_v2", {})
    if tags.get(322, 1) * tags.get(323, 1) > _MAX_PIXELS:
        raise ReadingError(f"a TIFF with tiles of more than {_MAX_PIXELS:,} pixels, which is not read")


def _checked_icon(data: bytes) -> bytes:
    """Return the PNG in an icon, if its largest image is one; Pillow decodes before it tells the size."""
    from PIL.IcoImagePlugin import IcoFile

    entry = IcoFile(io.BytesIO(data)).entry[0]
    image = data[entry.offset : entry.offset + entry.size]
    if image.startswith(_PNG_MAGIC):
        return image
    if struct.unpack("<ii", image[4:12]) != (entry.width, 2 * entry.height):
        raise ReadingError("a damaged ICO: its image has another size than its table says")
    return b""


def _scaled(image: "Image") -> "Image":
    """Return an upright image of a size that is sent, in grey, RGB or RGBA."""
    from PIL import ImageOps
    from PIL.Image import Resampling

    with contextlib.suppress(Exception):  # Broken EXIF is no reason to show nothing.
        ImageOps.exif_transpose(image, in_place=True)
    if image.mode.startswith(("I", "F")):
        image = _eight_bits(image)
        image.info.pop("transparency", None)  # Of the old depth.
    has_alpha = image.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in image.info
    mode = "RGBA" if has_alpha else "L" if image.mode in ("1", "L") else "RGB"
    if image.mode != mode:
        image = image.convert(mode)
    size = fit(*image.size, MAX_SIDE)
    return image if size == image.size else image.resize(size, Resampling.LANCZOS, reducing_gap=2.0)


def _eight_bits(image: "Image") -> "Image":
    """Bring deep greys to 0..255: 16 bits as they are, others by what they hold; Pillow would cut at 255."""
    is_sixteen = image.mode.startswith("I;16")
    image = image.convert("F")
    low, high = (0.0, 65_535.0) if is_sixteen else image.getextrema()
    assert isinstance(low, float) and isinstance(high, float)
    factor = 255 / (high - low) if high > low else 1.0
    image = image.point(lambda value: value * factor - low * factor)
    return image.convert("L")


def _encoded(image: "Image", max_bytes: int, *, is_photo: bool) -> Picture:
    """Encode anew: a drawing, or what is partly transparent, as PNG; a photograph as JPEG."""
    from PIL import Image

    if image.mode == "RGBA" or not is_photo:
        data = _saved(image, "PNG")
        if len(data) <= max_bytes:
            return Picture(data, "image/png", *image.size)
    if image.mode == "RGBA":
        page = Image.new("RGB", image.size, "white")
        page.paste(image, mask=image.getchannel("A"))
        image = page
    for quality in _QUALITIES:
        data = _saved(image, "JPEG", quality=quality)
        if len(data) <= max_bytes:
            return Picture(data, "image/jpeg", *image.size)
    raise ReadingError(f"more than {max_bytes:,} bytes even when scaled down")


def _saved(image: "Image", kind: str, **options: int) -> bytes:
    out = io.BytesIO()
    image.info = {}  # Where and by whom a picture was taken is nobody's business.
    image.save(out, kind, **options)
    return out.getvalue()
