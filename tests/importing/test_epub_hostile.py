"""Damaged, protected and hostile files: what is refused says why, and nothing else escapes."""

import builtins
import random
import time
import zipfile

import pytest

pytest.importorskip("bs4", reason="the extra [epub] is not installed")
pytest.importorskip("markdownify", reason="the extra [epub] is not installed")

from epub_world import PNG, book, entry, members, note_of, pack, page
from hypothesis import given, settings
from hypothesis import strategies as st

from searchsvc.errors import ReadingError
from searchsvc.importing.base import Limits
from searchsvc.importing.epub import convert
from searchsvc.importing.epub_links import resolve

ENCRYPTION = (
    "<encryption "
    'xmlns="urn:oasis:names:tc:opendocument:xmlns:container" xmlns:enc="http://www.w3.org/2001/04/xmlenc#">'
    '<enc:EncryptedData><enc:EncryptionMethod Algorithm="{}"/><x>{}</x></enc:EncryptedData></encryption>'
)
AES = "http://www.w3.org/2001/04/xmlenc#aes128-cbc"


def world(**extra):
    return members('<h1>A</h1><p>x <a href="#q">l</a></p><img src="i.png"/>', extra={"i.png": PNG}) | extra


def refused(content, says, limits=None):
    with pytest.raises(ReadingError, match=says):
        convert(content if isinstance(content, bytes) else pack(content), limits or Limits())


@pytest.mark.parametrize(
    ("marks", "scheme"),
    [
        ({"META-INF/rights.xml": '<rights xmlns="http://ns.adobe.com/adept"/>'}, "Adobe ADEPT"),
        ({"META-INF/encryption.xml": ENCRYPTION.format(AES, "http://ns.adobe.com/adept")}, "Adobe ADEPT"),
        ({"META-INF/sinf.xml": "<fairplay/>"}, "Apple FairPlay"),
        (
            {"META-INF/encryption.xml": ENCRYPTION.format(AES, ""), "META-INF/license.lcpl": "{}"},
            "Readium LCP",
        ),
        (
            {"META-INF/encryption.xml": ENCRYPTION.format(AES, "http://readium.org/2014/01/lcp#k")},
            "Readium LCP",
        ),
        ({"META-INF/rights.xml": "<kdrm/>"}, "Kobo"),
        ({"META-INF/encryption.xml": ENCRYPTION.format(AES, "urn:marlin-drm.com:x")}, "Marlin"),
        ({"META-INF/encryption.xml": ENCRYPTION.format(AES, "")}, "an unknown DRM scheme"),
    ],
)
def test_a_protected_book_is_refused_by_the_name_of_its_scheme(marks, scheme):
    refused(world(**marks), f"protected by {scheme}.*without DRM")


@pytest.mark.parametrize("way", ["http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"])
def test_obfuscated_fonts_alone_are_fine(way):
    assert convert(pack(world(**{"META-INF/encryption.xml": ENCRYPTION.format(way, "")})), Limits()).markdown


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not an EPUB"),
        (b"hello", "not an EPUB"),
        (b"%PDF-1.7", "found a PDF"),
        (b"\0" * 60 + b"BOOKMOBI", "Kindle"),
        (b"PK\x03\x04 cut", "damaged or incomplete"),
        ({"a.txt": "x"}, "no META-INF/container.xml"),
        ({"c.opf": "<package/>"}, "empty reading order"),
        ({"c.opf": "<package"}, "no valid XML"),
        (members(""), "no text and no images"),
        (members({}), "empty reading order"),
    ],
)
def test_what_is_no_book_is_refused_with_what_was_found(content, says):
    refused(content, says)


def test_missing_documents_are_left_out_with_a_notice():
    content = members({"a.xhtml": "<p>a</p>", "b.xhtml": "<p>b</p>"})
    del content["OEBPS/b.xhtml"]
    result = convert(pack(content), Limits())
    assert result.markdown == "a\n" and "1 documents" in result.notices[0]


