"""PDFs made for the tests, with what they hold known: headings, words in order, images."""

import difflib
import io
import random
import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import reportlab
from PIL import Image as Pillow
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen import canvas
from reportlab.platypus import (
    BaseDocTemplate,
    Frame,
    FrameBreak,
    Image,
    ListFlowable,
    NextPageTemplate,
    PageTemplate,
    Paragraph,
    Preformatted,
    Spacer,
    Table,
)

WORDS = (
    "river stone valley ancient measure of the and to in a that with for on light water system common value "
    "between people history without number several example language structure method result follow present "
    "because through under general important consider develop possible different question answer begin "
    "energy market theory surface motion city winter summer garden window paper letter simple early large"
).split()


@dataclass
class Made:
    """A PDF, and what a reader should find in it."""

    data: bytes
    headings: list[tuple[int, str]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)


class _Marked(Paragraph):
    """A heading that puts itself into the outline."""

    level = 0

    def draw(self):
        key = f"h{id(self)}"
        self.canv.bookmarkHorizontalAbsolute(key, self.canv.absolutePosition(0, self.height)[1])
        self.canv.addOutlineEntry(self.getPlainText(), key, self.level)
        super().draw()


def picture(seed=1, size=(120, 90)):
    """Return a picture that no two seeds share."""
    noise = random.Random(seed)
    small = Pillow.new("RGB", (12, 9))
    small.putdata([(noise.randrange(256), noise.randrange(256), noise.randrange(256)) for _ in range(108)])
    written = io.BytesIO()
    small.resize(size).save(written, "PNG")
    written.seek(0)
    return written


def sentence(noise, low=6, high=16):
    words = [noise.choice(WORDS) for _ in range(noise.randint(low, high))]
    return " ".join(words).capitalize() + "."


def paragraph(noise, sentences=5):
    return " ".join(sentence(noise) for _ in range(noise.randint(2, sentences)))


def _title(noise):
    return " ".join(noise.choice(WORDS).capitalize() for _ in range(noise.randint(2, 7)))


def _styles(fonts, body, leading, indent, align, bold_lowest):
    roman, bold = fonts
    sizes = [body * 1.8, body * 1.4, body * 1.2]
    styles = [
        ParagraphStyle(
            f"h{i}", fontName=bold, fontSize=size, leading=size * 1.25, spaceBefore=10, spaceAfter=5
        )
        for i, size in enumerate(sizes)
    ]
    if bold_lowest:
        styles[2] = ParagraphStyle("h2", fontName=bold, fontSize=body, leading=leading, spaceBefore=6)
    text = ParagraphStyle(
        "text", fontName=roman, fontSize=body, leading=leading, alignment=align,
        spaceAfter=0 if indent else 5, firstLineIndent=indent,
    )  # fmt: skip
    return styles, text


def _decorate(head, feet):
    def draw(canv, document):
        number = canv.getPageNumber()
        width, height = A4
        canv.saveState()
        canv.setFont("Helvetica", 8)
        if head == "odd-even":
            if number % 2:
                canv.drawRightString(width - 60, height - 40, f"Chapter {1 + number // 4}    {number}")
            else:
                canv.drawString(60, height - 40, f"{number}    The Great Book")
        elif head:
            canv.drawString(60, height - 40, head)
        if feet:
            canv.drawCentredString(width / 2, 30, feet.format(number))
        canv.restoreState()

    return draw


def book(
    seed, columns=1, bookmarks=True, numbered=False, head="odd-even", feet="{}",
    fonts=("Times-Roman", "Times-Bold"), body=10, leading=12, indent=0, align=0, sections=18,
    bold_lowest=False,
):  # fmt: skip
    """Return a book of random words with headings of three levels."""
    noise = random.Random(seed)
    styles, text = _styles(fonts, body, leading, indent, align, bold_lowest)
    story, made = [], Made(b"")
    counts = [0, 0, 0]
    level = 0
    for index in range(sections):
        level = 0 if index == 0 or noise.random() < 0.2 else noise.choice([1, 2] if level else [1])
        counts[level] += 1
        counts[level + 1 :] = [0] * (2 - level)
        title = _title(noise)
        if numbered:
            title = ".".join(map(str, counts[: level + 1])) + f" {title}"
        made.headings.append((level + 1, title))
        made.words += title.split()
        item = (_Marked if bookmarks else Paragraph)(title, styles[level])
        item.level = level
        item.keepWithNext = 1
        story.append(item)
        for _ in range(noise.randint(1, 5)):
            said = paragraph(noise)
            made.words += said.split()
            story.append(Paragraph(said, text))
    made.data = _built(story, columns, _decorate(head, feet))
    return made


