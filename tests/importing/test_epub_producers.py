"""What programs that make books write, and what becomes of it: notes, titles, code, formulas, figures."""

import base64
import time

import pytest

pytest.importorskip("bs4", reason="the extra [epub] is not installed")
pytest.importorskip("markdownify", reason="the extra [epub] is not installed")

from epub_world import PNG, book, entry, headings, members, note_of, pack, page, point, text

from searchsvc.importing.base import Limits
from searchsvc.importing.epub import convert
from searchsvc.importing.epub_xml import declared_entities, strip_declarations


def chapter(number: int) -> str:
    return f'<h2 id="c{number}">C{number}</h2><p>Text<a id="r{number}" href="#n{number}">[{number}]</a></p>'


def back(number: int) -> str:
    return f'<p id="n{number}"><a href="#r{number}">[{number}]</a> Note {number}.</p>'


def test_notes_of_a_file_with_many_chapters_stand_at_the_end_of_their_own():
    body = chapter(1) + chapter(2) + "<hr/>" + back(1) + back(2)
    assert text(body) == "# C1\n\nText[^1]\n\n[^1]: Note 1.\n\n# C2\n\nText[^2]\n\n[^2]: Note 2.\n"


def test_notes_stand_in_their_chapter_where_the_navigation_makes_the_headings():
    body = "".join(chapter(n).replace("h2", "p") for n in (1, 2)) + back(1) + back(2)
    ncx = point("C1", "a.xhtml#c1") + point("C2", "a.xhtml#c2")
    assert text(body, ncx=ncx) == "# C1\n\nText[^1]\n\n[^1]: Note 1.\n\n# C2\n\nText[^2]\n\n[^2]: Note 2.\n"


def test_a_page_mark_stays_with_the_chapter_that_it_begins():
    body = chapter(1) + '<div epub:type="pagebreak" title="2"/>' + chapter(2) + back(1) + back(2)
    assert "[^1]: Note 1.\n\n<!-- page 2 -->\n\n# C2" in text(body)


def test_a_note_that_a_note_refers_to_follows_it():
    body = (
        '<h1>A</h1><p>x<a epub:type="noteref" href="#f">1</a></p><h2>B</h2><p>b</p>'
        '<aside epub:type="footnote" id="f"><p>One<a epub:type="noteref" href="#g">2</a></p></aside>'
        '<aside epub:type="footnote" id="g"><p>Two</p></aside>'
    )
    assert text(body) == "# A\n\nx[^1]\n\n[^1]: One[^2]\n\n[^2]: Two\n\n## B\n\nb\n"


def test_a_reference_in_code_stands_behind_it_and_text_that_looks_like_one_stays():
    body = (
        '<h1>A</h1><p><code>f<a epub:type="noteref" href="#f">1</a></code> <code>a[^1]</code></p>'
        '<pre>[^1]</pre><aside epub:type="footnote" id="f"><p>One</p></aside>'
    )
    assert text(body) == "# A\n\n`f`[^1] `a[^1]`\n\n```\n[^1]\n```\n\n[^1]: One\n"


DEEP = '<h2 id="k">Deep</h2><p>a <b>b</b> <img src="i.png" alt="p"/></p><ul><li>c</li></ul><pre>d\n e</pre>'
DEEP += "<table><tr><th>x</th><th>y</th></tr><tr><td>1</td><td>2</td></tr></table>"


@pytest.mark.parametrize("wrap", ["div", "section", "span", "article", "font", "custom-tag", "p", "em"])
@pytest.mark.parametrize("depth", [70, 500, 10_000])
def test_what_is_nested_deep_keeps_its_kind(wrap, depth):
    began = time.perf_counter()
    body = '<h1>A</h1><p><a href="#k">to</a></p>' + f"<{wrap}>" * depth + DEEP + f"</{wrap}>" * depth
    result = book(body, extra={"i.png": PNG})
    assert headings(result) == [(1, "A"), (2, "Deep")]
    assert [link.heading for link in note_of(result).links] == ["deep"]
    for piece in ("![p](assets/i.png)", "- c\n", "```\nd\n e\n```", "| x | y |", "| 1 | 2 |"):
        assert piece in result.markdown
    assert time.perf_counter() - began < 20


