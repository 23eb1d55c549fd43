"""What an importer makes of a PDF as a whole: headings, heads, pages, images, facts and refusals."""

import io
import random
import sys

import pytest

pytest.importorskip("pypdfium2", reason="PDFs are read with pypdfium2 (extra pdf)")
pytest.importorskip("reportlab", reason="PDFs for the tests are made with reportlab")

import pdf_world as world
from PIL import Image as Pillow
from reportlab.lib.pdfencrypt import StandardEncryption

from searchsvc.errors import ReadingError
from searchsvc.importing.base import Limits
from searchsvc.importing.pdf import convert

SHAPES = [
    {"columns": 1, "numbered": True},
    {"columns": 2, "align": 4, "leading": 12.5},
    {"columns": 1, "indent": 12, "body": 11, "leading": 13.2, "head": "The Running Head", "feet": "- {} -"},
    {
        "columns": 3,
        "fonts": ("Helvetica", "Helvetica-Bold"),
        "body": 9,
        "leading": 11,
        "feet": "Page {} of 90",
    },
    {"columns": 2, "bold_lowest": True, "head": "", "feet": ""},
    {"columns": 1, "body": 12, "leading": 17, "numbered": True, "bold_lowest": True},
]


def read(data, **limits):
    return convert(data, Limits(**limits))


def shown(picture, x=72, y=300, width=200, height=150):
    return lambda canv, _: canv.drawImage(world.ImageReader(picture), x, y, width, height)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("bookmarks", [True, False])
def test_headings_of_generated_books_are_found_with_and_without_bookmarks(shape, bookmarks):
    made = world.book(SHAPES.index(shape), bookmarks=bookmarks, sections=24, **shape)
    found = world.headings_of(read(made.data).markdown)
    recall, precision = world.recall_and_precision(found, made.headings)
    assert recall >= (0.95 if bookmarks else 0.85)
    assert precision >= (0.9 if bookmarks else 0.85)
    if bookmarks:
        assert found == made.headings


@pytest.mark.parametrize("shape", SHAPES)
def test_running_heads_feet_and_page_numbers_are_gone_and_no_word_of_the_text_is(shape):
    made = world.book(70 + SHAPES.index(shape), sections=30, **shape)
    found = read(made.data).markdown
    assert "Great Book" not in found
    assert "Running Head" not in found
    assert world.order_ratio(world.words_of(found), made.words) >= 0.98


def test_headings_at_the_top_of_pages_that_differ_in_a_number_stay():
    def draw(canv, number):
        world.lines(canv, [f"Chapter {number}"], y=760, size=20)
        world.lines(canv, world.prose(number))

    found = world.headings_of(read(world.drawn(draw, 4)).markdown)
    assert found == [(1, f"Chapter {number}") for number in range(1, 5)]


def test_the_head_of_a_short_chapter_goes_with_those_of_long_ones():
    def draw(canv, number):
        world.lines(canv, ["Of Long Things" if number < 5 else "Of Short Things"], y=790, size=8)
        world.lines(canv, world.prose(number))

    found = read(world.drawn(draw, 5)).markdown
    assert "Long Things" not in found
    assert "Short Things" not in found


def test_a_title_larger_than_all_that_bookmarks_name_is_the_first_heading():
    def draw(canv, _):
        world.lines(canv, ["The Title Of It All"], y=760, size=20)
        for at, title in enumerate(("First Part", "Second Part")):
            world.lines(canv, [title], y=720 - 200 * at, size=14)
            world.lines(canv, world.prose(at), y=690 - 200 * at)
            canv.bookmarkHorizontalAbsolute(title, 735 - 200 * at)
            canv.addOutlineEntry(title, title, 0)

    found = read(world.drawn(draw))
    assert world.headings_of(found.markdown) == [
        (1, "The Title Of It All"), (2, "First Part"), (2, "Second Part"),
    ]  # fmt: skip
    assert found.title == "The Title Of It All"


def test_rows_of_large_cells_are_no_headings():
    def draw(canv, _):
        world.lines(canv, world.prose(), y=760)
        for at in range(2):
            for x in (72, 200, 320):
                world.lines(canv, [f"cell {at}"], x=x, y=500 - 17 * at, size=12)

    assert world.headings_of(read(world.drawn(draw)).markdown) == []


