"""Books written by the tests become the Markdown one expects."""

import json
from pathlib import Path

import pytest

pytest.importorskip("bs4", reason="the extra [epub] is not installed")
pytest.importorskip("markdownify", reason="the extra [epub] is not installed")

from epub_world import (
    JPG,
    META,
    PNG,
    book,
    entry,
    headings,
    members,
    note_of,
    pack,
    package,
    page,
    point,
    text,
)

from searchsvc.importing.base import Limits
from searchsvc.importing.epub import convert

CASES = Path(__file__).parents[1] / "cases"
LOOPS = {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": '<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:'
    'opendocument:xmlns:container"><rootfiles><rootfile full-path="c.opf" '
    'media-type="application/oebps-package+xml"/></rootfiles></container>',
    "c.opf": package(["a.xhtml"]),
    "a.xhtml": '<html xmlns="http://www.w3.org/1999/xhtml"><head><title>t</title></head><body><h1>Loops</h1>'
    "<p># of turns is three</p>"
    "<pre># set up\nfor i in range(3): pass</pre><h2>Nesting</h2><p>inner</p></body></html>",
}


def test_a_line_of_program_text_that_begins_with_a_hash_is_no_heading():
    del_first = {name: content for name, content in LOOPS.items() if name != "mimetype"}
    result = convert(pack(del_first), Limits())
    assert [title for _, title in headings(result)] == ["Loops", "Nesting"]
    assert "```\n# set up\nfor i in range(3): pass\n```" in result.markdown


def test_the_public_case_gives_the_headings_it_names():
    files = [file for file in CASES.rglob("parse.jsonl")]
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    case = next((json.loads(line) for line in lines if '"parse-s29"' in line), None)
    if case is None:
        pytest.skip("the cases are not here; the test above holds a copy of this one")
    content = dict(case["files"]["book.epub"]["zip"])
    content.pop("mimetype")
    found = [title for _, title in headings(convert(pack(content), Limits()))]
    assert found == case["expect"]["headings_text"]


@pytest.mark.parametrize(
    "line", ["# x", "- x", "+ x", "* x", "1. x", "12) x", "&gt; x", "===", "---", "~~~", "```", "#"]
)
@pytest.mark.parametrize(
    "shape", ["<p>{}</p>", "<p>a<br/>{}</p>", "<ul><li>{}</li></ul>", "<div>{}<p>b</p></div>"]
)
def test_text_that_looks_like_a_mark_of_markdown_stays_text(line, shape):
    note = note_of(book("<h1>T</h1>" + shape.format(line) + "<p>end</p>"))
    assert [s.title for s in note.sections] == ["T"]
    assert not note.code
    shown = line.replace("&gt;", ">")[0]
    assert any("\\" + shown in row or "\\." in row or "\\)" in row for row in note.lines)


def test_a_mark_split_over_elements_stays_text():
    assert "1\\. x" in text("<h1>T</h1><p><span>1</span>. x</p>")


def test_levels_are_those_of_the_book_with_chapters_on_level_one():
    result = book(
        {"a.xhtml": "<h2>One</h2><h3>In</h3>", "b.xhtml": "<h2>Two</h2>", "t.xhtml": "<h1>Book</h1>"}
    )
    assert headings(result) == [(1, "One"), (2, "In"), (1, "Two"), (1, "Book")]


def test_a_chapter_without_a_heading_gets_the_title_of_the_navigation():
    bodies = {"a.xhtml": "<p>text</p>", "b.xhtml": "<h3>Own</h3>"}
    found = [(1, "From nav"), (1, "Own")]
    assert headings(book(bodies, nav=entry("From nav", "a.xhtml") + entry("x", "b.xhtml"))) == found
    assert headings(book(bodies, ncx=point("From nav", "a.xhtml"), version="2.0")) == found


