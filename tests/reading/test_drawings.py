import base64
import io
import os
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from searchsvc.errors import ReadingError
from searchsvc.reading import drawings
from searchsvc.reading.drawings import draw
from searchsvc.reading.pictures import MAX_SIDE, make_picture

pytest.importorskip("resvg_py")

LIMIT = 5_000_000
SPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
RED = '<rect width="999" height="999" fill="#f00"/>'


def svg(inside, opening='width="20" height="10"'):
    return f"<svg {SPACES} {opening}>{inside}</svg>".encode()


def drawn(data):
    return Image.open(io.BytesIO(make_picture(data, LIMIT).data)).convert("RGB")


def is_red(data):
    return drawn(data).getpixel((5, 5)) == (255, 0, 0)


def written(data):
    return drawings._Drawing(data, MAX_SIDE).text


def as_text(data):
    return base64.b64encode(data).decode()


def embedded(side=10):
    out = io.BytesIO()
    Image.new("RGB", (side, side), "#f00").save(out, "PNG")
    return out.getvalue()


@pytest.mark.parametrize(
    "inside",
    [
        RED,
        f'<defs><g id="a">{RED}</g></defs><use xlink:href="#a"/>',
        f'<a href="http://127.0.0.1/">{RED}</a><script>1</script><metadata><x xmlns="y:z"/></metadata>',
        f"<switch><foreignObject/>{RED}</switch>",
        "<style><![CDATA[ @import url('http://127.0.0.1/a;b'); rect { fill: #f00 } ]]></style>"
        '<rect width="99" height="99"/>',
        '<style>@font-face{src:url(http://127.0.0.1/x)}</style><linearGradient id="g">'
        '<stop stop-color="#f00"/></linearGradient><rect width="99" height="99" fill="url( \'#g\' )"/>',
        f'<image width="20" height="20" href="data:image/png;base64,{as_text(embedded())}"/>',
    ],
)
def test_what_a_drawing_holds_itself_is_drawn_and_what_leads_out_of_it_is_left_out(inside):
    assert is_red(svg(inside))
    assert "127.0.0.1" not in written(svg(inside))


def test_names_and_forms_of_an_svg_do_not_matter():
    doctype = (
        b'<?xml version="1.0" encoding="ISO-8859-1"?>\n<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "x">'
    )
    assert is_red(b"\xef\xbb\xbf \n" + svg(RED)) and is_red(doctype + svg(RED + "<!-- \xe9 -->"))
    prefixed = (
        '<s:svg xmlns:s="http://www.w3.org/2000/svg" width="20" height="10"><s:rect fill="#f00" width="99"'
    )
    assert is_red(f'{prefixed} height="99"/></s:svg>'.encode())
    assert is_red(f'<svg width="20" height="10">{RED}</svg>'.encode())


def test_a_drawing_is_on_white_and_its_text_is_never_lost():
    assert drawn(svg("")).getpixel((5, 5)) == (255, 255, 255)
    for family in ("", 'font-family="No Such Font"', 'font-family="monospace"'):
        try:
            image = drawn(svg(f'<text y="9" {family}>Hello</text>'))
        except ReadingError as error:
            assert "font" in str(error)
        else:
            assert image.convert("L").getextrema()[0] < 128


