"""XHTML of a chapter -> Markdown, by markdownify with rules of our own.

The tree is walked once, in document order: what a place needs to know of what came before it (page marks,
ids waiting for a heading) is kept in the chapter. Nothing is moved in the tree, because that takes time
that grows with the square of the number of siblings.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from searchsvc.importing.epub_code import code_language, is_line_number
from searchsvc.importing.epub_depth import MAX_DEPTH
from searchsvc.importing.epub_formulas import formula, tex_of
from searchsvc.importing.epub_images import IMAGE_SUFFIXES
from searchsvc.importing.epub_inline import TICKS, SimpleRules, code_span, join_emphasis
from searchsvc.importing.epub_links import GUARD, HEADING, KEPT_BLANK, Place, Weave, external, resolve
from searchsvc.importing.epub_marks import (
    BOXES,
    CONTAINERS,
    DROPPED,
    HEADINGS,
    PLAIN,
    is_dropped,
    is_figure,
    number_items,
    page_number,
    settle_caption,
)
from searchsvc.importing.epub_notes import DEFINITION, REFERENCE, is_backlink
from searchsvc.importing.epub_placing import reference, take_marks
from searchsvc.importing.epub_tables import TableRules, flatten_layout, is_layout

NOTE = "_note"
"""Stands among the parents of what is in a note."""
_SPECIAL = re.compile(
    r"[\\`*]|(?<!\w)_|_(?!\w)|<(?=[A-Za-z/!?])|&(?=#?\w{1,40};)|~(?=~)|(?<=~)~|!$|!(?=\[)"
    r"|(?<!\S)#(?=[^\s#])|\[(?![^\[\]^]{1,200}\](?:[^\[(:]|$))"
)
_BRACKETS = re.compile(r"(?<!\\)([\[\]])")
_LINE_STARTER = re.compile(
    r"^\s*(?:\d{1,9}(?=[.)](?:\s|$)))?(?=#{1,6}(?:\s|$)|[-+](?:\s|$)|>|[.)](?:\s|$)|[=-]+\s*$)"
)
_LEADING_MARK = re.compile(r"^(?:\\?\[\\?\]|\\?[\s.:)\]]|\x06)+")
_BLANK_LINES = re.compile(r"\n{3,}")
_BLANK_ENDS = re.compile(r"^[ \t]+$|(?<![ \t])[ \t]+(?=\n\n)", re.MULTILINE)


@dataclass(slots=True)
class Chapter:
    """One document on its way to Markdown."""

    path: str
    weave: Weave
    picture: Callable[[str, str], str]
    """Base document and address of an image -> its name as an asset; empty when it cannot be had."""
    known: Callable[[Place], Place | None]
    """A place -> the same with the name of its document as the archive has it; ``None`` if nowhere."""
    titles: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Ids that a heading is made for: its text and level; the empty id is the start."""
    is_certain: bool = False
    """Whether all of those become headings; else those only whose paragraph says the title."""
    definitions: dict[int, str] = field(default_factory=dict)
    """Filled: the text of notes by their number."""
    pages: list[int] = field(default_factory=list)
    """Filled: all page marks."""
    max_page: int = 0
    waiting_pages: list[int] = field(default_factory=list)
    waiting_ids: list[str] = field(default_factory=list)
    waiting_titles: list[str] = field(default_factory=list)
    hoisted: list[str] = field(default_factory=list)
    """Images of the heading at hand, which follow it."""
    depth: int = 0

    def see_text(self) -> None:
        """Give ids that wait for a heading to the last one, as text has come first."""
        if self.waiting_ids:
            self.see_heading(len(self.weave.levels) - 1)

    def see_heading(self, number: int) -> None:
        """Give ids that wait to a heading."""
        for name in self.waiting_ids:
            self.weave.places.setdefault(Place(self.path, name), number)
        self.waiting_ids.clear()