def test_a_paragraph_that_is_the_title_of_the_navigation_becomes_it_and_is_not_doubled():
    bodies = {"a.xhtml": '<p class="c">Chapter  <b>One</b></p><p>x</p><div id="s"><p>Part</p></div><p>y</p>'}
    nav = entry("Chapter One", "a.xhtml", entry("Part", "a.xhtml#s"))
    result = book(bodies, nav=nav)
    assert headings(result) == [(1, "Chapter One"), (2, "Part")]
    assert result.markdown == "# Chapter One\n\nx\n\n## Part\n\ny\n"


def test_headings_in_tables_lists_and_quotes_stay_text_there():
    body = (
        "<h1>A</h1><ul><li><h2>li</h2></li></ul><blockquote><h2>bq</h2></blockquote>"
        "<table><tr><td><h2>td</h2></td><td>x</td></tr><tr><td>1</td><td>2</td></tr></table>"
    )
    result = book(body)
    assert headings(result) == [(1, "A")]
    assert all(word in result.markdown for word in ("- li", "> bq", "| td | x |"))


@pytest.mark.parametrize(
    ("source", "title"),
    [
        ("C #", "C #"),
        ("Set {#id}", "Set {#id}"),
        ("a <i>b</i> <code>c_d</code>", "a b c_d"),
        ("R&amp;D &lt;b>", "R&D <b>"),
        ("A<br/>B", "A B"),
        ("1. One", "1. One"),
        ("x [y](z)", "x [y](z)"),
    ],
)
def test_the_text_of_a_heading_is_what_readers_see(source, title):
    assert headings(book(f"<h1>{source}</h1><p>x</p>")) == [(1, title)]


def test_a_heading_that_is_an_image_has_its_alternative_text():
    result = book('<h1><img src="i.png" alt="Chapter 1"/></h1><p>x</p>', extra={"i.png": PNG})
    assert result.markdown == "# Chapter 1\n\n![Chapter 1](assets/i.png)\n\nx\n"


def test_footnotes_of_epub_3_stand_at_the_end_of_their_chapter():
    first = (
        '<h1>A</h1><p>one<a epub:type="noteref" href="n.xhtml#f">*'
        '</a></p><p>x<a role="doc-noteref" href="#g">2</a></p>'
    )
    first += '<aside epub:type="footnote" id="g"><p>Second.</p></aside>'
    notes = (
        '<h1>B</h1><p>b</p><ol><li id="f" epub:type="endnote"><p>First. <a href="a.xhtml">↩</a></p></li></ol>'
    )
    assert text({"a.xhtml": first, "n.xhtml": notes}) == (
        "# A\n\none[^1]\n\nx[^2]\n\n[^1]: First.\n\n[^2]: Second.\n\n# B\n\nb\n"
    )


def test_footnotes_of_epub_2_are_known_by_their_links_back():
    first = (
        '<h1>A</h1><p>one<a id="r1" href="n.html#n1"><sup>1</sup>'
        '</a> two<sup><a id="r2" href="n.html#n2">[2]</a></sup></p>'
    )
    notes = (
        '<h1>Notes</h1><p id="n1"><a href="a.html#r1">1</a>. First'
        '</p><p><a id="n2"></a>[<a href="a.html#r2">2</a>] Second</p>'
    )
    expected = "# A\n\none[^1] two[^2]\n\n[^1]: First\n\n[^2]: Second\n\n# Notes\n"
    assert text({"a.html": first, "n.html": notes}) == expected


def test_a_note_that_nothing_refers_to_stays_where_it_is():
    assert "lonely" in text('<h1>A</h1><aside epub:type="footnote" id="q"><p>lonely</p></aside>')


def test_links_inside_the_book_lead_to_the_anchor_of_their_heading():
    first = (
        '<h1 id="a">Same</h1><p><a href="Sub/B%20c.xhtml#k">in text</a> <a href="#a">self</a> '
        '<a href="gone.xhtml">gone</a> '
        '<a href="javascript:alert(1)">script</a> <a href="http://x.org/(1)">web</a> '
        '<a href="mailto:a@b.c">mail</a></p>'
    )
    second = (
        '<section id="s"><h1>Same</h1></section><p id="k">t '
        '<a href="../A.XHTML">back</a> <a href="#s">s</a></p>'
    )
    result = book({"a.xhtml": first, "sub/b c.xhtml": second})
    assert [(link.text, link.heading) for link in note_of(result).links] == [
        ("in text", "same-1"),
        ("self", "same"),
        ("back", "same"),
        ("s", "same-1"),
    ]
    assert "gone script [web](http://x.org/%281%29) [mail](mailto:a@b.c)" in result.markdown


