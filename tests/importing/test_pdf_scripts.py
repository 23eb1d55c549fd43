"""The text of PDFs in scripts and directions of many kinds, and pages that are turned, cut and scaled."""

import pytest

pytest.importorskip("pypdfium2", reason="PDFs are read with pypdfium2 (extra pdf)")
pytest.importorskip("reportlab", reason="PDFs for the tests are made with reportlab")

import pdf_world as world
from reportlab.lib.pagesizes import A4
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont

from searchsvc.importing.base import Limits
from searchsvc.importing.pdf import convert

SHALOM, OLAM = "שלום", "עולם"


def read(data):
    return convert(data, Limits()).markdown


def parts(markdown):
    return [part for part in markdown.strip().split("\n\n") if not part.startswith("<!-- page")]


def spelled(*rows, **options):
    """Return what is read of lines whose glyphs are given from the left."""
    return parts(read(world.spelled([(100, 700 - 14 * at, row) for at, row in enumerate(rows)], **options)))


@pytest.mark.parametrize(
    "glyphs",
    [
        [*"di", "ff", *"erent o", "ffi", *"ce ", "fi", *"sh ", "fl", *"ow"],
        ["d", "i", "\ufb00", "e", "r", "e", "n", "t", " ", "o", "\ufb03", "c", "e", " ", "\ufb01", "s", "h",
         " ", "\ufb02", "o", "w"],
    ],
    ids=["several-letters", "code-points"],
)  # fmt: skip
def test_one_glyph_for_several_letters_is_read_as_those_letters(glyphs):
    assert spelled(glyphs) == ["different office fish flow"]


def test_a_ligature_at_the_beginning_of_a_line_or_item_stays_with_its_word():
    assert spelled([*"office and", " ", "the"], ["fi", *"rst one"]) == ["office and the first one"]
    assert spelled([*"• ", "fi", *"rst"], [*"• ", "ffi", *"x"]) == ["- first\n- ffix"]


def test_soft_hyphens_go_at_ends_of_lines_and_where_they_are_not_shown():
    hidden = [*"an", "\u00ad", *"other exam\u00ad"]
    assert spelled(hidden, list("ple of it")) == ["an-other example of it"]
    assert spelled([*"in", "\u00ad", *"visible"], inkless="\u00ad") == ["invisible"]


def test_a_space_that_is_gone_back_over_parts_no_word():
    assert parts(read(world.spelled([(100, 700, list("riv ")), (121.8, 700, list("er"))]))) == ["river"]


@pytest.mark.parametrize(
    ("glyphs", "text"),
    [
        (f"{OLAM[::-1]} {SHALOM[::-1]}", f"{SHALOM} {OLAM}"),
        (f"abc {OLAM[::-1]} {SHALOM[::-1]} defghijkl", f"abc {SHALOM} {OLAM} defghijkl"),
        (f"123 {SHALOM[::-1]}", f"{SHALOM} 123"),
        (f"{OLAM[::-1]} two {SHALOM[::-1]}", f"{SHALOM} two {OLAM}"),
        (["م", "لا", "س"], "سلام"),
        (["\ufee1", "\ufefc", "\ufeb3"], "سلام"),
        (["الله"], "الله"),
        (["\ufdf2"], "الله"),
    ],
    ids=[
        "hebrew",
        "within-latin",
        "number",
        "latin-within",
        "ligature",
        "presentation-forms",
        "god",
        "god-form",
    ],
)
def test_text_from_the_right_is_read_in_the_order_in_which_it_is_spoken(glyphs, text):
    assert spelled(list(glyphs)) == [text]


def test_letters_from_the_right_that_are_placed_one_by_one_make_words():
    pieces = [(300 - 7.2 * at, 700, [letter]) for at, letter in enumerate(f"{SHALOM} {OLAM}")]
    assert parts(read(world.spelled(pieces))) == [f"{SHALOM} {OLAM}"]


def test_vowel_marks_stay_with_their_letters():
    assert spelled(list("\u05dd\u05d5\u05b8\u05dc\u05b0\u05e9"), inkless="\u05b8\u05b0") == ["שְלָום"]


def test_lines_from_the_right_make_paragraphs_and_columns_from_the_right():
    def lines(x, first, count):
        texts = [f"{chr(0x5D0 + (first + at) % 27)}{SHALOM} " + f"{OLAM} " * 6 for at in range(count)]
        return [(x, 700 - 14 * at, list(text.strip()[::-1])) for at, text in enumerate(texts)], texts

    right, first = lines(320, 0, 8)
    left, second = lines(40, 8, 8)
    found = read(world.spelled([*left, *right]))
    assert world.words_of(found) == " ".join([*first, *second]).split()
    assert len(parts(found)) == 1