def test_a_bookmark_whose_text_is_not_on_its_page_is_a_heading_where_it_points():
    lines = world.prose(1, 6)

    def draw(canv, _):
        world.lines(canv, lines[:3], y=700)
        world.lines(canv, lines[3:], y=500)
        canv.bookmarkHorizontalAbsolute("a", 710)
        canv.addOutlineEntry("Not On The Page", "a", 0)
        canv.bookmarkHorizontalAbsolute("b", 520)
        canv.addOutlineEntry("Nor This", "b", 1)

    found = read(world.drawn(draw)).markdown
    assert world.headings_of(found) == [(1, "Not On The Page"), (2, "Nor This")]
    assert found.index(lines[2]) < found.index("## Nor This") < found.index(lines[3])


def test_bookmarks_name_headings_with_other_numbers_case_and_over_two_lines():
    def draw(canv, _):
        world.lines(canv, ["1.2 A Heading That Goes", "Over Two Lines"], y=720, size=14, leading=17)
        world.lines(canv, world.prose(), y=670)
        for key, title in (("a", "A heading that goes over two lines"), ("b", "Other")):
            canv.bookmarkHorizontalAbsolute(key, 740 if key == "a" else 100)
            canv.addOutlineEntry(title, key, 0)

    assert world.headings_of(read(world.drawn(draw)).markdown)[0] == (
        1,
        "1.2 A Heading That Goes Over Two Lines",
    )


def test_one_bookmark_alone_does_not_hide_the_headings_below_it():
    def draw(canv, _):
        world.lines(canv, ["The Title"], y=760, size=20)
        world.lines(canv, ["A Section"], y=720, size=14)
        world.lines(canv, world.prose(), y=690)
        canv.bookmarkPage("a")
        canv.addOutlineEntry("The Title", "a", 0)

    assert world.headings_of(read(world.drawn(draw)).markdown) == [(1, "The Title"), (2, "A Section")]


def test_captions_large_numbers_and_emphasised_words_are_no_headings():
    def draw(canv, _):
        y = world.lines(canv, world.prose())
        world.lines(canv, ["Figure 1: what is shown"], y=y - 20, font="Times-Bold")
        world.lines(canv, ["42"], y=y - 80, size=30)
        world.lines(canv, ["Note:"], y=y - 120, font="Times-Bold")
        world.lines(canv, world.prose(2), y=y - 150)

    assert world.headings_of(read(world.drawn(draw)).markdown) == []


def test_every_page_has_its_mark_in_order_and_a_paragraph_over_a_break_stays_whole():
    texts = ["the first page holds a sentence that is not at its end but goes", "on upon the second page."]

    def draw(canv, number):
        if number < 3:
            world.lines(canv, [world.prose(number, 1)[0]] if number == 9 else [texts[number - 1]])
            world.lines(canv, world.prose(number, 3), y=500) if number == 2 else None
        if number == 4:
            world.lines(canv, world.prose(7, 3))

    found = read(world.drawn(draw, 4))
    assert found.pages == 4
    parts = found.markdown.strip().split("\n\n")
    assert parts[:3] == ["<!-- page 1 -->", " ".join(texts), "<!-- page 2 -->"]
    assert [part for part in parts if part.startswith("<!--")] == [f"<!-- page {n} -->" for n in range(1, 5)]


def test_pages_without_a_text_layer_are_told_and_have_marks_and_their_image():
    def draw(canv, number):
        if number in (1, 2, 4):
            shown(world.picture(number), 0, 0, 595, 842)(canv, number)
        else:
            world.lines(canv, world.prose())

    found = read(world.drawn(draw, 5))
    assert found.notices == ("3 of 5 pages have no text layer: nothing was recognised on pages 1-2, 4",)
    assert [asset.name for asset in found.assets] == ["page-1-1.png", "page-2-1.png", "page-4-1.png"]
    scanned = read(world.drawn(shown(world.picture(), 0, 0, 595, 842)))
    assert scanned.notices == ("1 of 1 pages has no text layer: nothing was recognised on page 1",)
    assert scanned.markdown == "<!-- page 1 -->\n\n![](assets/page-1-1.png)\n"


def test_an_image_is_a_png_at_its_place_with_its_caption():
    before, after = world.prose(1, 2), world.prose(2, 2)

    def draw(canv, number):
        world.lines(canv, before, y=700)
        shown(world.picture(), y=450)(canv, number)
        world.lines(canv, ["Figure 1: A [small] picture"], y=435)
        world.lines(canv, after, y=400)

    found = read(world.drawn(draw))
    (asset,) = found.assets
    picture = Pillow.open(io.BytesIO(asset.data))
    assert (asset.name, picture.format) == ("page-1-1.png", "PNG")
    wanted = r"![Figure 1: A \[small\] picture](assets/page-1-1.png)"
    assert found.markdown.index(before[1]) < found.markdown.index(wanted) < found.markdown.index(after[0])
    assert found.markdown.count("Figure 1") == 1