def test_text_before_a_link_does_not_make_it_an_image():
    assert "Wow\\![x](#a)" in text('<h1 id="q">A</h1><p>Wow!<a href="#q">x</a></p>')


def test_lists_keep_their_nesting_and_their_numbers():
    body = (
        "<h1>A</h1><ul><li>a<ul><li>b</li><li><p>c</p><p>d</p></li>"
        '</ul></li></ul><ol start="4"><li>x</li><li value="9">y</li></ol>'
    )
    assert text(body) == "# A\n\n- a\n  - b\n  - c\n\n    d\n\n4. x\n9. y\n"


def test_code_keeps_its_lines_and_its_fence_is_longer_than_any_inside():
    result = book('<h1>A</h1><pre><code class="language-py">a = 1\n\n\n  b ```` &lt;c&gt;\n# d</code></pre>')
    assert "`````py\na = 1\n\n\n  b ```` <c>\n# d\n`````\n" in result.markdown
    assert len(note_of(result).code) == 1
    assert "use `` a`b `` here" in text("<p>use <code>a`b</code> here</p>")


def test_tables_become_tables_with_spans_flattened():
    body = (
        "<h1>A</h1><table><caption>Cap</caption><thead><tr><th>A</th><th>B|C</th></tr></thead><tbody>"
        '<tr><td colspan="2">x</td></tr><tr><td rowspan="2">r</td>'
        "<td>1</td></tr><tr><td>2</td></tr></tbody></table>"
    )
    assert text(body) == "# A\n\nCap\n\n| A | B\\|C |\n| --- | --- |\n| x |  |\n| r | 1 |\n| r | 2 |\n"


def test_layout_and_nested_tables_become_text():
    body = "<table><tr><td>one<table><tr><td>in</td></tr></table></td><td>two</td></tr></table>"
    assert text(body) == "one\n\nin\n\ntwo\n"


def test_definitions_formulas_ruby_and_small_digits_are_readable():
    body = (
        "<dl><dt>Term</dt><dd>Def</dd></dl><p>H<sub>2</sub>O x<sup>2</sup> 1<sup>st</sup> "
        '<ruby>漢<rp>(</rp><rt>kan</rt></ruby> <math alttext="x_2">'
        "<mi>x</mi></math> <m:math><m:mi>y</m:mi></m:math></p>"
    )
    assert text(body) == "- **Term**\n\n  Def\n\nH₂O x² 1st 漢 `x_2` y\n"


def test_what_readers_do_not_see_is_left_out():
    body = (
        '<script>s()</script><style>p{}</style><p hidden="hidden">h</p><p style="display: none">n</p>'
        '<!-- c --><nav epub:type="toc"><h1>Contents</h1></nav><p>seen</p>'
    )
    assert text(body) == "seen\n"


def test_entities_of_html_survive():
    assert text("<p>a&nbsp;b&mdash;c &#8212; &eacute; &lt; &unknown;</p>") == "a\u00a0b—c — é < \\&unknown;\n"


def test_page_marks_stand_before_their_text_and_the_highest_is_the_number_of_pages():
    body = (
        '<span epub:type="pagebreak" title="iv"/><h1>A</h1><p>x <span epub:type="pagebreak" title="5"/>y</p>'
        '<ul><li>l <span role="doc-pagebreak" aria-label=" 7. "/>m'
        '</li></ul><div epub:type="pagebreak" id="page_6"/><p>z</p>'
    )
    result = book(body)
    assert result.pages == 7
    assert result.markdown == (
        "# A\n\nx\n\n<!-- page 5 -->\n\ny\n\n<!-- page 7 -->\n\n- l m\n\n<!-- page 6 -->\n\nz\n"
    )


