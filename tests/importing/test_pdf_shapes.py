"""What is drawn on the pages of PDFs: tables, boxes that are none, bullets, and images in strips."""

import io

import pytest

pytest.importorskip("pypdfium2", reason="PDFs are read with pypdfium2 (extra pdf)")
pytest.importorskip("reportlab", reason="PDFs for the tests are made with reportlab")

import pdf_world as world
from PIL import Image as Pillow
from reportlab.lib.colors import black, lightgrey

from searchsvc.importing.base import Limits
from searchsvc.importing.pdf import convert


def read(draw, **limits):
    return convert(world.drawn(draw), Limits(**limits))


def parts(markdown):
    return [part for part in markdown.strip().split("\n\n") if not part.startswith("<!-- page")]


def boxes(canv, *places, fill=0):
    canv.setFillColor(lightgrey)
    for x, y, width, height in places:
        canv.rect(x, y, width, height, stroke=1 - fill, fill=fill)
    canv.setFillColor(black)


def frame_around_the_page(canv):
    boxes(canv, (40, 40, 515, 760))
    canv.line(40, 760, 555, 760)
    world.lines(canv, ["Head of the page", ""], y=770)
    world.lines(canv, world.prose(), x=60, y=700)


def panels_side_by_side(canv):
    boxes(canv, (60, 600, 220, 120), (300, 600, 220, 120), fill=1)
    for x in (70, 310):
        world.lines(canv, ["A panel of some colour", "with two lines of text"], x=x, y=690)


def diagram_of_four(canv):
    places = [(60, 650, 120, 50), (300, 650, 120, 50), (60, 500, 120, 50), (300, 500, 120, 50)]
    boxes(canv, *places)
    for x0, y0, x1, y1 in (
        (180, 675, 300, 675),
        (180, 525, 300, 525),
        (120, 550, 120, 650),
        (360, 550, 360, 650),
    ):
        canv.line(x0, y0, x1, y1)
    for at, (x, y, _, _) in enumerate(places):
        world.lines(canv, [f"Box number {at}"], x=x + 10, y=y + 20)


def chain_of_boxes(canv):
    boxes(canv, (60, 600, 120, 60), (220, 600, 120, 60), (380, 600, 120, 60))
    canv.line(180, 630, 220, 630)
    canv.line(340, 630, 380, 630)
    for x in (70, 230, 390):
        world.lines(canv, ["A line above", "and one below"], x=x, y=640, leading=24)


def boxes_within_boxes(canv):
    boxes(canv, (60, 400, 460, 320), (60, 560, 200, 160), (320, 400, 200, 160))
    world.lines(canv, ["Inside the upper box"], x=70, y=640)
    world.lines(canv, ["Inside the lower box"], x=330, y=480)
    world.lines(canv, ["In the outer box alone"], x=330, y=640)


def marked_lines(canv):
    for at, (text, width) in enumerate(
        (("Short one", 60), ("A longer line of text", 130), ("Short two", 60))
    ):
        boxes(canv, (70, 697 - 14 * at, width, 14), fill=1)
        world.lines(canv, [text], x=72, y=700 - 14 * at)
        world.lines(canv, ["and on"], x=150 if width == 60 else 210, y=700 - 14 * at)


def underlines(canv):
    y = 700
    for text in world.prose():
        world.lines(canv, [text], y=y)
        canv.line(72, y - 2, 300, y - 2)
        y -= 14


def axes_of_a_chart(canv):
    boxes(canv, (100, 400, 300, 200))
    for at in range(5):
        canv.line(100, 400 + 40 * at, 400, 400 + 40 * at)
        canv.line(100 + 60 * at, 400, 100 + 60 * at, 600)
        world.lines(canv, [f"{at}.0"], x=80, y=397 + 40 * at)
        world.lines(canv, [f"{at}"], x=98 + 60 * at, y=385)
    world.lines(canv, ["a legend"], x=110, y=585)


def boxes_in_white(canv):
    canv.setStrokeColorRGB(1, 1, 1)
    canv.grid([60, 200, 340], [600, 640, 680])
    for x in (70, 210):
        world.lines(canv, ["Text that stands", "in two columns"], x=x, y=650, leading=40)