class _Rules(SimpleRules, TableRules):
    """What differs from markdownify; mixed into its converter."""

    chapter: Chapter

    def process_tag(self, node: Any, parent_tags: set[str] | None = None) -> str:
        """Convert an element with all in it."""
        parents = parent_tags or set()
        chapter = self.chapter
        definition = node.attrs.get(DEFINITION)
        if not isinstance(definition, int):
            if is_dropped(node):
                return ""
            definition = 0
        self._see_ids(node)
        number = page_number(node)
        if number is not None:
            return self._page_mark(number, parents)
        if definition:
            node.name, parents = "div", {"_box", NOTE}
        chapter.depth += 1
        try:
            text = self._convert(node, parents)
        finally:
            chapter.depth -= 1
        if definition:
            chapter.definitions.setdefault(definition, _LEADING_MARK.sub("", text.strip()))
            return ""
        return self._put_before(text, node, parents)

    def _convert(self, node: Any, parents: set[str]) -> str:
        name = node.name
        if self.chapter.depth > MAX_DEPTH:
            self.chapter.see_text()
            return self.escape(" ".join(node.get_text(" ").split()), parents)
        if name == "pre":
            return self._code_block(node, parents)
        if name == "math":
            self.chapter.see_text()
            text, is_code = formula(node)
            return code_span(text) if is_code else self.escape(text, parents)
        if name in ("span", "div", "p") and (tex := tex_of(node)):
            self.chapter.see_text()
            return code_span(tex) if name == "span" else f"\n\n{code_span(tex)}\n\n"
        if name == "svg":
            return self._drawing(node, parents)
        if name == "table" and is_layout(node):
            flatten_layout(node)
            parents = parents | {"_box"}
        elif name == "ol":
            number_items(node)
        elif name == "figure" or (name == "div" and is_figure(node)):
            settle_caption(node)
        elif name in HEADINGS and not parents & BOXES:
            self._begin_heading(node)
        converted: str = super().process_tag(node, parents)  # type: ignore[misc]
        return converted

    def process_text(self, el: Any, parent_tags: set[str] | None = None) -> str:
        """Convert a piece of text."""
        if self.chapter.waiting_ids and el.strip():
            self.chapter.see_text()
        text: str = super().process_text(el, parent_tags=parent_tags)  # type: ignore[misc]
        return text.lstrip(" ") if getattr(el.previous_sibling, "name", None) == "br" else text

    def escape(self, text: str, parent_tags: set[str]) -> str:
        """Take the meaning from characters that Markdown would read as markup."""
        text = text.replace("\u00ad", "")
        starter = _LINE_STARTER.match(text)
        # Whether it begins a line, and so has to be escaped, shows when the chapter is put together.
        place = starter.end() if starter else 0
        head, tail = text[:place], _SPECIAL.sub(_escaped, text[place:])
        if "a" in parent_tags:
            tail = _BRACKETS.sub(r"\\\1", tail)
        return head + GUARD + tail if starter else tail

    def _see_ids(self, node: Any) -> None:
        chapter = self.chapter
        names = {node.get("id"), node.get("name") if node.name == "a" else None}
        for name in names:
            if name and isinstance(name, str):
                chapter.waiting_ids.append(name)
                if name in chapter.titles:
                    self._begin_title(name)

    def _begin_title(self, name: str) -> None:
        """Note that a title of the navigation stands here."""
        chapter = self.chapter
        number = chapter.weave.heading(chapter.titles[name][1], is_named=True)
        title = self.escape(chapter.titles.pop(name)[0], {"h1"})
        chapter.waiting_titles.append(f"{HEADING}{number}{HEADING}{title}")
        if chapter.is_certain:
            chapter.see_heading(number)

    def _put_before(self, text: str, node: Any, parents: set[str]) -> str:
        """Return a piece of text with the marks and titles in front that were met inside it.

        Page marks go before the first thing they would break, titles before the paragraph.
        """
        chapter, marks = self.chapter, list[str]()
        if chapter.waiting_pages and node.name not in PLAIN and parents <= PLAIN:
            marks += [f"<!-- page {number} -->" for number in chapter.waiting_pages]
            chapter.waiting_pages.clear()
        is_block = node.name not in CONTAINERS and parents <= CONTAINERS
        if chapter.waiting_titles and is_block and text.strip():
            plain, notes = take_marks(text)
            is_said = is_same(chapter.waiting_titles[-1], plain)
            if is_said or chapter.is_certain:
                marks += chapter.waiting_titles if chapter.is_certain else chapter.waiting_titles[-1:]
            chapter.waiting_titles.clear()
            text = notes if is_said else text
        return "\n\n" + "\n\n".join(marks) + "\n\n" + text if marks else text

    def _page_mark(self, number: int, parents: set[str]) -> str:
        chapter = self.chapter
        if not 0 < number <= chapter.max_page:
            return ""
        chapter.pages.append(number)
        if parents <= PLAIN:
            return f"\n\n<!-- page {number} -->\n\n"
        chapter.waiting_pages.append(number)
        return ""

    def _begin_heading(self, node: Any) -> None:
        if not self.chapter.is_certain:
            self.chapter.waiting_titles.clear()
        number = self.chapter.weave.heading(int(node.name[1]))
        self.chapter.see_heading(number)
        node["x-heading"] = number

    def convert_hN(self, n: int, el: Any, text: str, parent_tags: set[str]) -> str:  # noqa: N802
        """Convert a heading; its level is put right at the end."""
        chapter = self.chapter
        number = el.attrs.get("x-heading")
        if not isinstance(number, int):
            return f" {text.strip()} " if "_inline" in parent_tags else f"\n\n{text.strip()}\n\n"
        self.chapter.see_heading(number)
        images, (text, notes) = "\n\n".join(chapter.hoisted), take_marks(text)
        chapter.hoisted.clear()
        title = " ".join(text.split())
        if not title:
            title = " ".join(self.escape(image.get("alt", ""), {"h1"}) for image in el.find_all("img"))
            title = " ".join(title.split())
        line = f"{HEADING}{number}{HEADING}{title}" if title else ""
        return "\n\n" + "\n\n".join(part for part in (line, notes, images) if part) + "\n\n"

    def convert_a(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """Convert a link, or the reference of a note."""
        label = el.attrs.get(REFERENCE)
        if isinstance(label, int):
            return reference(label)
        href = el.get("href") or ""
        inner = text.strip()
        if not inner or not href or "_noformat" in parent_tags or HEADING in text or "\n\n" in text:
            return text
        head = " " if text[0] == " " else ""
        tail = " " if text[-1] == " " else ""
        place = resolve(self.chapter.path, href)
        if not place.path:
            url = external(href)
            if not url or parent_tags & HEADINGS:
                return text
            shown = f"<{url}>" if el.get_text().strip() == url else f"[{inner}]({url})"
            return head + shown + tail
        known = self.chapter.known(place)
        if known and NOTE in parent_tags and is_backlink(el):
            return ""
        if known is None or parent_tags & HEADINGS:
            return text
        return head + self.chapter.weave.link(inner, known) + tail

    def convert_img(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """Convert an image."""
        return self._image(el.get("src") or "", el.get("alt") or "", parent_tags)

    def _image(self, source: str, caption: str, parents: set[str]) -> str:
        chapter = self.chapter
        chapter.see_text()
        caption = self.escape(" ".join(caption.split()), {"a"})
        name = chapter.picture(chapter.path, source) if source else ""
        if not name:
            return "" if parents & HEADINGS else caption
        image = f"![{caption}](assets/{name})"
        if parents & HEADINGS and not parents & BOXES:
            chapter.hoisted.append(image)
            return ""
        return image

    def _drawing(self, node: Any, parents: set[str]) -> str:
        told = next((t.get_text() for t in node.find_all(["title", "desc"]) if t.get_text().strip()), "")
        images = node.find_all("image")
        if not images:
            self.chapter.see_text()
            return self.escape(" ".join((told or node.get_text(" ")).split()), parents)
        pieces = []
        for image in images:
            source = image.get("xlink:href") or image.get("href") or ""
            caption = image.get("alt") or image.get("aria-label") or node.get("aria-label") or told
            pieces.append(self._image(source, caption, parents))
        return " ".join(piece for piece in pieces if piece)

    def convert_object(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """Convert an object that is an image; of others, what stands in for them."""
        source, kind = str(el.get("data") or el.get("src") or ""), str(el.get("type") or "")
        is_image = kind.startswith("image/") or (not kind and source.lower().endswith(IMAGE_SUFFIXES))
        return self._image(source, text.strip(), parent_tags) if is_image else text

    convert_embed = convert_object

    def _code_block(self, node: Any, parents: set[str]) -> str:
        self.chapter.see_text()
        pieces: list[str] = []
        part: Any
        for part in node.descendants:
            holder: Any = part.parent
            if isinstance(part, str):
                is_text = type(part).__name__ in ("NavigableString", "CData") and holder.name not in DROPPED
                if is_text and not is_line_number(holder):
                    pieces.append(str(part))
            elif part.name == "br":
                pieces.append("\n")
            elif part.name == "img":
                pieces.append(part.get("alt") or "")
            elif (number := page_number(part)) is not None:
                self._page_mark(number, {"pre"})
        code = "".join(pieces).replace("\r\n", "\n").replace("\r", "\n").strip("\n").rstrip()
        if not code.strip():
            return ""
        if "_inline" in parents:
            return code_span(" ".join(code.split()))
        fence = "`" * max(3, 1 + max((len(run) for run in TICKS.findall(code)), default=0))
        # Blank lines of code are kept from those who fold blank lines by a character that goes at the end.
        lines = "\n".join(line or KEPT_BLANK for line in code.split("\n"))
        return f"\n\n{fence}{code_language(node)}\n{lines}\n{fence}\n\n"


def _escaped(found: re.Match[str]) -> str:
    return "\\" + found.group()


def is_same(marked: str, text: str) -> bool:
    """Tell whether a text is a title that was made, but for its markup."""
    return _letters(marked.rpartition(HEADING)[2]) == _letters(text) != ""


def _letters(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())


@cache
def _converter() -> Any:
    from markdownify import MarkdownConverter

    return type("Converter", (_Rules, MarkdownConverter), {})


def convert_chapter(chapter: Chapter, soup: Any) -> str:
    """Return the Markdown of a document, headings and links still to be put right."""
    converter = _converter()(wrap=True, wrap_width=None)
    converter.chapter = chapter
    chapter.waiting_ids.append("")
    if "" in chapter.titles:
        converter._begin_title("")
    text: str = converter.convert_soup(soup)
    chapter.see_text()
    marks = [f"<!-- page {number} -->" for number in chapter.waiting_pages]
    titles = chapter.waiting_titles if chapter.is_certain else []
    text = "\n\n".join([*titles, text.strip(), *marks])
    return tidy_lines(text)


def tidy_lines(text: str) -> str:
    """Take away blanks before blank lines, and blank lines after blank lines, outside code."""
    text = _BLANK_ENDS.sub("", join_emphasis(text))
    return _BLANK_LINES.sub("\n\n", text).strip("\n")