def test_images_become_assets_with_names_of_ours_each_once():
    body = (
        '<h1>A</h1><p><img src="i/My%20Pic.PNG" alt="a [b]"/></p><p>'
        '<img src="i/my%20pic.png" alt="again"/></p>'
        '<figure><img src="i/x.jpg"/><figcaption>Fig 1</figcaption></figure><img src="no.png" alt="lost"/>'
        '<svg:svg><svg:image xlink:href="c/my pic.bin"/></svg:svg><img src="http://x.y/z.png"/>'
    )
    extra = {"i/my pic.png": PNG, "i/x.jpg": PNG, "c/my pic.bin": JPG}
    result = book(body, extra=extra)
    assert [(asset.name, asset.data) for asset in result.assets] == [
        ("my-pic.png", PNG),
        ("x.png", PNG),
        ("my-pic.jpg", JPG),
    ]
    assert "![a \\[b\\]](assets/my-pic.png)" in result.markdown
    assert "![Fig 1](assets/x.png)" in result.markdown and result.markdown.count("Fig 1") == 1
    assert "lost" in result.markdown and len(result.notices) == 2


def test_images_beyond_the_limits_are_left_out_with_a_notice():
    body, extra = '<p>t</p><img src="a.png"/><img src="b.png"/>', {"a.png": PNG, "b.png": PNG}
    few, small = book(body, Limits(images=1), extra=extra), book(body, Limits(image_bytes=9), extra=extra)
    assert len(few.assets) == 1 and "at most 1" in few.notices[0]
    assert not small.assets and "2 images" not in small.markdown and "larger than 9 bytes" in small.notices[0]


def test_the_package_tells_title_authors_and_language():
    meta = (
        '<dc:title id="s">Sub</dc:title><dc:title id="m">Main'
        '</dc:title><meta refines="#s" property="title-type">subtitle'
        '</meta><dc:creator id="c1">Ann &amp; Co</dc:creator><dc:creator opf:role="ill">Ill</dc:creator>'
        '<dc:creator opf:role="aut">Bob</dc:creator><meta refines="#c1" property="role">aut</meta>'
        "<dc:language>pt-BR</dc:language>"
    )
    result = book("<p>x</p>", meta=meta)
    assert (result.kind, result.title, result.author, result.language) == (
        "epub",
        "Main",
        "Ann & Co, Bob",
        "pt-BR",
    )
    assert book("<h1>First <i>one</i></h1>", meta="").title == "First one"


def test_documents_outside_the_line_of_reading_come_last():
    spine = ['idref="d0" linear="no"', 'idref="d1"']
    assert text({"a.xhtml": "<p>aside</p>", "b.xhtml": "<p>main</p>"}, spine=spine) == "main\n\naside\n"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "iso-8859-1", "cp1251"])
def test_documents_are_read_in_the_encoding_they_declare(encoding):
    word = "Привет" if encoding == "cp1251" else "café"
    content = members("x")
    content["OEBPS/a.xhtml"] = (
        page(f"<p>{word}</p>").replace("utf-8", encoding.removesuffix("-sig")).encode(encoding)
    )
    assert convert(pack(content), Limits()).markdown == f"{word}\n"


def test_a_package_in_the_root_and_one_in_a_folder_are_read_alike():
    body = {"text/a.xhtml": '<p>x</p><img src="../i.png"/>'}
    for folder in ("", "OEBPS/", "a/b c/"):
        assert len(book(body, folder=folder, extra={"i.png": PNG}).assets) == 1


def test_emphasis_that_goes_on_in_the_next_element_is_one():
    assert text("<p><i>a</i><i>b</i> <b>c <b>d</b></b><em> e </em>f</p>") == "*ab* **c d** *e* f\n"


def test_metadata_default_of_the_tests_is_valid():
    assert "A book" in META and book("<p>x</p>").title == "A book"
