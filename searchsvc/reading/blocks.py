"""Lines of Markdown -> the tokens of their blocks, by markdown-it-py, in a third of its time.

The stock parser tries all rules in turn on every line. Every rule but those for indented code, underlined
headings and paragraphs begins with a sign of its own, so here they are looked up by the first character of
a line, and most lines need none. Nor are tokens made that nobody reads. Those that are made are the stock
parser's; a test compares them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import accumulate
from operator import add, sub
from typing import Any, Literal

from markdown_it import MarkdownIt
from markdown_it.common.utils import mdTrim
from markdown_it.rules_block import (
    StateBlock,
    blockquote,
    code,
    fence,
    heading,
    hr,
    html_block,
    lheading,
    list_block,
    paragraph,
    reference,
)
from markdown_it.token import Token

from searchsvc.reading.admonitions import admonition
from searchsvc.reading.asides import aside
from searchsvc.reading.footnotes import footnote

Environment = dict[str, Any]
"""What the parser notes beside the blocks: the link references."""

_Rule = Callable[[StateBlock, int, int, bool], bool]
"""Given the state, a line, the line to stop at, and whether only to tell if the rule applies."""

_BLANKS = " \t"
_LABEL = re.compile(r"\[(?:[^\[\]\\]|\\.)*+\]:", re.DOTALL)
"""May run over lines, whose marks of quotes and indents hold no brackets."""


def _break(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Add a thematic break, where a line holds nothing but its first sign and blanks; few do."""
    line = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]]
    return not line.strip(line[0] + _BLANKS) and hr(state, start, end, silent)


