"""The text of PDFs: words, paragraphs, columns, lists, tables, code."""

import random

import pytest

pytest.importorskip("pypdfium2", reason="PDFs are read with pypdfium2 (extra pdf)")
pytest.importorskip("reportlab", reason="PDFs for the tests are made with reportlab")

import pdf_world as world
from reportlab.lib.colors import black
from reportlab.lib.pagesizes import A4, landscape
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont

from searchsvc.importing.base import Limits
from searchsvc.importing.pdf import convert

TEXT = ParagraphStyle("t", fontName="Times-Roman", fontSize=10, leading=12, spaceAfter=6)


def read(data):
    return convert(data, Limits()).markdown


def page(*texts, **options):
    return read(world.drawn(lambda canv, _: world.lines(canv, texts, **options)))


def parts(markdown):
    return [part for part in markdown.strip().split("\n\n") if not part.startswith("<!-- page")]


def test_lines_of_one_paragraph_become_one_line():
    noise = [world.paragraph(random.Random(i)) for i in range(4)]
    data = world.flow([world.Paragraph(text, TEXT) for text in noise])
    assert parts(read(data)) == noise


def test_paragraphs_known_by_indent_alone_are_parted():
    style = ParagraphStyle("i", TEXT, spaceAfter=0, firstLineIndent=14, alignment=4)
    texts = [world.paragraph(random.Random(i), 8) for i in range(6)]
    assert parts(read(world.flow([world.Paragraph(text, style) for text in texts]))) == texts


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("align", [0, 4])
def test_words_stand_in_reading_order(columns, align):
    made = world.book(columns + 10 * align, columns=columns, align=align, sections=24)
    assert world.order_ratio(world.words_of(read(made.data)), made.words) >= 0.98


def test_a_title_over_both_columns_comes_first_and_columns_follow_each_other():
    made = world.paper()
    found = read(made.data)
    assert world.order_ratio(world.words_of(found), made.words) >= 0.98
    assert world.headings_of(found) == made.headings


@pytest.mark.parametrize(
    ("texts", "joined"),
    [
        (("we give an exam-", "ple of it here"), "we give an example of it here"),
        (
            ("a well-known fact is a well-", "known fact indeed"),
            "a well-known fact is a well-known fact indeed",
        ),
        (("the well is known and a well-", "known thing"), "the well is known and a well-known thing"),
        (("we met Jean-", "Paul in town"), "we met Jean-Paul in town"),
        (("cases of COVID-", "19 in town"), "cases of COVID-19 in town"),
        (("a dash - here and -", "there"), "a dash - here and - there"),
    ],
)
def test_a_hyphen_at_the_end_of_a_line_goes_unless_it_belongs_to_the_word(texts, joined):
    assert parts(page(*texts)) == [joined]


def test_bulleted_and_numbered_lists_stay_lists():
    def draw(canv, _):
        world.lines(canv, ["Before the list:"], y=700)
        world.lines(canv, ["• first item that goes on"], y=680)
        canv.drawString(70, 668, "goes further in its second line")
        world.lines(canv, ["• second item", "• third item"], y=656)
        world.lines(canv, ["1. one thing", "2. another thing"], y=600)
        canv.drawString(90, 576, "a) inner thing")

    found = read(world.drawn(draw))
    assert "- second item\n- third item" in found
    assert "- first item that goes on goes further in its second line\n" in found
    assert "1. one thing\n2. another thing\n   - a) inner thing" in found


def test_items_made_by_a_word_processor_are_items():
    items = world.ListFlowable(
        [world.Paragraph(text, TEXT) for text in ("Alpha beta", "Gamma delta")], bulletType="1"
    )
    assert "1\n" not in read(world.flow([items]))
    assert "Alpha beta" in read(world.flow([items]))


