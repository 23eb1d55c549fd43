"""Markdown text -> its blocks: headings, running text, raw HTML; of code only where it stands.

CommonMark by markdown-it-py without its inline rules: structure needs blocks only, and inline rules cost
most of the time. Only headings of the document itself count; those in quotes and lists end no section.
Tables are paragraphs here, but for a line below one, which makes no heading of it.
"""

import re
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from searchsvc.items import CodeBlock
from searchsvc.reading.blocks import Environment, parse_blocks

_INLINE_MARKUP = re.compile(r"[\\`*_\[\]<>&!~]")
_WIKILINK = re.compile(r"!?\[\[([^\[\]|]*)(?:\\?\|([^\[\]]*))?\]\]")
ATTRIBUTES = re.compile(r"""\{:?\s{0,9}((?:[.#][^\s{}]++|[\w-]++=(?:"[^"{}]*"|[^\s"{}]++)|-)\s{0,9})+\}""")
_ID_ATTRIBUTE = re.compile(r"[{\s:]#([^\s{}]+)")
_CLOSING_HASHES = re.compile(r"\s#+\s*$")
_COMMENT = re.compile(r"\{/\*(?:(?!\*/\}|\{/\*).)*+\*/\}|%%(?:(?!%%).)*+%%", re.DOTALL)
"""Of MDX and of Obsidian, none in another, so that it is looked for once; those of HTML are markup."""
_ID_COMMENT = re.compile(r"(?:\{/\*\s{0,9}#?|<!--\s{0,9}#)([^\s{}*/<>]+)\s{0,9}(?:\*/\}|-->)\s*$")
"""As Docusaurus and React write the id of a heading at its end."""
_ID_BRACKET = re.compile(r"\s\[#([^\W\d][\w.\-]*)\]\s*$")
"""As Nextra and Fumadocs write it; ``[#123]`` names an issue."""
_BAR = re.compile(r"(?<!\\)\|")
_TABLE_LINE = re.compile(r"\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?")
_MAX_INLINE = 2_000
_MAX_NAME = 300


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of the document itself."""

    level: int
    title: str
    """Plain text; trailing attributes such as ``{#id .class}`` and comments are taken off."""
    names: tuple[str, ...]
    """Ids by which links may call it, beside that made of its title.

    Where markup stands in it also the source, with ``%20`` for blanks, of which Obsidian makes its links.
    """
    line_start: int
    line_end: int
    """Later than the start for underlined headings."""


class Block(NamedTuple):
    """Text outside code. A named tuple, since there are many and these are made in half the time."""

    line: int
    """Of its first character."""
    content: str
    """Without the marks of quotes and lists around it, and not of what stands in a comment."""
    html: bool = False


@dataclass(slots=True)
class Structure:
    """The blocks of one note, in file order."""

    headings: list[Heading] = field(default_factory=list)
    inner_headings: list[tuple[int, str]] = field(default_factory=list)
    """Line and plain text of headings inside quotes and lists."""
    blocks: list[Block] = field(default_factory=list)
    code: list[CodeBlock] = field(default_factory=list)
    references: dict[str, str] = field(default_factory=dict)
    """Link reference definitions: normalised label to destination."""


def read_structure(lines: tuple[str, ...], first_line: int) -> Structure:
    """Parse the lines from ``first_line`` (1-based) to the end."""
    environment: Environment = {}
    tokens = parse_blocks(lines[first_line - 1 :], environment)
    references = environment.get("references", {})
    structure = Structure(references={label: entry["href"] for label, entry in references.items()})
    comments = 0
    for number, token in enumerate(tokens):
        if token.type in ("comment_open", "comment_close"):
            comments += token.nesting
        if token.map is None:
            continue
        line = token.map[0] + first_line
        if token.type in ("fence", "code_block"):
            structure.code.append(_code(token, line, lines))
        elif comments:
            continue
        elif token.type == "inline":
            structure.blocks.append(Block(line, token.content))
        elif token.type == "html_block":
            structure.blocks.append(Block(line, token.content, html=True))
        elif token.type == "heading_open" and not has_table(source := tokens[number + 1].content):
            heading = _heading(token, source, line, environment)
            if token.level == 0:
                structure.headings.append(heading)
            else:
                structure.inner_headings.append((line, heading.title))
    return structure


def has_table(source: str) -> bool:
    """Tell whether text is a table or ends in one; a line below it is then none of a heading.

    A table begins with a row and a line of as many cells of dashes, and runs to the end of the paragraph.
    """
    if "|" not in source or "\n" not in source:
        return False
    return any(
        _TABLE_LINE.fullmatch(below.strip()) and _cells(above) == _cells(below)
        for above, below in pairwise(source.split("\n"))
    )


def _cells(row: str) -> int:
    """Return how many cells a row of a table has; bars at its ends are optional."""
    pieces = _BAR.split(row.strip())
    return len(pieces) - (not pieces[0]) - (not pieces[-1])


def _code(token: Token, line: int, lines: tuple[str, ...]) -> CodeBlock:
    end = line + (token.map or [0, 1])[1] - (token.map or [0, 1])[0] - 1
    while end > line and not token.markup and not lines[end - 1].strip(" \t>"):
        end -= 1
    language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
    return CodeBlock(line_start=line, line_end=end, language=language, fence=token.markup)


def _heading(token: Token, source: str, line: int, environment: Environment) -> Heading:
    span, written = token.map or [0, 1], source.split()
    brace = source.rfind("{") if source.endswith("}") else -1
    attributes = ATTRIBUTES.fullmatch(source, brace) if brace >= 0 else None
    names = _ID_ATTRIBUTE.findall(attributes.group()) if attributes else []
    if attributes:
        source = _CLOSING_HASHES.sub("", source[:brace])
    id_form = _ID_BRACKET if source.endswith("]") else _ID_COMMENT
    if (written_id := id_form.search(source)) is not None:
        names.append(written_id[1])
        source = source[: written_id.start()]
    if ("{/*" in source or "%%" in source) and "`" not in source:
        source = _COMMENT.sub("", source)
    title = plain_text(source, environment)
    if len(written) > 1 and written != title.split() and len(source) <= _MAX_NAME:
        names.append("%20".join(written))
    return Heading(
        level=int(token.tag[1]),
        title=title,
        names=tuple(names),
        line_start=line,
        line_end=line + span[1] - span[0] - 1,
    )


def plain_text(source: str, environment: Environment | None = None) -> str:
    """Return what a reader sees of inline Markdown: no markup, no HTML tags, white space folded.

    ``environment`` has the link references of the note.
    """
    if _INLINE_MARKUP.search(source) and len(source) <= _MAX_INLINE:
        pieces = [""]  # running text and code in turn: double brackets in code are no link
        for token in _inline_parser().parseInline(source, {} if environment is None else environment):
            _show(token, pieces)
        pieces[::2] = [_WIKILINK.sub(lambda f: f.group(2) or f.group(1), text) for text in pieces[::2]]
        source = "".join(pieces)
    return " ".join(source.split())


def _show(token: Token, pieces: list[str]) -> None:
    """Add what a reader sees of a token to the last piece, or of code as a piece of its own."""
    if token.type == "code_inline":
        pieces += [token.content, ""]
    elif token.children:
        for child in token.children:
            _show(child, pieces)
    elif token.type in ("text", "text_special", "image"):
        pieces[-1] += token.content
    elif token.type in ("softbreak", "hardbreak"):
        pieces[-1] += " "


@cache
def _inline_parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("strikethrough")