def _built(story, columns, decorate=None, **facts):
    written = io.BytesIO()
    document = BaseDocTemplate(written, pagesize=A4, invariant=1, **facts)
    width, height = A4
    gutter = 16
    each = (width - 120 - gutter * (columns - 1)) / columns
    frames = [
        Frame(60 + i * (each + gutter), 60, each, height - 130, leftPadding=0, rightPadding=0)
        for i in range(columns)
    ]
    document.addPageTemplates([PageTemplate("all", frames, onPage=decorate or (lambda *_: None))])
    document.build(story)
    return written.getvalue()


def flow(story, columns=1, decorate=None, **facts):
    """Return a PDF of flowables."""
    return _built(story, columns, decorate, **facts)


def paper(seed=3):
    """Return a page with a title and abstract over both of its columns."""
    noise = random.Random(seed)
    title, abstract = "A Title Across Both Columns Of The Paper", paragraph(noise, 6)
    texts = [paragraph(noise) for _ in range(16)]
    text = ParagraphStyle("t", fontName="Times-Roman", fontSize=10, leading=12, spaceAfter=4, alignment=4)
    big = ParagraphStyle("b", fontName="Times-Bold", fontSize=18, leading=22, alignment=1)
    written = io.BytesIO()
    width, height = A4
    document = BaseDocTemplate(written, pagesize=A4, invariant=1)
    top = Frame(60, height - 230, width - 120, 180, leftPadding=0, rightPadding=0)
    sides = [Frame(x, 60, 229, height - 290, leftPadding=0, rightPadding=0) for x in (60, width - 60 - 229)]
    document.addPageTemplates([PageTemplate("first", [top, *sides])])
    story = [Paragraph(title, big), Spacer(1, 8), Paragraph(abstract, text), FrameBreak()]
    document.build([*story, *(Paragraph(said, text) for said in texts)])
    return Made(written.getvalue(), [(1, title)], " ".join([title, abstract, *texts]).split())


def drawn(draw, pages=1, size=A4, **options):
    """Return a PDF of pages that ``draw(canvas, number)`` draws."""
    written = io.BytesIO()
    canv = canvas.Canvas(written, pagesize=size, invariant=1, **options)
    for number in range(1, pages + 1):
        draw(canv, number)
        canv.showPage()
    canv.save()
    return written.getvalue()


def lines(canv, texts, x=72, y=700, font="Times-Roman", size=10, leading=12):
    """Write texts below each other; return the height of the next."""
    canv.setFont(font, size)
    for text in texts:
        canv.drawString(x, y, text)
        y -= leading
    return y


def prose(seed=1, count=8):
    """Return lines of prose of about the same length."""
    noise = random.Random(seed)
    return [sentence(noise, 14, 14) for _ in range(count)]


def headings_of(markdown):
    """Return (level, text) of the headings of Markdown."""
    return [
        (len(m[1]), m[2].replace("\\", "")) for m in re.finditer(r"^(#{1,6}) (.*)$", markdown, re.MULTILINE)
    ]


def words_of(markdown):
    """Return the words of Markdown without its marks."""
    text = re.sub(r"<!-- page \d+ -->|^#+ ", "", markdown, flags=re.MULTILINE)
    return text.replace("\\", "").split()


def order_ratio(found, wanted):
    """Return how alike two lists of words are in order, 0 to 1."""
    return difflib.SequenceMatcher(None, found, wanted, autojunk=False).ratio()


