"""Images of a PDF -> PNG files, each once, bounded in pixels, bytes and number."""

import ctypes
import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from searchsvc.importing.base import Asset, Limits
from searchsvc.importing.pdf_layout import Run
from searchsvc.importing.pdf_shapes import PageText, Placed
from searchsvc.importing.pdf_strips import encoded, extent, joined, pictures, upright_picture

_SMALLEST = 40.0
"""Points on both sides; what is smaller is an ornament or a symbol."""
_MAX_PIXELS = 50_000_000
"""Of an image as it is stored: so much is unpacked."""
_MAX_SIDE = 2048
"""Pixels of an image as it is written; more helps neither people nor vision models."""
_REPEATED = 3
"""Pages: an image on so many is a logo or a background."""
_BACKGROUND = 0.85
"""Of a page with text: an image that covers so much is the scan under the text, or paper."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image where it is shown."""

    key: bytes


class Images:
    """The images of one document."""

    def __init__(self, pdfium: Any, helpers: Any, document: Any, limits: Limits) -> None:
        self._pdfium, self._helpers, self._document, self._limits = pdfium, helpers, document, limits
        self._assets: dict[bytes, Asset | None] = {}
        self._pages: dict[bytes, set[int]] = {}
        self._bytes = 0
        self._kept = 0
        self._left_out: Counter[str] = Counter()

    def take(self, number: int, page: Any, found: PageText) -> list[Run]:
        """Read the images of an open page, numbered from 1, and return them as pieces for the layout."""
        runs: list[Run] = []
        area = max(1.0, found.width * found.height)
        for strips in pictures(found.images[: self._limits.images]):
            x0, y0, x1, y1 = extent(strips)
            width, height = x1 - x0, y1 - y0
            if min(width, height) < _SMALLEST or (found.words and width * height > _BACKGROUND * area):
                continue
            key = self._key(strips)
            if key not in self._assets:
                name = f"page-{number}-{len(runs) + 1}.png"
                self._assets[key] = self._make(name, page, strips, found)
            seen = self._pages.setdefault(key, set())
            seen.add(number)
            if self._assets[key] is not None and len(seen) < _REPEATED:
                runs.append(Run(x0, x1, (y0 + y1) / 2, height, piece=Image(key)))
        return runs

    def once(self) -> dict[bytes, Asset]:
        """Return the images to show, without those that are on page after page."""
        return {
            key: asset
            for key, asset in self._assets.items()
            if asset is not None and len(self._pages[key]) < _REPEATED
        }

    def notices(self) -> list[str]:
        """Return what was left out, and why."""
        return [f"{count} images were left out: {why}" for why, count in self._left_out.items()]

    def _key(self, strips: Sequence[Placed]) -> bytes:
        digest = hashlib.blake2b(digest_size=16)
        for placed in strips:
            digest.update(repr(self._size(placed)).encode())
            length = self._pdfium.FPDFImageObj_GetImageDataRaw(placed.handle, None, 0)
            if 0 < length <= self._limits.file_bytes:
                buffer = (ctypes.c_ubyte * length)()
                self._pdfium.FPDFImageObj_GetImageDataRaw(placed.handle, buffer, length)
                digest.update(buffer)
        return digest.digest()

    def _size(self, placed: Placed) -> tuple[int, int]:
        width, height = ctypes.c_uint(), ctypes.c_uint()
        if not self._pdfium.FPDFImageObj_GetImagePixelSize(placed.handle, width, height):
            return 0, 0
        return width.value, height.value

    def _make(self, name: str, page: Any, strips: Sequence[Placed], found: PageText) -> Asset | None:
        """Return an image as it is shown, or none with the reason counted."""
        sizes = [self._size(placed) for placed in strips]
        if not all(width and height for width, height in sizes):
            self._left_out["they are damaged"] += 1
        elif sum(width * height for width, height in sizes) > _MAX_PIXELS:
            self._left_out[f"they have more than {_MAX_PIXELS:,} pixels"] += 1
        elif self._kept >= self._limits.images:
            self._left_out[f"a document may have {self._limits.images:,}"] += 1
        else:
            data = self._png(page, strips, found)
            if not data:
                self._left_out["they are damaged"] += 1
            elif len(data) > self._limits.image_bytes:
                self._left_out[f"they have more than {self._limits.image_bytes:,} bytes"] += 1
            elif self._bytes + len(data) > self._limits.unpacked_bytes:
                self._left_out[f"all images may have {self._limits.unpacked_bytes:,} bytes"] += 1
            else:
                self._bytes += len(data)
                self._kept += 1
                return Asset(name, data)
        return None

    def _png(self, page: Any, strips: Sequence[Placed], found: PageText) -> bytes:
        """Return strips as one picture, with as many pixels as they have, but no more than are written."""
        x0, y0, x1, y1 = extent(strips)
        # Pixels to the point, of the finest strip.
        fine = max(
            max(self._size(placed)) / max(placed.x1 - placed.x0, placed.y1 - placed.y0, 1e-3)
            for placed in strips
        )
        scale = min(fine, _MAX_SIDE / max(x1 - x0, y1 - y0))
        drawn = [(placed, self._drawn(page, placed, scale, found.upright)) for placed in strips]
        if any(picture is None for _, picture in drawn):
            return b""
        if len(drawn) == 1:
            return encoded(drawn[0][1])
        tiles = []
        for placed, picture in drawn:
            left = found.width - placed.x1 if found.mirrored else placed.x0
            tiles.append((left, placed.y1, placed.x1 - placed.x0, placed.y1 - placed.y0, picture))
        return encoded(joined(tiles, scale))

    def _drawn(self, page: Any, placed: Placed, scale: float, upright: int) -> Any:
        """Draw an image with its mask and turn, so many pixels to the point; none for a damaged one."""
        pdfium, own = self._pdfium, self._pdfium.FS_MATRIX()
        if not pdfium.FPDFPageObj_GetMatrix(placed.handle, own):
            return None
        shown = max(abs(own.a) + abs(own.c), abs(own.b) + abs(own.d))
        if not 1e-3 < shown < 1e6:
            return None
        # A form around an image may scale it once more.
        scale *= max(placed.x1 - placed.x0, placed.y1 - placed.y0) / shown
        drawn = pdfium.FS_MATRIX(*(getattr(own, part) * scale for part in "abcdef"))
        pdfium.FPDFPageObj_SetMatrix(placed.handle, drawn)
        try:
            raw = pdfium.FPDFImageObj_GetRenderedBitmap(self._document.raw, page.raw, placed.handle)
        finally:
            pdfium.FPDFPageObj_SetMatrix(placed.handle, own)
        if not raw:
            return None
        # Freed with its last reference; to close it by hand would pull it from under the picture.
        return upright_picture(self._helpers.PdfBitmap.from_raw(raw).to_pil(), upright)
