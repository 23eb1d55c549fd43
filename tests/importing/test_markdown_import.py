"""Markdown as a source: its front matter becomes facts, its images copies, and nothing else changes."""

import os

import pytest

from searchsvc.errors import ReadingError
from searchsvc.importing.base import Book, Limits
from searchsvc.importing.markdown import convert

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"


@pytest.fixture
def folder(tmp_path):
    inside = tmp_path / "inside"
    (inside / "sub").mkdir(parents=True)
    (inside / "a.png").write_bytes(PNG)
    (inside / "sub" / "b c.jpg").write_bytes(b"\xff\xd8\xffpixels")
    (inside / "drawing.svg").write_bytes(b'<?xml version="1.0"?>\n<svg xmlns="x"/>')
    (tmp_path / "outside.png").write_bytes(PNG)
    return inside


@pytest.fixture
def make(folder):
    def run(text: str, **limits: int) -> Book:
        return convert(text.encode(), Limits(**limits), folder)

    return run


def test_front_matter_is_kept_out_of_the_text_and_gives_the_facts(make):
    book = make("---\nTitle: A Title\nauthors: [Ann, Bob]\nlang: de\nother: 1\n---\n# Heading\n\ntext\n")
    assert (book.title, book.author, book.language) == ("A Title", "Ann, Bob", "de")
    assert book.markdown == "# Heading\n\ntext"
    assert (book.kind, book.pages, book.assets, book.notices) == ("markdown", 0, (), ())


def test_without_front_matter_the_first_heading_is_the_title(make):
    book = make("some\n\n## The *first* one\n\n# Another\n")
    assert (book.title, book.author, book.language) == ("The first one", "", "")
    assert make("no heading").title == ""


def test_front_matter_that_cannot_be_read_is_left_out_and_that_is_said(make):
    book = make("---\ntitle: [\nauthor: x\n---\n# Heading\n")
    assert book.title == "Heading"
    assert "front matter is not read" in book.notices[0]
    assert "author" not in book.markdown


@pytest.mark.parametrize(
    ("written", "result"),
    [
        ("![alt](a.png)", "![alt](assets/image-0001.png)"),
        ('![alt](a.png "title") end', "![alt](assets/image-0001.png) end"),
        ("![](<sub/b c.jpg>)", "![](assets/image-0001.jpg)"),
        ("![x](sub/b%20c.jpg)", "![x](assets/image-0001.jpg)"),
        ("![x](./sub/../a.png?raw=1#top)", "![x](assets/image-0001.png)"),
        ("![[a.png|a caption]]", "![a caption](assets/image-0001.png)"),
        ('<img src="a.png" alt="&lt;" width="3">', '<img src="assets/image-0001.png" alt="&lt;">'),
        ("[![x](a.png)](https://example.org)", "[![x](assets/image-0001.png)](https://example.org)"),
        ("![x][r]\n\n[r]: a.png", "![x](assets/image-0001.png)\n\n[r]: a.png"),
        ("> - ![x](a.png)", "> - ![x](assets/image-0001.png)"),
        ("![x](drawing.svg)", "![x](assets/image-0001.svg)"),
        ("![x](a.png) ![y](a.png)", "![x](assets/image-0001.png) ![y](assets/image-0001.png)"),
    ],
)  # fmt: skip
def test_an_image_beside_the_document_is_copied_and_its_reference_leads_to_the_copy(make, written, result):
    book = make(f"before\n\n{written}\n\nafter")
    assert book.markdown == f"before\n\n{result}\n\nafter"
    assert len(book.assets) == 1
    assert book.notices == ()


def test_the_bytes_of_an_image_are_copied_as_they_are_and_once(make):
    book = make("![1](a.png)\n\n![2](./a.png)\n\n![3](<sub/b c.jpg>)\n")
    assert [(asset.name, asset.data) for asset in book.assets] == [
        ("image-0001.png", PNG),
        ("image-0002.jpg", b"\xff\xd8\xffpixels"),
    ]