def recall_and_precision(found, wanted):
    """Return both for headings by level-free text."""
    have, want = [text for _, text in found], [text for _, text in wanted]
    hits = sum(min(have.count(text), want.count(text)) for text in set(want))
    return hits / max(1, len(want)), hits / max(1, len(have))


def bomb(side=40_000):
    """Return a PDF with an image of few bytes and very many pixels."""
    packed = zlib.compress(b"\0" * 1_000_000)
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</XObject<</I 5 0 R>>>>>>",
        b"<</Length 31>>stream\nq 300 0 0 300 50 50 cm /I Do Q  \nendstream",
        f"<</Type/XObject/Subtype/Image/Width {side}/Height {side}/ColorSpace/DeviceGray/BitsPerComponent 8"
        f"/Filter/FlateDecode/Length {len(packed)}>>stream\n".encode() + packed + b"\nendstream",
    ]  # fmt: skip
    return raw_pdf(objects)


def spelled(pieces, size=12, vertical=False, inkless="", drawn=""):
    """Return a page whose glyphs stand for any text: ``pieces`` are x, y and what each glyph means.

    Every glyph is 0.6 of the size wide, but those of ``inkless``, which show nothing. Vertical ones run down.
    ``drawn`` is what the page shows besides.
    """
    meanings = list(dict.fromkeys(meaning for _, _, some in pieces for meaning in some))
    number = {meaning: 36 + index for index, meaning in enumerate(meanings)}
    shape = {number[some]: 3 if some in inkless else number[some] for some in meanings}
    shows = [
        f"{size} 0 0 {size} {x} {y} Tm <{''.join(f'{number[meaning]:04x}' for meaning in some)}> Tj"
        for x, y, some in pieces
    ]
    pairs = [f"<{number[some]:04x}> <{some.encode('utf-16-be').hex()}>" for some in meanings]
    blocks = [pairs[at : at + 100] for at in range(0, len(pairs), 100)]
    chars = "\n".join(f"{len(some)} beginbfchar\n" + "\n".join(some) + "\nendbfchar" for some in blocks)
    cmap = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Any def /CMapType 2 def\n"
        f"1 begincodespacerange <0000> <ffff> endcodespacerange\n{chars}\nendcmap end end"
    )
    widths = " ".join(f"{number[some]} [{0 if some in inkless else 600}]" for some in meanings)
    mode = "V" if vertical else "H"
    font = (Path(reportlab.__file__).parent / "fonts" / "Vera.ttf").read_bytes()
    return raw_pdf([
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
        _stream((f"{drawn}BT /F 1 Tf\n" + "\n".join(shows) + "\nET").encode()),
        f"<</Type/Font/Subtype/Type0/BaseFont/Vera/Encoding/Identity-{mode}/DescendantFonts[6 0 R]"
        "/ToUnicode 7 0 R>>".encode(),
        "<</Type/Font/Subtype/CIDFontType2/BaseFont/Vera/CIDToGIDMap 10 0 R/CIDSystemInfo<</Registry(Adobe)"
        f"/Ordering(Identity)/Supplement 0>>/DW 600/W[{widths}]/FontDescriptor 8 0 R>>".encode(),
        _stream(cmap.encode()),
        b"<</Type/FontDescriptor/FontName/Vera/Flags 4/ItalicAngle 0/Ascent 900/Descent -200/CapHeight 700"
        b"/StemV 80/FontBBox[-200 -250 1300 950]/FontFile2 9 0 R>>",
        _stream(font),
        _stream(b"".join(shape.get(code, code).to_bytes(2, "big") for code in range(max(shape) + 1))),
    ])  # fmt: skip


def _stream(data):
    return b"<</Length %d>>stream\n" % len(data) + data + b"\nendstream"


def raw_pdf(objects):
    """Return a PDF of objects, the first of which is its catalog."""
    data, places = b"%PDF-1.7\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(data))
        data += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    start = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    data += b"".join(b"%010d 00000 n \n" % place for place in places)
    return data + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)


__all__ = [
    "Image", "ImageReader", "ListFlowable", "NextPageTemplate", "Preformatted", "Table",
]  # fmt: skip