def _definition(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Note a link reference, where a label with a colon stands; most brackets are those of links."""
    place = state.bMarks[start] + state.tShift[start]
    return _LABEL.match(state.src, place) is not None and reference(state, start, end, silent)


_INTERRUPTING: dict[str, tuple[_Rule, ...]] = {
    "`": (fence,),
    "~": (fence,),
    ">": (blockquote,),
    "*": (_break, list_block),
    "-": (_break, list_block),
    "_": (_break,),
    "+": (list_block,),
    **dict.fromkeys("0123456789", (list_block,)),
    "<": (html_block,),
    "#": (heading,),
    "$": (aside,),
    "%": (aside,),
    "{": (aside,),
    "[": (footnote,),
    **dict.fromkeys("!?=", (admonition,)),
}
"""What may begin with a character, also in the middle of a paragraph, in stock order."""
_BEGINNING = _INTERRUPTING | {"[": (footnote, _definition)}
_ENDING_ITEM = {
    sign: tuple(rule for rule in rules if rule in (fence, blockquote, _break, aside, admonition))
    for sign, rules in _INTERRUPTING.items()
}
_UNDERLINES = "-="
_TAB = 4
_MAX_INDENT = 3
_MAX_NESTING = 200
"""Blocks in blocks; a list counts twice. The parser drops what is deeper, and all that follows it."""
_READ = frozenset(
    ("inline", "heading_open", "html_block", "fence", "code_block", "comment_open", "comment_close")
)
"""Types of the tokens that are made."""


def parse_blocks(lines: Sequence[str], environment: Environment) -> list[Token]:
    """Return the tokens for headings, running text, raw HTML and code; link references are noted.

    The lines are without line ends and zero bytes. A heading is followed by its text.
    """
    parser = _parser()
    state = _State(lines, parser, environment)
    parser.block.tokenize(state, 0, state.lineMax)
    return state.tokens


class _State(StateBlock):
    """Where the parser is in the lines of a note."""

    def __init__(self, lines: Sequence[str], parser: MarkdownIt, environment: Environment) -> None:
        super().__init__("", parser, environment, [])
        # What the stock parser finds out character by character.
        self.src = "\n".join(lines)
        if lines and not lines[-1].strip(_BLANKS):
            lines = lines[:-1]
        sizes = [*map(len, lines), 0]
        self.bMarks = [*accumulate([size + 1 for size in sizes[:-1]], initial=0)]
        self.bMarks[-1] = len(self.src)
        self.eMarks = [*map(add, self.bMarks, sizes)]
        self.tShift = [*map(sub, sizes, [len(line.lstrip(_BLANKS)) for line in lines]), 0]
        self.sCount = self.tShift.copy()
        if "\t" in self.src:
            indents = (line[:shift] for line, shift in zip(lines, self.tShift, strict=False))
            self.sCount = [*(len(indent.expandtabs(_TAB)) for indent in indents), 0]
        self.bsCount = [0] * len(self.bMarks)
        self.lineMax = len(lines)
        self._unread = Token("", "", 0)

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        """Add a token, or return one that goes nowhere for the rule to write on."""
        self.level += nesting
        if ttype not in _READ:
            return self._unread
        token = _Token(ttype, tag, nesting, self.level - (nesting > 0))
        self.tokens.append(token)
        return token


class _Token(Token):
    """A token with no more than what is read of it; the stock one takes three times as long to make."""

    __slots__ = ()

    def __init__(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1], level: int) -> None:
        self.type = ttype
        self.tag = tag
        self.nesting = nesting
        self.level = level
        self.map = None
        self.content = self.markup = self.info = ""


@cache
def _parser() -> MarkdownIt:
    """Return a parser with rules that look others up in place of its own."""
    parser = MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING})
    ruler = parser.block.ruler
    ruler.enableOnly("code")  # which is what makes the parser regard indented lines as code
    ruler.before("code", "any", _any_block)
    ruler.push("interruption", _look_up(_INTERRUPTING), {"alt": ["paragraph", "reference", "blockquote"]})
    ruler.push("end of item", _look_up(_ENDING_ITEM), {"alt": ["list"]})
    return parser


def _any_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    if state.sCount[start] - state.blkIndent > _MAX_INDENT:
        return code(state, start, end, silent)
    for rule in _BEGINNING.get(state.src[state.bMarks[start] + state.tShift[start]], ()):
        if rule(state, start, end, silent):
            return True
    return (
        _plain_paragraph(state, start)
        or lheading(state, start, end, silent)
        or paragraph(state, start, end, silent)
    )


def _look_up(rules: Mapping[str, tuple[_Rule, ...]]) -> _Rule:
    """Return a rule that applies where one of those for the first character of a line does."""

    def rule(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        place = state.bMarks[start] + state.tShift[start]
        # A slice, since an empty line at the very end has no character at all.
        found = rules.get(state.src[place : place + 1])
        return found is not None and any(rule(state, start, end, silent) for rule in found)

    return rule


def _plain_paragraph(state: StateBlock, start: int) -> bool:
    """Add the text of a paragraph, unless one of its lines may be an underline."""
    outer, state.parentType = state.parentType, "paragraph"
    line = _paragraph_end(state, start)
    state.parentType = outer
    if line is None:
        return False
    state.level += 1
    inline = state.push("inline", "", 0)
    state.level -= 1
    if line == start + 1:  # nothing is left of its indent
        text = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]]
    else:
        text = state.getLines(start, line, state.blkIndent, False)
    inline.content, inline.map = mdTrim(text), [start, line]
    state.line = line
    return True


def _paragraph_end(state: StateBlock, start: int) -> int | None:
    """Return the line after a paragraph; none when it may be a heading."""
    text, begins, shifts, ends, depths = state.src, state.bMarks, state.tShift, state.eMarks, state.sCount
    stop, deepest = state.lineMax, state.blkIndent + _MAX_INDENT
    for line in range(start + 1, stop):
        place, end = begins[line] + shifts[line], ends[line]
        if place >= end:
            return line
        sign = text[place]
        rules = _INTERRUPTING.get(sign, ())
        # Deeper lines, and those of a quotation that goes on without its mark, are always more of the same.
        if not (rules or sign in _UNDERLINES) or not 0 <= depths[line] <= deepest:
            continue
        if sign in _UNDERLINES and not text[place:end].lstrip(sign).strip(_BLANKS):
            return None
        for rule in rules:
            if rule(state, line, stop, True):
                return line
    return stop
