import base64
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from searchsvc.errors import ReadingError
from searchsvc.items import Picture
from searchsvc.reading.pictures import MAX_SIDE, make_picture, picture_cost, read_data_uri

LIMIT = 5_000_000
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="10">{}</svg>'


NOISE = io.BytesIO()
Image.effect_noise((90, 90), 90).save(NOISE, "PNG")
NOISE = NOISE.getvalue()


def encoded(kind, size=(8, 6), mode="RGB", **options):
    out = io.BytesIO()
    Image.new(mode, size).save(out, kind, **options)
    return out.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_what_fits_is_passed_on_byte_for_byte_by_the_type_of_its_bytes(kind):
    data = encoded(kind)
    picture = make_picture(data, LIMIT)
    assert (picture.data, picture.media_type) == (data, f"image/{kind.lower()}")
    assert (picture.width, picture.height) == (8, 6)


@pytest.mark.parametrize(
    ("kind", "mode"), [("BMP", "RGB"), ("TIFF", "CMYK"), ("ICO", "RGBA"), ("TIFF", "I;16")]
)
def test_other_kinds_are_turned_into_png(kind, mode):
    picture = make_picture(encoded(kind, (16, 16), mode), LIMIT)
    assert picture.media_type == "image/png" and picture.data.startswith(b"\x89PNG")


def test_large_pictures_are_scaled_and_keep_their_shape():
    photo = make_picture(encoded("JPEG", (4000, 2000)), LIMIT)
    assert (photo.media_type, photo.width, photo.height) == ("image/jpeg", MAX_SIDE, MAX_SIDE // 2)
    assert Image.open(io.BytesIO(photo.data)).size == (photo.width, photo.height)
    drawing = make_picture(encoded("PNG", (2000, 10), "RGBA"), LIMIT)
    assert drawing.media_type == "image/png" and Image.open(io.BytesIO(drawing.data)).mode == "RGBA"
    assert make_picture(encoded("PNG", (20_000, 1)), LIMIT).height == 1


def test_a_photograph_that_lies_on_its_side_is_turned_when_it_is_scaled():
    exif = Image.Exif()
    exif[0x0112] = 6
    picture = make_picture(encoded("JPEG", (2000, 1000), exif=exif), LIMIT)
    assert picture.height == MAX_SIDE


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b"<!doctype html><p>no</p>", "HTML"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:x\n", "Git LFS"),
        (b"plain words", "not an image"),
        (NOISE[: len(NOISE) // 2], "damaged"),
        (encoded("JPEG", (600, 600))[:700], "damaged"),
        (b"II*\x00\x08\x00\x00\x00\x00\x00", "not an image|damaged"),
    ],
)
def test_what_is_no_sound_image_is_refused_with_the_reason(data, said):
    with pytest.raises(ReadingError, match=said):
        make_picture(data, LIMIT)


def test_sizes_are_limited_before_anything_is_decoded():
    with pytest.raises(ReadingError, match="at most 10 are read"):
        make_picture(encoded("PNG"), 10)
    bomb = encoded("PNG", (12_000, 12_000), "1")
    assert len(bomb) < 100_000
    with pytest.raises(ReadingError, match="pixels"):
        make_picture(bomb, LIMIT)


def test_a_plain_svg_is_drawn():
    pytest.importorskip("resvg_py")
    picture = make_picture(SVG.format('<rect width="5" height="5" fill="red"/>').encode(), LIMIT)
    assert (picture.media_type, picture.width, picture.height) == ("image/png", 20, 10)


@pytest.mark.parametrize(
    "inside",
    [
        '<image href="file:///etc/hostname"/>',
        '<image xlink:href="../secret.png"/>',
        '<a href="http://127.0.0.1/">x</a>',
        '<rect fill="url(http://127.0.0.1/x)"/>',
        "<style>@import 'http://127.0.0.1/x.css';</style>",
        "<style>rect { fill: url('x.svg#a') }</style>",
        "<script>1</script>",
        '<g id="a"/><use href="#a"/>',
        "<g>" * 5_000 + "</g>" * 5_000,
        "<g>" * 100 + "</g>" * 100,
        "<g><!--</g>-->" * 1_000 + "</g>" * 1_000,
        "<g><?x </g>?>" * 1_000 + "</g>" * 1_000,
        "<g a='\"'>" * 1_000 + "</g>" * 1_000,
        "<filter id='f'><feGaussianBlur stdDeviation='1e9'/></filter>",
    ],
)
def test_an_svg_that_could_load_repeat_or_nest_without_bound_is_left_as_text(inside):
    with pytest.raises(ReadingError, match="SVG"):
        make_picture(SVG.format(inside).encode(), LIMIT)


@pytest.mark.parametrize(
    "svg",
    [
        '<!DOCTYPE svg [<!ENTITY a "x">]><svg xmlns="http://www.w3.org/2000/svg">&a;</svg>',
        '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="100000000"/>',
        "<svg",
    ],
)
def test_a_hostile_svg_is_refused(svg):
    with pytest.raises(ReadingError):
        make_picture(svg.encode(), LIMIT)


@pytest.mark.parametrize(
    "opening",
    [
        'width="100%" height="100%" viewBox="0 0 1 1000000"',
        'width="1e9" height="1e9"',
        'viewBox="0 0 9e9 9e9"',
        'width="999999999" height="999999999"',
        'width="-5" height="nan"',
    ],
)
def test_what_an_svg_says_of_its_size_never_decides_how_much_is_drawn(opening):
    pytest.importorskip("resvg_py")
    try:
        picture = make_picture(f'<svg xmlns="http://www.w3.org/2000/svg" {opening}/>'.encode(), LIMIT)
    except ReadingError:
        return
    assert max(picture.width, picture.height) <= MAX_SIDE


def test_data_addresses_give_their_bytes():
    data = encoded("PNG")
    text = base64.b64encode(data).decode()
    assert read_data_uri(f"data:image/png;base64,{text}", LIMIT) == data
    assert read_data_uri(f"DATA:image/png;charset=x;base64,{text[:10]}\n {text[10:]}", LIMIT) == data
    assert read_data_uri("data:,a%20b", LIMIT) == b"a b"
    for uri in ("data:image/png;base64", "data:image/png;base64,a"):
        with pytest.raises(ReadingError):
            make_picture(read_data_uri(uri, LIMIT), LIMIT)
    with pytest.raises(ReadingError, match="at most"):
        read_data_uri("data:;base64," + "A" * 1_000, 100)


def test_a_picture_costs_its_pixels():
    assert picture_cost(Picture(b"", "image/png", 750, 100)) == 100
    assert picture_cost(Picture(b"", "image/png", 1, 1)) == 1


SOUND = [encoded("PNG", (9, 9)), encoded("GIF"), encoded("WEBP"), encoded("JPEG"), SVG.format("").encode()]


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200) | st.sampled_from(SOUND), st.data())
def test_any_bytes_are_a_picture_or_a_reason(data, draw):
    if data:
        place = draw.draw(st.integers(0, len(data) - 1))
        data = data[:place] + draw.draw(st.binary(max_size=3)) + data[place + draw.draw(st.integers(0, 3)) :]
    try:
        assert isinstance(make_picture(data, LIMIT), Picture)
    except ReadingError as error:
        assert str(error)
