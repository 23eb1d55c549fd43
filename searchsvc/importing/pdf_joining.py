"""Paragraphs and tables that the end of a column or page parts, joined again."""

from searchsvc.importing.pdf_blocks import CAPTION, Block, Body, ends_sentence, is_very_short
from searchsvc.importing.pdf_markdown import HYPHENS
from searchsvc.importing.pdf_tables import Table, continues, make_aligned

_SAME_EDGE = 3.0
"""Points between the edges of both parts of a table."""


def join_over_breaks(blocks: list[Block], body: Body) -> list[Block]:
    """Join paragraphs and tables that run over the end of a column or page.

    Notes and images below do not part a paragraph.
    """
    joined: list[Block] = []
    for block in blocks:
        if joined and _goes_on_in(joined[-1], block):
            _add_rows(joined[-1], block)
            continue
        before = (
            _broken_off(joined, block)
            if block.kind == "text" and not body.stands_out(block.lines[0])
            else None
        )
        if before is None:
            joined.append(block)
        else:
            before.lines += block.lines
            before.end = block.end
    return joined


def _broken_off(joined: list[Block], block: Block) -> Block | None:
    """Return the paragraph that a block goes on with."""
    first = block.lines[0]
    for before in reversed(joined[-8:]):
        if before.kind in ("text", "item"):
            last = before.lines[-1]
            if last.size >= 0.93 * first.size and not CAPTION.match(before.lines[0].text):
                break
        elif before.kind not in ("image", "table"):
            return None
        if before.end[0] < block.page - 1:
            return None
    else:
        return None
    page, column = before.end
    over = page != block.page or column != first.column
    if not over or abs(last.size - first.size) > 0.03 * first.size or last.bold != first.bold:
        return None
    if last.text.endswith(HYPHENS) and first.text[0].islower():
        return before
    if ends_sentence(last.text):
        return None
    full = last.x1 >= last.right - 3 * last.size and first.x0 <= first.left + 0.5 * first.size
    return before if first.text[0].islower() or (full and not is_very_short(last)) else None


def _goes_on_in(before: Block, block: Block) -> bool:
    """Return whether a block at the top of a page holds more rows of the table that ends the page before."""
    if before.table is None or before.end[0] != block.page - 1:
        return False
    if before.lines[0].piece is None:
        return block.kind in ("text", "table") and continues(before.lines, block.lines)
    if block.table is None or len(block.table.rows[0]) != len(before.table.rows[0]):
        return False
    first, then = before.lines[0], block.lines[0]
    return abs(first.x0 - then.x0) < _SAME_EDGE and abs(first.x1 - then.x1) < _SAME_EDGE


def _add_rows(before: Block, block: Block) -> None:
    """Add the rows of a block to a table, but for a head that is repeated."""
    assert before.table is not None
    if before.lines[0].piece is None:
        lines = block.lines
        if [cell[2] for cell in lines[0].cells] == [cell[2] for cell in before.lines[0].cells]:
            lines = lines[1:]
        before.lines += lines
        before.table = make_aligned(before.lines)
    elif block.table is not None:
        rows = block.table.rows
        before.table = Table((*before.table.rows, *(rows[1:] if rows[0] == before.table.rows[0] else rows)))
    before.end = block.end
