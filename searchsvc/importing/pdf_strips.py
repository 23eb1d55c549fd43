"""Images that a program cut into strips or tiles -> the picture that they are together; pictures -> PNG."""

import io
from collections.abc import Sequence
from typing import Any

from searchsvc.importing.pdf_shapes import Placed

_TOUCHING = 1.0
"""Points between tiles of one picture, or by which they overlap."""
_MAX_STRIPS = 2000
"""On a page; so many are looked at for whether they touch."""
_LARGE = 150.0
"""Points on both sides: what is so large by itself is a picture, and may well touch another."""

_Tile = tuple[float, float, float, float, Any]
"""Left and top on the page, width, height, and the picture."""


def pictures(images: Sequence[Placed]) -> list[list[Placed]]:
    """Return images in groups: tiles of one picture, and single ones."""
    groups = [[image] for image in images]
    if not 1 < len(groups) <= _MAX_STRIPS:
        return groups
    # Strips become rows or columns, and rows of tiles become a picture.
    for _ in range(2):
        groups = _stacked(groups, upright=True)
        groups = _stacked(groups, upright=False)
    return groups


def extent(strips: Sequence[Placed]) -> tuple[float, float, float, float]:
    """Return x0, y0, x1, y1 of strips together."""
    return (
        min(strip.x0 for strip in strips),
        min(strip.y0 for strip in strips),
        max(strip.x1 for strip in strips),
        max(strip.y1 for strip in strips),
    )


def _stacked(groups: list[list[Placed]], upright: bool) -> list[list[Placed]]:
    """Join groups that stand right on each other, or side by side, with the same edges."""

    def place(group: list[Placed]) -> tuple[float, float, float, float]:
        x0, y0, x1, y1 = extent(group)
        return (x0, x1, y0, y1) if upright else (y0, y1, x0, x1)

    stacked: list[tuple[tuple[float, float, float, float], list[Placed]]] = []
    ordered = sorted(((place(group), at) for at, group in enumerate(groups)), key=lambda pair: (
        round(pair[0][0]), round(pair[0][1]), pair[0][2],
    ))  # fmt: skip
    for (low, high, start, end), at in ordered:
        if stacked:
            (last_low, last_high, last_start, last_end), group = stacked[-1]
            same = abs(low - last_low) <= _TOUCHING and abs(high - last_high) <= _TOUCHING
            both_large = min(high - low, end - start, last_end - last_start) >= _LARGE
            if same and abs(start - last_end) <= _TOUCHING and not both_large:
                stacked[-1] = (last_low, last_high, last_start, end), group + groups[at]
                continue
        stacked.append(((low, high, start, end), groups[at]))
    # In the order in which they were found: names of files follow it.
    order = {id(image): at for at, image in enumerate(image for group in groups for image in group)}
    return sorted((group for _, group in stacked), key=lambda group: min(order[id(image)] for image in group))


def joined(tiles: Sequence[_Tile], scale: float) -> Any:
    """Return tiles as one picture of so many pixels to the point."""
    from PIL import Image as Pillow

    left, top = min(tile[0] for tile in tiles), max(tile[1] for tile in tiles)
    right, bottom = max(x + width for x, _, width, _, _ in tiles), min(y - h for _, y, _, h, _ in tiles)
    whole = Pillow.new(
        "RGB", (max(1, round((right - left) * scale)), max(1, round((top - bottom) * scale))), "white"
    )
    for x, y, width, height, picture in tiles:
        # Rounded at both edges, so that neighbours leave no seam.
        x0, x1 = round((x - left) * scale), round((x + width - left) * scale)
        y0, y1 = round((top - y) * scale), round((top - y + height) * scale)
        whole.paste(picture.convert("RGB").resize((max(1, x1 - x0), max(1, y1 - y0))), (x0, y0))
    return whole


def upright_picture(picture: Any, turn: int) -> Any:
    """Return a picture on white, turned by quarters clockwise."""
    from PIL import Image as Pillow

    if picture.mode in ("RGBA", "LA"):
        white = Pillow.new("RGB", picture.size, "white")
        white.paste(picture.convert("RGB"), mask=picture.getchannel("A"))
        picture = white
    if picture.mode not in ("L", "RGB"):
        picture = picture.convert("RGB")
    turns = (None, Pillow.Transpose.ROTATE_270, Pillow.Transpose.ROTATE_180, Pillow.Transpose.ROTATE_90)
    return picture if (how := turns[turn]) is None else picture.transpose(how)


def encoded(picture: Any) -> bytes:
    """Return a picture as PNG."""
    written = io.BytesIO()
    picture.save(written, "PNG", compress_level=4)
    return written.getvalue()
