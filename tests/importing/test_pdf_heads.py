"""Running heads and feet of short PDFs, and what only looks like them."""

import pytest

pytest.importorskip("pypdfium2", reason="PDFs are read with pypdfium2 (extra pdf)")
pytest.importorskip("reportlab", reason="PDFs for the tests are made with reportlab")

import pdf_world as world

from searchsvc.importing.base import Limits
from searchsvc.importing.pdf import convert


def read(data):
    return convert(data, Limits())


@pytest.mark.parametrize("pages", [3, 4, 5])
def test_heads_that_alternate_left_and_right_are_gone_from_short_documents_too(pages):
    def draw(canv, number):
        if number % 2:
            canv.drawRightString(520, 790, "Journal of Rivers")
        else:
            canv.drawString(72, 790, "A. Lee and B. Chen")
        world.lines(canv, world.prose(number), y=740)
        canv.drawCentredString(300, 40, f"Page {number} of {pages}")

    found = read(world.drawn(draw, pages)).markdown
    assert "Journal" not in found
    assert "Chen" not in found
    assert "Page" not in found


def test_first_lines_of_pages_that_differ_stay():
    def draw(canv, number):
        world.lines(canv, [world.prose(number)[0]], y=790)
        world.lines(canv, world.prose(number)[1:], y=740)

    found = read(world.drawn(draw, 4)).markdown
    assert all(world.prose(number)[0] in found for number in range(1, 5))


@pytest.mark.parametrize("font", ["Courier", "Times-Roman"])
def test_code_and_rows_that_are_the_same_at_the_top_of_pages_stay(font):
    def draw(canv, number):
        for x, text in ((72, "key  = 1"), (200, "value"), (320, "note")):
            world.lines(canv, [text, text, text], x=x, y=790, font=font, size=9)
        world.lines(canv, world.prose(number), y=740)

    assert read(world.drawn(draw, 4)).markdown.count("note") == 12