def test_a_ruled_table_becomes_a_table():
    rows = [["Name", "Value", "Note"], ["alpha", "1", "a | b"], ["beta", "2", "two words"]]
    data = world.flow(
        [world.Paragraph("Before.", TEXT), world.Table(rows, style=[("GRID", (0, 0), (-1, -1), 0.5, black)])]
    )
    assert parts(read(data)) == [
        "Before.",
        "| Name | Value | Note |\n| --- | --- | --- |\n| alpha | 1 | a \\| b |\n| beta | 2 | two words |",
    ]


def test_columns_aligned_over_three_rows_are_a_table():
    rows = [
        ["City", "People", "Area"],
        ["Ulm", "126000", "118"],
        ["Bonn", "331000", "141"],
        ["Trier", "112000", "117"],
    ]
    found = read(
        world.flow([world.Paragraph("Before.", TEXT), world.Table(rows, hAlign="LEFT", colWidths=90)])
    )
    assert "| City | People | Area |\n| --- | --- | --- |\n| Ulm | 126000 | 118 |" in found


def test_two_rows_are_no_table():
    def draw(canv, _):
        for y, row in ((700, ("Left one", "Right one")), (688, ("Left two", "Right two"))):
            canv.drawString(72, y, row[0])
            canv.drawString(300, y, row[1])

    assert "|" not in read(world.drawn(draw))


def test_code_keeps_its_lines_and_indents_in_a_fence():
    source = "def add(a, b):\n    if a:\n        return a  +  b\n\n    return '```'"
    style = ParagraphStyle("c", fontName="Courier", fontSize=9, leading=11)
    data = world.flow(
        [world.Paragraph("Text before code in a book.", TEXT)] * 9 + [world.Preformatted(source, style)]
    )
    assert f"````\n{source}\n````" in read(data)


CODE = [
    ["x  =  y  +  z", "if x:", "    return  x"],
    ["alpha  beta  gamma", "one  two"],
    ["int a;          // one", "int number;     // two", "if (a)", "\u00a0" * 8 + "b();"],
    ["    begins deep", "  less deep", "", "        deepest"],
    ["a", " b", "  c", "   d"],
    ["total   :=   0", "# 'quoted'  \"text\"", "```", "* not an item", "1. nor this"],
]


@pytest.mark.parametrize("source", CODE)
@pytest.mark.parametrize("columns", [1, 2])
def test_every_space_within_and_before_lines_of_code_is_kept(source, columns):
    style = ParagraphStyle("c", fontName="Courier", fontSize=8, leading=10)
    around = [world.Paragraph(world.paragraph(random.Random(seed), 8), TEXT) for seed in range(10)]
    data = world.flow([*around, world.Preformatted("\n".join(source), style), *around], columns=columns)
    least = min(len(line) - len(line.lstrip(" ")) for line in source if line)
    wanted = "\n".join(line[least:].replace("\u00a0", " ") for line in source)
    fence = "`" * (4 if "```" in source else 3)
    assert f"{fence}\n{wanted}\n{fence}" in read(data)


def test_words_of_code_in_bold_letters_keep_their_place():
    def draw(canv, _):
        world.lines(canv, world.prose(), y=760)
        for at, (bold, plain) in enumerate((("for", "    x in  y:"), ("    print", "         (x,   1)"))):
            world.lines(canv, [bold], y=600 - 10 * at, font="Courier-Bold", size=8)
            world.lines(canv, [plain], y=600 - 10 * at, font="Courier", size=8)

    assert "```\nfor x in  y:\n    print(x,   1)\n```" in read(world.drawn(draw))


def test_a_document_set_in_typewriter_letters_is_text():
    assert "```" not in page(*world.prose(), font="Courier", size=8)


