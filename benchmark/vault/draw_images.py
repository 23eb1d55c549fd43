"""Draws the images of the notes: ``python benchmark/vault/draw_images.py [FOLDER]``.

The same Pillow draws the same bytes. Text is set in Pillow's own small bitmap font, so that nothing
depends on the fonts of a machine.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

FOLDER = Path(__file__).parent / "notes" / "images"
WIDTH, HEIGHT = 480, 300
INK, PALE, SEA, ROCK, ALARM = (20, 30, 45), (225, 230, 235), (90, 140, 175), (120, 110, 100), (190, 60, 50)
LEFT, TOP, RIGHT, BOTTOM = 60, 40, WIDTH - 20, HEIGHT - 40

Point = tuple[float, float]


class Sheet:
    """A white sheet with a title, and the few shapes that the drawings are made of."""

    def __init__(self, title: str) -> None:
        self.image = Image.new("RGB", (WIDTH, HEIGHT), "white")
        self._pen = ImageDraw.Draw(self.image)
        self._font = ImageFont.load_default_imagefont()
        self.text(LEFT, 12, title)

    def text(self, x: float, y: float, words: str) -> None:
        """Write words from a point to the right."""
        self._pen.text((x, y), words, fill=INK, font=self._font)

    def box(self, x: float, y: float, x_end: float, y_end: float, colour: tuple[int, int, int]) -> None:
        """Draw a filled rectangle with an outline."""
        self._pen.rectangle((x, y, x_end, y_end), fill=colour, outline=INK)

    def line(self, points: Sequence[Point], colour: tuple[int, int, int] = INK, width: int = 1) -> None:
        """Draw a line through points."""
        self._pen.line(list(points), fill=colour, width=width)

    def dot(self, x: float, y: float, colour: tuple[int, int, int] = ALARM) -> None:
        """Draw a dot."""
        self._pen.ellipse((x - 4, y - 4, x + 4, y + 4), fill=colour, outline=INK)

    def axes(self, x_name: str, y_name: str) -> None:
        """Draw two axes with their names."""
        self.line([(LEFT, TOP), (LEFT, BOTTOM), (RIGHT, BOTTOM)])
        self.text(LEFT, BOTTOM + 22, x_name)
        self.text(4, TOP - 12, y_name)


def bars(title: str, values: Sequence[tuple[str, float]], unit: str) -> Sheet:
    """Draw a bar for each value, its name beneath it and the number above."""
    sheet = Sheet(title)
    sheet.axes("", unit)
    step = (RIGHT - LEFT) / len(values)
    top = max(value for _, value in values)
    for place, (name, value) in enumerate(values):
        x = LEFT + step * place + step * 0.2
        y = BOTTOM - (BOTTOM - TOP - 20) * value / top
        sheet.box(x, y, x + step * 0.6, BOTTOM, SEA)
        sheet.text(x, BOTTOM + 6, name)
        sheet.text(x, y - 14, f"{value:g}")
    return sheet


def curve(title: str, points: Sequence[Point], names: tuple[str, str], *, down: bool = False) -> Sheet:
    """Draw a curve through points scaled to the sheet; with ``down`` the second axis points downward."""
    sheet = Sheet(title)
    sheet.axes(*names)
    xs, ys = [x for x, _ in points], [y for _, y in points]
    x_span, y_span = max(xs) - min(xs), max(ys) - min(ys)

    def place(point: Point) -> Point:
        part = (point[1] - min(ys)) / y_span
        return (
            LEFT + (RIGHT - LEFT) * (point[0] - min(xs)) / x_span,
            TOP + (BOTTOM - TOP) * (part if down else 1 - part),
        )

    sheet.line([place(point) for point in points], SEA, 3)
    sheet.text(LEFT, BOTTOM + 6, f"{min(xs):g}")
    sheet.text(RIGHT - 30, BOTTOM + 6, f"{max(xs):g}")
    sheet.text(20, TOP if down else BOTTOM - 10, f"{min(ys):g}")
    sheet.text(20, BOTTOM - 10 if down else TOP, f"{max(ys):g}")
    return sheet


def aframe_limits() -> Sheet:
    """Draw the load plate of the A-frame."""
    return bars("A-frame: load by angle", [("upright", 1200), ("30 deg", 850), ("45 deg", 540)], "kg")


def pier_berths() -> Sheet:
    """Draw the pier with its four berths."""
    sheet = Sheet("Pier of Cutter Haven")
    sheet.box(LEFT, 90, RIGHT, 120, ROCK)
    berths = (("1 Agnes R.", 1.1), ("2 Dabchick", 1.9), ("3 visitors", 2.6), ("4 Fulmarine", 3.8))
    for place, (name, depth) in enumerate(berths):
        x = LEFT + place * 100
        sheet.box(x + 8, 130, x + 88, 165, SEA)
        sheet.text(x + 8, 172, name)
        sheet.text(x + 8, 188, f"{depth} m")
    return sheet


def m1_mooring() -> Sheet:
    """Draw the instruments of mooring M1 by depth."""
    sheet = Sheet("M1, the Widow")
    sheet.line([(200, 60), (200, 265)], width=2)
    parts = (("float", 12), ("T", 20), ("T", 40), ("T", 60), ("T", 80), ("profiler", 88), ("anchor", 94))
    for name, depth in parts:
        y = 45 + depth * 2.3
        sheet.dot(200, y)
        sheet.text(215 if depth != 88 else 105, y - 6, f"{name} {depth} m")
    return sheet


def tide_record() -> Sheet:
    """Draw the water level of the storm Ragna."""
    levels = [1.9, 3.6, 1.7, 4.4, 5.62, 2.2, 3.9, 1.6, 3.5, 1.5]
    points = [(round(29.7 + (place - 4) * 6.2, 1), level) for place, level in enumerate(levels)]
    return curve("Level, 11-13 January 2024", points, ("hours", "m"))


def ctd_profile() -> Sheet:
    """Draw the temperature profile with a thermocline at 34 m."""
    points = [(13.3, 0), (13.2, 15), (13.1, 33), (9.8, 35), (9.7, 60), (9.6, 88)]
    return curve("SD 2023-08-24 cast 3", points, ("temperature, C", "depth, m"), down=True)


def murmur_spectrogram() -> Sheet:
    """Draw five descending whistles over a band of calls."""
    sheet = Sheet("2024-05-03 21:14 to 21:16")
    sheet.axes("minutes", "kHz")
    sheet.box(LEFT + 2, 210, RIGHT, 232, PALE)
    for place, start in enumerate((6.5, 8.0, 5.5, 6.0, 5.0)):
        x = LEFT + 30 + place * 75
        sheet.line([(x, BOTTOM - start * 25), (x + 20, BOTTOM - 100), (x + 45, BOTTOM - 78)], SEA, 3)
    for khz in (3, 8):
        sheet.text(30, BOTTOM - khz * 25 - 6, str(khz))
    return sheet


def transect_layout() -> Sheet:
    """Draw five transects, the fourth over the wreck."""
    sheet = Sheet("Wrack Bay, lines A to E, 60 m")
    sheet.box(LEFT, 230, RIGHT, 260, ROCK)
    for place, name in enumerate("ABCDE"):
        x = LEFT + 60 + place * 70
        sheet.line([(x, 230), (x - 50, 80)], SEA, 3)
        sheet.dot(x, 230)
        sheet.text(x - 3, 240, name)
    for rib in range(4):
        sheet.line([(280 + rib * 12, 140), (290 + rib * 12, 165)], ALARM, 2)
    return sheet


def shore_zones() -> Sheet:
    """Draw the five zones of the shore as steps."""
    sheet = Sheet("Wrack Bay, heights above datum")
    zones = (
        ("grey lichen", "above 4.6"),
        ("black lichen", "3.9 - 4.6"),
        ("barnacles", "2.2 - 3.9"),
        ("wracks", "0.8 - 2.2"),
        ("kelp", "below 0.8"),
    )
    for place, (name, heights) in enumerate(zones):
        y = 45 + place * 44
        sheet.box(LEFT, y, LEFT + 80 + place * 60, y + 40, PALE if place % 2 else SEA)
        sheet.text(LEFT + 6, y + 6, name)
        sheet.text(LEFT + 6, y + 22, heights)
    return sheet


def nuns_census() -> Sheet:
    """Draw the nests of kittiwakes by year."""
    return bars("Kittiwake nests", [("1990", 4120), ("2000", 2780), ("2010", 1690), ("2023", 1324)], "nests")


def seal_count() -> Sheet:
    """Draw the August maximum of harbour seals."""
    points = [(2016.0, 188.0), (2018.0, 171.0), (2020.0, 149.0), (2022.0, 133.0), (2023.0, 140.0)]
    return curve("Harbour seals, August maximum", points, ("year", "seals"))


def muster_plan() -> Sheet:
    """Draw the grounds with the place of assembly."""
    sheet = Sheet("Fire: assemble at the flagpole")
    sheet.box(250, 80, 400, 140, ROCK)
    sheet.text(258, 100, "Kerr Wing")
    sheet.box(280, 190, 360, 230, PALE)
    sheet.text(288, 205, "boathouse")
    sheet.line([(110, 60), (110, 120)], ALARM, 3)
    sheet.dot(110, 120)
    sheet.text(70, 130, "flagpole, 70 m")
    sheet.dot(370, 210, SEA)
    sheet.text(380, 205, "hydrant")
    sheet.dot(400, 150)
    sheet.text(380, 158, "gas")
    return sheet


def station_plan() -> Sheet:
    """Draw the floor of the lifeboat house in 1931."""
    sheet = Sheet("Lifeboat house, 1931")
    for x, y, x_end, y_end, name in (
        (60, 60, 280, 190, "tank room 9 x 5 m"),
        (280, 60, 420, 130, "library"),
        (280, 130, 420, 190, "bed of A. R."),
    ):
        sheet.box(x, y, x_end, y_end, PALE)
        sheet.text(x + 10, y + 10, name)
    return sheet


def dough_stages() -> Sheet:
    """Draw three glasses of dough."""
    sheet = Sheet("Dough: start, ready, too far")
    for place, height in enumerate((70, 105, 140)):
        x = 80 + place * 130
        sheet.box(x, 70, x + 80, 250, (255, 255, 255))
        sheet.box(x, 250 - height, x + 80, 250, PALE)
        sheet.line([(x - 6, 180), (x + 86, 180)], ALARM, 3)
    return sheet


DRAWINGS: dict[str, Callable[[], Sheet]] = {
    "aframe-limits.png": aframe_limits,
    "ctd-profile.png": ctd_profile,
    "dough-stages.png": dough_stages,
    "m1-mooring.png": m1_mooring,
    "murmur-spectrogram.png": murmur_spectrogram,
    "muster-plan.png": muster_plan,
    "nuns-census.png": nuns_census,
    "pier-berths.png": pier_berths,
    "seal-count.png": seal_count,
    "shore-zones.png": shore_zones,
    "station-plan-1931.png": station_plan,
    "tide-record-2024.png": tide_record,
    "transect-layout.png": transect_layout,
}


def draw(folder: Path) -> list[Path]:
    """Draw every image into a folder and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, drawing in DRAWINGS.items():
        path = folder / name
        drawing().image.save(path, format="PNG", optimize=True)
        written.append(path)
    return written


if __name__ == "__main__":
    for drawn in draw(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER):
        print(f"{drawn.name} {drawn.stat().st_size}")
