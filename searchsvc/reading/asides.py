"""A block rule for markdown-it-py: formulas between lines of ``$$``, comments between those of ``%%``.

And comments of MDX, from ``{/*`` to ``*/}``. CommonMark knows none of them; Obsidian, Pandoc and GitHub
draw the first, Obsidian (https://help.obsidian.md/syntax) and Docusaurus hide the others. What looks like a
heading in them is none: a lone ``=`` in a formula, the data that plugins keep at the end of a note. What is
opened and never closed is text.
"""

from markdown_it.rules_block import StateBlock

_FORMULA = "$$"
_CLOSING = {_FORMULA: _FORMULA, "%%": "%%", "{/*": "*/}"}
_OPENING = tuple(_CLOSING)


def aside(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    """Add a formula as one token, and a comment as the blocks in it between two tokens."""
    if not state.src.startswith(_OPENING, state.bMarks[start_line] + state.tShift[start_line]):
        return False
    mark = next(mark for mark in _OPENING if _line(state, start_line).startswith(mark))
    last = None if state.is_code_block(start_line) else _closing_line(state, mark, start_line, end_line)
    if last is None or silent:
        return last is not None
    if mark == _FORMULA:
        state.push("formula", "", 0).map = [start_line, last + 1]
    else:
        state.push("comment_open", "", 1).map = [start_line, last + 1]
        outer_end, state.lineMax = state.lineMax, last
        state.md.block.tokenize(state, start_line + 1, last)
        state.lineMax = outer_end
        state.push("comment_close", "", -1)
    state.line = last + 1
    return True


def _closing_line(state: StateBlock, mark: str, start_line: int, end_line: int) -> int | None:
    """Return the line that ends what a line begins with a mark; a formula holds no blank line.

    How far was looked in vain is remembered, so that many opening lines are not each looked from.
    """
    key, closing = f"not closed: {mark}", _CLOSING[mark]
    if closing in _line(state, start_line)[len(mark) :] or start_line < state.env.get(key, -1):
        return None
    line = start_line + 1
    while line < end_line and state.sCount[line] >= state.blkIndent:
        text = _line(state, line)
        if text.endswith(closing) and text.count(closing) == 1:
            return line
        if mark == _FORMULA and not text:
            break
        line += 1
    state.env[key] = line
    return None


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].rstrip()