def test_text_scaled_by_its_matrix_has_the_size_that_is_seen():
    def draw(canv, _):
        text = canv.beginText()
        for y, size, line in (
            (700, 20, "Large Heading"),
            *((670 - 12 * i, 10, t) for i, t in enumerate(world.prose())),
        ):
            text.setFont("Times-Roman", 1)
            text.setTextTransform(size, 0, 0, size, 72, y)
            text.textOut(line)
        canv.drawText(text)

    assert world.headings_of(read(world.drawn(draw))) == [(1, "Large Heading")]


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_a_page_turned_by_its_entry_reads_like_one_that_is_not(turn):
    def draw(canv, _):
        width, height = A4
        canv.setPageRotation(turn)
        canv.saveState()
        moves = {90: (width, 0, 90), 180: (width, height, 180), 270: (0, width, 270)}[turn]
        canv.translate(*moves[:2])
        canv.rotate(moves[2])
        world.lines(canv, world.prose(), x=60, y=500)
        canv.restoreState()

    assert world.words_of(read(world.drawn(draw))) == " ".join(world.prose()).split()


def test_a_table_turned_on_an_upright_page_and_a_landscape_page_are_read():
    def draw(canv, _):
        canv.rotate(90)
        world.lines(canv, world.prose(), x=60, y=-200)

    assert world.words_of(read(world.drawn(draw))) == " ".join(world.prose()).split()
    wide = world.drawn(lambda canv, _: world.lines(canv, world.prose(), y=400), size=landscape(A4))
    assert world.words_of(read(wide)) == " ".join(world.prose()).split()


def test_text_in_the_margin_that_runs_upwards_is_kept_apart():
    def draw(canv, _):
        world.lines(canv, world.prose())
        canv.rotate(90)
        world.lines(canv, ["arXiv stamp of the margin"], x=200, y=-20)

    assert parts(read(world.drawn(draw)))[-1] == "arXiv stamp of the margin"


def test_watermarks_aslant_are_no_text():
    def draw(canv, _):
        world.lines(canv, world.prose())
        canv.rotate(45)
        world.lines(canv, ["DRAFT"], x=400, y=200, size=80)

    assert "DRAFT" not in read(world.drawn(draw))


def test_small_capitals_are_one_word_and_a_heading_of_their_large_size():
    def draw(canv, _):
        canv.setFont("Times-Bold", 14)
        canv.drawString(72, 720, "I")
        canv.setFont("Times-Bold", 10.5)
        canv.drawString(72 + pdfmetrics.stringWidth("I", "Times-Bold", 14), 720, "NTRODUCTION")
        world.lines(canv, world.prose())

    assert world.headings_of(read(world.drawn(draw))) == [(1, "INTRODUCTION")]


def test_an_initial_over_two_lines_belongs_to_its_word():
    def draw(canv, _):
        canv.setFont("Times-Roman", 30)
        canv.drawString(72, 688, "T")
        world.lines(canv, ["he quick brown fox jumps", "over the lazy dog and"], x=92, y=700)
        world.lines(canv, ["goes on and on for a while longer."], y=676)

    assert parts(read(world.drawn(draw)))[0].startswith("The quick brown fox jumps over the lazy dog")


def test_chinese_lines_are_joined_without_spaces():
    pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))
    lines = ["这是一个关于搜索服务的例子我们希望", "它可以读取中文文本并且不加空格。"]
    assert parts(page(*lines, font="STSong-Light", size=12, leading=16)) == ["".join(lines)]


def test_words_are_parted_by_gaps_where_a_file_has_no_spaces():
    def draw(canv, _):
        x = 72
        canv.setFont("Times-Roman", 10)
        for word in ("Words", "without", "any", "space"):
            canv.drawString(x, 700, word)
            x += pdfmetrics.stringWidth(word, "Times-Roman", 10) + 2.4

    assert parts(read(world.drawn(draw))) == ["Words without any space"]