DRAWINGS = [
    frame_around_the_page, panels_side_by_side, diagram_of_four, chain_of_boxes, boxes_within_boxes,
    marked_lines, underlines, axes_of_a_chart, boxes_in_white,
]  # fmt: skip


@pytest.mark.parametrize("drawing", DRAWINGS)
def test_drawings_of_boxes_and_lines_are_no_tables_and_lose_no_text(drawing):
    plain = world.drawn(lambda canv, _: drawing(canv))
    found = convert(plain, Limits()).markdown
    assert "|" not in found
    words = {"frame_around_the_page": "Head", "marked_lines": "longer", "axes_of_a_chart": "legend"}
    assert words.get(drawing.__name__, "") in found


def test_diagrams_keep_each_box_and_its_words():
    found = convert(world.drawn(lambda canv, _: diagram_of_four(canv)), Limits()).markdown
    assert all(f"Box number {at}" in found for at in range(4))


ROWS = [["Name", "Value", "Note"], ["alpha", "1", "one"], ["beta", "2", "two"], ["gamma", "3", "three"]]
TABLE = "| Name | Value | Note |\n| --- | --- | --- |\n" + "\n".join(
    f"| {' | '.join(row)} |" for row in ROWS[1:]
)


def cells(canv, xs=(75, 195, 315), top=704, step=20):
    for at, row in enumerate(ROWS):
        for x, text in zip(xs, row, strict=True):
            world.lines(canv, [text], x=x, y=top - step * at)


def test_a_grid_of_one_path_with_many_lines_is_a_table():
    def draw(canv, _):
        canv.grid([70, 190, 310, 430], [638, 658, 678, 698, 718])
        cells(canv)

    assert parts(read(draw).markdown) == [TABLE]


def test_cells_with_a_border_of_their_own_are_a_table():
    def draw(canv, _):
        boxes(canv, *((70 + 120 * x, 638 + 20 * y, 118, 18) for x in range(3) for y in range(4)))
        cells(canv, top=702)

    assert parts(read(draw).markdown) == [TABLE]


def test_a_table_without_rules_at_its_sides_keeps_its_outer_columns():
    def draw(canv, _):
        for at in range(5):
            canv.line(70, 718 - 20 * at, 550, 718 - 20 * at)
        for x in (190, 310, 430):
            canv.line(x, 638, x, 718)
        cells(canv)
        for at, text in enumerate(("More", "a", "b", "c")):
            world.lines(canv, [text], x=440, y=704 - 20 * at)

    (table,) = parts(read(draw).markdown)
    assert table.startswith(
        "| Name | Value | Note | More |\n| --- | --- | --- | --- |\n| alpha | 1 | one | a |"
    )


def test_a_table_of_which_only_the_head_is_ruled_off_has_a_row_for_each_line():
    def draw(canv, _):
        canv.rect(70, 638, 360, 80)
        canv.line(70, 698, 430, 698)
        for x in (190, 310):
            canv.line(x, 638, x, 718)
        cells(canv)

    assert parts(read(draw).markdown) == [TABLE]


def test_words_parted_at_the_ends_of_lines_of_a_cell_are_joined():
    def draw(canv, _):
        canv.grid([70, 190, 310], [650, 680, 710])
        world.lines(canv, ["Head"], x=75, y=690)
        world.lines(canv, ["Other"], x=195, y=690)
        world.lines(canv, ["something impor-", "tant to say"], x=75, y=670)
        world.lines(canv, ["1"], x=195, y=670)

    assert "| something important to say | 1 |" in read(draw).markdown


@pytest.mark.parametrize("ruled", [True, False])
def test_a_table_that_goes_on_over_the_page_is_one_with_one_head(ruled):
    def draw(canv, number):
        if number == 1:
            world.lines(canv, world.prose(), y=760)
        top = 118 if number == 1 else 780
        for at, row in enumerate(
            ROWS if number == 1 else [ROWS[0], ["delta", "4", "four"], ["eta", "5", "five"]]
        ):
            for x, text in zip((75, 195, 315), row, strict=True):
                world.lines(canv, [text], x=x, y=top - 20 * at)
        if ruled:
            canv.grid([70, 190, 310, 430], [top + 14 - 20 * at for at in range(5 if number == 1 else 4)])
        if number == 2:
            world.lines(canv, world.prose(2), y=600)

    found = convert(world.drawn(draw, 2), Limits()).markdown
    assert f"{TABLE}\n| delta | 4 | four |\n| eta | 5 | five |" in found
    assert found.count("Name") == 1