def test_text_ids_and_paragraphs_of_boxes_that_are_too_deep_stay():
    body = '<h1>A</h1><p><a href="#z">to</a></p><h2>B</h2>' + "<blockquote>" * 200
    body += '<blockquote id="z">one<blockquote><p>two</p></blockquote>three</blockquote>'
    result = book(body)
    assert [link.heading for link in note_of(result).links] == ["b"]
    lines = [line.strip("> ") for line in result.markdown.split("\n")]
    assert [line for line in lines if line in ("one", "two", "three")] == ["one", "two", "three"]


@pytest.mark.parametrize("inner", ["<table>{}</table>", "<tr>{}", "<td>{}", "<ul>{}", "<dl>{}", "<svg><g>{}"])
def test_text_outside_of_cells_and_items_is_not_lost(inner):
    assert "stray" in text(
        f"<h1>A</h1>{inner.format('stray')}<tr><td>a</td><td>b</td></tr><tr><td>c</td></tr>"
    )
    assert "1,1" not in text("<p>x</p><tr><td>a</td></tr>")


def test_paragraphs_that_say_a_title_of_the_navigation_are_headings_beside_others():
    body = '<h1 id="t">Book</h1><p>by A</p><p class="c" id="c1">CHAPTER 1</p><p>x <a href="#c2">y</a></p>'
    body += '<div id="c2"><h2>Other</h2></div><p id="c3">Not a title</p>'
    nav = "".join(entry(*pair) for pair in (("Book", "a.xhtml#t"), ("Chapter 1", "a.xhtml#c1")))
    nav += entry("Two", "a.xhtml#c2") + entry("Three", "a.xhtml#c3")
    result = book(body, nav=nav)
    assert headings(result) == [(1, "Book"), (1, "Chapter 1"), (2, "Other")]
    assert "CHAPTER" not in result.markdown and "Not a title" in result.markdown
    assert [link.heading for link in note_of(result).links] == ["other"]


@pytest.mark.parametrize(
    ("source", "language"),
    [
        ('<pre class="sourceCode python"><code class="sourceCode python">x</code></pre>', "python"),
        (
            '<div class="highlight-console notranslate"><div class="highlight"><pre>x</pre></div></div>',
            "console",
        ),
        ('<div class="highlight-default"><pre>x</pre></div>', ""),
        ('<pre class="calibre3">x</pre>', ""),
        ('<pre class="programlisting java">x</pre>', "java"),
    ],
)
def test_the_language_of_code_is_known_by_its_classes(source, language):
    assert text(source) == f"```{language}\nx\n```\n"


def test_numbers_of_lines_are_no_part_of_code():
    source = (
        '<pre><span class="linenos">1</span>a\n<span class="linenos">2</span><span class="ln">b</span></pre>'
    )
    assert text(source) == "```\na\nb\n```\n"


def test_formulas_keep_what_stands_above_below_and_under_a_root():
    body = (
        "<p><math><mfrac><mn>1</mn><mn>2</mn></mfrac></math> <math><msup><mi>x</mi><mn>2</mn></msup></math> "
        "<math><msqrt><mi>a</mi><mo>+</mo><mi>b</mi></msqrt></math> "
        '<span class="math">\\(a_b\\)</span> <span class="math">not</span></p>'
        '<div class="math">\\[c^d\\]</div>'
    )
    assert text(body) == "1/2 `x^2` √(a + b) `a_b` not\n\n`c^d`\n"


def test_a_box_with_a_caption_is_a_figure():
    body = '<div class="figure"><img src="i.png" alt=""/><p class="caption">Cap</p></div>'
    assert text(body, extra={"i.png": PNG}) == "![Cap](assets/i.png)\n"


def test_boxes_of_tasks_are_kept_and_other_input_is_not():
    body = '<ul><li><input type="checkbox"/> a</li><li><input type="checkbox" checked=""/>b</li></ul>'
    assert text(body + '<p>x<input type="text"/></p>') == "- [ ] a\n- [x] b\n\nx\n"