@pytest.mark.parametrize(
    ("opening", "size"),
    [
        ('width="30" height="20"', (30, 20)),
        ('width="1in" height="72pt"', (96, 96)),
        ('viewBox="0 0 40 30"', (40, 30)),
        ('width="100%" height="100%" viewBox="0,0,40,30"', (40, 30)),
        ('width="80" viewBox="0 0 40 30"', (80, 60)),
        ("", (300, 150)),
        ('width="4000" height="2000"', (MAX_SIDE, MAX_SIDE // 2)),
        ('width="1e9" height="1e9"', (MAX_SIDE, MAX_SIDE)),
        ('width="1" height="100000000"', (1, MAX_SIDE)),
        ('viewBox="0 0 9e99 9e99"', (MAX_SIDE, MAX_SIDE)),
        ('width="-5" height="nan"', (300, 150)),
        ('width="50" height="40" viewBox="broken"', (50, 40)),
        ('width="50" height="40" style="width:90000px;height:90000px"', (50, 40)),
    ],
)
def test_what_an_svg_says_of_its_size_never_decides_how_much_is_drawn(opening, size):
    picture = make_picture(svg("", opening), LIMIT)
    assert (picture.width, picture.height) == size


def test_a_large_drawing_is_scaled_whole():
    image = drawn(
        svg('<rect x="3000" width="1000" height="2000" fill="#f00"/>', 'width="4000" height="2000"')
    )
    assert image.getpixel((1500, 700)) == (255, 0, 0) and image.getpixel((900, 700)) == (255, 255, 255)


def test_no_file_is_ever_opened_for_a_drawing(tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    for place in ("x.png", "sub/x.png"):
        (tmp_path / place).write_bytes(embedded())
    monkeypatch.chdir(tmp_path / "sub")
    absolute = str(tmp_path / "x.png")
    for href in (
        absolute,
        f"file://{absolute}",
        "../x.png",
        "x.png",
        "&#120;.png",
        " x.png",
        "data:x.png",
        "",
    ):
        for element in ("image", "use", "feImage", "textPath"):
            for name in ("href", "xlink:href"):
                with pytest.raises(ReadingError, match="outside"):
                    draw(svg(f'<{element} {name}="{href}" width="20" height="10"/>'), MAX_SIDE)
    second = f'<image xlink:href="#a" href="{absolute}" width="20" height="10"/>'
    for inside in (
        second,
        f"<image href:x='{absolute}'/>",
        f'<style>image{{href:{absolute}}}</style><image width="20" height="10"/>',
        f'<image style="href:{absolute}" width="20" height="10"/>',
        f'<style>@import "{absolute}";</style>',
    ):
        try:
            assert not is_red(svg(inside))
        except ReadingError:
            continue


def nested_data():
    inner = base64.b64encode(svg('<image href="x.png"/>')).decode()
    return f'<image href="data:image/svg+xml;base64,{inner}"/>'


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        (nested_data(), "outside"),
        ('<image href="data:image/png;base64,AA!"/>', "outside"),
        ('<rect fill="url(http://127.0.0.1/x)"/>', "outside"),
        ('<rect style="fill:URL( &quot;x.svg#a&quot;)"/>', "outside"),
        ("<style>rect { fill: url('x.svg#a') }</style>", "outside"),
        ("<style>" + "x" * 8_190 + "u<!-- -->rl(x)</style>", "outside"),
        ("<style>@im@import 'x';port 'x'</style>", "outside"),
        ("<foreignObject><p>all the text</p></foreignObject>", "HTML"),
        ("<g>" * 100_000 + "</g>" * 100_000, "levels"),
        ("<x>" * 100_000 + "</x>" * 100_000, "levels"),
        ("<g>" * 101 + "</g>" * 101, "levels"),
        ("<g><!--</g>-->" * 1_000 + "</g>" * 1_000, "levels"),
        ("<g a='\"'>" * 1_000 + "</g>" * 1_000, "levels"),
        ("<g/>" * 20_001, "elements"),
        ("<g></h>", "broken XML"),
        ("<g>&undefined;</g>", "broken XML"),
        (" " * 1_000_001, "at most"),
    ],
)
def test_what_leads_out_or_is_too_much_is_refused_before_anything_is_drawn(inside, said, monkeypatch):
    monkeypatch.setattr("subprocess.run", None)
    with pytest.raises(ReadingError, match=said):
        make_picture(svg(inside), LIMIT)


LAUGHS = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 9))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (f'<!DOCTYPE svg [<!ENTITY a0 "ha">{LAUGHS}]><svg>&a8;</svg>', "entities"),
        ('<!DOCTYPE svg [<!ENTITY a SYSTEM "file:///etc/hostname">]><svg>&a;</svg>', "entities"),
        ("<!DOCTYPE html><html><svg></svg></html>", "HTML"),
        ("<!doctype html><svg></svg>", "HTML"),
        ("<html><body><svg/></body></html>", "HTML"),
        ("<x:svg xmlns:x='y:z'/>", "HTML"),
        ("<svg", "XML"),
        ("<?xml version='1.0' encoding='nonsense'?><svg/>", "XML"),
    ],
)
def test_entities_and_pages_are_refused(data, said):
    with pytest.raises(ReadingError, match=said):
        make_picture(data.encode(), LIMIT)