def test_a_book_without_container_is_read_by_its_package():
    content = world()
    del content["META-INF/container.xml"]
    assert "container.xml is missing" in convert(pack(content), Limits()).notices[0]


def test_broken_navigation_is_a_notice():
    content = members("<h1>A</h1>", nav=entry("A", "a.xhtml"))
    content["OEBPS/nav.xhtml"] = "<nav><"
    assert "navigation was not used" in convert(pack(content), Limits()).notices[0]


@pytest.mark.parametrize("name", ["../../x.png", "/etc/x.png", "C:/x.png", "a/../../x.png", "..\\x.png"])
def test_members_with_unsafe_names_are_left_out(name):
    content = members(f'<p>t</p><img src="{name}" alt="p"/>') | {name: PNG}
    result = convert(pack(content), Limits())
    assert not result.assets and any("unsafe names" in notice for notice in result.notices)


def test_names_of_assets_are_never_those_of_the_archive():
    names = ["con.png", "a b:c.png", "é*.png", "x" * 200 + ".png", "...png", "日本.png"]
    result = book("<p>t</p>" + "".join(f'<img src="{n}"/>' for n in names), extra={n: PNG for n in names})
    assert len(result.assets) == len({a.name for a in result.assets}) == 6
    assert all(
        a.name.replace("-", "").removesuffix(".png").isalnum() and len(a.name) < 70 for a in result.assets
    )


@pytest.mark.parametrize(
    "href", ["../../../etc/passwd", "/etc/passwd", "%2e%2e/%2e%2e/x", "a//b/../../../c", "http://["]
)
def test_addresses_never_lead_out_of_the_book(href):
    place = resolve("OEBPS/a.xhtml", href)
    assert not place.path.startswith(("/", ".."))


def test_members_with_the_same_name_are_noticed():
    with pytest.warns(UserWarning, match="Duplicate name"):
        data = pack([*world().items(), ("OEBPS/i.png", PNG)])
    assert any("there twice" in notice for notice in convert(data, Limits()).notices)


def test_a_zip_bomb_is_refused_while_it_unpacks():
    refused(members("<p>x</p>" + " " * 30_000_000), "zip bomb")
    refused(members("<p>x</p>", extra={"b.xhtml": "b"}), "zip bomb", Limits(unpacked_bytes=200))


def test_a_size_that_lies_does_not_help_a_bomb():
    content = members("<p>x</p>" + " " * 30_000_000)
    data = bytearray(pack(content))
    with zipfile.ZipFile(__import__("io").BytesIO(bytes(data))) as source:
        size = source.getinfo("OEBPS/a.xhtml").file_size
    lied = bytes(data).replace(size.to_bytes(4, "little"), (50).to_bytes(4, "little"))
    with pytest.raises(ReadingError):
        convert(lied, Limits())


def test_an_archive_of_too_many_members_is_refused():
    refused(b"PK\x01\x02" * 100_001, "more than 50000 members")


def test_an_archive_with_a_password_is_refused():
    data = bytearray(pack(world()))
    place = data.rfind(b"PK\x01\x02")
    data[place + 8] |= 1
    refused(bytes(data), "password")


def test_entities_that_grow_are_refused_in_the_package_and_not_expanded_in_text():
    laughs = '<!DOCTYPE p [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'
    content = world()
    refused(
        content | {"OEBPS/c.opf": laughs + content["OEBPS/c.opf"].split("?>")[1]}, "declares XML entities"
    )
    content["OEBPS/a.xhtml"] = laughs + "<html><body><p>&b;</p></body></html>"
    assert convert(pack(content), Limits()).markdown == "\\&b;\n"


def test_text_beyond_the_limit_is_cut_with_a_notice():
    result = book(
        {f"{n}.xhtml": f"<h1>C{n}</h1><p>{'x ' * 100}</p>" for n in range(9)}, Limits(text_characters=500)
    )
    assert len(result.markdown) < 600 and any("was cut" in notice for notice in result.notices)