def test_a_table_with_a_head_stays_one_with_short_lists_in_it():
    items = "<ul><li>x</li><li>y</li></ul>"
    body = f"<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>{items}</td></tr></table>"
    assert text(body) == "| A | B |\n| --- | --- |\n| 1 | - x - y |\n"


@pytest.mark.parametrize("way", ["guide", "nav"])
def test_a_list_of_contents_is_left_out_and_a_page_with_more_is_not(way):
    links = '<h1>Contents</h1><p>Contents</p><ol><li><a href="b.xhtml">Chapter B</a> 7</li></ol>'
    for more, is_kept in (("", False), ("<p>And so much more that is only said here.</p>", True)):
        content = members({"a.xhtml": links + more, "b.xhtml": "<h1>Chapter B</h1><p>b</p>"})
        package = content["OEBPS/c.opf"]
        if way == "guide":
            guide = '<guide><reference type="toc" title="t" href="a.xhtml"/></guide></package>'
            package = package.replace("</package>", guide)
        else:
            package = package.replace('<item id="d0"', '<item properties="nav" id="d0"')
        found = convert(pack(content | {"OEBPS/c.opf": package}), Limits()).markdown
        assert ("Contents" in found) is is_kept and "# Chapter B\n\nb" in found


def test_short_texts_that_a_document_declares_are_put_in():
    content = members("x")
    kind = (
        '<!DOCTYPE html [<!ENTITY co "A]>B"><!-- ]> \' --><!ENTITY n \'x&#8212;y\'><!ENTITY b "&co;&co;">]>'
    )
    content["OEBPS/a.xhtml"] = page("<p>&co; &n; &b;</p>").replace("<!DOCTYPE html>", kind)
    assert convert(pack(content), Limits()).markdown == "A]>B x—y \\&b;\n"


@pytest.mark.parametrize("piece", ["<!--", '"', "'\"", "<!ENTITY a ", '<!ENTITY a "', "]", "<!ENTITY a 'b'>"])
def test_declarations_take_no_time_to_speak_of(piece):
    began = time.perf_counter()
    source = "<!DOCTYPE x [" + piece * 100_000
    strip_declarations(source)
    declared_entities(source)
    assert time.perf_counter() - began < 5


def test_declared_texts_do_not_make_a_book_grow_without_end():
    content = members("x")
    kind = f'<!DOCTYPE html [<!ENTITY a "{"x" * 1000}">]>'
    content["OEBPS/a.xhtml"] = page(f"<p>{'&a; ' * 20_000}</p>").replace("<!DOCTYPE html>", kind)
    assert len(convert(pack(content), Limits()).markdown) < 1_300_000


def test_images_embedded_in_the_text_or_as_objects_are_taken():
    coded = base64.b64encode(PNG).decode()
    body = f'<p>t</p><img alt="a" src="data:image/png;base64,{coded[:20]}\n{coded[20:]}"/>'
    result = book(
        body + '<object data="o.png">o</object><p><embed src="e.png"/></p>',
        extra={"o.png": PNG, "e.png": PNG},
    )
    assert [asset.name for asset in result.assets] == ["image.png", "o.png", "e.png"]
    assert all(asset.data == PNG for asset in result.assets) and not result.notices


@pytest.mark.parametrize(
    "source", ["data:image/png;base64,!", "data:text/html;base64,eA==", "data:image/png,x", "data:"]
)
def test_data_that_is_no_image_is_left_out_with_a_notice(source):
    result = book(f'<p>t</p><img src="{source}" alt="lost"/>')
    assert not result.assets and "lost" in result.markdown and len(result.notices) == 1


def test_an_image_embedded_in_the_text_is_bound_by_the_limit():
    coded = base64.b64encode(PNG).decode()
    result = book(f'<p>t</p><img src="data:image/png;base64,{coded}"/>', Limits(image_bytes=9))
    assert not result.assets and "larger than 9 bytes" in result.notices[0]