def test_an_image_is_upright_on_a_page_that_is_turned():
    half = Pillow.new("RGB", (80, 60), "white")
    half.paste("red", (0, 0, 80, 30))

    def draw(canv, _):
        canv.setPageRotation(90)
        canv.translate(595, 0)
        canv.rotate(90)
        canv.drawImage(world.ImageReader(half), 72, 300, 160, 120)

    (asset,) = read(world.drawn(draw)).assets
    picture = Pillow.open(io.BytesIO(asset.data))
    width, height = picture.size
    assert width > height
    assert picture.getpixel((width // 2, height // 8)) == (255, 0, 0)


def test_an_image_on_two_pages_is_one_file_and_a_logo_on_three_is_none():
    def draw(canv, number):
        world.lines(canv, world.prose(number))
        shown(logo, y=100)(canv, number)

    logo = world.ImageReader(world.picture())
    twice = read(world.drawn(draw, 2))
    assert len(twice.assets) == 1
    assert read(world.drawn(draw, 3)).assets == ()


def test_small_images_are_left_out():
    assert read(world.drawn(shown(world.picture(), width=39, height=200))).assets == ()


def test_an_image_of_too_many_pixels_is_left_out_with_a_notice():
    found = read(world.bomb())
    assert found.assets == ()
    assert any(
        "1 images were left out: they have more than 50,000,000 pixels" in text for text in found.notices
    )


def test_limits_of_images_are_held_with_a_notice():
    def draw(canv, number):
        shown(world.picture(number))(canv, number)

    found = read(world.drawn(draw, 3), images=1)
    assert len(found.assets) == 1
    assert any("2 images were left out" in text for text in found.notices)
    assert read(world.drawn(draw), image_bytes=100).assets == ()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (b"PK\x03\x04 something else", "not a PDF"),
        (b"%PDF-1.7\n" + b"garbage " * 100 + b"\n%%EOF", "damaged"),
        (b"%PDF-1.7\n1 0 obj <</Type/Cat", "cut off"),
    ],
)
def test_what_is_no_readable_pdf_is_refused_with_what_to_do(data, says):
    with pytest.raises(ReadingError, match=says):
        read(data)


def test_a_password_is_asked_for_only_when_reading_needs_one():
    def draw(canv, _):
        world.lines(canv, world.prose())

    with pytest.raises(ReadingError, match="password"):
        read(world.drawn(draw, encrypt=StandardEncryption("secret", "owner")))
    assert world.prose()[0] in read(world.drawn(draw, encrypt=StandardEncryption("", "owner"))).markdown


def test_too_many_bytes_pages_or_characters_are_refused_or_cut_with_a_notice():
    data = world.drawn(lambda canv, number: world.lines(canv, world.prose(number)), 4)
    with pytest.raises(ReadingError, match="at most 100 are read"):
        read(data, file_bytes=100)
    with pytest.raises(ReadingError, match="4 pages, at most 3"):
        read(data, pages=3)
    cut = read(data, text_characters=1500)
    assert "only pages 1-" in cut.notices[0]
    assert len(cut.markdown) <= 1500
    with pytest.raises(ReadingError, match="characters"):
        read(data, text_characters=10)


def test_without_pdfium_the_extra_to_install_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    with pytest.raises(ReadingError, match=r"pip install 'searchsvc\[pdf\]'"):
        read(world.drawn(lambda canv, _: world.lines(canv, world.prose())))


def test_importing_the_module_loads_no_pdfium():
    import subprocess

    code = "import sys, searchsvc.importing.pdf; sys.exit('pypdfium2' in sys.modules or 'PIL' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_same_file_becomes_the_same_book():
    data = world.book(5, sections=8).data
    assert read(data) == read(data)


def test_damaged_files_become_books_or_are_refused_and_nothing_else():
    def draw(canv, number):
        world.lines(canv, world.prose(number), y=750)
        shown(world.picture(number))(canv, number)

    bases = [world.book(2, sections=4).data, world.drawn(draw, 2), world.drawn(draw, 2, pageCompression=0)]
    for seed in range(120):
        chance = random.Random(seed)
        data = bytearray(bases[seed % len(bases)])
        if seed % 4 == 0:
            del data[chance.randrange(len(data)) :]
        for _ in range(chance.choice([1, 10, 100]) if data else 0):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            book = read(bytes(data))
        except ReadingError as error:
            assert str(error)
        else:
            assert book.markdown.startswith("<!-- page 1 -->")
            assert "\0" not in book.markdown