def uses(levels):
    groups = [f'<g id="a{n}">{f"""<use href="#a{n - 1}"/>""" * 10}</g>' for n in range(1, levels)]
    return f'<defs><g id="a0">{RED}</g>{"".join(groups)}</defs><use href="#a{levels - 1}"/>'


def chain(length):
    return "".join(f'<g id="a{n}"><use href="#a{n + 1}"/></g>' for n in range(length))


@pytest.mark.parametrize(
    "inside",
    [
        uses(9),
        chain(5_000),
        '<g id="a"><use href="#a"/></g>',
        '<g opacity=".5"><rect width="1500" height="1500"/></g>' * 2_000,
        '<g filter="blur(400)"><rect width="1500" height="1500"/></g>' * 40,
        '<path d="M0 0L1500 1500" stroke="red" stroke-width="900" stroke-dasharray="0.003"/>' * 50,
        '<filter id="f"><feTurbulence baseFrequency=".1" numOctaves="99999999"/></filter>'
        '<rect width="1500" height="1500" filter="url(#f)"/>',
        '<pattern id="p" width=".001" height=".001"><rect/></pattern>'
        '<rect width="1500" height="1500" fill="url(#p)"/>',
    ],
    ids=["uses", "chain", "circle", "layers", "blur", "dashes", "octaves", "pattern"],
)
def test_a_drawing_without_end_takes_its_process_with_it_and_nothing_else(inside, monkeypatch):
    monkeypatch.setattr(drawings, "_SECONDS", 0.4)
    start = time.monotonic()
    try:
        make_picture(svg(inside, 'width="1500" height="1500"'), LIMIT)
    except ReadingError as error:
        assert "SVG" in str(error)
    assert time.monotonic() - start < 3


def test_the_death_of_the_renderer_is_a_reason(monkeypatch):
    monkeypatch.setattr(drawings, "_MAX_DEPTH", 10**6)
    with pytest.raises(ReadingError, match="cannot be drawn"):
        draw(svg("<g>" * 5_000 + "</g>" * 5_000), MAX_SIDE)


@pytest.mark.skipif(os.name == "nt", reason="no limit of memory there")
def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(drawings, "_MAX_BYTES", 10**7)
    with pytest.raises(ReadingError, match="memory"):
        draw(svg("", 'width="90000" height="90000"'), 90_000)


def test_without_the_renderer_or_its_process_a_drawing_stays_text(monkeypatch):
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with pytest.raises(ReadingError, match="did not start"):
        draw(svg(RED), MAX_SIDE)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ReadingError, match=r"left as text; pip install 'searchsvc\[svg\]'"):
        draw(svg(RED), MAX_SIDE)


PARTS = st.sampled_from(
    [
        "<svg",
        "<g>",
        "</g>",
        "<style>",
        "</style>",
        "<use",
        ' href="#a"',
        ' href="x"',
        ">",
        "/>",
        "url(",
        "#",
        "<!--",
    ]
    + [
        "-->",
        "<![CDATA[",
        "]]>",
        "&amp;",
        "&#0;",
        '"',
        "<text>é</text>",
        "</svg>",
        'xmlns="a"',
        "\x00",
        "data:",
        "]",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PARTS | st.text(max_size=4), max_size=25))
def test_any_text_is_written_anew_or_refused(parts):
    try:
        text = written(svg("".join(parts)))
    except ReadingError as error:
        assert str(error)
    else:
        assert text == written(text.encode()), "reading what was written gives the same"