def test_numbers_along_an_axis_are_no_table():
    def draw(canv, _):
        for at in range(6):
            world.lines(canv, [f"{at}.0"], x=80, y=500 + 30 * at)
            world.lines(canv, [f"{at}"], x=340, y=500 + 30 * at)
        world.lines(canv, ["time in s"], x=180, y=470)
        world.lines(canv, ["space in m"], x=440, y=470)

    assert "|" not in read(draw).markdown


def test_bullets_that_are_drawn_make_items():
    def draw(canv, _):
        world.lines(canv, ["Before the list:"], y=720)
        for at, text in enumerate(("alpha beta", "gamma delta", "epsilon")):
            canv.circle(78, 703 - 12 * at, 1.6, fill=1)
            world.lines(canv, [text], x=90, y=700 - 12 * at)

    assert parts(read(draw).markdown) == ["Before the list:", "- alpha beta\n- gamma delta\n- epsilon"]


def test_bullets_far_from_their_items_make_no_table():
    def draw(canv, _):
        for at, text in enumerate(("alpha beta", "gamma delta", "epsilon zeta", "eta")):
            world.lines(canv, ["•"], x=72 if at % 3 == 0 else 92, y=700 - 12 * at)
            world.lines(canv, [text], x=90 if at % 3 == 0 else 110, y=700 - 12 * at)

    assert parts(read(draw).markdown) == ["- alpha beta\n  - gamma delta\n  - epsilon zeta\n- eta"]


def striped(side=120):
    """Return a picture no part of which looks like another."""
    made = Pillow.new("RGB", (side, side))
    made.putdata([(x * 2, y * 2, (x + y) % 256) for y in range(side) for x in range(side)])
    return made


def tiles(canv, picture, rows, columns, x=100, y=400, size=120.0):
    """Draw a picture in tiles, from below."""
    side = picture.width
    for row in reversed(range(rows)):
        for column in range(columns):
            edges = side * column // columns, side * row // rows
            ends = side * (column + 1) // columns, side * (row + 1) // rows
            part = picture.crop((*edges, *ends))
            at = x + size * edges[0] / side, y + size * (side - ends[1]) / side
            canv.drawImage(world.ImageReader(part), *at, size * part.width / side, size * part.height / side)


@pytest.mark.parametrize(("rows", "columns"), [(6, 1), (1, 6), (4, 4), (7, 1), (2, 1)])
@pytest.mark.parametrize("turn", [0, 90])
def test_an_image_cut_into_strips_or_tiles_is_one_image(rows, columns, turn):
    def draw(canv, _):
        if turn:
            canv.setPageRotation(turn)  # The text says what is upright.
        world.lines(canv, world.prose(), y=550)
        tiles(canv, striped(), rows, columns, y=300)

    (asset,) = read(draw).assets
    assert asset.name == "page-1-1.png"
    picture = Pillow.open(io.BytesIO(asset.data)).convert("RGB")
    assert picture.size == (120, 120)
    for x, y in ((5, 5), (60, 61), (100, 20), (20, 110)):
        assert (
            max(abs(a - b) for a, b in zip(picture.getpixel((x, y)), striped().getpixel((x, y)), strict=True))
            < 12
        )


def test_strips_that_are_small_together_are_left_out_and_pictures_side_by_side_stay_two():
    def draw(canv, _):
        tiles(canv, striped(), 3, 1, size=36.0)
        canv.drawImage(world.ImageReader(world.picture(1)), 60, 500, 200, 160)
        canv.drawImage(world.ImageReader(world.picture(2)), 260, 500, 200, 160)
        canv.drawImage(world.ImageReader(world.picture(3)), 300, 420, 100, 30)

    assert len(read(draw).assets) == 2


def test_strips_count_as_one_image_against_the_limits():
    def draw(canv, _):
        world.lines(canv, world.prose(), y=760)
        tiles(canv, striped(), 6, 1)

    found = read(draw, images=6)
    assert (len(found.assets), found.notices) == (1, ())
