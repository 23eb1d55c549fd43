"""A block rule for markdown-it-py: the boxes and tabs of MkDocs.

A line such as ``!!! note``, ``??? tip "Title"`` or ``=== "Linux"`` makes Markdown of the indented lines
below it (https://python-markdown.github.io/extensions/admonition, https://facelessuser.github.io/pymdown-extensions).
To CommonMark they are code: links in them would lead nowhere, and warnings go where code is left out.
"""

import re

from markdown_it.rules_block import StateBlock

_CLASSES = r"[\w-]+(?:\s+[\w-]+)*"
_TITLE = r'"[^"]*"'
_OPENING = re.compile(
    rf"!!!\s?{_CLASSES}(?:\s+{_TITLE})?"
    rf"|\?\?\?\+?\s?(?:{_CLASSES}(?:\s+{_TITLE})?|{_TITLE})"
    rf"|===[+!]{{0,2}}\s+{_TITLE}"
)
_INDENT = 4


def admonition(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    """Add the title as running text, and the blocks of what is indented below it."""
    text = state.src[state.bMarks[start_line] + state.tShift[start_line] : state.eMarks[start_line]].rstrip()
    if state.is_code_block(start_line) or not _OPENING.fullmatch(text):
        return False
    stop = _body_end(state, start_line + 1, end_line)
    if stop == start_line + 1 or silent:
        return stop > start_line + 1
    outer_parent, outer_end = state.parentType, state.lineMax
    state.level += 1
    title = state.push("inline", "", 0)
    title.content, title.map = text, [start_line, start_line + 1]
    state.parentType, state.lineMax, state.blkIndent = "root", stop, state.blkIndent + _INDENT
    state.md.block.tokenize(state, start_line + 1, stop)
    state.parentType, state.lineMax, state.blkIndent = outer_parent, outer_end, state.blkIndent - _INDENT
    state.level -= 1
    state.line = stop
    return True


def _body_end(state: StateBlock, first: int, end: int) -> int:
    """Return the line after the last one that is indented, blank ones between them included."""
    stop = first
    for line in range(first, end):
        if state.isEmpty(line):
            continue
        if state.sCount[line] < state.blkIndent + _INDENT:
            break
        stop = line + 1
    return stop
