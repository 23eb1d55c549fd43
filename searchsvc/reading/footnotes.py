"""A block rule for markdown-it-py: definitions of footnotes, ``[^1]: text``, with the blocks indented below.

CommonMark takes one of a single word for a link reference, ``[^1]: [[Note]]``, and its further paragraphs
for code. GitHub, Pandoc and Obsidian do not (https://help.obsidian.md/syntax#Footnotes).
"""

import re

from markdown_it.rules_block import StateBlock

_OPENING = re.compile(r"(?:\[\^[^\s\[\]]{1,999}\]:[ \t]*)++")
"""Of several on one line none is in the other, or a line could nest more deeply than blocks may."""
_INDENT = 4
"""Of what belongs to a definition, as far as lists and code need."""


def footnote(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    """Add the blocks in a definition between two tokens, as those in a list item are."""
    place = state.bMarks[start_line] + state.tShift[start_line]
    if not state.src.startswith("[^", place) or state.is_code_block(start_line):
        return False
    opening = _OPENING.match(state.src, place, state.eMarks[start_line])
    if opening is None or silent:
        return opening is not None
    state.push("footnote_open", "", 1)
    before = state.bMarks[start_line], state.tShift[start_line], state.sCount[start_line], state.parentType
    # What stands behind the colon is the first line of the content, wherever it begins.
    state.bMarks[start_line], state.tShift[start_line] = opening.end(), 0
    state.blkIndent += _INDENT
    state.sCount[start_line] = state.blkIndent
    state.parentType = "footnote"
    state.md.block.tokenize(state, start_line, end_line)
    state.blkIndent -= _INDENT
    state.bMarks[start_line], state.tShift[start_line], state.sCount[start_line], state.parentType = before
    state.push("footnote_close", "", -1)
    return True
