"""Text blocks -> wikilinks, Markdown links, images and inline tags.

Code spans are blanked first, so brackets of a shell test are no links. Every scan is linear in the
length of the block: one regular expression for wikilinks and one pass over brackets for the rest.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape
from operator import itemgetter
from urllib.parse import unquote

from markdown_it.common.utils import normalizeReference, unescapeAll

from searchsvc.items import Image, Link
from searchsvc.reading.structure import ATTRIBUTES, Structure, has_table, plain_text

NOTE_SUFFIXES = (".md", ".markdown", ".mdx", ".qmd")
IMAGE_STUB = "image:"
"""What an embed begins with that names an image by its id in the folder's index of images."""

_ATTACHMENT_SUFFIXES = frozenset(
    """.avif .bmp .gif .jpeg .jpg .png .svg .tif .tiff .webp .heic .ico .flac .m4a .mp3 .ogg .opus .wav
    .3gp .aac .mkv .mov .mp4 .ogv .webm .pdf .canvas .base .excalidraw .zip .gz .tar .7z .doc .docx .xls
    .xlsx .ppt .pptx .odt .ods .csv .tsv .epub""".split()
)
_CODE_SUFFIXES = frozenset(
    """.css .js .ts .json .xml .yaml .yml .toml .txt .py .rs .go .sh .c .h .java .bib .tex .ics""".split()
)
"""A path that ends so is no note; a name may well be one: ``[[Node.js]]``."""
_IMAGE_SUFFIXES = frozenset(".avif .bmp .gif .jpeg .jpg .png .svg .tif .tiff .webp .heic .ico".split())
_WIKILINK = re.compile(
    r"(!?)\[\[(?!\[)((?:[^\[\]\n]{1,1000}+|\[[^\[\]\n]{0,200}\]|\[(?!\[)|\](?!\])){1,20}+)\]\]"
)
"""Single brackets may stand in it, as in ``[[Note|a [b]]]``."""
_CONTENTS = "_TOC_"
"""Written as a wikilink, where wikis of GitLab and Azure DevOps put the table of contents."""
_ALIAS_BAR = re.compile(r"\\?\|")
_EXTERNAL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:|//|\\")
_BACKTICKS = re.compile(r"`+")
_IMG_TAG = re.compile(
    r"""<(?:img|IMG|Img)\s(?:(?:[^<>"']{1,200}+|"[^"]{0,500}+"|'[^']{0,500}+'){0,20}+>|[^>]{0,2000}>)"""
)
"""Quoted values may hold ``>``; where quotes are unbalanced, the first ``>`` is the end."""
_HTML_TAG = re.compile(r"</?[A-Za-z][^<>]{0,2000}>")
_ATTRIBUTE = re.compile(r"""(?<![\w\-])(src|alt)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
_BRACKET = re.compile(
    r"\\.|\[|\]|<[A-Za-z][A-Za-z0-9+.\-]{1,31}:[^\s<>]{0,2000}>|"
    r"""</?[A-Za-z][A-Za-z0-9\-]{0,50}(?:\s+[A-Za-z_:][\w:.\-]{0,100}"""
    r"""(?:\s*=\s*(?:"[^"]{0,500}"|'[^']{0,500}'|[^\s"'=<>`]{1,500}))?){0,20}+\s*/?>""",
    re.DOTALL,
)
"""Brackets, and what binds more tightly than they do: escapes, addresses and tags between ``<`` and ``>``.

Each way begins with a sign, for which Python skips all other text; not so with a class of signs."""
_PLAIN = r"[^\s()\\]|\\\S?"
_NESTED = rf"\((?:{_PLAIN}|\((?:{_PLAIN}|\((?:{_PLAIN})*+\))*+\))*+\)"
_TITLE = r""""(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|\((?:[^()\\]|\\.)*+\)"""
_DESTINATION = re.compile(
    rf"\(\s*+(?:<((?:[^<>\n\\]|\\[^\n])*+)>|((?!<)(?:{_PLAIN}|{_NESTED})*+))(?:\s++(?:{_TITLE}))?\s*+\)",
    re.DOTALL,
)
"""Of an inline link; parentheses may be nested three deep, as much as CommonMark asks for."""
_LABEL = re.compile(r"\[((?:[^\[\]\\]|\\.){0,999}+)\]", re.DOTALL)
_TAG_SIGNS = r"[^\s\u2000-\u206f\u2e00-\u2e7f\u3000-\u303f\uff00-\uff0f!-,.:-@\[-^`{-~]+"
_TAGS = re.compile(rf"#(?:(?<!\S#)|(?<=[*_]#)|(?<=~~#)|(?<===#))({_TAG_SIGNS}(?:#{_TAG_SIGNS})*)")
"""As Obsidian reads tags: after a blank, a mark of emphasis or another tag, up to a blank or punctuation
other than ``_``, ``-`` and ``/``."""
_FORMULA = re.compile(
    r"\$\$(?:[^$\\]|\\.)++\$\$|(?<![\\\w$])\$(?![\s$])(?:[^$\\\n]|\\.)++(?<!\s)\$(?![\w$])", re.DOTALL
)
"""With blanks and words kept away from its dollar signs, since prices have those, too."""
_AFTER_TEXT = re.compile(rf"\]{_DESTINATION.pattern}", re.DOTALL)
_LINE_END = re.compile("\n")
_MAX_LABEL = 999


@dataclass(slots=True)
class References:
    """Everything one note points at."""

    links: list[Link] = field(default_factory=list)
    images: list[Image] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)


_SIGNS = ("[", "#", "<")
_IMAGE_SIGNS = ("![", "<img", "<IMG", "<Img")


def read_images(structure: Structure) -> list[Image]:
    """Collect only the images of a note, in file order; most blocks need no second look for that."""
    return read_references(structure, signs=_IMAGE_SIGNS).images


def read_references(structure: Structure, *, signs: tuple[str, ...] = _SIGNS) -> References:
    """Collect links, images and tags of a note in file order, from blocks that hold one of the signs."""
    found = References()
    for block in structure.blocks:
        content = block.content
        for sign in signs:  # a generator for ``any`` takes four times as long
            if sign in content:
                break
        else:
            continue
        if not block.html:
            content = _blank_between(_blank_between(_blank_code(content), "%%", "%%"), "{/*", "*/}")
            content = _blank_formulas(content)
        content = _blank_between(content, "<!--", "-->")
        _Scan(block.content, content, block.line, structure.references, found).run(html=block.html)
    return found


def wikilinks(text: str, line: int) -> list[Link]:
    """Return the links to notes in a text that is no Markdown, such as a property."""
    found = References()
    scan = _Scan(text, text, line, {}, found)
    return [item for _, item in scan.wikilinks() if isinstance(item, Link)]


def is_attachment(target: str, *, wiki: bool) -> bool:
    """Tell whether a link target names a file that is no note, by its suffix."""
    suffix = _suffix(target)
    return suffix in _ATTACHMENT_SUFFIXES or (not wiki and suffix in _CODE_SUFFIXES)


def _suffix(target: str) -> str:
    name = target.rsplit("/", 1)[-1]
    return "." + name.rsplit(".", 1)[-1].lower() if "." in name else ""


def _blank(text: str) -> str:
    if "\n" not in text:
        return " " * len(text)
    return "\n".join([" " * len(line) for line in text.split("\n")])


def _blank_code(content: str) -> str:
    """Replace code spans by spaces; a span ends at a run of as many backticks as opened it.

    A backslash takes the first backtick off a run that would open a span.
    """
    if "`" not in content:
        return content
    runs = [found.span() for found in _BACKTICKS.finditer(content)]
    by_length: dict[int, list[int]] = {}
    for start, end in runs:
        by_length.setdefault(end - start, []).append(start)
    pieces, done = [], 0
    for start, end in runs:
        if start < done:
            continue
        start += _is_escaped(content, start)
        starts = by_length.get(end - start, [])
        later = bisect_right(starts, start)
        if later == len(starts):
            continue
        stop = starts[later] + end - start
        pieces += [content[done:start], _blank(content[start:stop])]
        done = stop
    return "".join([*pieces, content[done:]])


def _blank_formulas(content: str) -> str:
    return _FORMULA.sub(lambda found: _blank(found.group()), content) if "$" in content else content


def _blank_between(content: str, opening: str, closing: str) -> str:
    """Replace comments by spaces; the shortest are ``<!-->`` and ``%%%%``."""
    start = content.find(opening)
    if start < 0:
        return content
    pieces, done = [], 0
    while start >= 0 and (stop := content.find(closing, start + 2)) >= 0:
        stop += len(closing)
        pieces += [content[done:start], _blank(content[start:stop])]
        done = stop
        start = content.find(opening, done)
    return "".join([*pieces, content[done:]])


def _is_escaped(content: str, position: int) -> bool:
    slashes = 0
    while position - slashes > 0 and content[position - slashes - 1] == "\\":
        slashes += 1
    return slashes % 2 == 1


class _Scan:
    """One pass over one block."""

    def __init__(
        self, source: str, content: str, line: int, references: dict[str, str], found: References
    ) -> None:
        """``content`` is ``source`` with code and comments blanked, place by place."""
        self.source = source
        self.content = content
        self.first_line = line
        self.references = references
        self.found = found
        self.line_ends = [match.start() for match in _LINE_END.finditer(content)]

    def run(self, *, html: bool) -> None:
        items: list[tuple[int, Link | Image]] = [*self._html_images()] if "<" in self.content else []
        if not html:
            if "[[" in self.content:
                items += self.wikilinks()
            if self.references or "](" in self.content:
                items += self._markdown()
            if "#" in self.content:
                self.found.tags += self._tags()
        for _, item in sorted(items, key=itemgetter(0)):
            if isinstance(item, Link):
                self.found.links.append(item)
            else:
                self.found.images.append(item)

    def _image(self, source: str, alt: str, start: int, end: int) -> Image:
        is_data = source[:5].lower() == "data:"
        return Image(
            source=source if is_data else unquote(source),
            line=self._line(start),
            alt=alt,
            raw=self.source[start:end],
        )

    def _line(self, position: int) -> int:
        return self.first_line + bisect_right(self.line_ends, position)

    def _tags(self) -> list[str]:
        """Return inline tags; a number alone is none, nor is an id among attributes."""
        text = _WIKILINK.sub(" ", self.content) if "[[" in self.content else self.content
        text = _AFTER_TEXT.sub(" ", text) if "](" in text else text
        text = _HTML_TAG.sub(" ", text) if "<" in text else text
        text = ATTRIBUTES.sub(" ", text) if "{" in text else text
        text = text.replace("|", " ") if "|#" in text and has_table(text) else text
        names: list[str] = []
        for run in _TAGS.finditer(text):
            is_emphasis = text[run.start() - 1 : run.start()] == "_"
            names += (run[1].rstrip("_") if is_emphasis else run[1]).split("#")
        names = [name.strip("/") for name in names]
        return [name for name in names if name and not name.isdigit()]

    def _html_images(self) -> Iterator[tuple[int, Image]]:
        for tag in _IMG_TAG.finditer(self.content):
            values: dict[str, str] = {}
            for name, *value in _ATTRIBUTE.findall(tag.group()):
                values.setdefault(name.lower(), unescape("".join(value)))
            if values.get("src"):
                yield tag.start(), self._image(values["src"], values.get("alt", ""), *tag.span())

    def wikilinks(self) -> Iterator[tuple[int, Link | Image]]:
        """Yield wikilinks and embedded images with their places."""
        for match in _WIKILINK.finditer(self.content):
            embed = bool(match.group(1)) and not _is_escaped(self.content, match.start())
            if _is_escaped(self.content, match.start(2) - 2):
                continue
            inside = self.source[match.start(2) : match.end(2)]
            written, *alias = _ALIAS_BAR.split(inside, maxsplit=1)
            target, _, fragment = written.partition("#")
            # A sign at the very end may belong to the name, as in [[C#]]: it names no heading.
            is_name = bool(target.strip()) and fragment.strip().lower() in ("", *NOTE_SUFFIXES)
            target, fragment = (written.strip(), "") if is_name else (target.strip(), fragment)
            text = alias[0].strip() if alias else ""
            if "://" in target or inside == _CONTENTS or self._is_cited(inside):
                continue
            line = self._line(match.start())
            if _suffix(target) in _IMAGE_SUFFIXES or (embed and target.startswith(IMAGE_STUB)):
                if embed:
                    raw = self.source[match.start() : match.end()]
                    yield match.start(), Image(source=target, line=line, alt=text, raw=raw)
            elif (target or fragment.strip()) and not is_attachment(target, wiki=True):
                heading, block = _fragment(fragment)
                yield match.start(), Link(
                    target=target, heading=heading, block=block, text=text, line=line,
                    embed=embed, wiki=True,
                )  # fmt: skip

    def _is_cited(self, label: str) -> bool:
        """Tell whether ``[[1]]`` stands for a link reference in brackets, whose definition the note has.

        Foam writes definitions of wikilinks, which lead to what the link itself names.
        """
        destination = self.references.get(normalizeReference(label)) if self.references else None
        return destination is not None and not _is_named(destination, label)

    def _markdown(self) -> Iterator[tuple[int, Link | Image]]:
        """Yield links and images with one stack of open brackets; a link holds no other link."""
        content, stack, skip_to = self.content, list[int](), 0
        dead = 0  # so many of the outermost brackets hold a link already
        for match in _BRACKET.finditer(content):
            start, sign = match.start(), match.group()
            if start < skip_to or sign[0] in "\\<":
                continue
            if sign == "[":
                stack.append(start)
            elif stack:
                opening = stack.pop()
                is_link = not self._is_image(opening)
                is_dead, dead = len(stack) < dead, min(dead, len(stack))
                if is_dead and is_link:
                    continue
                destination, skip_to = self._destination(opening, start)
                if destination is None:
                    continue
                dead = len(stack) if is_link else dead
                item = self._item(opening, start, skip_to, destination)
                if item is not None:
                    yield opening, item

    def _is_image(self, opening: int) -> bool:
        before = opening - 1
        return before >= 0 and self.content[before] == "!" and not _is_escaped(self.content, before)

    def _destination(self, opening: int, closing: int) -> tuple[str | None, int]:
        """Return where a bracket pair points and where the scan goes on."""
        after = closing + 1
        inline = _DESTINATION.match(self.content, after)
        if inline:
            angle, bare = inline.groups()
            return unescapeAll(bare if angle is None else angle), inline.end()
        if not self.references:
            return None, after
        label = _LABEL.match(self.content, after)
        if label and label.group(1):
            name = label.group(1)
        elif closing - opening > _MAX_LABEL:
            return None, after
        else:
            name = self.source[opening + 1 : closing]
        target = self.references.get(normalizeReference(name))
        if target is not None and self._is_wikilink(opening, closing) and _is_named(target, name):
            return None, after
        return target, label.end() if label and target is not None else after

    def _is_wikilink(self, opening: int, closing: int) -> bool:
        return self.content[opening - 1 : opening] == "[" and self.content[closing + 1 : closing + 2] == "]"

    def _item(self, opening: int, closing: int, end: int, destination: str) -> Link | Image | None:
        is_external, is_embed = bool(_EXTERNAL.match(destination)), self._is_image(opening)
        if is_external and not is_embed:
            return None
        inside, line = self.source[opening + 1 : min(closing, opening + _MAX_LABEL)], self._line(opening)
        path, _, fragment = destination.partition("#")
        path = unquote(path.partition("?")[0])
        if is_embed and (is_external or _suffix(path) not in NOTE_SUFFIXES):
            return self._image(destination, inside, opening - 1, end)
        if is_attachment(path, wiki=False) or not (path or fragment):
            return None
        heading, block = _fragment(unquote(fragment))
        text = plain_text(inside)
        return Link(target=path, heading=heading, block=block, text=text, line=line, embed=is_embed)


def _is_named(destination: str, label: str) -> bool:
    """Tell whether a path ends in a name, with or without the suffix of a note."""
    name = unquote(destination.partition("#")[0]).rsplit("/", 1)[-1].lower()
    wanted = label.rsplit("/", 1)[-1].strip().lower()
    return name in (wanted, *(wanted + suffix for suffix in NOTE_SUFFIXES))


def _fragment(text: str) -> tuple[str, str]:
    """Split what follows ``#`` into a heading and a block id."""
    heading, caret, block = text.partition("^")
    if caret and (not heading or heading.endswith("#")):
        return heading.rstrip("#").strip(), block.strip()
    return text.strip(), ""