@pytest.mark.parametrize(
    "written",
    [
        "![x](https://example.org/a.png)",
        "![x](//example.org/a.png)",
        "![x](data:image/png;base64,iVBORw0KGgo=)",
        "![x](file:///etc/a.png)",
        "`![x](a.png)`",
        "```\n![x](a.png)\n```",
        "<!-- ![x](a.png) -->",
        "[x](a.png)",
    ],
)
def test_references_to_elsewhere_and_code_stay_as_they_are(make, written):
    book = make(written)
    assert (book.markdown, book.assets, book.notices) == (written, (), ())


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("../outside.png", "outside the folder"),
        ("sub/../../outside.png", "outside the folder"),
        ("/etc/hostname", "outside the folder"),
        ("link.png", "outside the folder"),
        ("linked/outside.png", "outside the folder"),
        ("%2e%2e/outside.png", "outside the folder"),
        ("none.png", "no such file"),
        ("sub", "no such file"),
        ("pipe.png", "no such file"),
        ("secret.png", "not an image by its bytes"),
        ("a%00.png", "no such file"),
        ("x" * 5_000 + ".png", "no such file"),
    ],
)
def test_what_is_not_an_image_in_the_folder_is_not_copied_and_that_is_said(make, folder, source, reason):
    (folder / "link.png").symlink_to(folder.parent / "outside.png")
    (folder / "linked").symlink_to(folder.parent)
    (folder / "secret.png").write_text("password")
    os.mkfifo(folder / "pipe.png")
    book = make(f"![x]({source})")
    assert (book.markdown, book.assets) == (f"![x]({source})", ())
    assert reason in book.notices[0]
    assert len(book.notices[0]) < 200


def test_images_beyond_a_limit_stay_as_they_are_and_are_counted_by_reason(make, folder):
    (folder / "big.png").write_bytes(PNG * 100)
    text = "![](big.png) ![](a.png) ![](drawing.svg) ![](none.png) ![](nope.png)"
    book = make(text, image_bytes=100, images=1)
    assert book.markdown == text.replace("a.png", "assets/image-0001.png")
    assert book.notices == (
        "1 image not copied: more than 100 bytes (big.png)",
        "1 image not copied: more than 1 images (drawing.svg)",
        "2 images not copied: no such file (none.png, …)",
    )
    assert "together" in make("![](a.png) ![](drawing.svg)", unpacked_bytes=20).notices[0]


def test_a_text_beyond_a_limit_or_no_text_is_refused(make, folder):
    with pytest.raises(ReadingError, match="11 characters, at most 10 are read"):
        make("x" * 11, text_characters=10)
    with pytest.raises(ReadingError, match="11 bytes, at most 10 are read"):
        make("x" * 11, file_bytes=10)
    with pytest.raises(ReadingError, match="binary"):
        convert(b"\x00\x01" * 100, Limits(), folder)


def test_any_encoding_and_line_end_is_read(folder):
    book = convert("# Ü\r\n\r\n![x](a.png)\r\n".encode("utf-16"), Limits(), folder)
    assert book.markdown == "# Ü\n\n![x](assets/image-0001.png)"
    assert "UTF-16" in book.notices[0]


def test_an_empty_document_is_a_book_without_text(make):
    assert make("").markdown == make("---\ntitle: x\n---\n").markdown == ""


@pytest.mark.parametrize(
    ("written", "result"),
    [
        ("![[b c.jpg]]", "![](assets/image-0001.jpg)"),
        ("![[sub/B C.JPG|300]]", "![](assets/image-0001.jpg)"),
        ("![[a.png|cap|200x100]]", "![cap](assets/image-0001.png)"),
        ("![cap|100](a.png)", "![cap](assets/image-0001.png)"),
        ("![x](A.PNG)", "![x](assets/image-0001.png)"),
        ("![x](sub\\b%20c.jpg)", "![x](assets/image-0001.jpg)"),
        ("![x](u\u0308.png)", "![x](assets/image-0001.png)"),
        ("> ![two\n> lines](a.png)", "> ![two lines](assets/image-0001.png)"),
        ("- ![two\n  lines](a.png)", "- ![two lines](assets/image-0001.png)"),
    ],
)
def test_an_image_is_found_however_its_name_is_spelled(make, folder, written, result):
    (folder / "\u00fc.png").write_bytes(PNG)
    book = make(written)
    assert (book.markdown, len(book.assets), book.notices) == (result, 1, ())


def test_only_embeds_are_looked_for_in_other_folders_and_links_out_are_not_followed(make, folder):
    (folder / "out").symlink_to(folder.parent)
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "h.png").write_bytes(PNG)
    (folder / "l.png").symlink_to(folder.parent / "outside.png")
    for written in ("![x](b%20c.jpg)", "![[outside.png]]", "![[h.png]]", "![[L.png]]", "![[../outside.png]]"):
        book = make(written)
        assert (book.markdown, book.assets) == (written, ()), written


def test_a_reference_that_stays_never_leads_to_a_copy_of_something_else(make):
    book = make("![x](assets/image-0001.png) ![y](a.png)")
    assert book.markdown == "![x](assets/image-0001.png) ![y](assets/image-0002.png)"


def test_huge_front_matter_is_left_out_with_a_notice(make):
    book = make("---\n" + "a: b\n" * 200_000 + "---\n# x\n")
    assert (book.markdown, len(book.notices)) == ("# x", 1)