@pytest.mark.parametrize("shapes", ["()", ")("])
def test_brackets_in_text_from_the_right_close_what_they_open(shapes):
    glyphs = f"{OLAM[::-1]} {shapes[0]}{SHALOM[::-1]}{shapes[1]} {OLAM[::-1]}"
    assert spelled(list(glyphs)) == [f"{OLAM} ({SHALOM}) {OLAM}"]


def test_drawn_bullets_and_tables_from_the_right():
    pieces = [(300, 700 - 14 * at, list(SHALOM[::-1])) for at in range(3)]
    rows = [[OLAM, "1"], [SHALOM, "2"]]
    for at, row in enumerate(rows):
        pieces += [(300 - 100 * column, 600 - 20 * at, list(text[::-1])) for column, text in enumerate(row)]
    dots = "".join(f"{300 + 28.8 + 12} {702 - 14 * at} 3 3 re f\n" for at in range(3))
    grid = "".join(f"190 {574 + 20 * at} m 340 {574 + 20 * at} l S\n" for at in range(3))
    grid += "".join(f"{x} 574 m {x} 614 l S\n" for x in (190, 290, 340))
    found = parts(read(world.spelled(pieces, drawn=dots + grid)))
    assert found == [
        "\n".join([f"- {SHALOM}"] * 3), f"| {OLAM} | 1 |\n| --- | --- |\n| {SHALOM} | 2 |",
    ]  # fmt: skip


def test_vertical_lines_are_read_downwards_and_from_the_right():
    columns = ["这是一个关于搜索服务的", "例子我们希望它可以读取", "中文文本并且不加空格。"]
    pieces = [(500 - 20 * at, 700, list(text)) for at, text in enumerate(columns)]
    assert parts(read(world.spelled(pieces, vertical=True))) == ["".join(columns)]


def test_letters_of_vertical_lines_that_stand_higher_in_their_squares_keep_their_order():
    # Set with a font of horizontal letters, each at a place of its own.
    places = {"例": 700, "子": 688, "，": 691, "我": 664, "一": 661, "些": 640}
    pieces = [(500, y, [letter]) for letter, y in places.items()]
    pieces += [(480, 700 - 12 * at, [letter]) for at, letter in enumerate("第二段落")]
    assert parts(read(world.spelled(pieces))) == ["例子，我一些第二段落"]


def test_chinese_that_is_spread_to_fill_its_line_gets_no_blanks_and_keeps_those_around_latin():
    pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))

    def draw(canv, _):
        canv.setFont("STSong-Light", 12)
        for y, text in ((700, "这是一个关于搜索服务"), (684, "例子我们希望它可以读")):
            canv.drawString(72, y, text, charSpace=4)
        canv.drawString(72, 668, "我们用 PDF 和 Markdown 文件")

    (text,) = parts(read(world.drawn(draw)))
    assert text == "这是一个关于搜索服务例子我们希望它可以读我们用 PDF 和 Markdown 文件"


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
@pytest.mark.parametrize("scale", [1, 12])
def test_pages_turned_cropped_and_scaled_keep_sizes_and_order(turn, scale):
    width, height = A4
    left, right = world.prose(1, 12), world.prose(2, 12)

    def draw(canv, _):
        canv.setPageRotation(turn)
        canv.setCropBox((100, 50, width + 100, height + 50))
        moves = {0: (0, 0), 90: (width, 0), 180: (width, height), 270: (0, height)}[turn]
        canv.translate(100 + moves[0], 50 + moves[1])
        canv.rotate(turn)
        canv.scale(1 / scale, 1 / scale)
        say(canv, "Out Of Sight", 72, 5000, 10)
        say(canv, "The Large Heading", 60, 520, 18)
        for at, (one, other) in enumerate(zip(left, right, strict=True)):
            say(canv, one[:45], 60, 480 - 12 * at, 10)
            say(canv, other[:45], 320, 480 - 12 * at, 10)

    def say(canv, text, x, y, size):
        canv.setFont("Times-Roman", size * scale)
        canv.drawString(x * scale, y * scale, text)

    found = read(world.drawn(draw, size=(width + 300, height + 300)))
    assert world.headings_of(found) == [(1, "The Large Heading")]
    wanted = " ".join(["The Large Heading", *(text[:45] for text in (*left, *right))]).split()
    assert world.order_ratio(world.words_of(found), wanted) >= 0.98
    assert "Out Of Sight" not in found
