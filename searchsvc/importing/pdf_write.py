"""Blocks of all pages -> the Markdown of a document, with page marks, lists and captions."""

from collections.abc import Sequence

from searchsvc.importing import pdf_markdown as markdown
from searchsvc.importing.base import Asset
from searchsvc.importing.pdf_blocks import CAPTION, Block, code_text, entry
from searchsvc.importing.pdf_images import Image
from searchsvc.importing.pdf_layout import Line

_CAPTION_WITHIN = 3.5
"""Font sizes between an image and its caption."""
_DEEPER = 0.7
"""Font sizes by which an item of an inner list is indented at least."""


class Writer:
    """Writes the blocks of one document."""

    def __init__(self, blocks: Sequence[Block], assets: dict[bytes, Asset]) -> None:
        self.shown: list[Asset] = []
        """Images that the Markdown shows, in its order."""
        self.first_heading = ""
        self._blocks = blocks
        self._assets = assets
        self._captions = self._pair_captions()
        self._taken = {id(caption) for caption in self._captions.values()}
        self._parts: list[str] = []
        self._page = 0
        self._list: list[tuple[float, int]] = []
        """Open lists: x of the marker in points, spaces that the items in them are indented by."""
        self._joiner = markdown.Joiner(
            line.text for block in blocks for line in block.lines if block.kind not in ("code", "table")
        )

    def write(self, pages: int) -> str:
        """Return the Markdown, with marks for so many pages."""
        for block in self._blocks:
            self._mark(block.page + 1)
            if id(block) not in self._taken:
                self._add(block)
        self._mark(pages)
        return "".join(self._parts).strip("\n") + "\n"

    def _mark(self, page: int) -> None:
        while self._page < page:
            self._page += 1
            self._put(f"<!-- page {self._page} -->")

    def _put(self, text: str) -> None:
        if text:
            self._list.clear()
            self._parts.append(f"\n\n{text}")

    def _add(self, block: Block) -> None:
        if block.kind == "heading":
            text = self._joiner.join(block.texts)
            self.first_heading = self.first_heading or text
            self._put(markdown.heading(text, block.level))
        elif block.kind == "table" and block.table is not None:
            rows = [[self._joiner.join(cell.split("\n")) for cell in row] for row in block.table.rows]
            self._put(markdown.table(rows))
        elif block.kind == "code":
            self._put(markdown.code(code_text(block.lines)))
        elif block.kind == "image":
            self._add_image(block)
        elif block.kind == "item":
            self._add_item(
                block.lines[0].x0, block.lines[0].size, block.marker, self._joiner.join(block.texts)
            )
        elif block.kind == "entry":
            parts = entry(block.texts[0])
            text = f"{parts[0]} … {parts[1]}" if parts else block.texts[0]
            self._add_item(block.lines[0].x0, block.lines[0].size, "•", text)
        else:
            self._put(markdown.escape_text(self._joiner.join(block.texts)))

    def _add_item(self, x: float, size: float, marker: str, text: str) -> None:
        mark = "-"
        if marker[0].isdigit():
            mark = marker
        elif marker[-1] in ".)":
            text = f"{marker} {text}"  # Markdown knows no letters as markers.
        begins = not self._list
        while len(self._list) > 1 and x < self._list[-1][0] - _DEEPER * size:
            self._list.pop()
        if not self._list or x > self._list[-1][0] + _DEEPER * size:
            indent = self._list[-1][1] if self._list else 0
            self._list.append((x, indent + len(mark) + 1))
        else:
            outer = self._list[-2][1] if len(self._list) > 1 else 0
            self._list[-1] = x, outer + len(mark) + 1
        indent = self._list[-2][1] if len(self._list) > 1 else 0
        gap = "\n\n" if begins else "\n"
        self._parts.append(f"{gap}{' ' * indent}{mark} {markdown.escape_text(text)}")

    def _add_image(self, block: Block) -> None:
        asset = self._assets.get(block.piece.key) if isinstance(block.piece, Image) else None
        if asset is None:
            return
        caption = self._captions.get(id(block))
        text = self._joiner.join(caption.texts) if caption else ""
        if asset not in self.shown:
            self.shown.append(asset)
        self._put(markdown.image(text, asset.name))

    def _pair_captions(self) -> dict[int, Block]:
        """Return the caption of each image: the nearest one right below, else right above."""
        pairs: dict[int, Block] = {}
        taken: set[int] = set()
        for at, block in enumerate(self._blocks):
            if not isinstance(block.piece, Image) or block.piece.key not in self._assets:
                continue
            near = self._blocks[max(0, at - 3) : at + 4]
            found = [
                (_distance(block.lines[0], some), some)
                for some in near
                if some.kind == "text" and some.page == block.page and CAPTION.match(some.lines[0].text)
            ]
            found = [(far, some) for far, some in found if far is not None and id(some) not in taken]
            if found:
                caption = min(found, key=lambda pair: pair[0] or 0.0)[1]
                taken.add(id(caption))
                pairs[id(block)] = caption
        return pairs


def _distance(image: Line, caption: Block) -> float | None:
    """Return how far a caption is from an image, in points; none when it does not stand next to it.

    Below counts as nearer: most captions of figures stand there.
    """
    first, last = caption.lines[0], caption.lines[-1]
    if first.x0 > image.x1 or first.x1 < image.x0:
        return None
    half = image.size / 2
    below = image.y - half - first.y - 0.8 * first.size
    above = last.y - 0.3 * last.size - (image.y + half)
    within = _CAPTION_WITHIN * first.size
    if -first.size <= below <= within:
        return abs(below)
    return within + abs(above) if -first.size <= above <= within else None