def test_a_file_beyond_the_limit_is_refused():
    refused(world(), "at most 10", Limits(file_bytes=10))


def test_without_the_packages_the_error_says_how_to_install_them(monkeypatch):
    whole = builtins.__import__

    def without(name, *rest, **more):
        if name.partition(".")[0] in ("bs4", "markdownify"):
            raise ImportError(name)
        return whole(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    refused(world(), r"pip install 'searchsvc\[epub\]'")


SHAPES = {
    "div": lambda n: "<div>" * n + "t" + "</div>" * n,
    "span": lambda n: "<p>" + "<span>" * n + "t",
    "list": lambda n: "<ol><li>" * n + "t",
    "quote": lambda n: "<blockquote>" * n + "t",
    "table": lambda n: "<table><tr><td>" * n + "t",
    "links": lambda n: "<a href='#x'>" * n + "t",
    "note": lambda n: "<aside epub:type='footnote' id='q'>" * n + "t<a href='#q'>1</a>",
    "anchors": lambda n: "<p>" + "<a id='x'/>" * n + "t</p>",
    "items": lambda n: "<ol>" + "<li>t</li>" * n + "</ol>",
    "comments": lambda n: "t" + "<!--" * n,
    "cdata": lambda n: "t" + "<![CDATA[" * n,
    "attribute": lambda n: f"<p title='{'x' * n * 100}'>t</p>",
    "brackets": lambda n: "<p>t" + "[" * n * 10,
    "less": lambda n: "t" + "<" * n * 10,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_four_times_as_much_of_anything_takes_far_less_than_sixteen_times_as_long(shape):
    seconds = []
    for count in (2_500, 10_000):
        began = time.process_time()
        assert "t" in book(SHAPES[shape](count)).markdown
        seconds.append(time.process_time() - began)
    few, many = seconds
    assert many < 10 * few + 1


def test_cut_and_changed_files_raise_nothing_but_reading_errors():
    whole = pack(
        world() | {"META-INF/encryption.xml": ENCRYPTION.format("http://www.idpf.org/2008/embedding", "")}
    )
    chance = random.Random(7)
    for turn in range(400):
        data = bytearray(whole[: chance.randrange(len(whole))] if turn % 4 == 0 else whole)
        for _ in range(chance.randrange(1, 6)):
            if data:
                data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            convert(bytes(data), Limits())
        except ReadingError:
            pass


TAGS = """p div span h1 h3 ul ol li table tr td th pre code a img b i br blockquote dl dt dd sup figure
figcaption svg image math aside section ruby rt q hr""".split()
PIECE = st.one_of(
    st.sampled_from(TAGS).flatmap(
        lambda t: st.sampled_from([f"<{t}>", f"</{t}>", f"<{t}/>", f'<{t} id="{t}">'])
    ),
    st.sampled_from(
        ['<a href="#p">', '<a epub:type="noteref" href="#li">', '<span epub:type="pagebreak" title="3"/>']
    ),
    st.sampled_from(
        ["# x", "- y", "1. z", "```", "~~~", "| a |", "&amp;", "&", "<", "<!--", "]]>", "\n", "[x](y)", "*"]
    ),
    st.text(max_size=8),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECE, max_size=40))
def test_any_mixture_of_tags_and_text_becomes_markdown_whose_links_resolve(pieces):
    content = members("x", nav=entry("Nav title", "a.xhtml"))
    content["OEBPS/a.xhtml"] = page("<p>start</p>" + "".join(pieces)).encode("utf-8", "replace")
    result = convert(pack(content), Limits())
    note = note_of(result)
    made = sum(
        line.startswith("#") and line.lstrip("#").startswith(" ") for line in result.markdown.split("\n")
    )
    assert len([s for s in note.sections if s.level]) <= made
    assert not any(ord(c) < 32 and c not in "\n\t\r" for c in result.markdown)
