import base64
import io
import random
import struct
import sys
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, features

from searchsvc.errors import ReadingError
from searchsvc.items import Picture
from searchsvc.reading.pictures import MAX_SIDE, make_picture, picture_cost, read_data_uri

LIMIT = 5_000_000


NOISE = io.BytesIO()
Image.effect_noise((90, 90), 90).save(NOISE, "PNG")
NOISE = NOISE.getvalue()


def encoded(kind, size=(8, 6), mode="RGB", color=0, **options):
    out = io.BytesIO()
    Image.new(mode, size, color).save(out, kind, **options)
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


def opened(picture):
    return Image.open(io.BytesIO(picture.data))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "BMP"])
def test_what_is_cut_off_anywhere_is_refused(kind):
    data = io.BytesIO()
    Image.effect_noise((40, 40), 80).convert("RGB").save(data, kind)
    data = data.getvalue()
    for length in range(1, len(data) - 2, len(data) // 60 + 1):
        with pytest.raises(ReadingError):
            make_picture(data[:length], LIMIT)


def test_a_png_with_a_broken_checksum_or_without_its_end_is_refused():
    broken = bytearray(encoded("PNG", (50, 50)))
    broken[-6] ^= 1
    for data in (bytes(broken), encoded("PNG", (50, 50))[:-12]):
        with pytest.raises(ReadingError, match="damaged"):
            make_picture(data, LIMIT)


@pytest.mark.parametrize(
    ("data", "said"),
    [(b"\x1f\x8b\x08", "gzip"), (b"%PDF-1.7", "PDF"), (b"\0\0\0\x18ftypheic\0\0", "HEIC")],
)
def test_what_is_known_to_be_something_else_is_named(data, said):
    with pytest.raises(ReadingError, match=said):
        make_picture(data, LIMIT)


def test_no_parser_but_those_of_the_list_is_tried():
    for kind in ("EPS", "PPM", "TGA", "PCX"):
        with pytest.raises(ReadingError, match="not an image by its bytes"):
            make_picture(encoded(kind), LIMIT)


def test_sixteen_bits_floats_and_colours_of_print_keep_their_brightness():
    deep = opened(make_picture(encoded("PNG", (2000, 10), "I;16", color=40_000), LIMIT))
    assert deep.mode == "L" and abs(deep.getpixel((5, 5)) - 156) <= 1
    values = Image.new("F", (10, 10), -1.5)
    values.putpixel((0, 0), 2.5)
    out = io.BytesIO()
    values.save(out, "TIFF")
    floats = opened(make_picture(out.getvalue(), LIMIT))
    assert (floats.getpixel((0, 0)), floats.getpixel((5, 5))) == (255, 0)
    printed = opened(make_picture(encoded("JPEG", (2000, 10), "CMYK", color=(0, 255, 255, 0)), LIMIT))
    red, green, blue = printed.getpixel((5, 5))
    assert red > 200 and green < 60 and blue < 60


@pytest.mark.parametrize(("mode", "clear"), [("P", 0), ("L", 7), ("RGB", (1, 2, 3)), ("I;16", 9), ("1", 0)])
def test_palettes_and_single_clear_colours_are_scaled(mode, clear):
    image = Image.new(mode, (2000, 10))
    out = io.BytesIO()
    image.save(out, "PNG", transparency=clear)
    picture = make_picture(out.getvalue(), LIMIT)
    assert (picture.media_type, picture.width) == ("image/png", MAX_SIDE)
    assert opened(picture).mode in ("RGBA", "L")


def test_a_photograph_with_a_second_one_inside_is_a_jpeg():
    data = encoded("MPO", save_all=True, append_images=[Image.new("RGB", (8, 6))])
    assert make_picture(data, LIMIT) == Picture(data, "image/jpeg", 8, 6)


def test_animations_are_passed_on_or_give_their_first_frame():
    more = [Image.new("RGB", (2000, 4), "blue")]
    for kind in ("GIF", "WEBP", "PNG"):
        small = encoded(kind, save_all=True, append_images=[Image.new("RGB", (8, 6), "red")])
        assert make_picture(small, LIMIT).data == small
        large = make_picture(encoded(kind, (2000, 4), color="red", save_all=True, append_images=more), LIMIT)
        assert large.width == MAX_SIDE
        red, _, blue = opened(large).convert("RGB").getpixel((9, 1))
        assert red > 200 > 50 > blue


def test_what_is_too_large_when_scaled_becomes_a_jpeg_on_white_or_is_refused():
    noise = Image.effect_noise((1600, 200), 90).convert("RGBA")
    noise.putalpha(0)
    out = io.BytesIO()
    noise.save(out, "TIFF", compression="tiff_lzw")
    picture = make_picture(out.getvalue(), 10**7)
    assert picture.media_type == "image/png"
    module = sys.modules["searchsvc.reading.pictures"]
    flat = module._encoded(noise, 50_000, is_photo=False)
    assert flat.media_type == "image/jpeg" and opened(flat).getpixel((3, 3)) == (255, 255, 255)
    with pytest.raises(ReadingError, match="even when scaled down"):
        module._encoded(noise, 1_000, is_photo=False)


def test_where_a_photograph_was_taken_is_not_sent_with_a_scaled_one():
    exif = Image.Exif()
    exif[0x010F] = "Forbiddenfruit"
    for kind in ("JPEG", "PNG", "WEBP"):
        assert b"Forbidden" not in make_picture(encoded(kind, (2000, 9), exif=exif), LIMIT).data


@pytest.mark.filterwarnings("ignore:Corrupt EXIF")
def test_broken_exif_does_not_hide_a_picture():
    picture = make_picture(encoded("JPEG", (2000, 9), exif=b"Exif\0\0II*\0\xff\xff\xff\xff"), LIMIT)
    assert picture.width == MAX_SIDE


def test_the_image_in_an_icon_is_what_counts():
    def icon(image, side=0):
        return struct.pack("<HHHBBBBHHII", 0, 1, 1, side, side, 0, 0, 1, 32, len(image), 22) + image

    inside = encoded("PNG", (300, 200))
    assert make_picture(icon(inside), LIMIT).data == inside
    with pytest.raises(ReadingError, match="pixels"):
        make_picture(icon(encoded("PNG", (9_000, 9_000), "1")), LIMIT)
    bitmap = struct.pack("<IiiHHIIiiII", 40, 9_000, 18_000, 1, 1, 0, 0, 0, 0, 0, 0)
    with pytest.raises(ReadingError, match="ICO"):
        make_picture(icon(bitmap), LIMIT)


def test_a_jpeg_of_endless_scans_is_refused_before_it_is_decoded():
    data = encoded("JPEG", (3000, 3000), "L", progressive=True)
    assert make_picture(data, LIMIT).width == MAX_SIDE
    scan = data[data.rfind(b"\xff\xda") : -2]
    with pytest.raises(ReadingError, match="scans"):
        make_picture(data[:-2] + scan * 300 + b"\xff\xd9", LIMIT)


def test_large_headers_never_warn_nor_take_memory():
    webp = struct.pack("<4sI4s4sII", b"RIFF", 22, b"WEBP", b"VP8X", 10, 2) + b"\xff\x27\0\xff\x27\0"
    gif = b"GIF89a\1\0\1\0\0\0\0," + struct.pack("<4HB", 0, 0, 10_000, 10_000, 0) + b"\2\1\0\0;"
    png = encoded("PNG", (1, 1))
    head = struct.pack(">II", 10_000, 10_000) + png[24:29]
    png = png[:16] + head + struct.pack(">I", zlib.crc32(b"IHDR" + head)) + png[33:]
    for data in (webp, gif, png):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with pytest.raises(ReadingError):
                make_picture(data, LIMIT)
        # Pillow warns of a frame larger than its GIF; where warnings are errors it is refused all the same.
        assert data is gif or not said


def test_sizes_are_limited_before_anything_is_decoded():
    with pytest.raises(ReadingError, match="at most 10 are read"):
        make_picture(encoded("PNG"), 10)
    bomb = encoded("PNG", (12_000, 12_000), "1")
    assert len(bomb) < 100_000
    with pytest.raises(ReadingError, match="pixels"):
        make_picture(bomb, LIMIT)


def test_data_addresses_give_their_bytes():
    data = encoded("PNG")
    text = base64.b64encode(data).decode()
    assert read_data_uri(f"data:image/png;base64,{text}", LIMIT) == data
    assert read_data_uri(f"DATA:image/png;charset=x;base64,{text[:10]}\n {text[10:]}", LIMIT) == data
    assert read_data_uri("data:,a%20b", LIMIT) == b"a b"
    for uri in ("data:image/png;base64", "data:image/png;base64,a"):
        with pytest.raises(ReadingError):
            make_picture(read_data_uri(uri, LIMIT), LIMIT)
    assert read_data_uri(f"data:image/png;base64,{text.replace('+', '%2B').rstrip('=')}", LIMIT) == data
    assert read_data_uri("data:image/svg+xml;x=base64,%3Csvg", LIMIT) == b"<svg"
    assert read_data_uri("data:,", LIMIT) == b""
    for uri in ("data:;base64,AA-_", "data:;base64,A*AA", "http://x,y", "", "data:x"):
        with pytest.raises(ReadingError):
            read_data_uri(uri, LIMIT)
    for body in ("A" * 200, "A" * 1_000, "A" * 100_000):
        with pytest.raises(ReadingError, match="at most"):
            read_data_uri("data:;base64," + body, 100)


@given(st.text(max_size=60) | st.text(max_size=40).map("data:;base64,".__add__))
def test_any_address_is_bytes_or_a_reason(uri):
    try:
        assert isinstance(read_data_uri(uri, 1_000), bytes)
    except ReadingError as error:
        assert str(error)


def test_a_picture_costs_its_pixels():
    assert picture_cost(Picture(b"", "image/png", 750, 100)) == 100
    assert picture_cost(Picture(b"", "image/png", 1, 1)) == 1


def sound():
    """Make one small file of each kind, with noise in it so that every part of a decoder runs."""
    noise = Image.effect_noise((24, 20), 90).convert("RGB")
    more = [noise.transpose(Image.Transpose.ROTATE_180)]
    for kind, options in (
        ("PNG", {}),
        ("PNG", {"save_all": True, "append_images": more}),
        ("GIF", {"save_all": True, "append_images": more}),
        ("WEBP", {"save_all": True, "append_images": more}),
        ("WEBP", {"lossless": True}),
        ("JPEG", {"progressive": True}),
        ("MPO", {"save_all": True, "append_images": more}),
        ("BMP", {}),
        ("TIFF", {}),
        ("TIFF", {"compression": "tiff_lzw"}),
        ("ICO", {}),
        ("ICO", {"bitmap_format": "bmp"}),
        *((("AVIF", {}),) if features.check("avif") else ()),
    ):
        out = io.BytesIO()
        noise.save(out, kind, **options)
        yield out.getvalue()


SOUND = list(sound())


@settings(max_examples=400, deadline=None)
@given(st.binary(max_size=200) | st.sampled_from(SOUND), st.integers(0, 2**32))
def test_any_bytes_are_a_picture_or_a_reason(data, seed):
    chance, changed = random.Random(seed), bytearray(data)
    for _ in range(chance.randint(0, 6) if data else 0):
        # Headers hold what decides the work, so they are changed more often than pixels.
        place = chance.randrange(min(len(data), chance.choice((64, len(data)))))
        changed[place : place + chance.randint(0, 2)] = chance.choice(
            (b"", b"\xff", b"\0\0", chance.randbytes(3))
        )
    try:
        picture = make_picture(bytes(changed), LIMIT)
    except ReadingError as error:
        assert str(error)
    else:
        assert 1 <= max(picture.width, picture.height) <= MAX_SIDE and min(picture.width, picture.height) >= 1


def test_many_threads_may_read_pictures():
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda data: make_picture(data, LIMIT), SOUND * 8))
    assert made == [make_picture(data, LIMIT) for data in SOUND] * 8