@pytest.mark.parametrize(
    "line",
    ["# no heading", "> no quote", "+ no item", "~~~ no fence", "``` no fence", "<!-- page 9 -->",
     "<b>no tag</b>", "[[no link]]", "[a](b)", "*no* emphasis*", "_no_ emphasis", "a ~~b~~",
     "&amp; stays", "[ref]: x",
     "C:\\*", "---"],
)  # fmt: skip
def test_what_markdown_would_take_for_a_mark_is_shown_as_it_is(line):
    from markdown_it import MarkdownIt

    (part,) = parts(page(line, "")) or [""]
    parser = MarkdownIt("commonmark").enable("strikethrough")
    tokens = parser.parse(part)
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    children = tokens[1].children
    assert "".join(child.content for child in children) == line
    assert {child.type for child in children} <= {"text", "text_special"}


@pytest.mark.parametrize(
    "line", ["a - b # c > d", "3.14 is a number", "snake_case and 2 * 3", "x < y & z", "array[1]"]
)
def test_plain_text_gets_no_needless_escapes(line):
    assert parts(page(line)) == [line]


def test_lines_of_contents_are_a_list_and_no_headings():
    found = page(
        "1 Introduction . . . . . . . . . . 1",
        "2 Methods . . . . . . . . . . . . . 7",
        "3 End . . . . . . . . . . 9",
    )
    assert parts(found) == ["- 1 Introduction … 1\n- 2 Methods … 7\n- 3 End … 9"]


def test_a_heading_below_columns_comes_after_both_of_them():
    left, right = world.prose(1, 6), world.prose(2, 6)

    def draw(canv, _):
        for at, (one, other) in enumerate(zip(left, right, strict=True)):
            world.lines(canv, [one[:45]], x=60, y=700 - 12 * at)
            world.lines(canv, [other[:45]], x=310, y=700 - 12 * at)
        world.lines(canv, ["A Short Heading"], x=60, y=600, size=14)
        world.lines(canv, world.prose(3), x=60, y=580)

    found = read(world.drawn(draw))
    assert found.index(right[5][:20]) < found.index("# A Short Heading") < found.index(world.prose(3)[0])


def test_the_last_line_above_columns_stays_with_its_paragraph():
    def draw(canv, _):
        world.lines(canv, [world.prose(5)[0][:-1], "and the end of it."], x=60, y=700)
        for at, (one, other) in enumerate(zip(world.prose(1), world.prose(2), strict=True)):
            world.lines(canv, [one[:45]], x=60, y=660 - 12 * at)
            world.lines(canv, [other[:45]], x=310, y=660 - 12 * at)

    assert parts(read(world.drawn(draw)))[0] == f"{world.prose(5)[0][:-1]} and the end of it."


def test_a_term_that_hangs_out_of_its_paragraph_stays_with_it():
    def draw(canv, _):
        world.lines(
            canv, ["Term of which the first line is as wide as the others and hangs out on the left"], y=600
        )
        world.lines(
            canv, ["while the other lines of it are set farther in than that one is, and so on."], x=92, y=588
        )

    assert "on the left while the other" in read(world.drawn(draw))


@pytest.mark.parametrize("raised", [3, 4.3, 6])
def test_the_mark_of_a_footnote_stays_in_its_line(raised):
    def draw(canv, _):
        world.lines(canv, ["first a line that holds a mark"], y=700)
        x = 72 + pdfmetrics.stringWidth("first a line that holds a mark", "Times-Roman", 10)
        world.lines(canv, ["1"], x=x, y=700 + raised, size=7)
        world.lines(canv, ["and one that follows it here"], y=688)

    assert parts(read(world.drawn(draw))) == ["first a line that holds a mark1 and one that follows it here"]


def test_the_mark_before_a_footnote_is_no_part_of_its_first_word():
    def draw(canv, _):
        world.lines(canv, ["7"], x=72, y=104, size=6)
        world.lines(
            canv, ["Possible words of a note, and more of", "them in a second line."], x=75, y=100, size=9
        )

    found = parts(read(world.drawn(draw)))[-1]
    assert found == "7 Possible words of a note, and more of them in a second line."
